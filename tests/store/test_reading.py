"""Only complete runs with our columns can be read. Damage is found and reported."""

from collections.abc import Callable
from pathlib import Path
from random import Random
from shutil import rmtree
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kfbench.errors import RunError
from kfbench.measure.schema import ADDED, SCHEMA, SCHEMA_VERSION
from kfbench.store import open_run, resume_run, sound_rows
from tests.store.written import FACTS, finished, interrupted, rewrite


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


def test_no_bit_of_a_part_can_turn_unnoticed(tmp_path: Path) -> None:
    path = interrupted(tmp_path)
    part = min((path / "measurements").iterdir())
    sound, whole, random = part.read_bytes(), sound_rows(path), Random(7)
    found = dict.fromkeys(("refused", "harmless"), 0)
    footer = len(sound) - 8 - int.from_bytes(sound[-8:-4], "little")  # no checksum covers the footer
    positions = random.sample(range(footer), 60) + random.sample(range(footer, len(sound)), 140)
    for position in positions:
        data = bytearray(sound)
        data[position] ^= 1 << random.randrange(8)
        part.write_bytes(data)
        rows = sound_rows(path)
        assert rows["size_bytes"].to_pylist() == [1] or rows.equals(whole), position
        found["refused" if rows.num_rows == 1 else "harmless"] += 1
    assert found["refused"] > 60


Damage = Callable[[Path], object]


def part_of(run: Path) -> Path:
    return run / "measurements" / "part-00001.parquet"


def columns(change: Callable[[pa.Table], pa.Table]) -> Damage:
    """Return the damage that changes the columns of a part. Arrow would read a missing column as nulls."""
    return lambda run: pq.write_table(change(pq.read_table(part_of(run))), part_of(run))


def manifest(**changes: Any) -> Damage:
    return lambda run: rewrite(run, **changes)


def manifest_text(text: str) -> Damage:
    return lambda run: (run / "manifest.json").write_text(text)


FOREIGN_COLUMNS: list[tuple[Damage, str]] = [
    (
        columns(lambda rows: rows.rename_columns(["cpu_nq" if name == "cpu_ns" else name for name in SCHEMA.names])),
        "column cpu_nq: not of schema 1",
    ),
    (columns(lambda rows: rows.set_column(0, "kind", rows["seed"])), "column kind: not of schema 1"),
    (columns(lambda rows: rows.drop_columns(["seed"])), "no column seed: "),
    (columns(lambda rows: rows.drop_columns(["size_bytes"])), "no column size_bytes: "),
]


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        *FOREIGN_COLUMNS,
        (lambda run: part_of(run).write_bytes(part_of(run).read_bytes()[:-20]), r"part-00001\.parquet: cannot be read"),
        (lambda run: part_of(run).unlink(), r"measurements: 2 rows, .*manifest\.json .* 4"),
        (lambda run: rmtree(run / "measurements"), "measurements: missing"),
        (lambda run: (run / "manifest.json").unlink(), r"not a run: it has no manifest\.json"),
        (manifest_text("{"), "cannot be read"),
        (manifest_text("[]"), "schema_version: missing"),
        (manifest(schema_version=99), "schema_version: 99, this kfbench reads"),
        (manifest(schema_version=None), "schema_version: missing"),
        (manifest(state=None), "state: None"),
        *(
            (manifest(**{key: None}), f"required field `{key}`")
            for key in ("started", "profile", "command", "environment", "grids", "rows")
        ),
        (manifest(started="../../xx"), r"RFC3339 .*`\$\.started`"),
        (manifest(started=5), r"Expected `datetime`.*`\$\.started`"),
        (manifest(environment=[]), r"Expected `object`, got `array` - at `\$\.environment`"),
        (manifest(environment={"packages": []}), r"`\$\.environment\.packages`"),
        (manifest(noise={"noisy": True}), r"required field `seen` - at `\$\.noise`"),
        (
            manifest(noise={"noisy": True, "seen": [], "hosts": {"a": [{}]}}),
            r"required field `name` - at `\$\.noise\.hosts\[\.\.\.\]\[0\]`",
        ),
        (manifest(grids=[{"name": "g", "title": "t"}]), r"required field `analysis` - at `\$\.grids\[0\]`"),
    ],
)
def test_damaged_and_foreign_runs_are_refused(tmp_path: Path, damage: Damage, message: str) -> None:
    path = finished(tmp_path)
    damage(path)
    with pytest.raises(RunError, match=message) as caught:
        _ = open_run(path).table
    assert str(path) in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize(("damage", "message"), FOREIGN_COLUMNS)
def test_a_part_with_foreign_columns_is_set_aside(tmp_path: Path, damage: Damage, message: str) -> None:
    path = finished(tmp_path)
    damage(path)
    rewrite(path, state="running")
    with resume_run(path, FACTS, {}) as writer:
        assert writer.damaged == [part_of(path).with_suffix(".damaged")] and writer.found.num_rows == 2


def test_a_column_that_an_older_run_lacks_is_null(tmp_path: Path) -> None:
    path = finished(tmp_path)
    for part in (path / "measurements").iterdir():
        pq.write_table(pq.read_table(part).drop_columns([*ADDED]), part)
    found = open_run(path).table
    assert found.schema.equals(SCHEMA) and found["size_bytes"].to_pylist() == [1, 2, 4, 5]
    assert all(found[name].null_count == len(found) for name in ADDED)
    part = path / "measurements" / "part-00001.parquet"
    rows = pq.read_table(part)
    pq.write_table(rows.select([*reversed(rows.column_names)]), part)
    assert open_run(path).table.equals(found)  # older runs have their columns in another order


def test_an_older_run_whose_checks_have_no_goal_opens(tmp_path: Path) -> None:
    path = finished(tmp_path)
    check = {"name": "load", "seen": 0.1, "limit": 0.5, "at_least": False, "passed": True}
    rewrite(path, noise={"noisy": False, "seen": [], "hosts": {"a": [check]}})
    assert open_run(path).table.num_rows == 4


def test_a_file_is_no_run(tmp_path: Path) -> None:
    (tmp_path / "a file").touch()
    with pytest.raises(RunError, match=r"a file: not a run: it has no manifest\.json"):
        open_run(tmp_path / "a file")


def test_a_published_report_opens_too(tmp_path: Path) -> None:
    run = open_run(finished(tmp_path))
    report = tmp_path / "report"
    report.mkdir()
    (report / "manifest.json").write_bytes((run.path / "manifest.json").read_bytes())
    pq.write_table(run.table, report / "measurements.parquet")
    assert open_run(report).table.equals(run.table)
