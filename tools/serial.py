"""Compare ratios from Spark with those of a serial run: `python -m tools.serial [PROFILE] [--out FOLDER]`, in minutes.

First, Spark's workers measure the CPU cells (measurements) of a profile, like a sweep. Then this process measures the
same cells one after another, without Spark or a JVM. Both runs stay under FOLDER/runs for `kfbench compare`. The ratio
is a format's CPU time divided by the time of v2. The output is the difference of the two runs' ratios in the median
cell, for each operation and format.

Exit status: 0 if v3's ratios on warm caches differ by at most 3 % (TARGET), 3 if they differ by more or are missing, 1
if a run failed.
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
from kfbench.measure.environment import published_command
from kfbench.measure.host_lock import HostLockWait
from kfbench.progress import counting, say
from kfbench.store import Run, create_run, open_run
from kfbench.sweep.definition.filter import filter_profile
from kfbench.sweep.definition.profile import Profile, load_profile
from kfbench.sweep.run.history import RunHistory
from kfbench.sweep.run.plan import CELL_BUDGET_S, Task, plan_stages
from kfbench.sweep.run.runner import RunOptions, measure_stage, run_sweep, sweep_facts
from kfbench.sweep.run.task import TaskResult
from kfbench.sweep.spark.executors import Call, host_facts

TARGET: Final = 0.03
COMPARED: Final = "v3"


def serial(profile: Profile, out: Path, typed: str) -> Run:
    """Measure the profile in this process, without Spark, and return the run. `out`/runs is the folder of the run.

    typed: the command line of the user, for the manifest. Raises RunError, HostLockHeld, HostLockUnusable.
    """
    console = Console(stderr=True)
    facts, own = sweep_facts(profile, "none: one process", typed, CELL_BUDGET_S), host_facts()
    with create_run(out, facts) as writer, counting(console) as progress:
        history = RunHistory(writer, {own["host"]: own})
        lock_wait = HostLockWait(lambda line: say(console, line), writer.path)
        for stage in plan_stages(profile.cells, CELL_BUDGET_S, 1):
            measure_stage(stage, 1, here, history, progress, lock_wait)
        return history.complete(len(profile.cells))


def here(calls: Sequence[Call[Task, TaskResult]], _: int) -> Iterator[tuple[Task, TaskResult]]:
    for measure, task in calls:
        yield task, measure(task)


def is_met(found: Agreement) -> bool:
    """Return True if v3's ratios were compared, and all their median differences are at most TARGET.

    Cells on cold caches do not count, because they are noisy.
    """
    groups = [group for group in found.judged if group.format == COMPARED and group.operation in OPERATIONS]
    return bool(groups) and all(group.median_difference <= TARGET for group in groups)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("profile", nargs="?", default="default")
    parser.add_argument("--out", type=Path, default=Path("reports"))
    options = parser.parse_args()
    typed = published_command(["python", "-m", "tools.serial", *sys.argv[1:]])
    try:
        profile = filter_profile(load_profile(options.profile), ["kind=cpu"])
        by_spark = open_run(run_sweep(profile, options.out, RunOptions(command=typed)))
        found = agreement(by_spark.table, (one := serial(profile, options.out, typed)).table, TARGET)
    except KfbenchError as error:
        print(f"serial: {error}", file=sys.stderr)
        return 1
    for group in found.judged:
        print(f"{group.operation:<12} {group.format:<20} {len(group.cells):>3} cells  {group.median_difference:.2%}")
    print(f"{by_spark.path} {one.path}\n{COMPARED} within {TARGET:.0%}: {'met' if is_met(found) else 'MISSED'}")
    return 0 if is_met(found) else 3


if __name__ == "__main__":
    sys.exit(main())
