"""Histograms of a topic's records. No bucket has fewer members than a given number.

A bucket is at least an eighth of an octave wide: 8, 9, …, 16 to 17, 18 to 19, …, 1,024 to 1,151. Its code is a small
integer.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from kfbench.arrays import Int64
from kfbench.errors import KfbenchError
from kfbench.sources import Chunk, Part
from kfbench.sources.time_columns import Unit
from kfbench.whatif.rebatch import LATEST_MS, sent_records
from kfbench.whatif.record_times import TimeReader
from kfbench.whatif.stretches import without_dictionaries

HISTOGRAMS: Final = (
    "record_bytes", "key_bytes", "value_bytes", "headers", "header_bytes", "records_per_batch", "time_steps_ms",
)  # fmt: skip
FIRST_DATE_MS: Final = 10**12
"""September 2001. A step or a span from an earlier time, such as 0, would tell the date of the others."""
LONGEST_STEP_MS: Final = 1 << 32  # about 50 days; longer steps are counted as this one
_FRACTION_BITS: Final = 49  # of a float64, without the three that number the eighths of an octave
_ONE: Final = 1023 << 3  # the exponent of 1.0, followed by these three bits

Counts = Counter[tuple[str, int]]
"""Number of members, by the name of a histogram and the code of a bucket."""


class Bucket(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The number of values from `least` to `most`. Of a length, -1 stands for null."""

    least: int
    most: int
    members: int


def count_values(part: Part, unit: Unit | None = None) -> Counts:
    """Count the values of the records that clients sent. What cannot be read is left out.

    unit: the unit of timestamps; None: they tell it.
    """
    found: Counts = Counter()
    reader = TimeReader(unit)
    try:
        for chunk in part.chunks():
            for name, numbers in _values(without_dictionaries(chunk).chunk, reader):
                codes, members = np.unique(codes_of(numbers), return_counts=True)
                found.update({(name, code): n for code, n in zip(codes.tolist(), members.tolist(), strict=True)})
    except (KfbenchError, OSError):
        pass  # what-if reports it
    return found


def _values(chunk: Chunk, reader: TimeReader) -> Iterator[tuple[str, NDArray[Any]]]:
    """Yield the name and the values of each histogram."""
    if chunk.bounds is not None:
        batches = len(chunk.bounds) - 1
        control = np.broadcast_to(chunk.fields.over(batches)["is_control"], batches)
        yield "records_per_batch", np.diff(chunk.bounds)[~control]
    of_clients = reader.read(sent_records(chunk.records, chunk.bounds, chunk.fields), chunk.is_ms)
    shapes, times_ms = of_clients.records.shapes, of_clients.owners["time_ms"]
    header_bytes = np.zeros(len(shapes), np.int64)
    if shapes.has_headers:
        lengths = shapes.header_key_lengths.astype(np.int64) + np.maximum(shapes.header_value_lengths, 0)
        header_bytes = np.diff(np.append(0, np.cumsum(lengths))[shapes.header_bounds])
    of_payload = np.maximum(shapes.key_lengths, 0, dtype=np.int64) + np.maximum(shapes.value_lengths, 0)
    yield "record_bytes", of_payload + header_bytes
    yield "key_bytes", shapes.key_lengths
    yield "value_bytes", shapes.value_lengths
    yield "headers", np.diff(shapes.header_bounds)
    yield "header_bytes", header_bytes
    usable = (times_ms >= FIRST_DATE_MS) & (times_ms < LATEST_MS)
    steps = np.diff(times_ms)[usable[1:] & usable[:-1]]
    yield "time_steps_ms", np.clip(steps, -LONGEST_STEP_MS, LONGEST_STEP_MS)


def codes_of(numbers: NDArray[Any]) -> Int64:
    """Return the code of each number's bucket: 0 for 0, 1 for 1, and so on. Negative numbers have negative codes."""
    large = np.abs(numbers.astype(np.float64))
    codes: Int64 = (large.view(np.int64) >> _FRACTION_BITS) - (_ONE - 1)
    codes[large == 0] = 0
    return np.where(numbers < 0, -codes, codes)


def least_of(code: int) -> int:
    """Return the least number of a bucket. The largest is `least_of(code + 1) - 1`."""
    if code <= 0:
        return 1 - least_of(1 - code) if code else 0
    octave, eighth = divmod(code - 1, 8)
    return -(-((8 + eighth) << octave) // 8)


def merged_histograms(counts: Counts, k: int) -> dict[str, tuple[Bucket, ...]]:
    """Return histograms with at least k members per bucket. One with fewer members has no bucket."""
    return {
        name: _merge_buckets(sorted((c, n) for (of, c), n in counts.items() if of == name), k) for name in HISTOGRAMS
    }


class _BucketRun(NamedTuple):
    """Buckets that are joined: their first and last code, and the number of members."""

    first: int
    last: int
    members: int


def _merge_buckets(members: Sequence[tuple[int, int]], k: int) -> tuple[Bucket, ...]:
    """Join the bucket with the fewest members to its nearest neighbour, until each has k."""
    runs = [_BucketRun(code, code, n) for code, n in members]
    while len(runs) > 1 and (fewest := min(run.members for run in runs)) < k:
        at = next(i for i, run in enumerate(runs) if run.members == fewest)
        first, second = sorted((at, _nearest(runs, at)))
        one, two = runs[first], runs[second]
        runs[first : second + 1] = [_BucketRun(one.first, two.last, one.members + two.members)]
    return tuple(
        Bucket(least=least_of(run.first), most=least_of(run.last + 1) - 1, members=run.members)
        for run in runs
        if run.members >= k
    )


def _nearest(runs: Sequence[_BucketRun], at: int) -> int:
    """Return the index of the nearer neighbour in codes; of two equally near ones, that with fewer members."""
    beside = [i for i in (at - 1, at + 1) if 0 <= i < len(runs)]
    return min(beside, key=lambda i: (runs[max(i, at)].first - runs[min(i, at)].last, runs[i].members))
