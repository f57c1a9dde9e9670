"""What is timed: one peer, format and operation on one cell's records; and what a peer is."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from kfbench.formats import FORMATS
from kfbench.layouts import NO_TIMESTAMP
from kfbench.measure.cpu import Operation
from kfbench.records import Records


class Times(NamedTuple):
    cpu_ns: int
    wall_ns: int


@dataclass(frozen=True, kw_only=True)
class Task:
    """The records of a cell, and what each format makes of them by our writer: {"v2": bytes}. Offsets count from 0 in
    each batch, as clients' writers count them."""

    records: Records
    batch_size: int
    logs: dict[str, bytes]

    def read(self, name: str) -> Records:
        """The records as a reader gets them from this format: v0 has no times."""
        if FORMATS[name].capabilities.timestamps:
            return self.records
        return self.records.at_times(np.full(len(self.records), NO_TIMESTAMP))


@dataclass(frozen=True, kw_only=True)
class Arm:
    """sample: the time of so many calls on end. again: the arm beside itself, of BASE_FORMAT (A/A)."""

    peer: str
    format: str
    operation: Operation
    sample: Callable[[int], Times]
    again: bool = False


class Peer(Protocol):
    """version: of what is measured. machine: what runs it where that is not this Python, with its options. warm_up_s:
    at least and at most, of all arms of an operation together."""

    name: str
    version: str
    machine: str | None
    warm_up_s: tuple[float, float]

    def arms(self, task: Task) -> Iterator[Arm]:
        """Raises Differs for a log that is not ours byte for byte, or for records that are not what was written."""
        ...


class Absent(Exception):
    """A peer that this machine lacks: one line that says what is missing."""


class Differs(Exception):
    """A peer writes other bytes than we do, or reads other records: there is nothing to compare."""


Start = Callable[[], AbstractContextManager[Peer]]
