"""What is compared when two workers are held against one, without the workers."""

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tools import second_worker as cluster


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


def test_the_cluster_ends_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    there: list[bool] = []

    @contextmanager
    def running(*_: object, **__: object) -> Iterator[None]:
        there.append(True)
        try:
            yield
        finally:
            there.remove(True)

    def signalled(_: int) -> float:
        assert there
        os.kill(os.getpid(), signal.SIGTERM)
        return 1.0

    monkeypatch.setattr("tools.cluster.running", running)
    monkeypatch.setattr(cluster, "loops_s", signalled)
    monkeypatch.setattr(sys, "argv", ["cluster", "smoke"])
    before = signal.getsignal(signal.SIGTERM)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # who does not listen would end these tests
    try:
        with pytest.raises(SystemExit) as ended:
            cluster.main()
    finally:
        signal.signal(signal.SIGTERM, before)
    assert ended.value.code == 128 + signal.SIGTERM and not there
