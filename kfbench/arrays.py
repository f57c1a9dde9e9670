"""The arrays that everything here is made of: read-only, contiguous, one-dimensional."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kfbench.errors import InvalidRecords

Int64 = NDArray[np.int64]
Int32 = NDArray[np.int32]
Bytes = NDArray[np.uint8]


def integers_of(name: str, values: ArrayLike, dtype: type[np.generic]) -> NDArray[Any]:
    """A read-only, contiguous, one-dimensional array that nobody else can write to."""
    given = np.asarray(values)
    if given.ndim != 1 or (given.dtype.kind not in "iu" and given.size):
        raise InvalidRecords(f"{name}: a one-dimensional array of integers is wanted, not {given.dtype}{given.shape}")
    if given.size and not np.can_cast(given.dtype, dtype):
        limits = np.iinfo(dtype)  # type: ignore[type-var]
        if given.min() < limits.min or given.max() > limits.max:
            raise InvalidRecords(f"{name}: a value does not fit {np.dtype(dtype)}")
    # A read-only array is taken as it is: who made it so has given it away.
    column = np.array(given, dtype, copy=True if given.flags.writeable else None, order="C").view()
    column.flags.writeable = False
    return column


def as_bytes(name: str, data: Any) -> Bytes:
    """A read-only uint8 view of anything with a buffer, without a copy."""
    try:
        view = np.frombuffer(data, np.uint8) if not isinstance(data, np.ndarray) else data.reshape(-1).view(np.uint8)
    except (TypeError, ValueError, BufferError) as error:
        raise InvalidRecords(f"{name}: a contiguous buffer of bytes is wanted ({error})") from None
    if not view.flags.c_contiguous:
        raise InvalidRecords(f"{name}: a contiguous buffer of bytes is wanted")
    view = view.view()
    view.flags.writeable = False
    return view
