"""The size model of a fleet: the cells of each workload as one sum, what they cost, and what so many messages take.

Sums are integers: the same whatever the number of cells, tasks and hosts.
"""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import Any, Final, NamedTuple

import numpy as np

from kfbench.formats import BASE_FORMAT

MESSAGES_A_DAY: Final = 10**12
_NUMBERS: Final = ("start", "records", "batches", "size_bytes", "payload_bytes", "generate_ns", "resident_bytes")


class _Subject(NamedTuple):
    grid: str
    workload: str
    variant: str | None
    seed: int


@dataclass(frozen=True, kw_only=True)
class _Cell:
    """One row of the model."""

    subject: _Subject
    format: str
    start: int
    records: int
    batches: int
    size_bytes: int
    payload_bytes: int
    losses: Mapping[str, int]
    generate_ns: int
    size_ns: int
    resident_bytes: int
    host: str | None

    @property
    def end(self) -> int:
        return self.start + self.records


@dataclass(frozen=True, kw_only=True)
class Total:
    """All records of a workload in one format, without a codec."""

    records: int
    batches: int
    size_bytes: int
    payload_bytes: int
    losses: Mapping[str, int]

    def bytes_for(self, messages: int = MESSAGES_A_DAY) -> float:
        """Return the bytes of one copy of so many messages, if all are like these."""
        return self.size_bytes * messages / self.records


@dataclass(frozen=True, kw_only=True)
class Growth:
    """The cost of a workload's records, all formats together. The cells follow one another from record 0 on.

    Item i of `records` and `cpu_ns` is the sum over the cells 0 to i.
    """

    records: tuple[int, ...]
    cpu_ns: tuple[int, ...]

    @property
    def ns_per_record(self) -> list[float]:
        """The cost per record of each cell."""
        ends = zip((0, *self.records), (0, *self.cpu_ns), strict=True)
        return [(cost - cost0) / (end - end0) for (end0, cost0), (end, cost) in pairwise(ends)]

    @property
    def exponent(self) -> float | None:
        """The p of cost = c * records**p: 1 is linear. None for one cell.

        The slope of the logarithm of a cell's ns per record over that of its middle record, by least squares, is p - 1
        (exactly so for p of 1 and 2). Sums from record 0 on would hide growth behind the cheap first cells.
        """
        if len(self.records) < 2:
            return None
        middles = [(start + end) / 2 for start, end in pairwise((0, *self.records))]
        slope, _ = np.polyfit(np.log(middles), np.log(self.ns_per_record), 1)
        return float(slope) + 1


@dataclass(frozen=True, kw_only=True)
class Modelled:
    """One workload or variant.

    formats: those that lack no cell. resident_bytes: the most that any worker held. hosts: times of several do not add
    up.
    """

    workload: str
    variant: str | None
    seed: int
    formats: Mapping[str, Total]
    growth: Growth
    resident_bytes: int
    hosts: frozenset[str | None]

    @property
    def records(self) -> int:
        return self.growth.records[-1]

    def saved_bytes(self, name: str, messages: int = MESSAGES_A_DAY) -> float | None:
        """Return the bytes that the format saves of v2's, negative if it takes more; None where one is missing."""
        if name not in self.formats or BASE_FORMAT not in self.formats:
            return None
        return self.formats[BASE_FORMAT].bytes_for(messages) - self.formats[name].bytes_for(messages)


def modelled(rows: Iterable[Mapping[str, Any]]) -> list[Modelled]:
    """Add up the cells of each block, workload, variant and seed.

    rows: as stored. Those of other kinds, and failures, are left out; so are workloads that lack a cell.
    """
    cells = [_cell(row) for row in rows if row["kind"] == "model" and row["status"] == "ok"]
    cells.sort(key=lambda cell: (repr(cell.subject), cell.format, cell.start))
    found = []
    for subject, of_subject in groupby(cells, lambda cell: cell.subject):
        formats = {name: list(of_format) for name, of_format in groupby(of_subject, lambda cell: cell.format)}
        end = max(map(_unbroken, formats.values()))
        whole = {name: of_format for name, of_format in formats.items() if _unbroken(of_format) == end}
        whole = {name: of_format for name, of_format in whole.items() if max(cell.end for cell in of_format) == end}
        if not end or not whole:
            continue
        every = [cell for of_format in whole.values() for cell in of_format]
        found.append(
            Modelled(
                workload=subject.workload,
                variant=subject.variant,
                seed=subject.seed,
                formats={name: _total(of_format) for name, of_format in whole.items()},
                growth=_growth(list(whole.values())),
                resident_bytes=max(cell.resident_bytes for cell in every),
                hosts=frozenset(cell.host for cell in every),
            )
        )
    return found


def _cell(row: Mapping[str, Any]) -> _Cell:
    variant = row["variant"] if isinstance(row["variant"], str) else None
    numbers: dict[str, Any] = {name: int(row[name]) for name in _NUMBERS}
    return _Cell(
        subject=_Subject(row["grid"], row["workload"], variant, int(row["seed"])),
        format=row["format"],
        losses=json.loads(row["losses"]),
        size_ns=int(sum(row["cpu_ns"])),
        host=row["host"],
        **numbers,
    )


def _unbroken(cells: Sequence[_Cell]) -> int:
    """Return the number of records from record 0 on without a gap."""
    end = 0
    for cell in cells:
        if cell.start != end:
            break
        end = cell.end
    return end


def _total(cells: Sequence[_Cell]) -> Total:
    losses = Counter[str]()
    for cell in cells:
        losses.update(cell.losses)
    return Total(
        records=sum(cell.records for cell in cells),
        batches=sum(cell.batches for cell in cells),
        size_bytes=sum(cell.size_bytes for cell in cells),
        payload_bytes=sum(cell.payload_bytes for cell in cells),
        losses=dict(losses),
    )


def _growth(formats: Sequence[Sequence[_Cell]]) -> Growth:
    costs = [cells[0].generate_ns + sum(cell.size_ns for cell in cells) for cells in zip(*formats, strict=True)]
    records = np.cumsum([cell.records for cell in formats[0]])
    return Growth(records=tuple(records.tolist()), cpu_ns=tuple(np.cumsum(costs).tolist()))
