"""Print the share of branches that the last coverage run took, for each folder in PARTS.

The exit status is 1 if a share is below 95 % (LEAST). This tool exists because `coverage report --fail-under` counts
statements and branches together.
"""

import json
import subprocess
import sys
from fnmatch import fnmatch

PARTS = (
    "kfbench/formats/*", "kfbench/kernels/*", "kfbench/log/*", "kfbench/batches.py", "kfbench/codecs/*",
    "kfbench/research/columnar/*",
)  # fmt: skip
LEAST = 95.0


def shares(report: dict[str, dict[str, dict[str, dict[str, int]]]]) -> dict[str, float]:
    """Return the percentage of branches taken in each part. report: the output of `coverage json`."""
    found = {}
    for part in PARTS:
        summaries = [each["summary"] for path, each in report["files"].items() if fnmatch(path, part)]
        taken, known = (sum(each[name] for each in summaries) for name in ("covered_branches", "num_branches"))
        found[part] = 100 * taken / known if known else 0.0
    return found


if __name__ == "__main__":
    command = [sys.executable, "-m", "coverage", "json", "-q", "-o", "-"]
    found = shares(json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout))
    for part, percent in found.items():
        print(f"{part:<20} {percent:5.1f} % of branches{'' if percent >= LEAST else f', below {LEAST:.0f}'}")
    sys.exit(min(found.values()) < LEAST)
