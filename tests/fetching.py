"""Check that `Format.fetch` returns one record or raises an error, also for damaged bytes."""

from typing import Any

import numpy as np

from kfbench.arrays import Bytes
from kfbench.errors import CorruptLog, IllegalCombination, InvalidRecords
from kfbench.formats import Format
from kfbench.kernels.wire.frames import MAGIC_AT


class Outside(Exception):
    """Error: `fetch` returned a key or value whose bytes lie outside its batch."""


def is_fetched(fmt: Format, data: Bytes, start: int, end: int, index: int) -> bool:
    """Fetch the record `index` of data[start:end].

    Return True for a record, False for a KfbenchError. Raise Outside.
    """
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
