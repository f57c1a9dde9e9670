"""What a second worker gives: `python -m benchmarks.cluster [PROFILE] [--filter EXPR] [--rounds 3]`, in 6 minutes.

The bytes cells of a profile on a standalone cluster of two workers, each of one core: a round has a sweep that is given
one of them and a sweep that is given both, in an order that turns every round. Compared are the wall times of the bytes
stage, as the manifests have them, without the sessions' start. Beside them, in the same round, what this machine's
cores give for a loop of plain Python in two processes against one: more than that no second worker can give here.

Exit status: 0 two workers are at least TARGET times as fast as one (median of the rounds' ratios), 3 they are not.
"""

import argparse
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from kfbench.store import open_run
from tools import cluster
from tools.cluster import Cluster

TARGET = 1.8
LOOP = "for _ in range(50_000_000): pass"
LOOP_ROUNDS = 2  # of which the faster counts: it lasts seconds, and anything may pass by


def bytes_stage_s(running: Cluster, workers: int, profile: str, filters: Sequence[str], folder: Path) -> float:
    """How long the stage took where a session may have so many cores."""
    settings = folder / f"of-{workers}"
    settings.mkdir(exist_ok=True)
    (settings / "spark-defaults.conf").write_text(f"spark.cores.max {workers}\n")
    options = ["--out", str(folder), "--master", running.url, "--filter", "kind=bytes"]
    options += [word for each in filters for word in ("--filter", each)]
    command = [sys.executable, "-m", "kfbench", "sweep", profile, *options]
    environ = {**os.environ, "SPARK_CONF_DIR": str(settings)}
    done = subprocess.run(command, env=environ, stdout=subprocess.PIPE, text=True, check=True)
    (stage,) = open_run(done.stdout.strip()).manifest["stages"]
    if stage["slots"] != workers:
        raise SystemExit(f"{workers} workers were asked for, {stage['slots']} took part")
    return float(stage["wall_s"])


def loops_s(processes: int) -> float:
    """Wall time of so many loops beside one another."""

    def once() -> float:
        began = time.perf_counter()
        started = [subprocess.Popen([sys.executable, "-c", LOOP]) for _ in range(processes)]
        for each in started:
            each.wait()
        return time.perf_counter() - began

    return min(once() for _ in range(LOOP_ROUNDS))


def told(ratios: Sequence[float]) -> str:
    return f"{statistics.median(ratios):.2f} times ({min(ratios):.2f} to {max(ratios):.2f} in {len(ratios)} rounds)"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("profile", nargs="?", default="default")
    parser.add_argument("--filter", action="append", default=[], help="as of kfbench sweep, beside kind=bytes")
    parser.add_argument("--rounds", type=int, default=3)
    asked = parser.parse_args()
    ratios, limits = [], []
    with (
        TemporaryDirectory(prefix="kfbench-cluster-") as name,
        cluster.running(Path(name), workers=2) as running,
    ):
        for round_ in range(asked.rounds):
            limits.append(2 * loops_s(1) / loops_s(2))
            took = {}
            for workers in (1, 2) if round_ % 2 == 0 else (2, 1):
                took[workers] = bytes_stage_s(running, workers, asked.profile, asked.filter, Path(name))
            ratios.append(took[1] / took[2])
            said = f"1 worker {took[1]:.1f} s, 2 workers {took[2]:.1f} s: {ratios[-1]:.2f} times"
            print(f"{said}; a plain loop {limits[-1]:.2f} times", flush=True)
    met = statistics.median(ratios) >= TARGET
    print(f"2 workers against 1: {told(ratios)}; target {TARGET}: {'met' if met else 'MISSED'}")
    print(f"2 processes against 1 in a plain loop, the most that these cores give: {told(limits)}")
    return 0 if met else 3


if __name__ == "__main__":
    sys.exit(main())
