"""Checks and helpers for the arrays of kfbench, which are read-only, contiguous and one-dimensional."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kfbench.errors import InvalidRecords

Int64 = NDArray[np.int64]
Int32 = NDArray[np.int32]
Bytes = NDArray[np.uint8]


def integers_of(name: str, values: ArrayLike, dtype: type[np.generic], is_kept: bool = True) -> NDArray[Any]:
    """Return the values as a read-only, contiguous, one-dimensional array. Raises InvalidRecords.

    is_kept: the caller stores the array, so it must not share memory that someone else can write to.
    """
    if type(values) is np.ndarray and values.dtype == dtype and values.ndim == 1 and values.flags.c_contiguous:
        if not is_kept:
            return read_only(values)
        if _is_frozen(values):
            return values
    given = np.asarray(values)
    if given.ndim != 1 or (given.dtype.kind not in "iu" and given.size):
        raise InvalidRecords(f"{name}: a one-dimensional array of integers is wanted, not {given.dtype}{given.shape}")
    if given.dtype != dtype and given.size and not np.can_cast(given.dtype, dtype):
        limits = np.iinfo(dtype)  # type: ignore[type-var]
        if given.min() < limits.min or given.max() > limits.max:
            raise InvalidRecords(f"{name}: a value does not fit {np.dtype(dtype)}")
    column = np.array(given, dtype, copy=None if _is_frozen(given) else True, order="C")
    freeze(column)
    return column


def _is_frozen(array: NDArray[Any]) -> bool:
    """Return True if nobody can write to these bytes: the array and all arrays of which it is a view are read-only."""
    root: Any = array
    while isinstance(root, np.ndarray):
        if root.flags.writeable:
            return False
        root = root.base
    return root is None or isinstance(root, bytes)


def ranges(starts: Int64, lengths: Int64) -> Int64:
    """Return the integers starts[i] to starts[i] + lengths[i] - 1 for each i, one after another."""
    ends = np.cumsum(lengths, dtype=np.int64)
    numbers: Int64 = np.arange(ends[-1] if len(ends) else 0) + np.repeat(starts - (ends - lengths), lengths)
    return numbers


def rows_joined(parts: Sequence[NDArray[np.void]]) -> NDArray[np.void]:
    """Join at least one array of rows of the same structured type. The result is a new array."""
    # As bytes, because NumPy's concatenate copies field by field, which is 10 times slower.
    return np.concatenate([part.view(np.uint8) for part in parts]).view(parts[0].dtype)


class Place(NamedTuple):
    """The place of an array in memory. Arrays with equal places share all bytes."""

    address: int
    size_bytes: int


def place_of(data: Bytes) -> Place:
    return Place(data.ctypes.data, len(data))


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    """Return a read-only view. Kernels that read are compiled only for read-only arrays."""
    view = array.view()
    freeze(view)
    return view


def freeze(*columns: NDArray[Any]) -> None:
    for column in columns:
        column.setflags(False)  # type: ignore[call-arg]  # a keyword takes twice as long


def check_buffer(out: Any, size_bytes: int = 0) -> None:
    """Raise InvalidRecords unless `out` is writeable and has room for `size_bytes`."""
    if not isinstance(out, np.ndarray) or out.dtype != np.uint8 or out.ndim != 1:
        raise InvalidRecords("out: a one-dimensional uint8 array is wanted")
    if not out.flags.c_contiguous or not out.flags.writeable:
        raise InvalidRecords("out: a writeable, contiguous array is wanted")
    if len(out) < size_bytes:
        raise InvalidRecords(f"out: {len(out)} bytes, {size_bytes} are needed")


def as_bytes(name: str, data: Any) -> Bytes:
    """Return a read-only uint8 view of anything with a buffer. Nothing is copied. Raises InvalidRecords."""
    try:
        if not isinstance(data, np.ndarray):
            view = np.frombuffer(data, np.uint8)
        else:  # a view costs as much as the call of a kernel
            view = data if data.dtype == np.uint8 and data.ndim == 1 else data.reshape(-1).view(np.uint8)
    except (TypeError, ValueError, BufferError) as error:
        raise InvalidRecords(f"{name}: a contiguous buffer of bytes is wanted ({error})") from None
    if not view.flags.c_contiguous:
        raise InvalidRecords(f"{name}: a contiguous buffer of bytes is wanted")
    return read_only(view)
