"""All declared tables, presets and pages: their names resolve, and they render whatever a run lacks."""

import json
import re
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from kfbench.errors import InvalidConfig
from kfbench.present.page import TEMPLATES
from kfbench.present.rows import Runs, run_words
from kfbench.present.views import plain_table, rows_of
from kfbench.report.build import FRONT, Report, all_views, as_json
from kfbench.report.files import files_of, runs_of
from kfbench.report.sources import SOURCES
from kfbench.report.view_packages import VIEWS as PACKAGES
from kfbench.store import Run, open_run
from tests.present.made import counted
from tests.present.made import runs_of as runs_of_rows
from tests.report.conftest import broker_rows
from tests.report.workload_rows import Row, workload_rows
from tests.runs import stored

JOINS: Final = True  # the stored run has all joined rows; other runs are asked to join nothing
ROOT: Final = Path(__file__).parents[2]
VIEWS: Final = all_views()
TABLES: Final = {table.name: table for view in VIEWS for table in view.tables}
PAGES: Final = dict.fromkeys(
    page.name for page in sorted((view.page for view in VIEWS if view.page), key=lambda page: page.place)
)
SECTIONS: Final = [section for view in VIEWS for section in view.sections]
MOST_SHOWN: Final = 40
MOST_PAGES: Final = 8
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
        [section.name for section in SECTIONS],
        [table.name for view in VIEWS for table in view.tables],
        [table.caption for view in VIEWS for table in view.tables],
        *(
            [preset.id for view in VIEWS if view.page and view.page.name == page for preset in view.presets]
            for page in PAGES
        ),
    ):
        assert [name for name, count in Counter(names).items() if count > 1] == []
    assert [each.caption for each in TABLES.values() if re.search(r"\$\w|  |^ | $", each.caption)] == []
    assert {name for section in SECTIONS for name in (*section.tables, *section.more)} <= TABLES.keys()
    assert {each.table for view in VIEWS for each in view.data} <= TABLES.keys()
    for view in VIEWS:
        assert {preset.view for preset in view.presets} - {""} == {each.name for each in view.data}, view.path
    sources = {
        "run",
        "codec-cpu",
        "missing",
        "failures",
        "measured_runs",
        *SOURCES,
        *(n for each in PACKAGES.values() for n in each.sources),
    }
    assert {table.source for table in TABLES.values()} == sources


def test_views_and_templates_have_short_lines() -> None:
    for file in (*(view.path for view in VIEWS), *TEMPLATES.iterdir()):
        assert max(map(len, file.read_text(encoding="utf-8").splitlines())) <= 120, file


def test_a_table_is_on_one_page_or_hidden() -> None:
    shown = Counter(name for section in SECTIONS for name in (*section.tables, *section.more))
    assert {name for name, count in shown.items() if count > 1} == set()
    assert {name for name, table in TABLES.items() if not table.is_hidden} == shown.keys()
    assert len(shown) <= MOST_SHOWN


@pytest.mark.slow
def test_every_field_has_a_number_and_nothing_is_missing_in_a_whole_run(published: Report) -> None:
    """The report of a whole run is strict: a field without a number is an error."""
    assert [page.name for page in published.pages] == [*PAGES] and published.pages[0].name == FRONT
    assert len(PAGES) <= MOST_PAGES
    assert {name for name in TABLES if name not in published.json} == {"missing"}
    for page in published.pages:
        assert "{" not in page.title + page.lead + page.answer and page.title and page.lead
        assert {section.name for section in page.sections} == {
            section.name for view in VIEWS if view.page and view.page.name == page.name for section in view.sections
        }


@pytest.mark.slow
def test_every_preset_of_every_page_has_rows_of_a_whole_run(published: Report) -> None:
    for page in published.pages:
        presets = [preset for view in VIEWS if view.page and view.page.name == page.name for preset in view.presets]
        shown = page.views or {"presets": [], "views": {}}
        assert {each["id"] for each in shown["presets"]} == {each.id for each in presets}
        drawn = [each for each in shown["presets"] if each["drawing"] != "text"]
        for each, wanted in ((each, next(one for one in presets if one.id == each["id"])) for each in drawn):
            view = shown["views"][each["view"]]
            assert {name: len(values) for name, values in each["where"].items()} == {
                name: len(values) for name, values in wanted.where.items()
            }
            numbers = [view["columns"][each["metric"]][row] for row in rows_of(each, view)]
            assert sum(number is not None for number in numbers) > 1, (page.name, each["id"])
        assert page.plain == (plain_table(drawn[0], shown["views"][drawn[0]["view"]]) if drawn else None)


def test_the_words_of_a_run_have_its_processors_model_if_it_is_known() -> None:
    manifest = {"started": "2026-11-29T01:02:03+00:00", "environment": {"cpu": "AMD EPYC"}}
    assert run_words(manifest) == "Measured 2026-11-29 on AMD EPYC. Noise not checked."
    manifest["environment"] = {"cpu": "AMD EPYC", "cpu_model": "family 25, model 17"}
    manifest |= {"noise": {"noisy": False, "seen": [], "hosts": {"a": [{"passed": True}] * 8}}}
    words = "Measured 2026-11-29 on AMD EPYC (family 25, model 17). Quiet run: 8 of 8 noise checks passed."
    assert run_words(manifest) == words


@pytest.mark.slow
def test_rows_of_another_run_stand_under_its_machine_and_noise(published: Report) -> None:
    """A page whose rows are all of other runs says theirs at its top; a section of two runs says them at its tables."""
    pages = {page.name: page for page in published.pages}
    own = run_words(published.runs.manifests["run"])
    assert {name for name, page in pages.items() if page.run != own} == {"clients"}
    clients = pages["clients"]
    assert clients.run == clients.views["views"]["client-cells"]["run"] and clients.noisy  # type: ignore[index]
    assert [section.run == clients.run for section in clients.sections] == [True, False]
    assert not pages["workloads"].noisy and all(
        section.run != own for page in published.pages for section in page.sections
    )
    cpu = next(section for section in pages["kip931"].sections if section.name == "cpu")
    counted_on = run_words(published.runs.manifests["instructions"])
    assert not cpu.run and [counted_on in table.notes for table in (*cpu.tables, *cpu.more)] == [True, False, True]


def test_a_whole_run_without_a_number_of_a_text_is_refused(run: Run) -> None:
    with pytest.raises(InvalidConfig, match=r"\.toml: page: \{"):
        Report(alone(run), is_strict=True).pages  # noqa: B018


@pytest.mark.slow
def test_tables_of_the_grid_do_not_change_with_workloads_and_paths(run: Run, whole: Run) -> None:
    """Rows of workloads have no axes, so pandas turns integers into floats and booleans into objects."""
    grid, both = tables_of_run(alone(run)), tables_of_run(alone(whole))
    own = {name for name in grid if name != "failures" and TABLES[name].where.get("population") != "named"}
    assert {name for name in own if grid[name] != both[name]} == set() and len(own) > 25


SUBSETS: Final[Mapping[str, tuple[Callable[[Row], bool], set[str], set[str]]]] = {
    "no cpu": (lambda row: row["kind"] != "cpu", {"workloads", "broker", "kip931"}, set()),
    "no bytes": (lambda row: row["kind"] not in ("bytes", "floor"), {"broker"}, {"research"}),
    "no workloads": (lambda row: row["workload"] == "grid", {"broker", "kip931"}, {"workloads"}),
    "no grid": (lambda row: row["workload"] != "grid", {"workloads"}, set()),
    "no v2": (lambda row: row["format"] != "v2", {"kip931"}, set()),
    "v2 alone": (lambda row: row["format"] == "v2", {"workloads"}, {"research"}),
    "no A/A": (lambda row: row.get("arm") != "aa", {"workloads", "broker"}, set()),
    "failures and floors": (lambda row: row["status"] != "ok" or row["kind"] == "floor", set(), {"workloads"}),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("subset", SUBSETS)
def test_a_report_renders_whatever_a_run_lacks(subset: str, rows: list[Row], tmp_path: Path) -> None:
    """No page is empty, no preset has no number, and a page without rows is left out."""
    is_kept, present, absent = SUBSETS[subset]
    every = [*rows, *workload_rows(), *broker_rows()]
    run = stored(tmp_path, [row for row in every if is_kept(row)])
    report = Report(alone(run))
    names = {page.name for page in report.pages}
    assert names >= {FRONT, "clients", "trust"} | present and not names & absent, names
    assert "missing" in report.json and not any("missing" in each for each in report.json["missing"]["rows"])
    for page in report.pages:
        assert page.views or page.sections or page.name == FRONT
        assert all(section.tables or section.text for section in page.sections)
        for each in page.views["presets"] if page.views else ():
            view = page.views["views"][each["view"]] if each["drawing"] != "text" else None  # type: ignore[index]
            assert view is None or {view["columns"][each["metric"]][row] for row in rows_of(each, view)} - {None}


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
    report = Report(runs_of_rows([counted("v2", 2000), counted("v3", 1900)], started="2026-01-01"))
    assert [page.lead for page in report.pages if page.name == "trust"] == [""]
    assert "Data & trust: a sentence" in dict(report.json["missing"]["rows"])


@pytest.mark.slow
@pytest.mark.parametrize("profile", ["dictionary", "rivals"])
def test_a_run_of_a_research_profile_has_a_report_of_its_own_rows(profile: str) -> None:
    run = open_run(ROOT / "datasets" / "joined" / profile)
    files = dict(files_of(run))
    name = "research.html"
    assert {FRONT + ".html", name} <= files.keys() and "workloads.html" not in files
    assert not any(path.startswith(f"joined/{profile}") for path in files)
    assert f"{profile}" in files[name].decode() and json.loads(files["tables.json"])
