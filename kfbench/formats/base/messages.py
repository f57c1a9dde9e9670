"""The common part of v0, v1 and enriched (`LegacyRecord`): messages, and wrappers.

A wrapper is an outer message around a compressed set of messages.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from kfbench import layouts
from kfbench.arrays import Bytes, Int64
from kfbench.batches import BATCH, BatchFields, EncodedLog
from kfbench.codecs import LEGACY_LZ4, Allowance, Codec, Level, codec_of
from kfbench.errors import InvalidRecords
from kfbench.formats.base.appending import Appending, MessageAppending
from kfbench.formats.base.capabilities import Checksum, Origin
from kfbench.formats.base.damage import Bodies, Damage, OnError, PlainBodies
from kfbench.formats.base.format import Format, compress_bodies, shapes_of
from kfbench.formats.base.reading import Index, Part, Reading
from kfbench.kernels.formats import legacy
from kfbench.kernels.formats.messages import MESSAGE_TOO_LARGE, OUT_TOO_SMALL
from kfbench.records import Records, Shapes


class MessageReading(Reading):
    """Reader of messages and compressed sets of one format. The constructor reads everything.

    kernels: the module whose kernels read this format. variant: the number that selects the format in these kernels.
    """

    def __init__(
        self,
        kernels: Any,
        variant: int,
        find_codec: Callable[[int], Codec],
        data: Bytes,
        positions: Int64,
        on_error: OnError,
        allowance: Allowance,
    ) -> None:
        entries = len(positions) - 1
        self.data, self.positions, self.kernels, self.variant = data, positions, kernels, variant
        self.damage = Damage(positions, on_error)
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

    _kernels: the module with the kernels of this format. These modules have functions of the same names. _variant: the
    number that selects the format in these kernels.
    """

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

    def _write(self, records: Records, bounds: Int64, fields: BatchFields, out: Bytes, positions: Int64) -> bool:
        given = records.columns, bounds, fields.rows, self._variant
        return _is_written(self._kernels.encode(*given, False, out, positions))

    def _compress_chunk(
        self, records: Records, bounds: Int64, fields: BatchFields, codec: Codec, level: Level, room: Bytes, first: int
    ) -> EncodedLog:
        positions, given = np.empty(len(bounds), np.int64), (records.columns, bounds, fields.rows, self._variant)
        is_written = _is_written(self._kernels.encode(*given, True, room, positions), first)
        assert is_written, "sizes and encode disagree"
        codec = self._codec_of(codec.id)
        payloads = compress_bodies(codec, level, room, positions[:-1], positions[1:])
        data = np.empty((len(bounds) - 1) * self._wrapper_bytes + len(payloads.data), np.uint8)
        _is_written(self._kernels.wrap(*given, codec.id, *payloads, data, positions), first)
        return EncodedLog(data=data[: positions[-1]], positions=positions)

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
        self, data: Bytes, positions: Int64, on_error: OnError, allowance: Allowance, part: Part, check_crcs: bool
    ) -> Reading:
        return MessageReading(self._kernels, self._variant, self._codec_of, data, positions, on_error, allowance)


def _is_written(outcome: tuple[int, int], first: int = 0) -> bool:
    """Return False if the buffer was too small. Raise InvalidRecords for a message that does not fit the format.

    outcome: a problem's number and its batch, as an encode kernel returns them. first: the number of the kernel's first
    batch in the whole log.
    """
    problem, batch = outcome
    if problem == MESSAGE_TOO_LARGE:
        raise InvalidRecords(f"batch {first + batch} holds a message larger than its int32 size can say")
    return problem != OUT_TOO_SMALL
