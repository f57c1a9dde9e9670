"""Small runs for all report tests. Reports join no shipped runs, whose pages take long to draw."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pyarrow.parquet as pq
import pytest

from kfbench.present.rows import Runs
from kfbench.report import files
from kfbench.report.build import Report
from kfbench.report.files import report_of, runs_of
from kfbench.store import Run, open_run
from tests.report.workload_rows import workload_rows
from tests.runs import measured, stored

PUBLISHED: Final = Path(__file__).parents[2] / "reports" / "2026-11-24.20"


def broker_rows() -> list[dict[str, Any]]:
    """Return the rows of broker paths on the grid of the published run."""
    where = [("kind", "=", "broker"), ("workload", "=", "grid")]
    rows: list[dict[str, Any]] = pq.read_table(PUBLISHED / "measurements.parquet", filters=where).to_pylist()
    return rows


@pytest.fixture(scope="session")
def published() -> Report:
    """Return the report of the published run, for modules that join the shipped runs: it takes seconds."""
    return report_of(open_run(PUBLISHED))


@pytest.fixture(scope="module", autouse=True)
def joins_nothing(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Let reports join no shipped runs. A module with JOINS = True joins them."""
    with pytest.MonkeyPatch.context() as patch:
        if not getattr(request.module, "JOINS", False):
            patch.setattr(files, "DATASETS", tmp_path_factory.mktemp("no datasets"))
        yield


@pytest.fixture(scope="session")
def rows(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """Return the rows of a small sweep of the grid, measured on this machine."""
    return measured(tmp_path_factory.mktemp("sweep"))


@pytest.fixture(scope="session")
def run(rows: list[dict[str, Any]], tmp_path_factory: pytest.TempPathFactory) -> Run:
    return stored(tmp_path_factory.mktemp("stored"), rows)


@pytest.fixture(scope="session")
def whole(rows: list[dict[str, Any]], tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Return a run of the grid, of named workloads and of broker paths."""
    return stored(tmp_path_factory.mktemp("whole"), [*rows, *workload_rows(), *broker_rows()])


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Runs:
    """Return the published rows of broker paths."""
    return runs_of(stored(tmp_path_factory.mktemp("broker"), broker_rows()), {})
