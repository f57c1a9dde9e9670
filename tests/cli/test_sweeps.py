"""`kfbench run`, `sweep`, `report` and `compare`: dry runs, refusals, interruptions and results."""

import json
import re
import unittest.mock
from collections.abc import Callable
from pathlib import Path

import pytest

from kfbench.formats import FORMATS
from kfbench.measure.callgrind import why_not_counted
from kfbench.measure.kinds import bytes as kind
from kfbench.measure.schema import table
from kfbench.store import create_run
from kfbench.sweep.definition.profile import Profile, load_profile
from kfbench.sweep.host import compiling
from kfbench.sweep.run.task import measure_cell
from tests.cli.command import Run, process
from tests.runs import MANIFEST, stored


def test_a_sweep_with_an_illegal_combination_leaves_nothing_behind(kfbench: Run, tmp_path: Path) -> None:
    sweep = tmp_path / "sweep.toml"
    sweep.write_text(
        'title = "t"\nanalysis = "a"\n[[grid]]\nname = "g"\ntitle = "t"\nanalysis = "a"\nworkload = "grid"\n'
        'measure = ["bytes"]\nformats = ["v1", "v2"]\nillegal = "refuse"\n[grid.axes]\nbatch_size = [1]\n'
        "[grid.codecs]\nzstd = [3]\n"
    )
    line = kfbench("run", sweep, "--out", tmp_path / "reports").refused()
    assert all(word in line for word in ("sweep.toml", "'g'", "codecs.zstd", "v1"))
    assert list(tmp_path.iterdir()) == [sweep]


def test_one_line_names_the_valgrind_that_is_absent(
    kfbench: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    why_not_counted.cache_clear()
    try:
        printed = [kfbench("run", profile, "--dry-run").err for profile in ("instructions", "smoke")]
    finally:
        why_not_counted.cache_clear()
    assert [text.count("\n") for text in printed] == [1, 0]


@pytest.mark.spark
@pytest.mark.slow
def test_run_sweeps_and_reports_and_report_finds_the_same_report_again(two_cells: Path) -> None:
    out = two_cells.parent / "reports"
    running = process("run", two_cells, "--out", out)
    printed, err = running.communicate(timeout=180)
    assert running.returncode == 0, err
    stages = [line.removeprefix("kfbench: ").split(":")[0] for line in err.splitlines()]
    shown = [each for each in dict.fromkeys(stages) if each != compiling.COMPILING]  # said only if there are any
    assert shown == ["bytes", "rendering"]  # stderr is not a terminal
    report = Path(printed.strip())
    assert report.parent == out
    assert {"README.md", "index.html", "measurements.parquet", "manifest.json"} <= {
        path.name for path in report.iterdir()
    }
    command = json.loads((report / "manifest.json").read_text())["command"]
    assert command == "kfbench run two.toml --out reports"
    (run,) = (out / "runs").iterdir()
    again = process("report", run, "--out", out)
    assert again.communicate(timeout=180) == (printed, "")


@pytest.mark.parametrize("is_published", [True, False])
def test_a_report_goes_where_its_sweep_wants_it_unless_told(
    is_published: bool, kfbench: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("kfbench.report.publish.files_of", lambda run: [("index.html", str(run.path).encode())])
    row = {"kind": "bytes", "cell_id": "one", "grid": "one", "workload": "grid", "seed": 1, "records": 10}
    row |= {"status": "ok", "codec": "none", "batch_size": 10, "batches": 1, "payload_bytes": 50}
    sizes = [
        row | {"format": name, "size_bytes": size, "overhead_bytes": size} for name, size in (("v2", 700), ("v3", 600))
    ]
    run = stored(tmp_path, sizes, publish=is_published).path
    place = "reports" if is_published else "reports/unpublished"
    assert re.fullmatch(rf"{place}/\d{{4}}-\d\d-\d\d\.1\n", kfbench("report", run).out)
    assert re.fullmatch(r"elsewhere/\d{4}-\d\d-\d\d\.1\n", kfbench("report", run, "--out", "elsewhere").out)


@pytest.mark.parametrize("command", ["run", "sweep"])
def test_a_dry_run_says_what_would_be_done_and_does_nothing(kfbench: Run, two_cells: Path, command: str) -> None:
    out = two_cells.parent / "reports"
    text = kfbench(command, two_cells, "--out", out, "--dry-run")
    assert (text.status, text.err) == (0, "") and "0 s of stages\n" in text.out
    data = json.loads(kfbench(command, two_cells, "--out", out, "--dry-run", "--json").out)
    (stage,) = data["stages"]
    assert (stage["kind"], stage["cells"], stage["tasks"], stage["skipped"]) == ("bytes", 2, 1, [])
    assert data["total_s"] == pytest.approx(data["start_s"] + data["compiling_s"] + stage["here_s"])
    assert data["cores"] > 0 and {"alone_s", "here_s", "longest_task_s"} <= stage.keys()
    few = kfbench(command, two_cells, "--dry-run", "--json", "--filter", "batch_size>5", "--cell-budget-s", "1e-6")
    (stage,) = json.loads(few.out)["stages"]
    assert stage["tasks"] == 0 and all("budget of a cell is 1e-06 s" in each["reason"] for each in stage["skipped"])
    assert not out.exists()


def test_a_dry_run_counts_compiling_until_a_sweep_has_done_it(
    kfbench: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, two_cells: Path
) -> None:
    cache = tmp_path / "kernels-0"
    (cache / "kernels_1").mkdir(parents=True)
    (cache / "kernels_1" / "scan.nbc").touch()  # loading the sweep compiles this kernel
    monkeypatch.setattr(compiling, "CACHE_FOLDER", cache)
    monkeypatch.setattr(compiling, "COMPILED", True)
    dry = ("sweep", two_cells, "--dry-run")
    before = json.loads(kfbench(*dry, "--json").out)
    compiling.note_compiled(compiling.compilations(load_profile(two_cells).cells))
    after = json.loads(kfbench(*dry, "--json").out)
    assert (before["compiling_s"], after["compiling_s"]) == (compiling.COMPILING_S, 0)
    assert before["total_s"] - after["total_s"] == pytest.approx(compiling.COMPILING_S)


@pytest.mark.parametrize("options", [[], ["--dry-run"]])
def test_a_sweep_resumes_no_run_of_another(kfbench: Run, two_cells: Path, tmp_path: Path, options: list[str]) -> None:
    with create_run(tmp_path, MANIFEST | {"profile_text": "another"}) as writer:
        pass
    before = {each: each.read_bytes() for each in writer.path.rglob("*") if each.is_file()}
    done = kfbench("sweep", two_cells, "--resume", writer.path, *options)
    assert "profile_text: line 1: another then, " in done.refused()
    assert {each: each.read_bytes() for each in writer.path.rglob("*") if each.is_file()} == before


@pytest.mark.parametrize("command", ["run", "sweep"])
def test_rows_that_are_errors_fail_the_command_after_it_has_stored_and_shown_the_rest(
    kfbench: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, two_cells: Path, command: str
) -> None:
    from kfbench.sweep.run import runner

    def swept(profile: Profile, *_: object, **__: object) -> Path:
        """Measure the sweep without Spark. Every measurement of v1 fails."""
        with unittest.mock.patch.object(kind, "FORMATS", {k: v for k, v in FORMATS.items() if k != "v1"}):
            rows = [row for each in profile.cells for row in measure_cell(each)]
        writer = create_run(out, MANIFEST)
        writer.add(table(rows))
        return writer.complete({"counts": {"error": sum(row["status"] == "error" for row in rows)}}).path

    out = tmp_path / ("a folder with a name that is longer than eighty columns are wide, " + "and [brackets] " * 3)
    monkeypatch.setattr(runner, "run_sweep", swept)
    done = kfbench(command, two_cells, "--out", out)
    (run,) = (out / "runs").iterdir()
    assert done.status == 3
    assert done.err.splitlines()[-1].startswith(f"kfbench: {run}: 2 rows ")
    printed = Path(done.out.removesuffix("\n"))
    assert printed == (run if command == "sweep" else out / run.name) and printed.is_dir()


@pytest.mark.parametrize("command", [["sweep", "smoke"], ["run", "smoke"], ["what-if", "{segment}"]])
def test_an_archive_is_for_a_cluster_and_has_to_be_there(
    kfbench: Run, segment: Path, tmp_path: Path, command: list[str]
) -> None:
    asked = [each.format(segment=segment) for each in command]
    archive = tmp_path / "environment.tar.gz"
    for master in ([], ["--master", "local"], ["--master", "local[2]"]):
        refused = kfbench(*asked, *master, "--archive", archive).refused(2)
        assert "--archive: only a cluster's executors" in refused
    refused = kfbench(*asked, "--master", "spark://host:7077", "--archive", archive).refused()
    assert f"{archive}: no such file: write it with `kfbench pack {archive}`" in refused


def test_compare_ends_with_status_3_where_bytes_changed(kfbench: Run, sizes: Callable[[int], Path]) -> None:
    first, same, other = sizes(700), sizes(700), sizes(699)
    done = kfbench("compare", first, same)
    assert (done.status, done.err) == (0, "")
    done = kfbench("compare", first, other)
    assert (done.status, done.err) == (3, "")
    done = kfbench("compare", first, other, "--json")
    found = json.loads(done.out)
    assert done.status == 3 and found["is_regression"] is True
    assert [(each["column"], each["before"], each["after"]) for each in found["changed"]] == [("size_bytes", 700, 699)]
