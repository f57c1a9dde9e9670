"""What a run lacks, by its reasons: rows that enter no table, and sections or figures that it has no rows for."""

from collections.abc import Sequence
from typing import Any, Final

import pandas as pd

from kfbench.report.data.results import Results
from kfbench.report.data.shown_formats import RESEARCH
from kfbench.report.render.tables import Table, listed, number, plain_columns

OTHER_HOST: Final = "other host"


def reason(row: Any) -> str:
    """Why a row is no number, in short: what its format has no room for, or the first line of its error."""
    told = "" if pd.isna(row.error) else str(row.error).partition("\n")[0]
    return told.removeprefix(f"{row.format} has ") if row.status == "skipped" else f"error, {told}" if told else "error"


def table(results: Results) -> Table | None:
    """Every row that enters no table, by its reason: errors first, then CPU times of another host than the rest, then
    combinations left out by rule."""
    rows = results.every[results.every["status"] != "ok"]
    there = results.left_out
    rows = pd.concat([rows, there.assign(status=OTHER_HOST, error="timed on " + there["host"].astype(str))])
    if rows.empty:
        return None
    counted = rows.groupby(["status", "kind", "format", "codec", "error"], dropna=False)["cell_id"]
    body = [
        (
            status,
            kind,
            fmt,
            codec,
            int(cells.count()),
            str(cells.iloc[0]),
            "" if pd.isna(error) else str(error),
        )
        for (status, kind, fmt, codec, error), cells in counted
    ]
    body.sort(key=lambda row: (row[0] != "error", row))
    return Table(
        name="failures",
        caption="Rows that enter no table",
        columns=plain_columns("status", "kind", "format", "codec", "rows", "first cell", "reason"),
        rows=tuple(body),
    )


def missing_table(missing: Sequence[tuple[str, str]], apart: str | None = None) -> Table | None:
    """missing: what a reader may look for, and why it is not there. apart: the title of the section that has all rows
    of a research format."""
    if not missing:
        return None
    return Table(
        name="missing",
        caption="Sections and figures that this run has no rows for",
        columns=plain_columns("section or figure", "what the run lacks"),
        rows=tuple(missing),
        notes=(f"They are about Kafka's formats and proposals. All rows of {listed(RESEARCH)} stand under: {apart}",)
        if apart
        else (),
    )


def sentence(results: Results, missing: int) -> str:
    """missing: how many sections and figures."""
    counts = results.every["status"].value_counts()
    errors, skipped, there = int(counts.get("error", 0)), int(counts.get("skipped", 0)), len(results.left_out)
    total = len(results.every)
    if not errors and not skipped and not there:
        text = f"All {number(total)} rows of this run are numbers: no cell failed, none was left out."
    else:
        text = (
            f"Of {number(total)} rows {number(errors)} failed and {number(skipped)} were left out by rule"
            + (f"; {number(there)} are CPU times of another host than the rest" if there else "")
            + "; none of them enters a table above."
        )
    if not missing:
        return f"{text} No section lacks its rows."
    return (
        f"{text} {number(missing)} {'section or figure has' if missing == 1 else 'sections and figures have'} no rows."
    )
