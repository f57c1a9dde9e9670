"""A stored run of the profile `rivals` is joined into the reports of other runs."""

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from kfbench.report.data import joined
from kfbench.report.data.joined import RIVALS, joined_runs
from kfbench.report.files import files_of
from kfbench.store import Run
from kfbench.sweep.run.task import measure_cell
from tests.runs import stored
from tests.sweep.cells import rival_cell
from tools.join_run import join

JOINS = True


@pytest.mark.usefixtures("drawn")
def test_a_report_has_the_rows_of_the_joined_run(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [row for kind in ("rivals", "rivals-cpu") for row in measure_cell(rival_cell(kind))]
    rivals = stored(tmp_path / "measured", rows, profile=RIVALS)
    assert joined_runs(rivals)[RIVALS].is_own
    assert join(rivals.path, tmp_path) == tmp_path / "joined" / "rivals"
    monkeypatch.setattr(joined, "DATASETS", tmp_path)
    files = dict(files_of(run))
    (tmp_path / "rows.parquet").write_bytes(files["joined/rivals/measurements.parquet"])
    assert pq.read_table(tmp_path / "rows.parquet").drop("wall_ns").equals(rivals.table.drop("wall_ns"))
    assert files["joined/rivals/manifest.json"] == (rivals.path / "manifest.json").read_bytes()
    assert "(joined/rivals/)" in files["README.md"].decode() and "joined/dictionary/manifest.json" not in files
