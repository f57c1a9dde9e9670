"""What a run says of its own noise, as its manifest has it (kfbench.measure.noise). Runs from before have nothing."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from kfbench.report.render.tables import Column, Table

Facts = Mapping[str, Any]
EVERYTHING: Final = "the grid and named workloads, in caches and cold, prefixes and a broker's paths"  # TIMED_KINDS
SHARES: Final = ("intervals", "half-width", "swing", "waited", "first rounds")  # the others are cores


def head(facts: Facts | None) -> str:
    """The sentence that stands above all numbers of a noisy run; nothing for a quiet one."""
    if not facts or not facts["noisy"]:
        return ""
    return f"Noisy: {'; '.join(facts['seen'])}. Read its CPU times with that in mind."


def sentence(facts: Facts | None) -> str:
    """How many checks were passed, and which goals met, for the section on noise."""
    if not facts or not facts["hosts"]:
        return ""
    found = [check["passed"] for checks in facts["hosts"].values() for check in checks]
    if all(found):
        said = f"All {len(found)} checks of the host and of the samples were passed."
    else:
        said = f"{len(found) - sum(found)} of {len(found)} checks of the host and of the samples were not passed."
    return " ".join([said, *_goals(facts)])


def _goals(facts: Facts) -> Iterator[str]:
    for host, checks in facts["hosts"].items():
        for check in checks:
            if (goal := check.get("goal")) is None:  # nor had runs from before
                continue
            name = check["name"]
            limit = _shown(name, check["limit"])
            chance = f"{'within' if check['passed'] else 'beyond'} what chance allows ({limit})"
            verdict = "met" if check["met"] else f"not met, {chance}"
            where = f" ({host})" if len(facts["hosts"]) > 1 else ""
            yield (
                f"Of all that was timed ({EVERYTHING}), {check['words']}{where}; the goal of {_shown(name, goal)} is "
                f"{verdict}."
            )


def table(facts: Facts | None) -> Table | None:
    if not facts or not facts["hosts"]:
        return None
    body = [
        (
            host,
            check["name"],
            _shown(check["name"], check["seen"]),
            f"{'≥' if check['at_least'] else '≤'} {_shown(check['name'], check['limit'])}",
            _verdict(check),
        )
        for host, checks in facts["hosts"].items()
        for check in checks
    ]
    note = (
        f"Over all that was timed: {EVERYTHING}. Others are all processes of the host but the one that measures, the "
        "sweep's own JVM among them. The speed is that of one piece of work, the same before each cell."
    )
    return Table(
        name="checks",
        caption="What was looked at while CPU times were taken",
        columns=tuple(Column(name=name) for name in ("host", "check", "seen", "limit", "verdict")),
        rows=tuple(body),
        notes=(note,),
    )


def _verdict(check: Facts) -> str:
    verdict = "passed" if check["passed"] else "NO"
    if (goal := check.get("goal")) is None:
        return verdict
    return f"{verdict}; {_shown(check['name'], goal)} {'met' if check['met'] else 'not met'}"


def _shown(name: str, value: float) -> str:
    return f"{value:.1%}" if any(word in name for word in SHARES) else f"{value:.3f}"
