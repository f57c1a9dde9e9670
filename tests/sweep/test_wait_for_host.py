"""Turns among sweeps: said once, and not waited for without end. tests/sweep/test_cell.py has tasks without a turn."""

from pathlib import Path

import pytest

from kfbench.measure.host_lock import NotAlone, SomeoneMeasures
from kfbench.measure.schema import SCHEMA, table
from kfbench.sweep.run.cell import Measured, failed_rows
from kfbench.sweep.run.wait_for_host import Turns
from tests.sweep.test_cell import a_cell

RUN = Path("reports/runs/2026-11-22.1")
NOTHING = SCHEMA.empty_table()
ROWS = table(failed_rows(a_cell(), "skipped", "no time"))
OTHER = SomeoneMeasures("process 12 measures on this host")
WITHOUT = Measured(rows=NOTHING, passing=NOTHING, busy_s=0.0, waited_s=5.0, left=(a_cell("cpu"),), refused=OTHER)
WITH = Measured(rows=ROWS, passing=NOTHING, busy_s=1.0)
SOME = Measured(rows=ROWS, passing=NOTHING, busy_s=1.0, waited_s=5.0, left=(a_cell("cpu"),), refused=OTHER)


@pytest.fixture
def said() -> list[str]:
    return []


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [1_000.0]
    monkeypatch.setattr("kfbench.sweep.run.wait_for_host.time.monotonic", lambda: now[0])
    return now


def test_who_is_waited_for_is_said_once_a_wait(said: list[str], clock: list[float]) -> None:
    turns = Turns(said.append, RUN)
    line = "process 12 measures on this host: waiting for a turn, 30 minutes at most"
    for found in (WITH, WITHOUT, WITHOUT):
        turns.took(found)
    assert said == [line]
    for found in (WITH, WITHOUT, SOME):
        turns.took(found)
    assert said == [line] * 3


def test_a_wait_has_an_end_and_a_turn_begins_it_anew(said: list[str], clock: list[float]) -> None:
    turns = Turns(said.append, RUN)
    for found in (WITHOUT, SOME):
        turns.took(found)
        clock[0] += 1_794
        turns.took(WITHOUT)
    clock[0] += 2
    with pytest.raises(SomeoneMeasures, match="gave no turn in 30 minutes; --resume reports/runs/2026"):
        turns.took(WITHOUT)


def test_a_host_whose_lock_cannot_be_used_ends_the_sweep(said: list[str]) -> None:
    refused = NotAlone("/tmp/lock: nothing can be timed without it: Permission denied")
    found = Measured(rows=ROWS, passing=NOTHING, busy_s=1.0, left=(a_cell("cpu"),), refused=refused)
    with pytest.raises(NotAlone, match="Permission denied; --resume reports/runs/2026"):
        Turns(said.append, RUN).took(found)
    assert said == []
