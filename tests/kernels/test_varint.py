"""Reading a varint equals the reference, whatever the bytes are: cut, over-long, or with bits that Kafka drops."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba import njit

from kfbench.kernels.wire import varint
from tests.reference.model import RefusedError
from tests.reference.varint import read_zigzag


@njit
def _get32(data, end):  # type: ignore[no-untyped-def]
    return varint.get_varint(data, 0, end)


@njit
def _get64(data, end):  # type: ignore[no-untyped-def]
    return varint.get_varlong(data, 0, end)


@pytest.mark.parametrize("more", range(12))
@given(data=st.data())
def test_any_bytes_read_as_the_reference_reads_them(more: int, data: st.DataObject) -> None:
    """more: the number of bytes that another one follows. The last byte may ask for another one, too."""
    groups = data.draw(st.lists(st.integers(0x80, 0xFF), min_size=more, max_size=more))
    read = bytes([*groups, data.draw(st.integers(0, 0xFF))])
    for bits, get in ((32, _get32), (64, _get64)):
        found = get(np.frombuffer(read + b"\x01" * 12, np.uint8), len(read))
        try:
            assert found == read_zigzag(read, 0, bits)
        except RefusedError:
            assert found[1] == len(read) + 1
