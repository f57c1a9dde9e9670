"""One small run for all report tests."""

from typing import Any

import pytest

from kfbench.report.data.paths import Paths
from kfbench.report.data.results import Results
from kfbench.store import Run
from tests.report.broker_rows import broker_rows
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
def made(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run of broker rows alone, made up."""
    return stored(tmp_path_factory.mktemp("broker"), broker_rows())


@pytest.fixture
def paths(made: Run) -> Paths:
    return Paths(Results(made.measurements()))
