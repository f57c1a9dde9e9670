"""Ratios from Spark held against a serial run: `python -m tools.serial [PROFILE] [--out FOLDER]`, in minutes.

The CPU cells of a profile, measured by Spark's workers as a sweep does, then one after the other in this process, with
neither Spark nor a JVM about. Both runs are kept under FOLDER/runs for `kfbench compare`. Printed is by how much a
format's ratio to v2 differs, the median cell; exit status: 0 v3's differ by TARGET at most where caches are warm, 3 by
more or there are none, 1 one of the runs failed.
"""

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from rich.console import Console

from kfbench.comparison.agreement import Agreement, agreement
from kfbench.errors import KfbenchError
from kfbench.measure.cpu import OPERATIONS
from kfbench.measure.host_lock import HostLockWait
from kfbench.progress import counting, say
from kfbench.store import Run, create_run, open_run
from kfbench.sweep.definition.filter import filtered
from kfbench.sweep.definition.profile import Profile, load_profile
from kfbench.sweep.run.history import History
from kfbench.sweep.run.plan import CELL_BUDGET_S, Task, planned
from kfbench.sweep.run.published import command
from kfbench.sweep.run.runner import RunOptions, run_sweep, sweep_facts
from kfbench.sweep.run.stage import measure_stage
from kfbench.sweep.run.task import Measured
from kfbench.sweep.spark.executors import Call, host_facts

TARGET: Final = 0.03
COMPARED: Final = "v3"


def serial(profile: Profile, out: Path, typed: str) -> Run:
    """The profile's run without Spark. It takes turns with others who measure, as a sweep's tasks do.

    Raises RunError, HostLockHeld, HostLockUnusable.
    """
    console = Console(stderr=True)
    facts, own = sweep_facts(profile, "none: one process", typed, CELL_BUDGET_S), host_facts()
    with create_run(out, facts) as writer, counting(console) as progress:
        history = History(writer, {own["host"]: own})
        lock_wait = HostLockWait(lambda line: say(console, line), writer.path)
        for stage in planned(profile.cells, CELL_BUDGET_S, 1):
            measure_stage(stage, 1, here, history, progress, lock_wait)
        return history.complete(len(profile.cells))


def here(calls: Sequence[Call[Task, Measured]], _: int) -> Iterator[tuple[Task, Measured]]:
    for measure, task in calls:
        yield task, measure(task)


def is_met(found: Agreement) -> bool:
    """Whether anything was compared, and is within TARGET. Cold cells are shown: they are few, of one call a sample."""
    groups = [group for group in found.judged if group.format == COMPARED and group.operation in OPERATIONS]
    return bool(groups) and all(group.median_difference <= TARGET for group in groups)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("profile", nargs="?", default="default")
    parser.add_argument("--out", type=Path, default=Path("reports"))
    asked = parser.parse_args()
    typed = command(["python", "-m", "tools.serial", *sys.argv[1:]])
    try:
        profile = filtered(load_profile(asked.profile), ["kind=cpu"])
        by_spark = open_run(run_sweep(profile, asked.out, RunOptions(command=typed)))
        found = agreement(by_spark.table, (one := serial(profile, asked.out, typed)).table, TARGET)
    except KfbenchError as error:
        print(f"serial: {error}", file=sys.stderr)
        return 1
    for group in found.judged:
        print(f"{group.operation:<12} {group.format:<20} {len(group.cells):>3} cells  {group.median_difference:.2%}")
    print(f"{by_spark.path} {one.path}\n{COMPARED} within {TARGET:.0%}: {'met' if is_met(found) else 'MISSED'}")
    return 0 if is_met(found) else 3


if __name__ == "__main__":
    sys.exit(main())
