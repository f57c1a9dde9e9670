"""Committed reports stay few, small, readable and in the index."""

import json
import re
from pathlib import Path

import pytest

from kfbench.report.files import files_of, report_of
from kfbench.store import open_run
from kfbench.sweep.definition.filter import filter_profile
from kfbench.sweep.definition.profile import load_profile
from tests.runs import committed_reports, date_and_number

FOLDER = Path(__file__).parents[2] / "reports"
REPORTS = sorted(path.parent for path in FOLDER.glob("*.*/index.html"))
MOST = 3
MOST_OF_A_PAGE = 350_000
MOST_BYTES = 1_500_000  # of all files but the rows
JOINS = True
INDEXED = re.compile(
    r"^\| \[?(?P<name>\d[\d.-]+)\S* \| (?P<profile>\w+) \| (?P<machine>.*?) \| (?P<noise>\S+) \|.*[0-9a-f]{7} \|$",
    re.MULTILINE,
)


def test_the_index_has_the_reports_that_are_here_and_those_removed() -> None:
    """The index lists the committed reports and the removed ones.

    A report that `make report` just made does not count.
    """
    committed = {report.name for report in committed_reports()}
    rows = {row["name"]: row for row in INDEXED.finditer((FOLDER / "README.md").read_text(encoding="utf-8"))}
    assert list(rows) == sorted(rows, key=date_and_number, reverse=True)
    assert committed <= rows.keys() and len(committed) <= MOST < len(rows)
    for report in (FOLDER / name for name in committed):
        row, manifest = rows[report.name], open_run(report).manifest
        assert row["profile"] == manifest["profile"]
        assert row["noise"] == ("noisy" if manifest["noise"]["noisy"] else "quiet")
        assert row["machine"].endswith(json.loads((report / "environment.json").read_bytes())["cpu_model"])


@pytest.mark.thorough
@pytest.mark.parametrize("report", REPORTS, ids=lambda path: str(path.name))
def test_a_committed_report_is_small_and_its_rows_can_be_read(report: Path) -> None:
    assert sum(path.stat().st_size for path in report.rglob("*") if path.is_file()) <= 5_500_000
    run = open_run(report)
    sizes = {name: len(data) for name, data in files_of(run) if not name.endswith(".parquet")}
    assert sum(sizes.values()) <= MOST_BYTES
    assert max(size for name, size in sizes.items() if name.endswith(".html")) <= MOST_OF_A_PAGE
    assert run.table.num_rows == sum(run.manifest["counts"][state] for state in ("ok", "skipped", "error"))
    assert run.manifest["counts"]["error"] == 0


def profile_of(report: Path) -> str:
    return str(open_run(report).manifest["profile"])


DEFAULTS = [report for report in REPORTS if profile_of(report) == "default"]


@pytest.mark.thorough
@pytest.mark.parametrize("report", sorted({REPORTS[0], DEFAULTS[-1], REPORTS[-1]}), ids=lambda path: str(path.name))
def test_the_oldest_and_the_newest_can_still_be_rendered(report: Path) -> None:
    run = open_run(report)
    files = dict(files_of(run))
    page = "".join(data.decode() for name, data in files.items() if name.endswith(".html"))
    first_screen = files["README.md"].decode().partition("\n## ")[0]  # the report that the project's README.md shows
    for name in ("verdict", "kip931", "broker-append", "clients", "dictionaries-means", "aa", "preset-rank"):
        assert f'id="t-{name}"' in page
    assert re.search(r"v3, not in Kafka, saves [\d.]+\s%", first_screen)


@pytest.mark.thorough
def test_the_command_of_each_section_measures_its_rows() -> None:
    """Each section of the newest default report names blocks of the sweep that have its cells."""
    report = report_of(open_run(DEFAULTS[-1]))
    profile, tried = load_profile("default"), 0
    for section in (section for page in report.pages for section in page.sections if section.command):
        tried += 1
        chosen = filter_profile(profile, re.findall(r"--filter (\S+)", section.command))
        measured = {cell.cell_id for cell in chosen.cells}
        for table in (*section.tables, *section.more):
            arms = report.tables[table.name].arms
            assert "grid" not in arms or set(arms["cell_id"]) <= measured, (section.name, table.name)
    assert tried == 2
