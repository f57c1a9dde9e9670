"""Ratios from Spark held against a serial run: `python -m benchmarks.serial [PROFILE] [--out FOLDER]`, in minutes.

The CPU cells of a profile, measured by Spark's workers as a sweep does, then one after the other in this
process, with neither Spark nor a JVM about. Both runs are kept under FOLDER/runs for `kfbench compare`. Printed is by
how much a format's ratio to v2 differs, the median cell; exit status: 0 v3's differ by TARGET at most, 3 by more.
"""

import argparse
import sys
from pathlib import Path
from typing import Final

from kfbench.measure.alone import alone
from kfbench.measure.schema import table
from kfbench.report.agreement import agreement
from kfbench.store import Run, create_run, open_run
from kfbench.sweep.cell import measure_cell
from kfbench.sweep.filter import filtered
from kfbench.sweep.grid import Profile, load_profile
from kfbench.sweep.runner import run_sweep

TARGET: Final = 0.03
COMPARED: Final = "v3"


def serial(profile: Profile, like: Run, out: Path) -> Run:
    with create_run(out, {**like.manifest, "command": " ".join(sys.argv), "master": "none: one process"}) as writer:
        with alone():
            for cell in profile.cells:
                writer.add(table(measure_cell(cell)))
        return writer.complete({})


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("profile", nargs="?", default="default")
    parser.add_argument("--out", type=Path, default=Path("reports"))
    asked = parser.parse_args()
    profile = filtered(load_profile(asked.profile), ["kind=cpu"])
    by_spark = open_run(run_sweep(profile, asked.out))
    here = serial(profile, by_spark, asked.out)
    held = True
    for group in agreement(by_spark.table, here.table, TARGET).judged:
        print(f"{group.operation:<12} {group.format:<20} {len(group.cells):>3} cells  {group.median_difference:.2%}")
        held &= group.format != COMPARED or group.median_difference <= TARGET
    print(f"{by_spark.path} {here.path}\n{COMPARED} within {TARGET:.0%}: {'met' if held else 'MISSED'}")
    return 0 if held else 3


if __name__ == "__main__":
    sys.exit(main())
