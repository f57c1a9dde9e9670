"""What is broken in a log while it is read, and what to say of it."""

from collections.abc import Callable
from contextlib import suppress
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from kfbench.arrays import Bytes, Int64, freeze
from kfbench.codecs import Allowance, Codec, Undecodable, joined
from kfbench.errors import CorruptLog, InvalidRecords
from kfbench.kernels.wire import status
from kfbench.kernels.wire.sealing import NEVER
from kfbench.uvarint import MOST_BYTES, get_uvarint

OnError = Literal["raise", "skip"]
FindCodec = Callable[[int], Codec]  # by its number in the attributes
CHOICES: Final = ("raise", "skip")


def check_choice(on_error: str) -> None:
    """Raises InvalidRecords."""
    if on_error not in CHOICES:
        raise InvalidRecords(f'on_error: "raise" or "skip" is wanted, not {on_error!r}')


class Damage:
    """The state of each batch: int8, one of `kernels.status`."""

    def __init__(self, positions: Int64, on_error: OnError) -> None:
        check_choice(on_error)
        self.positions, self.on_error = positions, on_error
        self.state = np.zeros(len(positions) - 1, np.int8)
        self._reasons: dict[int, str] = {}

    def __len__(self) -> int:
        """How many batches are broken."""
        return int(np.count_nonzero(self.state))

    def plain(
        self,
        data: Bytes,
        starts: Int64,
        ends: Int64,
        codecs: NDArray[np.int8],
        find: FindCodec,
        allowance: Allowance,
        behind: Bytes | None = None,
        most: Int64 | None = None,
    ) -> tuple[Bytes, Int64, Int64]:
        """data[starts[b]:ends[b]] of each batch, decompressed where it has a codec: (source, its starts, its ends).

        A batch that its codec refuses is empty, and its state says so. `behind` is put at the source's end. most:
        int64[batches], what each may decompress to where that is known.
        """

        def part(b: int, codec: int, payload: Bytes) -> bytes:
            return self._decompressed(find(codec), payload, b, allowance, None if most is None else int(most[b]))

        return self._replaced(data, starts, ends, codecs, part, behind)

    def metadata(
        self,
        data: Bytes,
        starts: Int64,
        ends: Int64,
        codecs: NDArray[np.int8],
        find: FindCodec,
        allowance: Allowance,
        headers_first: NDArray[np.bool_],
        behind: Bytes | None = None,
    ) -> tuple[Bytes, Int64, Int64, Int64, int]:
        """As `plain`, but of batches with their headers first no more than the metadata is decompressed.

        (source, its starts, its ends, where the payloads end: NEVER where that is not known, bytes that were made
        plain on the way.)
        """
        prefixes, left_over = headers_first & (codecs != 0) & (self.state == status.SOUND), 0

        def part(b: int, codec: int, payload: Bytes) -> bytes:
            nonlocal left_over
            if not prefixes[b]:
                return self._decompressed(find(codec), payload, b, allowance)
            head, made = self._metadata(find(codec), payload, b, allowance)
            left_over += made - len(head)
            return head

        source, starts, ends = self._replaced(data, starts, ends, codecs, part, behind)
        made = int((ends - starts).sum()) + left_over
        payload_ends = np.where(prefixes, NEVER, ends)
        freeze(payload_ends)
        return source, starts, ends, payload_ends, made

    def _replaced(
        self,
        data: Bytes,
        starts: Int64,
        ends: Int64,
        codecs: NDArray[np.int8],
        part: Callable[[int, int, Bytes], bytes],
        behind: Bytes | None,
    ) -> tuple[Bytes, Int64, Int64]:
        """As `plain`: each compressed stretch of a sound batch is what `part(batch, codec, stretch)` makes of it."""
        parts = []
        for b, (codec, start, end) in enumerate(zip(codecs.tolist(), starts.tolist(), ends.tolist(), strict=True)):
            stretch = data[start:end]
            parts.append(part(b, codec, stretch) if codec and self.state[b] == status.SOUND else stretch.tobytes())
        source, cuts = joined(parts if behind is None else [*parts, behind.tobytes()])
        ends = cuts[1 : len(parts) + 1]
        freeze(ends)  # as they are without a codec: readers are compiled once
        return source, cuts[: len(parts)], ends

    def _decompressed(
        self, codec: Codec, payload: Bytes, batch: int, allowance: Allowance, most: int | None = None
    ) -> bytes:
        is_bound = most is not None and most <= allowance.next_bytes
        try:
            return allowance.decompress(codec, payload, most)
        except Undecodable as error:
            problem = status.PAYLOAD if is_bound and error.is_past_limit else status.COMPRESSED
            self.state[batch], self._reasons[batch] = problem, str(error)
            return b""

    def _metadata(self, codec: Codec, payload: Bytes, batch: int, allowance: Allowance) -> tuple[bytes, int]:
        """(the metadata behind its length, bytes that had to be decompressed for it)."""
        stream, spent = codec.stream(payload, allowance.next_bytes), 0
        try:
            head = stream.read(MOST_BYTES)
            with suppress(ValueError):  # no length: the kernel will say so
                size, at = get_uvarint(head)
                head += stream.read(max(0, at + size - len(head)))
            return head, stream.plain_bytes
        except Undecodable as error:
            self.state[batch], self._reasons[batch], spent = status.COMPRESSED, str(error), error.spent_bytes
            return b"", stream.plain_bytes
        finally:
            allowance.log_bytes -= max(spent, stream.plain_bytes)

    def errors(self) -> list[CorruptLog]:
        """One error a broken batch, in order. Raises the first with on_error="raise"."""
        found: list[CorruptLog] = []
        if not self:
            return found
        for batch in np.flatnonzero(self.state).tolist():
            field, promise = status.PROMISES[int(self.state[batch])]
            if batch in self._reasons:
                promise = f"{promise}: {self._reasons[batch]}"
            found.append(CorruptLog(int(self.positions[batch]), field, promise))
            if self.on_error == "raise":
                raise found[0]
        return found
