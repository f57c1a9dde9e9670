"""The interface of a workload, and the laws that every workload follows.

A workload is an endless sequence of records per seed. A slice is any number of consecutive records of it. A block is a
group of 65,536 records, counted from record 0.

Laws (tests/workloads/test_workloads.py checks them for every workload):
1. Each block has its own random seed. Record i is the same in every slice that contains it. So partitioning, retries
   and machines cannot change a result.
2. Reading `Sample.shapes` (lengths, times, offsets) generates no payload. Payload is generated when `Sample.records` is
   first read.
3. `Sample.bounds` are the batches of the workload, cut at both ends of the slice.

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
    """A combination of axis values that are valid alone, but not together. A sweep over several axes leaves it out."""


@dataclass(frozen=True, kw_only=True)
class Sample:
    """Consecutive records of a workload.

    Args:
        shapes: lengths, timestamps and offsets of the records.
        bounds: int64[batches + 1], the index of the first record of each batch, then the number of records.
        batch_fields: the header fields of the batches.
        payload: generates the records. Use `records` instead, which calls it once.
    """

    shapes: Shapes
    bounds: NDArray[np.int64]
    batch_fields: BatchFields
    payload: Callable[[], Records] = field(repr=False)

    @cached_property
    def records(self) -> Records:
        return self.payload()


class TextColumn(NamedTuple):
    """A column of n keys, values or header values.

    Args:
        data: uint8[any], the bytes of all items.
        starts: int64[n], the position of each item's first byte in `data`.
    """

    data: NDArray[np.uint8]
    starts: NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class Parameter:
    """A number or word that defines a workload.

    Args:
        path: the dotted path of the key, such as arrival.rate_per_s.
        source: the origin of the value, such as a publication, or "assumed: " and a reason; None: not given.
    """

    path: str
    value: Any
    meaning: str | None = None
    source: str | None = None


@dataclass(frozen=True, kw_only=True)
class Description:
    """The description of a workload for users. variants: the names of its variants, the default first."""

    question: str
    story: str
    variants: tuple[str, ...]
    assumptions: tuple[str, ...]
    parameters: tuple[Parameter, ...]


class Workload(Protocol):
    """A generator of records with a name.

    It is a frozen dataclass that is cheap to pickle. Its fields, except the name, are the axes that a sweep can vary.
    """

    @property
    def name(self) -> str: ...

    @property
    def summary(self) -> str: ...

    def describe(self) -> Description: ...

    def __hash__(self) -> int: ...

    def generate(self, *, records: int, seed: int, start: int = 0) -> Sample:
        """Return the records with the numbers start to start + records - 1 of the endless sequence of this seed."""
        ...


def check_slice(records: int, seed: int, start: int) -> None:
    """Raise InvalidConfig if an argument is negative."""
    if records < 0 or start < 0 or seed < 0:
        raise InvalidConfig(f"records {records}, start {start} and seed {seed} must not be negative")


def check_batch_size(batch_size: object) -> None:
    """Raise InvalidConfig unless `batch_size` is a number of records from 1 to those of a block."""
    if not isinstance(batch_size, int) or not 1 <= batch_size <= BLOCK_RECORDS:
        raise InvalidConfig(f"batch_size: {batch_size!r} is not 1 to {BLOCK_RECORDS}")


def regular_bounds(batch_size: int, records: int, start: int) -> NDArray[np.int64]:
    """Return the boundaries of batches of `batch_size` records, counted from record 0: int64[batches + 1].

    start: the number of the slice's first record. A slice may begin and end inside a batch.
    """
    inner = np.arange(-start % batch_size or batch_size, records, batch_size)
    return np.concatenate([[0], inner, [records]]) if records else np.zeros(1, np.int64)


class BlockSlice(NamedTuple):
    """The part of a slice that is in one block of 65,536 records.

    Args:
        block: the number of the block, from 0.
        first: the index of the part's first record in the block.
        records: the number of records in the part.
    """

    block: int
    first: int
    records: int


def block_slices(start: int, records: int) -> Iterator[BlockSlice]:
    """Divide the records start to start + records - 1 at the ends of blocks of 65,536 records. Yield each part."""
    stop = start + records
    while start < stop:
        block, first = divmod(start, BLOCK_RECORDS)
        count = min(BLOCK_RECORDS - first, stop - start)
        yield BlockSlice(block, first, count)
        start += count


def draw_words(seed: int, purpose: int, *, start: int, records: int, words: int) -> NDArray[np.uint64]:
    """Return random 64-bit numbers for the records start to start + records - 1: uint64[records, words].

    Every record takes `words` numbers, so the generator can jump to the first record. It need not generate the rest of
    the block of 65,536 records, which may be gigabytes.

    purpose: the number of a stream of random draws. Streams with different numbers are independent.
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
