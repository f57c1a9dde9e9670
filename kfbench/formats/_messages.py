"""What v0 and v1 share: plain messages, and wrapper messages around a compressed set (`LegacyRecord`)."""

from dataclasses import dataclass
from functools import partial
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from kfbench import layouts
from kfbench.arrays import Bytes, Int64
from kfbench.batches import BATCH, DecodedLog
from kfbench.codecs import CODEC_NAMES, CODECS, LEGACY_LZ4, Allowance, Codec, Lz4, joined
from kfbench.errors import InvalidRecords
from kfbench.formats._damage import Damage, OnError
from kfbench.formats._format import Capabilities, Format, chunks, gathered
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
        codec = self._framed(codec)
        pieces = []
        for lo, hi in chunks(bounds, records.shapes):
            part, part_rows = bounds[lo : hi + 1], rows if len(rows) == 1 else rows[lo:hi]
            sizes, positions = np.empty(hi - lo, np.int64), np.empty(hi - lo + 1, np.int64)
            self._sizes(records.shapes, part, part_rows, sizes)
            plain = np.empty(int(sizes.sum()), np.uint8)
            problem, batch = kernels.encode(records.columns, part, part_rows, self.magic, True, plain, positions)
            _refuse(problem, batch)
            assert problem != kernels.OUT_TOO_SMALL, "sizes and encode disagree"
            cuts = positions.tolist()
            payload, payload_bounds = joined(
                [codec.compress(plain[a:b], level) if a < b else b"" for a, b in pairwise(cuts)]
            )
            data = np.empty((hi - lo) * self._fixed_bytes + len(payload), np.uint8)
            _refuse(
                *kernels.wrap(
                    records.columns, part, part_rows, self.magic, codec.id, payload, payload_bounds, data, positions
                )
            )
            pieces.append((data[: positions[-1]], positions))
        return gathered(pieces, out)

    def _framed(self, codec: Codec) -> Codec:
        return LEGACY_LZ4 if self.magic == 0 and isinstance(codec, Lz4) else codec

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
            source, starts, ends = self._plain(data, positions, codecs, bodies, damage, allowance)
        counts = np.empty(entries, np.int64)
        kernels.count(source, starts, ends, codecs, damage.state, counts)
        n = int(counts.sum())

        timestamps, offsets, key_starts, value_starts = (np.empty(n, np.int64) for _ in range(4))
        created = np.empty(n, np.int64) if wrapped else timestamps  # one array serves for both
        key_lengths, value_lengths = np.empty(n, np.int32), np.empty(n, np.int32)
        bounds = np.empty(entries + 1, np.int64)
        kernels.index(
            data, positions, source, starts, codecs, counts, damage.state,
            timestamps, created, offsets, key_lengths, key_starts, value_lengths, value_starts, bounds,
        )  # fmt: skip
        errors = damage.errors()
        n = int(bounds[-1])
        nothing, nowhere = np.zeros(0, np.int32), np.zeros(0, np.int64)
        shapes = Shapes.trusted(
            timestamps_ms=timestamps[:n],
            offsets=offsets[:n],
            key_lengths=key_lengths[:n],
            value_lengths=value_lengths[:n],
            header_bounds=np.zeros(n + 1, np.int64),
            header_key_lengths=nothing,
            header_value_lengths=nothing,
        )
        records = Records.trusted(
            shapes,
            key_data=source,
            key_starts=key_starts[:n],
            value_data=source,
            value_starts=value_starts[:n],
            header_key_data=source,
            header_key_starts=nowhere,
            header_value_data=source,
            header_value_starts=nowhere,
        )
        if errors:
            bounds = np.append(bounds[:-1][damage.state == status.SOUND], bounds[-1])
        return DecodedLog(
            records=records,
            bounds=bounds,
            create_timestamps_ms=created[:n],
            rows=partial(_rows, data, positions, self.magic, bounds, offsets, starts, ends, damage.state),
            errors=errors,
        )

    def _plain(
        self,
        data: Bytes,
        positions: Int64,
        codecs: NDArray[np.int8],
        bodies: Int64,
        damage: Damage,
        allowance: Allowance,
    ) -> tuple[Bytes, Int64, Int64]:
        """(source, starts, ends): each plain message, or each wrapper's set uncompressed."""
        parts = []
        stops = positions[1:].tolist()
        for b, (codec, start, end) in enumerate(zip(codecs.tolist(), bodies.tolist(), stops, strict=True)):
            if codec and damage.state[b] == status.SOUND:
                framed = self._framed(CODECS[CODEC_NAMES[codec]])
                parts.append(damage.decompress(framed, data[start:end], b, allowance))
            else:
                parts.append(data[start:end].tobytes())
        source, cuts = joined(parts)
        return source, cuts[:-1], cuts[1:]


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
