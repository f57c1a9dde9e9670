"""Partitions of keys equal those of Kafka's default partitioner."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kfbench.kernels.broker import mirroring
from kfbench.records import Records

# values of Kafka's `UtilsTest.testMurmur2`
KNOWN = {
    b"21": -973932308,
    b"foobar": -790332482,
    b"a-little-bit-long-string": -985981536,
    b"a-little-bit-longer-string": -1486304829,
    b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
    b"abc": 479470107,
}


def partitions_of(keys: list[bytes | None], partitions: int) -> list[int]:
    records = Records.from_lists([None] * len(keys), keys=keys)
    out = np.empty(len(keys), np.int64)
    lengths = records.shapes.key_lengths
    mirroring.partitions_of(records.key_data, records.key_starts, lengths, partitions, out)
    return out.tolist()


@pytest.mark.parametrize("partitions", [1, 2, 7, 64, 2**31 - 1])
def test_known_values(partitions: int) -> None:
    expected = [(value & 0x7FFFFFFF) % partitions for value in KNOWN.values()]
    assert partitions_of(list(KNOWN), partitions) == expected


@given(st.lists(st.none() | st.binary(max_size=40)))
def test_as_another_client(keys: list[bytes | None]) -> None:
    """The partition of a key equals aiokafka's, for keys of all lengths. A null key has no mirroring."""
    murmur2 = pytest.importorskip("aiokafka.partitioner").murmur2
    expected = [-1 if key is None else (murmur2(key) & 0x7FFFFFFF) for key in keys]
    assert partitions_of(keys, 2**31) == expected
