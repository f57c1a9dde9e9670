"""The common part of v0, v1 and enriched (`LegacyRecord`): messages, and wrappers.

A wrapper is an outer message around a compressed set of messages.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from kfbench import layouts
from kfbench.arrays import Bytes, Int64
from kfbench.batches import BATCH, BatchFields, EncodedLog
from kfbench.codecs import LEGACY_LZ4, Allowance, Codec, Dictionary, Level, Payloads, codec_of
from kfbench.formats.base.appending import Appending, MessageAppending
from kfbench.formats.base.capabilities import Checksum, Origin
from kfbench.formats.base.damage import BatchDamage, Bodies, OnError, PlainBodies
from kfbench.formats.base.format import EncodeResult, Format, PlainBatches, shapes_of
from kfbench.formats.base.reading import Index, Reading, ReadScope
from kfbench.kernels.formats import legacy
from kfbench.kernels.formats.messages import LEGACY, MessageKernels
from kfbench.records import Records, Shapes


class MessageReading(Reading):
    """Reader of messages and compressed sets of one format. The constructor reads everything.

    kernels: the kernels that read this format. variant: the number that selects the format in these kernels.
    """

    def __init__(
        self,
        kernels: MessageKernels,
        variant: int,
        find_codec: Callable[[int], Codec],
        data: Bytes,
        positions: Int64,
        on_error: OnError,
        allowance: Allowance,
    ) -> None:
        entries = len(positions) - 1
        self.data, self.positions, self.kernels, self.variant = data, positions, kernels, variant
        self.damage = BatchDamage(positions, on_error)
        state = self.damage.state
        codecs, bodies, stops = np.empty(entries, np.int8), np.empty(entries, np.int64), np.empty(entries, np.int64)
        self.source, self.starts, self.ends = data, positions[:-1], positions[1:]
        any_codec = kernels.survey(data, positions, variant, codecs, bodies, stops, state)
        if any_codec:
            compressed = Bodies(data, bodies, stops, codecs, find_codec)
            self.source, self.starts, self.ends = self.damage.plain(compressed, allowance)
        counts = np.empty(entries, np.int64)
        limits = allowance.limits.batch_records, allowance.limits.field_bytes
        kernels.count(self.source, self.starts, self.ends, codecs, limits, state, counts)
        self.index = Index(int(counts.sum()), two_clocks=any_codec)
        self.bounds = np.empty(entries + 1, np.int64)
        kernels.index(data, positions, self.source, self.starts, codecs, counts, state, self.index.columns, self.bounds)
        records = int(self.bounds[-1])
        self.index.cut(records)
        self.header_bounds = np.zeros(records + 1, np.int64)

    def rows(self, records: Records, bounds: Int64) -> NDArray[np.void]:
        sound = self.sound
        rows = np.zeros(len(sound), BATCH)
        self.kernels.describe(
            self.data, self.positions, self.variant, self.source, self.starts, self.ends, sound, bounds,
            records.offsets, rows,
        )  # fmt: skip
        rows["records_size_bytes"] = (self.ends - self.starts)[sound]
        return rows

    @property
    def plain_sets(self) -> PlainBodies:
        return PlainBodies(self.source, self.starts, self.ends)


@dataclass(frozen=True, kw_only=True, repr=False)
class MessageFormat(Format):
    """The format v0 or v1, and the base class of `EnrichedFormat`.

    _variant: the number of the format in its kernels.
    """

    origin: Origin = "shipped"
    holds_messages: ClassVar[bool] = True
    checksum: ClassVar[Checksum] = Checksum(
        "CRC-32", layouts.position(layouts.V0_MESSAGE, "crc"), layouts.position(layouts.V0_MESSAGE, "magic")
    )
    _kernels: ClassVar[MessageKernels] = LEGACY

    @property
    def appending(self) -> Appending:
        return MessageAppending(kind=self.magic, has_absolute_offsets=self.magic == 0)

    @property
    def _variant(self) -> int:
        return self.magic

    @property
    def _fixed_bytes(self) -> int:
        """The number of bytes of a message without key and value."""
        return layouts.LEGACY_FIXED_BYTES[self.magic]

    @property
    def _wrapper_bytes(self) -> int:
        """The number of bytes of a wrapper without its value, which is the compressed set."""
        return self._fixed_bytes

    @property
    def _part_bytes(self) -> dict[str, int]:
        """The number of bytes of each field of a message; 0 for key and value, whose sizes vary."""
        parts = dict(zip(legacy.PARTS, legacy.PART_BYTES, strict=True))
        return parts | {"timestamp": parts["timestamp"] * self.magic}

    def _bound(self, shapes: Shapes, batches: int, fields: BatchFields) -> int:
        return len(shapes) * self._fixed_bytes + shapes.key_bytes + shapes.value_bytes

    def _encode(
        self, records: Records, bounds: Int64, fields: BatchFields, codec: int, plain: PlainBatches
    ) -> EncodeResult:
        """Write messages. With a codec, write those that go inside a wrapper."""
        given = records.columns, bounds, fields.rows, self._variant
        result = EncodeResult(*self._kernels.encode(*given, codec != 0, plain.data, plain.positions))
        plain.bodies[:] = plain.positions[:-1]
        return result

    def _assemble(
        self,
        records: Records,
        bounds: Int64,
        fields: BatchFields,
        codec: int,
        plain: PlainBatches,
        payloads: Payloads,
    ) -> tuple[EncodedLog, EncodeResult]:
        """Write a wrapper around each compressed set."""
        given = records.columns, bounds, fields.rows, self._variant
        data = np.empty((len(bounds) - 1) * self._wrapper_bytes + len(payloads.data), np.uint8)
        positions = np.empty_like(plain.positions)
        result = EncodeResult(*self._kernels.wrap(*given, codec, *payloads, data, positions))
        return EncodedLog(data=data[: positions[-1]], positions=positions), result

    def codec_with(self, codec: str, level: Level, dictionary: Dictionary | None) -> Codec:
        return self._codec_of(super().codec_with(codec, level, dictionary).id)

    def _codec_of(self, number: int) -> Codec:
        return LEGACY_LZ4 if self.magic == 0 and number == LEGACY_LZ4.id else codec_of(number)

    def _sizes(self, records: Records | Shapes, bounds: Int64, fields: BatchFields, out: Int64) -> None:
        self._kernels.sizes(shapes_of(records).columns, bounds, fields.rows, self._variant, out)

    def _parts(self, records: Records | Shapes, bounds: Int64, fields: BatchFields) -> dict[str, int]:
        shapes, rows = shapes_of(records), fields.rows
        is_batch_written = np.ones(len(bounds) - 1, np.bool_)
        if "is_control" not in self.capabilities.batch_fields:
            is_batch_written &= ~rows["is_control"]
        is_written = np.repeat(is_batch_written, np.diff(bounds))
        messages = int(is_written.sum())
        parts = {name: messages * size for name, size in self._part_bytes.items()}
        for name, lengths in (("key", shapes.key_lengths), ("value", shapes.value_lengths)):
            parts[name] = int(np.maximum(lengths[is_written], 0).sum(dtype=np.int64))
        return parts

    def _read(
        self, data: Bytes, positions: Int64, on_error: OnError, allowance: Allowance, part: ReadScope, check_crcs: bool
    ) -> Reading:
        return MessageReading(self._kernels, self._variant, self._codec_of, data, positions, on_error, allowance)
