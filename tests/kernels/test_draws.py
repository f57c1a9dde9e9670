"""The n-th random number of a stream equals splitmix64 in plain Python, which equals published values."""

import random

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kfbench.kernels.workload import draws
from tests.kernels.splitmix64 import MASK, stream_of, word

SEEDS = st.integers(0, 2**63 - 1)
PURPOSES = st.integers(0, 2**31)
STARTS = st.integers(0, 2**62)
TABLE = (np.arange(65_536) * 40_503 % 65_536).astype(np.int32)


def pick(seed: int, purpose: int, start: int, count: int) -> list[int]:
    out = np.empty(count, np.int32)
    draws.pick(seed, purpose, start, TABLE, out)
    return out.tolist()


def test_the_reference_gives_the_published_outputs() -> None:
    """The published values are those of Rosetta Code for seed 1234567, from Vigna's splitmix64.c."""
    assert [word(1234567, n) for n in range(5)] == [
        6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431, 16408922859458223821,
    ]  # fmt: skip


@given(SEEDS, PURPOSES, STARTS, st.integers(0, 13))
def test_pick_takes_a_quarter_of_a_word_each(seed: int, purpose: int, start: int, count: int) -> None:
    stream = stream_of(seed, purpose)
    sixteen = [word(stream, n // 4) >> 16 * (n % 4) & 0xFFFF for n in range(start, start + count)]
    expected = [int(TABLE[k]) for k in sixteen]
    assert pick(seed, purpose, start, count) == expected
    out, numbers = np.empty(count, np.int32), np.arange(start, start + count)
    draws.pick_at(seed, purpose, numbers[::-1].copy(), TABLE, out)
    assert out.tolist() == expected[::-1]


@given(SEEDS, STARTS.map(lambda start: start // 2), st.integers(1, 4), st.randoms(use_true_random=False))
def test_grouped_stays_or_goes(seed: int, start: int, bits: int, rng: random.Random) -> None:
    groups = 2**bits
    entries = [rng.choice([0, 1, 2**16, 2**31, 2**32 - 1]) << 32 | rng.randrange(groups) for _ in range(groups)]
    firsts = [rng.randrange(2**40) for _ in range(groups)]
    widths = [rng.choice([1, 2, 3, 1_000_003, 2**40 - 1]) for _ in range(groups)]
    out, stream = np.empty(8, np.int64), stream_of(seed, 7)
    scaled = np.array(widths) * 2.0**-53
    draws.grouped(seed, 7, start, bits, np.array(entries, np.uint64), np.array(firsts), scaled, out)
    for i, got in enumerate(out.tolist()):
        drawn, second = (word(stream, 2 * (start + i) + k) for k in (0, 1))
        cell, rest = drawn >> 64 - bits, drawn << bits & MASK
        group = cell if rest >> 32 < entries[cell] >> 32 else entries[cell] & 0xFFFFFFFF
        assert got == firsts[group] + (second >> 11) * widths[group] // 2**53


@given(SEEDS, STARTS.map(lambda start: start // 2), st.integers(1, 2**40))
def test_one_group_takes_the_second_word_alone(seed: int, start: int, width: int) -> None:
    out, stream, table = np.empty(8, np.int64), stream_of(seed, 7), np.array([2**32 << 31, 0], np.uint64)
    draws.grouped(seed, 7, start, 1, table, np.array([5]), np.array([width]) * 2.0**-53, out)
    second = [word(stream, 2 * (start + i) + 1) >> 11 for i in range(8)]
    assert out.tolist() == [5 + bits * width // 2**53 for bits in second]
