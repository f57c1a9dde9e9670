"""kip98: the record batch as the text of KIP-98 has it, which never shipped. 53 bytes a batch, 4 to 26 a record.

Header: `layouts.KIP98_HEADER`; v2 added partitionLeaderEpoch and count to it. The CRC-32C covers attributes..end.
Attributes are v2's bits 0-5: codec, timestamp type, transactional, control batch. Without a count, messages follow
until `length` is used up; the codec covers them only.

Message: `length uvarint, attributes i8, timestampDelta varlong, offsetDelta uvarint, [keyLength uvarint, key],
[value]`. The value takes what is left. No headers.
| message attributes bits | ours, for the text is silent |
|---|---|
| 0 | the key is null, and has no length |
| 1 | the value is null |
| 2-7 | refused |

An offsetDelta below zero, which the text does not think of, is the two's complement of an int32: 5 bytes.
"""

from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from kfbench.arrays import Bytes, Int64
from kfbench.batches import BATCH, BatchFields, DecodedLog
from kfbench.codecs import CODECS, Allowance, codec_of
from kfbench.formats.base.damage import Damage, OnError
from kfbench.formats.base.format import Capabilities, Checksum, shapes_of
from kfbench.formats.base.index import NO_HEADERS, Index
from kfbench.formats.base.sealed import SealedFormat, written
from kfbench.kernels.formats import kip98 as kernels
from kfbench.kernels.wire import status
from kfbench.records import Records, Shapes

CARRIED: Final = Capabilities(
    timestamps=True,
    headers=False,
    empty_batches=True,
    batch_fields=frozenset(
        {
            "base_offset",
            "last_offset",
            "base_timestamp_ms",
            "max_timestamp_ms",
            "append_time_ms",
            "timestamp_type",
            "producer_id",
            "producer_epoch",
            "base_sequence",
            "is_transactional",
            "is_control",
        }
    ),
    codecs=tuple(CODECS),
)


@dataclass(frozen=True, kw_only=True, repr=False)
class Kip98Format(SealedFormat):
    """The paper layout."""

    name: str = "kip98"
    magic: int = kernels.THIS_MAGIC
    summary: str = "the batch as the text of KIP-98 has it, never shipped"
    capabilities: Capabilities = CARRIED
    checksum: ClassVar[Checksum] = Checksum("CRC-32C", kernels.CRC, kernels.ATTRIBUTES)

    def _bound(self, shapes: Shapes, batches: int, fields: BatchFields) -> int:  # noqa: ARG002
        overhead = batches * kernels.HEADER + len(shapes) * kernels.MAX_MESSAGE_OVERHEAD
        return overhead + shapes.key_bytes + shapes.value_bytes

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
        problem, batch = kernels.encode(records.columns, bounds, fields.rows, codec, out, positions, bodies)
        return written(problem, first + batch), bodies

    def _sizes(self, records: Records | Shapes, bounds: Int64, fields: BatchFields, out: Int64) -> None:
        kernels.sizes(shapes_of(records).columns, bounds, fields.rows, out)

    def _parts(self, records: Records | Shapes, bounds: Int64, fields: BatchFields) -> dict[str, int]:
        out = np.zeros(len(kernels.PARTS), np.int64)
        kernels.breakdown(shapes_of(records).columns, bounds, fields.rows, out)
        return dict(zip(kernels.PARTS, out.tolist(), strict=True))

    def decode_at(self, data: Bytes, positions: Int64, on_error: OnError, allowance: Allowance) -> DecodedLog:
        batches = len(positions) - 1
        damage = Damage(positions, on_error)
        codecs, counts, bodies = np.empty(batches, np.int8), np.empty(batches, np.int64), np.empty(batches, np.int64)
        any_codec, append = kernels.survey(data, positions, codecs, bodies, damage.state)
        source, starts, ends = data, bodies, positions[1:]
        if any_codec:
            stops = np.where(damage.state == status.SOUND, ends, bodies)
            source, starts, ends = damage.plain(data, bodies, stops, codecs, codec_of, allowance)
        limits = allowance.limits
        n = kernels.count(data, positions, source, starts, ends, limits.batch_records, damage.state, counts)

        index = Index(n, two_clocks=append)
        bounds = np.empty(batches + 1, np.int64)
        kernels.index(
            data, positions, source, starts, ends, counts, limits.field_bytes, damage.state, *index.columns, bounds
        )
        errors = damage.errors()
        index.cut(int(bounds[-1]))
        records = index.records(source, np.zeros(bounds[-1] + 1, np.int64), NO_HEADERS)
        if errors:
            bounds = np.append(bounds[:-1][damage.state == status.SOUND], bounds[-1])
        return DecodedLog(
            records=records,
            bounds=bounds,
            create_timestamps_ms=index.created,
            rows=partial(_rows, data, positions, source, starts, ends, counts, damage.state),
            format_name=self.name,
            errors=errors,
        )


def _rows(
    data: Bytes,
    positions: Int64,
    source: Bytes,
    starts: Int64,
    ends: Int64,
    counts: Int64,
    state: NDArray[np.int8],
) -> NDArray[np.void]:
    sound = np.flatnonzero(state == status.SOUND)
    rows = np.zeros(len(sound), BATCH)
    kernels.describe(data, positions, source, starts, ends, counts, sound, rows)
    return rows


FORMATS = (Kip98Format(),)
