"""Profile a broker in all settings: `make profile`, or `python -m tools.broker_profile --help`.

Every run has a broker process of its own. Each round has one run of every setting, so that slow drift reaches all of
them. The results go into datasets/second-opinion/broker-profile.json, and from there into docs/broker-profile.md.
"""

import argparse
import json
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from kfbench.measure.environment import environment
from kfbench.measure.host_lock import HostLockHeld, HostLockUnusable
from tools import jvm
from tools.broker_profile import load, session
from tools.broker_profile.page import FILE, write_page
from tools.broker_profile.session import (
    ROUNDS_PER_S,
    SETTINGS,
    WARM_UP_S,
    Absent,
    Plan,
    Run,
    Setting,
    Tools,
    Unsteady,
    profile,
)
from tools.peers.base.measuring import holding_host

RUNS: Final = 5
ATTEMPTS: Final = 3


def main() -> None:
    parser = argparse.ArgumentParser(prog="make profile", description="Profile a Kafka broker under load.")
    names = [setting.name for setting in SETTINGS]
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--only", nargs="+", choices=names, default=names, metavar="NAME", help=", ".join(names))
    parser.add_argument("--rate", type=int, default=ROUNDS_PER_S, help="batches per second and partition")
    parser.add_argument("--warm-up", type=float, default=WARM_UP_S, help="seconds of sending at full speed")
    parser.add_argument("--out", type=Path, default=FILE)
    parser.add_argument("--page", action="store_true", help="only write the page from the stored file")
    options = parser.parse_args()
    if not options.page:
        settings = [setting for setting in SETTINGS if setting.name in options.only]
        options.out.parent.mkdir(parents=True, exist_ok=True)
        try:
            programs = session.tools()
            plan, runs = Plan(rounds_per_s=options.rate, warm_up_s=options.warm_up), list[Run]()
            for run in measured(settings, options.runs, programs, plan, lambda line: print(line, flush=True)):
                runs.append(run)
                options.out.write_text(text(facts(programs, plan), runs), encoding="utf-8")
        except (Absent, jvm.ToolError, HostLockHeld, HostLockUnusable) as error:
            raise SystemExit(f"make profile: {error}") from None
    if options.out == FILE:
        write_page()


def measured(
    settings: Sequence[Setting], rounds: int, programs: Tools, plan: Plan, say: Callable[[str], None]
) -> Iterator[Run]:
    """Yield the runs of all settings. A run whose load is wrong ATTEMPTS times is left out."""
    began, total = time.monotonic(), rounds * len(settings)
    for number, setting in enumerate([*settings] * rounds, 1):
        with holding_host(say):
            run = _attempted(setting, programs, plan, say)
        if run:
            say(f"{number} of {total}, {time.monotonic() - began:.0f} s: {setting.name}, {summary(run)}")
            yield run


def _attempted(setting: Setting, programs: Tools, plan: Plan, say: Callable[[str], None]) -> Run | None:
    for attempt in range(1, ATTEMPTS + 1):
        try:
            return profile(setting, programs, plan)
        except (Unsteady, TimeoutError) as why:
            say(f"attempt {attempt} of {ATTEMPTS} does not count: {why}")
    return None


def summary(run: Run) -> str:
    """Return a run's parts in percent, largest first."""
    parts = sorted(run.parts_ns.items(), key=lambda each: -each[1])
    shares = ", ".join(f"{part} {100 * cpu_ns / run.counted_ns:.1f}" for part, cpu_ns in parts)
    return f"{run.samples} samples, machine {100 * run.machine_busy:.0f} % busy: {shares}"


def facts(programs: Tools, plan: Plan) -> dict[str, Any]:
    (clients,) = programs.jars.glob("kafka-clients-*.jar")
    return {
        "measured": datetime.now(UTC).isoformat(timespec="seconds"),
        "kafka": clients.stem.rpartition("-")[2],
        "java": session.java_version(programs.java),
        "jvm_options": " ".join(session.JVM_OPTIONS),
        "profiling_options": " ".join(session.PROFILING),
        "workload": load.WORKLOAD,
        "partitions": session.PARTITIONS,
        "consumers": session.CONSUMERS,
        "rounds_per_s": plan.rounds_per_s,
        "warm_up_s": plan.warm_up_s,
        "environment": environment(),
    }


def text(head: dict[str, Any], runs: Sequence[Run]) -> str:
    """Return the JSON text of the result file, with a line per run."""
    lines = [f"{json.dumps(name)}: {json.dumps(value)}" for name, value in head.items()]
    rows = ",\n  ".join(json.dumps(run.row()) for run in runs)
    return "{" + ",\n ".join(lines) + ',\n "runs": [\n  ' + rows + "]}\n"


if __name__ == "__main__":
    main()
