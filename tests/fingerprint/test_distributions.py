"""The distributions of a fingerprint: right, small, without buckets of few members, and close for similar logs."""

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from kfbench import BatchFields, Records
from kfbench.errors import InvalidConfig
from kfbench.fingerprint.counted import MOST_HASHES, Counted, HashSample, codes_of, edges_of
from kfbench.fingerprint.distributions import STEPS, Classes, Distributions
from kfbench.fingerprint.file import MOST_BYTES, to_json
from kfbench.fingerprint.measure import fingerprint
from kfbench.fingerprint.merging import stored_distributions
from kfbench.formats import FORMATS
from kfbench.sources import Chunk
from kfbench.whatif.rebatch import sent
from kfbench.workloads import WORKLOADS
from kfbench.workloads.fingerprinted.parts import HISTOGRAMS, broken
from kfbench.workloads.fingerprinted.parts import Distributions as Stored
from tests.recorded import FOLDER

NOW_MS = 1_712_345_678_901
BOUND, BOUND_OF_CHANGE = 3, 4  # docs/fingerprint.md states them


def collected(*chunks: Chunk, seed: tuple[int, int] = (1, 2)) -> Distributions:
    found = Distributions(seed)
    for chunk in chunks:
        found.add(chunk, sent(chunk.records, chunk.bounds, chunk.fields))
    return found


def chunk_of(records: Records, per_batch: int | Sequence[int] = 10, fields: BatchFields | None = None) -> Chunk:
    n = len(records)
    bounds = np.append(np.arange(0, n, per_batch), n) if isinstance(per_batch, int) else np.array(per_batch)
    return Chunk(records=records, size_bytes=1, bounds=bounds, fields=fields or BatchFields())


def stored(found: Distributions, k: int = 10) -> Stored:
    made = stored_distributions(found, k)
    assert made is not None and not [*broken(made)]
    return made


@given(st.integers(-(2**62), 2**62))
@example(2**49)
@example(0)
def test_a_bucket_contains_its_numbers(number: int) -> None:
    number = int(float(number))  # beyond 2**53, buckets are those of the rounded number
    code = int(codes_of(np.array([number]))[0])
    least, most = edges_of(code)
    assert least <= number <= most
    assert (most - least) * 8 <= max(abs(least), abs(most))
    assert number < 0 or edges_of(code + 1).least == most + 1


@given(st.lists(st.tuples(st.integers(-9, 9), st.integers(-5, 2**40)), max_size=30), st.integers(0, 30))
def test_counts_add_up(rows: list[tuple[int, int]], cut: int) -> None:
    def counted(part: list[tuple[int, int]], factor: int) -> Counted:
        codes, values = np.array([(code * factor, value) for code, value in part], np.int64).reshape(-1, 2).T
        return Counted.of(codes, values)

    for factor in (1, 2**30):
        whole, parts = counted(rows, factor), counted(rows[:cut], factor).plus(counted(rows[cut:], factor))
        for found in (whole, parts):
            assert found.codes.tolist() == sorted({code * factor for code, _ in rows})
            for code, (count, total) in zip(found.codes.tolist(), found.sums.tolist(), strict=True):
                values = [value for each, value in rows if each * factor == code]
                assert (count, total) == (len(values), sum(values))


def test_a_sample_of_hashes_does_not_depend_on_the_order() -> None:
    hashes = np.random.default_rng(1).integers(0, 2**64, 200_000, np.uint64)
    drawn = np.concatenate([hashes, hashes[:70_000]])
    whole, parts = HashSample.of(drawn), HashSample()
    for part in np.array_split(drawn[::-1], 7):
        parts = parts.plus(HashSample.of(part, parts.level))
    assert whole.level == parts.level == 2 and len(whole.hashes) <= MOST_HASHES
    assert np.array_equal(whole.hashes, parts.hashes) and np.array_equal(whole.counts, parts.counts)
    assert int(whole.counts.sum()) / whole.share == pytest.approx(270_000, rel=0.02)


def test_the_numbers_are_those_of_the_records() -> None:
    n = 1_000
    records = Records.from_lists(
        [None if i % 4 == 0 else b"v" * (100 + i % 2) for i in range(n)],
        [b"key-%03d" % (i // 2 % 100) for i in range(n)],
        NOW_MS + np.cumsum(np.arange(n) % 10 == 0) * 50,
        [[("name", b"x" * 8), ("trace", None)] for _ in range(n)],
        np.arange(n) + np.arange(n) // 10 * 3,
    )
    fields = BatchFields(producer_id=np.arange(100) % 20)
    found = stored(collected(chunk_of(records, 10, fields)))
    assert [(c.records, c.null_values, c.value_bytes) for c in found.classes] == [(250, 250, 0), (750, 0, 75_500)]
    assert all((c.headers, c.header_key_bytes) == (2 * c.records, 9 * c.records) for c in found.classes)
    assert [(b.least, b.most, b.members) for b in found.records_per_batch.buckets] == [(10, 10, 100)]
    assert [(b.least, b.members) for b in found.time_steps_ms.buckets] == [(0, 900)]
    assert [(b.least, b.most, b.members, b.sum) for b in found.batch_time_steps_ms.buckets] == [(48, 51, 99, 4_950)]
    assert [(b.least, b.members) for b in found.offset_gaps.buckets] == [(0, 900)]
    assert [(b.least, b.members, b.sum) for b in found.batch_offset_gaps.buckets] == [(3, 99, 297)]
    assert [(b.least, b.most, b.members) for b in found.records_per_producer.buckets] == [(48, 51, 20)]
    assert [(b.least, b.members, b.sum) for b in found.records_per_key.buckets] == [(10, 100, 1_000)]
    assert (found.key_share, found.same_keys, found.producerless_records, found.untimed_records) == (1, 0.5, 0, 0)
    assert [(each.entropy_bits, each.same) for each in found.keys[:4]] == [(0, 1)] * 4
    assert found.keys[5].entropy_bits == found.keys[6].entropy_bits == 3.32 and len(found.keys) == 7
    assert [(h.key_bytes, h.value_bytes, h.same_key, h.same_value) for h in found.headers] == [
        (4, 8, 1, 1),
        (5, 0, 1, 1),
    ]


def test_parts_add_up_in_any_order() -> None:
    sample = WORKLOADS["user-activity"].generate(records=3_000, seed=3)
    chunks = [chunk_of(sample.records.part(at, at + 500)) for at in range(0, 3_000, 500)]
    parts = [collected(chunk) for chunk in chunks]
    one, other = parts[0], parts[-1]
    for part in parts[1:]:
        one = one.plus(part)
    for part in parts[-2::-1]:
        other = other.plus(part)
    assert stored(one) == stored(other)
    together = stored(collected(*chunks))  # a part knows the last record of the chunk before
    assert together.classes == stored(one).classes
    assert together.batch_time_steps_ms.members == stored(one).batch_time_steps_ms.members + 5


@pytest.mark.parametrize("k", [2, 10, 50, 1_000])
def test_no_bucket_has_few_members(k: int) -> None:
    sample = WORKLOADS["cdc-debezium"].generate(records=3_000, seed=3)
    found = collected(chunk_of(sample.records))
    made = stored(found, k)
    for name in HISTOGRAMS:
        histogram = getattr(made, name)
        assert all(bucket.members >= k for bucket in histogram.buckets)
        assert histogram.buckets or histogram.members < k
    assert all(each.records >= k for each in made.classes)
    shapes = sample.shapes
    assert sum(each.value_bytes for each in made.classes) == shapes.value_bytes
    assert sum(each.key_bytes for each in made.classes) == shapes.key_bytes
    assert sum(each.null_keys for each in made.classes) == np.count_nonzero(shapes.key_lengths < 0)
    assert made.records_per_batch.members == 300 and made.records_per_batch.sum == 3_000


def test_a_topic_of_few_records_has_no_distributions() -> None:
    nine = Records.from_lists([b"x"] * 9)
    assert stored_distributions(collected(chunk_of(nine)), 10) is None
    assert stored(collected(chunk_of(nine)), 9).records == 9


@pytest.mark.parametrize("k", [-1, 0, 1, 10**9])
def test_other_least_members_are_refused(k: int) -> None:
    with pytest.raises(InvalidConfig, match=r"least_members: .* is not 2 to 1,000,000"):
        fingerprint(FOLDER / "activity-none.log", least_members=k)


def hard_records(n: int) -> Records:
    """Return records with many lengths, times, gaps and key counts, so that the file is as large as possible."""
    draws = np.random.default_rng(5)
    steps = np.exp(draws.uniform(0, 21, n)).astype(np.int64) * draws.choice([-1, 1], n)
    return Records.from_lists(
        [b"v" * int(size) for size in np.exp(draws.uniform(0, 7, n))],
        [bytes(draws.integers(0, 256, int(size), np.uint8)) for size in np.exp(draws.uniform(0, 6, n))],
        np.clip(NOW_MS + np.cumsum(steps), 10**12 + 1, 2**42 - 1),
        [[("h" * int(a), b"x" * int(b))] * int(c) for a, b, c in draws.integers(1, (90, 200, 20), (n, 3))],
        np.cumsum(np.exp(draws.uniform(0, 14, n)).astype(np.int64)),
    )  # fmt: skip


def test_the_file_is_small(tmp_path: Path) -> None:
    log = tmp_path / "orders-0" / f"{0:020d}.log"
    log.parent.mkdir()
    bounds = np.unique(np.append(0, np.cumsum(np.random.default_rng(6).integers(1, 60, 400))))
    bounds = np.append(bounds[bounds < 6_000], 6_000)
    log.write_bytes(bytes(FORMATS["v2"].encode(hard_records(6_000), bounds)))
    made = fingerprint(log, least_members=2).fingerprint
    found = made.topics[0].distributions
    assert found and len(found.classes) == 300 and len(found.time_steps_ms.buckets) > 100
    assert len(to_json(made)) <= MOST_BYTES // 3


def test_classes_stay_few_in_memory() -> None:
    draws = np.random.default_rng(7)
    n = 90_000
    sizes = np.exp(draws.uniform(0, 13, (4, n))).astype(np.int32)
    names = WORKLOADS["grid"].generate(records=n, seed=1).shapes
    shapes = type(names)(
        timestamps_ms=names.timestamps_ms, offsets=names.offsets, key_lengths=sizes[0], value_lengths=sizes[1],
        header_bounds=np.arange(n + 1), header_key_lengths=sizes[2], header_value_lengths=sizes[3],
    )  # fmt: skip
    found = Classes.of(shapes)
    assert found.level > 0 and len(found.counted.codes) <= 65_536
    assert found.counted.sums[:, :3].sum(0).tolist() == [n, *(int(each.sum(dtype=np.int64)) for each in sizes[:2])]


# Each message is a key, a value, headers, a step of time and a number of missing offsets before it.
MESSAGES = st.lists(
    st.tuples(
        st.sampled_from([None, b"", b"a", b"bb", b"key-7"]),
        st.sampled_from([None, b"", b"v" * 9, b"w" * 200]),
        st.sampled_from([(), (("h", b"1"),), (("h", None), ("trace", b"x" * 30))]),
        st.sampled_from([0, 1, -5, 7_000, 10**9]),
        st.sampled_from([1, 1, 2, 50]),
    ),
    min_size=2, max_size=40,
)  # fmt: skip


def counts_of(messages: Sequence[tuple[Any, ...]], times: Any, offsets: Any, batch_of: Any) -> dict[str, Counter[int]]:
    """Return the counts of every histogram before buckets are merged."""
    keys, values, headers, *_ = zip(*messages, strict=True)
    records = Records.from_lists(values, keys, times, headers, offsets)
    bounds = np.append(np.flatnonzero(np.diff(batch_of, prepend=-1)), len(messages))
    fields = BatchFields(producer_id=np.array(batch_of)[bounds[:-1]] % 3)
    found = collected(chunk_of(records, bounds.tolist(), fields))
    per_key, per_producer = (Counter(codes_of(each.counts).tolist()) for each in (found.keys, found.producers))
    counted = {"classes": found.classes.counted, "records_per_batch": found.per_batch, **found.steps}
    return {
        name: Counter(dict(zip(each.codes.tolist(), each.sums[:, 0].tolist(), strict=True)))
        for name, each in counted.items()
    } | {"records_per_key": per_key, "records_per_producer": per_producer}


def distance(one: Counter[int], other: Counter[int]) -> int:
    return sum(abs(one[code] - other[code]) for code in one.keys() | other.keys())


@settings(max_examples=100)
@given(MESSAGES, st.data())
def test_one_record_changes_few_counts(messages: list[tuple[Any, ...]], data: st.DataObject) -> None:
    """Leave out one record, or change it. Counts of each histogram differ by the stated bounds."""
    n = len(messages)
    times = NOW_MS + np.cumsum([each[3] for each in messages])
    offsets = np.cumsum([each[4] for each in messages])
    batch_of = np.sort(data.draw(st.lists(st.integers(0, 6), min_size=n, max_size=n)))
    left_out = data.draw(st.integers(0, n - 1))
    whole = counts_of(messages, times, offsets, batch_of)
    kept = np.delete(np.arange(n), left_out)
    without = counts_of([messages[i] for i in kept], times[kept], offsets[kept], batch_of[kept])
    changed_messages = [*messages]
    changed_messages[left_out] = (b"new", b"n" * 70, (("other", b"z" * 5),))
    changed_messages = [each[:3] for each in changed_messages]
    moved = times + np.where(np.arange(n) == left_out, 12_345, 0)
    changed = counts_of([(*each, 0, 0) for each in changed_messages], moved, offsets, batch_of)
    for other, bound in ((without, BOUND), (changed, BOUND_OF_CHANGE)):
        for name in set(whole) - set(STEPS):
            assert distance(whole[name], other[name]) <= bound, name
        for names in (STEPS[:2], STEPS[2:]):  # within and between batches together
            assert sum(distance(whole[name], other[name]) for name in names) <= bound, names


def test_the_bound_is_reached() -> None:
    """The bound of 3 is no larger than it has to be."""
    messages = [(b"k", b"v", (), 0, 1)] * 3
    times, offsets = NOW_MS + np.array([0, 5, 100]), np.array([1, 2, 3])
    one = counts_of(messages, times, offsets, np.zeros(3, int))
    other = counts_of(messages[:2], times[[0, 2]], offsets[[0, 2]], np.zeros(2, int))
    assert distance(one["time_steps_ms"], other["time_steps_ms"]) == BOUND


def test_a_date_is_no_step_of_time(tmp_path: Path) -> None:
    """Many records at 1970 between those of today do not tell today's date."""
    times = np.where(np.arange(400) % 2, NOW_MS + np.arange(400), 3)
    found = stored(collected(chunk_of(Records.from_lists([b"x"] * 400, timestamps_ms=times))))
    assert found.untimed_records == 200 and found.time_steps_ms.members == found.batch_time_steps_ms.members == 0
    offsets = np.where(np.arange(400) % 2, 987_654_321_012 + np.arange(400), np.arange(400))
    made = stored(collected(chunk_of(Records.from_lists([b"x"] * 400, offsets=offsets))))
    assert made.offset_gaps.buckets[-1].sum <= made.offset_gaps.members << 20


def test_hashes_and_their_seed_are_not_in_the_file() -> None:
    one, other = (json.loads(to_json(fingerprint(FOLDER / "activity-none.log", seed=1).fingerprint)) for _ in range(2))
    assert one["topics"][0]["distributions"] == other["topics"][0]["distributions"]
