"""CRC-32C and CRC-32 against two other implementations, over every length around the kernels' block sizes."""

import zlib
from typing import Any

import crc32c
import numba
import numpy as np
import pytest

from kfbench.kernels import COMPILED, FAST_CRC
from kfbench.kernels.jit import leaf
from kfbench.kernels.wire import crc
from kfbench.kernels.wire.crc import CRC32C_START, crc32_between, crc32_of, crc32c_copy, crc32c_finish, crc32c_of

NOISE = np.random.default_rng(5).integers(0, 256, 20_000, np.uint8)
# Past 600: 3 x 128, 3 x 1024 and folds of 64 and 256 bytes, whole and one byte either side.
LENGTHS = [
    *range(601),
    *(size + step for size in (768, 1024, 1152, 3072, 3456, 6144, 16384) for step in (-1, 0, 1)),
]


def check(start: int, length: int) -> None:
    """Check NOISE[start : start + length] as a slice, and in place, where CRC-32 may read what lies before."""
    data = NOISE[start : start + length]
    assert crc32c_of(data) == crc32c.crc32c(data.tobytes()), (start, length)
    assert crc32_of(data) == zlib.crc32(data.tobytes()), (start, length)
    assert crc32_between(NOISE, start, start + length) == zlib.crc32(data.tobytes()), (start, length)


@pytest.mark.parametrize("length_from", range(0, len(LENGTHS), 100))
def test_every_length(length_from: int) -> None:
    for length in LENGTHS[length_from : length_from + 100]:
        check(39, length)


@pytest.mark.skipif(not FAST_CRC, reason="needs SSE4.2 and PCLMUL, and compiled kernels")
def test_a_host_without_avx_512_sums_the_same() -> None:
    """The three chains of SSE4.2, whatever this host has."""
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
def test_what_lies_around_does_not_matter(fill: int) -> None:
    for length in range(1, 100):
        buffer = np.full(200, fill, np.uint8)
        buffer[50 : 50 + length] = NOISE[:length]
        assert crc32_between(buffer, 50, 50 + length) == zlib.crc32(NOISE[:length].tobytes())


def test_published_check_values() -> None:
    digits = np.frombuffer(b"123456789", np.uint8)
    assert crc32c_of(digits) == 0xE3069283
    assert crc32_of(digits) == 0xCBF43926


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (bytes(32), 0x8A9136AA),
        (b"\xff" * 32, 0x62A8AB43),
        (bytes(range(32)), 0x46DD794E),
        (bytes(range(31, -1, -1)), 0x113FDB5C),
    ],
)
def test_crc32c_vectors_of_rfc_3720(data: bytes, expected: int) -> None:
    assert crc32c_of(np.frombuffer(data, np.uint8)) == expected


def test_every_flipped_bit_changes_the_sum() -> None:
    data = NOISE[:97].copy()
    sums = {crc32c_of(data)}, {crc32_of(data)}
    for bit in range(8 * len(data)):
        data[bit // 8] ^= 1 << bit % 8
        sums[0].add(crc32c_of(data))
        sums[1].add(crc32_of(data))
        data[bit // 8] ^= 1 << bit % 8
    assert [len(distinct) for distinct in sums] == [8 * len(data) + 1] * 2


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
def test_what_is_copied_is_summed_as_far_as_it_is_said(ahead: int, sizes: tuple[int, ...]) -> None:
    """Pieces are shorter and longer than a step. `ahead` bytes before them are not summed yet."""
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
