"""Hex digits are packed two per byte, and any one other character is seen at any place."""

from collections.abc import Callable
from typing import Any

import numba
import numpy as np
import pytest

from kfbench.kernels import COMPILED
from kfbench.research.columnar.kernels.bit_packing import CHARACTERS, pack_digits

HEX = b"0123456789abcdef"
packed: Callable[..., bool] = (numba.njit if COMPILED else lambda call: call)(lambda *given: pack_digits(*given))


@pytest.mark.compiled_only
@pytest.mark.parametrize("number", [1, 2, 63, 64, 65, 129])
def test_digits_are_packed_and_no_other_character_is(number: int) -> None:
    rng, room = np.random.default_rng(6), -(-number // CHARACTERS) * CHARACTERS
    text: Any = rng.choice(np.frombuffer(HEX, np.uint8), room)
    for place in {0, number // 2, number - 1}:
        for character in range(256):
            text[place], out = character, np.full(1 + room // 2, 7, np.uint8)
            found = packed(text, np.int64(number), out, np.int64(1))
            assert found == (character in HEX)
            digits = bytes(text[:number]).decode("latin-1") + "0" * (number % 2)
            assert not found or bytes(out[1 : 1 + len(digits) // 2]).hex() == digits
        text[place] = HEX[place % 16]
