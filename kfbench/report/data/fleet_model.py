"""The size model of a fleet: computed sizes of many records, summed by workload, and the cost of computing them.

The model computes sizes in cells; each cell has a range of a workload's records. Sums are integers, so they do not
depend on the number of cells, tasks and hosts.
"""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import groupby, pairwise
from operator import attrgetter
from typing import Any, Final

import numpy as np
import pandas as pd

from kfbench.formats import BASE_FORMAT

MESSAGES_A_DAY: Final = 10**12


@dataclass(frozen=True, kw_only=True)
class Cell:
    """A stored row of the size model, which computes sizes without encoding records.

    A row is about a range of a workload's records, in one format. start: the number of the first record of the range.
    cpu_ns: the CPU time of computing the sizes.
    """

    grid: str
    workload: str
    variant: str | None
    seed: int
    format: str
    host: str | None
    start: int
    records: int
    batches: int
    size_bytes: int
    payload_bytes: int
    generate_ns: int
    cpu_ns: int
    resident_bytes: int
    losses: Mapping[str, int]

    @property
    def end(self) -> int:
        return self.start + self.records


_SUBJECT: Final = attrgetter("grid", "workload", "variant", "seed")


@dataclass(frozen=True, kw_only=True)
class Total:
    """The computed size of a workload's records in one format, without a codec."""

    records: int
    batches: int
    size_bytes: int
    payload_bytes: int
    losses: Mapping[str, int]

    def bytes_for(self, messages: int = MESSAGES_A_DAY) -> float:
        """Return the size in bytes of this number of messages, if all are like the workload's records.

        One copy, not replicated.
        """
        return self.size_bytes * messages / self.records


@dataclass(frozen=True, kw_only=True)
class Growth:
    """The CPU time of computing a workload's sizes, in all formats together, and how it grows with the records.

    The records are processed in ranges (cells) that follow one another from record 0 on. Item i of `records` and
    `cpu_ns` is the sum over the cells 0 to i.
    """

    records: tuple[int, ...]
    cpu_ns: tuple[int, ...]

    @property
    def ns_per_record(self) -> list[float]:
        """The CPU time per record in ns for each cell (a range of records)."""
        ends = zip((0, *self.records), (0, *self.cpu_ns), strict=True)
        return [(cost - cost0) / (end - end0) for (end0, cost0), (end, cost) in pairwise(ends)]

    @property
    def exponent(self) -> float | None:
        """The exponent p of cost = c * records**p. p = 1 means that the cost is linear. None for one cell.

        A cell is a range of records. The fit uses least squares: the logarithm of each cell's ns per record over the
        logarithm of its middle record. Its slope is p - 1 (exactly so for p of 1 and 2). A fit to sums from record 0
        would hide growth, because the first cells are cheap.
        """
        if len(self.records) < 2:
            return None
        middles = [(start + end) / 2 for start, end in pairwise((0, *self.records))]
        slope, _ = np.polyfit(np.log(middles), np.log(self.ns_per_record), 1)
        return float(slope) + 1


@dataclass(frozen=True, kw_only=True)
class Modelled:
    """The computed sizes of one workload or variant, and the cost of computing them.

    Args:
        formats: format -> its sizes; only formats for which all records were processed.
        growth: the CPU time of computing the sizes.
        resident_bytes: the largest peak memory of any worker process.
        hosts: the hosts that computed the sizes. Times of several hosts must not be added.
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
        """Return the number of bytes that the format saves compared with v2, for this number of messages.

        It is negative if the format takes more. It is None if one of the two formats is missing.
        """
        if name not in self.formats or BASE_FORMAT not in self.formats:
            return None
        return self.formats[BASE_FORMAT].bytes_for(messages) - self.formats[name].bytes_for(messages)


def cells_of(rows: pd.DataFrame) -> list[Cell]:
    """Select the rows of the size model without failures, and convert them to typed rows."""
    rows = rows[(rows["kind"] == "model") & (rows["status"] == "ok")]
    columns: dict[str, list[Any]] = {}
    for field in fields(Cell):
        column = rows[field.name]
        if field.name == "cpu_ns":
            columns[field.name] = [int(sum(samples)) for samples in column]
        elif field.name == "losses":
            columns[field.name] = [json.loads(text) for text in column]
        elif field.type is int:
            columns[field.name] = [int(value) for value in column]
        else:
            columns[field.name] = [value if isinstance(value, str) else None for value in column]
    return [Cell(**dict(zip(columns, values, strict=True))) for values in zip(*columns.values(), strict=True)]


def modelled(cells: Iterable[Cell]) -> list[Modelled]:
    """Add up the cells (ranges of records) of each workload, variant and seed, separately per block of the sweep.

    A format that lacks a cell is left out. A workload is left out if no format has all its cells from record 0 on.
    """
    found = []
    ordered = sorted(cells, key=lambda cell: (repr(_SUBJECT(cell)), cell.format, cell.start))
    for (_, workload, variant, seed), of_subject in groupby(ordered, _SUBJECT):
        formats = {name: list(of_format) for name, of_format in groupby(of_subject, lambda cell: cell.format)}
        end = max(map(_unbroken, formats.values()))
        whole = {name: of_format for name, of_format in formats.items() if _unbroken(of_format) == end}
        whole = {name: of_format for name, of_format in whole.items() if max(cell.end for cell in of_format) == end}
        if not end or not whole:
            continue
        every = [cell for of_format in whole.values() for cell in of_format]
        found.append(
            Modelled(
                workload=workload,
                variant=variant,
                seed=seed,
                formats={name: _total(of_format) for name, of_format in whole.items()},
                growth=_growth(list(whole.values())),
                resident_bytes=max(cell.resident_bytes for cell in every),
                hosts=frozenset(cell.host for cell in every),
            )
        )
    return found


def _unbroken(cells: Sequence[Cell]) -> int:
    """Return the number of records from record 0 up to the first gap between the cells (ranges of records)."""
    end = 0
    for cell in cells:
        if cell.start != end:
            break
        end = cell.end
    return end


def _total(cells: Sequence[Cell]) -> Total:
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


def _growth(formats: Sequence[Sequence[Cell]]) -> Growth:
    costs = [cells[0].generate_ns + sum(cell.cpu_ns for cell in cells) for cells in zip(*formats, strict=True)]
    records = np.cumsum([cell.records for cell in formats[0]])
    return Growth(records=tuple(records.tolist()), cpu_ns=tuple(np.cumsum(costs).tolist()))
