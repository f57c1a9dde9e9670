"""A run is written once and never overwritten. Only the sweep that started it can resume it."""

import json
import os
import subprocess
import sys
import threading
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from kfbench.errors import RunError
from kfbench.measure.schema import SCHEMA, table
from kfbench.store import RunWriter, check_place, create_run, open_run, resume_run, sound_rows
from tests.store.written import FACTS, files, finished, interrupted, rewrite, row


def test_the_facts_of_another_run_do_not_complete_one(tmp_path: Path) -> None:
    path = create_run(tmp_path, FACTS | {"state": "complete", "started": "2020-01-01T00:00:00+00:00"}).path
    manifest = json.loads((path / "manifest.json").read_bytes())
    assert manifest["state"] == "running" and manifest["started"] > "2026"
    assert list(manifest)[:2] == ["schema_version", "state"]


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


def test_a_run_is_resumed_where_it_was_interrupted(tmp_path: Path) -> None:
    path = interrupted(tmp_path)
    assert sound_rows(path).num_rows == 3
    with resume_run(path, FACTS, {"command": "kfbench sweep tiny --resume it"}) as writer:
        assert (writer.path, writer.damaged, sorted(writer.found["size_bytes"].to_pylist())) == (path, [], [1, 2, 5])
        assert writer.counts == {"ok": 3}
        writer.add(table([row(codec="zstd", level=3, size_bytes=4)]))
        run = writer.complete({})
    assert open_run(path).table.equals(run.table) and run.table.equals(open_run(finished(tmp_path)).table)
    (resumed,) = run.manifest["resumed"]
    assert resumed["command"] == "kfbench sweep tiny --resume it" and resumed["at"] >= run.manifest["started"]


def test_a_writer_may_be_killed_at_every_step(tmp_path: Path) -> None:
    """A writer killed at any step leaves no run, a run that can be resumed, or a complete run."""
    from tests.killed import write

    command = [sys.executable, "-m", "tests.killed", "run", str(tmp_path)]
    subprocess.run(command, check=True, cwd=Path(__file__).parents[2], timeout=120)
    states = []
    torn = {path.name for path in tmp_path.rglob("*.tmp") if not path.read_bytes().endswith((b"\n}", b"PAR1"))}
    for out in sorted(tmp_path.iterdir()):
        (run,) = (out / "runs").iterdir() if (out / "runs").exists() and any((out / "runs").iterdir()) else (None,)
        if run is None or not (run / "manifest.json").exists():
            states.append("none")
            assert run is None or not list(run.rglob("*.parquet"))
            continue
        state = json.loads((run / "manifest.json").read_bytes())["state"]
        states.append(state)
        if state == "running":
            with pytest.raises(RunError, match="interrupted"):
                open_run(run)
            with resume_run(run, FACTS, {}) as writer:
                assert not writer.damaged
                write(writer)
        assert open_run(run).table["size_bytes"].to_pylist() == [1, 2, 3]
        assert open_run(run).manifest["hosts"] == ["host-1"] and not list(run.rglob("*.tmp"))
    assert states == sorted(states, key=["none", "running", "complete"].index)
    assert torn == {"manifest.tmp", "part-00000.tmp", "part-00001.tmp"}
    assert states.count("running") >= 8 and states.count("complete") >= 2


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")  # a child that ends at once
def test_a_writer_that_fails_is_not_taken_for_one_that_was_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tests import killed

    monkeypatch.setattr(killed, "_killed_at", lambda *_: os._exit(1))
    with pytest.raises(RuntimeError, match="step 0: a status of 256"):
        killed.main("run", tmp_path)


def test_parts_that_cannot_be_read_are_set_aside_and_half_written_files_go(tmp_path: Path) -> None:
    path = interrupted(tmp_path)
    first, second = sorted((path / "measurements").iterdir())
    data = bytearray(first.read_bytes())
    data[len(data) // 10] ^= 1
    first.write_bytes(data)
    (path / "measurements" / "part-00002.tmp").write_bytes(b"PAR1")
    (path / "manifest.tmp").write_text("{")
    assert sound_rows(path).num_rows == 1 and first.exists()
    with resume_run(path, FACTS, {}) as writer:
        assert writer.damaged == [first.with_suffix(".damaged")] and writer.found["size_bytes"].to_pylist() == [1]
        writer.add(table([row(format="v3", size_bytes=2), row(codec="zstd", level=9, size_bytes=5)]))
        assert sorted(each.name for each in (path / "measurements").iterdir()) == [
            "part-00000.damaged", second.name, "part-00002.parquet",
        ]  # fmt: skip
        assert not (path / "manifest.tmp").exists()
        writer.complete({})
    assert open_run(path).table.num_rows == 3


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"profile_text": "another"}, "profile_text: t then, another now; "),
        ({"profile_text": "t\nseed = 1\n"}, "profile_text: line 2: none then, seed = 1 now; "),
        ({"profile_text": "t\n"}, "profile_text: line 2: none then,  now; "),
        ({"seed": 1}, "seed: 0 then, 1 now"),
        ({"filter": ["kind=cpu", "level>1"]}, "filter: none then, kind=cpu and level>1 now"),
        ({"cell_budget_s": 1.0}, "cell_budget_s: 120.0 then, 1.0 now"),
        ({"code": "beef"}, "code: c0de then, beef now"),
        ({"kfbench": "0.2.0"}, "kfbench: 0.1.0 then, 0.2.0 now"),
        (
            {"libraries": {"python": "3.12", "numpy": "2.2"}},
            "libraries: numpy 2.1 then, 2.2 now, numba 0.60 then, none now; ",
        ),
        ({"codecs": {"zstd": "2", "gzip": "1"}}, "codecs: zstd 1 then, 2 now; "),
    ],
)
def test_another_sweep_does_not_resume_a_run(tmp_path: Path, changes: dict[str, Any], said: str) -> None:
    path = interrupted(tmp_path)
    (path / "measurements" / "part-00002.tmp").write_bytes(b"PAR1")
    before = files(path)
    with pytest.raises(RunError, match=said) as caught:
        resume_run(path, FACTS | changes, {})
    assert str(path / "manifest.json") in str(caught.value) and "\n" not in str(caught.value)
    assert files(path) == before


def test_another_revision_of_the_same_code_resumes_a_run(tmp_path: Path) -> None:
    with resume_run(interrupted(tmp_path), FACTS | {"git_revision": "of a page of documentation"}, {}) as writer:
        assert writer.found.num_rows == 3


def test_errors_of_a_busy_moment_are_rows_of_a_run_that_is_whole_and_of_none_that_is_resumed(tmp_path: Path) -> None:
    busy, kept = row(format="v1", status="error", error="MemoryError"), row(status="error", error="Unverified")
    with create_run(tmp_path, FACTS) as writer:
        writer.add(table([kept]))
        writer.add(table([busy]), passing=True)
        writer.add(SCHEMA.empty_table())
    assert sound_rows(writer.path)["error"].to_pylist() == ["Unverified"]
    with resume_run(writer.path, FACTS, {}) as again:
        assert again.found["error"].to_pylist() == ["Unverified"] and again.counts == {"error": 1}
        again.add(table([row(format="v0")]))
        again.add(table([busy]), passing=True)  # this time the host is busy, too
        run = again.complete({})
    assert sorted(files(run.path)) == [
        "manifest.json", *(f"measurements/{each}.parquet" for each in ("part-00000", "part-00001", "passing-00002")),
    ]  # fmt: skip
    assert open_run(run.path).table["error"].to_pylist() == [None, "MemoryError", "Unverified"]


def test_what_is_no_interrupted_run_of_ours_is_not_resumed(tmp_path: Path) -> None:
    path = finished(tmp_path)
    before = files(path)
    with pytest.raises(RunError, match="state: complete; only a run that was interrupted can be resumed"):
        resume_run(path, FACTS, {})
    assert files(path) == before
    path = interrupted(tmp_path)
    rewrite(path, schema_version=99)
    before = files(path)
    with pytest.raises(RunError, match="schema_version: 99, this kfbench reads"):
        resume_run(path, FACTS, {})
    assert files(path) == before
    with pytest.raises(RunError, match=r"not a run: it has no manifest\.json"):
        resume_run(tmp_path, FACTS, {})


def test_a_run_that_is_being_written_is_not_resumed(tmp_path: Path) -> None:
    with create_run(tmp_path, FACTS) as writer:
        before = files(writer.path)
        with pytest.raises(RunError, match="another process is writing this run"):
            resume_run(writer.path, FACTS, {})
        assert files(writer.path) == before
    with resume_run(writer.path, FACTS, {}), pytest.raises(RunError, match="another process is writing this run"):
        resume_run(writer.path, FACTS, {})


HOLDS = """\
import sys
from pathlib import Path
from tests.store.written import FACTS
from kfbench.store import create_run
writer = create_run(Path(sys.argv[1]), FACTS)
print(writer.path, flush=True)
sys.stdin.read()
"""


def test_a_process_that_dies_holds_no_run(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLDS, tmp_path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout
        path = holder.stdout.readline().strip()
        with pytest.raises(RunError, match="another process is writing this run"):
            resume_run(path, FACTS, {})
        holder.kill()
        holder.wait()
        with resume_run(path, FACTS, {}) as writer:
            assert writer.found.num_rows == 0


def test_no_row_is_there_twice(tmp_path: Path) -> None:
    path = interrupted(tmp_path)
    with resume_run(path, FACTS, {}) as writer:
        before = files(path)
        for rows in ([row(format="v3", size_bytes=2)], [row(format="v0"), row(format="v0", size_bytes=1)]):
            with pytest.raises(RunError, match="already"):
                writer.add(table(rows))
        assert files(path) == before
        writer.add(table([row(format="v0"), row(format="v0", kind="model", start=5), row(format="v0", seed=2)]))


def full(writer: RunWriter, name: str) -> None:
    (writer.path / name).with_suffix(".tmp").symlink_to("/dev/full")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no device that is always full")  # noqa: PTH110
def test_a_full_disk_is_one_line_and_the_run_can_be_resumed(tmp_path: Path) -> None:
    with create_run(tmp_path, FACTS) as writer:
        full(writer, "measurements/part-00000.parquet")
        with pytest.raises(
            RunError, match=r"part-00000\.parquet: cannot be written: No space left on device"
        ) as caught:
            writer.add(table([row()]))
        assert f"--resume {writer.path} continues the run" in str(caught.value) and "\n" not in str(caught.value)
        full(writer, "manifest.json")
        with pytest.raises(RunError, match=r"manifest\.json: cannot be written: No space left on device"):
            writer.complete({})
    assert sorted(files(writer.path)) == ["lock", "manifest.json"]
    with resume_run(writer.path, FACTS, {}) as again:
        again.add(table([row()]))
        assert again.complete({}).table.num_rows == 1


def test_a_part_of_another_schema_is_not_written(tmp_path: Path) -> None:
    writer = create_run(tmp_path, FACTS)
    with pytest.raises(ValueError, match="schema"):
        writer.add(table([row()]).drop_columns(["seed"]))
    assert list((writer.path / "measurements").iterdir()) == []


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    taken = tmp_path / "runs"
    taken.write_text("a file")
    for refuses in (check_place, partial(create_run, facts=FACTS)):
        with pytest.raises(RunError, match=f"^{taken}: no run can be written here: ") as caught:
            refuses(tmp_path)
        assert "\n" not in str(caught.value)
    with pytest.raises(RunError, match="no run can be written here: Not a directory"):
        check_place(taken / "deeper")


def test_a_place_is_looked_at_and_not_touched(tmp_path: Path) -> None:
    check_place(tmp_path / "reports")
    assert list(tmp_path.iterdir()) == []
