"""What is committed under reports/ stays small, readable and whole."""

from pathlib import Path

import pytest

from kfbench.report.publish import render
from kfbench.store import open_run

REPORTS = sorted(path.parent for path in (Path(__file__).parents[2] / "reports").glob("*.*/index.html"))


@pytest.mark.parametrize("report", REPORTS, ids=lambda path: str(path.name))
def test_a_committed_report_is_small_and_its_rows_can_be_read(report: Path) -> None:
    assert sum(path.stat().st_size for path in report.rglob("*") if path.is_file()) <= 5_000_000
    assert (report / "index.html").stat().st_size <= 3_000_000
    run = open_run(report)
    assert run.table.num_rows == sum(run.manifest["counts"][state] for state in ("ok", "skipped", "error"))
    assert run.manifest["counts"]["error"] == 0


@pytest.mark.parametrize("report", sorted({REPORTS[0], REPORTS[-1]}), ids=lambda path: str(path.name))
def test_the_oldest_and_the_newest_can_still_be_rendered(report: Path) -> None:
    run = open_run(report)
    page = dict(render(run))["index.html"].decode()
    for kind in ("prefix", "broker"):
        assert (kind in run.table["kind"].unique().to_pylist()) == (f'id="{kind}"' in page)
    named = set(run.table["workload"].unique().to_pylist()) - {"grid"}
    assert bool(named) == ('id="workloads"' in page)
