"""What v2 and v3 share: batches with a header of their own and records of varints (`DefaultRecordBatch`)."""

from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kfbench import layouts
from kfbench.arrays import Bytes, Int64, as_bytes
from kfbench.batches import FIELD_NAMES, BatchFields, DecodedLog, DecodedMetadata, DecodedTimes, EncodedLog
from kfbench.codecs import CODECS, Allowance
from kfbench.formats.base.batch_reading import Reading
from kfbench.formats.base.damage import OnError
from kfbench.formats.base.entries import Entries
from kfbench.formats.base.format import Capabilities, Checksum, shapes_of
from kfbench.formats.base.index import Index, header_counts
from kfbench.formats.base.sealed import SealedFormat, written
from kfbench.kernels.formats import batch_header, headers_first, rows, shared_headers
from kfbench.limits import Limits
from kfbench.records import Records, Shapes

EVERY_FIELD: Final = FIELD_NAMES - {"tagged_fields"}
ONE_SHARED: Final = np.zeros(1, np.int64)  # no batch shares headers in tag 1


def carried(features: int) -> Capabilities:
    """What a batch with these features carries: all but a caller's tagged fields, where there are none."""
    return Capabilities(
        timestamps=True,
        headers=True,
        empty_batches=True,
        batch_fields=FIELD_NAMES if features & layouts.TAGGED_BIT else EVERY_FIELD,
        codecs=tuple(CODECS),
        sizes_from_shapes=not features & layouts.SHARED_HEADERS,
    )


class _Kernels(NamedTuple):
    encode: Any
    sizes: Any
    breakdown: Any


def _kernels_for(features: int) -> _Kernels:
    if features & layouts.HEADERS_FIRST_BIT:
        return _Kernels(headers_first.encode, headers_first.sizes, headers_first.breakdown)
    tagged = features & layouts.TAGGED_BIT
    if features & layouts.UNSIGNED_BIT:
        encode = rows.encode_tagged_unsigned if tagged else rows.encode_unsigned
        return _Kernels(encode, rows.sizes_unsigned, rows.breakdown)
    return _Kernels(rows.encode_tagged if tagged else rows.encode, rows.sizes, rows.breakdown)


@dataclass(frozen=True, kw_only=True, repr=False)
class BatchedFormat(SealedFormat):
    """v2, or v3 with its features: attribute bits that are set in every batch, and `layouts.SHARED_HEADERS`."""

    name: str
    magic: int
    summary: str
    features: int = 0
    capabilities: Capabilities = field(init=False)
    checksum: ClassVar[Checksum] = Checksum("CRC-32C", batch_header.CRC, batch_header.ATTRIBUTES)
    _kernels: "_Kernels" = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "capabilities", carried(self.features))
        object.__setattr__(self, "_kernels", _kernels_for(self.features))

    def _shared(self, records: Records | Shapes, bounds: Int64) -> Int64:
        """How many headers of each batch go into tag 1: int64[batches], or one item for all."""
        if self.capabilities.sizes_from_shapes or not shapes_of(records).has_headers:
            return ONE_SHARED
        shared = np.empty(len(bounds) - 1, np.int64)
        shared_headers.count(records.columns, bounds, shared)
        return shared if len(shared) else ONE_SHARED

    def _bound(self, shapes: Shapes, batches: int, fields: BatchFields) -> int:
        own_tags = 0
        if len(fields.tags):
            own_tags = int(fields.rows["tags_bytes"].sum()) * (batches if len(fields.rows) == 1 else 1)
        return (
            own_tags
            + batches * layouts.MAX_BATCH_OVERHEAD
            + len(shapes) * layouts.MAX_RECORD_OVERHEAD
            + shapes.header_count * layouts.MAX_HEADER_OVERHEAD
            + shapes.payload_bytes
        )

    def _encode(
        self,
        records: Records,
        bounds: Int64,
        fields: BatchFields,
        codec: int,
        out: Bytes,
        positions: Int64,
        first: int = 0,
    ) -> tuple[bool, Int64]:
        bodies = np.empty(len(bounds) - 1, np.int64)
        problem, batch = self._kernels.encode(
            records.columns, bounds, fields.rows, fields.tags, self._shared(records, bounds),
            self.magic, self.features, codec, out, positions, bodies,
        )  # fmt: skip
        return written(problem, first + batch), bodies

    def _sizes(self, records: Records | Shapes, bounds: Int64, fields: BatchFields, out: Int64) -> None:
        columns, shared = shapes_of(records).columns, self._shared(records, bounds)
        self._kernels.sizes(columns, bounds, fields.rows, shared, self.magic, self.features, out)

    def _parts(self, records: Records | Shapes, bounds: Int64, fields: BatchFields) -> dict[str, int]:
        out = np.zeros(len(batch_header.PARTS), np.int64)
        columns, shared = shapes_of(records).columns, self._shared(records, bounds)
        self._kernels.breakdown(columns, bounds, fields.rows, shared, self.magic, self.features, out)
        parts = dict(zip(batch_header.PARTS, out.tolist(), strict=True))
        for name, bit in (
            ("batch_header.tagged_fields", layouts.TAGGED_BIT),
            ("metadata_length", layouts.HEADERS_FIRST_BIT),
        ):
            if not self.features & bit:
                del parts[name]
        return parts

    def decode_at(self, data: Bytes, positions: Int64, on_error: OnError, allowance: Allowance) -> DecodedLog:
        read = Reading(data, positions, self.magic, on_error, allowance)
        read.decompress()
        index, header_bounds, bounds = read.index()
        errors = read.damage.errors()
        records = index.records(read.source, header_bounds, read.headers(index, header_bounds, bounds))
        if errors:
            bounds = read.sound_bounds(bounds)
        return DecodedLog(
            records=records,
            bounds=bounds,
            create_timestamps_ms=index.created,
            rows=partial(read.rows, records, bounds),
            tags=read.tags if read.featured else None,
            errors=errors,
        )

    def _fetch(
        self,
        data: Bytes,
        positions: Int64,
        indices: Int64,
        allowance: Allowance,
        state: NDArray[np.int8],
        index: Index,
    ) -> None:
        if self.features & ~(layouts.NO_RECORD_ATTRIBUTES_BIT | layouts.FIXED_HEADER_BIT):
            super()._fetch(data, positions, indices, allowance, state, index)
        rows.fetch(data, positions, self.magic, indices, state, index.columns)

    def _read_times(self, data: Bytes, positions: Int64, allowance: Allowance) -> DecodedTimes:
        read = Reading(data, positions, self.magic, "raise", allowance, check_crcs=False)
        read.decompress(metadata_only=True)
        timestamps, offsets, bounds = read.times()
        read.damage.errors()
        return DecodedTimes(timestamps, offsets, bounds)

    def decode_metadata(
        self, data: Any, on_error: OnError = "raise", limits: Limits | None = None, check_crcs: bool = True
    ) -> DecodedMetadata:
        data = as_bytes("data", data.data if isinstance(data, EncodedLog) else data)
        entries = Entries.of(data)
        read = Reading(data, entries.positions, self.magic, on_error, Allowance.of(len(data), limits), check_crcs)
        read.decompress(metadata_only=True)
        index, header_bounds, bounds = read.index()
        errors = read.damage.errors()
        if errors:
            bounds = read.sound_bounds(bounds)
        return DecodedMetadata(
            timestamps_ms=index.timestamps,
            offsets=index.offsets,
            key_lengths=index.key_lengths,
            value_lengths=index.value_lengths,
            header_counts=header_counts(header_bounds),
            bounds=bounds,
            plain_bytes=int((read.ends - read.starts).sum()) if read.plain_bytes is None else read.plain_bytes,
            errors=[*errors, *entries.errors(on_error)],
            trailing_bytes=entries.trailing_bytes,
        )
