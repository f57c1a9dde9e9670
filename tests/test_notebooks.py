"""Each notebook equals its .py file plus outputs, and shows one published report.

Notebooks are small, and give equal outputs when run again.
"""

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jupytext  # type: ignore[import-untyped]
import pytest

from tests.runs import committed_reports

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "notebooks"
SOURCES = sorted(FOLDER.glob("*.py"))
NAMES = [source.stem for source in SOURCES]
QUICK = "overhead"  # the only notebook that `make test` runs
MOST_BYTES = 150_000  # limit for all notebooks together
every_notebook = pytest.mark.parametrize("name", NAMES)

Rerun = Callable[[str], Path]


def cells(path: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return found


def stored(name: str) -> list[dict[str, Any]]:
    return cells(FOLDER / f"{name}.ipynb")


def text(cell: dict[str, Any]) -> str:
    return "".join(cell["source"])


def outputs(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the outputs of all code cells in order."""
    return [output for cell in found if cell["cell_type"] == "code" for output in cell["outputs"]]


def report_of(name: str) -> str:
    """Return the name of the report that a committed notebook shows. It is in the first output."""
    first = "".join(outputs(stored(name))[0]["data"]["text/markdown"])
    match = re.match(r"(\d{4}-\d\d-\d\d\.\d+): profile", first)
    assert match
    return match[1]


@pytest.fixture(scope="module")
def rerun(tmp_path_factory: pytest.TempPathFactory) -> Rerun:
    """Return a function that runs a notebook in a clone with only its own report.

    Otherwise it might show a newer one.
    """
    folder = tmp_path_factory.mktemp("clone")
    for part in ("notebooks", "reports"):
        (folder / part).mkdir()

    def run(name: str) -> Path:
        if not (report := folder / "reports" / report_of(name)).exists():
            report.symlink_to(ROOT / "reports" / report_of(name))
        there = folder / "notebooks"
        command = [
            sys.executable,
            str(ROOT / "tools" / "notebooks.py"),
            name,
            "--folder",
            str(there),
            "--out",
            str(there),
        ]
        subprocess.run(command, check=True, capture_output=True, timeout=300)
        return there / f"{name}.ipynb"

    return run


def test_there_are_notebooks_and_they_are_small() -> None:
    assert {"overhead", "cpu"} <= set(NAMES)
    assert {path.stem for path in FOLDER.glob("*.ipynb")} == set(NAMES)
    assert sum(path.stat().st_size for path in FOLDER.glob("*.*")) <= MOST_BYTES


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name == QUICK else pytest.mark.thorough) for name in NAMES]
)
def test_a_second_run_gives_the_stored_outputs(name: str, rerun: Rerun) -> None:
    again = rerun(name)
    assert again.read_text(encoding="utf-8") == (FOLDER / f"{name}.ipynb").read_text(encoding="utf-8")
    assert {path.name for path in again.parent.iterdir()} <= {f"{each}.ipynb" for each in NAMES}


@every_notebook
def test_the_stored_notebook_is_its_source_with_outputs(name: str) -> None:
    found, source = stored(name), jupytext.read(FOLDER / f"{name}.py")
    assert [text(cell) for cell in found] == [cell["source"] for cell in source["cells"]]
    code = [cell for cell in found if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1))
    assert all(cell["outputs"] for cell in code if "parameters" not in cell["metadata"].get("tags", []))
    shown = outputs(found)
    assert {output["output_type"] for output in shown} <= {"execute_result", "display_data"}  # no warnings or errors
    assert "text/html" in {kind for output in shown for kind in output["data"]}


@every_notebook
def test_a_notebook_begins_with_its_question_and_parameters(name: str) -> None:
    first, parameters, *_ = stored(name)
    assert text(first).startswith("# ") and text(first).partition("\n")[0].endswith("?")
    assert "*How to read it*" in text(first) and "*What would change the answer*" in text(first)
    assert parameters["metadata"]["tags"] == ["parameters"]


def test_notebooks_show_the_newest_report() -> None:
    assert {report_of(name) for name in NAMES} == {committed_reports()[-1].name}
