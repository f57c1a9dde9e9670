"""Small runs and verdicts for all report tests."""

from typing import Any

import pytest

from kfbench.report.data.classes import Verdicts
from kfbench.report.data.paths import Paths
from kfbench.report.data.results import Results
from kfbench.report.render import plots
from kfbench.report.topics import verdict
from kfbench.store import Run
from kfbench.tables import Table
from tests.report.broker_rows import broker_rows
from tests.report.class_rows import (
    appended,
    beside,
    verdicts_of,
)
from tests.report.test_fleet import model_rows
from tests.report.test_winners import byte_rows
from tests.report.workload_rows import workload_rows
from tests.runs import joins_nothing as joins_nothing
from tests.runs import measured, stored


@pytest.fixture(scope="session")
def rows(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    return measured(tmp_path_factory.mktemp("sweep"))


@pytest.fixture(scope="session")
def run(rows: list[dict[str, Any]], tmp_path_factory: pytest.TempPathFactory) -> Run:
    return stored(tmp_path_factory.mktemp("stored"), rows)


@pytest.fixture
def results(run: Run) -> Results:
    return Results(run.measurements())


@pytest.fixture(scope="session")
def broker_run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Store a run that has only made-up broker rows."""
    return stored(tmp_path_factory.mktemp("broker"), broker_rows())


@pytest.fixture
def paths(broker_run: Run) -> Paths:
    return Paths(Results(broker_run.measurements()))


@pytest.fixture(scope="session")
def verdicts(tmp_path_factory: pytest.TempPathFactory) -> Verdicts:
    rows = workload_rows()
    rows += beside(rows, "connect-internal", "cluster-metadata", 4, {"v3": 1.5})
    return verdicts_of(tmp_path_factory.mktemp("verdict"), [*rows, *appended()])


@pytest.fixture(scope="session")
def table(verdicts: Verdicts) -> Table:
    found = verdict.verdict_table(verdicts)
    assert found is not None
    return found


@pytest.fixture(scope="session")
def runs(run: Run, rows: list[dict[str, Any]], tmp_path_factory: pytest.TempPathFactory) -> list[Run]:
    """Return runs that together have the rows of every figure."""
    folder = tmp_path_factory.mktemp("numbers")
    others = {"plane": byte_rows(), "made": [*workload_rows(), *broker_rows()], "model": model_rows()}
    return [run, *(stored(folder / name, each) for name, each in others.items())]


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> dict[str, tuple[Any, ...]]:
    """Replace the drawing functions, which are slow.

    Return a dict from the placeholder SVG to the arguments of the call.
    """
    found: dict[str, tuple[Any, ...]] = {}

    def draw(*arguments: Any, **options: Any) -> str:
        found[svg := f"<svg{len(found)}/>"] = (*arguments, *options.values())
        return svg

    for name in (
        "overhead",
        "break_even",
        "steps",
        "stacked",
        "ratios",
        "paths",
        "winners",
        "pareto",
        "growth",
        "histograms",
        "multiples",
        "shares",
    ):
        monkeypatch.setattr(plots, name, draw)
    return found
