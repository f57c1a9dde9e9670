"""The interface of a workload, and its laws.

Laws (tests/workloads/test_workloads.py checks them for every workload):
1. Records are seeded in fixed blocks of 65,536. Record i is the same in every slice that contains it. So partitioning,
   retries and machines cannot change a result.
2. `shapes` makes no payload. The bytes are made when `records` is first read.
3. `bounds` are the workload's own batches, clipped to the slice.

One side effect: the first sample of a named workload makes the C library keep more freed memory, for the whole process
(`named.sampling`). So measure the memory of a sample by its allocations (`tracemalloc`), not by the process's memory.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from kfbench.batches import BatchFields
from kfbench.errors import InvalidConfig
from kfbench.records import Records, Shapes

BLOCK_RECORDS: Final = 65_536


class NoSuchPoint(InvalidConfig):
    """A point whose axes are valid alone, but make no sense together. A product of axes leaves it out."""


@dataclass(frozen=True, kw_only=True)
class Sample:
    """A slice of a workload's records. bounds: int64[batches + 1], the first record of each batch, then the end."""

    shapes: Shapes
    bounds: NDArray[np.int64]
    batch_fields: BatchFields
    payload: Callable[[], Records] = field(repr=False)

    @cached_property
    def records(self) -> Records:
        return self.payload()


class Filled(NamedTuple):
    """A column of texts one after another: data uint8[total], and the start of each text, int64[n]."""

    data: NDArray[np.uint8]
    starts: NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class Parameter:
    """A number or word of a workload. path: its tables and its name; source: the origin of its value."""

    path: str
    value: Any
    meaning: str | None = None
    source: str | None = None


@dataclass(frozen=True, kw_only=True)
class Description:
    """The purpose and parts of a workload. variants: the default first."""

    question: str
    story: str
    variants: tuple[str, ...]
    assumptions: tuple[str, ...]
    parameters: tuple[Parameter, ...]


class Workload(Protocol):
    """A named recipe for records: a frozen dataclass whose fields are its axes, cheap to pickle."""

    @property
    def name(self) -> str: ...

    @property
    def summary(self) -> str: ...

    def describe(self) -> Description: ...

    def __hash__(self) -> int: ...

    def generate(self, *, records: int, seed: int, start: int = 0) -> Sample:
        """Return the records start ... start + records - 1 of the endless sequence of this seed."""
        ...


def check_slice(records: int, seed: int, start: int) -> None:
    """Raise InvalidConfig for a negative number."""
    if records < 0 or start < 0 or seed < 0:
        raise InvalidConfig(f"records {records}, start {start} and seed {seed} must not be negative")


class BlockSlice(NamedTuple):
    """The part of a slice in one block. first: its first record, counted in the block; records: their number."""

    block: int
    first: int
    records: int


def block_slices(start: int, records: int) -> Iterator[BlockSlice]:
    """Divide a slice into its parts in each block."""
    stop = start + records
    while start < stop:
        block, first = divmod(start, BLOCK_RECORDS)
        count = min(BLOCK_RECORDS - first, stop - start)
        yield BlockSlice(block, first, count)
        start += count


def draw_words(seed: int, purpose: int, *, start: int, records: int, words: int) -> NDArray[np.uint64]:
    """Return the random words of these records, uint64[records, words].

    Every record takes the same number of draws, so the generator jumps to the first one. A slice of a block does not
    generate the rest of the block, which may be gigabytes.
    """
    drawn = np.empty((records, words), np.dtype("<u8"))
    done = 0
    for block, first, count in block_slices(start, records):
        stream = np.random.PCG64(np.random.SeedSequence([seed, block, purpose]))
        stream.advance(first * words)
        drawn[done : done + count] = np.random.Generator(stream).integers(
            0, 2**64 - 1, size=(count, words), dtype=np.uint64, endpoint=True
        )
        done += count
    return drawn
