"""`kfbench verify` and `kfbench compare`: exit status, findings and refusals."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.command import Run
from tests.vectors import write_vectors


def test_verify_says_what_it_checked(kfbench: Run, tmp_path: Path, two_cells: Path) -> None:
    golden = write_vectors(tmp_path / "golden")
    text = kfbench("verify", two_cells, "--golden", golden)
    assert (text.status, text.err) == (0, "")
    found = json.loads(kfbench("verify", two_cells, "--golden", golden, "--json").out)
    assert (found["checks"], found["failures"], found["golden"]["vectors"]) == (22, [], 1)
    assert [row["round trip"] for row in found["profile"]["formats"]] == [2, 2, 2]


def test_verify_fails_with_a_line_a_failure(
    kfbench: Run, tmp_path: Path, two_cells: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KFBENCH_GOLDEN", str(write_vectors(tmp_path / "golden", trailingBytes=7)))
    for options in ((), ("--json",)):
        done = kfbench("verify", two_cells, *options)
        assert done.status == 3
        assert done.err == "kfbench: nothing: empty: fields: Kafka leaves 7 bytes over, kfbench 0\n"
        assert done.out
    assert json.loads(done.out)["failures"][0]["subject"] == "nothing"


def test_verify_names_a_vector_that_it_cannot_read(kfbench: Run, tmp_path: Path, two_cells: Path) -> None:
    golden = write_vectors(tmp_path / "golden")
    (golden / "nothing.json").write_text("{}")
    done = kfbench("verify", two_cells, "--golden", golden)
    assert done.status == 3
    assert done.err.count("\n") == 1
    assert "nothing.json: sha256, error, byteExact" in done.err
    (golden / "nothing.bin").unlink()
    assert "nothing.bin: No such file" in kfbench("verify", two_cells, "--golden", golden).err


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


@pytest.mark.parametrize("threshold", ["0", "1", "-0.1", "nan", "x"])
def test_compare_wants_a_threshold_that_is_a_share(kfbench: Run, sizes: Callable[[int], Path], threshold: str) -> None:
    assert "--threshold" in kfbench("compare", sizes(1), sizes(1), f"--threshold={threshold}").refused(status=2)


def test_compare_names_the_run_that_it_cannot_use(kfbench: Run, sizes: Callable[[int], Path], tmp_path: Path) -> None:
    assert "nowhere: no such file or folder" in kfbench("compare", sizes(1), tmp_path / "nowhere").refused()
    assert f"{tmp_path}: not a run" in kfbench("compare", tmp_path, sizes(1)).refused()


def test_verify_needs_a_folder_of_vectors(kfbench: Run, tmp_path: Path, two_cells: Path) -> None:
    assert "nowhere" in kfbench("verify", two_cells, "--golden", tmp_path / "nowhere").refused()
