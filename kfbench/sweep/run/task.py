"""Measure the cells of one Spark task, one after another. The results are rows of the result table.

A cell that raises an exception or takes too long gets a row with its error, because one broken cell must not end a
sweep of hours. Errors of a busy host (such as no memory) are stored separately, because the next try may succeed.
"""

import faulthandler
import os
import signal
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

import pyarrow as pa

from kfbench.codecs import CODECS
from kfbench.kernels.jit import compiled_only
from kfbench.measure.cell import Cell
from kfbench.measure.columns import Row
from kfbench.measure.environment import host
from kfbench.measure.host_counters import watch_host
from kfbench.measure.host_lock import HostLockHeld, HostLockUnusable, host_lock
from kfbench.measure.kinds import estimate_s, kind_of
from kfbench.measure.kinds.base import BUSY, TookTooLong, error_text
from kfbench.measure.schema import SCHEMA, table

LIMIT_ESTIMATES: Final = 20
LEAST_LIMIT_S: Final = 120.0  # enough for a busy host, and for the first cell that calls a kernel
# After this time, a worker stops waiting for the host lock, and the driver shows who holds it. Workers cannot show it.
PATIENCE_S: Final = 5.0
AGAIN_S: Final = 1.0  # the exception is raised again at this interval, because Python drops one in a finalizer
ENDS_AFTER: Final = 2  # the process ends after this multiple of the limit


@dataclass(frozen=True, kw_only=True)
class TaskResult:
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
) -> TaskResult:
    """Measure the cells one after another. Return the rows and the cells that are left.

    Stop if a timed cell waits for the host lock longer than `patience_s` seconds.

    The time limit of a cell is 20 times its estimate (LIMIT_ESTIMATES), but at least `least_limit_s`. A cell that takes
    longer gets an error row. If it ignores signals, the process ends after twice the limit (see `time_limit`).
    """
    rows: list[pa.Table] = [table([])]
    passing: list[Row] = []
    left: tuple[Cell, ...] = ()
    refused: HostLockHeld | HostLockUnusable | None = None
    waited_s, began = 0.0, time.perf_counter()
    for number, cell in enumerate(cells):
        wait_began = time.perf_counter()
        try:
            with host_lock(patience_s) if kind_of(cell).is_timed else nullcontext():
                waited_s += time.perf_counter() - wait_began
                with time_limit(max(least_limit_s, LIMIT_ESTIMATES * estimate_s(cell))):
                    measured = measure_cell(cell)
            rows.append(table(measured))
        except (HostLockHeld, HostLockUnusable) as error:  # returned, because Spark would try a raising task again
            waited_s += time.perf_counter() - wait_began
            left, refused = tuple(cells[number:]), error
            break
        except BUSY as error:
            passing += failed_rows(cell, "error", f"{cell.title}: {error_text(error)}", host())
        except Exception as error:
            rows.append(table(failed_rows(cell, "error", f"{cell.title}: {error_text(error)}", host())))
    return TaskResult(
        rows=pa.concat_tables(rows),
        passing=table(passing),
        busy_s=time.perf_counter() - began - waited_s,
        waited_s=waited_s,
        left=left,
        refused=refused,
    )


def measure_cell(cell: Cell) -> list[Row]:
    """Measure a cell and return its rows.

    A cell may belong to several [[grid]] blocks of the sweep. Each of these blocks gets its own rows.

    If a format fails, the columns `status` and `error` of its rows show the error. The text is the same on every host,
    because rows are published and compared. Raises the errors in BUSY.
    """
    kind = kind_of(cell)
    with compiled_only():
        rows = watch_host(lambda: kind.rows(cell)) if kind.is_timed else kind.rows(cell)
    return _under_its_grids(cell, rows, host())


def failed_rows(cell: Cell, status: Literal["error", "skipped"], reason: str, on: str | None = None) -> list[Row]:
    """Return the rows of a cell that was not measured, for each format and operation.

    reason: the text of the column `error`. on: the host that tried to measure it; None if no host did.
    """
    keys = kind_of(cell).row_keys(cell)
    rows = [{"format": name, "status": status, "error": reason} | key for name in cell.formats for key in keys]
    return _under_its_grids(cell, rows, on)


def _under_its_grids(cell: Cell, rows: Iterable[Row], on: str | None) -> list[Row]:
    measured = list(rows)
    columns = {name: value for name, value in cell.axes.items() if name in SCHEMA.names}
    common = {
        "kind": cell.kind,
        "cell_id": cell.cell_id,
        "workload": cell.workload.name,
        "seed": cell.seed,
        "codec": cell.codec,
        "level": cell.level,
        "codec_version": CODECS[cell.codec].version,
        "host": on,
        "cache": cell.cache if kind_of(cell).has_cold_mode else None,
        "context": cell.context,
    }
    return [
        columns | common | {"grid": grid} | row
        for grid, formats in cell.grids.items()
        for row in measured
        if row["format"] in formats
    ]


@contextmanager
def time_limit(limit_s: float) -> Iterator[None]:
    """Raise TookTooLong in the `with` body after `limit_s` seconds. End the process after twice this time.

    The exception is raised by a signal. Compiled code does not let Python handle signals, and it holds the
    interpreter's lock. So no Python thread can end the process then, but faulthandler's watchdog thread can. Python
    handles signals only in the main thread. In other threads, this function sets no limit.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def late(*_: object) -> None:
        raise TookTooLong(f"it took longer than {limit_s:g} s")

    with Path(os.devnull).open("w") as nowhere:
        before = signal.signal(signal.SIGALRM, late)
        faulthandler.dump_traceback_later(ENDS_AFTER * limit_s, exit=True, file=nowhere)
        try:
            try:
                signal.setitimer(signal.ITIMER_REAL, limit_s, AGAIN_S)
                yield
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)  # the timer's own signal may have interrupted the call above
            faulthandler.cancel_dump_traceback_later()
            signal.signal(signal.SIGALRM, before)
