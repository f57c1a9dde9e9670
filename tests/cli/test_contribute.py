"""The command contribute writes the file of a machine, and refuses what it cannot use in one line."""

import json
from pathlib import Path

from kfbench.machines.file import read_file, read_folder
from tests.cli.command import Run
from tests.machines.samples import cpu_rows, run_of, size_rows


def run_in(folder: Path) -> Path:
    return run_of(folder, cpu_rows() + size_rows({"v2": 900, "v3": 800})).path


def test_it_writes_a_file_and_says_what_is_in_it(kfbench: Run, tmp_path: Path) -> None:
    out = tmp_path / "epyc.json"
    done = kfbench("contribute", run_in(tmp_path), "--out", out)
    assert done.status == 0 and "never contains" in done.out and not list(tmp_path.glob("*.part"))
    found = read_file(out)
    assert f"{len(found.ratios)} ratios" in done.out and "hashes of 2 sizes" in done.out
    assert found.machine.instructions.words in done.out and str(tmp_path) not in out.read_text()
    assert "compares this one with none" in done.err


def test_other_code_is_told_and_the_same_code_is_not(kfbench: Run, tmp_path: Path) -> None:
    same = next(iter(read_folder().sound.values())).code
    for code, told in ((same, False), ("0" * len(same or ""), True)):
        folder = tmp_path / str(told)
        folder.mkdir()
        run = run_in(folder)
        manifest = json.loads((run / "manifest.json").read_bytes())
        (run / "manifest.json").write_text(json.dumps(manifest | {"code": code}))
        done = kfbench("contribute", run, "--out", folder / "epyc.json")
        assert done.status == 0 and ("compares this one with none" in done.err) == told


def test_a_file_is_not_replaced_unless_asked(kfbench: Run, tmp_path: Path) -> None:
    out, run = tmp_path / "epyc.json", run_in(tmp_path)
    out.write_text("mine")
    assert "exists already (--force replaces it)" in kfbench("contribute", run, "--out", out).refused()
    assert out.read_text() == "mine"
    assert kfbench("contribute", run, "--out", out, "--force").status == 0
    assert read_file(out).ratios


def test_the_run_is_never_changed(kfbench: Run, tmp_path: Path) -> None:
    run = run_in(tmp_path)
    before = (run / "manifest.json").read_bytes()
    assert "in the folder of the run" in kfbench("contribute", run, "--out", run / "manifest.json", "--force").refused()
    assert (run / "manifest.json").read_bytes() == before


def test_a_run_without_times_is_refused(kfbench: Run, tmp_path: Path) -> None:
    run = run_of(tmp_path, size_rows({"v2": 900})).path
    line = kfbench("contribute", run, "--out", tmp_path / "a.json").refused()
    assert "no CPU time" in line and "kfbench sweep machine" in line and not (tmp_path / "a.json").exists()


def test_a_damaged_run_is_refused(kfbench: Run, tmp_path: Path) -> None:
    run, out = run_in(tmp_path), tmp_path / "a.json"
    manifest = json.loads((run / "manifest.json").read_bytes())
    (run / "manifest.json").write_text(json.dumps(manifest | {"rows": 1}))
    assert "manifest.json has 1" in kfbench("contribute", run, "--out", out).refused()
    (run / "manifest.json").write_text(json.dumps(manifest | {"state": "running"}))
    assert "only complete runs can be read" in kfbench("contribute", run, "--out", out).refused()
    (run / "manifest.json").unlink()
    assert "not a run" in kfbench("contribute", run, "--out", out).refused()
    assert "no such file or folder" in kfbench("contribute", run / "absent", "--out", out).refused()
    assert not out.exists()
