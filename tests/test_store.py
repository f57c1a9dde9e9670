"""Runs: written once, never overwritten, and never reported on unless they are whole."""

import json
import threading
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from kfbench.errors import RunError
from kfbench.measure.schema import SCHEMA, SCHEMA_VERSION, table
from kfbench.store import create_run, open_run

FACTS = {
    "profile": "tiny", "command": "kfbench sweep tiny", "seed": 0, "environment": {"packages": {"kfbench": "0"}},
    "grids": [{"name": "g", "title": "t", "analysis": "a"}],
}  # fmt: skip


def row(**columns: Any) -> dict[str, Any]:
    common = {"kind": "bytes", "cell_id": "c", "status": "ok", "grid": "g", "workload": "grid", "seed": 1}
    return common | {"format": "v2", "codec": "none"} | columns


def finished(out: Path) -> Path:
    writer = create_run(out, FACTS)
    writer.add(table([row(format="v3", size_bytes=2), row(codec="zstd", level=9, size_bytes=5)]))
    writer.add(table([row(size_bytes=1), row(codec="zstd", level=3, size_bytes=4)]))
    return writer.complete({"counts": {"rows": 4}}).path


def test_a_run_reads_back_in_one_order_whatever_order_it_was_written_in(tmp_path: Path) -> None:
    run = open_run(finished(tmp_path))
    assert run.table.schema.equals(SCHEMA)
    assert run.table["size_bytes"].to_pylist() == [1, 2, 4, 5]
    frame = run.measurements()
    assert frame["size_bytes"].tolist() == [1, 2, 4, 5]
    assert frame["level"].astype(object).tolist()[2:] == [3, 9] and frame["level"].isna().tolist()[:2] == [True, True]


def test_manifest_says_what_was_done_and_that_it_is_complete(tmp_path: Path) -> None:
    manifest = open_run(finished(tmp_path)).manifest
    assert manifest["state"] == "complete" and manifest["schema_version"] == SCHEMA_VERSION
    assert manifest["started"] <= manifest["finished"] and manifest["started"].endswith("+00:00")
    assert manifest.items() >= FACTS.items() and manifest["counts"] == {"rows": 4}


def test_no_run_is_ever_overwritten(tmp_path: Path) -> None:
    first = finished(tmp_path)
    before = {path: path.read_bytes() for path in sorted(first.rglob("*")) if path.is_file()}
    second, third = finished(tmp_path), create_run(tmp_path, FACTS).path
    date = first.name.rpartition(".")[0]
    assert [path.name for path in (first, second, third)] == [f"{date}.1", f"{date}.2", f"{date}.3"]
    assert {path: path.read_bytes() for path in sorted(first.rglob("*")) if path.is_file()} == before


def test_runs_that_start_together_get_a_folder_each(tmp_path: Path) -> None:
    paths: list[Path] = []
    threads = [threading.Thread(target=lambda: paths.append(create_run(tmp_path, FACTS).path)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(paths)) == 8


def test_a_half_written_run_is_refused(tmp_path: Path) -> None:
    writer = create_run(tmp_path, FACTS)
    writer.add(table([row(size_bytes=1)]))
    with pytest.raises(RunError, match=r"manifest\.json: state: running; the run was interrupted"):
        open_run(writer.path)


def test_nothing_half_written_has_a_final_name(tmp_path: Path) -> None:
    path = finished(tmp_path)
    names = sorted(each.relative_to(path).as_posix() for each in path.rglob("*") if each.is_file())
    assert names == ["manifest.json", "measurements/part-00000.parquet", "measurements/part-00001.parquet"]


def test_a_part_of_another_schema_is_not_written(tmp_path: Path) -> None:
    writer = create_run(tmp_path, FACTS)
    with pytest.raises(ValueError, match="schema"):
        writer.add(table([row()]).drop_columns(["seed"]))
    assert list((writer.path / "measurements").iterdir()) == []


def rewrite(path: Path, **changes: Any) -> None:
    file = path / "manifest.json"
    manifest = json.loads(file.read_text()) | changes
    file.write_text(json.dumps({key: value for key, value in manifest.items() if value is not None}))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"schema_version": 99}, "schema_version: 99, this kfbench reads"),
        ({"schema_version": None}, "schema_version: missing"),
        ({"state": None}, "state: None"),
        *(
            ({key: None}, f"required field `{key}`")
            for key in ("started", "profile", "command", "environment", "grids")
        ),
        ({"rows": None}, "required field `rows`"),
        ({"started": "../../xx"}, r"RFC3339 .*`\$\.started`"),
        ({"started": 5}, r"Expected `datetime`.*`\$\.started`"),
        ({"environment": []}, r"Expected `object`, got `array` - at `\$\.environment`"),
        ({"environment": {"packages": []}}, r"`\$\.environment\.packages`"),
        ({"grids": [{"name": "g", "title": "t"}]}, r"required field `analysis` - at `\$\.grids\[0\]`"),
    ],
)
def test_a_foreign_run_is_refused(tmp_path: Path, changes: dict[str, Any], said: str) -> None:
    path = finished(tmp_path)
    rewrite(path, **changes)
    with pytest.raises(RunError, match=said) as caught:
        open_run(path)
    assert str(path / "manifest.json") in str(caught.value) and "\n" not in str(caught.value)


def test_what_is_no_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"not a run: it has no manifest\.json"):
        open_run(tmp_path)
    (tmp_path / "manifest.json").write_text("{")
    with pytest.raises(RunError, match="cannot be read"):
        open_run(tmp_path)
    (tmp_path / "manifest.json").write_text("[]")
    with pytest.raises(RunError, match="schema_version: missing"):
        open_run(tmp_path)


def test_a_run_without_its_measurements_is_refused(tmp_path: Path) -> None:
    path = finished(tmp_path)
    first, second = sorted((path / "measurements").iterdir())
    first.unlink()
    with pytest.raises(RunError, match=r"measurements: 2 rows, manifest\.json says 4"):
        _ = open_run(path).table
    second.unlink()
    with pytest.raises(RunError, match="measurements: missing"):
        open_run(path)


def test_a_damaged_part_is_named(tmp_path: Path) -> None:
    path = finished(tmp_path)
    part = path / "measurements" / "part-00001.parquet"
    part.write_bytes(part.read_bytes()[:-20])
    with pytest.raises(RunError, match="measurements cannot be read"):
        _ = open_run(path).table


def test_a_published_report_opens_too(tmp_path: Path) -> None:
    run = open_run(finished(tmp_path))
    report = tmp_path / "report"
    report.mkdir()
    (report / "manifest.json").write_bytes((run.path / "manifest.json").read_bytes())
    pq.write_table(run.table, report / "measurements.parquet")
    assert open_run(report).table.equals(run.table)


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    taken = tmp_path / "runs"
    taken.write_text("a file")
    with pytest.raises(RunError, match="no run can be written here") as caught:
        create_run(tmp_path, FACTS)
    assert str(taken) in str(caught.value)
