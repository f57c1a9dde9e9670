"""Compress a sample of a topic in the batches of many producers' settings.

Sizes under other settings are interpolated between these (see `between`).
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from heapq import heapify, heappop, heappush
from itertools import pairwise, product
from math import sqrt
from typing import Annotated, Final, NamedTuple

import numpy as np
from msgspec import Meta, Struct

from kfbench.arrays import Int64
from kfbench.codecs import CODECS
from kfbench.errors import KfbenchError
from kfbench.formats import BASE_FORMAT, FORMATS
from kfbench.log.segment import join_records
from kfbench.sources import Part
from kfbench.sources.log import Segment
from kfbench.whatif.rebatch import Batches, Batching, Divider, Sent, sent
from kfbench.whatif.tally import Run

NONE: Final = "none"
WHOLE_BYTES: Final = 2 << 20
"""A file up to this size is the sample. The size is that of v2 with one record per batch."""
SAMPLE_BYTES: Final = 1 << 20
"""The size of the sample of a larger file."""
SAMPLE_PLACES: Final = 4
LINGERS_MS: Final = (0, 1, 2, 5, 10, 20, 50, 100, 200, 300, 500)
# More settings above 64 KiB and 128 KiB: there batches begin to need a second or third block of lz4 (64 KiB).
BATCH_SIZES: Final = tuple(size << 10 for size in (4, 8, 16, 32, 64, 72, 96, 128, 144, 256, 1024))
COARSE_LINGERS_MS: Final = (0, 2, 10, 50, 150, 500)
COARSE_SIZES: Final = tuple(size << 10 for size in (4, 16, 64, 72, 256, 1024))
"""The settings for the slow codec. In a large file of a log that is compressed in part, they are for the others."""

COARSEST_LINGERS_MS: Final = (0, 10, 500)
COARSEST_SIZES: Final = tuple(size << 10 for size in (4, 64, 1024))
"""The settings for the slow codec in such a file."""

DIVIDED_SIZES: Final = tuple(size << 10 for size in (4, 8, 16, 32, 64, 96, 128, 256, 512, 1024))
DIVISIONS: Final = tuple(product(LINGERS_MS, DIVIDED_SIZES))
"""The settings at which a topic's batches are counted: linger.ms and batch.size."""
MOST_VALUES: Final = 96
"""The numbers of batches are known at up to this many values of each setting."""
MOST_OF_SMALL: Final = 32
"""The bytes of a small sample are known at up to this many values of each setting."""
SMALL_BYTES: Final = 16 << 20
"""A sample is small if its size times the number of its different divisions into batches is at most this."""
LEAST_CHANGE: Final = 0.01
"""Settings between which the number of batches changes by less get none between them."""
SLOW: Final = "gzip"
"""A codec that takes most of the time. It is tried under fewer settings, unless the sample is small."""
REFERENCE: Final = "zstd"
"""The codec that others are compared with."""

Positive = Annotated[int, Meta(ge=1, le=(1 << 63) - 1)]
Rows = list[list[Positive]]


class Settings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Values of two settings of a producer. Tables have a row per linger.ms, with a number per batch.size."""

    linger_ms: Annotated[list[Annotated[int, Meta(ge=0, le=86_400_000)]], Meta(min_length=2)]
    batch_size_bytes: Annotated[list[Annotated[int, Meta(ge=1, lt=1 << 31)]], Meta(min_length=2)]

    @property
    def is_rising(self) -> bool:
        return all(axis == sorted({*axis}) for axis in (self.linger_ms, self.batch_size_bytes))

    @property
    def ends(self) -> tuple[tuple[int, int], tuple[int, int]]:
        """The lowest and the highest linger.ms and batch.size."""
        lingers_ms, sizes = self.linger_ms, self.batch_size_bytes
        return (lingers_ms[0], sizes[0]), (lingers_ms[-1], sizes[-1])

    def has(self, linger_ms: float, batch_size_bytes: int) -> bool:
        """Return True if two settings are not outside of the values."""
        is_inside = self.linger_ms[0] <= linger_ms <= self.linger_ms[-1]
        return is_inside and self.batch_size_bytes[0] <= batch_size_bytes <= self.batch_size_bytes[-1]

    def is_table(self, rows: Rows) -> bool:
        """Return True if the rows have a number for each pair of values."""
        return len(rows) == len(self.linger_ms) and {*map(len, rows)} == {len(self.batch_size_bytes)}


class Counts(Settings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The numbers of batches of some records."""

    records: Positive
    batches: Rows

    @property
    def is_complete(self) -> bool:
        return self.is_rising and self.is_table(self.batches) and max(map(max, self.batches)) <= self.records


class GridArm(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The bytes of the sample in one format and codec."""

    format: str
    codec: str
    size_bytes: Rows


class Grid(Settings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The bytes of the sample in several formats and codecs."""

    arms: list[GridArm]

    @property
    def is_complete(self) -> bool:
        return self.is_rising and all(self.is_table(arm.size_bytes) for arm in self.arms)


class SampleSizes(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A sample of a topic in the batches of producers with many settings.

    Args:
        counts: numbers of batches. They have the most settings.
        fast: bytes without a codec, and under all codecs but the slow one.
        slow: bytes under the slow codec.
    """

    counts: Counts
    fast: Grid
    slow: Grid

    @property
    def grids(self) -> tuple[Grid, Grid]:
        return self.fast, self.slow

    @property
    def is_complete(self) -> bool:
        """True if each table is complete, and the grids do not reach beyond the counts."""
        tables = self.counts, *self.grids
        return all(table.is_complete for table in tables) and len({table.ends for table in tables}) == 1


Arms = list[tuple[str, str]]


class _Plan(NamedTuple):
    """The points of a grid, and the pairs of format and codec that are measured at each of them."""

    linger_ms: Sequence[int]
    batch_sizes: Sequence[int]
    arms: Arms


def arms_of(formats: Sequence[str]) -> tuple[Arms, Arms]:
    """Return the pairs of format and codec of the grids `fast` and `slow` of `SampleSizes`."""
    arms = [(name, codec) for name in formats for codec in CODECS if codec in FORMATS[name].capabilities.codecs]
    return [arm for arm in arms if arm[1] != SLOW], [arm for arm in arms if arm[1] == SLOW]


def measured(
    parts: Sequence[Part], formats: Sequence[str], run: Run = map, *, is_coarse: bool = False
) -> SampleSizes | None:
    """Measure a sample of a topic's largest file under many settings. None: nothing could be read.

    Args:
        parts: the topic's files, or shares of them.
        formats: the formats whose sizes are measured, v2 among them.
        run: calls the codecs. It works like `map`.
        is_coarse: True for fewer settings, unless the file is small.
    """
    segments = [replace(part, start=0, end=None) for part in parts if isinstance(part, Segment)]
    sample = sample_of(max(segments, key=lambda segment: segment.size_bytes))
    if sample is None:
        return None
    divided = _SampleBatches(sample.sent)
    fast, slow = (_grid(plan, divided, run) for plan in divided.plans(formats, is_coarse and not sample.is_whole_file))
    return SampleSizes(counts=divided.counts, fast=fast, slow=slow)


def topic_counts(batches: Mapping[Batching, int], records: int) -> Counts | None:
    """Return the numbers of batches at DIVISIONS as a table. None: no record was divided."""
    return _counts(LINGERS_MS, DIVIDED_SIZES, records, batches.__getitem__) if records else None


def _counts(
    lingers_ms: Sequence[int], sizes: Sequence[int], records: int, batches: Callable[[Batching], int]
) -> Counts:
    return Counts(
        linger_ms=[*lingers_ms],
        batch_size_bytes=[*sizes],
        records=records,
        batches=[[batches(Batching(linger_ms, size)) for size in sizes] for linger_ms in lingers_ms],
    )


class Sample(NamedTuple):
    """Records of a file. is_whole_file: True if no others can be read."""

    sent: Sent
    is_whole_file: bool


def sample_of(segment: Segment) -> Sample | None:
    """Return all records of a file up to WHOLE_BYTES, or SAMPLE_BYTES of a larger one. None: nothing can be read.

    The sample has as many bytes from each of several places of a large file. If batches are too large for that, it has
    the first records.
    """
    first = _first(segment, WHOLE_BYTES)
    if first is None or first.is_all:
        return Sample(first.sent, True) if first else None
    starts = [segment.size_bytes * i // SAMPLE_PLACES for i in range(SAMPLE_PLACES)]
    places = [_first(replace(segment, start=start), SAMPLE_BYTES // SAMPLE_PLACES) for start in starts]
    found = _joined([place.sent for place in places if place])
    has_all = all(places) and (np.diff(found.records.offsets) > 0).all()
    return Sample(found if has_all else first.up_to(SAMPLE_BYTES), False)


class _First(NamedTuple):
    """The first records of a file or share.

    Args:
        ends: the sum of sizes up to each record, in v2 with one record per batch; int64[records].
        is_all: True if there are no others.
    """

    sent: Sent
    ends: Int64
    is_all: bool

    def up_to(self, most_bytes: int) -> Sent:
        """Return the first records up to a size; at least one."""
        return self.sent.at(np.arange(max(int(np.searchsorted(self.ends, most_bytes)), 1)))


def _first(segment: Segment, most_bytes: int) -> _First | None:
    """Return the first records, up to a size; at least one. None: nothing can be read."""
    pieces, sizes, total_bytes = list[Sent](), list[Int64](), 0
    try:
        for chunk in segment.chunks():
            piece = sent(chunk.records, chunk.bounds, chunk.fields, chunk.partitions)
            if len(piece.records):
                pieces.append(piece)
                sizes.append(FORMATS[BASE_FORMAT].size(piece.records, 1))
                total_bytes += int(sizes[-1].sum())
            if total_bytes > most_bytes:
                break
    except (KfbenchError, OSError):
        pass  # `tally` reports it
    if not pieces:
        return None
    found = _First(_joined(pieces), np.cumsum(np.concatenate(sizes)), True)
    return found if total_bytes <= most_bytes else found._replace(sent=found.up_to(most_bytes), is_all=False)


def _joined(pieces: Sequence[Sent]) -> Sent:
    return Sent(join_records([piece.records for piece in pieces]), np.concatenate([piece.owners for piece in pieces]))


class _SampleBatches:
    """A sample in the batches of each pair of settings."""

    def __init__(self, sample: Sent) -> None:
        self._divider = Divider(sample)

    def bounds(self, linger_ms: int, batch_size_bytes: int) -> Int64:
        return self._divider.bounds(Batching(linger_ms, batch_size_bytes))

    def batches(self, bounds: Int64) -> Batches:
        return self._divider.sent.batched(bounds)

    def _count(self, linger_ms: int, batch_size_bytes: int) -> int:
        return self._divider.count(Batching(linger_ms, batch_size_bytes))

    @cached_property
    def counts(self) -> Counts:
        """The numbers of batches, at the settings where they change."""
        return _counts(*self._axes(MOST_VALUES), len(self._divider.sent.records), self._divider.count)

    def plans(self, formats: Sequence[str], is_coarse: bool) -> tuple[_Plan, _Plan]:
        """Return the plans of the grids `fast` and `slow`. A small sample gets more settings, where batches change."""
        fast, slow = arms_of(formats)
        coarse = _Plan(COARSE_LINGERS_MS, COARSE_SIZES, slow)
        if is_coarse:
            return coarse._replace(arms=fast), _Plan(COARSEST_LINGERS_MS, COARSEST_SIZES, slow)
        lingers_ms, sizes = self._axes(MOST_OF_SMALL)
        divisions = {self.bounds(*pair).tobytes() for pair in product(lingers_ms, sizes)}
        if len(divisions) * int(FORMATS[BASE_FORMAT].size(self._divider.sent.records, 1).sum()) > SMALL_BYTES:
            return _Plan(LINGERS_MS, BATCH_SIZES, fast), coarse
        return _Plan(lingers_ms, sizes, fast), _Plan(lingers_ms, sizes, slow)

    def _axes(self, most: int) -> tuple[list[int], list[int]]:
        lingers_ms = self._refined(
            LINGERS_MS, most, lambda linger_ms: [self._count(linger_ms, size) for size in BATCH_SIZES]
        )
        sizes = self._refined(
            BATCH_SIZES, most, lambda size: [self._count(linger_ms, size) for linger_ms in LINGERS_MS]
        )
        return lingers_ms, sizes

    def _refined(self, values: Sequence[int], most: int, counts: Callable[[int], list[int]]) -> list[int]:
        """Add values of a setting between the given ones, first where the numbers of batches change most.

        Args:
            values: the given values, rising.
            most: the largest number of values.
            counts: returns the numbers of batches at a value, for several values of the other setting.
        """
        found: dict[int, Int64] = {value: np.array(counts(value)) for value in values}

        def steps(pairs: Iterable[tuple[int, int]]) -> Iterator[tuple[float, int, int]]:
            for low, high in pairs:
                change = float(np.abs(np.log(found[high] / found[low])).max())
                if high - low > max(1, low // 500) and change > LEAST_CHANGE:
                    yield -change, low, high

        waiting = [*steps(pairwise(values))]
        heapify(waiting)
        while waiting and len(found) < most:
            _, low, high = heappop(waiting)
            middle = round(sqrt((low + 1) * (high + 1))) - 1
            found[middle] = np.array(counts(middle))
            for step in steps([(low, middle), (middle, high)]):
                heappush(waiting, step)
        return sorted(found)


def _grid(plan: _Plan, divided: _SampleBatches, run: Run) -> Grid:
    """Measure the points of a grid. Points with the same batches are measured once."""
    points = [divided.bounds(*pair) for pair in product(plan.linger_ms, plan.batch_sizes)]
    different = {bounds.tobytes(): divided.batches(bounds) for bounds in points}
    sizes = iter(run(_size, [(batches, *arm) for batches in different.values() for arm in plan.arms]))
    found = {division: {arm: next(sizes) for arm in plan.arms} for division in different}

    def rows(arm: tuple[str, str]) -> Rows:
        numbers = iter([found[bounds.tobytes()][arm] for bounds in points])
        return [[next(numbers) for _ in plan.batch_sizes] for _ in plan.linger_ms]

    return Grid(
        linger_ms=[*plan.linger_ms],
        batch_size_bytes=[*plan.batch_sizes],
        arms=[GridArm(format=arm[0], codec=arm[1], size_bytes=rows(arm)) for arm in plan.arms],
    )


def _size(job: tuple[Batches, str, str]) -> int:
    """Return the bytes of batches in a format and codec."""
    batches, name, codec = job
    if codec == NONE:
        return int(FORMATS[name].size(*batches).sum())
    records, bounds, fields = batches
    return int(FORMATS[name].encode(records, bounds, codec, None, fields, lossy=True).positions[-1])
