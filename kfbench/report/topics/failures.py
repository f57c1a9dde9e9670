"""The last section: rows that are in no table, and sections or figures that the run has no rows for."""

from collections.abc import Sequence
from typing import Final

import pandas as pd

from kfbench.formats import RESEARCH
from kfbench.report.data.results import Results
from kfbench.report.section import Answer, Missing
from kfbench.tables import Table, listed, number, plain_columns

OTHER_HOST: Final = "other host"


def failures_answer(results: Results, missing: Sequence[Missing], research: str | None) -> Answer:
    """Return the last section of the report: what is missing.

    research: the title of the section about research formats; None if there is none.
    """
    return Answer(
        means=failures_sentence(results, len(missing)),
        tables=(missing_table(missing, research), failures_table(results)),
        wrap=True,
    )


def failures_table(results: Results) -> Table | None:
    """Return a table of the rows that are in no other table, with one row per reason.

    Errors come first, then CPU times that were left out because another host timed more, then combinations left out by
    rule.
    """
    rows = results.every[results.every["status"] != "ok"]
    elsewhere = results.left_out
    rows = pd.concat([rows, elsewhere.assign(status=OTHER_HOST, error="timed on " + elsewhere["host"].astype(str))])
    if rows.empty:
        return None
    groups = rows.groupby(["status", "kind", "format", "codec", "error"], dropna=False)["cell_id"]
    body = [
        (status, kind, name, codec, int(cells.count()), str(cells.iloc[0]), "" if pd.isna(error) else str(error))
        for (status, kind, name, codec, error), cells in groups
    ]
    body.sort(key=lambda row: (row[0] != "error", row))
    return Table(
        name="failures",
        caption="Rows that enter no table",
        columns=plain_columns("status", "kind", "format", "codec", "rows", "first cell", "reason"),
        rows=tuple(body),
    )


def missing_table(missing: Sequence[Missing], research: str | None) -> Table | None:
    if not missing:
        return None
    formats = listed(sorted(RESEARCH))
    note = (
        f"They are about Kafka's formats and proposals. {formats} stands under: {research}. "
        "The overview of workloads has it, too"
    )
    return Table(
        name="missing",
        caption="Sections and figures that this run has no rows for",
        columns=plain_columns("section or figure", "what the run lacks"),
        rows=tuple((each.what, each.why) for each in missing),
        notes=(note,) if research else (),
    )


def failures_sentence(results: Results, missing: int) -> str:
    """Give the number of rows without numbers. missing: the number of sections and figures without rows."""
    counts = results.every["status"].value_counts()
    errors, skipped = int(counts.get("error", 0)), int(counts.get("skipped", 0))
    elsewhere, total = len(results.left_out), len(results.every)
    if not errors and not skipped and not elsewhere:
        text = f"All {number(total)} rows of this run are numbers: no cell failed, none was left out."
    else:
        text = (
            f"Of {number(total)} rows {number(errors)} failed and {number(skipped)} were left out by rule."
            + (f" {number(elsewhere)} are CPU times of another host than the rest." if elsewhere else "")
            + " No table above has them."
        )
    if not missing:
        return f"{text} No section lacks its rows."
    have = "section or figure has" if missing == 1 else "sections and figures have"
    return f"{text} {number(missing)} {have} no rows."
