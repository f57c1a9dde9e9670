"""kip98: the record batch in the text of KIP-98, which never shipped. 53 bytes per batch, 4 to 26 per record.

Header: `layouts.KIP98_HEADER`. It is v2's header without partitionLeaderEpoch and count. The CRC-32C covers
attributes..end. Attributes are bits 0-5 of v2: codec, timestamp type, transactional, control batch. Without a count,
a reader reads messages until `length` is used up. The codec covers only the messages.

Message: `length uvarint, attributes i8, timestampDelta varlong, offsetDelta uvarint, [keyLength uvarint, key],
[value]`. The value takes the rest of the message. There are no headers.
| message attributes bits | our choice: the text does not say |
|---|---|
| 0 | the key is null, and has no length |
| 1 | the value is null |
| 2-7 | refused |

An offsetDelta below zero is the two's complement of an int32, in 5 bytes. That is our choice: the text is silent.
"""

from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from kfbench.arrays import Bytes, Int64
from kfbench.batches import BATCH, FIELD_NAMES, BatchFields
from kfbench.codecs import Allowance
from kfbench.formats.base.appending import Appending, Kip98Appending
from kfbench.formats.base.capabilities import Capabilities, Checksum, Origin
from kfbench.formats.base.damage import BatchDamage, Bodies, OnError
from kfbench.formats.base.format import EncodeResult, Format, PlainBatches, shapes_of
from kfbench.formats.base.reading import Index, Reading, ReadScope
from kfbench.kernels.formats import kip98 as kernels
from kfbench.kernels.wire import status
from kfbench.records import Records, Shapes

CAPABILITIES: Final = Capabilities(
    timestamps=True,
    headers=False,
    empty_batches=True,
    batch_fields=FIELD_NAMES - {"partition_leader_epoch", "delete_horizon_ms", "tagged_fields"},
    codecs=("none", "gzip", "snappy", "lz4", "zstd"),
)


class Kip98Reading(Reading):
    """Reader of kip98 batches. The constructor reads everything; the attributes and `rows` give the result."""

    def __init__(self, data: Bytes, positions: Int64, on_error: OnError, allowance: Allowance) -> None:
        self.data, self.positions, self.damage = data, positions, BatchDamage(positions, on_error)
        batches, state = len(positions) - 1, self.damage.state
        codecs, bodies = np.empty(batches, np.int8), np.empty(batches, np.int64)
        any_codec, two_clocks = kernels.survey(data, positions, codecs, bodies, state)
        self.source, self.starts, self.ends = data, bodies, positions[1:]
        if any_codec:
            stops = np.where(state == status.SOUND, self.ends, bodies)
            self.source, self.starts, self.ends = self.damage.plain(Bodies(data, bodies, stops, codecs), allowance)
        self.counts, limits = np.empty(batches, np.int64), allowance.limits
        record_room = kernels.count(
            data, positions, self.source, self.starts, self.ends, limits.batch_records, state, self.counts
        )
        self.index, self.bounds = Index(record_room, two_clocks=two_clocks), np.empty(batches + 1, np.int64)
        kernels.index(
            data, positions, self.source, self.starts, self.ends, self.counts, limits.field_bytes, state,
            self.index.columns, self.bounds,
        )  # fmt: skip
        records = int(self.bounds[-1])
        self.index.cut(records)
        self.header_bounds = np.zeros(records + 1, np.int64)

    def rows(self, records: Records, bounds: Int64) -> NDArray[np.void]:
        sound = self.sound
        rows = np.zeros(len(sound), BATCH)
        kernels.describe(self.data, self.positions, self.source, self.starts, self.ends, self.counts, sound, rows)
        return rows


@dataclass(frozen=True, kw_only=True, repr=False)
class Kip98Format(Format):
    """The batch in the text of KIP-98. Its readers always decode everything, even if the caller wants only metadata."""

    name: str = "kip98"
    magic: int = kernels.THIS_MAGIC
    summary: str = "the batch as the text of KIP-98 has it, never shipped"
    capabilities: Capabilities = CAPABILITIES
    origin: Origin = "proposed"
    appending: ClassVar[Appending] = Kip98Appending()
    is_told_by_magic: ClassVar[bool] = False
    checksum: ClassVar[Checksum] = Checksum("CRC-32C", kernels.CRC, kernels.ATTRIBUTES)

    def _bound(self, shapes: Shapes, batches: int, fields: BatchFields) -> int:
        overhead = batches * kernels.HEADER + len(shapes) * kernels.MAX_MESSAGE_OVERHEAD
        return overhead + shapes.key_bytes + shapes.value_bytes

    def _encode(
        self, records: Records, bounds: Int64, fields: BatchFields, codec: int, plain: PlainBatches
    ) -> EncodeResult:
        return EncodeResult(*kernels.encode(records.columns, bounds, fields.rows, codec, *plain))

    def _sizes(self, records: Records | Shapes, bounds: Int64, fields: BatchFields, out: Int64) -> None:
        kernels.sizes(shapes_of(records).columns, bounds, fields.rows, out)

    def _parts(self, records: Records | Shapes, bounds: Int64, fields: BatchFields) -> dict[str, int]:
        out = np.zeros(len(kernels.PARTS), np.int64)
        kernels.breakdown(shapes_of(records).columns, bounds, fields.rows, out)
        return dict(zip(kernels.PARTS, out.tolist(), strict=True))

    def _read(
        self, data: Bytes, positions: Int64, on_error: OnError, allowance: Allowance, part: ReadScope, check_crcs: bool
    ) -> Reading:
        return Kip98Reading(data, positions, on_error, allowance)


FORMATS = (Kip98Format(),)
