"""Read batches of v2 and v3 in three steps: headers, decompression, columns of records."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kfbench import layouts, tagged_fields
from kfbench.arrays import Bytes, Int64, read_only
from kfbench.batches import BATCH, DecodedTimes
from kfbench.codecs import Allowance
from kfbench.formats.base.damage import Bodies, Damage, OnError
from kfbench.formats.base.reading import NO_HEADERS, Headers, Index, Reading, header_room
from kfbench.kernels.formats import batch, batch_description, batch_header, batch_tags
from kfbench.kernels.wire import status
from kfbench.records import Records


class SharedHeaders(NamedTuple):
    """The bytes of tag 1 (headers that all records of a batch share) of each batch: source[starts[b]:stops[b]].

    starts, stops: int64[batches]. Both are equal if the batch has no tag 1.
    """

    starts: Int64
    stops: Int64


NONE_SHARED: Final = SharedHeaders(np.empty(0, np.int64), np.empty(0, np.int64))


class BatchReading(Reading):
    """Reader of batches of magic 2 or 3. Call `decompress`, then `read_columns` or `read_times`."""

    def __init__(
        self,
        data: Bytes,
        positions: Int64,
        magic: int,
        on_error: OnError,
        allowance: Allowance,
        check_crcs: bool = True,
    ) -> None:
        if positions.flags.writeable:  # an encoder made them; kernels that read are compiled for read-only arrays
            positions = read_only(positions)
        self.data, self.positions, self.magic, self.allowance = data, positions, magic, allowance
        self.check_crcs = check_crcs
        self.damage = Damage(positions, on_error)
        batches = len(positions) - 1
        self.codecs, self.counts = np.empty(batches, np.int8), np.empty(batches, np.int64)
        bodies = np.empty(batches, np.int64)
        self.shared = NONE_SHARED
        if magic == 3:
            self.shared = SharedHeaders(np.empty(batches, np.int64), np.empty(batches, np.int64))
        # is_featured: any batch is unsigned, headers first or tagged. Other kernels read such batches.
        self.record_room, self.any_codec, self.two_clocks, self.is_featured = batch.survey(
            data, positions, magic, allowance.limits.batch_records, allowance.limits.field_bytes, check_crcs,
            self.codecs, self.counts, bodies, *self.shared, self.damage.state,
        )  # fmt: skip
        self.source, self.starts, self.ends = data, bodies, positions[1:]
        self.payload_ends = self.ends
        self.made_bytes: int | None = None  # decompressed bytes if only metadata was decompressed
        self.any_shared = bool(self.is_featured and np.any(self.shared.starts != self.shared.stops))

    def decompress(self, metadata_only: bool = False) -> None:
        """Decompress the bodies (the bytes after each header).

        metadata_only: True decompresses only the metadata of batches that store it before the payload (headers first).
        """
        if not self.any_codec:
            return
        stops = np.where(self.damage.state == status.SOUND, self.ends, self.starts)
        appendix = self.data if self.any_shared else None  # tag 1 lies outside the codec
        bodies = Bodies(self.data, self.starts, stops, self.codecs)
        if metadata_only:
            self.source, self.starts, self.ends, self.payload_ends, self.made_bytes = self.damage.metadata(
                bodies, self.allowance, self._headers_first, appendix
            )
        else:
            self.source, self.starts, self.ends = self.damage.plain(bodies, self.allowance, appendix)
            self.payload_ends = self.ends
        too_many = self.counts > (self.ends - self.starts) // layouts.MIN_RECORD_BYTES
        self.damage.state[(self.damage.state == status.SOUND) & too_many] = status.COUNT
        self.record_room = int(self.counts[self.damage.state == status.SOUND].sum())
        if self.any_shared:
            moved = len(self.source) - len(self.data)
            self.shared = SharedHeaders(self.shared.starts + moved, self.shared.stops + moved)

    @cached_property
    def _headers_first(self) -> NDArray[np.bool_]:
        if self.magic != 3:
            return np.zeros(len(self.codecs), np.bool_)
        attributes = self.data[self.positions[:-1] + batch_header.ATTRIBUTES].astype(np.int64) << 8
        is_first: NDArray[np.bool_] = (self.damage.state == status.SOUND) & (
            attributes & layouts.HEADERS_FIRST_BIT != 0
        )
        return is_first

    def read_columns(self) -> None:
        """Fill `index`, `header_bounds` and `bounds`. The headers of records are read later, by `records`."""
        index = Index(self.record_room, two_clocks=self.two_clocks)
        header_bounds, bounds = np.empty(self.record_room + 1, np.int64), np.empty(len(self.positions), np.int64)
        limits = self.allowance.limits
        self.allowance.log_headers = (batch.index_featured if self.is_featured else batch.index)(
            self.data, self.positions, self.magic, self.counts, self.source, self.starts, self.ends, self.payload_ends,
            *self.shared,
            (limits.batch_headers, limits.field_bytes, self.allowance.log_headers), self.check_crcs,
            self.damage.state, index.columns, header_bounds, bounds,
        )  # fmt: skip
        n = int(bounds[-1])
        index.cut(n)
        self.index, self.header_bounds, self.bounds = index, header_bounds[: n + 1], bounds

    def read_times(self) -> DecodedTimes:
        """Read timestamps and offsets, and set `bounds`.

        Nothing else is read, except in unsigned, headers-first or tagged v3.
        """
        if self.is_featured:  # with headers first, records have no length to skip; the other features are rare
            self.read_columns()
            return DecodedTimes(self.index.timestamps, self.index.offsets, self.bounds)
        timestamps, offsets = np.empty(self.record_room, np.int64), np.empty(self.record_room, np.int64)
        self.bounds = np.empty(len(self.positions), np.int64)
        batch.times(
            self.data, self.positions, self.magic, self.counts, self.source, self.starts, self.ends, self.damage.state,
            timestamps, offsets, self.bounds,
        )  # fmt: skip
        return DecodedTimes(timestamps, offsets, self.bounds)

    def records(self) -> Records:
        return self.index.records(self.source, self.header_bounds, self._headers())

    def _headers(self) -> Headers:
        headers = int(self.header_bounds[-1])
        if not headers:
            return NO_HEADERS
        room = header_room(headers)
        (batch.index_headers_featured if self.is_featured else batch.index_headers)(
            self.data, self.positions, self.magic, self.source, self.starts, self.ends, *self.shared,
            self.damage.state, self.index.columns, self.header_bounds, self.bounds, tuple(room),
        )  # fmt: skip
        return room

    def rows(self, records: Records, bounds: Int64) -> NDArray[np.void]:
        sound = self.sound
        rows = np.zeros(len(sound), BATCH)
        (batch_description.describe_featured if self.is_featured else batch_description.describe)(
            self.data, self.positions, self.magic, self.counts, self.source, self.starts, self.ends, *self.shared,
            sound, rows,
        )  # fmt: skip
        if self.any_shared:  # our encoder shares as many headers as it can
            shared = np.empty(len(sound), np.int64)
            batch_tags.count_shared(records.columns, bounds, shared)
            rows["canonical"] &= (rows["shared_headers"] == 0) | (rows["shared_headers"] == shared)
        return rows

    def tags(self) -> Sequence[Mapping[int, bytes]]:
        sound = self.sound
        starts, sizes = np.empty(len(sound), np.int64), np.empty(len(sound), np.int64)
        batch.other_tags(self.data, self.positions, sound, starts, sizes)
        return [
            tagged_fields.decoded(self.data[start : start + size].tobytes()) if size else tagged_fields.NONE
            for start, size in zip(starts.tolist(), sizes.tolist(), strict=True)
        ]

    @property
    def has_tags(self) -> bool:
        return bool(self.is_featured)

    @property
    def is_metadata(self) -> bool:
        return self.made_bytes is not None and bool(np.any(self.payload_ends > self.ends))

    @property
    def plain_bytes(self) -> int:
        return int((self.ends - self.starts).sum()) if self.made_bytes is None else self.made_bytes
