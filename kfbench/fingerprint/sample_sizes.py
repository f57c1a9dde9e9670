"""Compress the sample of a topic in the batches of many producers' settings."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from itertools import pairwise, product
from math import log, sqrt
from typing import Final, NamedTuple

import numpy as np

from kfbench.arrays import Int64
from kfbench.fingerprint.grid import LEAST_CHANGE, NONE, Arms, Counts, Grid, GridArm, SampleSizes, arms_of
from kfbench.fingerprint.sample import sample_of
from kfbench.formats import BASE_FORMAT, FORMATS
from kfbench.sources.log import Segment
from kfbench.sources.time_columns import Unit
from kfbench.whatif.rebatch import Batches, Batching, Divider, Sent
from kfbench.whatif.tally import Run

WHOLE_BYTES: Final = 32 << 20
"""In a log that is compressed as a whole, a topic up to this size is its own sample. The size is that of v2 with one
record per batch.
"""
WHOLE_BYTES_OF_PART: Final = 2 << 20
"""The same in a log that is compressed in part."""
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

Pair = tuple[int, int]
"""A linger.ms and a batch.size."""


class _Plan(NamedTuple):
    """The points of a grid, and the pairs of format and codec that are measured at each of them."""

    linger_ms: Sequence[int]
    batch_sizes: Sequence[int]
    arms: Arms


def measured(
    files: Sequence[Segment],
    formats: Sequence[str],
    run: Run,
    advance: Callable[[float], None],
    *,
    topics: int,
    is_part: bool,
    unit: Unit | None = None,
) -> SampleSizes | None:
    """Measure a sample of a topic under many settings. None: nothing could be read.

    Args:
        files: the topic's files.
        formats: the formats whose sizes are measured, v2 among them.
        run: calls the codecs. It works like `map`.
        advance: called with the share of each division into batches. The sum is above 1 if there are further settings.
        topics: the number of topics of the log.
        is_part: True if the log is compressed in part. Then a large topic gets fewer settings.
        unit: the unit of timestamps; None: the sample tells it.
    """
    sample = sample_of(files, WHOLE_BYTES_OF_PART if is_part else WHOLE_BYTES, unit)
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


class _Divided:
    """A sample in the batches of pairs of settings. Pairs with the same batches are measured once."""

    def __init__(self, sample: Sent, run: Run, advance: Callable[[], None]) -> None:
        self._divider, self._run, self._advance = Divider(sample), run, advance
        self._size_bytes = int(FORMATS[BASE_FORMAT].size(sample.records, 1).sum())
        self._keys: dict[Pair, bytes] = {}
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
            if pair not in self._keys:
                bounds = self._divider.bounds(Batching(*pair))
                self._keys[pair] = blake2b(bounds.tobytes(), digest_size=16).digest()
            keys.append(self._keys[pair])
            known = self._known.setdefault(keys[-1], {})
            if arms[0] not in known:
                batches = self._divider.sent.batched(self._divider.bounds(Batching(*pair)))
                known.update(zip(arms, self._run(_size, [(batches, *arm) for arm in arms]), strict=True))
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
    """A new value of a setting, between two values of a table.

    Args:
        worth: how much the numbers change between the two, times their distance. Both are logarithms.
        axis: 0 for linger.ms, 1 for batch.size.
        at: the value's index on the axis.
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
