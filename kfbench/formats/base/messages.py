"""What v0, v1 and enriched share: plain messages, and wrapper messages around a compressed set (`LegacyRecord`)."""

from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from kfbench import layouts
from kfbench.arrays import Bytes, Int64
from kfbench.batches import BATCH, BatchFields, DecodedLog
from kfbench.codecs import LEGACY_LZ4, Allowance, Codec, codec_of
from kfbench.errors import InvalidRecords
from kfbench.formats.base.damage import Damage, OnError
from kfbench.formats.base.format import Capabilities, Checksum, Format, chunks, compressed, gathered, shapes_of
from kfbench.formats.base.index import NO_HEADERS, Index
from kfbench.kernels.formats import legacy
from kfbench.kernels.wire import status
from kfbench.records import Records, Shapes


@dataclass(frozen=True, kw_only=True, repr=False)
class MessageFormat(Format):
    """v0 or v1, and the ground for others: `_kernels` has kernels of the same names, told apart by `_variant`."""

    name: str
    magic: int
    summary: str
    capabilities: Capabilities
    checksum: ClassVar[Checksum] = Checksum(
        "CRC-32", layouts.position(layouts.V0_MESSAGE, "crc"), layouts.position(layouts.V0_MESSAGE, "magic")
    )
    _kernels: ClassVar[Any] = legacy

    @property
    def _variant(self) -> int:
        return self.magic

    @property
    def _fixed_bytes(self) -> int:
        """What a message takes beside key and value."""
        return layouts.LEGACY_FIXED_BYTES[self.magic]

    @property
    def _wrapper_bytes(self) -> int:
        """What a wrapper takes beside its value."""
        return self._fixed_bytes

    @property
    def _part_bytes(self) -> dict[str, int]:
        """`_fixed_bytes` by field; key and value are 0."""
        parts = dict(zip(legacy.PARTS, legacy.PART_BYTES, strict=True))
        return parts | {"timestamp": parts["timestamp"] * self.magic}

    def _bound(self, shapes: Shapes, batches: int, fields: BatchFields) -> int:  # noqa: ARG002
        return len(shapes) * self._fixed_bytes + shapes.key_bytes + shapes.value_bytes

    def _write(self, records: Records, bounds: Int64, fields: BatchFields, out: Bytes, positions: Int64) -> bool:
        problem, batch = self._kernels.encode(
            records.columns, bounds, fields.rows, self._variant, False, out, positions
        )
        _refuse(problem, batch)
        return bool(problem != legacy.OUT_TOO_SMALL)

    def _compressed(
        self,
        records: Records,
        bounds: Int64,
        fields: BatchFields,
        codec: Codec,
        level: int | None,
        out: Bytes | None,
    ) -> tuple[Bytes, Int64]:
        codec = self._codec_of(codec.id)
        pieces, sizes = [], np.empty(len(bounds) - 1, np.int64)
        self._sizes(records, bounds, fields, sizes)
        for lo, hi in chunks(sizes):
            part, part_rows = bounds[lo : hi + 1], fields.part(lo, hi).rows
            positions, plain = np.empty(hi - lo + 1, np.int64), np.empty(int(sizes[lo:hi].sum()), np.uint8)
            problem, batch = self._kernels.encode(
                records.columns, part, part_rows, self._variant, True, plain, positions
            )
            _refuse(problem, lo + batch)
            assert problem != legacy.OUT_TOO_SMALL, "sizes and encode disagree"
            payload, payload_bounds = compressed(codec, level, plain, positions[:-1], positions[1:])
            data = np.empty((hi - lo) * self._wrapper_bytes + len(payload), np.uint8)
            problem, batch = self._kernels.wrap(
                records.columns, part, part_rows, self._variant, codec.id, payload, payload_bounds, data, positions
            )
            _refuse(problem, lo + batch)
            pieces.append((data[: positions[-1]], positions))
        return gathered(pieces, out)

    def _codec_of(self, number: int) -> Codec:
        return LEGACY_LZ4 if self.magic == 0 and number == LEGACY_LZ4.id else codec_of(number)

    def _sizes(self, records: Records | Shapes, bounds: Int64, fields: BatchFields, out: Int64) -> None:
        self._kernels.sizes(shapes_of(records).columns, bounds, fields.rows, self._variant, out)

    def _parts(self, records: Records | Shapes, bounds: Int64, fields: BatchFields) -> dict[str, int]:
        shapes, rows = shapes_of(records), fields.rows
        written = np.ones(len(bounds) - 1, np.bool_)
        if "is_control" not in self.capabilities.batch_fields:
            written &= ~rows["is_control"]
        held = np.repeat(written, np.diff(bounds))
        messages = int(held.sum())
        parts = {name: messages * size for name, size in self._part_bytes.items()}
        for name, lengths in (("key", shapes.key_lengths), ("value", shapes.value_lengths)):
            parts[name] = int(np.maximum(lengths[held], 0).sum(dtype=np.int64))
        return parts

    def decode_at(self, data: Bytes, positions: Int64, on_error: OnError, allowance: Allowance) -> DecodedLog:
        read = MessageReading(self, data, positions, on_error, allowance)
        errors = read.damage.errors()
        records, bounds, state = read.records(), read.bounds, read.damage.state
        if errors:
            bounds = np.append(bounds[:-1][state == status.SOUND], bounds[-1])
        return DecodedLog(
            records=records,
            bounds=bounds,
            create_timestamps_ms=read.index.created,
            format_name=self.name if self._kernels is not legacy else None,
            rows=partial(
                self._rows, data, positions, read.source, bounds, read.index.offsets, read.starts, read.ends, state
            ),
            errors=errors,
        )

    def _rows(
        self,
        data: Bytes,
        positions: Int64,
        source: Bytes,
        bounds: Int64,
        offsets: Int64,
        starts: Int64,
        ends: Int64,
        state: NDArray[np.int8],
    ) -> NDArray[np.void]:
        sound = np.flatnonzero(state == status.SOUND)
        rows = np.zeros(len(sound), BATCH)
        self._kernels.describe(data, positions, self._variant, source, starts, ends, sound, bounds, offsets, rows)
        rows["records_size_bytes"] = (ends - starts)[sound]
        return rows


class MessageReading:
    """Messages and compressed sets of one format on their way to columns.

    source[starts[b]:ends[b]] is what entry b holds: itself, or its plain set. bounds int64[entries + 1]: its records.
    """

    def __init__(
        self, fmt: MessageFormat, data: Bytes, positions: Int64, on_error: OnError, allowance: Allowance
    ) -> None:
        kernels, entries = fmt._kernels, len(positions) - 1
        self.damage = Damage(positions, on_error)
        state = self.damage.state
        codecs, bodies, stops = np.empty(entries, np.int8), np.empty(entries, np.int64), np.empty(entries, np.int64)
        self.source, self.starts, self.ends = data, positions[:-1], positions[1:]
        self.any_codec = kernels.survey(data, positions, fmt._variant, codecs, bodies, stops, state)
        if self.any_codec:
            plain = self.damage.plain(data, bodies, stops, codecs, fmt._codec_of, allowance)
            self.source, self.starts, self.ends = plain
        counts = np.empty(entries, np.int64)
        limits = allowance.limits.batch_records, allowance.limits.field_bytes
        kernels.count(self.source, self.starts, self.ends, codecs, limits, state, counts)
        self.index = Index(int(counts.sum()), two_clocks=self.any_codec)
        self.bounds = np.empty(entries + 1, np.int64)
        kernels.index(
            data, positions, self.source, self.starts, codecs, counts, state, *self.index.columns, self.bounds
        )
        self.index.cut(int(self.bounds[-1]))

    def records(self) -> Records:
        """Those of the sound entries; times are a consumer's."""
        return self.index.records(self.source, np.zeros(self.bounds[-1] + 1, np.int64), NO_HEADERS)


def _refuse(problem: int, batch: int) -> None:
    if problem == legacy.MESSAGE_TOO_LARGE:
        raise InvalidRecords(f"batch {batch} holds a message larger than its int32 size can say")
