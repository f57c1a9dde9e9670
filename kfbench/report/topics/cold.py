"""The section about CPU time on data that is in no cache, next to the same cells with data in the caches."""

from collections.abc import Mapping

import pandas as pd

from kfbench.formats import BASE_FORMAT
from kfbench.measure.cpu import OPERATIONS
from kfbench.report.data.arms import Arm, arms_of, paired
from kfbench.report.data.axes import AXES, level
from kfbench.report.data.results import Results
from kfbench.report.data.shown_formats import NEW, in_order
from kfbench.report.data.views import Views
from kfbench.report.data.words import cpu_range_sentence
from kfbench.report.section import Answer, Texts
from kfbench.tables import Column, Interval, Table

AA = f"{BASE_FORMAT} again"


def cold_answer(run: Views) -> Answer | str:
    results = run.results
    if results.cold.empty:
        return "no CPU times on cold data"
    return Answer(
        means=cold_sentence(results),
        texts=Texts(rows=results.cold, of="any"),
        tables=tuple(cold_table(results, operation) for operation in OPERATIONS),
    )


def cold_table(results: Results, operation: str) -> Table | None:
    """Return a table with a row per workload setting: CPU ratios to v2, then CPU time of v2 in ns per record.

    Each number is shown for cold data, and for data in the caches if the run has it.
    """
    cold = _by_cell(results.cold, operation)
    if not cold:
        return None
    resident = _by_cell(results.cpu[results.cpu["cell_id"].isin(list(cold))], operation)
    names = in_order({name for arms in cold.values() for name in arms} - {BASE_FORMAT, AA})
    first = {cell_id: next(iter(arms.values())) for cell_id, arms in cold.items()}
    varied = [axis for axis in results.axes if len({arm.point[axis] for arm in first.values()}) > 1]
    body = []
    for cell_id, at in sorted(first.items(), key=lambda item: [item[1].point[axis] for axis in varied]):
        sides = cold[cell_id], resident.get(cell_id, {})
        ratios = [_ratio(side, name) for name in names for side in sides]
        ns = [side[BASE_FORMAT].ns_per_record if BASE_FORMAT in side else None for side in sides]
        body.append((*(level(axis, at.point[axis]) for axis in varied), *ratios, _ratio(sides[0], AA), *ns))
    rotated = min(arm.rotated_bytes for arm in first.values())
    return Table(
        name=f"cold-{operation}",
        caption=f"{operation}, CPU time relative to {BASE_FORMAT}: cold, and the same cells in the caches",
        columns=(
            *(AXES[axis] for axis in varied),
            *(Column(name=f"{name}, {side}", unit="×") for name in names for side in ("cold", "resident")),
            Column(name=f"{AA}, cold", unit="×"),
            *(Column(name=f"{BASE_FORMAT}, {side}", unit="ns per record", digits=1) for side in ("cold", "resident")),
        ),
        rows=tuple(body),
        notes=(f"Each call used other data, from {rotated / 1e6:,.0f} MB or more in turn.",),
    )


def _by_cell(rows: pd.DataFrame, operation: str) -> dict[str, dict[str, Arm]]:
    """Return the measurements of an operation without a codec: cell id -> format -> measurement.

    The second timing of v2 has the key AA instead of a format.
    """
    cells: dict[str, dict[str, Arm]] = {}
    for arm in arms_of(rows[(rows["operation"] == operation) & (rows["codec"] == "none")]):
        cells.setdefault(arm.cell_id, {})[AA if arm.is_aa else arm.format] = arm
    return cells


def _ratio(arms: Mapping[str, Arm], name: str) -> Interval | None:
    return paired(arms[name], arms[BASE_FORMAT]) if {name, BASE_FORMAT} <= arms.keys() else None


def cold_sentence(results: Results) -> str:
    """Give the range of v3's CPU time relative to v2 on cold data, by operation."""
    sentences = []
    for operation in OPERATIONS:
        found = _by_cell(results.cold, operation).values()
        if ratios := [ratio.median for arms in found if (ratio := _ratio(arms, NEW))]:
            sentences.append(cpu_range_sentence(NEW, operation, ratios, "where no cache has the data"))
    return " ".join(sentences)
