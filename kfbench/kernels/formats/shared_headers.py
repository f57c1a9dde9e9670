"""The headers that all records of a batch begin with. Tag 1 of v3 stores them once."""

import numpy as np

from kfbench.kernels.jit import kernel, leaf
from kfbench.kernels.simd.intrinsics import get_u8, load_le64


@leaf
def same_bytes(one, at, other, start, length):
    """Return whether one[at : at + length] equals other[start : start + length].

    Eight bytes are compared at a time. The last eight may overlap the eight before them.
    """
    if length < 8:
        for k in range(length):
            if get_u8(one, at + k) != get_u8(other, start + k):
                return False
        return True
    last = length - 8
    for k in range(0, last, 8):
        if load_le64(one, at + k) != load_le64(other, start + k):
            return False
    return load_le64(one, at + last) == load_le64(other, start + last)


@kernel
def count(columns, bounds, shared):
    """Count the headers (key and value) that all records of a batch begin with. Fill shared, int64[batches]."""
    header_bounds, key_lengths, value_lengths = columns[4:7]
    keys, key_starts, values, value_starts = columns[11:15]
    for b in range(len(bounds) - 1):
        first, end = bounds[b], bounds[b + 1]
        common = header_bounds[first + 1] - header_bounds[first] if first < end else np.int64(0)
        start = header_bounds[first]
        for i in range(first + 1, end):
            if common == 0:
                break
            other = header_bounds[i]
            common = min(common, header_bounds[i + 1] - other)
            for h in range(common):
                one, two = np.uint64(start + h), np.uint64(other + h)
                key_length, value_length = np.int64(key_lengths[one]), np.int64(value_lengths[one])
                if not (
                    key_lengths[two] == key_length
                    and value_lengths[two] == value_length
                    and same_bytes(keys, key_starts[one], keys, key_starts[two], key_length)
                    and same_bytes(values, value_starts[one], values, value_starts[two], value_length)
                ):
                    common = np.int64(h)
                    break
        shared[b] = common
