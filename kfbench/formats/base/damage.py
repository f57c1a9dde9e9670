"""The damage that a reader finds in a log: a state per batch, and the errors. Decompression happens here too."""

from collections.abc import Callable
from contextlib import suppress
from typing import Final, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kfbench.arrays import Bytes, Int64, freeze
from kfbench.codecs import (
    Allowance,
    Codec,
    Stream,
    Undecodable,
    UnknownDictionary,
    ZstdDictionary,
    codec_of,
    dictionary_number,
    join_payloads,
)
from kfbench.errors import CorruptLog, InvalidRecords, MissingDictionary
from kfbench.kernels.wire import status
from kfbench.kernels.wire.sealing import NEVER
from kfbench.layouts import LAST_CODEC
from kfbench.varints import UVARINT_BYTES, get_uvarint

OnError = Literal["raise", "skip"]
ON_ERROR: Final = ("raise", "skip")


class Bodies(NamedTuple):
    """Bodies of batches (the bytes after the header) in a log: the body of batch b is data[starts[b]:ends[b]].

    codecs: int8[batches], the codec numbers in the attributes. find_codec: a function from a number to its codec.
    """

    data: Bytes
    starts: Int64
    ends: Int64
    codecs: NDArray[np.int8]
    find_codec: Callable[[int], Codec] = codec_of


class PlainBodies(NamedTuple):
    """Uncompressed bodies of batches or message sets: body b is source[starts[b]:ends[b]]."""

    source: Bytes
    starts: Int64
    ends: Int64


class PlainMetadata(NamedTuple):
    """Uncompressed bodies: body b is source[starts[b]:ends[b]]. Some have only metadata, without the payload.

    payload_ends: the end of each payload, or NEVER if it was not decompressed. made_bytes: the number of decompressed
    bytes, including those that are not in `source`.
    """

    source: Bytes
    starts: Int64
    ends: Int64
    payload_ends: Int64
    made_bytes: int


def check_on_error(on_error: str) -> None:
    """Raise InvalidRecords unless `on_error` is "raise" or "skip"."""
    if on_error not in ON_ERROR:
        raise InvalidRecords(f'on_error: "raise" or "skip" is wanted, not {on_error!r}')


class BatchDamage:
    """The damage of some batches. state: int8[batches], a constant of `kernels.wire.status` per batch."""

    def __init__(self, positions: Int64, on_error: OnError) -> None:
        if on_error != "raise":
            check_on_error(on_error)
        self.positions, self.on_error = positions, on_error
        self.state = np.zeros(len(positions) - 1, np.int8)
        self._reasons: dict[int, str] = {}
        self._missing: dict[int, int] = {}  # number of the missing dictionary by batch
        self._bodies: Bodies | None = None

    def __len__(self) -> int:
        """The number of damaged batches."""
        return int(np.count_nonzero(self.state))

    def plain(
        self, bodies: Bodies, allowance: Allowance, appendix: Bytes | None = None, limit_bytes: Int64 | None = None
    ) -> PlainBodies:
        """Decompress the body of each batch that has a codec, and copy the other bodies.

        If a body cannot be decompressed, it becomes empty and the batch's state says so. appendix: bytes to put after
        the last body. limit_bytes: int64[batches], the largest size of each body after decompression; None: unknown.
        """

        def plain_body(b: int, codec: Codec, body: Bytes) -> bytes:
            return self._decompress(codec, body, b, allowance, None if limit_bytes is None else int(limit_bytes[b]))

        return self._replace_bodies(bodies, plain_body, appendix, allowance)

    def metadata(
        self, bodies: Bodies, allowance: Allowance, headers_first: NDArray[np.bool_], appendix: Bytes | None = None
    ) -> PlainMetadata:
        """Decompress bodies like `plain`, but only the metadata of the batches in `headers_first` (bool[batches]).

        appendix: bytes to put after the last body.
        """
        is_prefix, surplus_bytes = headers_first & (bodies.codecs != 0) & (self.state == status.SOUND), 0

        def plain_body(b: int, codec: Codec, body: Bytes) -> bytes:
            nonlocal surplus_bytes
            if not is_prefix[b]:
                return self._decompress(codec, body, b, allowance)
            stream = codec.stream(body, allowance.next_bytes)
            head = self._decompress_metadata(stream, b, allowance)
            surplus_bytes += stream.plain_bytes - len(head)
            return head

        source, starts, ends = self._replace_bodies(bodies, plain_body, appendix, allowance)
        payload_ends = np.where(is_prefix, NEVER, ends)
        freeze(payload_ends)
        return PlainMetadata(source, starts, ends, payload_ends, int((ends - starts).sum()) + surplus_bytes)

    def _replace_bodies(
        self,
        bodies: Bodies,
        plain_body: Callable[[int, Codec, Bytes], bytes],
        appendix: Bytes | None,
        allowance: Allowance,
    ) -> PlainBodies:
        """Copy all bodies. Replace each compressed body of an undamaged batch by plain_body(batch, codec, body)."""
        self._bodies, parts = bodies, []
        columns = (bodies.codecs.tolist(), bodies.starts.tolist(), bodies.ends.tolist())
        for b, (codec, start, end) in enumerate(zip(*columns, strict=True)):
            body, is_compressed = bodies.data[start:end], codec and self.state[b] == status.SOUND
            if not is_compressed:
                parts.append(body.tobytes())
                continue
            try:
                found = allowance.dictionary_codec if codec == ZstdDictionary.id else bodies.find_codec(codec)
            except KeyError:  # a number that no codec here has
                self.state[b] = status.CODEC
                parts.append(b"")
                continue
            parts.append(plain_body(b, found, body) if len(body) or codec <= LAST_CODEC else b"")
        source, cuts = join_payloads(parts if appendix is None else [*parts, appendix.tobytes()])
        ends = cuts[1 : len(parts) + 1]
        freeze(ends)  # like positions of an uncompressed log, so that kernels are compiled only for read-only arrays
        return PlainBodies(source, cuts[: len(parts)], ends)

    def _decompress(
        self, codec: Codec, body: Bytes, batch: int, allowance: Allowance, limit_bytes: int | None = None
    ) -> bytes:
        has_own_limit = limit_bytes is not None and limit_bytes <= allowance.next_bytes
        try:
            return allowance.decompress(codec, body, limit_bytes)
        except Undecodable as error:
            problem = status.PAYLOAD if has_own_limit and error.is_past_limit else status.COMPRESSED
            self._note(batch, problem, error)
            return b""

    def _note(self, batch: int, problem: int, error: Undecodable) -> None:
        self.state[batch], self._reasons[batch] = problem, str(error)
        if isinstance(error, UnknownDictionary):
            self._missing[batch] = error.number

    def _decompress_metadata(self, stream: Stream, batch: int, allowance: Allowance) -> bytes:
        """Read the metadata of one body with its length in front."""
        limit_bytes, spent = allowance.next_bytes, 0
        try:
            head = stream.read(UVARINT_BYTES)
            with suppress(ValueError):  # the length is missing: the kernel reports that
                size, at = get_uvarint(head)
                head += stream.read(max(0, at + size - len(head)))
            return head
        except Undecodable as error:
            allowance.name_limit(error, limit_bytes)
            self._note(batch, status.COMPRESSED, error)
            spent = error.spent_bytes
            return b""
        finally:
            allowance.log_bytes -= max(spent, stream.plain_bytes)

    def dictionary_numbers(self, batches: Int64) -> NDArray[np.int32]:
        """Return the number of the dictionary that each of these undamaged batches names; -1: none."""
        numbers = np.full(len(batches), -1, np.int32)
        if self._bodies is not None:
            data, starts, ends, codecs, _ = self._bodies
            is_named = (codecs == ZstdDictionary.id) & (starts < ends)  # a format may have no payload to compress
            for i in np.flatnonzero(is_named[batches]).tolist():
                start = int(starts[batches[i]])
                numbers[i] = dictionary_number(data[start : start + UVARINT_BYTES].tobytes())
        return numbers

    def errors(self) -> list[CorruptLog]:
        """Return one error per damaged batch, in the log's order. With on_error="raise" raise the first instead."""
        if not np.count_nonzero(self.state):
            return []
        found: list[CorruptLog] = []
        for batch in np.flatnonzero(self.state).tolist():
            position, (field, promise) = int(self.positions[batch]), status.PROMISES[int(self.state[batch])]
            if batch in self._missing:
                found.append(MissingDictionary(position, self._missing[batch], self._reasons[batch]))
            else:
                promise = f"{promise}: {self._reasons[batch]}" if batch in self._reasons else promise
                found.append(CorruptLog(position, field, promise))
            if self.on_error == "raise":
                raise found[0]
        return found
