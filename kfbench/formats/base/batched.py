"""The common part of v2 and v3: batches whose records are written with varints (`DefaultRecordBatch`)."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kfbench import layouts
from kfbench.arrays import Bytes, Int64
from kfbench.batches import FIELD_NAMES, BatchFields, DecodedLog, DecodedTimes, EncodedLog
from kfbench.codecs import CODECS, Allowance, Dictionary
from kfbench.formats.base.appending import Appending, GrowingAppending
from kfbench.formats.base.batch_reading import BatchReading
from kfbench.formats.base.capabilities import Capabilities, Checksum
from kfbench.formats.base.damage import OnError
from kfbench.formats.base.format import log_bytes, shapes_of
from kfbench.formats.base.reading import Index, Part, Reading
from kfbench.formats.base.sealed import Outcome, PlainBatches, SealedFormat
from kfbench.formats.base.short_log import read_short
from kfbench.kernels.formats import batch_header, batch_parts, batch_tags, headers_first, rows
from kfbench.limits import Limits
from kfbench.records import Records, Shapes, unchecked

EVERY_FIELD: Final = FIELD_NAMES - {"tagged_fields"}
APPENDING: Final[Mapping[int, Appending]] = {2: Appending(kind=2), 3: GrowingAppending(kind=3)}  # by magic
NONE_SHARED: Final = np.zeros(1, np.int64)  # number of headers in tag 1: none, for all batches


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


class _Kernels(NamedTuple):
    encode: Any
    sizes: Any


def _kernels_for(features: int) -> _Kernels:
    kernels = headers_first if features & layouts.HEADERS_FIRST_BIT else rows
    tagged = features & layouts.TAGGED_BIT
    if features & layouts.UNSIGNED_BIT:
        return _Kernels(kernels.encode_tagged_unsigned if tagged else kernels.encode_unsigned, kernels.sizes_unsigned)
    return _Kernels(kernels.encode_tagged if tagged else kernels.encode, kernels.sizes)


@dataclass(frozen=True, kw_only=True, repr=False)
class BatchedFormat(SealedFormat):
    """The format v2 or a variant of v3. features: attribute bits of every batch, and `layouts.SHARED_HEADERS`."""

    capabilities: Capabilities = field(init=False)
    checksum: ClassVar[Checksum] = Checksum("CRC-32C", batch_header.CRC, batch_header.ATTRIBUTES)
    has_metadata_reader: ClassVar[bool] = True
    _kernels: "_Kernels" = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "capabilities", _capabilities(self.features))
        object.__setattr__(self, "_kernels", _kernels_for(self.features))

    @property
    def appending(self) -> Appending:
        return APPENDING.get(self.magic) or super().appending

    def _shared(self, records: Records | Shapes, bounds: Int64) -> Int64:
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

    def _encode(self, records: Records, bounds: Int64, fields: BatchFields, codec: int, plain: PlainBatches) -> Outcome:
        shared = self._shared(records, bounds)
        return Outcome(
            *self._kernels.encode(
                records.columns, bounds, fields.rows, fields.tags, shared, self.magic, self.features, codec, *plain
            )
        )

    def _sizes(self, records: Records | Shapes, bounds: Int64, fields: BatchFields, out: Int64) -> None:
        columns, shared = shapes_of(records).columns, self._shared(records, bounds)
        self._kernels.sizes(columns, bounds, fields.rows, shared, self.magic, self.features, out)

    def _parts(self, records: Records | Shapes, bounds: Int64, fields: BatchFields) -> dict[str, int]:
        out = np.zeros(len(batch_parts.PARTS), np.int64)
        columns, shared = shapes_of(records).columns, self._shared(records, bounds)
        batch_parts.breakdown(columns, bounds, fields.rows, shared, self.magic, self.features, out)
        parts = dict(zip(batch_parts.PARTS, out.tolist(), strict=True))
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
        if short is None:
            return super().decode(data, on_error, limits, dictionaries)
        attributes = {
            "records": short.records,
            "bounds": short.bounds,
            "create_timestamps_ms": short.records.shapes.timestamps_ms,
            "rows": partial(short.rows, data, self.magic),
            "tags": None,
            "format_name": None,
            "dictionaries": {},
            "errors": [],
            "trailing_bytes": 0,
        }
        log: DecodedLog = unchecked(DecodedLog, attributes)
        return log

    def _read(
        self, data: Bytes, positions: Int64, on_error: OnError, allowance: Allowance, part: Part, check_crcs: bool
    ) -> Reading:
        read = BatchReading(data, positions, self.magic, on_error, allowance, check_crcs)
        read.decompress(metadata_only=part != "all")
        read.read_columns()
        return read

    def compressed_starts(self, data: Bytes, positions: Int64, allowance: Allowance) -> Int64:
        read = BatchReading(data, positions, self.magic, "raise", allowance, check_crcs=False)
        read.damage.errors()
        return read.starts

    def compressed_bodies(self, log: EncodedLog) -> list[memoryview]:
        allowance = Allowance.of(len(log.data), None)
        read, view = BatchReading(log.data, log.positions, self.magic, "raise", allowance), log.data.data
        return [view[start:end] for start, end in zip(read.starts, read.ends, strict=True) if start < end]

    def _fetch(
        self, data: Bytes, positions: Int64, indices: Int64, allowance: Allowance, state: NDArray[np.int8], index: Index
    ) -> None:
        if self.features & ~(layouts.NO_RECORD_ATTRIBUTES_BIT | layouts.FIXED_HEADER_BIT):
            super()._fetch(data, positions, indices, allowance, state, index)
        rows.fetch(data, positions, self.magic, indices, state, index.columns)

    def _read_times(self, data: Bytes, positions: Int64, allowance: Allowance) -> DecodedTimes:
        read = BatchReading(data, positions, self.magic, "raise", allowance, check_crcs=False)
        read.decompress(metadata_only=True)
        times = read.read_times()
        read.damage.errors()
        return times
