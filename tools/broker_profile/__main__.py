"""Profile a broker in all settings: `make profile`, or `python -m tools.broker_profile [--runs N] [--only NAME]`.

Every run has a broker process of its own. Each round has one run of every setting, so that slow drift reaches all of
them. The results go into datasets/second-opinion/broker-profile.json, and from there into docs/broker-profile.md.
"""

import argparse
import json
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from kfbench.measure.environment import environment
from kfbench.measure.host_lock import HostLockHeld, HostLockUnusable
from tools import jvm
from tools.broker_profile import load, session
from tools.broker_profile.page import FILE, write_page
from tools.broker_profile.session import SETTINGS, Absent, Run, Setting, Tools, Unsteady, profile
from tools.peers.base.measuring import holding_host

RUNS: Final = 5
ATTEMPTS: Final = 3


def main() -> None:
    parser = argparse.ArgumentParser(prog="make profile", description="Profile a Kafka broker under load.")
    names = [setting.name for setting in SETTINGS]
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--only", nargs="+", choices=names, default=names, metavar="NAME", help=", ".join(names))
    parser.add_argument("--out", type=Path, default=FILE)
    parser.add_argument("--page", action="store_true", help="only write the page from the stored file")
    options = parser.parse_args()
    if not options.page:
        settings = [setting for setting in SETTINGS if setting.name in options.only]
        try:
            programs = session.tools()
            runs = measured(settings, options.runs, programs, lambda line: print(line, flush=True))
        except (Absent, Unsteady, jvm.ToolError, TimeoutError, HostLockHeld, HostLockUnusable) as error:
            raise SystemExit(f"make profile: {error}") from None
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(text(facts(programs), runs), encoding="utf-8")
    if options.out == FILE:
        write_page()


def measured(settings: Sequence[Setting], rounds: int, programs: Tools, say: Callable[[str], None]) -> list[Run]:
    """Return the runs of all settings. Raises Unsteady if the load of a setting was wrong in each of ATTEMPTS runs."""
    found, began, total = list[Run](), time.monotonic(), rounds * len(settings)
    for _ in range(rounds):
        for setting in settings:
            with holding_host(say):
                found.append(_attempted(setting, programs, say))
            elapsed_s = time.monotonic() - began
            say(f"{len(found)} of {total}, {elapsed_s:.0f} s: {setting.name}, {summary(found[-1])}")
    return found


def _attempted(setting: Setting, programs: Tools, say: Callable[[str], None]) -> Run:
    for _ in range(ATTEMPTS - 1):
        try:
            return profile(setting, programs)
        except Unsteady as why:
            say(f"again: {why}")
    return profile(setting, programs)


def summary(run: Run) -> str:
    """Return a run's parts in percent, largest first."""
    parts = sorted(run.parts_ns.items(), key=lambda each: -each[1])
    shares = ", ".join(f"{part} {100 * cpu_ns / run.counted_ns:.1f}" for part, cpu_ns in parts)
    return f"{run.samples} samples, machine {100 * run.machine_busy:.0f} % busy: {shares}"


def facts(programs: Tools) -> dict[str, Any]:
    (clients,) = programs.jars.glob("kafka-clients-*.jar")
    return {
        "measured": datetime.now(UTC).isoformat(timespec="seconds"),
        "kafka": clients.stem.rpartition("-")[2],
        "java": session.java_version(programs.java),
        "jvm_options": " ".join(session.JVM_OPTIONS),
        "workload": load.WORKLOAD,
        "partitions": session.PARTITIONS,
        "consumers": session.CONSUMERS,
        "rounds_per_s": session.ROUNDS_PER_S,
        "environment": environment(),
    }


def text(head: dict[str, Any], runs: Sequence[Run]) -> str:
    """Return the JSON text of the result file, with a line per run."""
    lines = [f"{json.dumps(name)}: {json.dumps(value)}" for name, value in head.items()]
    rows = ",\n  ".join(json.dumps(run.row()) for run in runs)
    return "{" + ",\n ".join(lines) + ',\n "runs": [\n  ' + rows + "]}\n"


if __name__ == "__main__":
    main()
