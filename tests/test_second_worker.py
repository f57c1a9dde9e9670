"""What is compared when two workers are held against one, without the workers."""

import sys

import pytest

from benchmarks import cluster


def test_a_loop_that_fails_is_not_taken_for_a_fast_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "LOOP", "pass")
    assert cluster.loops_s(2) > 0
    monkeypatch.setattr(cluster, "LOOP", "raise SystemExit(1)")
    with pytest.raises(SystemExit, match=r"\[1, 1\]"):
        cluster.loops_s(2)


@pytest.mark.parametrize("rounds", ["0", "3"])
def test_rounds_are_even_in_number(
    rounds: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["cluster", "--rounds", rounds])
    with pytest.raises(SystemExit):
        cluster.main()
    assert "an even number" in capsys.readouterr().err
