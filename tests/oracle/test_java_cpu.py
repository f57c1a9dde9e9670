"""The Java side of `make java-cpu`: the same logs as ours, and times of every arm; other bytes are refused."""

from dataclasses import replace

import numpy as np
import pytest

from kfbench.sweep.grid import Cell
from kfbench.workloads import Sample
from tools import java_cpu

pytestmark = pytest.mark.oracle
ROUNDS = 5


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Cell, Sample]]:
    monkeypatch.setattr(java_cpu, "LEAST_WARM_UP_S", 0.05)
    monkeypatch.setattr(java_cpu, "MOST_WARM_UP_S", 0.2)
    cells = [replace(cell, records=200) for cell in java_cpu.cells()]
    return [(cell, cell.workload.generate(records=200, seed=cell.seed)) for cell in (cells[0], cells[-1])]


def test_java_writes_our_bytes_and_times_every_arm(asked: list[tuple[Cell, Sample]]) -> None:
    versions, arms = java_cpu.java_times(asked, ROUNDS)
    assert versions["kafka"] == "3.9.1" and versions["java"]
    names = [("v0", "measure"), ("v1", "measure"), ("v2", "measure"), ("v2", "aa")]
    for each in arms:
        assert [(arm["operation"], arm["format"], arm["arm"]) for arm in each] == [
            (operation, *name) for operation in ("encode", "decode") for name in names
        ]
        for arm in each:
            assert len(arm["cpu_ns"]) == len(arm["wall_ns"]) == ROUNDS and min(arm["cpu_ns"]) > 0
            assert arm["inner_loops"] >= 1 and arm["writer"] == "java"


def test_other_bytes_than_ours_are_refused(asked: list[tuple[Cell, Sample]], monkeypatch: pytest.MonkeyPatch) -> None:
    whole = java_cpu.request

    def damaged(*given: object) -> bytes:
        data = bytearray(whole(*given))  # type: ignore[arg-type]
        data[-1] ^= 1  # of the last value
        return bytes(data)

    monkeypatch.setattr(java_cpu, "request", damaged)
    with pytest.raises(java_cpu.DiffersError, match=r"v0: Java wrote \d+ other bytes than ours"):
        java_cpu.java_times(asked, ROUNDS)


def test_cells_are_those_of_the_default_profile() -> None:
    cells = java_cpu.cells()
    assert [(cell.axes["batch_size"], cell.axes["value_bytes"]) for cell in cells] == [
        (batch, value) for batch in (1, 10, 100) for value in (10, 100, 1000)
    ]
    assert all(cell.formats == ("v0", "v1", "v2") and cell.codec == "none" for cell in cells)
    assert len({cell.cell_id for cell in cells}) == len(np.unique([cell.seed for cell in cells])) == 9
