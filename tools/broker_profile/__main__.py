"""Profile a broker in all settings: `make profile`, or `python -m tools.broker_profile --help`.

Every run has a broker process of its own. Each round has one run of every setting, so that slow drift reaches all of
them. The results go into datasets/second-opinion/broker-profile.json, and from there into docs/broker-profile.md. Until
the last run they are in a file beside it, with the suffix .part. --resume measures only runs that this file, or a
finished one, lacks. On another processor it repeats the settings that are not finished. Other settings than the
planned ones need --out.
"""

import argparse
import json
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, NamedTuple

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
    setting_of,
)
from tools.peers.base.measuring import holding_host

RUNS: Final = 5
ATTEMPTS: Final = 3
SAME_MACHINE: Final = ("system", "machine", "cores")


def main() -> None:
    parser = argparse.ArgumentParser(prog="make profile", description="Profile a Kafka broker under load.")
    names = [setting.name for setting in SETTINGS]
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--only", nargs="+", choices=names, default=names, metavar="NAME", help=", ".join(names))
    parser.add_argument("--rate", type=int, default=ROUNDS_PER_S, help="batches per second and partition")
    parser.add_argument("--warm-up", type=float, default=WARM_UP_S, help="seconds of sending at full speed")
    parser.add_argument("--out", type=Path, help="another file for the runs")
    parser.add_argument("--resume", action="store_true", help="measure only the runs that the file lacks")
    parser.add_argument("--page", action="store_true", help="only write the page from the stored file")
    options = parser.parse_args()
    if options.page:
        write_page()
        return
    settings = [setting for setting in SETTINGS if setting.name in options.only]
    plan = Plan(rounds_per_s=options.rate, warm_up_s=options.warm_up)
    if options.out is None and (len(settings), options.runs, plan) != (len(SETTINGS), RUNS, Plan()):
        parser.error(f"other runs than planned do not belong in {FILE}: add --out FILE")
    out: Path = options.out or FILE
    part = out.with_suffix(".part")
    failed, rows, earlier = list[dict[str, Any]](), list[dict[str, Any]](), dict[str, Any]()
    out.parent.mkdir(parents=True, exist_ok=True)
    try:
        programs = session.tools()
        head = facts(programs, plan)
        if options.resume:
            found = stored(part if part.is_file() else out, head)
            rows, failed = kept_rows(found["runs"], settings, options.runs, processor(head)), found["failed"]
            earlier = {name: found[name] for name in ("measured", "environment")} if rows else {}
            if repeated := len(found["runs"]) - len(rows):
                print(f"{repeated} runs of another processor are repeated", flush=True)
        left = missing_runs(settings, options.runs, rows)
        failed_before = len(failed)
        for run in measured(left, programs, plan, lambda line: print(line, flush=True)):
            if isinstance(run, Failed):
                failed.append(run.row())
            else:
                rows.append(run.row() | {"cpu": processor(head)})
            part.write_text(text({**head, **earlier}, rows, failed), encoding="utf-8")
    except (Absent, jvm.ToolError, HostLockHeld, HostLockUnusable) as error:
        raise SystemExit(f"make profile: {error}") from None
    if part.is_file():
        part.rename(out)
    if options.out is None:
        write_page()
    if failed_now := failed[failed_before:]:
        raise SystemExit(f"make profile: {len(failed_now)} runs failed, the first: {failed_now[0]['reason']}")


class Failed(NamedTuple):
    """A run that failed ATTEMPTS times. reason: that of the last attempt."""

    setting: Setting
    reason: str

    def row(self) -> dict[str, Any]:
        return {**self.setting._asdict(), "reason": self.reason}


def stored(file: Path, head: Mapping[str, Any]) -> dict[str, Any]:
    """Read a file of runs. Raises Absent if there is none, and if its runs are of another system or plan."""
    if not file.is_file():
        raise Absent(f"{file}: no file to resume")
    found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    same = {name: (found[name], head[name]) for name in head.keys() - {"measured", "environment"}}
    same |= {name: (found["environment"][name], head["environment"][name]) for name in SAME_MACHINE}
    for name, (known, wanted) in sorted(same.items()):
        if known != wanted:
            raise Absent(f"{file}: has runs with another {name}: {known}, not {wanted}")
    return found


def kept_rows(
    rows: Sequence[dict[str, Any]], settings: Sequence[Setting], rounds: int, cpu: str
) -> list[dict[str, Any]]:
    """Return the runs that need not be repeated. rounds: the runs that each setting is to have.

    All runs of a setting are of one processor. So unfinished settings of another processor are left out.
    """
    missing = {*missing_runs(settings, rounds, rows)}
    return [row for row in rows if row["cpu"] == cpu or setting_of(row) not in missing]


def processor(head: Mapping[str, Any]) -> str:
    """Return the name and model of the processor."""
    return ", ".join(filter(None, (head["environment"]["cpu"], head["environment"]["cpu_model"])))


def missing_runs(settings: Sequence[Setting], rounds: int, rows: Sequence[Mapping[str, Any]]) -> list[Setting]:
    """Return a setting per run that is missing, round by round."""
    done = Counter(map(setting_of, rows))
    return [setting for number in range(rounds) for setting in settings if done[setting] <= number]


def measured(
    left: Sequence[Setting], programs: Tools, plan: Plan, say: Callable[[str], None]
) -> Iterator[Run | Failed]:
    """Yield a run of each setting in `left`."""
    began = time.monotonic()
    for number, setting in enumerate(left, 1):
        with holding_host(say):
            run = _attempted(setting, programs, plan, say)
        words = summary(run) if isinstance(run, Run) else "failed"
        say(f"{number} of {len(left)}, {time.monotonic() - began:.0f} s: {setting.name}, {words}")
        yield run


def _attempted(setting: Setting, programs: Tools, plan: Plan, say: Callable[[str], None]) -> Run | Failed:
    reason = ""
    for attempt in range(1, ATTEMPTS + 1):
        try:
            return profile(setting, programs, plan)
        except (Unsteady, jvm.ToolError, TimeoutError) as why:
            reason = str(why)
            say(f"attempt {attempt} of {ATTEMPTS} does not count: {why}")
    return Failed(setting, reason)


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


def text(head: Mapping[str, Any], rows: Sequence[Mapping[str, Any]], failed: Sequence[Mapping[str, Any]]) -> str:
    """Return the JSON text of the result file, with a line per run."""
    whole = {**head, "failed": [*failed]}
    lines = [f"{json.dumps(name)}: {json.dumps(value)}" for name, value in whole.items()]
    runs = ",\n  ".join(map(json.dumps, rows))
    return "{" + ",\n ".join(lines) + ',\n "runs": [\n  ' + runs + "]}\n"


if __name__ == "__main__":
    main()
