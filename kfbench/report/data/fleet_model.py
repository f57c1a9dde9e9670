"""From the rows of the size model to a fleet: a workload's cells as one sum, what it cost, what so many messages take.

Sums are integers: the same whatever the number of cells, tasks and hosts.
"""

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import groupby, pairwise
from operator import attrgetter
from typing import Any, Final

import numpy as np

from kfbench.formats import BASE_FORMAT

MESSAGES_A_DAY: Final = 10**12
_NUMBERS: Final = ("start", "records", "batches", "size_bytes", "payload_bytes", "generate_ns", "resident_bytes")


@dataclass(frozen=True, kw_only=True)
class _Cell:
    """One row of the model. subject: block, workload, variant and seed."""

    subject: tuple[str, str, str | None, int]
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


@dataclass(frozen=True, kw_only=True)
class Total:
    """All records of a workload in one format, without a codec."""

    records: int
    batches: int
    size_bytes: int
    payload_bytes: int
    losses: Mapping[str, int]

    @property
    def bytes_a_record(self) -> float:
        return self.size_bytes / self.records

    def bytes_for(self, messages: int = MESSAGES_A_DAY) -> float:
        """What so many messages take, if all are like these. One copy."""
        return self.size_bytes * messages / self.records


@dataclass(frozen=True, kw_only=True)
class Growth:
    """What a workload's records cost. records, cpu_ns: of the first cells together, one item each, all formats at once;
    the cells follow one another from record 0 on."""

    records: tuple[int, ...]
    cpu_ns: tuple[int, ...]

    @property
    def ns_a_record(self) -> list[float]:
        """Of each cell."""
        ends = zip((0, *self.records), (0, *self.cpu_ns), strict=True)
        return [(cost - cost0) / (end - end0) for (end0, cost0), (end, cost) in pairwise(ends)]

    @property
    def exponent(self) -> float | None:
        """p of cost = c * records**p: 1 is linear. None of one cell.

        By least squares over the logarithms of each cell's ns a record and of the record in its middle: that slope is
        p - 1, for p of 1 and 2 exactly. Sums up to a record have what came before in them, and look linear for longer.
        """
        if len(self.records) < 2:
            return None
        middles = [(start + end) / 2 for start, end in pairwise((0, *self.records))]
        slope, _ = np.polyfit(np.log(middles), np.log(self.ns_a_record), 1)
        return float(slope) + 1


@dataclass(frozen=True, kw_only=True)
class Modelled:
    """One workload or variant. formats: those of which no cell is missing, v2 among them or not. resident_bytes: the
    most that any worker held. hosts: of several, times do not add up."""

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
        """What the format saves of v2's bytes; below 0: it takes more. None where one of them is missing."""
        if name not in self.formats or BASE_FORMAT not in self.formats:
            return None
        return self.formats[BASE_FORMAT].bytes_for(messages) - self.formats[name].bytes_for(messages)


def modelled(rows: Iterable[Mapping[str, Any]]) -> list[Modelled]:
    """Of each block, workload, variant and seed what its cells add up to. rows: of schema.py; those that are no sound
    rows of the model are left out."""
    cells = sorted(map(_cell, filter(_is_sound, rows)), key=lambda cell: (repr(cell.subject), cell.format, cell.start))
    found = []
    for (_, workload, variant, seed), of_subject in groupby(cells, attrgetter("subject")):
        formats = {name: list(each) for name, each in groupby(of_subject, attrgetter("format"))}
        longest = max(formats.values(), key=_unbroken)
        end = _unbroken(longest)
        if not end:
            continue
        whole = {name: each for name, each in formats.items() if _unbroken(each) == end == _last(each)}
        if not whole:
            continue
        found.append(
            Modelled(
                workload=workload,
                variant=variant,
                seed=seed,
                formats={name: _total(each) for name, each in whole.items()},
                growth=_growth(list(whole.values())),
                resident_bytes=max(cell.resident_bytes for each in whole.values() for cell in each),
                hosts=frozenset(cell.host for each in whole.values() for cell in each),
            )
        )
    return found


def _is_sound(row: Mapping[str, Any]) -> bool:
    return bool(row["kind"] == "model" and row["status"] == "ok")


def _cell(row: Mapping[str, Any]) -> _Cell:
    variant = row["variant"] if isinstance(row["variant"], str) else None
    numbers: dict[str, Any] = {name: int(row[name]) for name in _NUMBERS}
    return _Cell(
        subject=(row["grid"], row["workload"], variant, int(row["seed"])),
        format=row["format"],
        losses=json.loads(row["losses"]),
        size_ns=int(sum(row["cpu_ns"])),
        host=row["host"],
        **numbers,
    )


def _unbroken(cells: Iterable[_Cell]) -> int:
    """How many records there are from record 0 on without a gap."""
    end = 0
    for cell in cells:
        if cell.start != end:
            break
        end += cell.records
    return end


def _last(cells: Iterable[_Cell]) -> int:
    return max(cell.start + cell.records for cell in cells)


def _total(cells: list[_Cell]) -> Total:
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


def _growth(formats: list[list[_Cell]]) -> Growth:
    costs = [each[0].generate_ns + sum(cell.size_ns for cell in each) for each in zip(*formats, strict=True)]
    records = np.cumsum([cell.records for cell in formats[0]])
    return Growth(records=tuple(records.tolist()), cpu_ns=tuple(np.cumsum(costs).tolist()))
