"""The interface of a peer (a timed implementation) and of an arm (one timed call).

An arm is one operation of one peer in one format, on the records of one cell (measurement).
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from kfbench.formats import FORMATS
from kfbench.layouts import NO_TIMESTAMP
from kfbench.measure.cpu import CallTimes, Operation, timed
from kfbench.present.stored_times import KAFKA_FORMATS
from kfbench.records import Records
from tools.builds import ToolError


@dataclass(frozen=True, kw_only=True)
class Task:
    """The records that all peers encode and decode. Offsets start at 0 in each batch, as in a producer.

    logs: the bytes that our formats encode from the records, by format.
    """

    records: Records
    batch_size: int
    logs: dict[str, bytes]

    def read(self, name: str) -> Records:
        """Return the records that a reader gets from this format. In v0 they have no timestamps."""
        if FORMATS[name].capabilities.timestamps:
            return self.records
        return self.records.at_times(np.full(len(self.records), NO_TIMESTAMP))


@dataclass(frozen=True, kw_only=True)
class Arm:
    """One operation of one peer in one format, to be timed.

    Args:
        sample: runs the operation a number of times in a row and returns the CPU and wall time of all calls.
        again: True for the arm that times the base format a second time (A/A), to show the noise.
    """

    peer: str
    format: str
    operation: Operation
    sample: Callable[[int], CallTimes]
    again: bool = False


class Peer(Protocol):
    """An implementation of Kafka's formats that can be timed.

    Attributes:
        version: the version of the implementation.
        machine: the JVM or other program that runs it, with its options; None for this Python process.
        warm_up_s: the minimum and maximum duration of the warm-up in seconds, for all arms of an operation together.
    """

    name: str
    version: str
    machine: str | None
    warm_up_s: tuple[float, float]

    def arms(self, task: Task) -> Iterator[Arm]:
        """Yield the arms of each format that Kafka writes, after checking the peer's output.

        Raises Differs if the bytes that the peer writes differ from `task.logs`, or if the records that it reads differ
        from `task.read`.
        """
        ...


class Absent(Exception):
    """A peer is not installed. The message is the reason, such as a missing package."""


class PeerEnded(ToolError):
    """A peer's program ended, or gave no answer in time and was ended. peer: its name."""

    def __init__(self, peer: str, reason: str) -> None:
        super().__init__(f"{peer} {reason}")
        self.peer = peer


class Differs(Exception):
    """A peer writes other bytes than we do, or reads other records."""


Start = Callable[[], AbstractContextManager[Peer]]


def sampling(call: Callable[[], object]) -> Callable[[int], CallTimes]:
    return lambda calls: timed(call, calls)


def logs(records: Records, batch_size: int) -> dict[str, bytes]:
    return {name: bytes(FORMATS[name].encode(records, batch_size, lossy=True)) for name in KAFKA_FORMATS}
