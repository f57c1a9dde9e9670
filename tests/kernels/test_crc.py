"""CRC-32C and CRC-32 against two other implementations, over every length around the kernels' block sizes."""

import zlib

import crc32c
import numpy as np
import pytest

from kfbench.kernels.crc import crc32_between, crc32_of, crc32c_of

NOISE = np.random.default_rng(5).integers(0, 256, 20_000, np.uint8)
# Past 600: 3 x 128, 3 x 1024 and 64-byte folds, whole and one byte either side.
LENGTHS = [
    *range(601),
    *(size + step for size in (768, 1024, 1152, 3072, 3456, 6144, 16384) for step in (-1, 0, 1)),
]


def check(start: int, length: int) -> None:
    """The sum of NOISE[start:start + length]: as a slice, and in place, where CRC-32 may look at what lies before."""
    data = NOISE[start : start + length]
    assert crc32c_of(data) == crc32c.crc32c(data.tobytes()), (start, length)
    assert crc32_of(data) == zlib.crc32(data.tobytes()), (start, length)
    assert crc32_between(NOISE, start, start + length) == zlib.crc32(data.tobytes()), (start, length)


@pytest.mark.parametrize("length_from", range(0, len(LENGTHS), 100))
def test_every_length(length_from: int) -> None:
    for length in LENGTHS[length_from : length_from + 100]:
        check(39, length)


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
    assert [len(each) for each in sums] == [8 * len(data) + 1] * 2
