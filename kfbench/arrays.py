"""The arrays that everything here is made of: read-only, contiguous, one-dimensional."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kfbench.errors import InvalidRecords

Int64 = NDArray[np.int64]
Int32 = NDArray[np.int32]
Bytes = NDArray[np.uint8]


def integers_of(name: str, values: ArrayLike, dtype: type[np.generic], is_kept: bool = True) -> NDArray[Any]:
    """A read-only, contiguous, one-dimensional array.

    is_kept: beyond the call that the values were given to, so that nobody else may be able to write to it.
    """
    if type(values) is np.ndarray and values.dtype == dtype and values.ndim == 1 and values.flags.c_contiguous:
        if not is_kept:
            return read_only(values)
        if _given_away(values):
            return values
    given = np.asarray(values)
    if given.ndim != 1 or (given.dtype.kind not in "iu" and given.size):
        raise InvalidRecords(f"{name}: a one-dimensional array of integers is wanted, not {given.dtype}{given.shape}")
    if given.dtype != dtype and given.size and not np.can_cast(given.dtype, dtype):
        limits = np.iinfo(dtype)  # type: ignore[type-var]
        if given.min() < limits.min or given.max() > limits.max:
            raise InvalidRecords(f"{name}: a value does not fit {np.dtype(dtype)}")
    column = np.array(given, dtype, copy=None if _given_away(given) else True, order="C")
    freeze(column)
    return column


def _given_away(array: NDArray[Any]) -> bool:
    """Whether nobody can write to these bytes any more; a read-only view of a writeable array does not say so."""
    root: Any = array
    while isinstance(root, np.ndarray):
        if root.flags.writeable:
            return False
        root = root.base
    return root is None or isinstance(root, bytes)


def ranges(starts: Int64, lengths: Int64) -> Int64:
    """starts[i] to starts[i] + lengths[i] - 1 of each i, one after another."""
    ends = np.cumsum(lengths, dtype=np.int64)
    numbers: Int64 = np.arange(ends[-1] if len(ends) else 0) + np.repeat(starts - (ends - lengths), lengths)
    return numbers


def rows_joined(parts: Sequence[NDArray[np.void]]) -> NDArray[np.void]:
    """Rows of one structured type, from at least one part, one after another in an array of their own."""
    # As bytes: NumPy's own concatenate, copy and index go field by field, 10 times slower; its take does not.
    return np.concatenate([part.view(np.uint8) for part in parts]).view(parts[0].dtype)


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    """A view that cannot be written through: kernels that read are compiled once, for these."""
    view = array.view()
    freeze(view)
    return view


def freeze(*columns: NDArray[Any]) -> None:
    """Nobody writes through these any more."""
    for column in columns:
        column.setflags(False)  # type: ignore[call-arg]  # by its name it takes twice as long


def check_buffer(out: Any, size_bytes: int = 0) -> None:
    """Whether `out` can be written into, and holds `size_bytes`. Raises InvalidRecords."""
    if not isinstance(out, np.ndarray) or out.dtype != np.uint8 or out.ndim != 1:
        raise InvalidRecords("out: a one-dimensional uint8 array is wanted")
    if not out.flags.c_contiguous or not out.flags.writeable:
        raise InvalidRecords("out: a writeable, contiguous array is wanted")
    if len(out) < size_bytes:
        raise InvalidRecords(f"out: {len(out)} bytes, {size_bytes} are needed")


def as_bytes(name: str, data: Any) -> Bytes:
    """A read-only uint8 view of anything with a buffer, without a copy."""
    try:
        if not isinstance(data, np.ndarray):
            view = np.frombuffer(data, np.uint8)
        else:  # each view costs as much as a kernel's call
            view = data if data.dtype == np.uint8 and data.ndim == 1 else data.reshape(-1).view(np.uint8)
    except (TypeError, ValueError, BufferError) as error:
        raise InvalidRecords(f"{name}: a contiguous buffer of bytes is wanted ({error})") from None
    if not view.flags.c_contiguous:
        raise InvalidRecords(f"{name}: a contiguous buffer of bytes is wanted")
    return read_only(view)
