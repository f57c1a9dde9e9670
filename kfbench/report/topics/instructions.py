"""The section about instructions beside CPU time: what repeats exactly, and where the two disagree."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pandas as pd

from kfbench.formats import BASE_FORMAT
from kfbench.measure.callgrind import estimated_cycles
from kfbench.measure.cpu import OPERATIONS, READINGS
from kfbench.report.data.arms import Arm, arms_of, paired
from kfbench.report.data.joined import INSTRUCTIONS
from kfbench.report.data.results import Results
from kfbench.report.data.shown_formats import MAIN, in_order
from kfbench.report.data.views import Views
from kfbench.report.section import Answer, Texts
from kfbench.tables import Cell, Column, Interval, Table, plain_columns

TIMED: Final = ("cpu", *READINGS, "broker")
SIDE: Final = 0.005  # a ratio of counts within this of 1 is on neither side

Place = tuple[str, str, str, str]  # cell id, codec with level, operation, format that a path converts to


@dataclass(frozen=True, kw_only=True)
class Counted:
    """The counts of one format per record, beside its CPU time. estimate: cycles, as callgrind estimates them."""

    format: str
    operation: str
    batch_size: float
    codec: str
    instructions: float
    estimate: float
    timed: Arm | None


class Pair:
    """A format and the base in the same place: ratios of instructions, of estimated cycles and of CPU time."""

    def __init__(self, of: Counted, base: Counted) -> None:
        self.of = of
        self.instructions = of.instructions / base.instructions
        self.estimate = of.estimate / base.estimate
        self.time: Interval | None = paired(of.timed, base.timed) if of.timed and base.timed else None

    @property
    def disagrees(self) -> bool:
        """True if instructions and time are on different sides of 1, both beyond their error."""
        if self.time is None or abs(self.instructions - 1) <= SIDE or self.time.low <= 1 <= self.time.high:
            return False
        return (self.instructions > 1) != (self.time.median > 1)

    @property
    def reason(self) -> str:
        """What may explain a disagreement: the simulated caches, or what callgrind does not know."""
        caches = (self.estimate > 1) == (self.time is not None and self.time.median > 1)
        return "misses of caches" if caches else "branches, stalls, or instructions that run side by side"


def instructions_answer(run: Views) -> Answer | str:
    if not run.counted or not (counted := counts_of(results := Results(run.counted.rows))):
        return "no counts of instructions"
    pairs = list(pairs_of(counted))
    return Answer(
        means=agreement(pairs),
        prose=(run.counted.origin,),
        texts=Texts(rows=results.ok[results.ok["kind"] == INSTRUCTIONS], of="any"),
        tables=(beside_time(counted), disagreements(pairs)),
    )


def counts_of(results: Results) -> dict[tuple[Place, str], Counted]:
    """Return the counts of each place and format on the grid, per record."""
    timed = {
        (_place(arm), arm.format): arm
        for kind in TIMED
        for arm in arms_of(results.grid_arms(kind))
        if arm.is_ok and not arm.is_aa and arm.cache != "cold"
    }
    rows = results.grid_arms(INSTRUCTIONS)
    counted = {}
    for arm, (_, row) in zip(arms_of(rows), rows.iterrows(), strict=True):
        key = _place(arm), arm.format
        instructions, l1, last = (
            _per_record(row, *names)
            for names in (
                ("instructions", "library_instructions"),  # Python's part does not repeat exactly
                ("l1_misses",),
                ("last_level_misses",),
            )
        )
        counted[key] = Counted(
            format=arm.format,
            operation=f"{arm.operation} to {arm.to_format}" if arm.to_format else arm.operation,
            batch_size=arm.point["batch_size"],
            codec=arm.with_codec,
            instructions=instructions,
            estimate=estimated_cycles(instructions, l1, last),
            timed=timed.get(key),
        )
    return counted


def _place(arm: Arm) -> Place:
    return arm.cell_id, arm.with_codec, arm.operation, arm.to_format


def _per_record(row: "pd.Series[Any]", *names: str) -> float:
    """Return what a record adds to the sum of these columns: the difference of the two calls."""
    few, many = row["counted_records"]
    return float(sum(row[name][1] - row[name][0] for name in names) / (many - few))


def pairs_of(counted: dict[tuple[Place, str], Counted]) -> Iterator[Pair]:
    for (place, name), of in counted.items():
        if name != BASE_FORMAT and (base := counted.get((place, BASE_FORMAT))):
            yield Pair(of, base)


def beside_time(counted: dict[tuple[Place, str], Counted]) -> Table:
    """Return a table of encode and decode without a codec: instructions and ns per record of each main format."""
    cells: dict[tuple[str, float], dict[str, Counted]] = {}
    for of in counted.values():
        if of.operation in OPERATIONS and of.codec == "none" and of.format in MAIN:
            cells.setdefault((of.operation, of.batch_size), {})[of.format] = of
    rows = []
    for operation, batch_size in sorted(cells, key=lambda key: (OPERATIONS.index(key[0]), key[1])):
        numbers: list[Cell] = []
        for name in MAIN:
            each = cells[operation, batch_size].get(name)
            numbers += [each.instructions if each else None, each.timed.ns_per_record if each and each.timed else None]
        rows.append((operation, f"{batch_size:,.0f}", *numbers))
    return Table(
        name="instructions",
        caption="Instructions and CPU time per record, without a codec",
        columns=(
            *plain_columns("operation", "records per batch"),
            *(Column(name=name, unit=unit, digits=1) for name in MAIN for unit in ("instructions", "ns")),
        ),
        rows=tuple(rows),
        notes=("Instructions are of kernels for AVX2, under valgrind. Times are of kernels for this processor.",),
    )


def disagreements(pairs: list[Pair]) -> Table | None:
    """Return a table of the cells in which a format takes more instructions than v2 and less time, or the reverse."""
    found = [pair for pair in pairs if pair.disagrees]
    if not found:
        return None
    order = in_order({pair.of.format for pair in found})
    found.sort(key=lambda pair: (order.index(pair.of.format), pair.of.operation, pair.of.batch_size, pair.of.codec))
    return Table(
        name="instructions-disagree",
        caption=f"Where instructions and time are on different sides of {BASE_FORMAT}",
        columns=(
            *plain_columns("format", "operation", "records per batch", "codec"),
            Column(name="instructions", unit="×", digits=3),
            Column(name="estimated cycles", unit="×", digits=3),
            Column(name="CPU time", unit="×"),
            Column(name="what may explain it"),
        ),
        rows=tuple(
            (
                pair.of.format, pair.of.operation, f"{pair.of.batch_size:,.0f}", pair.of.codec,
                pair.instructions, pair.estimate, pair.time, pair.reason,
            )
            for pair in found
        ),
        notes=("The estimate is callgrind's: instructions + 10 first-level misses + 100 last-level misses.",),
    )  # fmt: skip


def agreement(pairs: list[Pair]) -> str:
    """Say how well ratios of instructions and of time agree: Spearman's rank correlation over all cells."""
    both = [(pair.instructions, pair.time.median) for pair in pairs if pair.time]
    if len(both) < 3:
        return "The run has no CPU times beside the counts."
    counts, times = (pd.Series(column).rank() for column in zip(*both, strict=True))
    differ = sum(pair.disagrees for pair in pairs)
    return (
        f"Over {len(both)} ratios to {BASE_FORMAT}, the rank correlation of instructions and CPU time is "
        f"{np.corrcoef(counts, times)[0, 1]:.2f}. In {differ} of them the two disagree about which format is dearer."
    )
