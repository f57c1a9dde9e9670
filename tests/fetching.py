"""Check that `Format.fetch` returns one record of a batch or raises an error, also for damaged bytes."""

from typing import Any

import numpy as np

from kfbench.arrays import Bytes
from kfbench.errors import CorruptLog, IllegalCombination, InvalidRecords
from kfbench.formats import Format
from kfbench.kernels.wire.frames import MAGIC_AT


class Outside(Exception):
    """A fetched key or value that lies outside its batch."""


def is_fetched(fmt: Format, data: Bytes, start: int, end: int, index: int) -> bool:
    """Return True if data[start:end] gives this record, False if it gives an error. Raise Outside."""
    try:
        found = fmt.fetch(data, np.array([start, end]), [index])
    except (CorruptLog, IllegalCombination, InvalidRecords):
        return False
    shapes: Any = found.shapes
    for lengths, starts in (
        (shapes.key_lengths, found.key_starts),
        (shapes.value_lengths, found.value_starts),
    ):
        length, begin = int(lengths[0]), int(starts[0])
        if length < -1 or (length > 0 and not start + MAGIC_AT < begin <= end - length):
            raise Outside(f"record {index}: {length} bytes at {begin} of a batch from {start} to {end}")
    return True
