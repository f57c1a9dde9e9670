"""What a second worker gives: `python -m tools.second_worker [PROFILE] [--filter EXPR] [--rounds 4]`, in 10 minutes.

The bytes cells of a profile on a standalone cluster of two workers, each of one core: a round has a sweep that is given
one of them and a sweep that is given both, in an order that turns every round. Rounds are even in number, and one that
warms the machine goes before them and does not count. Compared are the wall times of the bytes stage, as the manifests
have them, without the sessions' start. Beside them, what the same cells took in two workers at once against in one (two
cores share caches and memory; above 1 no engine can mend it), and what this machine's cores give for a loop of plain
Python in two processes against one.

Exit status: 0 two workers are at least TARGET times as fast as one (median of the rounds' ratios), 3 they are not.
"""

import argparse
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from kfbench.store import open_run
from tools import cluster
from tools.cluster import Cluster

TARGET = 1.8
LOOP = "for _ in range(50_000_000): pass"
LOOP_ROUNDS = 2  # of which the faster counts: it lasts seconds, and anything may pass by


def bytes_stage(
    running: Cluster, workers: int, profile: str, filters: Sequence[str], folder: Path
) -> Mapping[str, float]:
    """What the manifest says of the stage where a session may have so many cores."""
    settings = folder / f"of-{workers}"
    settings.mkdir(exist_ok=True)
    (settings / "spark-defaults.conf").write_text(f"spark.cores.max {workers}\n")
    options = ["--out", str(folder), "--master", running.url, "--filter", "kind=bytes"]
    options += [word for each in filters for word in ("--filter", each)]
    command = [sys.executable, "-m", "kfbench", "sweep", profile, *options]
    environ = {**os.environ, "SPARK_CONF_DIR": str(settings)}
    done = subprocess.run(command, env=environ, stdout=subprocess.PIPE, text=True, check=True)
    stages: Sequence[Mapping[str, float]] = open_run(done.stdout.strip()).manifest["stages"]
    (stage,) = stages
    if stage["slots"] != workers:
        raise SystemExit(f"{workers} workers were asked for, {stage['slots']} took part")
    return stage


def loops_s(processes: int) -> float:
    """Wall time of so many loops beside one another. Raises SystemExit where one fails: it would count as fast."""

    def once() -> float:
        began = time.perf_counter()
        started = [subprocess.Popen([sys.executable, "-c", LOOP]) for _ in range(processes)]
        statuses = [each.wait() for each in started]
        took = time.perf_counter() - began
        if any(statuses):
            raise SystemExit(f"plain loops ended with {statuses}")
        return took

    return min(once() for _ in range(LOOP_ROUNDS))


def told(ratios: Sequence[float]) -> str:
    return f"{statistics.median(ratios):.2f} times ({min(ratios):.2f} to {max(ratios):.2f} in {len(ratios)} rounds)"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("profile", nargs="?", default="default")
    parser.add_argument("--filter", action="append", default=[], help="as of kfbench sweep, beside kind=bytes")
    parser.add_argument("--rounds", type=int, default=4, help="an even number; one more goes before them")
    asked = parser.parse_args()
    if asked.rounds < 2 or asked.rounds % 2:
        parser.error("--rounds: an even number, so that each goes first as often as the other")
    cluster.end_on_sigterm()
    ratios, limits, dearer = [], [], []
    with (
        TemporaryDirectory(prefix="kfbench-cluster-") as name,
        cluster.running(Path(name), workers=2) as running,
    ):
        for round_ in range(asked.rounds + 1):
            limit = 2 * loops_s(1) / loops_s(2)
            took = {}
            for workers in (1, 2) if round_ % 2 == 0 else (2, 1):
                took[workers] = bytes_stage(running, workers, asked.profile, asked.filter, Path(name))
            if round_ == 0:
                continue
            limits.append(limit)
            one, two = took[1], took[2]
            ratios.append(one["wall_s"] / two["wall_s"])
            dearer.append(two["busy_s"] / one["busy_s"])
            said = f"1 worker {one['wall_s']:.1f} s, 2 workers {two['wall_s']:.1f} s: {ratios[-1]:.2f} times"
            said += f"; the engine {one['overhead_share']:.1%} and {two['overhead_share']:.1%} of their time"
            print(f"{said}; the cells {dearer[-1]:.3f} times; a plain loop {limits[-1]:.2f} times", flush=True)
    met = statistics.median(ratios) >= TARGET
    print(f"2 workers against 1: {told(ratios)}; target {TARGET}: {'met' if met else 'MISSED'}")
    print(f"the cells themselves, in 2 workers against in 1: {told(dearer)}")
    print(f"2 processes against 1 in a plain loop, the most that these cores give: {told(limits)}")
    return 0 if met else 3


if __name__ == "__main__":
    sys.exit(main())
