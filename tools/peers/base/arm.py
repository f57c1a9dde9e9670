"""The interface of a peer, and an arm: one peer, format and operation on one cell's records."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from kfbench.formats import FORMATS
from kfbench.layouts import NO_TIMESTAMP
from kfbench.measure.cpu import CallTimes, Operation, timed
from kfbench.records import Records
from kfbench.report.topics.peers import FORMATS as KAFKA_FORMATS


@dataclass(frozen=True, kw_only=True)
class Task:
    """The records of a cell. logs: our encoded bytes, by format.

    Offsets start at 0 in each batch, as in clients' writers.
    """

    records: Records
    batch_size: int
    logs: dict[str, bytes]

    def read(self, name: str) -> Records:
        """Return the records as a reader gets them from this format. v0 has no times."""
        if FORMATS[name].capabilities.timestamps:
            return self.records
        return self.records.at_times(np.full(len(self.records), NO_TIMESTAMP))


@dataclass(frozen=True, kw_only=True)
class Arm:
    """A timed arm. sample: times a number of calls in a row; again: True for the second arm of BASE_FORMAT (A/A)."""

    peer: str
    format: str
    operation: Operation
    sample: Callable[[int], CallTimes]
    again: bool = False


class Peer(Protocol):
    """A timed implementation.

    Args:
        version: the version of the implementation.
        machine: the JVM or other program that runs it, with its options; None for this Python.
        warm_up_s: the minimum and maximum seconds of warm-up, for all arms of an operation together.
    """

    name: str
    version: str
    machine: str | None
    warm_up_s: tuple[float, float]

    def arms(self, task: Task) -> Iterator[Arm]:
        """Verify and yield the arms of each format that Kafka writes.

        Raises Differs if the peer's bytes differ from `task.logs`, or its records from `task.read`.
        """
        ...


class Absent(Exception):
    """A peer is not installed. The message names what is missing."""


class Differs(Exception):
    """A peer writes other bytes than we do, or reads other records."""


Start = Callable[[], AbstractContextManager[Peer]]


def sampling(call: Callable[[], object]) -> Callable[[int], CallTimes]:
    return lambda calls: timed(call, calls)


def logs(records: Records, batch_size: int) -> dict[str, bytes]:
    return {name: bytes(FORMATS[name].encode(records, batch_size, lossy=True)) for name in KAFKA_FORMATS}
