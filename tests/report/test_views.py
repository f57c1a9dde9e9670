"""All declared tables, figures and pages: their names resolve, and they render whatever a run lacks."""

import json
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from kfbench.errors import InvalidConfig
from kfbench.present.drawings import DRAWINGS
from kfbench.present.rows import Runs
from kfbench.report.build import FRONT, Report, all_views, as_json, joined_profiles
from kfbench.report.files import files_of, report_of
from kfbench.report.joined import joined_runs, runs_of
from kfbench.report.sources import SOURCES
from kfbench.report.view_packages import VIEWS as PACKAGES
from kfbench.store import Run, open_run
from tests.present.made import counted
from tests.present.made import runs_of as runs_of_rows
from tests.report.broker_rows import broker_rows
from tests.report.workload_rows import Row, workload_rows
from tests.runs import stored

JOINS: Final = True  # the stored run has all joined rows; other runs are asked to join nothing
ROOT: Final = Path(__file__).parents[2]
REPORT: Final = ROOT / "reports" / "2026-11-24.20"
VIEWS: Final = all_views()
TABLES: Final = {table.name: table for view in VIEWS for table in view.tables}
FIGURES: Final = {figure.name: figure for view in VIEWS for figure in view.figures}
SECTIONS: Final = [section for view in VIEWS for section in view.sections]
MOST_SHOWN: Final = 60
Tables = Mapping[str, Mapping[str, Any]]


def alone(run: Run) -> Runs:
    """Return the rows of a run that joins no other."""
    return runs_of(run, {})


def tables_of_run(runs: Runs) -> Tables:
    """Return all tables as tables.json has them, without the pages."""
    built = Report(runs).tables
    return {name: as_json(table) for name in built if name != "missing" and (table := built[name].table)}


def test_names_are_unique_and_lead_to_what_there_is() -> None:
    for names in (
        [figure.name for view in VIEWS for figure in view.figures],
        [section.name for section in SECTIONS],
        [view.page.name for view in VIEWS if view.page],
        [table.name for view in VIEWS for table in view.tables],
    ):
        assert [name for name, count in Counter(names).items() if count > 1] == []
    assert {figure.drawing for figure in FIGURES.values()} <= DRAWINGS.keys()
    assert {name for figure in FIGURES.values() for name in figure.tables} <= TABLES.keys()
    assert {name for section in SECTIONS for name in section.figures} == FIGURES.keys()
    assert {name for section in SECTIONS for name in (*section.tables, *section.more)} <= TABLES.keys()
    sources = {"run", "missing", "failures", *SOURCES, *(name for each in PACKAGES.values() for name in each.sources)}
    assert {table.source for table in TABLES.values()} == sources


def test_a_table_is_on_one_page_or_hidden() -> None:
    shown = Counter(name for section in SECTIONS for name in (*section.tables, *section.more))
    assert {name for name, count in shown.items() if count > 1} == set()
    assert {name for name, table in TABLES.items() if not table.is_hidden} == shown.keys()
    assert len(shown) <= MOST_SHOWN


def test_captions_of_shown_tables_are_unique_and_whole() -> None:
    captions = [table.caption for table in TABLES.values() if not table.is_hidden]
    assert [caption for caption, count in Counter(captions).items() if count > 1] == []
    assert [caption for caption in captions if "$" in caption or "  " in caption or caption != caption.strip()] == []


@pytest.fixture(scope="module")
def report() -> Report:
    return report_of(open_run(REPORT))


@pytest.mark.slow
def test_every_field_has_a_number_and_nothing_is_missing_in_a_whole_run(report: Report) -> None:
    """The report of a whole run is strict: a field without a number is an error."""
    assert report.pages[0].view.name == FRONT
    assert len(report.pages) == len([view for view in VIEWS if view.page])
    assert "missing" not in report.json
    absent = {name for name in TABLES if name not in report.json}
    assert absent == {"missing"}
    assert [section.name for page in report.pages for section in page.sections] == [
        section.name for view in sorted((view for view in VIEWS if view.page), key=lambda view: view.page.place)  # type: ignore[union-attr]
        for section in view.sections
    ]  # fmt: skip
    figures = [figure for page in report.pages for section in page.sections for figure in section.figures]
    assert {figure.name for figure in figures} == FIGURES.keys()
    assert "{" not in "".join(figure.alt + figure.caption for figure in figures)


@pytest.mark.slow
def test_a_whole_run_without_a_number_of_a_text_is_refused(tmp_path: Path) -> None:
    run = open_run(REPORT)
    rows = run.table.filter([each != "random" for each in run.table["payload"].to_pylist()])
    lacking = stored(tmp_path, rows.to_pylist())
    runs = runs_of(lacking, joined_runs(run, joined_profiles()))
    with pytest.raises(InvalidConfig, match=r"front\.toml: page index: \{front-sizes\.saving.*random"):
        Report(runs, is_strict=True).pages  # noqa: B018
    assert Report(runs).pages[0].lead == ""


def test_one_stored_number_changes_its_cell_alone(rows: list[Row], tmp_path: Path) -> None:
    """The overhead of v3 with 64-byte keys is doubled."""
    at = {"kind": "bytes", "grid": "key", "key_bytes": 64, "format": "v3"}
    (one,) = [row for row in rows if at.items() <= row.items()]
    changed = [row | {"overhead_bytes": 2 * row["overhead_bytes"]} if row is one else row for row in rows]
    before, after = (tables_of_run(alone(stored(tmp_path / str(i), each))) for i, each in enumerate((rows, changed)))
    differing = {
        (name, row[0], column, other[i] / row[i])
        for name, table in before.items()
        for row, other in zip(table["rows"], after[name]["rows"], strict=True)
        for i, column in enumerate(table["columns"])
        if row[i] != other[i]
    }
    assert differing == {("key-size", 64, "v3", 2.0)}


def test_tables_of_the_grid_do_not_change_with_workloads_and_paths(run: Run, whole: Run) -> None:
    """Rows of workloads have no axes, so pandas turns integers into floats and booleans into objects."""
    grid, both = tables_of_run(alone(run)), tables_of_run(alone(whole))
    own = {name for name in grid if name != "failures" and TABLES[name].where.get("population") != "named"}
    assert {name for name in own if grid[name] != both[name]} == set() and len(own) > 25


SUBSETS: Final[Mapping[str, tuple[Callable[[Row], bool], set[str], set[str]]]] = {
    "no cpu": (lambda row: row["kind"] != "cpu", {"bytes", "broker"}, {"cpu"}),
    "no bytes": (lambda row: row["kind"] not in ("bytes", "floor"), {"cpu", "broker"}, {"bytes", "compression"}),
    "no workloads": (lambda row: row["workload"] == "grid", {"bytes", "cpu", "broker"}, set()),
    "no grid": (lambda row: row["workload"] != "grid", {"bytes", "cpu"}, {"compression", "broker"}),
    "no v2": (lambda row: row["format"] != "v2", {"bytes"}, set()),
    "v2 alone": (lambda row: row["format"] == "v2", {"bytes"}, {"columnar"}),
    "no A/A": (lambda row: row.get("arm") != "aa", {"bytes", "cpu", "broker"}, set()),
    "failures and floors": (lambda row: row["status"] != "ok" or row["kind"] == "floor", {"bytes", "broker"}, {"cpu"}),
}


@pytest.mark.parametrize("subset", SUBSETS)
def test_a_report_renders_whatever_a_run_lacks(subset: str, rows: list[Row], tmp_path: Path) -> None:
    is_kept, present, absent = SUBSETS[subset]
    every = [*rows, *workload_rows(), *broker_rows()]
    run = stored(tmp_path, [row for row in every if is_kept(row)])
    report = Report(alone(run))
    names = {page.view.name for page in report.pages}
    assert names >= {FRONT, "claims", "trust"} | present and not names & absent
    assert "missing" in report.json and not any("missing" in each for each in report.json["missing"]["rows"])
    for page in report.pages[1:]:
        assert all(section.tables or section.text for section in page.sections)


def test_what_a_run_lacks_is_listed(run: Run) -> None:
    """The small run has neither workloads nor broker paths, and joins nothing."""
    report = Report(alone(run))
    assert report.pages
    listed = dict(report.json["missing"]["rows"])
    told = " ".join([*listed, *listed.values()])
    sections = {section.name for page in report.pages for section in page.sections}
    for section in SECTIONS:
        assert section.name in sections or section.title in told or not section.tables, section.name
    assert "no rows of verdict" in listed.values()


def test_a_lead_that_a_run_has_no_numbers_for_is_listed() -> None:
    """The lead of each page has a number; the last page lists what is missing, its own lead too."""
    report = Report(runs_of_rows([counted("v2", 2000), counted("v3", 1900)]))
    assert [page.lead for page in report.pages if page.view.name == "trust"] == [""]
    assert "Can these numbers be trusted?: a sentence" in dict(report.json["missing"]["rows"])


def test_a_number_under_a_name_that_is_in_no_table_is_an_error(run: Run) -> None:
    report = Report(alone(run))
    with pytest.raises(KeyError):
        report.tables["absent"]


@pytest.mark.slow
@pytest.mark.parametrize("profile", ["dictionary", "rivals"])
def test_a_run_of_a_research_profile_has_a_report_of_its_own_rows(profile: str) -> None:
    run = open_run(ROOT / "datasets" / "joined" / profile)
    files = dict(files_of(run))
    name = {"dictionary": "dictionaries.html", "rivals": "rivals.html"}[profile]
    assert {FRONT + ".html", name} <= files.keys() and "bytes.html" not in files
    assert not any(path.startswith(f"joined/{profile}") for path in files)
    assert f"{profile}" in files[name].decode() and json.loads(files["tables.json"])
