"""The last record of each key is that of a Python dictionary, and no choice of keys makes it slow to find."""

import os
import subprocess
import sys
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kfbench import Records
from kfbench.broker.compact import latest_of_keys
from kfbench.kernels.broker import last_keys
from kfbench.kernels.jit import kernel

KEYS = st.sampled_from([None, b"", b"a", b"b", b"\0", b"\0\0", b"key-0001", b"key-0002", b"key-00001", b"k" * 64])
SOME_KEYS = st.lists(st.tuples(KEYS | st.binary(max_size=9), st.booleans()), max_size=40)


def hash_one(data, length, seed, out):  # type: ignore[no-untyped-def]
    out[0] = last_keys.siphash(data, 0, length, seed[0], seed[1])


hash_kernel = kernel(hash_one)


def siphash(data: bytes, seed: tuple[int, int] = (0, 0)) -> int:
    out = np.zeros(1, np.uint64)
    hash_kernel(np.frombuffer(data, np.uint8), len(data), np.array(seed, np.uint64), out)
    return int(out[0])


@pytest.mark.skipif(sys.hash_info.algorithm != "siphash13", reason="Python hashes bytes by another algorithm")
def test_the_hash_is_siphash_1_3() -> None:
    """The expected value is hash(bytes) under PYTHONHASHSEED=0, a seed of zeros. Python never returns the hash -1."""
    texts = [bytes(range(length)) for length in range(1, 66)]
    done = subprocess.run(
        [sys.executable, "-c", "print([hash(bytes(range(length))) for length in range(1, 66)])"],
        capture_output=True, text=True, check=True, env=os.environ | {"PYTHONHASHSEED": "0"},
    )  # fmt: skip
    pythons = [int(word) % 2**64 for word in done.stdout.strip("[]\n").split(",")]
    assert [siphash(text) for text in texts] == pythons


@given(SOME_KEYS)
def test_latest_of_keys(given_keys: list[tuple[bytes | None, bool]]) -> None:
    records = Records.from_lists([b"v"] * len(given_keys), keys=[key for key, _ in given_keys])
    among = np.array([wanted for _, wanted in given_keys], np.bool_)
    last = {key: i for i, (key, wanted) in enumerate(given_keys) if wanted and key is not None}
    assert np.flatnonzero(latest_of_keys(records, among)).tolist() == sorted(last.values())


def latest(given_keys: Sequence[bytes | None], seed: tuple[int, int], together: int = 64) -> tuple[list[int], int]:
    """Return the indexes of the records that are the last with their key, and how many probed slots had another key."""
    records, n = Records.from_lists([b"v"] * len(given_keys), keys=given_keys), len(given_keys)
    table, out = np.zeros(1 << (2 * n - 1).bit_length(), np.uint64), np.empty(n, np.bool_)
    room = np.empty(together, np.uint64), np.empty(together, np.uint64)
    columns = records.key_data, records.key_starts, records.shapes.key_lengths
    count = last_keys.latest(*columns, np.ones(n, np.bool_), np.array(seed, np.uint64), table, room, out)
    return np.flatnonzero(out).tolist(), count


@pytest.mark.parametrize("together", [1, 3, 64, 1000])
def test_many_more_records_than_are_looked_up_together(together: int) -> None:
    rng = np.random.default_rng(5)
    given_keys = [b"%d" % number if number else None for number in rng.integers(0, 150, 500)]
    last = {key: i for i, key in enumerate(given_keys) if key is not None}
    assert latest(given_keys, (3, 4), together)[0] == sorted(last.values())


def number(value: int, length: int) -> bytes:
    return value.to_bytes(length, "little")


@pytest.mark.parametrize("between", [0, 64])
@pytest.mark.parametrize(
    ("one", "other"),
    [(number(220312, 8), number(1081649, 8)), (number(2154907, 7), number(2339929, 8))],
    ids=["as long", "longer"],
)
def test_keys_of_one_slot_and_half_hash_are_two_keys(one: bytes, other: bytes, between: int) -> None:
    """Two keys share a slot and half of their hash. They still count as different keys.

    between: records between the two keys. The kernel looks up 64 records at a time.
    """
    hashes = siphash(one), siphash(other)
    assert (hashes[0] & 0xFF, hashes[0] >> 32) == (hashes[1] & 0xFF, hashes[1] >> 32)
    padding: list[bytes | None] = [None] * (126 - between)
    for given_keys in ([one, other], [other, one]):
        kept, count = latest([*padding, given_keys[0], *[None] * between, given_keys[1]], (0, 0))
        assert kept == [len(padding), len(padding) + between + 1]
        assert count == 1
    assert latest([one, *[None] * between, other, one, other], (0, 0))[0] == [between + 2, between + 3]


def test_keys_that_collide_under_one_seed_do_not_under_another() -> None:
    """Keys chosen to collide under one seed make the hash table slow. Under another seed they do not."""
    known, n = (0, 0), 64
    slots = np.uint64(2 * n - 1)
    chosen: list[bytes] = []
    value = 0
    while len(chosen) < n:
        key = number(value, 8)
        if siphash(key, known) & int(slots) == 5:
            chosen.append(key)
        value += 1
    assert latest(chosen, known) == (list(range(n)), n * (n - 1) // 2)
    assert latest(chosen, (2**40 + 1, 77))[1] < 3 * n
