"""`make fuzz`: run both fuzzers on every format. Store the results in docs/fuzzing.json. docs/fuzzing.md shows them.

`--formats` selects some formats, such as a new one. Their results replace the earlier ones and are
stored last. If a child process dies, hangs or finds a fault, the run stores this as a fault, with the command that
repeats it.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from kfbench import FORMATS

ROOT = Path(__file__).parents[2]
STORED = ROOT / "docs" / "fuzzing.json"
CHUNK = 250_000  # damaged batches per child process
SAVED = 50  # inputs of a guided child between two writes of its summary
GUIDED_GROUP = 4  # formats that share one corpus of the guided fuzzer


@dataclass(frozen=True, kw_only=True)
class ChildOutcome:
    """The results of a child process by format. fault: how the child failed, or empty."""

    found: dict[str, Any] = field(default_factory=dict)
    fault: str = ""


def watched(command: list[str], environment: dict[str, str] | None = None) -> ChildOutcome:
    """Run `command --progress FILE`, which writes the number of each input to FILE.

    Return the results from its last line of stdout.
    """
    with tempfile.NamedTemporaryFile() as progress:
        progress.write(np.array([-1]).tobytes())
        progress.flush()
        done = subprocess.run(
            [*command, "--progress", progress.name], capture_output=True, text=True, errors="replace", cwd=ROOT,
            env=os.environ | (environment or {}), check=False,
        )  # fmt: skip
        number = int(np.fromfile(progress.name, np.int64)[0])
    if done.returncode == 0:
        lines = done.stdout.splitlines()
        return ChildOutcome(found=json.loads(lines[-1]) if lines else {})
    how = {-signal.SIGALRM: "hung"}.get(done.returncode, f"ended with {done.returncode}")
    last_lines = " ".join(done.stderr.strip().splitlines()[-3:])
    return ChildOutcome(fault=f"{' '.join(command[1:])}: {how} at number {number}: {last_lines}")


def native(names: list[str], seed: int, first: int, count: int) -> ChildOutcome:
    numbers = ["--seed", str(seed), "--first", str(first), "--count", str(count)]
    return watched([sys.executable, "-m", "tests.fuzz.native", *names, *numbers])


def guided(names: list[str], seed: int, runs: int, artifacts: Path) -> ChildOutcome:
    with tempfile.NamedTemporaryFile() as summary:
        where = ["--summary", summary.name, "--artifacts", str(artifacts)]
        outcome = watched(
            [sys.executable, "-m", "tests.fuzz.guided", *names, "--runs", str(runs), "--seed", str(seed), *where],
            {"NUMBA_DISABLE_JIT": "1"},
        )
        return outcome if outcome.fault else ChildOutcome(found=json.loads(summary.read()))


def summed(outcomes: Iterable[ChildOutcome]) -> dict[str, Any]:
    """Add up the outcomes of child processes per format."""
    found: dict[str, Any] = {}
    for outcome in outcomes:
        for name, part in outcome.found.items():
            whole = found.setdefault(name, {"inputs": 0, "accepted": 0, "refused": Counter[str]()})
            whole["inputs"] += part["inputs"]
            whole["accepted"] += part["accepted"]
            whole["refused"].update(part["refused"])
    for whole in found.values():
        whole["refused"] = dict(sorted(whole["refused"].items(), key=lambda item: -item[1]))
    return found


def revision() -> str:
    def git(*words: str) -> str:
        done = subprocess.run(["git", *words], capture_output=True, text=True, check=False, cwd=ROOT)
        return done.stdout.strip()

    changed = git("status", "--porcelain", "--untracked-files=no", "--", "kfbench", "tests/fuzz")
    return git("rev-parse", "--short", "HEAD") + (" and changes" if changed else "")


def tables() -> str:
    """Return a table per stored run. STORED also has the refusals by field."""
    return "\n\n".join(map(_run_text, json.loads(STORED.read_text())))


HEAD = "| format | damaged batches | accepted | coverage-guided | accepted |\n|---|---:|---:|---:|---:|"
NONE: dict[str, Any] = {"inputs": 0, "accepted": 0}


def _run_text(stored: dict[str, Any]) -> str:
    native, guided = stored["native"], stored["guided"]
    totals = [sum(each["inputs"] for each in found.values()) for found in (native, guided)]
    lines = [
        f"Run of {stored['date']}, revision {stored['revision']}, {stored['seconds']:,} s on {stored['jobs']} cores.",
        f"Damaged batches through compiled kernels: **{totals[0]:,}**.",
        f"Coverage-guided inputs through the twins: **{totals[1]:,}**. Faults: **{len(stored['faults'])}**.\n",
        HEAD,
    ]
    for name in [*native, *(guided.keys() - native.keys())]:
        parts = [found.get(name, NONE) for found in (native, guided)]
        counts = " | ".join(f"{part['inputs']:,} | {part['accepted']:,}" for part in parts)
        lines.append(f"| {name} | {counts} |")
    return "\n".join([*lines, "", *(f"Fault: `{fault}`" for fault in stored["faults"])]).strip()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--formats", nargs="+", choices=list(FORMATS), metavar="FORMAT", help="all unless given")
    parser.add_argument("--native", type=int, default=10_000_000, help="damaged batches in all")
    parser.add_argument("--guided", type=int, default=200_000, help="coverage-guided inputs in all")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--artifacts", type=Path, default=Path(tempfile.gettempdir()))
    parser.add_argument("--write", action="store_true", help="store the run in docs/fuzzing.json")
    options = parser.parse_args()
    names = options.formats or list(FORMATS)
    guided_names = names if options.formats else [*names, "read_log"]
    each = -(-options.native // len(names))
    sets = [guided_names[start : start + GUIDED_GROUP] for start in range(0, len(guided_names), GUIDED_GROUP)]
    runs = -(-options.guided // len(sets) // SAVED) * SAVED
    began = time.monotonic()
    with ThreadPoolExecutor(options.jobs) as pool:
        firsts = range(0, each, CHUNK)
        damaged = [
            pool.submit(native, [name], options.seed, first, min(CHUNK, each - first))
            for first in firsts
            for name in names
        ]
        bred = [pool.submit(guided, some, options.seed, runs, options.artifacts) for some in sets]
        outcomes = [[future.result() for future in futures] for futures in (damaged, bred)]
    stored = {
        "date": datetime.now(UTC).date().isoformat(),
        "revision": revision(),
        "seconds": round(time.monotonic() - began),
        "jobs": options.jobs,
        "seed": options.seed,
        "native": summed(outcomes[0]),
        "guided": summed(outcomes[1]),
        "faults": [outcome.fault for part in outcomes for outcome in part if outcome.fault],
    }
    if options.write:
        others = json.loads(STORED.read_text()) if options.formats else []
        stored_runs = [*(each for each in others if not each["native"].keys() <= {*names}), stored]
        STORED.write_text(json.dumps(stored_runs, indent=1) + "\n")
    sys.stdout.write(_run_text(stored) + "\n")
    sys.exit(1 if stored["faults"] else 0)


if __name__ == "__main__":
    main()
