"""The interface of a record format, and the rules that each format keeps.

1. `size` is exact: it equals the number of bytes that `encode` writes without a codec, for every batch.
2. `decode(encode(x)) == x` for everything that `capabilities` lists. `encode` refuses everything else (`WouldLose`).
   With `lossy=True` it leaves that out and counts it in `EncodedLog.losses`.
3. `breakdown` assigns each byte to a field. The fields add up to `size`.
4. v0, v1 and v2 are byte-identical to Apache Kafka's own writer. Under a codec the decompressed bytes are identical.
   The compressed bytes are identical too if the codec's library is Kafka's (docs/adr/0002).
5. No input makes a reader crash, hang, read out of bounds, or allocate more memory than its limit.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kfbench import codecs
from kfbench.arrays import Bytes, Int64, as_bytes, check_buffer, integers_of
from kfbench.batches import NO_FIELDS, BatchFields, DecodedLog, DecodedMetadata, DecodedTimes, EncodedLog, chunks, plan
from kfbench.codecs import Allowance, Codec, Dictionary, Level, Payloads, ZstdDictionary, join_payloads
from kfbench.errors import IllegalCombination, InvalidDictionary, InvalidRecords, WouldLose
from kfbench.formats.base.appending import Appending
from kfbench.formats.base.capabilities import Capabilities, Checksum, Origin
from kfbench.formats.base.damage import BatchDamage, OnError
from kfbench.formats.base.reading import NO_HEADERS, Entries, Index, Reading, ReadScope
from kfbench.kernels.formats import control
from kfbench.kernels.wire import frames, sealing, status
from kfbench.limits import Limits
from kfbench.records import Records, Shapes


class PlainBatches(NamedTuple):
    """Buffers for n batches without a codec. Batch b is data[positions[b]:positions[b + 1]].

    Its body begins at byte bodies[b] of `data`. positions: int64[n + 1]. bodies: int64[n].
    """

    data: Bytes
    positions: Int64
    bodies: Int64

    @classmethod
    def room(cls, data: Bytes, batches: int) -> Self:
        return cls(data, np.empty(batches + 1, np.int64), np.empty(batches, np.int64))


class EncodeResult(NamedTuple):
    """The result of an encode kernel: a problem (a constant of `kernels.wire.sealing`), and the batch that has it."""

    problem: int
    batch: int

    def is_written(self, first: int = 0) -> bool:
        """Return False if the buffer was too small. Raise InvalidRecords for a batch that does not fit the format.

        first: the number of the kernel's first batch in the whole log.
        """
        batch = first + self.batch
        if self.problem == sealing.OFFSET_TOO_FAR:
            raise InvalidRecords(f"offsets: batch {batch} spans more than an int32 can hold")
        if self.problem == sealing.BATCH_TOO_LARGE:
            raise InvalidRecords(f"batch {batch} is larger than its int32 length can say")
        if self.problem == sealing.MESSAGE_TOO_LARGE:
            raise InvalidRecords(f"batch {batch} holds a message larger than its int32 size can say")
        return self.problem != sealing.OUT_TOO_SMALL


@dataclass(frozen=True, kw_only=True, repr=False)
class Format(ABC):
    """A record format. It encodes records to bytes and decodes bytes to records.

    Args of several methods:
        batch_size: records per batch, or batch boundaries int64[batches + 1].
        batch_fields: the header fields to set.
        codec, level: the codec's name in Kafka, and its level.
        data: an EncodedLog, or an object with a buffer of bytes.
        limits: limits of the memory that a reader allocates; None: the defaults of `Limits`.
        dictionaries: zstd dictionaries that batches may name. `MissingDictionary` reports one that is not there.

    Attributes:
        checksum: the checksum of an entry (a batch or a message); None: entries have none.
        features: attribute bits that every batch of this format sets.
        bare_parts: prefixes of the names in `breakdown` of fields that are never compressed.
        holds_messages: True if entries are messages, not batches.
        is_told_by_magic: False if another format has the same magic, so that the caller must name the format.
        retired_magics: numbers that the format had as magic in older versions, with the reason to refuse such a batch.
        has_metadata_reader: True if `decode_metadata` reads less than `decode`.
    """

    name: str
    magic: int
    summary: str
    capabilities: Capabilities
    origin: Origin = "own"
    checksum: ClassVar[Checksum | None] = None
    features: int = 0
    bare_parts: ClassVar[tuple[str, ...]] = ("batch_header.",)
    holds_messages: ClassVar[bool] = False
    is_told_by_magic: ClassVar[bool] = True
    has_metadata_reader: ClassVar[bool] = False
    retired_magics: ClassVar[Mapping[int, str]] = {}

    @property
    def appending(self) -> Appending:
        """The steps of a broker's append that depend on the format.

        Raises IllegalCombination if the format has none.
        """
        raise IllegalCombination(f"{self.name}: no broker path takes it, because the format declares no `appending`")

    @property
    def has_broker_paths(self) -> bool:
        """True if every broker path takes the format. False: only append does, or the format has no `appending`."""
        try:
            return not self.appending.is_only_path
        except IllegalCombination:
            return False

    def add_record_counts(self, data: Bytes, positions: Int64, most: int, counts: Int64) -> None:
        """Set the record counts of batches of this format, if `scan.counts` does not read its headers.

        Args:
            data, positions: uint8 log, and int64[batches + 1].
            most: the largest count to set; the least is 1.
            counts: int64[batches], changed in place.
        """
        return

    def encode(
        self,
        records: Records,
        batch_size: int | ArrayLike = 100,
        codec: str = "none",
        level: Level = None,
        batch_fields: BatchFields | None = None,
        lossy: bool = False,
        out: Bytes | None = None,
        dictionary: Dictionary | None = None,
    ) -> EncodedLog:
        """Write the records in batches.

        out: a uint8 buffer for the result, so that a caller can use one buffer several times. lossy: leave out and
        count what the format cannot store. dictionary: compress with it; the codec must be "zstd". Raises
        IllegalCombination for a codec or a dictionary that the format does not have, WouldLose, InvalidRecords.
        """
        chosen = self.codec_with(codec, level, dictionary)
        if not isinstance(records, Records):
            raise InvalidRecords(f"records: kfbench.Records is wanted, not {type(records).__name__}")
        if out is not None:
            check_buffer(out)
            for data in records.buffers:
                if np.may_share_memory(out, data):
                    raise InvalidRecords("out: it holds bytes of the records, which would be overwritten")
        bounds = plan(len(records), batch_size)
        fields = default_fields(batch_fields)
        fields.over(len(bounds) - 1)
        if "is_control" in self.capabilities.batch_fields:
            check_control(records, bounds, fields)
        losses = self.capabilities.losses(records.shapes, bounds, fields)
        if losses and not lossy:
            listed = ", ".join(f"{name} ({number:,})" for name, number in losses.items())
            raise WouldLose(f"{self.name} cannot carry {listed}; lossy=True leaves that out")
        if codec == "none":
            target = np.empty(self._bound(records.shapes, len(bounds) - 1, fields), np.uint8) if out is None else out
            plain = PlainBatches.room(target, len(bounds) - 1)
            if not self._encode(records, bounds, fields, chosen.id, plain).is_written():
                needed = int(self.size(records, bounds, fields).sum())
                raise InvalidRecords(f"out: {len(target)} bytes, {needed} are needed")
            return EncodedLog(data=target[: plain.positions[-1]], positions=plain.positions, losses=losses)
        log = self._compress(records, bounds, fields, chosen, level, out)
        return EncodedLog(data=log.data, positions=log.positions, losses=losses)

    def size(
        self, records: Records | Shapes, batch_size: int | ArrayLike = 100, batch_fields: BatchFields | None = None
    ) -> Int64:
        """Return the exact number of bytes of each batch without a codec, int64[batches].

        It equals what `encode(..., lossy=True)` writes. `size` and `breakdown` raise InvalidRecords for Shapes with
        headers unless `capabilities.sizes_from_shapes`.
        """
        self._check_sizeable(records)
        bounds = plan(len(records), batch_size)
        out, fields = np.empty(len(bounds) - 1, np.int64), default_fields(batch_fields)
        fields.over(len(out))
        self._sizes(records, bounds, fields, out)
        return out

    def first_beyond(
        self, most_bytes: int, records: Records, batch_size: int | ArrayLike, batch_fields: BatchFields
    ) -> int | None:
        """Return the number of the first batch with which the log exceeds `most_bytes` uncompressed; None: it fits."""
        bounds = plan(len(records), batch_size)
        if self._bound(records.shapes, len(bounds) - 1, batch_fields) <= most_bytes:
            return None
        ends = np.cumsum(self.size(records, bounds, batch_fields))
        batch = int(np.searchsorted(ends, most_bytes, side="right"))
        return batch if batch < len(ends) else None

    def breakdown(
        self, records: Records | Shapes, batch_size: int | ArrayLike = 100, batch_fields: BatchFields | None = None
    ) -> dict[str, int]:
        """Return the number of bytes per field, summed over all batches. The fields add up to `size(...).sum()`."""
        self._check_sizeable(records)
        bounds, fields = plan(len(records), batch_size), default_fields(batch_fields)
        fields.over(len(bounds) - 1)
        return self._parts(records, bounds, fields)

    def losses(
        self, records: Records | Shapes, batch_size: int | ArrayLike = 100, batch_fields: BatchFields | None = None
    ) -> dict[str, int]:
        """Return the number of items that the format cannot store, by name. Empty: it can store everything."""
        shapes, fields = shapes_of(records), default_fields(batch_fields)
        bounds = plan(len(shapes), batch_size)
        fields.over(len(bounds) - 1)
        return self.capabilities.losses(shapes, bounds, fields)

    def decode(
        self,
        data: Any,
        on_error: OnError = "raise",
        limits: Limits | None = None,
        dictionaries: Iterable[Dictionary] = (),
    ) -> DecodedLog:
        """Decode a log that has only batches of this format. Uncompressed keys and values are views of the log.

        on_error: "raise" the first CorruptLog, or "skip" damaged batches and list them in `.errors`.
        """
        data = log_bytes(data)
        entries = Entries.of(data)
        log = self.decode_at(data, entries.positions, on_error, Allowance.of(len(data), limits, dictionaries))
        if not entries.broken and not entries.trailing_bytes:
            return log
        return replace(log, errors=[*log.errors, *entries.errors(on_error)], trailing_bytes=entries.trailing_bytes)

    def decode_metadata(
        self,
        data: Any,
        on_error: OnError = "raise",
        limits: Limits | None = None,
        check_crcs: bool = True,
        dictionaries: Iterable[Dictionary] = (),
    ) -> DecodedMetadata:
        """Decode only offsets, timestamps and lengths.

        In v3 with headers first, only the metadata is decompressed. Then damage in the payload goes unseen, and control
        records are not recognised.

        check_crcs: False computes no checksum and keeps every other check. Kafka's consumers do so with `check.crcs`
        off, and its brokers when they look up offsets by time. A format that has to decode everything (v0, v1,
        enriched, kip98) always checks its checksums.
        """
        data = log_bytes(data)
        entries = Entries.of(data)
        allowance = Allowance.of(len(data), limits, dictionaries)
        read = self._read(data, entries.positions, on_error, allowance, "metadata", check_crcs)
        errors, index, header_bounds = read.damage.errors(), read.index, read.header_bounds
        return DecodedMetadata(
            timestamps_ms=index.timestamps,
            offsets=index.offsets,
            key_lengths=index.key_lengths,
            value_lengths=index.value_lengths,
            # Without headers all bounds are 0, so they are the counts.
            header_counts=np.diff(header_bounds) if header_bounds[-1] else header_bounds[1:],
            bounds=read.sound_bounds if errors else read.bounds,
            plain_bytes=read.plain_bytes,
            errors=[*errors, *entries.errors(on_error)],
            trailing_bytes=entries.trailing_bytes,
        )

    def read_times(
        self, data: Any, positions: Int64, limits: Limits | None = None, dictionaries: Iterable[Dictionary] = ()
    ) -> DecodedTimes:
        """Read offsets and timestamps of the entries data[positions[i]:positions[i + 1]], to look up offsets by time.

        positions: all positions of `Entries.of`, or a run of neighbouring ones. In v0 and v1 an entry is one message,
        which may contain a compressed set. There the positions of `EncodedLog` do not fit, because they are positions
        of batches.

        v2, and v3 without tags, unsigned numbers or headers first read nothing else of a record. Damage
        elsewhere in the record goes unseen. A compressed body is decompressed; if its metadata comes first, only the
        metadata. Checksums are checked only in formats that decode everything (see `decode_metadata`). Raises
        CorruptLog, and InvalidRecords for positions that are not those of entries.
        """
        data = log_bytes(data)
        positions = check_entries(positions, data)
        return self._read_times(data, positions, Allowance.of(len(data), limits, dictionaries))

    def _read_times(self, data: Bytes, positions: Int64, allowance: Allowance) -> DecodedTimes:
        log = self.decode_at(data, positions, "raise", allowance)
        return DecodedTimes(log.records.shapes.timestamps_ms, log.records.shapes.offsets, log.bounds)

    def fetch(self, data: Any, positions: Int64, indices: ArrayLike, limits: Limits | None = None) -> Records:
        """Read one record of each batch: record indices[b] of data[positions[b]:positions[b + 1]], without its headers.

        No other record is decoded, and no checksum is checked. positions: see `read_times`. indices: int64[batches],
        counted from 0 in each batch. limits: v2 and v3 do not need them: they allocate one record per batch,
        whatever the bytes claim.

        Raises IllegalCombination if the format cannot read a single record. Raises CorruptLog for a batch that is
        damaged or compressed. Raises InvalidRecords for positions that are
        not those of entries, and for an index outside its batch.
        """
        data = log_bytes(data)
        wanted = integers_of("indices", indices, np.int64, is_kept=False)
        positions = check_entries(positions, data)
        if len(wanted) != len(positions) - 1:
            raise InvalidRecords(f"indices: {len(wanted)} items for {len(positions) - 1} batches")
        index, damage = Index(len(wanted), two_clocks=False), BatchDamage(positions, "raise")
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
        self, data: Bytes, positions: Int64, indices: Int64, allowance: Allowance, state: NDArray[np.int8], index: Index
    ) -> None:
        raise IllegalCombination(f"{self.name} cannot read a single record of a batch")

    def decode_at(self, data: Bytes, positions: Int64, on_error: OnError, allowance: Allowance) -> DecodedLog:
        """Decode the entries data[positions[i]:positions[i + 1]]. allowance: the memory that may still be allocated."""
        read = self._read(data, positions, on_error, allowance, "all", check_crcs=True)
        errors = read.damage.errors()
        records, bounds = read.records(), read.sound_bounds if errors else read.bounds
        return DecodedLog(
            records=records,
            bounds=bounds,
            create_timestamps_ms=read.index.created,
            rows=partial(self._rows_with_dictionaries, read, records, bounds),
            tags=read.tags if read.has_tags else None,
            format_name=None if self.is_told_by_magic else self.name,
            dictionaries=allowance.dictionary_codec.dictionaries,
            errors=errors,
        )

    def _rows_with_dictionaries(self, read: Reading, records: Records, bounds: Int64) -> NDArray[np.void]:
        rows = self._rows(read, records, bounds)
        rows["dictionary"] = read.damage.dictionary_numbers(read.sound)
        return rows

    def read_columns(self, data: Bytes, positions: Int64, allowance: Allowance, with_payload: bool) -> Reading:
        """Read the columns that a broker validates, of the entries data[positions[i]:positions[i + 1]].

        Raises CorruptLog.

        with_payload: False decompresses only what the columns need, and checks only what no codec covers.
        """
        read = self._read(data, positions, "raise", allowance, "all" if with_payload else "columns", check_crcs=True)
        read.damage.errors()
        return read

    @abstractmethod
    def _read(
        self, data: Bytes, positions: Int64, on_error: OnError, allowance: Allowance, part: ReadScope, check_crcs: bool
    ) -> Reading:
        """Read these entries, or only the part of them that `part` names.

        Damage is not raised. It is noted in `Reading.damage`.
        """

    def _rows(self, read: Reading, records: Records, bounds: Int64) -> NDArray[np.void]:
        """Return the fields of each undamaged entry as one row (dtype `BATCH`)."""
        return read.rows(records, bounds)

    def plain_bodies(self, records: Records, batch_size: int | ArrayLike) -> list[bytes]:
        """Return the bytes of each batch that a codec compresses. Raises IllegalCombination without dictionaries."""
        if not self.capabilities.dictionaries:
            raise IllegalCombination(f"{self.name} has no codec with a dictionary")
        bounds = plan(len(records), batch_size)
        room = np.empty(self._bound(records.shapes, len(bounds) - 1, NO_FIELDS), np.uint8)
        plain = PlainBatches.room(room, len(bounds) - 1)
        self._encode(records, bounds, NO_FIELDS, 0, plain).is_written()
        starts, ends = plain.bodies.tolist(), plain.positions[1:].tolist()
        return [room[start:end].tobytes() for start, end in zip(starts, ends, strict=True)]

    def compressed_bodies(self, log: EncodedLog) -> list[memoryview]:
        """Return the compressed bytes after the header, for each batch with records. Raises IllegalCombination."""
        raise IllegalCombination(f"{self.name} has no metadata in front of its payload")

    @abstractmethod
    def _bound(self, shapes: Shapes, batches: int, fields: BatchFields) -> int:
        """Return an upper bound of the number of bytes that `_encode` writes."""

    @abstractmethod
    def _encode(
        self, records: Records, bounds: Int64, fields: BatchFields, codec: int, plain: PlainBatches
    ) -> EncodeResult:
        """Write batches with uncompressed bodies, and set `codec` in their headers. Fill all arrays of `plain`."""

    def _compress(
        self, records: Records, bounds: Int64, fields: BatchFields, codec: Codec, level: Level, out: Bytes | None
    ) -> EncodedLog:
        """Write compressed batches. They are compressed chunk by chunk, so that memory stays bounded.

        out: the buffer for the result; None: a new one. Raises InvalidRecords if it is too small.
        """
        pieces, sizes = [], np.empty(len(bounds) - 1, np.int64)
        self._sizes(records, bounds, fields, sizes)
        for lo, hi in chunks(sizes):
            plain, part = PlainBatches.room(np.empty(int(sizes[lo:hi].sum()), np.uint8), hi - lo), bounds[lo : hi + 1]
            is_written = self._encode(records, part, fields.part(lo, hi), codec.id, plain).is_written(first=lo)
            assert is_written, "sizes and encode disagree"
            bodies = zip(plain.bodies.tolist(), plain.positions[1:].tolist(), strict=True)
            payloads = join_payloads(  # an empty body stays empty
                [codec.compress(plain.data[start:end], level) if start < end else b"" for start, end in bodies]
            )
            piece, result = self._assemble(records, part, fields.part(lo, hi), codec.id, plain, payloads)
            result.is_written(first=lo)
            pieces.append(piece)
        if out is not None:
            total = sum(len(piece.data) for piece in pieces)
            check_buffer(out, total)
            out = out[:total]
        data = np.concatenate([np.empty(0, np.uint8), *(piece.data for piece in pieces)], out=out)
        sizes = np.concatenate([sizes[:0], *(np.diff(piece.positions) for piece in pieces)])
        return EncodedLog(data=data, positions=np.append(0, np.cumsum(sizes)))

    def _assemble(
        self,
        records: Records,
        bounds: Int64,
        fields: BatchFields,
        codec: int,
        plain: PlainBatches,
        payloads: Payloads,
    ) -> tuple[EncodedLog, EncodeResult]:
        """Write the headers of `plain`, each followed by its compressed body. Set length and checksum."""
        data = np.empty(int((plain.bodies - plain.positions[:-1]).sum()) + len(payloads.data), np.uint8)
        positions, checksum = np.empty_like(plain.positions), self.checksum
        places = (checksum.position, checksum.covers_from) if checksum else (sealing.NO_CHECKSUM, sealing.NO_CHECKSUM)
        result = EncodeResult(*sealing.assemble(*plain, *payloads, *places, data, positions))
        return EncodedLog(data=data, positions=positions), result

    @abstractmethod
    def _sizes(self, records: Records | Shapes, bounds: Int64, fields: BatchFields, out: Int64) -> None: ...

    @abstractmethod
    def _parts(self, records: Records | Shapes, bounds: Int64, fields: BatchFields) -> dict[str, int]: ...

    def _check_sizeable(self, records: Records | Shapes) -> None:
        """Raise InvalidRecords for Shapes with headers if the format's sizes depend on header bytes."""
        has_headers = shapes_of(records).has_headers
        if has_headers and isinstance(records, Shapes) and not self.capabilities.sizes_from_shapes:
            raise InvalidRecords(f"{self.name}: sizes depend on the bytes of headers: kfbench.Records are wanted")

    def check_codec(self, codec: str, level: Level = None) -> Codec:
        """Return the codec. Raise IllegalCombination if the format does not have it, or it does not have the level."""
        found = codecs.find(codec, level)
        if codec not in self.capabilities.codecs:
            raise IllegalCombination(f"{self.name} has no {codec} (codecs: {', '.join(self.capabilities.codecs)})")
        return found

    def codec_with(self, codec: str, level: Level, dictionary: Dictionary | None) -> Codec:
        """Return the codec that writes with `dictionary`; None: the plain codec. Raises IllegalCombination."""
        found = self.check_codec(codec, level)
        if dictionary is None:
            return found
        if not isinstance(dictionary, Dictionary):
            raise InvalidDictionary(f"dictionary: kfbench.Dictionary is wanted, not {type(dictionary).__name__}")
        if codec != "zstd" or not self.capabilities.dictionaries:
            raise IllegalCombination(f"{self.name} has no {codec} with a dictionary; zstd in v2 and v3 has one")
        return ZstdDictionary.of(dictionary)

    def __repr__(self) -> str:
        return f"<Format {self.name}: {self.summary}>"


def log_bytes(data: Any) -> Bytes:
    """Return the bytes of an EncodedLog or of an object with a buffer. Raises InvalidRecords."""
    return as_bytes("data", data.data if isinstance(data, EncodedLog) else data)


def check_control(records: Records, bounds: Int64, fields: BatchFields) -> None:
    """Raise InvalidRecords for control records that Kafka's readers refuse."""
    if "is_control" not in fields.set_fields:
        return
    i = control.first_broken(records.columns, bounds, fields.rows)
    if i >= 0:
        field, promise = status.PROMISES[status.CONTROL_RECORD]
        raise InvalidRecords(f"record {i} of a control batch: {field}: {promise}")


def check_entries(positions: ArrayLike, data: Bytes) -> Int64:
    """Return the positions as int64.

    Raise InvalidRecords if they are not positions of neighbouring entries in `data`.
    """
    checked: Int64 = integers_of("positions", positions, np.int64, is_kept=False)
    if not frames.are_entries(data, checked):
        raise InvalidRecords(
            "positions: must be those of neighbouring entries, as `Entries.of(data)` returns them "
            "(in v0 and v1 each message is an entry)"
        )
    return checked


def default_fields(batch_fields: BatchFields | None) -> BatchFields:
    """Return `batch_fields`, or the default fields for None. Raise InvalidRecords for another type."""
    if batch_fields is None:
        return NO_FIELDS
    if not isinstance(batch_fields, BatchFields):
        raise InvalidRecords(f"batch_fields: kfbench.BatchFields is wanted, not {type(batch_fields).__name__}")
    return batch_fields


def shapes_of(records: Records | Shapes) -> Shapes:
    """Return the shapes of Records, or Shapes unchanged. Raise InvalidRecords for another type."""
    if not isinstance(records, Records | Shapes):
        raise InvalidRecords(f"records: kfbench.Records or Shapes are wanted, not {type(records).__name__}")
    return records.shapes if isinstance(records, Records) else records
