"""Checks and helpers for arrays. Those of NumPy are read-only, contiguous and one-dimensional in kfbench."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kfbench.errors import InvalidRecords

Int64 = NDArray[np.int64]
Int32 = NDArray[np.int32]
Bytes = NDArray[np.uint8]
_UINT8: Final = np.dtype(np.uint8)  # to compare with a type takes twice as long


def integers_of(name: str, values: ArrayLike, dtype: type[np.generic], is_kept: bool = True) -> NDArray[Any]:
    """Return the values as a read-only, contiguous, one-dimensional array of `dtype`. Raises InvalidRecords.

    is_kept: True if the caller stores the array. Values that somebody could still write to are then copied.
    """
    if type(values) is np.ndarray and values.dtype == dtype and values.ndim == 1 and values.flags.c_contiguous:
        if not is_kept:
            return read_only(values)
        column = values if _is_frozen(values) else values.copy()
        freeze(column)
        return column
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
    """Return True if nobody can write to these bytes: the array and all arrays behind it are read-only."""
    root: Any = array
    while isinstance(root, np.ndarray):
        if root.flags.writeable:
            return False
        root = root.base
    return root is None or isinstance(root, bytes)


def ranges(starts: Int64, lengths: Int64) -> Int64:
    """Return the integers starts[i] to starts[i] + lengths[i] - 1 of every i, concatenated in one array."""
    ends = np.cumsum(lengths, dtype=np.int64)
    numbers: Int64 = np.arange(ends[-1] if len(ends) else 0) + np.repeat(starts - (ends - lengths), lengths)
    return numbers


def group_bounds(sizes: Int64, group_size: int) -> Int64:
    """Group neighbours whose sizes add up to about `group_size`: the first index of each group, then the end."""
    cuts = np.flatnonzero(np.diff((np.cumsum(sizes) - 1) // group_size)) + 1
    return np.array([0, *cuts, len(sizes)])


class Bracket(NamedTuple):
    """Two neighbouring levels: a condition is false at `after`, and true at `at` and at every larger level.

    after None: the condition is true from the smallest level on. at None: it is false at the largest level.
    """

    after: int | None
    at: int | None


def bracket(levels: Sequence[int], holds: Sequence[bool]) -> Bracket:
    """Return the two levels around the last change from False to True.

    levels: in ascending order. holds: True if the condition is true, one item per level.
    """
    last_not = max((i for i, each in enumerate(holds) if not each), default=-1)
    return Bracket(
        after=levels[last_not] if last_not >= 0 else None,
        at=levels[last_not + 1] if last_not + 1 < len(levels) else None,
    )


def rows_joined(parts: Sequence[NDArray[np.void]]) -> NDArray[np.void]:
    """Concatenate arrays of rows with the same structured type, at least one. The result is a new array."""
    # As bytes, because NumPy's concatenate copies field by field, which is 10 times slower.
    return np.concatenate([part.view(np.uint8) for part in parts]).view(parts[0].dtype)


def place_of(data: Bytes) -> tuple[int, int]:
    """Return the address and the size of an array in memory. Two arrays with equal places share all bytes."""
    return data.ctypes.data, len(data)


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    """Return a read-only view. Kernels that only read are compiled for read-only arrays alone."""
    view = array.view()
    freeze(view)
    return view


def freeze(*columns: NDArray[Any]) -> None:
    for column in columns:
        column.setflags(False)  # type: ignore[call-arg]  # a keyword takes twice as long


def check_buffer(out: Any, size_bytes: int = 0) -> None:
    """Raise InvalidRecords unless `out` is a writeable, contiguous uint8 array with at least `size_bytes` bytes."""
    if not isinstance(out, np.ndarray) or out.dtype != _UINT8 or out.ndim != 1:
        raise InvalidRecords("out: a one-dimensional uint8 array is wanted")
    flags = out.flags
    if not flags.c_contiguous or not flags.writeable:
        raise InvalidRecords("out: a writeable, contiguous array is wanted")
    if len(out) < size_bytes:
        raise InvalidRecords(f"out: {len(out)} bytes, {size_bytes} are needed")


def as_bytes(name: str, data: Any) -> Bytes:
    """Return a read-only uint8 view of an object with a buffer, such as bytes or an array. Raises InvalidRecords.

    name: the argument's name in the error message. Nothing is copied.
    """
    try:
        if not isinstance(data, np.ndarray):
            view = np.frombuffer(data, np.uint8)
        else:  # avoid views where possible: making one takes as long as calling a kernel
            view = data if data.dtype == _UINT8 and data.ndim == 1 else data.reshape(-1).view(np.uint8)
    except (TypeError, ValueError, BufferError) as error:
        raise InvalidRecords(f"{name}: a contiguous buffer of bytes is wanted ({error})") from None
    if not view.flags.c_contiguous:
        raise InvalidRecords(f"{name}: a contiguous buffer of bytes is wanted")
    return read_only(view)
