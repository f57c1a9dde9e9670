"""Cold CPU: the same cells on data that no cache holds, to see what waiting for memory leaves of a difference."""

from collections.abc import Mapping
from typing import Any

import pandas as pd

from kfbench.formats import BASE_FORMAT
from kfbench.measure.cpu import OPERATIONS
from kfbench.report.data.axes import AXES, level
from kfbench.report.data.results import Results
from kfbench.report.data.shown_formats import in_order
from kfbench.report.section import Missing, Section, Texts
from kfbench.tables import Column, Interval, Table, listed

AA = f"{BASE_FORMAT} again"


def cold_section(results: Results) -> Section | Missing:
    title = "What does it cost in CPU where no cache has the data?"
    if results.cold.empty:
        return Missing(what=title, why="no CPU times on cold data")
    return Section(
        name="cpu-cold",
        short="Cold CPU",
        title=title,
        means=cold_sentence(results),
        texts=Texts(rows=results.cold, of="any"),
        tables=tuple(table for operation in OPERATIONS if (table := cold_table(results, operation)) is not None),
    )


def cold_table(results: Results, operation: str) -> Table | None:
    """Return one row a cell: ratios to v2 cold and, where the run has them, resident; then v2 itself."""
    cold = _by_cell(results.with_ratios(results.cold), operation)
    resident = _by_cell(results.with_ratios(results.cpu[results.cpu["cell_id"].isin(list(cold))]), operation)
    if not cold:
        return None
    names = in_order({name for arms in cold.values() for name in arms} - {BASE_FORMAT, AA})
    first = {cell_id: next(iter(arms.values())) for cell_id, arms in cold.items()}
    varied = [axis for axis in results.axes if len({getattr(row, axis) for row in first.values()}) > 1]
    body = []
    for cell_id, at in sorted(first.items(), key=lambda item: [getattr(item[1], axis) for axis in varied]):
        sides: tuple[Mapping[str, Any], ...] = cold[cell_id], resident.get(cell_id, {})
        ratios = [_ratio(side.get(name)) for name in names for side in sides]
        ns = [side[BASE_FORMAT].ns_per_record if BASE_FORMAT in side else None for side in sides]
        body.append((*(level(axis, getattr(at, axis)) for axis in varied), *ratios, _ratio(sides[0].get(AA)), *ns))
    rotated = min(float(row.rotated_bytes) for row in first.values())
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
        notes=(f"Calls went round through {rotated / 1e6:,.0f} MB or more.",),
    )


def _by_cell(rows: pd.DataFrame, operation: str) -> dict[str, dict[str, Any]]:
    """Return cell -> format -> row, without a codec; the A/A arm as AA."""
    rows = rows[(rows["operation"] == operation) & (rows["codec"] == "none")]
    cells: dict[str, dict[str, Any]] = {}
    for row in rows.itertuples():
        cells.setdefault(str(row.cell_id), {})[AA if row.arm == "aa" else str(row.format)] = row
    return cells


def _ratio(row: Any) -> Interval | None:
    return row.ratio if row is not None and isinstance(row.ratio, Interval) else None


def cold_sentence(results: Results) -> str:
    rows = results.with_ratios(results.cold)
    rows = rows[(rows["codec"] == "none") & (rows["arm"] == "measure")]
    parts = []
    for name in in_order(set(rows["format"]) - {BASE_FORMAT}):
        spans = []
        for operation in OPERATIONS:
            ratios = rows.loc[(rows["format"] == name) & (rows["operation"] == operation), "ratio"]
            medians = [ratio.median for ratio in ratios if isinstance(ratio, Interval)]
            if medians:
                spans.append(f"{min(medians):.2f} to {max(medians):.2f} to {operation}")
        if spans:
            parts.append(f"{name} takes {listed(spans)}")
    return f"On data that no cache holds, in times of {BASE_FORMAT}'s CPU: {'; '.join(parts)}." if parts else ""
