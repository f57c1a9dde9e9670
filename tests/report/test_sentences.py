"""Each sentence that a report prints has 20 words or fewer."""

import dataclasses
import re
import tomllib
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from kfbench.formats import FORMATS
from kfbench.report.files import files_of
from kfbench.shipped import DATASETS
from kfbench.store import Run, open_run
from tests.report.test_columnar import columnar_rows
from tests.report.workload_rows import workload_rows
from tests.runs import stored

MOST_WORDS = 20
JOINS = True
INLINE = frozenset({"a", "b", "code", "em", "i", "small", "span", "strong"})
NOT_READ = frozenset({"dd", "pre", "script", "style", "svg"})  # dd: the versions of the environment, a list
END = re.compile(rf"(?<=[.!?])\s+(?=[A-Z\d\"“(]|(?:{'|'.join(sorted(FORMATS, key=len, reverse=True))})\b)")


class Texts(HTMLParser):
    """Collect the text of each block element of a page, such as a paragraph or a table cell."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found = [""]
        self.skipped = 0
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.skipped += tag in NOT_READ
        if tag not in INLINE:
            self.found.append("")

    def handle_endtag(self, tag: str) -> None:
        self.skipped -= tag in NOT_READ
        if tag not in INLINE:
            self.found.append("")

    def handle_data(self, data: str) -> None:
        if not self.skipped:
            self.found[-1] += data


def long_sentences(text: str) -> list[str]:
    return [sentence for sentence in END.split(text) if len(sentence.split()) > MOST_WORDS]


def long_of_run(run: Run) -> list[str]:
    pages = {name: data.decode() for name, data in files_of(run) if name.endswith(".html")}
    texts = [(name, text) for name, page in pages.items() for text in Texts(page).found]
    return [f"{name}: {long}" for name, text in texts for long in long_sentences(text)]


def test_a_long_sentence_is_found() -> None:
    page = f"<p>One v2 <b>two</b>. v3 {'word ' * MOST_WORDS}.</p><p>{'word ' * MOST_WORDS}</p>"
    (long,) = [long for text in Texts(page).found for long in long_sentences(text)]
    assert long.startswith("v3 word")


@pytest.mark.usefixtures("drawn")
def test_reports_have_short_sentences(runs: list[Run], tmp_path: Path) -> None:
    columnar = stored(tmp_path, [*workload_rows(), *columnar_rows()])
    found = sorted({long for run in (*runs, columnar) for long in long_of_run(run)})
    assert not found, "\n".join(found)


@pytest.mark.thorough
@pytest.mark.usefixtures("drawn")
def test_the_newest_report_has_short_sentences() -> None:
    """The rows are those of the newest full report. The prose is that of today's sweep."""
    reports = sorted((Path(__file__).parents[2] / "reports").glob("*.*/manifest.json"))
    run = [found for path in reports if (found := open_run(path.parent)).manifest["profile"] == "default"][-1]
    today = tomllib.loads((DATASETS / "sweeps" / "default.toml").read_text(encoding="utf-8"))
    analysis = {grid["name"]: grid["analysis"] for grid in today["grid"]}
    grids = [grid | {"analysis": analysis[grid["name"]]} for grid in run.manifest["grids"]]
    manifest: Any = {**run.manifest, "grids": grids, "analysis": today["analysis"]}
    long = long_of_run(dataclasses.replace(run, manifest=manifest))
    assert not long, "\n".join(long)


@pytest.mark.parametrize("path", sorted((DATASETS / "sweeps").glob("*.toml")), ids=lambda path: str(path.stem))
def test_the_prose_of_sweeps_has_short_sentences(path: Path) -> None:
    sweep = tomllib.loads(path.read_text(encoding="utf-8"))
    texts = [table.get("analysis", "") for table in (sweep, *sweep.get("grid", []))]
    assert [long for text in texts for long in long_sentences(text)] == []
