"""Checksums equal two other implementations, over every length around the kernels' block sizes. Varints equal theirs.

The sums are taken through `copy_and_crc`, the lower bound of encoders: it copies each batch and takes its checksum.
"""

import zlib
from itertools import pairwise
from typing import Any

import crc32c
import numba
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from kfbench.kernels import COMPILED, FAST_CRC
from kfbench.kernels.jit import leaf
from kfbench.kernels.wire import crc, varint
from kfbench.kernels.wire.crc import CRC32C_START, copy_and_crc32, copy_and_crc32c, crc32c_copy, crc32c_finish
from tests.reference.model import RefusedError
from tests.reference.varint import read_zigzag

NOISE = np.random.default_rng(5).integers(0, 256, 20_000, np.uint8)
# Above 600: 3 x 128, 3 x 1024, and folds of 64 and 256 bytes; each exact and one byte off.
LENGTHS = [
    *range(601),
    *(size + step for size in (768, 1024, 1152, 3072, 3456, 6144, 16384) for step in (-1, 0, 1)),
]


def crc32c_of(data: bytes | NDArray[np.uint8]) -> int:
    array = np.array(bytearray(data), np.uint8)
    return int(copy_and_crc32c(np.array([0, len(array)]), array, 0, np.empty_like(array)))


def crc32_of(buffer: NDArray[np.uint8], start: int, end: int) -> int:
    """Return the CRC-32 of buffer[start:end]. The kernel may read up to 16 bytes before `start`."""
    return int(copy_and_crc32(np.array([start, end]), buffer, 0, buffer.copy()))


def check(start: int, length: int) -> None:
    """Check both checksums of NOISE[start : start + length]. Check CRC-32 also as part of a longer array."""
    data = NOISE[start : start + length]
    assert crc32c_of(data) == crc32c.crc32c(data.tobytes()), (start, length)
    assert crc32_of(data, 0, length) == zlib.crc32(data.tobytes()), (start, length)
    assert crc32_of(NOISE, start, start + length) == zlib.crc32(data.tobytes()), (start, length)


def test_every_batch_is_copied_and_summed() -> None:
    positions = np.array([0, 61, 62 + 40, 1000, 5000])
    for measure, library in ((copy_and_crc32c, crc32c.crc32c), (copy_and_crc32, zlib.crc32)):
        out = np.zeros(5000, np.uint8)
        mixed = measure(positions, NOISE, 17, out)
        expected = 0
        for start, end in pairwise(positions):
            expected ^= library(NOISE[start + 17 : end].tobytes())
        assert mixed == expected
        assert (out == NOISE[:5000]).all()


@pytest.mark.parametrize("length_from", range(0, len(LENGTHS), 100))
def test_every_length(length_from: int) -> None:
    for length in LENGTHS[length_from : length_from + 100]:
        check(39, length)


@pytest.mark.skipif(not FAST_CRC, reason="needs SSE4.2 and PCLMUL, and compiled kernels")
def test_a_host_without_avx_512_sums_the_same() -> None:
    """Force the three parallel chains of SSE4.2 instructions, which hosts without AVX-512 use.

    They must give the same CRC.
    """
    ahead, rest, last = leaf(crc._chained_ahead), leaf(crc._chained_rest), leaf(crc._fast_tail)

    @numba.njit
    def chained(buffer):  # type: ignore[no-untyped-def]
        sum_, start = ahead(CRC32C_START, buffer, 0, len(buffer))
        sum_, start = rest(sum_, buffer, start, len(buffer))
        return last(sum_, buffer, start, len(buffer)) ^ CRC32C_START

    for length in LENGTHS:
        assert chained(NOISE[39 : 39 + length]) == crc32c.crc32c(NOISE[39 : 39 + length].tobytes()), length


@pytest.mark.parametrize("start", range(33))
def test_every_alignment(start: int) -> None:
    for length in (*range(34), 63, 64, 65, 127, 128, 383, 384, 385, 3073):
        check(start, length)


@pytest.mark.parametrize("fill", [0, 0xFF])
def test_bytes_around_the_slice_do_not_matter(fill: int) -> None:
    for length in range(1, 100):
        buffer = np.full(200, fill, np.uint8)
        buffer[50 : 50 + length] = NOISE[:length]
        assert crc32_of(buffer, 50, 50 + length) == zlib.crc32(NOISE[:length].tobytes())


def compiled(function: Any) -> Any:
    return numba.njit(function) if COMPILED else function


@compiled
def copied(sum_, buffer, summed, at, data, start, size):  # type: ignore[no-untyped-def]
    return crc32c_copy(sum_, buffer, summed, at, data, start, size)


@compiled
def finished(sum_, buffer, summed, at):  # type: ignore[no-untyped-def]
    return crc32c_finish(sum_, buffer, summed, at)


@pytest.mark.parametrize("sizes", [(1, 63, 64, 65, 0, 127, 128, 512), (7000, 3, 600, 6145), (40, 1024, 88, 513)])
@pytest.mark.parametrize("ahead", [0, 1, 61, 64, 300])
def test_copy_sums_up_to_the_position_that_it_returns(ahead: int, sizes: tuple[int, ...]) -> None:
    """Copy pieces shorter and longer than a step of the kernel, and compute their checksum.

    ahead: number of bytes before the pieces that are not in the checksum yet.
    """
    at = 5 + ahead
    out, sum_, summed = np.zeros(2**14, np.uint8), CRC32C_START, 5
    out[5:at] = NOISE[:ahead]
    wanted = NOISE[:ahead].tobytes()
    for k, size in enumerate(sizes):
        sum_, summed = copied(np.uint64(sum_), out, summed, at, NOISE, 9 + k, size)
        wanted += NOISE[9 + k : 9 + k + size].tobytes()
        at += size
        assert summed <= at
        assert out[5:at].tobytes() == wanted
    assert not out[:5].any() and not out[at + 32 :].any()
    assert finished(np.uint64(sum_), out, summed, at) == crc32c.crc32c(wanted)


# Varints


@numba.njit
def _get32(data, end):  # type: ignore[no-untyped-def]
    return varint.get_varint(data, 0, end)


@numba.njit
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
