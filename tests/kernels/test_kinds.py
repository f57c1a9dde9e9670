"""Kinds of records of a workload: which record must follow another, where each record is, and its length."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kfbench.kernels.workload.kinds import DRAWN, has_null, pairs, places, settle

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
