"""Measure the cells of one Spark task, one after another.

A cell that raises an exception or takes too long gets a row with its error, because one broken cell must not end a
sweep of hours. Errors of a busy host (such as no memory) are stored separately, because the next try may succeed.
"""

import time
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from kfbench.measure.environment import host
from kfbench.measure.host_lock import HostLockHeld, HostLockUnusable, host_lock
from kfbench.measure.noise import TIMED_KINDS
from kfbench.measure.schema import Row, table
from kfbench.sweep.definition.cell import Cell
from kfbench.sweep.run.cell import failed_rows, measure_cell
from kfbench.sweep.run.cell_rows import BUSY, error_text
from kfbench.sweep.run.estimate import estimate_s
from kfbench.sweep.run.time_limit import time_limit

LIMIT_ESTIMATES: Final = 20
LEAST_LIMIT_S: Final = 120.0  # enough for a busy host, and for the first cell that calls a kernel
# After this time, a worker stops waiting for the host lock, and the driver shows who holds it. Workers cannot show it.
PATIENCE_S: Final = 5.0


@dataclass(frozen=True, kw_only=True)
class Measured:
    """The result of measuring the cells of a task. Times are in seconds."""

    rows: pa.Table
    passing: pa.Table  # rows of errors of a busy host, which a resumed run measures again
    busy_s: float  # the time that measuring took
    waited_s: float = 0.0  # the time that the task waited for the host lock
    left: tuple[Cell, ...] = ()  # cells that were not measured
    refused: HostLockHeld | HostLockUnusable | None = None  # the reason why they were not measured

    @property
    def has_rows(self) -> bool:
        return bool(self.rows.num_rows or self.passing.num_rows)


def measure_task(
    cells: Sequence[Cell], least_limit_s: float = LEAST_LIMIT_S, patience_s: float = PATIENCE_S
) -> Measured:
    """Measure the cells one after another. Return the rows and the cells that are left.

    Stop if a timed cell waits for the host lock longer than `patience_s` seconds.

    The time limit of a cell is 20 times its estimate (LIMIT_ESTIMATES), but at least `least_limit_s`. A cell that takes
    longer gets an error row. If it ignores signals, the process ends after twice the limit (see `time_limit`).
    """
    rows: list[Row] = []
    passing: list[Row] = []
    left: tuple[Cell, ...] = ()
    refused: HostLockHeld | HostLockUnusable | None = None
    waited_s, began = 0.0, time.perf_counter()
    for number, cell in enumerate(cells):
        wait_began = time.perf_counter()
        try:
            with host_lock(patience_s) if cell.kind in TIMED_KINDS else nullcontext():
                waited_s += time.perf_counter() - wait_began
                with time_limit(max(least_limit_s, LIMIT_ESTIMATES * estimate_s(cell))):
                    measured = measure_cell(cell)
            rows += measured
        except (HostLockHeld, HostLockUnusable) as error:  # returned, because Spark would try a raising task again
            waited_s += time.perf_counter() - wait_began
            left, refused = tuple(cells[number:]), error
            break
        except BUSY as error:
            passing += failed_rows(cell, "error", f"{cell.title}: {error_text(error)}", host())
        except Exception as error:
            rows += failed_rows(cell, "error", f"{cell.title}: {error_text(error)}", host())
    return Measured(
        rows=table(rows),
        passing=table(passing),
        busy_s=time.perf_counter() - began - waited_s,
        waited_s=waited_s,
        left=left,
        refused=refused,
    )
