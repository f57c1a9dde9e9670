"""Show the noise checks of a run's manifest (`kfbench.measure.noise`) as sentences and as a table.

Manifests of older runs have no noise checks.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from kfbench.report.data.words import percent, upper_first
from kfbench.tables import Table, plain_columns

Facts = Mapping[str, Any]
SHARES: Final = (
    "intervals",
    "half-width",
    "spread",
    "swing",
    "waited",
    "first rounds",
)  # checks with a percentage; the others are numbers of cores


def state(facts: Facts | None) -> str:
    """Return "Quiet run" or "Noisy run"; "Noise not checked" for a run without noise checks."""
    if not facts:
        return "Noise not checked"
    return "Noisy run" if facts["noisy"] else "Quiet run"


def state_words(facts: Facts | None) -> str:
    """Return the state of the run with the number of passed checks, such as "Quiet run: 7 of 7 noise checks passed"."""
    passed = _passed(facts)
    return f"{state(facts)}: {sum(passed)} of {len(passed)} noise checks passed" if passed else state(facts)


def _passed(facts: Facts | None) -> list[bool]:
    """Return the verdict of each check, of all hosts."""
    return [check["passed"] for checks in (facts or {}).get("hosts", {}).values() for check in checks]


def noisy_sentence(facts: Facts | None) -> str:
    """Return the warning that is printed above all numbers of a noisy run; empty for other runs."""
    if not facts or not facts["noisy"]:
        return ""
    return f"Noisy: {'. '.join(map(upper_first, facts['seen']))}. Read its CPU times with that in mind."


def checks_sentence(facts: Facts | None) -> str:
    """Return sentences with the number of passed checks, and with the goals that were met or missed."""
    if not facts or not facts["hosts"]:
        return ""
    passed = _passed(facts)
    count = (
        f"All {len(passed)} checks of the host and of the samples were passed."
        if all(passed)
        else f"{len(passed) - sum(passed)} of {len(passed)} checks of the host and of the samples were not passed."
    )
    return " ".join([count, *_goal_sentences(facts)])


def _goal_sentences(facts: Facts) -> Iterator[str]:
    for host, checks in facts["hosts"].items():
        for check in checks:
            if (goal := check.get("goal")) is None:  # older runs have no goals
                continue
            name = check["name"]
            limit = f"{'passes' if check['passed'] else 'fails'} the limit of {_amount(name, check['limit'])}"
            if check["passed"]:
                limit += f", {'and meets' if check['met'] else 'but misses'} the goal of {_amount(name, goal)}"
            where = f" ({host})" if len(facts["hosts"]) > 1 else ""
            yield f"Over all that was timed, {check['words']}{where}. This {limit}."


def checks_table(facts: Facts | None) -> Table | None:
    if not facts or not facts["hosts"]:
        return None
    body = [
        (
            host,
            check["name"],
            _amount(check["name"], check["seen"]),
            f"{'≥' if check['at_least'] else '≤'} {_amount(check['name'], check['limit'])}",
            _verdict(check),
        )
        for host, checks in facts["hosts"].items()
        for check in checks
    ]
    note = (
        "The checks are over the grid and named workloads, in caches and cold, prefixes and a broker's paths. "
        "Others: all processes of the host but the one that measures, with the sweep's own JVM. "
        "Speed: that of the same piece of work before each cell."
    )
    return Table(
        name="checks",
        caption="Checks made while CPU times were taken",
        columns=plain_columns("host", "check", "seen", "limit", "verdict"),
        rows=tuple(body),
        notes=(note,),
    )


def _verdict(check: Facts) -> str:
    verdict = "passed" if check["passed"] else "NO"
    if (goal := check.get("goal")) is None:
        return verdict
    return f"{verdict}; {_amount(check['name'], goal)} {'met' if check['met'] else 'not met'}"


def _amount(name: str, value: float) -> str:
    return percent(value) if any(word in name for word in SHARES) else f"{value:.3f}"
