"""Made-up rows of workloads that form classes, and the verdicts on these classes."""

from pathlib import Path
from typing import Any

from kfbench.report.data.classes import Verdicts
from kfbench.report.data.named import Named
from kfbench.report.data.paths import Paths
from kfbench.report.data.results import Results
from kfbench.report.topics import verdict
from kfbench.tables import Table
from tests.report.broker_rows import broker_rows
from tests.report.columns import row_of
from tests.report.workload_rows import Row, workload_rows
from tests.runs import stored

ONE, SMALL, HEADERS = "One record per batch", "Small batches", "Record headers"


def beside(rows: list[Row], workload: str, like: str, bytes_by: int, cpu_by: dict[str, float]) -> list[Row]:
    """Copy the rows of workload `like` to another workload.

    bytes_by: factor of the sizes. cpu_by: factor of the CPU times per format.
    """
    found = []
    for row in rows:
        if row["workload"] == like and row["variant"] == "default":
            other = row | {"workload": workload, "cell_id": f"{workload}-default"}
            if row["status"] == "ok" and row["kind"] == "bytes":
                other["size_bytes"] = row["size_bytes"] * bytes_by
            if row["status"] == "ok" and row["kind"] == "cpu":
                other["cpu_ns"] = [int(ns * cpu_by.get(row["format"], 1.0)) for ns in row["cpu_ns"]]
            found.append(other)
    return found


def appended(host: str = "here", **changed: Any) -> list[Row]:
    """Return rows of `append` without a codec, timed on the batches of the workload user-activity."""
    return [
        row | {"workload": "user-activity", "variant": "default", "cell_id": "append", "grid": "named", "host": host}
        | {"batch_size": None} | changed
        for row in broker_rows()
        if row["operation"] == "append" and row["codec"] == "none" and row["batch_size"] == 10
    ]  # fmt: skip


def verdicts_of(folder: Path, rows: list[Row]) -> Verdicts:
    results = Results(stored(folder, rows).measurements())
    return Verdicts(results, Named(results), Paths(results))


def detail(verdicts: Verdicts, name: str, fmt: str) -> dict[str, Any]:
    return row_of(verdict.detail_table(verdicts), **{"workload class": name, "format": fmt})


def costs_of(verdicts: Verdicts) -> Table:
    found = verdict.costs_table(verdicts)
    assert found is not None
    return found


def sized(sizes: dict[str, int]) -> list[Row]:
    """Return the workload rows with these sizes in bytes per format. All other formats have 2 million bytes."""
    rows = workload_rows()
    for row in rows:
        if row["status"] == "ok" and row["kind"] == "bytes":
            row["size_bytes"] = sizes.get(row["format"], 2_000_000)
    return rows


def whole_v1() -> list[Row]:
    return [row | {"losses": "{}"} if row["format"] == "v1" and "losses" in row else row for row in workload_rows()]
