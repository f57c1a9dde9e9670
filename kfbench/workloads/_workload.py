"""What a workload promises, and what it gives.

Laws (tests/workloads/test_workloads.py holds every workload to them):
1. Records are seeded by fixed blocks of 65,536: record i is the same in every slice that holds it, so that
   partitioning, retries and machines cannot change a result.
2. `shapes` costs no payload: the bytes are made when `records` is first asked for.
3. `bounds` are the workload's own batches, clipped to the slice.

One thing outside of a sample changes: the first one of a named workload lets the C library keep more freed memory for
the whole process (`_model._keep_freed_memory`). What a process holds is no measure of a sample, then; what a call
allocates (`tracemalloc`) is.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from kfbench.batches import BatchFields
from kfbench.errors import InvalidConfig
from kfbench.records import Records, Shapes

BLOCK_RECORDS: Final = 65_536


class NoSuchPoint(InvalidConfig):
    """Axes that are sound each and mean nothing together: a product of axes leaves such points out."""


@dataclass(frozen=True, kw_only=True)
class Sample:
    """A slice: shapes, batch bounds int64[batches + 1], the batches' fields, payload on demand."""

    shapes: Shapes
    bounds: NDArray[np.int64]
    batch_fields: BatchFields
    payload: Callable[[], Records] = field(repr=False)

    @cached_property
    def records(self) -> Records:
        return self.payload()


@dataclass(frozen=True, kw_only=True)
class Parameter:
    """One number or word of a workload. path: its tables and its name; source: where its value is from."""

    path: str
    value: Any
    meaning: str | None = None
    source: str | None = None


@dataclass(frozen=True, kw_only=True)
class Description:
    """What a workload is there for and what it is made of. variants: the default first."""

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
        """The records start ... start + records - 1 of the endless sequence that `seed` names."""
        ...


def check_slice(records: int, seed: int, start: int) -> None:
    """Raises InvalidConfig."""
    if records < 0 or start < 0 or seed < 0:
        raise InvalidConfig(f"records {records}, start {start} and seed {seed} must not be negative")


def block_slices(start: int, records: int) -> Iterator[tuple[int, int, int]]:
    """(block, first record in the block, how many) of each block that the slice touches."""
    stop = start + records
    while start < stop:
        block, first = divmod(start, BLOCK_RECORDS)
        count = min(BLOCK_RECORDS - first, stop - start)
        yield block, first, count
        start += count


def draw_words(seed: int, purpose: int, *, start: int, records: int, words: int) -> NDArray[np.uint64]:
    """uint64[records, words]: the draws of these records and no others.

    Every record takes the same number of draws, so the generator can jump to the first: a slice of a block
    of 100 KiB values does not make the block's other six gigabytes.
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
