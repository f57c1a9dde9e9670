"""A report joins the newest stored run of each profile that its pages show."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from kfbench.report import files
from kfbench.report.files import files_of, joined_run, joined_runs, runs_of
from kfbench.store import Run, open_run
from tests.present.made import counted
from tests.runs import stored
from tools.join_run import join

RIVALS = "rivals"


def rivals(size_bytes: int = 800, **more: Any) -> list[dict[str, Any]]:
    at: dict[str, Any] = {"kind": RIVALS, "workload": "kv-etc", "codec": "zstd", "level": 3, "batch_size": 10} | more
    return [counted(name, size, arm="each", **at) for name, size in (("v2", 1000), ("parquet-best", size_bytes))]


@pytest.fixture
def own(tmp_path: Path) -> Run:
    """Return a run without rivals, and other runs beside it."""
    return stored(tmp_path, [counted("v2", 2000), counted("v3", 1900)])


@pytest.fixture
def beside(tmp_path: Path) -> Callable[..., Run]:
    """Return a function that stores a run of rivals beside `own`, with facts of its manifest."""

    def store(started: str, rows: list[dict[str, Any]] | None = None, **facts: Any) -> Run:
        run = stored(tmp_path, rows or rivals(), profile=RIVALS)
        file = run.path / "manifest.json"
        file.write_text(json.dumps(json.loads(file.read_bytes()) | {"started": started} | facts))
        return open_run(run.path)

    return store


def test_the_newest_whole_run_with_numbers_is_joined(own: Run, beside: Callable[..., Run]) -> None:
    assert joined_run(own, RIVALS) is None
    first = beside("2026-01-01T00:00:00+00:00")
    wanted = beside("2026-01-03T00:00:00+00:00", rivals(700))
    beside("2026-01-02T00:00:00+00:00")
    beside("2026-01-04T00:00:00+00:00", filter=["workload=kv-etc"])
    beside("2026-01-05T00:00:00+00:00", _failed())
    found = joined_run(own, RIVALS)
    assert found is not None and found.path == wanted.path
    shutil.rmtree(wanted.path)
    assert (other := joined_run(own, RIVALS)) is not None and other.path not in (wanted.path, first.path)


def _failed() -> list[dict[str, Any]]:
    """Return rows of a machine on which nothing of the kind could be measured."""
    return [row | {"status": "skipped", "error": "no such library", "size_bytes": None} for row in rivals()]


def test_a_run_of_the_kind_joins_itself(beside: Callable[..., Run]) -> None:
    run = beside("2026-01-01T00:00:00+00:00")
    beside("2026-01-02T00:00:00+00:00")
    assert joined_run(run, RIVALS) is run
    runs = runs_of(run, joined_runs(run, [RIVALS, "dictionary"]))
    assert runs.joined.keys() == {RIVALS} and runs.joined[RIVALS] is runs.own


def test_a_report_has_the_rows_the_page_and_the_manifest_of_a_joined_run(
    own: Run, beside: Callable[..., Run], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = beside("2026-01-03T00:00:00+00:00")
    assert join(run.path, tmp_path / "shipped") == tmp_path / "shipped" / "joined" / RIVALS
    shutil.rmtree(run.path)
    monkeypatch.setattr(files, "DATASETS", tmp_path / "shipped")
    written = dict(files_of(own))
    (tmp_path / "rows.parquet").write_bytes(written["joined/rivals/measurements.parquet"])
    assert pq.read_table(tmp_path / "rows.parquet")["size_bytes"].to_pylist() == [800, 1000]
    assert json.loads(written["joined/rivals/manifest.json"])["started"].startswith("2026-01-03")
    assert "2026-01-03" in written["research.html"].decode() and "joined/dictionary/manifest.json" not in written
    means = json.loads(written["tables.json"])["rivals-means"]
    assert [row[means["columns"].index("10")] for row in means["rows"]] == [0.8]
