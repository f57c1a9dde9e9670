"""Notebooks run, read stored runs only, and are stored with the outputs of their own source."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kfbench.report.publish import publish
from tests.runs import measured, stored

ROOT = Path(__file__).parents[1]
SOURCES = sorted((ROOT / "notebooks").glob("*.py"))


def cells(path: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(path.read_text())["cells"]
    return found


def text(cell: dict[str, Any]) -> str:
    return "".join(cell["source"])


def outputs(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [output for cell in found if cell["cell_type"] == "code" for output in cell["outputs"]]


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every notebook, run beside a report that was made for this test."""
    folder = tmp_path_factory.mktemp("notebooks")
    elsewhere = tmp_path_factory.mktemp("stored")
    publish(stored(elsewhere, measured(elsewhere)).path, folder / "reports")
    command = [sys.executable, str(ROOT / "tools" / "notebooks.py"), "--folder", str(folder), "--out", str(folder)]
    subprocess.run(command, check=True, capture_output=True, timeout=300)
    return folder


def test_there_are_notebooks() -> None:
    assert SOURCES


@pytest.mark.slow
@pytest.mark.thorough
@pytest.mark.parametrize("source", SOURCES, ids=lambda path: str(path.stem))
def test_a_notebook_runs_and_shows_pictures_and_tables(source: Path, fresh: Path) -> None:
    found = outputs(cells(fresh / f"{source.stem}.ipynb"))
    kinds = {kind for output in found for kind in output["data"]}
    assert {"image/svg+xml", "text/html"} <= kinds
    assert not [output for output in found if output["output_type"] in ("error", "stream")]


@pytest.mark.slow
@pytest.mark.thorough
def test_a_notebook_changes_nothing_where_it_reads(fresh: Path) -> None:
    assert {path.name for path in fresh.iterdir()} == {"reports", *(f"{s.stem}.ipynb" for s in SOURCES)}
    assert len(list((fresh / "reports").iterdir())) == 1


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: str(path.stem))
def test_the_stored_notebook_is_its_source_with_outputs(source: Path) -> None:
    import jupytext  # type: ignore[import-untyped]

    stored = cells(source.with_suffix(".ipynb"))
    assert [text(cell) for cell in stored] == [cell["source"] for cell in jupytext.read(source)["cells"]]
    code = [cell for cell in stored if cell["cell_type"] == "code"]
    assert all(cell["outputs"] for cell in code)
    assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1))
    assert not [output for output in outputs(stored) if output["output_type"] == "error"]
    assert str(ROOT) not in source.with_suffix(".ipynb").read_text()
