"""The damage of a log while it is read: the state of each batch, its errors, and bodies that a codec refuses."""

from collections.abc import Callable
from contextlib import suppress
from typing import Final, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kfbench.arrays import Bytes, Int64, freeze
from kfbench.codecs import Allowance, Codec, Undecodable, join_payloads
from kfbench.errors import CorruptLog, InvalidRecords
from kfbench.kernels.wire import status
from kfbench.kernels.wire.sealing import NEVER
from kfbench.uvarint import MOST_BYTES, get_uvarint

OnError = Literal["raise", "skip"]
FindCodec = Callable[[int], Codec]  # by its number in the attributes
ON_ERROR: Final = ("raise", "skip")


class PlainBodies(NamedTuple):
    """Bodies of batches without their codec: that of batch b is source[starts[b]:ends[b]]."""

    source: Bytes
    starts: Int64
    ends: Int64


class PlainMetadata(NamedTuple):
    """Bodies of batches, of some no more than the metadata, which comes first.

    payload_ends: where the payload ends, or NEVER where it was not decompressed. made_bytes: plain bytes made in all.
    """

    source: Bytes
    starts: Int64
    ends: Int64
    payload_ends: Int64
    made_bytes: int


def check_on_error(on_error: str) -> None:
    """Raise InvalidRecords unless it is "raise" or "skip"."""
    if on_error not in ON_ERROR:
        raise InvalidRecords(f'on_error: "raise" or "skip" is wanted, not {on_error!r}')


class Damage:
    """The damage of some batches. state: int8 per batch, one of `kernels.wire.status`."""

    def __init__(self, positions: Int64, on_error: OnError) -> None:
        check_on_error(on_error)
        self.positions, self.on_error = positions, on_error
        self.state = np.zeros(len(positions) - 1, np.int8)
        self._reasons: dict[int, str] = {}

    def __len__(self) -> int:
        """The number of damaged batches."""
        return int(np.count_nonzero(self.state))

    def plain(
        self,
        data: Bytes,
        starts: Int64,
        ends: Int64,
        codecs: NDArray[np.int8],
        find: FindCodec,
        allowance: Allowance,
        appendix: Bytes | None = None,
        limit_bytes: Int64 | None = None,
    ) -> PlainBodies:
        """Decompress data[starts[b]:ends[b]] of each batch that has a codec.

        A body that its codec refuses becomes empty, and the batch's state says so. appendix: bytes to put behind the
        last body. limit_bytes: int64[batches], the largest plain size of each body, where it is known.
        """

        def plain_body(b: int, codec: int, body: Bytes) -> bytes:
            most_bytes = None if limit_bytes is None else int(limit_bytes[b])
            return self._decompress(find(codec), body, b, allowance, most_bytes)

        return self._replace_bodies(data, starts, ends, codecs, plain_body, appendix)

    def metadata(
        self,
        data: Bytes,
        starts: Int64,
        ends: Int64,
        codecs: NDArray[np.int8],
        find: FindCodec,
        allowance: Allowance,
        headers_first: NDArray[np.bool_],
        appendix: Bytes | None = None,
    ) -> PlainMetadata:
        """Decompress as `plain` does, but of batches in `headers_first` no more than the metadata."""
        is_prefix, surplus_bytes = headers_first & (codecs != 0) & (self.state == status.SOUND), 0

        def plain_body(b: int, codec: int, body: Bytes) -> bytes:
            nonlocal surplus_bytes
            if not is_prefix[b]:
                return self._decompress(find(codec), body, b, allowance)
            head, made_bytes = self._decompress_metadata(find(codec), body, b, allowance)
            surplus_bytes += made_bytes - len(head)
            return head

        source, starts, ends = self._replace_bodies(data, starts, ends, codecs, plain_body, appendix)
        payload_ends = np.where(is_prefix, NEVER, ends)
        freeze(payload_ends)
        return PlainMetadata(source, starts, ends, payload_ends, int((ends - starts).sum()) + surplus_bytes)

    def _replace_bodies(
        self,
        data: Bytes,
        starts: Int64,
        ends: Int64,
        codecs: NDArray[np.int8],
        plain_body: Callable[[int, int, Bytes], bytes],
        appendix: Bytes | None,
    ) -> PlainBodies:
        """Copy all bodies, those of sound batches with a codec as plain_body(batch, codec, body)."""
        parts = []
        for b, (codec, start, end) in enumerate(zip(codecs.tolist(), starts.tolist(), ends.tolist(), strict=True)):
            body = data[start:end]
            parts.append(plain_body(b, codec, body) if codec and self.state[b] == status.SOUND else body.tobytes())
        source, cuts = join_payloads(parts if appendix is None else [*parts, appendix.tobytes()])
        ends = cuts[1 : len(parts) + 1]
        freeze(ends)  # positions of a plain log are read-only too: kernels that read are compiled once
        return PlainBodies(source, cuts[: len(parts)], ends)

    def _decompress(
        self, codec: Codec, body: Bytes, batch: int, allowance: Allowance, limit_bytes: int | None = None
    ) -> bytes:
        is_bound = limit_bytes is not None and limit_bytes <= allowance.next_bytes
        try:
            return allowance.decompress(codec, body, limit_bytes)
        except Undecodable as error:
            problem = status.PAYLOAD if is_bound and error.is_past_limit else status.COMPRESSED
            self.state[batch], self._reasons[batch] = problem, str(error)
            return b""

    def _decompress_metadata(self, codec: Codec, body: Bytes, batch: int, allowance: Allowance) -> tuple[bytes, int]:
        """Return the metadata with its length in front, and the number of bytes that were decompressed for it."""
        stream, spent = codec.stream(body, allowance.next_bytes), 0
        try:
            head = stream.read(MOST_BYTES)
            with suppress(ValueError):  # no length: the kernel finds that
                size, at = get_uvarint(head)
                head += stream.read(max(0, at + size - len(head)))
            return head, stream.plain_bytes
        except Undecodable as error:
            self.state[batch], self._reasons[batch], spent = status.COMPRESSED, str(error), error.spent_bytes
            return b"", stream.plain_bytes
        finally:
            allowance.log_bytes -= max(spent, stream.plain_bytes)

    def errors(self) -> list[CorruptLog]:
        """Return one error per damaged batch, in order. Raise the first with on_error="raise"."""
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
