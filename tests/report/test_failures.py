"""Missing results are listed with their reasons."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from kfbench.report.data.results import Results
from kfbench.report.page import page
from kfbench.report.section import Section
from kfbench.report.topics import failures
from kfbench.store import Run
from tests.report.columns import column, results_of, some
from tests.report.workload_rows import workload_rows
from tests.runs import stored


def test_failures_are_listed_by_reason_errors_first(rows: list[dict[str, Any]], results: Results) -> None:
    table = some(failures.failures_table(results))
    assert sum(column(table, "rows")) == sum(row["status"] != "ok" for row in rows)
    assert set(column(table, "reason")) == {"v1 has no headers", "v1 has no zstd"}
    broken = results.all.copy()
    first = broken.index[broken["status"] == "ok"][0]
    broken.loc[first, ["status", "error"]] = ["error", "it broke"]
    failed = some(failures.failures_table(Results(broken)))
    assert failed.rows[0][0] == "error"
    assert failed.rows[0][-1] == "it broke"


def test_what_failed_or_was_timed_on_another_host_is_counted_and_listed(tmp_path: Path) -> None:
    rows = workload_rows()
    for row in rows:
        if row["kind"] == "cpu" and row["workload"] == "cluster-metadata":
            row["host"] = "there"
            if row["format"] == "v3":
                row |= {"status": "error", "error": "it broke", "cpu_ns": None}
    results = results_of(tmp_path, rows)
    table = some(failures.failures_table(results))
    counts: Counter[Any] = Counter()
    for status, count in zip(column(table, "status"), column(table, "rows"), strict=True):
        counts[status] += count
    skipped = sum(row["status"] == "skipped" for row in rows)
    assert counts == {"error": 2, failures.OTHER_HOST: 8, "skipped": skipped}  # encode and decode; four arms each
    assert table.rows[0][0] == "error"
    assert {row[-1] for row in table.rows if row[0] == failures.OTHER_HOST} == {"timed on there"}
    assert results.elsewhere == {"there": 1} and len(results.every) == len(results.all) + 8


def test_a_host_that_only_failed_leaves_nothing_out(tmp_path: Path) -> None:
    rows = [
        row | {"host": "there", "status": "error", "error": "it broke", "cpu_ns": None}
        if row["kind"] == "cpu" and row["workload"] == "forgotten"
        else row
        for row in workload_rows()
    ]
    results = results_of(tmp_path, rows)
    assert not results.elsewhere and len(results.all) == len(rows)


def asked(found: tuple[Section, ...]) -> set[str]:
    """Return the questions that a report answers in a section, or lists as having no rows."""
    titles = {section.title for section in found if not section.name.startswith("block-")}
    missing = next((table for table in found[-1].tables if table.name == "missing"), None)
    told = set(column(missing, "section or figure")) if missing else set()
    return titles | {what for what in told if what.endswith("?")}


@pytest.mark.thorough
def test_whatever_a_run_lacks_the_same_questions_are_asked(
    rows: list[dict[str, Any]], results: Results, broker_run: Run, tmp_path: Path
) -> None:
    verdict = {"What stands behind the verdict?", "Which format for which workload?"}
    bare = [row for row in rows if row["kind"] == "bytes" and row["codec"] == "none"][:1]
    runs = {
        "grid": results,
        "broker": Results(broker_run.measurements()),
        "named": Results(stored(tmp_path / "named", workload_rows()).measurements()),
        "one row": Results(stored(tmp_path / "one", bare).measurements()),
    }
    pages = {name: page(run, []).sections for name, run in runs.items()}
    questions = {name: asked(found) - verdict for name, found in pages.items()}
    assert len({frozenset(each) for each in questions.values()}) == 1, questions
    assert [section.name for section in pages["one row"]] == ["fields", "claims", "failures"]
    assert len(next(iter(questions.values()))) > 20
