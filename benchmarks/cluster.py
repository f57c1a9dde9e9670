"""What a second worker gives: `python -m benchmarks.cluster [PROFILE] [--rounds 3]`, in minutes.

The bytes cells of a profile on a standalone cluster of one worker and of two, each of one core, in turn; the stage's
wall time as the manifest has it, without the session's start. Exit status: 0 two are at least TARGET times as fast as
one (median of the rounds' ratios), 3 they are not.
"""

import argparse
import statistics
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from kfbench.store import open_run
from tools import cluster

TARGET = 1.8


def bytes_stage_s(profile: str, workers: int) -> float:
    with TemporaryDirectory(prefix="kfbench-cluster-") as folder, cluster.running(Path(folder), workers) as running:
        options = ["--out", folder, "--master", running.url, "--filter", "kind=bytes"]
        command = [sys.executable, "-m", "kfbench", "sweep", profile, *options]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
        (stage,) = open_run(done.stdout.strip()).manifest["stages"]
        return float(stage["wall_s"])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("profile", nargs="?", default="default")
    parser.add_argument("--rounds", type=int, default=3)
    asked = parser.parse_args()
    ratios = []
    for _ in range(asked.rounds):
        one, two = (bytes_stage_s(asked.profile, workers) for workers in (1, 2))
        ratios.append(one / two)
        print(f"1 worker {one:.1f} s, 2 workers {two:.1f} s: {ratios[-1]:.2f} times")
    found = statistics.median(ratios)
    print(f"median {found:.2f}, target {TARGET}: {'met' if found >= TARGET else 'MISSED'}")
    return 0 if found >= TARGET else 3


if __name__ == "__main__":
    sys.exit(main())
