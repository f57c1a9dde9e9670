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
    """The records of a cell, and our bytes of them by format: {"v2": bytes}.

    Offsets count from 0 in each batch, as clients' writers count them.
    """

    records: Records
    batch_size: int
    logs: dict[str, bytes]

    def read(self, name: str) -> Records:
        """Return the records as a reader gets them from this format: v0 has no times."""
        if FORMATS[name].capabilities.timestamps:
            return self.records
        return self.records.at_times(np.full(len(self.records), NO_TIMESTAMP))


@dataclass(frozen=True, kw_only=True)
class Arm:
    """A timed arm. sample: times this number of calls in a row. again: BASE_FORMAT a second time (A/A)."""

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
        warm_up_s: the least and the most seconds of warm-up, for all arms of an operation together.
    """

    name: str
    version: str
    machine: str | None
    warm_up_s: tuple[float, float]

    def arms(self, task: Task) -> Iterator[Arm]:
        """Yield the arms of each format that Kafka writes, verified.

        Raises Differs for bytes that differ from `task.logs`, or records that differ from `task.read`.
        """
        ...


class Absent(Exception):
    """This machine lacks a peer; one line says what is missing."""


class Differs(Exception):
    """A peer writes other bytes than we do, or reads other records."""


Start = Callable[[], AbstractContextManager[Peer]]


def sampling(call: Callable[[], object]) -> Callable[[int], CallTimes]:
    """Return the `sample` of a Python call."""
    return lambda calls: timed(call, calls)


def logs(records: Records, batch_size: int) -> dict[str, bytes]:
    """Return our bytes of the records in each format that Kafka writes."""
    return {name: bytes(FORMATS[name].encode(records, batch_size, lossy=True)) for name in KAFKA_FORMATS}
