"""Kernels of workloads: random draws, kinds of records, waits and arrival times, against plain Python."""

import random
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.stats import kstest

from kfbench.kernels.workload import draws
from kfbench.kernels.workload.kinds import DRAWN, has_null, pairs, places, settle
from kfbench.kernels.workload.waits import (
    add_up,
    begin,
    follow,
    milliseconds,
    pause,
    periodic_times,
    scale,
    stratified,
)
from tests.kernels.splitmix64 import MASK, stream_of, word

SEEDS = st.integers(0, 2**63 - 1)
PURPOSES = st.integers(0, 2**31)
STARTS = st.integers(0, 2**62)
SHUFFLED = (np.arange(65_536) * 40_503 % 65_536).astype(np.int32)


def pick(seed: int, purpose: int, start: int, count: int) -> list[int]:
    out = np.empty(count, np.int32)
    draws.pick(seed, purpose, start, SHUFFLED, out)
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
    expected = [int(SHUFFLED[k]) for k in sixteen]
    assert pick(seed, purpose, start, count) == expected
    out, numbers = np.empty(count, np.int32), np.arange(start, start + count)
    draws.pick_at(seed, purpose, numbers[::-1].copy(), SHUFFLED, out)
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


# Kinds of records

PLAIN, FOLLOWER = 0, 254


@given(st.lists(st.integers(0, 3), min_size=40, max_size=40), st.integers(1, 40))
def test_each_one_that_is_followed_has_its_follower(drawn: list[int], records: int) -> None:
    """A record of kind 2 or 3 is followed at once by one of kind FOLLOWER."""
    expected: list[int] = []
    starts = []
    for kind in drawn:
        if len(expected) == records:
            break
        starts.append(len(expected))
        expected += [kind, FOLLOWER] if kind >= 2 else [kind]
        if len(expected) > records:
            expected[-2:] = [PLAIN]
    followed = np.zeros(256, np.bool_)
    followed[2:4] = True
    kinds, found = np.empty(records, np.uint8), np.empty(records, np.int64)
    count = pairs(np.array(drawn, np.uint8), followed, FOLLOWER, PLAIN, kinds, found)
    assert kinds.tolist() == expected
    assert found[:count].tolist() == starts


@given(st.lists(st.integers(0, 5), max_size=50), st.sets(st.integers(0, 5)))
def test_places(kinds: list[int], wanted: set[int]) -> None:
    is_wanted = np.zeros(256, np.bool_)
    is_wanted[list(wanted)] = True
    out = np.empty(len(kinds) + 1, np.int64)
    count = places(np.array(kinds, np.uint8), is_wanted, out)
    assert out[:count].tolist() == [i for i, kind in enumerate(kinds) if kind in wanted]


def test_a_kind_s_length_is_drawn_or_the_same_for_all_and_some_are_null() -> None:
    kinds = np.array([0, 1, 2, 0, 1, 2, 0, 1, 2], np.uint8)
    same, null_shares = np.full(256, DRAWN, np.int32), np.zeros(256, np.int32)
    same[1], same[2] = 40, -1
    null_shares[:2] = 100, 65_536
    null_shares[1] = 200
    chances = np.array([99, 199, 0, 100, 200, 0, 65_535, 65_535, 65_535], np.int32)
    lengths = np.arange(10, 19, dtype=np.int32)
    settle(kinds, same, null_shares, chances, lengths)
    assert lengths.tolist() == [-1, -1, -1, 13, 40, -1, 16, 40, -1]


def test_which_batches_hold_a_null() -> None:
    out = np.empty(4, np.bool_)
    has_null(np.array([-1, 0, 5, 7, 3, -1, -1], np.int32), np.array([0, 1, 4, 6, 7]), out)
    assert out.tolist() == [True, False, True, True]


# Waits


def test_gaps_add_up_to_times_in_the_same_memory() -> None:
    gaps = np.random.default_rng(1).random(1_000)
    expected = np.cumsum(gaps)
    assert add_up(gaps) == expected[-1]
    assert np.array_equal(gaps, expected)
    times = gaps.view(np.int64)
    scale(gaps, 1e6 / expected[-1], 7, times)
    assert times.tolist() == [7 + int(wait * (1e6 / expected[-1])) for wait in expected]
    assert times[-1] in (1_000_006, 1_000_007)


@pytest.mark.parametrize(
    ("end", "starts", "reached"), [(0, [], 0), (1, [0], 3), (4, [0, 3], 4), (5, [0, 3, 4], 9), (99, [0, 3, 4], 9)]
)
def test_stretches_begin_where_the_last_one_ends(end: int, starts: list[int], reached: int) -> None:
    out = np.full(3, -1)
    assert begin(np.array([3, 1, 5], np.int32), end, out) == (len(starts), reached)
    assert out.tolist() == starts + [-1] * (3 - len(starts))


@pytest.mark.parametrize(("length", "stretch"), [(100.0, 2.0), (60.0, 1.0), (40.0, 0.5), (20.0, 1.0), (5.0, 1.0)])
def test_pauses_fill_the_remaining_time(length: float, stretch: float) -> None:
    """Two bursts of eleven records follow pauses of 10 and 30 µs.

    The other 20 gaps take 1 µs each. `pause` scales the pauses by `stretch`.
    """
    gaps, starts, pauses = np.ones(22), np.array([0, 11]), np.array([10.0, 30.0])
    pause(starts, pauses, length, gaps)
    expected = np.ones(22)
    expected[starts] = pauses * stretch
    assert gaps.tolist() == expected.tolist()


def test_microseconds_are_cut_to_milliseconds() -> None:
    times_us = np.array([0, 999, 1_000, 1_999, 2**62])
    out = np.empty(5, np.int64)
    milliseconds(times_us, 70, out)
    assert out.tolist() == [70, 70, 71, 71, 70 + 2**62 // 1000]


def test_each_offset_follows_the_one_before() -> None:
    out = np.empty(4, np.int64)
    follow(np.array([1, 1, 2**31 - 1, 5], np.int32), 2**40 - 1, out)
    assert out.tolist() == [2**40, 2**40 + 1, 2**40 + 2**31, 2**40 + 2**31 + 5]


# Arrivals

RISING = np.arange(65_536, dtype=np.float64)
LENGTHS = st.lists(st.integers(0, 1_000), min_size=8, max_size=8)
WAITS = st.lists(st.integers(0, 4_000), max_size=12).map(sorted)


@given(LENGTHS, WAITS, st.integers(0, 63), st.integers(0, 2**50), st.integers(0, 2**51))
def test_times(lengths: list[int], eighths: list[int], first: int, since: int, room: int) -> None:
    """Arrival times equal exact fractions, rounded down to integers.

    Waiting times are multiples of an eighth of a cell (a part of the period), so that floating-point sums are exact.
    """
    starts, period = np.cumsum([0, *lengths]), sum(lengths)
    last = since + room
    expected = []
    for eighth in eighths:
        whole, rest = divmod(first + eighth, 8)
        turns, cell = divmod(whole, 8)
        expected.append(min(int(since + turns * period + starts[cell] + Fraction(rest * lengths[cell], 8)), last))
    out = np.empty(len(eighths), np.int64)
    periodic_times(
        np.array(eighths, np.float64), 0.125, first / 8, starts[:-1].astype(np.float64), np.array(lengths, np.float64),
        float(period), float(since), last, out,
    )  # fmt: skip
    assert out.tolist() == expected


def test_rounded_times_never_fall() -> None:
    out = np.empty(3, np.int64)
    waited = np.array([0.5, 0.75, 1.0])
    periodic_times(waited, 1.0, 0.0, np.array([0.0, 5.0]), np.array([20.0, 7.0]), 27.0, 100.0, 10**9, out)
    assert out.tolist() == [110, 115, 115]


def stratified_draws(count: int, block: int = 0, seed: int = 1) -> NDArray[np.float64]:
    out = np.empty(count)
    stratified(seed, 7, block, RISING, out)
    return out


def test_each_part_is_drawn_from_once() -> None:
    for count in (1, 2, 3, 1_000, 65_535, 65_536):
        found, first = np.sort(stratified_draws(count)), np.arange(count) * (65_536 / count)
        assert np.all((np.floor(first) <= found) & (found < first + 65_536 / count))


@pytest.mark.compiled_only
def test_all_orders_are_equally_likely() -> None:
    """All six orders of three draws are equally likely. So are all places of the smallest of 100 draws."""
    orders = [tuple(np.argsort(stratified_draws(3, block))) for block in range(6_000)]
    counts = np.unique(orders, axis=0, return_counts=True)[1]
    assert len(counts) == 6 and np.abs(counts - 1_000).max() < 150
    places = [int(stratified_draws(100, block).argmin()) for block in range(2_000)]
    assert kstest((np.array(places) + np.random.default_rng(1).random(2_000)) / 100, "uniform").pvalue > 0.001


@pytest.mark.compiled_only
def test_all_entries_of_a_part_are_equally_likely() -> None:
    assert kstest(stratified_draws(16) / 65_536 * 16 % 1, "uniform").pvalue > 0.001
    assert (
        kstest(np.concatenate([stratified_draws(16, block) for block in range(300)]) % 4_096 / 4_096, "uniform").pvalue
        > 0.001
    )


def test_blocks_and_seeds_have_different_draws() -> None:
    assert stratified_draws(50, 1).tolist() == stratified_draws(50, 1).tolist()
    assert stratified_draws(50, 1).tolist() != stratified_draws(50, 2).tolist()
    assert stratified_draws(50, 1).tolist() != stratified_draws(50, 1, seed=2).tolist()
