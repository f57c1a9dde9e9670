"""What a format is, and the laws that each one keeps.

1. `size` is exact: equal to the bytes that `encode` writes without a codec, for every batch.
2. `decode(encode(x)) == x` for all that `capabilities` lists. What a format cannot carry is refused (`WouldLose`), or
   left out when `lossy=True` asks for it, and then counted in `EncodedLog.losses`.
3. `breakdown` names where each byte went and adds up to `size`.
4. v0, v1 and v2 are byte-identical to Apache Kafka's own writer; under a codec the decompressed bytes are, and the
   compressed ones where the codec's library is Kafka's (docs/adr/0002).
5. No input makes a reader crash, hang, read out of bounds, or allocate past its limit.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Final, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kfbench import codecs
from kfbench.arrays import Bytes, Int64, as_bytes, check_buffer, integers_of
from kfbench.batches import (
    CREATE_TIME,
    FIELD_DEFAULTS,
    NO_FIELDS,
    BatchFields,
    DecodedLog,
    DecodedMetadata,
    DecodedTimes,
    EncodedLog,
    plan,
)
from kfbench.codecs import Allowance, Codec
from kfbench.errors import IllegalCombination, InvalidRecords, WouldLose
from kfbench.formats.base.damage import Damage, OnError
from kfbench.formats.base.entries import Entries
from kfbench.formats.base.index import NO_HEADERS, Index
from kfbench.kernels.formats import control
from kfbench.kernels.wire import frames, status
from kfbench.limits import Limits
from kfbench.records import Records, Shapes

CHUNK_BYTES: Final = 8 << 20  # how much is held plain at a time on its way through a codec


@dataclass(frozen=True, kw_only=True)
class Capabilities:
    """What a format can carry. Header fields are those of `BatchFields`."""

    timestamps: bool
    milliseconds: bool = True  # else timestamps are int32 seconds
    headers: bool
    empty_batches: bool
    batch_fields: frozenset[str]
    codecs: tuple[str, ...]
    sizes_from_shapes: bool = True  # else what is in headers decides too, and where there are some sizes take Records

    @cached_property
    def every_record(self) -> bool:
        return self.timestamps and self.milliseconds and self.headers and self.empty_batches

    @property
    def missing(self) -> list[str]:
        """What `encode` refuses, or leaves out when it may."""
        parts = [part for part in ("timestamps", "milliseconds", "headers", "empty_batches") if not getattr(self, part)]
        return parts + [name for name in (*FIELD_DEFAULTS, "tagged_fields") if name not in self.batch_fields]


class Checksum(NamedTuple):
    """The checksum of an entry: stored as u32 at its byte `position`, over its bytes from `covers_from` to its end."""

    algorithm: Literal["CRC-32", "CRC-32C"]
    position: int
    covers_from: int


class Format(ABC):
    """A record format: bytes from records and records from bytes.

    Public arguments throughout: batch_size is a number of records or an int64 array of boundaries; batch_fields the
    header fields to set; codec and level by Kafka's names.
    """

    name: str
    magic: int
    summary: str
    capabilities: Capabilities
    checksum: ClassVar[Checksum]
    features: int = 0  # attribute bits that every batch of this format sets
    bare_parts: ClassVar[tuple[str, ...]] = ("batch_header.",)  # how parts of `breakdown` begin that no codec covers

    def encode(
        self,
        records: Records,
        batch_size: int | ArrayLike = 100,
        codec: str = "none",
        level: int | None = None,
        batch_fields: BatchFields | None = None,
        lossy: bool = False,
        out: Bytes | None = None,
    ) -> EncodedLog:
        """Writes the records in batches.

        out: a uint8 buffer to write into, so that a caller can reuse it; it must hold the result. Raises
        IllegalCombination (a codec that the format does not have), WouldLose, InvalidRecords.
        """
        self.check_codec(codec, level)
        if not isinstance(records, Records):
            raise InvalidRecords(f"records: kfbench.Records is wanted, not {type(records).__name__}")
        if out is not None:
            check_buffer(out)
            for data in records.buffers:
                if np.may_share_memory(out, data):
                    raise InvalidRecords("out: holds the records' own bytes, which it would overwrite")
        bounds = plan(len(records), batch_size)
        fields = _fields(batch_fields)
        fields.over(len(bounds) - 1)
        self._check(records, bounds, fields)
        losses = self._losses(records.shapes, bounds, fields)
        if losses and not lossy:
            what = ", ".join(f"{name} ({number:,})" for name, number in losses.items())
            raise WouldLose(f"{self.name} cannot carry {what}; lossy=True leaves that out")
        if codec == "none":
            target = np.empty(self._bound(records.shapes, len(bounds) - 1, fields), np.uint8) if out is None else out
            positions = np.empty(len(bounds), np.int64)
            if not self._write(records, bounds, fields, target, positions):
                needed = int(self.size(records, bounds, fields).sum())
                raise InvalidRecords(f"out: {len(target)} bytes, {needed} are needed")
            data = target[: positions[-1]]
        else:
            data, positions = self._compressed(records, bounds, fields, codecs.find(codec), level, out)
        return EncodedLog(data=data, positions=positions, losses=losses)

    def size(
        self, records: Records | Shapes, batch_size: int | ArrayLike = 100, batch_fields: BatchFields | None = None
    ) -> Int64:
        """The exact bytes of each batch without a codec, int64[batches]: those of `encode(..., lossy=True)`.

        Raises InvalidRecords for Shapes with headers where `capabilities.sizes_from_shapes` is False; so does
        `breakdown`.
        """
        self._check_sizeable(records)
        bounds = plan(len(records), batch_size)
        out, fields = np.empty(len(bounds) - 1, np.int64), _fields(batch_fields)
        fields.over(len(out))
        self._sizes(records, bounds, fields, out)
        return out

    def first_beyond(
        self, most_bytes: int, records: Records, batch_size: int | ArrayLike, batch_fields: BatchFields
    ) -> int | None:
        """The batch with which all so far are larger than that without a codec. Quick where they are far from it."""
        bounds = plan(len(records), batch_size)
        if self._bound(records.shapes, len(bounds) - 1, batch_fields) <= most_bytes:
            return None
        ends = np.cumsum(self.size(records, bounds, batch_fields))
        batch = int(np.searchsorted(ends, most_bytes, side="right"))
        return batch if batch < len(ends) else None

    def breakdown(
        self, records: Records | Shapes, batch_size: int | ArrayLike = 100, batch_fields: BatchFields | None = None
    ) -> dict[str, int]:
        """Where the bytes go, by field and over all batches; adds up to `size(...).sum()`."""
        self._check_sizeable(records)
        bounds, fields = plan(len(records), batch_size), _fields(batch_fields)
        fields.over(len(bounds) - 1)
        return self._parts(records, bounds, fields)

    def losses(
        self, records: Records | Shapes, batch_size: int | ArrayLike = 100, batch_fields: BatchFields | None = None
    ) -> dict[str, int]:
        """What the format cannot carry, and how many of each: empty when it can carry it all."""
        shapes, fields = shapes_of(records), _fields(batch_fields)
        bounds = plan(len(shapes), batch_size)
        fields.over(len(bounds) - 1)
        return self._losses(shapes, bounds, fields)

    def decode(self, data: Any, on_error: OnError = "raise", limits: Limits | None = None) -> DecodedLog:
        """Reads a log of this format alone. Keys and values stay where they are: views of `data` where it is plain.

        on_error: "raise" the first CorruptLog, or "skip" damaged batches and list them in `.errors`. limits: what
        the bytes may make it allocate; None: the defaults of `Limits`.
        """
        data = as_bytes("data", data.data if isinstance(data, EncodedLog) else data)
        entries = Entries.of(data)
        log = self.decode_at(data, entries.positions, on_error, Allowance.of(len(data), limits))
        if not entries.broken and not entries.trailing_bytes:
            return log
        return replace(log, errors=[*log.errors, *entries.errors(on_error)], trailing_bytes=entries.trailing_bytes)

    def decode_metadata(
        self,
        data: Any,
        on_error: OnError = "raise",
        limits: Limits | None = None,
        check_crcs: bool = True,  # noqa: ARG002
    ) -> DecodedMetadata:
        """Offsets, timestamps and lengths alone. Where a format has the headers of a batch first, no more than they is
        decompressed; then a payload that is cut short or undecodable goes unseen, and so do control records.

        check_crcs: False takes no checksum and keeps every other check, as Kafka's consumers do by that name, and its
        brokers where they look up offsets by time. A format whose only way is to decode all of it (v0, v1, enriched,
        kip98) checks them all the same.
        """
        log = self.decode(data, on_error, limits)
        shapes = log.records.shapes
        return DecodedMetadata(
            timestamps_ms=shapes.timestamps_ms,
            offsets=shapes.offsets,
            key_lengths=shapes.key_lengths,
            value_lengths=shapes.value_lengths,
            header_counts=shapes.header_bounds[1:] - shapes.header_bounds[:-1],
            bounds=log.bounds,
            plain_bytes=int(log.batch_rows["records_size_bytes"].sum()),
            errors=log.errors,
            trailing_bytes=log.trailing_bytes,
        )

    def read_times(self, data: Any, positions: Int64, limits: Limits | None = None) -> DecodedTimes:
        """Offsets and timestamps of the entries data[positions[i]:positions[i + 1]], to look an offset up by its time.
        positions: of `Entries.of`, or a run of them. An entry of v0 and v1 is a message, plain or around a compressed
        set; the positions of their `EncodedLog` are of batches, which are other things.

        v2, v3 without tags and without features that say where a record lies or how its numbers are written, and
        columnar read nothing else of a record: damage there goes unseen. What lies behind a codec is decompressed,
        metadata first where it comes first. No checksum is checked but by the formats that decode all of it, as in
        `decode_metadata`. Raises CorruptLog, InvalidRecords for positions that are none.
        """
        data = as_bytes("data", data.data if isinstance(data, EncodedLog) else data)
        positions = _entries(positions, data)
        return self._read_times(data, positions, Allowance.of(len(data), limits))

    def _read_times(self, data: Bytes, positions: Int64, allowance: Allowance) -> DecodedTimes:
        log = self.decode_at(data, positions, "raise", allowance)
        return DecodedTimes(log.records.shapes.timestamps_ms, log.records.shapes.offsets, log.bounds)

    def fetch(self, data: Any, positions: Int64, indices: ArrayLike, limits: Limits | None = None) -> Records:
        """Record indices[b] of each batch data[positions[b]:positions[b + 1]], as one record a batch without headers.

        positions: as `read_times` takes them. limits: of columnar; v2 and v3 make room for one record a batch, whatever
        the bytes claim. No other record is decoded, and no checksum checked. Raises IllegalCombination where the format
        has no way to do that, CorruptLog for a batch that is damaged or has a codec, and of columnar for one with
        headers; InvalidRecords for positions that are none, and for indices below 0 or not below the number of records
        in their batch.
        """
        data = as_bytes("data", data.data if isinstance(data, EncodedLog) else data)
        wanted = integers_of("indices", indices, np.int64, is_kept=False)
        positions = _entries(positions, data)
        if len(wanted) != len(positions) - 1:
            raise InvalidRecords(f"indices: {len(wanted)} items for {len(positions) - 1} batches")
        index, damage = Index(len(wanted), two_clocks=False), Damage(positions, "raise")
        self._fetch(data, positions, wanted, Allowance.of(len(data), limits), damage.state, index)
        if len(missing := np.flatnonzero(damage.state == status.NO_SUCH_RECORD)):
            b = int(missing[0])
            raise InvalidRecords(
                f"indices: item {b} is {wanted[b]}, and the batch at byte {positions[b]} has no such record: "
                "0 is its first, and `decode` or `decode_metadata` tells how many it has"
            )
        damage.errors()
        return index.records(data, np.zeros(len(wanted) + 1, np.int64), NO_HEADERS)

    def _fetch(
        self,
        data: Bytes,  # noqa: ARG002
        positions: Int64,  # noqa: ARG002
        indices: Int64,  # noqa: ARG002
        allowance: Allowance,  # noqa: ARG002
        state: NDArray[np.int8],  # noqa: ARG002
        index: Index,  # noqa: ARG002
    ) -> None:
        raise IllegalCombination(f"{self.name} has no way to one record of a batch")

    @abstractmethod
    def decode_at(self, data: Bytes, positions: Int64, on_error: OnError, allowance: Allowance) -> DecodedLog:
        """Reads the entries data[positions[i]:positions[i + 1]]."""

    @abstractmethod
    def _bound(self, shapes: Shapes, batches: int, fields: BatchFields) -> int:
        """No encoding of these records is larger."""

    @abstractmethod
    def _write(self, records: Records, bounds: Int64, fields: BatchFields, out: Bytes, positions: Int64) -> bool:
        """Writes plain batches; False where `out` is too small."""

    @abstractmethod
    def _compressed(
        self,
        records: Records,
        bounds: Int64,
        fields: BatchFields,
        codec: Codec,
        level: int | None,
        out: Bytes | None,
    ) -> tuple[Bytes, Int64]:
        """Writes compressed batches: (data, positions)."""

    @abstractmethod
    def _sizes(self, records: Records | Shapes, bounds: Int64, fields: BatchFields, out: Int64) -> None: ...

    @abstractmethod
    def _parts(self, records: Records | Shapes, bounds: Int64, fields: BatchFields) -> dict[str, int]: ...

    def _check(self, records: Records, bounds: Int64, fields: BatchFields) -> None:
        """Raises InvalidRecords for control records that no reader would take."""
        if "is_control" in fields.set_fields and "is_control" in self.capabilities.batch_fields:
            i = control.first_broken(records.columns, bounds, fields.rows)
            if i >= 0:
                field, promise = status.PROMISES[status.CONTROL_RECORD]
                raise InvalidRecords(f"record {i} of a control batch: {field}: {promise}")

    def _check_sizeable(self, records: Records | Shapes) -> None:
        """Raises InvalidRecords."""
        has_headers = shapes_of(records).has_headers
        if has_headers and isinstance(records, Shapes) and not self.capabilities.sizes_from_shapes:
            raise InvalidRecords(f"{self.name}: sizes depend on what is in the headers; kfbench.Records are wanted")

    def check_codec(self, codec: str, level: int | None = None) -> None:
        """Raises IllegalCombination for a codec or a level that this format cannot have."""
        codecs.find(codec, level)
        if codec not in self.capabilities.codecs:
            raise IllegalCombination(f"{self.name} has no {codec} (codecs: {', '.join(self.capabilities.codecs)})")

    def _losses(self, shapes: Shapes, bounds: Int64, fields: BatchFields) -> dict[str, int]:
        can = self.capabilities
        if can.every_record and not fields.set_fields:
            return {}
        losses: dict[str, int] = {}
        unknown = fields.set_fields - can.batch_fields
        if not can.timestamps:
            losses["timestamps"] = shapes.timestamp_count
        if not can.milliseconds:
            losses["milliseconds"] = shapes.timestamp_count - shapes.whole_second_count
        if not can.headers:
            losses["headers"] = shapes.header_count
        if not can.empty_batches:
            losses["empty batches"] = int(np.count_nonzero(bounds[1:] == bounds[:-1]))
        for name in sorted(unknown):
            set_in = fields.set_in(name)
            losses[name] = int(np.count_nonzero(np.broadcast_to(set_in, len(bounds) - 1)))
        if "append_time_ms" in fields.set_fields & can.batch_fields and "tagged_fields" not in can.batch_fields:
            # Only a tag has room for an append time that readers are not to see.
            noted = fields.set_in("append_time_ms") & (fields.rows["timestamp_type"] == CREATE_TIME)
            losses["append_time_ms"] = int(np.count_nonzero(np.broadcast_to(noted, len(bounds) - 1)))
        return {name: number for name, number in losses.items() if number}

    @property
    def has_bare_metadata(self) -> bool:
        """Whether no codec covers offsets, times and lengths of the records."""
        return "key_length" in self.bare_parts

    def __repr__(self) -> str:
        return f"<Format {self.name}: {self.summary}>"


def _entries(positions: ArrayLike, data: Bytes) -> Int64:
    found: Int64 = integers_of("positions", positions, np.int64, is_kept=False)
    if not frames.are_entries(data, found):
        raise InvalidRecords(
            "positions: must be of entries, one after another, each as long as it says: `Entries.of(data)` finds them "
            "(in v0 and v1 each message is one)"
        )
    return found


def _fields(batch_fields: BatchFields | None) -> BatchFields:
    if not isinstance(batch_fields, BatchFields | None):
        raise InvalidRecords(f"batch_fields: kfbench.BatchFields is wanted, not {type(batch_fields).__name__}")
    return batch_fields or NO_FIELDS


def shapes_of(records: Records | Shapes) -> Shapes:
    """Raises InvalidRecords."""
    if not isinstance(records, Records | Shapes):
        raise InvalidRecords(f"records: kfbench.Records or Shapes are wanted, not {type(records).__name__}")
    return records.shapes if isinstance(records, Records) else records


def chunks(sizes: Int64) -> Iterator[tuple[int, int]]:
    """Runs of batches, from one to before another, of about CHUNK_BYTES each: memory stays bounded under a codec."""
    ends, lo = np.cumsum(sizes), 0
    while lo < len(sizes):
        before = int(ends[lo - 1]) if lo else 0
        hi = max(lo + 1, int(np.searchsorted(ends, before + CHUNK_BYTES, side="right")))
        yield lo, hi
        lo = hi


def compressed(codec: Codec, level: int | None, plain: Bytes, starts: Int64, ends: Int64) -> tuple[Bytes, Int64]:
    """plain[starts[b]:ends[b]] of each batch, compressed: (payload, its bounds). Nothing stays nothing."""
    return codecs.joined(
        [
            codec.compress(plain[start:end], level) if start < end else b""
            for start, end in zip(starts.tolist(), ends.tolist(), strict=True)
        ]
    )


def gathered(pieces: list[tuple[Bytes, Int64]], out: Bytes | None) -> tuple[Bytes, Int64]:
    """Pieces of (data, positions) as one, in `out` if it is given."""
    sizes = [len(data) for data, _ in pieces]
    total = sum(sizes)
    if out is not None:
        check_buffer(out, total)
    data = (
        np.concatenate([data for data, _ in pieces], out=None if out is None else out[:total])
        if pieces
        else np.zeros(0, np.uint8)
    )
    starts = np.cumsum([0, *sizes])
    positions = [positions[:-1] + start for (_, positions), start in zip(pieces, starts, strict=False)]
    return data, np.concatenate([*positions, starts[-1:]]).astype(np.int64)
