"""The section about instructions beside CPU time: what repeats exactly, and where the two disagree."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import pandas as pd

from kfbench.formats import BASE_FORMAT
from kfbench.measure.callgrind import estimated_cycles
from kfbench.measure.cpu import OPERATIONS
from kfbench.measure.kinds.cpu import READINGS
from kfbench.measure.paths import PATHS
from kfbench.report.data.arms import COLD, Arm, Band, arms_of, middle_95, one_per_arm, paired, ties
from kfbench.report.data.axes import GRID
from kfbench.report.data.joined import INSTRUCTIONS
from kfbench.report.data.results import Results
from kfbench.report.data.shown_formats import MAIN, in_order
from kfbench.report.data.views import Views
from kfbench.report.section import Answer, Texts
from kfbench.tables import Cell, Column, Interval, Table, plain_columns

TIMED: Final = ("cpu", *READINGS, "broker")
SIDE: Final = 0.005  # a ratio of counts within this of 1 is on neither side
MISSES: Final = 0.01  # the simulated misses move an estimate by up to so much between runs
INSTRUCTION_COLUMNS: Final = ("kernel_instructions", "library_instructions", "python_instructions")

CellName = tuple[str, str, str, str]  # cell id, codec with level, operation, format that a path converts to


@dataclass(frozen=True, kw_only=True)
class ArmCounts:
    """The counts of one format's call per record, beside its CPU time; of paths that are shown per call, per call.

    instructions: of kernels, libraries, libc and Python. estimate: cycles, as callgrind estimates them.
    """

    format: str
    operation: str
    batch_size: float
    codec: str
    instructions: float
    estimate: float
    timed: Arm | None


class CountRatio:
    """A format and the base at the same place: ratios of instructions, of estimated cycles and of CPU time."""

    def __init__(self, of: ArmCounts, base: ArmCounts, noise: Band | None) -> None:
        self.of, self._noise = of, noise
        self.instructions = of.instructions / base.instructions
        self.estimate = of.estimate / base.estimate
        self.time: Interval | None = paired(of.timed, base.timed) if of.timed and base.timed else None

    @property
    def disagrees(self) -> bool:
        """True if instructions and time are on different sides of 1, both beyond their error."""
        if self.time is None or abs(self.instructions - 1) <= SIDE or ties(self.time, self._noise):
            return False
        return (self.instructions > 1) != (self.time.median > 1)

    @property
    def reason(self) -> str:
        """A possible cause of a disagreement: the simulated caches, or an effect that callgrind does not simulate."""
        is_of_caches = self.time and (self.estimate > 1) == (self.time.median > 1) and abs(self.estimate - 1) > MISSES
        return "misses of caches" if is_of_caches else "branches, stalls, or instructions that run side by side"


def instructions_answer(run: Views) -> Answer | str:
    if not run.counted:
        return "no counts of instructions"
    rows = Results(run.counted.rows).research  # without the times of other hosts
    is_counted = rows["kind"] == INSTRUCTIONS
    grid = rows[(rows["status"] == "ok") & (rows["workload"] == GRID) & (is_counted | rows["kind"].isin(TIMED))]
    timed = [arm for arm in arms_of(one_per_arm(grid[grid["kind"].isin(TIMED)])) if arm.cache != COLD]
    counts = counts_of(grid[grid["kind"] == INSTRUCTIONS], timed)
    if not counts:
        reasons = rows.loc[is_counted, "error"].dropna()
        return f"no counts of instructions: {reasons.iloc[0] if len(reasons) else 'none is of the grid'}"
    ratios = list(ratios_of(counts, noise_of(timed)))
    return Answer(
        means=agreement(ratios),
        prose=(run.counted.origin,),
        texts=Texts(rows=grid[grid["kind"] == INSTRUCTIONS], of="any"),
        tables=(beside_time(counts), disagreements(ratios)),
    )


def counts_of(counted: pd.DataFrame, timed: list[Arm]) -> dict[tuple[CellName, str], ArmCounts]:
    """Return the counts of the call with all records, in each cell and format, beside its CPU time."""
    times = _without_aa(timed)
    rows = one_per_arm(counted)
    counts = {}
    for arm, (_, row) in zip(arms_of(rows), rows.iterrows(), strict=True):
        key = _cell_name(arm), arm.format
        by_call = arm.operation in PATHS and PATHS[arm.operation].is_per_call
        instructions, l1, last = (
            sum(row[name][1] for name in names) / (1 if by_call else row["counted_records"][1])
            for names in (INSTRUCTION_COLUMNS, ("l1_misses",), ("last_level_misses",))
        )
        counts[key] = ArmCounts(
            format=arm.format,
            operation=f"{arm.operation} to {arm.to_format}" if arm.to_format else arm.operation,
            batch_size=arm.point["batch_size"],
            codec=arm.with_codec,
            instructions=instructions,
            estimate=estimated_cycles(instructions, l1, last),
            timed=times.get(key),
        )
    return counts


def _without_aa(timed: list[Arm]) -> dict[tuple[CellName, str], Arm]:
    return {(_cell_name(arm), arm.format): arm for arm in timed if not arm.is_aa}


def noise_of(timed: list[Arm]) -> Band | None:
    """Return the middle 95 % of the ratios of v2 to itself, over all kinds."""
    bases = _without_aa(timed)
    return middle_95([paired(arm, bases[_cell_name(arm), arm.format]).median for arm in timed if arm.is_aa])


def _cell_name(arm: Arm) -> CellName:
    return arm.cell_id, arm.with_codec, arm.operation, arm.to_format


def ratios_of(counts: dict[tuple[CellName, str], ArmCounts], noise: Band | None) -> Iterator[CountRatio]:
    for (place, name), of in counts.items():
        if name != BASE_FORMAT and (base := counts.get((place, BASE_FORMAT))):
            yield CountRatio(of, base, noise)


def beside_time(counts: dict[tuple[CellName, str], ArmCounts]) -> Table:
    """Return a table of encode and decode without a codec: instructions and ns per record of each main format."""
    cells: dict[tuple[str, float], dict[str, ArmCounts]] = {}
    for of in counts.values():
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
        notes=("Instructions are of kernels for AVX2. Times are of kernels for the processor that was timed.",),
    )


def disagreements(ratios: list[CountRatio]) -> Table | None:
    """Return a table of the cells in which a format takes more instructions than v2 and less time, or the reverse."""
    found = [ratio for ratio in ratios if ratio.disagrees]
    if not found:
        return None
    order = in_order({ratio.of.format for ratio in found})
    found.sort(
        key=lambda ratio: (order.index(ratio.of.format), ratio.of.operation, ratio.of.batch_size, ratio.of.codec)
    )
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
                ratio.of.format, ratio.of.operation, f"{ratio.of.batch_size:,.0f}", ratio.of.codec,
                ratio.instructions, ratio.estimate, ratio.time, ratio.reason,
            )
            for ratio in found
        ),
        notes=("The estimate is callgrind's: instructions + 10 first-level misses + 100 last-level misses.",),
    )  # fmt: skip


def agreement(ratios: list[CountRatio]) -> str:
    """Say how well ratios of instructions and of time agree: Spearman's rank correlation over all cells."""
    both = [(ratio.instructions, ratio.time.median) for ratio in ratios if ratio.time]
    if len(both) < 3:
        return "The run has no CPU times beside the counts."
    counts, times = (pd.Series(column).rank() for column in zip(*both, strict=True))
    differ = sum(ratio.disagrees for ratio in ratios)
    return (
        f"Over {len(both)} ratios to {BASE_FORMAT}, the rank correlation of instructions and CPU time is "
        f"{counts.corr(times):.2f}. In {differ} of them the two disagree about which format is dearer."
    )
