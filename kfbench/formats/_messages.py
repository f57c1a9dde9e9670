"""What v0 and v1 share: plain messages, and wrapper messages around a compressed set (`LegacyRecord`)."""

from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from kfbench import layouts
from kfbench.arrays import Bytes, Int64
from kfbench.batches import BATCH, DecodedLog
from kfbench.codecs import LEGACY_LZ4, Allowance, Codec, codec_of
from kfbench.errors import InvalidRecords
from kfbench.formats._damage import Damage, OnError
from kfbench.formats._format import Capabilities, Format, chunks, compressed, gathered
from kfbench.formats._index import Index, header_room
from kfbench.kernels import legacy as kernels
from kfbench.kernels import status
from kfbench.records import Records, Shapes


@dataclass(frozen=True, kw_only=True, repr=False)
class MessageFormat(Format):
    """v0 or v1."""

    name: str
    magic: int
    summary: str
    capabilities: Capabilities

    @property
    def _fixed_bytes(self) -> int:
        return layouts.LEGACY_FIXED_BYTES[self.magic]

    def _bound(self, shapes: Shapes, batches: int) -> int:  # noqa: ARG002
        return len(shapes) * self._fixed_bytes + shapes.key_bytes + shapes.value_bytes

    def _write(self, records: Records, bounds: Int64, rows: NDArray[np.void], out: Bytes, positions: Int64) -> bool:
        problem, batch = kernels.encode(records.columns, bounds, rows, self.magic, False, out, positions)
        _refuse(problem, batch)
        return bool(problem != kernels.OUT_TOO_SMALL)

    def _compressed(
        self,
        records: Records,
        bounds: Int64,
        rows: NDArray[np.void],
        codec: Codec,
        level: int | None,
        out: Bytes | None,
    ) -> tuple[Bytes, Int64]:
        codec = self._codec_of(codec.id)
        pieces = []
        for part, part_rows in chunks(bounds, rows, records.shapes):
            sizes, positions = np.empty(len(part) - 1, np.int64), np.empty(len(part), np.int64)
            self._sizes(records.shapes, part, part_rows, sizes)
            plain = np.empty(int(sizes.sum()), np.uint8)
            problem, batch = kernels.encode(records.columns, part, part_rows, self.magic, True, plain, positions)
            _refuse(problem, batch)
            assert problem != kernels.OUT_TOO_SMALL, "sizes and encode disagree"
            payload, payload_bounds = compressed(codec, level, plain, positions[:-1], positions[1:])
            data = np.empty(len(sizes) * self._fixed_bytes + len(payload), np.uint8)
            _refuse(
                *kernels.wrap(
                    records.columns, part, part_rows, self.magic, codec.id, payload, payload_bounds, data, positions
                )
            )
            pieces.append((data[: positions[-1]], positions))
        return gathered(pieces, out)

    def _codec_of(self, number: int) -> Codec:
        return LEGACY_LZ4 if self.magic == 0 and number == LEGACY_LZ4.id else codec_of(number)

    def _sizes(self, shapes: Shapes, bounds: Int64, rows: NDArray[np.void], out: Int64) -> None:
        kernels.sizes(shapes.columns, bounds, rows, self.magic, out)

    def _parts(self, shapes: Shapes, bounds: Int64, rows: NDArray[np.void]) -> dict[str, int]:
        written = np.ones(len(bounds) - 1, np.bool_) & ~rows["is_control"]
        held = np.repeat(written, np.diff(bounds))
        messages = int(held.sum())
        parts = {name: messages * size for name, size in zip(kernels.PARTS, kernels.PART_BYTES, strict=True)}
        parts["timestamp"] *= self.magic
        for name, lengths in (("key", shapes.key_lengths), ("value", shapes.value_lengths)):
            parts[name] = int(np.maximum(lengths[held], 0).sum(dtype=np.int64))
        return parts

    def decode_at(self, data: Bytes, positions: Int64, on_error: OnError, allowance: Allowance) -> DecodedLog:
        entries = len(positions) - 1
        damage = Damage(positions, on_error)
        codecs, bodies = np.empty(entries, np.int8), np.empty(entries, np.int64)
        source, starts, ends = data, positions[:-1], positions[1:]
        wrapped = kernels.survey(data, positions, self.magic, codecs, bodies, damage.state)
        if wrapped:
            source, starts, ends = damage.plain(data, bodies, ends, codecs, self._codec_of, allowance)
        counts = np.empty(entries, np.int64)
        kernels.count(source, starts, ends, codecs, damage.state, counts)
        n = int(counts.sum())

        index = Index(n, two_clocks=wrapped)
        bounds = np.empty(entries + 1, np.int64)
        kernels.index(data, positions, source, starts, codecs, counts, damage.state, *index.columns, bounds)
        errors = damage.errors()
        records = index.records(source, np.zeros(bounds[-1] + 1, np.int64), header_room(0))
        if errors:
            bounds = np.append(bounds[:-1][damage.state == status.SOUND], bounds[-1])
        return DecodedLog(
            records=records,
            bounds=bounds,
            create_timestamps_ms=index.created[: len(records)],
            rows=partial(_rows, data, positions, self.magic, bounds, index.offsets, starts, ends, damage.state),
            errors=errors,
        )


def _rows(
    data: Bytes,
    positions: Int64,
    magic: int,
    bounds: Int64,
    offsets: Int64,
    starts: Int64,
    ends: Int64,
    state: NDArray[np.int8],
) -> NDArray[np.void]:
    sound = np.flatnonzero(state == status.SOUND)
    rows = np.zeros(len(sound), BATCH)
    kernels.describe(data, positions, magic, sound, bounds, offsets, rows)
    rows["records_size_bytes"] = (ends - starts)[sound]
    return rows


def _refuse(problem: int, batch: int) -> None:
    if problem == kernels.MESSAGE_TOO_LARGE:
        raise InvalidRecords(f"batch {batch} holds a message larger than its int32 size can say")
