"""Write the distributions of a topic for its fingerprint: buckets with few members are merged with their neighbours."""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from kfbench.arrays import Int64
from kfbench.errors import InvalidConfig
from kfbench.fingerprint.counted import Counted, HashSample, codes_of, edges_of
from kfbench.fingerprint.distributions import STEPS, Classes, Distributions, HeaderSums, Positions
from kfbench.workloads.fingerprinted import parts
from kfbench.workloads.fingerprinted.parts import (
    HEADER_VALUE_POSITIONS,
    MOST_CLASSES,
    SMALLEST_LEAST_MEMBERS,
    Bucket,
    BytePosition,
    HeaderPosition,
    Histogram,
    RecordClass,
)

DIGITS: Final = 3
MOST_MERGED: Final = 4_096  # classes that are merged one by one; if there are more, buckets are made wider first
MOST_LEAST_MEMBERS: Final = 1_000_000
CLASS_SUMS: Final = (
    "records", "key_bytes", "value_bytes", "headers", "header_key_bytes", "header_value_bytes", "null_header_values",
    "null_keys", "null_values",
)  # fmt: skip


def check_least_members(k: int) -> int:
    """Return k. Raises InvalidConfig if it is out of range."""
    if not SMALLEST_LEAST_MEMBERS <= k <= MOST_LEAST_MEMBERS:
        raise InvalidConfig(f"least_members: {k} is not {SMALLEST_LEAST_MEMBERS} to {MOST_LEAST_MEMBERS:,}")
    return k


def rounded(number: int) -> int:
    """Round a number to DIGITS significant digits."""
    return int(float(f"{number:.{DIGITS - 1}e}"))


def stored_distributions(found: Distributions, k: int) -> parts.Distributions | None:
    """Return the part of the file, with at least k members per bucket. None: the topic has fewer than k records."""
    if found.records < k:
        return None
    return parts.Distributions(
        least_members=k,
        records=found.records,
        classes=_classes(found.classes, k),
        records_per_batch=_histogram(found.per_batch, k),
        **{name: _histogram(found.steps[name], k, is_rounded=True) for name in STEPS},
        untimed_records=found.untimed,
        records_per_producer=_of_sample(found.producers, k),
        producerless_records=found.producerless,
        records_per_key=_of_sample(found.keys, k),
        key_share=found.keys.share,
        same_keys=_share(found.same_keys, found.compared_keys, k),
        keys=_byte_positions(found.key_bytes, k),
        values=_byte_positions(found.value_bytes, k),
        headers=_header_positions(found, k),
    )


def _share(part: int, whole: int, k: int) -> float:
    """Return a share of at least k records; 0 for fewer."""
    return round(part / whole, 2) if whole >= k else 0.0


def _of_sample(found: HashSample, k: int) -> Histogram:
    """Return how often items appear. Numbers of items are scaled from the sample to all items."""
    counted = Counted.of(codes_of(found.counts), found.counts)
    return _histogram(counted, k, scale=1 << found.level)


def _histogram(counted: Counted, k: int, is_rounded: bool = False, scale: int = 1) -> Histogram:
    rows = [(code, code, *sums) for code, sums in zip(counted.codes.tolist(), counted.sums.tolist(), strict=True)]
    while len(rows) > 1 and (least := min(row[2] for row in rows)) < k:
        at = next(i for i, row in enumerate(rows) if row[2] == least)
        other = _nearest(rows, at)
        first, second = sorted((at, other))
        one, two = rows[first], rows[second]
        rows[first : second + 1] = [(one[0], two[1], one[2] + two[2], one[3] + two[3])]
    members, total = sum(row[2] for row in rows), sum(row[3] for row in rows)
    if members < k:
        return Histogram(members=members, sum=0 if is_rounded else total * scale, buckets=())
    stored = rounded if is_rounded else lambda number: number
    return Histogram(
        members=members * scale,
        sum=stored(total * scale),
        buckets=tuple(
            Bucket(
                least=edges_of(first).least, most=edges_of(last).most, members=count * scale, sum=stored(sum_ * scale)
            )
            for first, last, count, sum_ in rows
        ),
    )


def _nearest(rows: list[tuple[int, ...]], at: int) -> int:
    """Return the index of the nearer neighbour in codes; of two equally near ones, that with fewer members."""
    beside = [i for i in (at - 1, at + 1) if 0 <= i < len(rows)]
    return min(beside, key=lambda i: (rows[max(i, at)][0] - rows[min(i, at)][1], rows[i][2]))


def _classes(found: Classes, k: int) -> tuple[RecordClass, ...]:
    while len(found.counted.codes) > MOST_MERGED:
        found = found.coarser()
    places = found.fields().astype(np.float64)
    records = found.counted.sums[:, :1]
    sums = np.column_stack([found.counted.sums, records * (places[:, :2] == 0)])
    rows = _merged(places, sums, k).tolist()
    return tuple(RecordClass(**dict(zip(CLASS_SUMS, row, strict=True))) for row in rows)


def _merged(places: NDArray[np.float64], sums: Int64, k: int) -> Int64:
    """Merge the smallest class with its nearest until all have k records, and there are at most MOST_CLASSES.

    places: float64[classes, 4]. The place of a merged class is the mean of its records' places.
    """
    places, sums = places.copy(), sums.copy()
    left = np.ones(len(sums), np.bool_)
    records = sums[:, 0].astype(np.float64)
    for count in range(len(sums), 1, -1):
        smallest = int(records.argmin())
        if records[smallest] >= k and count <= MOST_CLASSES:
            break
        distance = np.abs(places - places[smallest]).sum(axis=1)
        distance[~left] = np.inf
        distance[smallest] = np.inf
        other = int(distance.argmin())
        weights = sums[[smallest, other], 0]
        places[other] = (places[[smallest, other]] * weights[:, None]).sum(axis=0) / weights.sum()
        sums[other] += sums[smallest]
        records[other], records[smallest], left[smallest] = sums[other, 0], np.inf, False
    return sums[left]


def _byte_positions(found: Positions, k: int) -> tuple[BytePosition, ...]:
    """Return the positions that k records of the sample reach."""
    rows = []
    for counts, compared, same in zip(found.counts, found.compared.tolist(), found.same.tolist(), strict=True):
        if counts.sum() < k:
            break
        shares = counts[counts > 0] / counts.sum()
        bits = round(float(-(shares * np.log2(shares)).sum()), 2)
        rows.append(BytePosition(entropy_bits=abs(bits), same=_share(same, compared, k)))
    return tuple(rows)


def _header_positions(found: Distributions, k: int) -> tuple[HeaderPosition, ...]:
    rows = []
    for place, each in enumerate(map(HeaderSums._make, found.headers.T.tolist())):
        if each.headers < k:
            break
        rows.append(
            HeaderPosition(
                key_bytes=round(each.key_bytes / each.headers, 1),
                value_bytes=round(each.value_bytes / each.headers, 1),
                same_key=_share(each.same_key, each.compared, k),
                same_value=_share(each.same_value, each.compared, k),
                values=_byte_positions(found.header_values[place], k)[:HEADER_VALUE_POSITIONS],
            )
        )
    return tuple(rows)
