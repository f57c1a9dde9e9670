"""The common part of v2 and v3: batches whose records are written with varints (`DefaultRecordBatch`)."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kfbench import layouts
from kfbench.arrays import Bytes, Int64, read_only
from kfbench.batches import BATCH, FIELD_NAMES, BatchFields, DecodedLog, DecodedTimes, EncodedLog
from kfbench.codecs import CODECS, Allowance, Dictionary
from kfbench.formats.base.appending import Appending, GrowingAppending
from kfbench.formats.base.capabilities import Capabilities, Checksum
from kfbench.formats.base.damage import BatchDamage, Bodies, OnError
from kfbench.formats.base.format import EncodeResult, Format, PlainBatches, log_bytes, shapes_of
from kfbench.formats.base.reading import NO_HEADERS, HeaderSpans, Index, Reading, ReadScope, header_room
from kfbench.formats.base.short_log import read_short
from kfbench.kernels.formats import batch_description, batch_header, batch_reading, batch_tags, batch_writing
from kfbench.kernels.wire import status
from kfbench.limits import Limits
from kfbench.records import Records, Shapes
from kfbench.varints import NO_TAGGED_FIELDS, decode_tagged_fields

EVERY_FIELD: Final = FIELD_NAMES - {"tagged_fields"}
APPENDING: Final[Mapping[int, Appending]] = {2: Appending(kind=2), 3: GrowingAppending(kind=3)}  # by magic
NONE_SHARED: Final = np.zeros(1, np.int64)  # number of headers in tag 1: none, for all batches


class SharedHeaders(NamedTuple):
    """The bytes of tag 1 (headers that all records of a batch share) of each batch: source[starts[b]:stops[b]].

    starts, stops: int64[batches]. Both are equal if the batch has no tag 1.
    """

    starts: Int64
    stops: Int64


NO_SHARED_BYTES: Final = SharedHeaders(np.empty(0, np.int64), np.empty(0, np.int64))


class BatchReading(Reading):
    """Reader of batches of magic 2 or 3. Call `decompress`, then `read_columns` or `read_times`."""

    def __init__(
        self,
        data: Bytes,
        positions: Int64,
        magic: int,
        on_error: OnError,
        allowance: Allowance,
        check_crcs: bool = True,
    ) -> None:
        if positions.flags.writeable:  # an encoder made them; kernels that read are compiled for read-only arrays
            positions = read_only(positions)
        self.data, self.positions, self.magic, self.allowance = data, positions, magic, allowance
        self.check_crcs = check_crcs
        self.damage = BatchDamage(positions, on_error)
        batches = len(positions) - 1
        self.codecs, self.counts = np.empty(batches, np.int8), np.empty(batches, np.int64)
        bodies = np.empty(batches, np.int64)
        self.shared = NO_SHARED_BYTES
        if magic == 3:
            self.shared = SharedHeaders(np.empty(batches, np.int64), np.empty(batches, np.int64))
        # is_featured: any batch is unsigned, headers first or tagged. Other kernels read such batches.
        self.record_room, self.any_codec, self.two_clocks, self.is_featured = batch_reading.survey(
            data, positions, magic, allowance.limits.batch_records, allowance.limits.field_bytes, check_crcs,
            self.codecs, self.counts, bodies, *self.shared, self.damage.state,
        )  # fmt: skip
        self.source, self.starts, self.ends = data, bodies, positions[1:]
        self.payload_ends = self.ends
        self.made_bytes: int | None = None  # decompressed bytes if only metadata was decompressed
        self.any_shared = bool(self.is_featured and np.any(self.shared.starts != self.shared.stops))

    def decompress(self, metadata_only: bool = False) -> None:
        """Decompress the bodies (the bytes after each header).

        metadata_only: True decompresses only the metadata of batches that store it before the payload (headers first).
        """
        if not self.any_codec:
            return
        stops = np.where(self.damage.state == status.SOUND, self.ends, self.starts)
        appendix = self.data if self.any_shared else None  # tag 1 lies outside the codec
        bodies = Bodies(self.data, self.starts, stops, self.codecs)
        if metadata_only:
            self.source, self.starts, self.ends, self.payload_ends, self.made_bytes = self.damage.metadata(
                bodies, self.allowance, self._headers_first, appendix
            )
        else:
            self.source, self.starts, self.ends = self.damage.plain(bodies, self.allowance, appendix)
            self.payload_ends = self.ends
        too_many = self.counts > (self.ends - self.starts) // layouts.MIN_RECORD_BYTES
        self.damage.state[(self.damage.state == status.SOUND) & too_many] = status.COUNT
        self.record_room = int(self.counts[self.damage.state == status.SOUND].sum())
        if self.any_shared:
            moved = len(self.source) - len(self.data)
            self.shared = SharedHeaders(self.shared.starts + moved, self.shared.stops + moved)

    @cached_property
    def _headers_first(self) -> NDArray[np.bool_]:
        if self.magic != 3:
            return np.zeros(len(self.codecs), np.bool_)
        attributes = self.data[self.positions[:-1] + batch_header.ATTRIBUTES].astype(np.int64) << 8
        is_first: NDArray[np.bool_] = (self.damage.state == status.SOUND) & (
            attributes & layouts.HEADERS_FIRST_BIT != 0
        )
        return is_first

    def read_columns(self) -> None:
        """Fill `index`, `header_bounds` and `bounds`. The headers of records are read later, by `records`."""
        index = Index(self.record_room, two_clocks=self.two_clocks)
        header_bounds, bounds = np.empty(self.record_room + 1, np.int64), np.empty(len(self.positions), np.int64)
        limits = self.allowance.limits
        self.allowance.log_headers = (batch_reading.index_featured if self.is_featured else batch_reading.index)(
            self.data, self.positions, self.magic, self.counts, self.source, self.starts, self.ends, self.payload_ends,
            *self.shared,
            (limits.batch_headers, limits.field_bytes, self.allowance.log_headers), self.check_crcs,
            self.damage.state, index.columns, header_bounds, bounds,
        )  # fmt: skip
        n = int(bounds[-1])
        index.cut(n)
        self.index, self.header_bounds, self.bounds = index, header_bounds[: n + 1], bounds

    def read_times(self) -> DecodedTimes:
        """Read timestamps and offsets, and set `bounds`.

        Nothing else is read, except in unsigned, headers-first or tagged v3.
        """
        if self.is_featured:  # with headers first, records have no length to skip; the other features are rare
            self.read_columns()
            return DecodedTimes(self.index.timestamps, self.index.offsets, self.bounds)
        timestamps, offsets = np.empty(self.record_room, np.int64), np.empty(self.record_room, np.int64)
        self.bounds = np.empty(len(self.positions), np.int64)
        batch_reading.times(
            self.data, self.positions, self.magic, self.counts, self.source, self.starts, self.ends, self.damage.state,
            timestamps, offsets, self.bounds,
        )  # fmt: skip
        return DecodedTimes(timestamps, offsets, self.bounds)

    def records(self) -> Records:
        return self.index.records(self.source, self.header_bounds, self._headers())

    def _headers(self) -> HeaderSpans:
        headers = int(self.header_bounds[-1])
        if not headers:
            return NO_HEADERS
        room = header_room(headers)
        (batch_reading.index_headers_featured if self.is_featured else batch_reading.index_headers)(
            self.data, self.positions, self.magic, self.source, self.starts, self.ends, *self.shared,
            self.damage.state, self.index.columns, self.header_bounds, self.bounds, tuple(room),
        )  # fmt: skip
        return room

    def rows(self, records: Records, bounds: Int64) -> NDArray[np.void]:
        sound = self.sound
        rows = np.zeros(len(sound), BATCH)
        (batch_description.describe_featured if self.is_featured else batch_description.describe)(
            self.data, self.positions, self.magic, self.counts, self.source, self.starts, self.ends, *self.shared,
            sound, rows,
        )  # fmt: skip
        if self.any_shared:  # our encoder shares as many headers as it can
            shared = np.empty(len(sound), np.int64)
            batch_tags.count_shared(records.columns, bounds, shared)
            rows["canonical"] &= (rows["shared_headers"] == 0) | (rows["shared_headers"] == shared)
        return rows

    def tags(self) -> Sequence[Mapping[int, bytes]]:
        sound = self.sound
        starts, sizes = np.empty(len(sound), np.int64), np.empty(len(sound), np.int64)
        batch_reading.other_tags(self.data, self.positions, sound, starts, sizes)
        return [
            decode_tagged_fields(self.data[start : start + size].tobytes()) if size else NO_TAGGED_FIELDS
            for start, size in zip(starts.tolist(), sizes.tolist(), strict=True)
        ]

    @property
    def has_tags(self) -> bool:
        return bool(self.is_featured)

    @property
    def is_metadata(self) -> bool:
        return self.made_bytes is not None and bool(np.any(self.payload_ends > self.ends))

    @property
    def plain_bytes(self) -> int:
        return int((self.ends - self.starts).sum()) if self.made_bytes is None else self.made_bytes


def _capabilities(features: int) -> Capabilities:
    """Return the capabilities of a format with these attribute bits. Tagged fields of callers need TAGGED_BIT."""
    return Capabilities(
        timestamps=True,
        headers=True,
        empty_batches=True,
        batch_fields=FIELD_NAMES if features & layouts.TAGGED_BIT else EVERY_FIELD,
        codecs=tuple(CODECS),
        dictionaries=True,
        sizes_from_shapes=not features & layouts.SHARED_HEADERS,
    )


@dataclass(frozen=True, kw_only=True, repr=False)
class BatchedFormat(Format):
    """The format v2 or a variant of v3. features: attribute bits of every batch, and `layouts.SHARED_HEADERS`."""

    capabilities: Capabilities = field(init=False)
    checksum: ClassVar[Checksum] = Checksum("CRC-32C", batch_header.CRC, batch_header.ATTRIBUTES)
    has_metadata_reader: ClassVar[bool] = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "capabilities", _capabilities(self.features))

    @property
    def appending(self) -> Appending:
        return APPENDING.get(self.magic) or super().appending

    @property
    def _kernels(self) -> batch_writing.WritingKernels:
        found: batch_writing.WritingKernels = batch_writing.KERNELS[self.features & batch_writing.LAYOUT_BITS]
        return found

    def _shared_headers(self, records: Records | Shapes, bounds: Int64) -> Int64:
        """Return the number of headers that go into tag 1 of each batch: int64[batches], or int64[1] for all."""
        if self.capabilities.sizes_from_shapes or not shapes_of(records).has_headers:
            return NONE_SHARED
        shared = np.empty(len(bounds) - 1, np.int64)
        batch_tags.count_shared(records.columns, bounds, shared)
        return shared if len(shared) else NONE_SHARED

    def _bound(self, shapes: Shapes, batches: int, fields: BatchFields) -> int:
        tags_bytes = int(fields.rows["tags_bytes"].sum()) if len(fields.tags) else 0
        return (
            tags_bytes * (batches if len(fields.rows) == 1 else 1)
            + batches * layouts.MAX_BATCH_OVERHEAD
            + len(shapes) * layouts.MAX_RECORD_OVERHEAD
            + shapes.header_count * layouts.MAX_HEADER_OVERHEAD
            + shapes.payload_bytes
        )

    def _encode(
        self, records: Records, bounds: Int64, fields: BatchFields, codec: int, plain: PlainBatches
    ) -> EncodeResult:
        shared = self._shared_headers(records, bounds)
        return EncodeResult(
            *self._kernels.encode(
                records.columns, bounds, fields.rows, fields.tags, shared, self.magic, self.features, codec, *plain
            )
        )

    def _sizes(self, records: Records | Shapes, bounds: Int64, fields: BatchFields, out: Int64) -> None:
        columns, shared = shapes_of(records).columns, self._shared_headers(records, bounds)
        self._kernels.sizes(columns, bounds, fields.rows, shared, self.magic, self.features, out)

    def _parts(self, records: Records | Shapes, bounds: Int64, fields: BatchFields) -> dict[str, int]:
        out = np.zeros(len(batch_writing.PARTS), np.int64)
        columns, shared = shapes_of(records).columns, self._shared_headers(records, bounds)
        batch_writing.breakdown(columns, bounds, fields.rows, shared, self.magic, self.features, out)
        parts = dict(zip(batch_writing.PARTS, out.tolist(), strict=True))
        for name, bit in (
            ("batch_header.tagged_fields", layouts.TAGGED_BIT),
            ("metadata_length", layouts.HEADERS_FIRST_BIT),
        ):
            if not self.features & bit:
                del parts[name]
        return parts

    def decode(
        self,
        data: Any,
        on_error: OnError = "raise",
        limits: Limits | None = None,
        dictionaries: Iterable[Dictionary] = (),
    ) -> DecodedLog:
        data = log_bytes(data)
        is_default = limits is None and on_error == "raise" and isinstance(dictionaries, tuple) and not dictionaries
        short = read_short(data, self.magic) if is_default else None
        return super().decode(data, on_error, limits, dictionaries) if short is None else short

    def _read(
        self, data: Bytes, positions: Int64, on_error: OnError, allowance: Allowance, part: ReadScope, check_crcs: bool
    ) -> Reading:
        read = BatchReading(data, positions, self.magic, on_error, allowance, check_crcs)
        read.decompress(metadata_only=part != "all")
        read.read_columns()
        return read

    def compressed_bodies(self, log: EncodedLog) -> list[memoryview]:
        allowance = Allowance.of(len(log.data), None)
        read, view = BatchReading(log.data, log.positions, self.magic, "raise", allowance), log.data.data
        return [view[start:end] for start, end in zip(read.starts, read.ends, strict=True) if start < end]

    def _fetch(
        self, data: Bytes, positions: Int64, indices: Int64, allowance: Allowance, state: NDArray[np.int8], index: Index
    ) -> None:
        if self.features & ~(layouts.NO_RECORD_ATTRIBUTES_BIT | layouts.FIXED_HEADER_BIT):
            super()._fetch(data, positions, indices, allowance, state, index)
        batch_reading.fetch(data, positions, self.magic, indices, state, index.columns)

    def _read_times(self, data: Bytes, positions: Int64, allowance: Allowance) -> DecodedTimes:
        read = BatchReading(data, positions, self.magic, "raise", allowance, check_crcs=False)
        read.decompress(metadata_only=True)
        times = read.read_times()
        read.damage.errors()
        return times
