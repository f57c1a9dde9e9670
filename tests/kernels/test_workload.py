"""Named workloads and templates give the records that they always gave, on every host.

`python -m tests.kernels.test_workload` writes the digests. A change of one is a change of what stored runs mean.
"""

import hashlib
import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.stats import kstest

from kfbench.formats import FORMATS
from kfbench.kernels.workload import draws
from kfbench.kernels.workload.waits import periodic_times, stratified
from kfbench.workloads import BLOCK_RECORDS
from kfbench.workloads.catalogue import WORKLOADS, NamedWorkload
from kfbench.workloads.named.arrivals import Bursts, times_us
from kfbench.workloads.named.distributions import FixedValue, Uniform
from tests.kernels.results import filled

STORED = Path(__file__).parents[1] / "data" / "frozen-records.json"
FROZEN = json.loads(STORED.read_text(encoding="utf-8"))
VARIANTS = [f"{name}/{variant}" for name, workload in WORKLOADS.items() for variant in workload.variants]
SEED = 7
# These run in plain Python, too.
IN_PLAIN_PYTHON = {"cdc-debezium/default", "compacted-changelog/default"}


def digest_of(variant: str) -> str:
    """Return a digest of the batches, as v2, at the beginning and around the end of the first block."""
    name, _, of = variant.partition("/")
    found, records = hashlib.sha256(), 20 if name == "large-payload" else 3_000
    for start in (0, BLOCK_RECORDS - records // 2):
        sample: Any = NamedWorkload(name=name, variant=of).generate(records=records, seed=SEED, start=start)
        found.update(bytes(FORMATS["v2"].encode(sample.records, sample.bounds, batch_fields=sample.batch_fields)))
    return found.hexdigest()[:16]


@pytest.mark.parametrize(
    "variant",
    [pytest.param(each, marks=[pytest.mark.compiled_only] * (each not in IN_PLAIN_PYTHON)) for each in VARIANTS],
)
def test_records_of_a_seed_stay(variant: str) -> None:
    assert digest_of(variant) == FROZEN["records"][variant]


def test_every_variant_is_frozen() -> None:
    assert set(FROZEN["records"]) == set(VARIANTS)


def test_texts_of_templates_stay() -> None:
    assert filled() == FROZEN["templates"]


@pytest.mark.compiled_only
def test_times_never_fall_although_gaps_take_longer_than_expected() -> None:
    """Pauses are stretched so that a block has its length. Here, chance makes its gaps alone longer than that."""
    arrival = Bursts(length=FixedValue(value=100), pause_us=FixedValue(value=1), gap_us=Uniform(low=0, high=500))
    for block in range(4):
        assert np.all(np.diff(times_us(arrival, SEED, block)) >= 0)


def test_rounded_times_never_fall() -> None:
    """Cells of a period are rounded apart, so the first may seem to end behind the start of the second."""
    out, cells = np.empty(3, np.int64), (np.array([0.0, 5.0]), np.array([20.0, 7.0]))
    periodic_times(np.array([0.5, 0.75, 1.0]), 1.0, 0.0, *cells, 27.0, 100.0, 10**9, out)
    assert out.tolist() == [110, 115, 115]


# Random draws against plain integers

MASK = 2**64 - 1
ORDER = np.arange(65_536)
SEEDS, STARTS = st.integers(0, 2**63 - 1), st.integers(0, 2**61)


def mix(bits: int) -> int:
    bits = (bits ^ bits >> 30) * 0xBF58476D1CE4E5B9 & MASK
    bits = (bits ^ bits >> 27) * 0x94D049BB133111EB & MASK
    return bits ^ bits >> 31


def word(stream: int, number: int) -> int:
    return mix(stream + (number + 1) * 0x9E3779B97F4A7C15 & MASK)


def test_words_are_the_published_outputs_of_splitmix64() -> None:
    """The published values are those of Rosetta Code for seed 1234567, from Vigna's splitmix64.c."""
    assert [word(1234567, n) for n in range(5)] == [
        6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431, 16408922859458223821,
    ]  # fmt: skip


@given(SEEDS, st.integers(0, 2**31), STARTS, st.integers(0, 13))
def test_pick_takes_a_quarter_of_a_word_each(seed: int, purpose: int, start: int, count: int) -> None:
    table, out, numbers = ORDER * 40_503 % 65_536, np.empty(count, np.int32), np.arange(start, start + count)
    stream = word(mix(seed), purpose)
    expected = [(word(stream, n // 4) >> 16 * (n % 4) & 0xFFFF) * 40_503 % 65_536 for n in range(start, start + count)]
    draws.pick(seed, purpose, start, table.astype(np.int32), out)
    assert out.tolist() == expected
    draws.pick_at(seed, purpose, numbers[::-1].copy(), table.astype(np.int32), out)
    assert out.tolist() == expected[::-1]


@given(SEEDS, STARTS, st.integers(0, 4), st.randoms(use_true_random=False))
def test_grouped_stays_or_goes(seed: int, start: int, bits: int, rng: random.Random) -> None:
    """bits = 0: one group, which `grouped` finds without a table of one."""
    groups = 2**bits
    entries = [rng.choice([0, 1, 2**16, 2**31, 2**32 - 1]) << 32 | rng.randrange(groups) for _ in range(groups)]
    firsts = [rng.randrange(2**40) for _ in range(groups)]
    widths = [rng.choice([1, 2, 3, 1_000_003, 2**40 - 1]) for _ in range(groups)]
    out, stream, scaled = np.empty(8, np.int64), word(mix(seed), 7), np.array(widths) * 2.0**-53
    draws.grouped(seed, 7, start, bits, np.array(entries, np.uint64), np.array(firsts), scaled, out)
    for i, got in enumerate(out.tolist()):
        drawn, second = (word(stream, 2 * (start + i) + k) for k in (0, 1))
        cell, rest = drawn >> 64 - bits, drawn << bits & MASK
        group = cell if rest >> 32 < entries[cell] >> 32 else entries[cell] & 0xFFFFFFFF
        assert got == firsts[group] + (second >> 11) * widths[group] // 2**53


def stratified_draws(count: int, block: int = 0) -> NDArray[np.float64]:
    out = np.empty(count)
    stratified(1, 7, block, ORDER.astype(np.float64), out)
    return out


@pytest.mark.parametrize("count", [1, 2, 3, 1_000, 65_535, 65_536])
def test_each_part_is_drawn_from_once(count: int) -> None:
    drawn, first = np.sort(stratified_draws(count)), np.arange(count) * (65_536 / count)
    assert np.all((np.floor(first) <= drawn) & (drawn < first + 65_536 / count))


@pytest.mark.compiled_only
def test_all_orders_and_entries_of_a_part_are_equally_likely() -> None:
    """All six orders of three draws, all places of the smallest of 100, and all entries of a part of 4,096."""
    orders = [tuple(np.argsort(stratified_draws(3, block))) for block in range(6_000)]
    counts = np.unique(orders, axis=0, return_counts=True)[1]
    assert len(counts) == 6 and np.abs(counts - 1_000).max() < 150
    places = [int(stratified_draws(100, block).argmin()) for block in range(2_000)]
    assert kstest((np.array(places) + np.random.default_rng(1).random(2_000)) / 100, "uniform").pvalue > 0.001
    entries = np.concatenate([stratified_draws(16, block) for block in range(300)]) % 4_096
    assert kstest(entries / 4_096, "uniform").pvalue > 0.001


if __name__ == "__main__":
    found = {"records": {variant: digest_of(variant) for variant in VARIANTS}, "templates": filled()}
    STORED.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
