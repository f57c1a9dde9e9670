"""The row of a size comparison, and the helpers that fill it."""

from collections.abc import Callable
from itertools import pairwise
from typing import Final, NamedTuple

from kfbench.arrays import Int64
from kfbench.records import Records

ZSTD_LEVEL: Final = 3


class RivalSize(NamedTuple):
    """The size of some batches in one arm (a container or packer with one choice of settings).

    Args:
        name: the arm.
        setting: the choice of settings, such as "documented" or "best".
        size_bytes: the size of all batches, verified by decoding; None after an error.
        records, batches: the numbers of records and batches that `size_bytes` covers.
        error: the type and message of the exception; None: no error.
    """

    name: str
    setting: str
    size_bytes: int | None
    records: int
    batches: int
    error: str | None = None


class RoundTripFailed(Exception):
    """A library returned other data than it was given."""


def check_same(name: str, is_same: bool) -> None:
    """Raise RoundTripFailed unless the decoded data equal the original. name: the arm or data, for the message."""
    if not is_same:
        raise RoundTripFailed(f"{name}: decoded data differ")


def is_library_error(error: BaseException) -> bool:
    """Return True for an error of a library. Interrupts, time limits and a lack of memory or disk space are none.

    A panic in a Rust library is no Exception. An OSError of the system has a number; one of a library has none.
    """
    if isinstance(error, OSError):
        return error.errno is None
    is_panic = type(error).__name__ == "PanicException"
    return is_panic or (isinstance(error, Exception) and not isinstance(error, MemoryError))


def error_line(error: BaseException) -> str:
    """Return the type of an error and the first line of its message."""
    return f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"


def size_row(name: str, setting: str, records: int, batches: int, measure: Callable[[], int]) -> RivalSize:
    """Call `measure`, which returns the size in bytes. Return a row with its result or its error."""
    try:
        return RivalSize(name, setting, measure(), records, batches)
    except BaseException as error:
        if not is_library_error(error):
            raise
        return RivalSize(name, setting, None, records, batches, error_line(error))


def batches_of(records: Records, bounds: Int64) -> list[Records]:
    """Return the records of each batch that is not empty. bounds: int64[batches + 1]."""
    return [records.part(first, end) for first, end in pairwise(bounds.tolist()) if end > first]
