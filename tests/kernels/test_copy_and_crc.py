"""The lower bound of encoders copies every batch and takes its checksum."""

import zlib
from itertools import pairwise

import crc32c
import numpy as np

from kfbench.kernels.wire.copy_and_crc import copy_and_crc32, copy_and_crc32c

NOISE = np.random.default_rng(9).integers(0, 256, 5000, np.uint8)
POSITIONS = np.array([0, 61, 62 + 40, 1000, 5000])


def test_every_batch_is_copied_and_summed() -> None:
    for measure, library in ((copy_and_crc32c, crc32c.crc32c), (copy_and_crc32, zlib.crc32)):
        out = np.zeros(5000, np.uint8)
        mixed = measure(POSITIONS, NOISE, 17, out)
        expected = 0
        for start, end in pairwise(POSITIONS):
            expected ^= library(NOISE[start + 17 : end].tobytes())
        assert mixed == expected
        assert (out == NOISE).all()
