"""The common part of v0, v1 and enriched: messages, and wrappers around a compressed set (`LegacyRecord`)."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from kfbench import layouts
from kfbench.arrays import Bytes, Int64
from kfbench.batches import BatchFields
from kfbench.codecs import LEGACY_LZ4, Allowance, Codec, codec_of
from kfbench.errors import InvalidRecords
from kfbench.formats.base.appending import Appending, MessageAppending
from kfbench.formats.base.arguments import shapes_of
from kfbench.formats.base.capabilities import Capabilities, Checksum, Origin
from kfbench.formats.base.compression import compress_bodies
from kfbench.formats.base.damage import OnError
from kfbench.formats.base.format import Format
from kfbench.formats.base.message_reading import MessageReading
from kfbench.formats.base.reading import Part, Reading
from kfbench.kernels.formats import legacy
from kfbench.kernels.formats.messages import MESSAGE_TOO_LARGE, OUT_TOO_SMALL
from kfbench.records import Records, Shapes


@dataclass(frozen=True, kw_only=True, repr=False)
class MessageFormat(Format):
    """v0 or v1, and the base of others. `_kernels`: a module with kernels of the same names, which take `_variant`."""

    name: str
    magic: int
    summary: str
    capabilities: Capabilities
    origin: Origin = "shipped"
    holds_messages: ClassVar[bool] = True
    checksum: ClassVar[Checksum] = Checksum(
        "CRC-32", layouts.position(layouts.V0_MESSAGE, "crc"), layouts.position(layouts.V0_MESSAGE, "magic")
    )
    _kernels: ClassVar[Any] = legacy

    @property
    def appending(self) -> Appending:
        return MessageAppending(kind=self.magic, has_absolute_offsets=self.magic == 0)

    @property
    def _variant(self) -> int:
        return self.magic

    @property
    def _fixed_bytes(self) -> int:
        """The bytes of a message without key and value."""
        return layouts.LEGACY_FIXED_BYTES[self.magic]

    @property
    def _wrapper_bytes(self) -> int:
        """The bytes of a wrapper without its value."""
        return self._fixed_bytes

    @property
    def _part_bytes(self) -> dict[str, int]:
        """The fixed bytes of a message by field; key and value are 0."""
        parts = dict(zip(legacy.PARTS, legacy.PART_BYTES, strict=True))
        return parts | {"timestamp": parts["timestamp"] * self.magic}

    def _bound(self, shapes: Shapes, batches: int, fields: BatchFields) -> int:  # noqa: ARG002
        return len(shapes) * self._fixed_bytes + shapes.key_bytes + shapes.value_bytes

    def _write(self, records: Records, bounds: Int64, fields: BatchFields, out: Bytes, positions: Int64) -> bool:
        problem, batch = self._kernels.encode(
            records.columns, bounds, fields.rows, self._variant, False, out, positions
        )
        return _fits(problem, batch)

    def _compress_chunk(
        self,
        records: Records,
        bounds: Int64,
        fields: BatchFields,
        codec: Codec,
        level: int | None,
        plain: Bytes,
        first: int,
    ) -> tuple[Bytes, Int64]:
        positions = np.empty(len(bounds), np.int64)
        problem, batch = self._kernels.encode(
            records.columns, bounds, fields.rows, self._variant, True, plain, positions
        )
        has_room = _fits(problem, first + batch)
        assert has_room, "sizes and encode disagree"
        codec = self._codec_of(codec.id)
        payload, payload_bounds = compress_bodies(codec, level, plain, positions[:-1], positions[1:])
        data = np.empty((len(bounds) - 1) * self._wrapper_bytes + len(payload), np.uint8)
        problem, batch = self._kernels.wrap(
            records.columns, bounds, fields.rows, self._variant, codec.id, payload, payload_bounds, data, positions
        )
        _fits(problem, first + batch)
        return data[: positions[-1]], positions

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
        self,
        data: Bytes,
        positions: Int64,
        on_error: OnError,
        allowance: Allowance,
        part: Part = "all",  # noqa: ARG002
        check_crcs: bool = True,  # noqa: ARG002
    ) -> Reading:
        return MessageReading(self._kernels, self._variant, self._codec_of, data, positions, on_error, allowance)


def _fits(problem: int, batch: int) -> bool:
    """Return True unless `out` was too small. Raise InvalidRecords for a message that the format has no room for."""
    if problem == MESSAGE_TOO_LARGE:
        raise InvalidRecords(f"batch {batch} holds a message larger than its int32 size can say")
    return problem != OUT_TOO_SMALL
