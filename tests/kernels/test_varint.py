"""Writing, reading and sizing varints equals the reference, for one table of boundary values."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba import njit

from kfbench.kernels.wire import lengths, varint
from tests.reference.model import RefusedError
from tests.reference.varint import read_unsigned, read_zigzag, unsigned, zigzag

# (value, bytes as a zig-zag varint) from Kafka's ByteUtilsTest, on either side of each size limit
BOUNDARIES = [
    (0, 1),
    *((edge + step, size + (step == 0)) for size in range(1, 10) for edge in [1 << 7 * size - 1] for step in (-1, 0)),
    *((edge + step, size - step) for size in range(1, 10) for edge in [-1 << 7 * size - 1] for step in (0, -1)),
    (2**63 - 1, 10),
    (-(2**63), 10),
    (2**31 - 1, 5),
    (-(2**31), 5),
]


@njit
def _put(out, value):  # type: ignore[no-untyped-def]
    return varint.put_varint(out, 0, value)


@njit
def _put_unsigned(out, value):  # type: ignore[no-untyped-def]
    return varint.put_uvarint(out, 0, value)


@njit
def _size(value):  # type: ignore[no-untyped-def]
    return varint.varint_bytes(value), varint.uvarint_bytes(np.uint64(np.int64(value)))


@njit
def _length_size(value):  # type: ignore[no-untyped-def]
    return lengths.length_bytes(value, False)


@njit
def _get32(data, end):  # type: ignore[no-untyped-def]
    return varint.get_varint(data, 0, end)


@njit
def _get64(data, end):  # type: ignore[no-untyped-def]
    return varint.get_varlong(data, 0, end)


def written(put: object, value: int | np.uint64) -> bytes:
    out = np.full(16, 0xEE, np.uint8)
    end = put(out, value)  # type: ignore[operator]
    assert (out[end:] == 0xEE).all()
    return out[:end].tobytes()


def array(data: bytes) -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
    return np.frombuffer(data + b"\x01" * 12, np.uint8)


@pytest.mark.parametrize(("value", "size"), BOUNDARIES)
def test_the_boundary_table(value: int, size: int) -> None:
    data = written(_put, value)
    assert len(data) == size
    assert data == zigzag(value)
    assert _size(value)[0] == size
    assert _get64(array(data), size) == (value, size)
    if -(2**31) <= value < 2**31:
        assert _get32(array(data), size) == (value, size)


@given(st.integers(-(2**63), 2**63 - 1))
def test_any_varlong(value: int) -> None:
    data = written(_put, value)
    assert data == zigzag(value)
    assert _size(value)[0] == len(data)
    assert _get64(array(data), len(data)) == (value, len(data))


@given(st.integers(0, 2**64 - 1))
def test_any_unsigned(value: int) -> None:
    data = written(_put_unsigned, np.uint64(value))
    assert data == unsigned(value)
    assert read_unsigned(data, 0, 64) == (value, len(data))
    if value < 2**63:
        assert _size(value)[1] == len(data)


@given(st.integers(-1, 2**31 - 1))
def test_the_size_of_a_length(value: int) -> None:
    assert _length_size(value) == len(zigzag(value))


@pytest.mark.parametrize("value", [0, 1, -1, 63, 64, 2**31 - 1, -(2**31), 2**62])
def test_a_cut_varint_ends_past_the_end(value: int) -> None:
    data = zigzag(value)
    for cut in range(len(data)):
        assert _get64(array(data), cut)[1] == cut + 1
        assert _get32(array(data), cut)[1] == cut + 1


def test_too_many_groups() -> None:
    assert _get32(array(b"\x80" * 4 + b"\x00"), 12)[1] == 5
    assert _get32(array(b"\x80" * 5 + b"\x00"), 12)[1] == 13
    assert _get64(array(b"\x80" * 9 + b"\x00"), 12)[1] == 10
    assert _get64(array(b"\x80" * 10 + b"\x00"), 12)[1] == 13


OVER_LONG = [(b"\x82\x00", 1), (b"\x80\x80\x00", 0), (b"\xff\xff\x00", -8192)]


@pytest.mark.parametrize(("data", "value"), OVER_LONG)
def test_over_long_is_read(data: bytes, value: int) -> None:
    assert _get32(array(data), len(data)) == (value, len(data))
    assert _get64(array(data), len(data)) == (value, len(data))


@given(st.binary(min_size=1, max_size=12))
def test_any_bytes_read_as_the_reference_reads_them(data: bytes) -> None:
    for bits, get in ((32, _get32), (64, _get64)):
        try:
            expected = read_zigzag(data, 0, bits)
        except RefusedError:
            assert get(array(data), len(data))[1] == len(data) + 1
        else:
            assert get(array(data), len(data)) == expected
