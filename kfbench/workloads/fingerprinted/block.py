"""Draw the lengths, times, offsets, batches and keys of a block of 65,536 records from a topic's distributions."""

from functools import lru_cache
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kfbench.arrays import Int32, Int64
from kfbench.layouts import NO_TIMESTAMP, NULL_LENGTH
from kfbench.workloads.base.workload import BLOCK_RECORDS
from kfbench.workloads.fingerprinted.model import TopicModel
from kfbench.workloads.fingerprinted.parts import Distributions, Histogram

Units = NDArray[np.float64]
FIRST_MS: Final = 1_767_225_600_000  # 2026-01-01
WINDOW: Final = 64  # in a window of so many draws, each 64th of a distribution is drawn once
SPREAD: Final = 0.04
NAMES: Final = 8  # header keys at a position where they differ
SINGLE: Final = 1 << 40  # the first id of keys that appear once

(
    CLASSES, KEY_LENGTHS, VALUE_LENGTHS, KEY_NULLS, VALUE_NULLS, BATCHES, TIMES, BATCH_TIMES, GAPS, BATCH_GAPS, KEYS,
    SAME_KEYS, HEADER_COUNTS, HEADER_NULLS, PRODUCERS, HEADER_RUNS,
) = range(16)  # fmt: skip


class Block(NamedTuple):
    """The records of a block, without payload.

    bounds: the index of the first record of each batch, and the end. headers: int64[records + 1]. producers:
    int64[batches], -1 is none. name_ids, content_ids: header keys and values with the same id are equal.
    """

    times_ms: Int64
    offsets: Int64
    key_lengths: Int32
    value_lengths: Int32
    key_ids: Int64
    bounds: Int64
    producers: Int64
    headers: Int64
    name_lengths: Int32
    content_lengths: Int32
    name_ids: Int64
    content_ids: Int64


def _units(seed: int, block: int, purpose: int, n: int = BLOCK_RECORDS) -> Units:
    drawn = np.random.Generator(np.random.PCG64(np.random.SeedSequence([seed, block, purpose])))
    bits = drawn.integers(0, 2**53, n, dtype=np.int64)
    units: Units = (bits * 2.0**-53).astype(np.float64)
    return units


def _even(seed: int, block: int, purpose: int) -> Units:
    """Draw numbers from 0 to 1 so that WINDOW successive ones are spread evenly."""
    drawn = _units(seed, block, purpose, 2 * BLOCK_RECORDS).reshape(2, -1, WINDOW)
    ranks = drawn[0].argsort(axis=1).argsort(axis=1)
    units: Units = ((ranks + drawn[1]) / WINDOW).reshape(-1)
    return units


def _rounded(means: Units, units: Units) -> Int64:
    """Round up or down at random, so that the mean stays."""
    return np.floor(means + units).astype(np.int64)


def _pick(shares: Units, units: Units) -> Int64:
    until = np.cumsum(shares)
    return np.minimum(np.searchsorted(until / until[-1], units, side="right"), len(shares) - 1)


def _from(found: Histogram, units: Units, fraction: Units) -> Int64:
    """Draw from a histogram: the bucket by `units`, and its mean, rounded up or down."""
    if not found.buckets:
        return np.zeros(len(units), np.int64)
    members = np.array([each.members for each in found.buckets], np.float64)
    means = np.array([min(max(each.sum / each.members, each.least), each.most) for each in found.buckets])
    return _rounded(means[_pick(members, units)], fraction)


def _mean(found: Histogram) -> float:
    return found.sum / found.members if found.buckets and found.members else 0.0


@lru_cache(maxsize=4)
def block_of(model: TopicModel, seed: int, block: int) -> Block:
    """Return a block of the endless sequence of this seed."""
    found = model.distributions
    table = np.array(
        [
            (c.records, c.key_bytes, c.value_bytes, c.headers, c.null_keys, c.null_values, c.header_key_bytes,
             c.header_value_bytes, c.null_header_values)
            for c in found.classes
        ], np.float64,
    ).T  # fmt: skip
    records, key_bytes, value_bytes, headers, null_keys, null_values, *of_headers = table
    chosen = _pick(records, _even(seed, block, CLASSES))
    units = [_units(seed, block, purpose) for purpose in range(16)]
    keys = _lengths(records, key_bytes, null_keys, chosen, units[KEY_LENGTHS], units[KEY_NULLS])
    values = _lengths(records, value_bytes, null_values, chosen, units[VALUE_LENGTHS], units[VALUE_NULLS])
    bounds = _bounds(found.records_per_batch, seed, block, units[BATCHES])
    is_first = np.zeros(BLOCK_RECORDS, np.bool_)
    is_first[bounds[:-1]] = True
    counts = _rounded((headers / records)[chosen], units[HEADER_COUNTS])
    return Block(
        _times(found, is_first, block, units),
        _offsets(found, is_first, block, units),
        keys,
        values,
        _key_ids(found, block, units),
        bounds,
        _producers(found, len(bounds) - 1, units[PRODUCERS]),
        np.append(0, np.cumsum(counts)),
        *_headers(found, seed, block, counts, chosen, headers, *of_headers),
    )


def _lengths(records: Units, sums: Units, nulls: Units, chosen: Int64, units: Units, null_units: Units) -> Int32:
    """Draw lengths of each record's class. If the mean of a class is no whole number, its lengths vary a little."""
    means = sums / np.maximum(records - nulls, 1)
    spread = np.where((means == np.floor(means)) | (means < 16), 0.0, SPREAD)
    varied = means[chosen] * (1 + spread[chosen] * (2 * units - 1))
    lengths = _rounded(varied, (units * 4_093) % 1)
    lengths[null_units < (nulls / records)[chosen]] = NULL_LENGTH
    return lengths.astype(np.int32)


def _bounds(found: Histogram, seed: int, block: int, fraction: Units) -> Int64:
    """Return the bounds of batches. The last batch ends with the block."""
    if not found.buckets:
        mean = found.sum / found.members if found.members else 1.0
        sizes = _rounded(np.full(BLOCK_RECORDS, max(mean, 1.0)), fraction)
    else:
        sizes = _from(found, _even(seed, block, BATCHES), fraction)
    ends = np.cumsum(sizes[sizes > 0])
    if not len(ends):
        return np.array([0, BLOCK_RECORDS])
    return np.append(0, np.append(ends[ends < BLOCK_RECORDS], BLOCK_RECORDS))


def _times(found: Distributions, is_first: NDArray[np.bool_], block: int, units: list[Units]) -> Int64:
    if 2 * found.untimed_records > found.records:
        return np.full(BLOCK_RECORDS, NO_TIMESTAMP)
    inside = _from(found.time_steps_ms, units[TIMES], (units[TIMES] * 4_093) % 1)
    between = _from(found.batch_time_steps_ms, units[BATCH_TIMES], (units[BATCH_TIMES] * 4_093) % 1)
    batches = found.records_per_batch.members / max(found.records, 1)
    mean_ms = _mean(found.time_steps_ms) * (1 - batches) + _mean(found.batch_time_steps_ms) * batches
    first_ms = FIRST_MS + round(block * BLOCK_RECORDS * max(mean_ms, 0.0))
    times: Int64 = first_ms + np.cumsum(np.where(is_first, between, inside))
    return times


def _offsets(found: Distributions, is_first: NDArray[np.bool_], block: int, units: list[Units]) -> Int64:
    """Return offsets that rise. Gaps that do not fit between this block and the next one are left out."""
    inside = _from(found.offset_gaps, units[GAPS], (units[GAPS] * 4_093) % 1)
    between = _from(found.batch_offset_gaps, units[BATCH_GAPS], (units[BATCH_GAPS] * 4_093) % 1)
    gaps = np.maximum(np.where(is_first, between, inside), 0)
    mean = max(_mean(found.offset_gaps), _mean(found.batch_offset_gaps), 0.0)
    room = int(2 * mean * BLOCK_RECORDS) + (1 << 20)
    first = block * (BLOCK_RECORDS + room)
    offsets: Int64 = first + np.arange(BLOCK_RECORDS) + np.minimum(np.cumsum(gaps), room)
    return offsets


def _key_ids(found: Distributions, block: int, units: list[Units]) -> Int64:
    """Draw the key of each record: first how often it appears, then one of these keys."""
    histogram, numbers = found.records_per_key, block * BLOCK_RECORDS + np.arange(BLOCK_RECORDS)
    rows = [(each.members, each.sum, each.most) for each in histogram.buckets] or [
        (histogram.members, histogram.sum, 9)
    ]
    members, sums, most = np.array(rows, np.float64).T
    bucket = _pick(np.maximum(sums, 1e-9), units[KEYS])
    first = np.append(0, np.cumsum(members)[:-1])
    ids = (first[bucket] + np.floor(((units[KEYS] * 65_537) % 1) * members[bucket])).astype(np.int64)
    ids = np.where(most[bucket] == 1, SINGLE + numbers, ids)
    again = units[SAME_KEYS] < found.same_keys
    again[0] = False
    kept: Int64 = ids[np.maximum.accumulate(np.where(again, 0, np.arange(BLOCK_RECORDS)))]
    return kept


def _producers(found: Distributions, batches: int, units: Units) -> Int64:
    if 2 * found.producerless_records >= found.records:
        return np.full(batches, -1)
    return 1_000 + np.floor(units[:batches] * max(found.records_per_producer.members, 1)).astype(np.int64)


def _headers(
    found: Distributions, seed: int, block: int, counts: Int64, chosen: Int64, headers: Units, names: Units,
    contents: Units, nulls: Units,
) -> tuple[Int32, Int32, Int64, Int64]:  # fmt: skip
    """Draw header keys and values: int[headers] of lengths and ids. A key or value stays until it changes."""
    total = int(counts.sum())
    if not total:
        return np.zeros(0, np.int32), np.zeros(0, np.int32), np.zeros(0, np.int64), np.zeros(0, np.int64)
    record = np.repeat(np.arange(BLOCK_RECORDS), counts)
    place = np.arange(total) - np.repeat(np.cumsum(counts) - counts, counts)
    name_ids, content_ids = np.empty(total, np.int64), np.empty(total, np.int64)
    name_means, content_means = (
        each[chosen][record] / np.maximum(headers[chosen][record], 1) for each in (names, contents)
    )
    for p in range(int(place.max()) + 1):
        mine = np.flatnonzero(place == p)
        rows, at = record[mine], found.headers[min(p, len(found.headers) - 1)] if found.headers else None
        present = max(np.count_nonzero(np.isin(rows[1:] - 1, rows)) / max(len(rows) - 1, 1), 1e-9)
        same_name = min(at.same_key / present, 1.0) if at else 1.0
        same_content = min(at.same_value / present, 1.0) if at else 0.0
        run = _runs(seed, block, HEADER_RUNS + 2 * p, same_name)[rows]
        name_ids[mine] = p if same_name > 0.99 else p + 1_000 * (1 + run % NAMES)
        run = _runs(seed, block, HEADER_RUNS + 2 * p + 1, same_content)[rows]
        content_ids[mine] = p if same_content > 0.99 else (run + block * BLOCK_RECORDS) * 64 + p % 64
        if at:
            name_means[mine], content_means[mine] = at.key_bytes, at.value_bytes
    name_lengths = _rounded(name_means, _hashed(name_ids))
    content_lengths = _rounded(content_means, _hashed(content_ids))
    null_share = (nulls / np.maximum(headers, 1))[chosen][record]
    is_null = _units(seed, block, HEADER_NULLS, total) < null_share
    content_lengths[is_null] = NULL_LENGTH
    return name_lengths.astype(np.int32), content_lengths.astype(np.int32), name_ids, content_ids


def _runs(seed: int, block: int, purpose: int, same: float) -> Int64:
    """Return a number per record that stays with probability `same`."""
    is_new = _units(seed, block, purpose) >= same
    return np.maximum.accumulate(np.where(is_new, np.arange(BLOCK_RECORDS), 0))


def _hashed(ids: Int64) -> Units:
    units: Units = np.mod(np.mod(ids.astype(np.float64) * 0.6180339887498949, 1) * 7_919, 1).astype(np.float64)
    return units
