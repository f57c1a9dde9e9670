"""Compress a sample of a topic in the batches of many producers' settings.

Sizes under other settings are interpolated between these (see `between`).
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from hashlib import blake2b
from itertools import pairwise, product
from math import log, sqrt
from typing import Annotated, Final, NamedTuple

import numpy as np
from msgspec import Meta, Struct

from kfbench.arrays import Int64
from kfbench.codecs import CODECS
from kfbench.errors import KfbenchError
from kfbench.formats import BASE_FORMAT, FORMATS
from kfbench.log.segment import join_records
from kfbench.sources.log import Segment
from kfbench.whatif.rebatch import Batches, Batching, Divider, Sent, sent
from kfbench.whatif.tally import Run

NONE: Final = "none"
WHOLE_BYTES: Final = 32 << 20
"""In a log that is compressed as a whole, a topic up to this size is its own sample. The size is that of v2 with one
record per batch.
"""
WHOLE_BYTES_OF_PART: Final = 2 << 20
"""The same in a log that is compressed in part."""
SAMPLE_BYTES: Final = 1 << 20
"""The size of the sample of a larger topic."""
SAMPLE_PLACES: Final = 4
LINGERS_MS: Final = (0, 1, 2, 5, 10, 20, 50, 100, 200, 300, 500)
# More settings above 64 KiB and 128 KiB: there batches begin to need a second or third block of lz4 (64 KiB).
BATCH_SIZES: Final = tuple(size << 10 for size in (4, 8, 16, 32, 64, 72, 96, 128, 144, 256, 1024))
COARSE_LINGERS_MS: Final = (0, 2, 10, 50, 150, 500)
COARSE_SIZES: Final = tuple(size << 10 for size in (4, 16, 64, 72, 256, 1024))
"""The settings for the slow codec. In a large topic of a log that is compressed in part, they are for the others."""

COARSEST_LINGERS_MS: Final = (0, 10, 500)
COARSEST_SIZES: Final = tuple(size << 10 for size in (4, 64, 1024))
"""The settings for the slow codec in such a topic."""

COUNTED_SIZES: Final = tuple(size << 10 for size in (4, 8, 16, 32, 64, 96, 128, 256, 512, 1024))
COUNTED: Final = tuple(product(LINGERS_MS, COUNTED_SIZES))
"""The settings at which a topic's batches are counted: linger.ms and batch.size."""
MOST_VALUES: Final = 128
"""Tables of a sample that is the topic have up to this many values of each setting."""
MOST_COUNTED: Final = 48
"""The numbers of batches of a sample that is a part are known at up to this many values of each setting."""
SMALL_BYTES: Final = 16 << 20
"""A sample gets further settings until all its divisions into batches together have this size."""
SMALLEST_BYTES: Final = 32 << 10
"""Smaller samples count as this size."""
SMALL_BYTES_OF_ALL: Final = 64 << 20
"""If there are more topics, they share this size equally."""
LEAST_CHANGE: Final = 0.01
"""Settings between which a number changes by less get none between them."""
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
    """The bytes of the sample in one format and codec, for each division into batches."""

    format: str
    codec: str
    size_bytes: list[Positive]


class Grid(Settings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The bytes of the sample in several formats and codecs.

    divisions: the number of each pair's division into batches. Pairs with the same batches have the same number.
    """

    divisions: Rows
    arms: list[GridArm]

    @property
    def is_complete(self) -> bool:
        numbers = {number for row in self.divisions for number in row}
        has_all = numbers == {*range(1, len(numbers) + 1)} and self.is_table(self.divisions)
        return self.is_rising and has_all and all(len(arm.size_bytes) == len(numbers) for arm in self.arms)


class SampleSizes(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A sample of a topic in the batches of producers with many settings.

    Args:
        counts: numbers of batches.
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
Pair = tuple[int, int]
"""A linger.ms and a batch.size."""


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
    files: Sequence[Segment],
    formats: Sequence[str],
    run: Run,
    advance: Callable[[float], None],
    *,
    topics: int,
    is_part: bool,
) -> SampleSizes | None:
    """Measure a sample of a topic under many settings. None: nothing could be read.

    Args:
        files: the topic's files.
        formats: the formats whose sizes are measured, v2 among them.
        run: calls the codecs. It works like `map`.
        advance: called with the share of each division into batches. The sum is above 1 if there are further settings.
        topics: the number of topics of the log.
        is_part: True if the log is compressed in part. Then a large topic gets fewer settings.
    """
    sample = sample_of(files, WHOLE_BYTES_OF_PART if is_part else WHOLE_BYTES)
    if sample is None:
        return None
    is_coarse = is_part and not sample.is_whole
    plans = _plans(formats, is_coarse)
    points = sum(len(plan.linger_ms) * len(plan.batch_sizes) for plan in plans)
    divided = _Divided(sample.sent, run, lambda: advance(1 / points))
    if not is_coarse:
        plans = _refined_plans(divided, plans, min(SMALL_BYTES, SMALL_BYTES_OF_ALL // topics))
    fast, slow = map(divided.grid, plans)
    return SampleSizes(counts=divided.counts(MOST_VALUES if sample.is_whole else MOST_COUNTED), fast=fast, slow=slow)


def topic_counts(batches: Mapping[Batching, int], records: int) -> Counts | None:
    """Return the numbers of batches at COUNTED as a table. None: no record was divided."""
    if not records:
        return None
    rows = [[batches[Batching(linger_ms, size)] for size in COUNTED_SIZES] for linger_ms in LINGERS_MS]
    return Counts(linger_ms=[*LINGERS_MS], batch_size_bytes=[*COUNTED_SIZES], records=records, batches=rows)


class Sample(NamedTuple):
    """Records of a topic. is_whole: True if no others can be read."""

    sent: Sent
    is_whole: bool


def sample_of(files: Sequence[Segment], whole_bytes: int) -> Sample | None:
    """Return all records of a topic up to `whole_bytes`, or SAMPLE_BYTES of a larger one. None: nothing can be read.

    The sample has as many bytes from each of several places of the largest file that can be read. If batches are too
    large for that, it has the first records.
    """
    if whole := _whole(files, whole_bytes):
        return Sample(whole, True)
    for file in sorted(files, key=lambda file: -file.size_bytes):
        if part := _part_of(file):
            return Sample(part, False)
    return None


def _part_of(file: Segment) -> Sent | None:
    """Return the sample of a large file. None: nothing can be read."""
    starts = [file.size_bytes * i // SAMPLE_PLACES for i in range(SAMPLE_PLACES)]
    places = [_first(replace(file, start=start), SAMPLE_BYTES // SAMPLE_PLACES) for start in starts]
    if all(places):
        found = _joined([place.sent for place in places if place])
        if (np.diff(found.records.offsets) > 0).all():
            return found
    first = _first(file, SAMPLE_BYTES)
    return first.sent if first else None


def _whole(files: Sequence[Segment], most_bytes: int) -> Sent | None:
    """Return all records, unless they have more than `most_bytes` bytes. No batch has records of two files."""
    if sum(file.size_bytes for file in files) > most_bytes:  # records never take fewer bytes as single batches
        return None
    pieces = list[Sent]()
    for number, file in enumerate(files):
        if first := _first(file, most_bytes):
            first.sent.owners["partition"] = number
            pieces.append(first.sent)
            most_bytes -= first.size_bytes
            if not first.is_all or most_bytes < 0:
                return None
    return _joined(pieces) if pieces else None


class _First(NamedTuple):
    """The first records of a file or share.

    Args:
        size_bytes: their size in v2 with one record per batch.
        is_all: True if there are no others.
    """

    sent: Sent
    size_bytes: int
    is_all: bool


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
    found = _joined(pieces)
    if total_bytes <= most_bytes:
        return _First(found, total_bytes, True)
    ends = np.cumsum(np.concatenate(sizes))
    count = max(int(np.searchsorted(ends, most_bytes)), 1)
    return _First(found.at(np.arange(count)), int(ends[count - 1]), False)


def _joined(pieces: Sequence[Sent]) -> Sent:
    return Sent(join_records([piece.records for piece in pieces]), np.concatenate([piece.owners for piece in pieces]))


class _Divided:
    """A sample in the batches of pairs of settings. Pairs with the same batches are measured once."""

    def __init__(self, sample: Sent, run: Run, advance: Callable[[], None]) -> None:
        self._divider, self._run, self._advance = Divider(sample), run, advance
        self._size_bytes = int(FORMATS[BASE_FORMAT].size(sample.records, 1).sum())
        self._known: dict[bytes, dict[tuple[str, str], int]] = {}

    @property
    def measured_bytes(self) -> int:
        """The bytes of all divisions that were measured. A smaller sample than SMALLEST_BYTES counts as these."""
        return len(self._known) * max(self._size_bytes, SMALLEST_BYTES)

    def counts(self, most: int) -> Counts:
        """Return the numbers of batches at up to `most` values of each setting, where they change."""

        def numbers(pairs: Iterable[Pair]) -> Int64:
            return np.array([[self._divider.count(Batching(*pair))] for pair in pairs])

        lingers_ms, sizes, batches = _refined(numbers, most)
        records = len(self._divider.sent.records)
        rows = batches[..., 0].tolist()
        return Counts(linger_ms=lingers_ms, batch_size_bytes=sizes, records=records, batches=rows)

    def sizes(self, pairs: Iterable[Pair], arms: Arms) -> Int64:
        """Return the bytes, int64[pairs, arms]."""
        return np.array([[self._known[key][arm] for arm in arms] for key in self._measured(pairs, arms)])

    def grid(self, plan: _Plan) -> Grid:
        """Measure the points of a grid."""
        keys = self._measured(product(plan.linger_ms, plan.batch_sizes), plan.arms)
        numbers = {key: number for number, key in enumerate(dict.fromkeys(keys), 1)}
        rows = np.array([numbers[key] for key in keys]).reshape(len(plan.linger_ms), -1).tolist()
        arms = [
            GridArm(format=arm[0], codec=arm[1], size_bytes=[self._known[key][arm] for key in numbers])
            for arm in plan.arms
        ]
        return Grid(linger_ms=[*plan.linger_ms], batch_size_bytes=[*plan.batch_sizes], divisions=rows, arms=arms)

    def _measured(self, pairs: Iterable[Pair], arms: Arms) -> list[bytes]:
        """Measure the divisions that are not known, and return the key of each pair's division in `_known`."""
        keys = list[bytes]()
        for pair in pairs:
            bounds = self._divider.bounds(Batching(*pair))
            keys.append(blake2b(bounds.tobytes(), digest_size=16).digest())
            known = self._known.setdefault(keys[-1], {})
            if arms[0] not in known:
                batches = self._divider.sent.batched(bounds)
                sizes = self._run(_size, [(batches, *arm) for arm in arms])
                known.update(zip(arms, sizes, strict=True))
                self._advance()
        return keys


def _plans(formats: Sequence[str], is_coarse: bool) -> tuple[_Plan, _Plan]:
    """Return the plans of the grids `fast` and `slow`."""
    fast, slow = arms_of(formats)
    coarse = _Plan(COARSE_LINGERS_MS, COARSE_SIZES, slow)
    if is_coarse:
        return coarse._replace(arms=fast), _Plan(COARSEST_LINGERS_MS, COARSEST_SIZES, slow)
    return _Plan(LINGERS_MS, BATCH_SIZES, fast), coarse


def _refined_plans(divided: _Divided, plans: tuple[_Plan, _Plan], most_bytes: int) -> tuple[_Plan, _Plan]:
    """Add settings where the bytes change, until all divisions have `most_bytes` bytes.

    The slow codec gets them too if they end before.
    """
    fast, slow = plans

    def is_small() -> bool:
        return divided.measured_bytes < most_bytes

    lingers_ms, sizes, _ = _refined(lambda pairs: divided.sizes(pairs, fast.arms), MOST_VALUES, is_small)
    fast = _Plan(lingers_ms, sizes, fast.arms)
    return fast, fast._replace(arms=slow.arms) if is_small() else slow


def _refined(
    numbers: Callable[[Iterable[Pair]], Int64], most: int, is_wanted: Callable[[], bool] = lambda: True
) -> tuple[list[int], list[int], Int64]:
    """Add values to LINGERS_MS and BATCH_SIZES, first where numbers change most.

    Return both, and the table of numbers, int64[linger.ms, batch.size, k].

    Args:
        numbers: returns k numbers for each pair of linger.ms and batch.size, int64[pairs, k].
        most: the largest number of values of each setting.
        is_wanted: returns False if there are values enough.
    """
    axes = [*LINGERS_MS], [*BATCH_SIZES]
    table = numbers(product(*axes)).reshape(len(LINGERS_MS), len(BATCH_SIZES), -1)
    while is_wanted():
        places = [each for axis in (0, 1) if len(axes[axis]) < most for each in _places(table, axis, axes[axis])]
        if not places:
            break
        best = max(places)
        axes[best.axis].insert(best.at, best.value)
        lingers_ms, sizes = ([best.value] if axis == best.axis else axes[axis] for axis in (0, 1))
        table = np.insert(table, best.at, numbers(product(lingers_ms, sizes)), best.axis)
    return *axes, table


class _Place(NamedTuple):
    """Where a value can be inserted.

    Args:
        worth: how much the numbers change there, times the distance of the values. Both are logarithms.
        axis: 0 for linger.ms, 1 for batch.size.
    """

    worth: float
    axis: int
    at: int
    value: int


def _places(table: Int64, axis: int, values: Sequence[int]) -> Iterator[_Place]:
    changes = np.abs(np.diff(np.log(table), axis=axis)).max(axis=(1 - axis, 2)).tolist()
    for i, (low, high) in enumerate(pairwise(values)):
        if changes[i] > LEAST_CHANGE and high - low > max(1, low // 1000):
            middle = round(sqrt((low + 1) * (high + 1))) - 1
            yield _Place(changes[i] * log((high + 1) / (low + 1)), axis, i + 1, middle)


def _size(job: tuple[Batches, str, str]) -> int:
    """Return the bytes of batches in a format and codec."""
    batches, name, codec = job
    if codec == NONE:
        return int(FORMATS[name].size(*batches).sum())
    records, bounds, fields = batches
    return int(FORMATS[name].encode(records, bounds, codec, None, fields, lossy=True).positions[-1])
