"""Reading batches of v2 and v3: header by header, through the codec, into columns."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kfbench import layouts, tagged_fields
from kfbench.arrays import Bytes, Int64, read_only
from kfbench.batches import BATCH
from kfbench.codecs import Allowance, codec_of
from kfbench.formats.base.damage import Damage, OnError
from kfbench.formats.base.index import NO_HEADERS, Headers, Index, header_room
from kfbench.kernels.formats import batch, batch_header, shared_headers
from kfbench.kernels.wire import status
from kfbench.records import Records

NONE_SHARED: Final = np.empty(0, np.int64), np.empty(0, np.int64)


class Reading:
    """One log of magic 2 or 3 on its way to columns."""

    def __init__(
        self,
        data: Bytes,
        positions: Int64,
        magic: int,
        on_error: OnError,
        allowance: Allowance,
        check_crcs: bool = True,
    ) -> None:
        if positions.flags.writeable:  # an encoder's own; survey and index are compiled for read-only ones
            positions = read_only(positions)
        self.data, self.positions, self.magic, self.allowance = data, positions, magic, allowance
        self.check_crcs = check_crcs
        self.damage = Damage(positions, on_error)
        batches = len(positions) - 1
        self.codecs, self.counts = np.empty(batches, np.int8), np.empty(batches, np.int64)
        bodies = np.empty(batches, np.int64)
        self.shared = (np.empty(batches, np.int64), np.empty(batches, np.int64)) if magic == 3 else NONE_SHARED
        self.records, self.any_codec, self.two_clocks, self.featured = batch_header.survey(
            data, positions, magic, allowance.limits.batch_records, allowance.limits.field_bytes, check_crcs,
            self.codecs, self.counts, bodies, *self.shared, self.damage.state,
        )  # fmt: skip
        self.source, self.starts, self.ends = data, bodies, positions[1:]
        self.payload_ends = self.ends
        self.plain_bytes: int | None = None  # what the metadata alone took
        self.any_shared = bool(self.featured and np.any(self.shared[0] != self.shared[1]))

    def decompress(self, metadata_only: bool = False) -> None:
        """metadata_only: where the headers come first, no more than they is decompressed."""
        if not self.any_codec:
            return
        stops = np.where(self.damage.state == status.SOUND, self.ends, self.starts)
        behind = self.data if self.any_shared else None  # tag 1 lies outside the codec
        given = self.data, self.starts, stops, self.codecs, codec_of, self.allowance
        if metadata_only:
            self.source, self.starts, self.ends, self.payload_ends, self.plain_bytes = self.damage.metadata(
                *given, self._headers_first, behind
            )
        else:
            self.source, self.starts, self.ends = self.damage.plain(*given, behind)
            self.payload_ends = self.ends
        too_many = self.counts > (self.ends - self.starts) // layouts.MIN_RECORD_BYTES
        self.damage.state[(self.damage.state == status.SOUND) & too_many] = status.COUNT
        self.records = int(self.counts[self.damage.state == status.SOUND].sum())
        if self.any_shared:
            moved = len(self.source) - len(self.data)
            self.shared = self.shared[0] + moved, self.shared[1] + moved

    @cached_property
    def _headers_first(self) -> NDArray[np.bool_]:
        """Which batches have their metadata first."""
        if self.magic != 3:
            return np.zeros(len(self.codecs), np.bool_)
        attributes = self.data[self.positions[:-1] + batch_header.ATTRIBUTES].astype(np.int64) << 8
        found: NDArray[np.bool_] = (self.damage.state == status.SOUND) & (attributes & layouts.HEADERS_FIRST_BIT != 0)
        return found

    def index(self) -> tuple[Index, Int64, Int64]:
        """The columns, header bounds int64[records + 1] and bounds int64[batches + 1]."""
        index = Index(self.records, two_clocks=self.two_clocks)
        header_bounds, bounds = np.empty(self.records + 1, np.int64), np.empty(len(self.positions), np.int64)
        limits = self.allowance.limits
        self.allowance.log_headers = (batch.index_featured if self.featured else batch.index)(
            self.data, self.positions, self.magic, self.counts, self.source, self.starts, self.ends, self.payload_ends,
            *self.shared,
            (limits.batch_headers, limits.field_bytes, self.allowance.log_headers), self.check_crcs,
            self.damage.state, index.columns, header_bounds, bounds,
        )  # fmt: skip
        n = int(bounds[-1])
        index.cut(n)
        return index, header_bounds[: n + 1], bounds

    def times(self) -> tuple[Int64, Int64, Int64]:
        """Timestamps, offsets and bounds int64[batches + 1]."""
        if self.featured:  # where headers come first, no length leads from record to record; the others are rare
            index, _, bounds = self.index()
            return index.timestamps, index.offsets, bounds
        timestamps, offsets = np.empty(self.records, np.int64), np.empty(self.records, np.int64)
        bounds = np.empty(len(self.positions), np.int64)
        batch.times(
            self.data, self.positions, self.magic, self.counts, self.source, self.starts, self.ends, self.damage.state,
            timestamps, offsets, bounds,
        )  # fmt: skip
        return timestamps, offsets, bounds

    def rows(self, records: Records, bounds: Int64) -> NDArray[np.void]:
        """One BATCH row a sound batch."""
        sound = self._sound
        found = np.zeros(len(sound), BATCH)
        (batch.describe_featured if self.featured else batch.describe)(
            self.data, self.positions, self.magic, self.counts, self.source, self.starts, self.ends, *self.shared,
            sound, found,
        )  # fmt: skip
        if self.any_shared:  # an encoder shares no fewer than it can
            shared = np.empty(len(sound), np.int64)
            shared_headers.count(records.columns, bounds, shared)
            found["canonical"] &= (found["shared_headers"] == 0) | (found["shared_headers"] == shared)
        return found

    def headers(self, index: Index, header_bounds: Int64, bounds: Int64) -> Headers:
        """Lengths and starts of the header keys, then of the header values."""
        headers = int(header_bounds[-1])
        if not headers:
            return NO_HEADERS
        room = header_room(headers)
        (batch.index_headers_featured if self.featured else batch.index_headers)(
            self.data, self.positions, self.magic, self.source, self.starts, self.ends, *self.shared,
            self.damage.state, index.columns, header_bounds, bounds, room,
        )  # fmt: skip
        return room

    def sound_bounds(self, bounds: Int64) -> Int64:
        """Without the batches that are damaged."""
        return np.append(bounds[:-1][self.damage.state == status.SOUND], bounds[-1])

    def tags(self) -> Sequence[Mapping[int, bytes]]:
        """The tagged fields of each sound batch that are not the format's own."""
        sound = self._sound
        starts, sizes = np.empty(len(sound), np.int64), np.empty(len(sound), np.int64)
        batch.other_tags(self.data, self.positions, sound, starts, sizes)
        return [
            tagged_fields.decoded(self.data[start : start + size].tobytes()) if size else tagged_fields.NONE
            for start, size in zip(starts.tolist(), sizes.tolist(), strict=True)
        ]

    @property
    def _sound(self) -> Int64:
        return np.flatnonzero(self.damage.state == status.SOUND)
