"""The script that prints the speed figures: what it compares is equal, and its verdicts follow its targets."""

import dataclasses
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("aiokafka")

from benchmarks import figures

RECORDS = 300


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("RESIDENT", "LARGE_RECORDS", "MANY"):
        monkeypatch.setattr(figures, name, RECORDS)
    monkeypatch.setattr(figures, "ROUND_NS", 1)


def test_every_comparison_runs_and_has_its_target() -> None:
    """Each arm's bytes are compared before they are timed; a difference ends the script."""
    found = [
        *figures.encode_figures(2),
        *figures.limit_figures(2),
        *figures.decode_figures(2),
        *figures.many_figures(2),
    ]
    assert all(figure.measured > 0 for figure in found)
    assert [figure.target for figure in found] == [10, 6, 1.03, None, 1.2, None, 6, 6, 400]
    told = "\n".join(figures.lines(found))
    assert all(figure.name in told for figure in found)


def test_different_bytes_end_it(monkeypatch: pytest.MonkeyPatch) -> None:
    theirs = figures.aiokafka_v1
    monkeypatch.setattr(figures, "aiokafka_v1", lambda rows: theirs(rows[:-1]))
    with pytest.raises(SystemExit, match="v1: our bytes are not the peer's"):
        list(figures.encode_figures(1))


def test_verdicts() -> None:
    least = figures.Figure(name="n", measured=10.0, unit="x", target=10)
    most = dataclasses.replace(least, at_least=False)
    assert [dataclasses.replace(least, measured=m).verdict for m in (9.99, 10.0, 10.01)] == ["MISSED", "met", "met"]
    assert [dataclasses.replace(most, measured=m).verdict for m in (9.99, 10.0, 10.01)] == ["met", "met", "MISSED"]
    assert dataclasses.replace(least, target=None).verdict == ""


@pytest.mark.parametrize(("measured", "status"), [(10.0, 0), (9.99, 3)])
def test_a_missed_target_is_the_exit_status(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], measured: float, status: int
) -> None:
    for name in ("encode", "limit", "decode", "many", "command"):
        one = [figures.Figure(name=name, measured=measured if name == "limit" else 10.0, unit="x", target=10)]
        monkeypatch.setattr(figures, f"{name}_figures", lambda _rounds, one=one: one)
    monkeypatch.setattr(sys, "argv", ["figures.py"])
    assert figures.main() == status
    assert ("MISSED" in capsys.readouterr().out) == (status == 3)


def test_ratios_are_paired() -> None:
    """A slow round slows both arms, and does not count."""
    assert figures.ratio([2.0, 20.0, 2.0], [1.0, 10.0, 1.0]) == 2.0


def test_it_is_a_program() -> None:
    script = Path(figures.__file__)
    done = subprocess.run([sys.executable, script, "--help"], capture_output=True, text=True, check=True)
    assert "--json" in done.stdout
