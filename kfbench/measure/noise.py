"""Noise: measure disturbances of a run's CPU times, and check them against limits.

`host_counters` and `counted_since` measure the CPU time of other processes while calls are timed. `yardstick_ns`
measures the host's speed just before. `checks` compares these values and the samples with limits. A run that misses a
limit is noisy. The terms arm, round, base and A/A arm are explained in `kfbench.measure.cpu`.
"""

import hashlib
import time
from dataclasses import asdict, dataclass
from typing import Any, Final, NamedTuple

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from kfbench.measure.cpu import READINGS, paired_ratio
from kfbench.measure.schema import SELF, StoredRow, stored_rows
from kfbench.text import percent

TIMED_KINDS: Final = ("cpu", *READINGS, "prefix", "broker", "dictionary-cpu", "dictionary-broker", "rivals-cpu")
_BASE_ARMS: Final = ("measure", "each")  # the arms that an A/A arm is a second timing of
YARDSTICK_PASSES: Final = 5
_YARDSTICK: Final = bytes(1 << 16)
LEAST_INTERVALS: Final = 20  # with fewer intervals, the share that contains 1.0 says nothing
HOLD: Final = 0.92  # least share of nominal 95 % intervals that should contain 1.0; the limit allows for chance
CHANCE: Final = 0.05
WAITED: Final = 1.1  # a sample with this ratio of wall time to CPU time has waited for something
_WATCHED: Final = ("watched_ns", "others_cpu_ns", "stolen_ns", "yardstick_ns")


@dataclass(frozen=True, kw_only=True)
class HostCounters:
    """Counters of the host, all read at the same moment. Differences of two readings are durations.

    Args:
        wall_ns: the wall clock.
        own_cpu_ns: the CPU time of this process.
        host_cpu_ns: the CPU time of all processes on all cores; its resolution is 10 ms.
        stolen_ns: the time that the hypervisor gave to other virtual machines; None if the system does not report it.
    """

    wall_ns: int
    own_cpu_ns: int
    host_cpu_ns: int
    stolen_ns: int | None


def host_counters() -> HostCounters:
    times = psutil.cpu_times()
    busy_s = sum(getattr(times, name, 0.0) for name in ("user", "nice", "system", "irq", "softirq"))
    stolen_s = getattr(times, "steal", None)
    return HostCounters(
        wall_ns=time.perf_counter_ns(),
        own_cpu_ns=time.process_time_ns(),
        host_cpu_ns=round(busy_s * 1e9),
        stolen_ns=None if stolen_s is None else round(stolen_s * 1e9),
    )


def counted_since(before: HostCounters) -> dict[str, int | None]:
    """Return the increase of the counters since `before`, as columns of the result table.

    The columns are watched_ns, others_cpu_ns and stolen_ns. others_cpu_ns may be negative by one tick (10 ms).
    """
    now = host_counters()
    own_ns = now.own_cpu_ns - before.own_cpu_ns
    stolen = None if now.stolen_ns is None or before.stolen_ns is None else now.stolen_ns - before.stolen_ns
    return {
        "watched_ns": now.wall_ns - before.wall_ns,
        "others_cpu_ns": now.host_cpu_ns - before.host_cpu_ns - own_ns,
        "stolen_ns": stolen,
    }


def yardstick_ns() -> int:
    """Hash the same 64 KiB YARDSTICK_PASSES times. Return the wall time of the fastest pass in ns.

    The time rises when the clock frequency falls.
    """
    best = 1 << 62
    for _ in range(YARDSTICK_PASSES):
        start = time.perf_counter_ns()
        hashlib.blake2b(_YARDSTICK)
        best = min(best, time.perf_counter_ns() - start)
    return best


@dataclass(frozen=True, kw_only=True)
class Check:
    """A comparison of one measured value of a run with its limit.

    Args:
        name: the name of the check.
        seen: the measured value.
        limit: the largest value that passes; with `at_least`, the smallest value that passes.
        words: the measured value as a sentence.
        at_least: the value must not be below the limit.
        goal: a stricter value to reach, if the limit leaves room for chance. Missing only the goal does not make a run
            noisy.
    """

    name: str
    seen: float
    limit: float
    words: str
    at_least: bool = False
    goal: float | None = None

    @property
    def passed(self) -> bool:
        return self._is_within(self.limit)

    @property
    def met(self) -> bool | None:
        return None if self.goal is None else self._is_within(self.goal)

    def _is_within(self, limit: float) -> bool:
        return self.seen >= limit if self.at_least else self.seen <= limit


def noise_facts(rows: pa.Table) -> dict[str, Any]:
    """Return the section `noise` of a run's manifest.

    It has three keys. noisy: True if a check failed. seen: the failed checks as sentences. hosts: all checks per host.
    """
    names = sorted(rows["host"].drop_null().unique().to_pylist())
    by_host = {host: made for host in names if (made := checks(rows.filter(pc.equal(rows["host"], host))))}
    seen = [
        check.words if len(by_host) == 1 else f"{host}: {check.words}"
        for host, made in by_host.items()
        for check in made
        if not check.passed
    ]
    hosts = {
        host: [asdict(check) | {"passed": check.passed, "met": check.met} for check in made]
        for host, made in by_host.items()
    }
    return {"noisy": bool(seen), "seen": seen, "hosts": hosts}


def checks(rows: pa.Table) -> list[Check]:
    """Return the noise checks of one host. Only rows that were timed without an error count.

    The list is empty if there are no timed rows.
    """
    timed = rows.filter(pc.and_(pc.is_in(rows["kind"], pa.array(TIMED_KINDS)), pc.equal(rows["status"], "ok")))
    timed = timed.filter(pc.is_valid(timed["cpu_ns"]))
    if not len(timed):
        return []
    return [*_checks_of_base(timed), *_checks_of_host(timed), *_checks_of_samples(timed)]


def _checks_of_base(timed: pa.Table) -> list[Check]:
    """Check the ratios of each base to its second timing (A/A). They should be 1.

    The list is empty if fewer than LEAST_INTERVALS bases were timed twice.
    """
    ratios = np.array([paired_ratio(pair.second_ns, pair.first_ns) for pair in base_pairs(timed)]).reshape(-1, 3)
    if len(ratios) < LEAST_INTERVALS:
        return []
    low, high = ratios[:, 1], ratios[:, 2]
    held = float(np.mean((low <= 1) & (high >= 1)))
    least = least_that_hold(len(ratios)) / len(ratios)
    half_width = float(np.median(high - low)) / 2
    return [
        Check(
            name="A/A intervals that hold 1.0",
            seen=held,
            limit=least,
            at_least=True,
            goal=HOLD,
            words=f"{percent(held)} of {len(ratios):,} nominal 95 % intervals of a base against itself hold 1.0",
        ),
        Check(
            name="A/A half-width",
            seen=half_width,
            limit=0.02,
            words=f"the median interval of a base against itself is 1 ± {percent(half_width, 2)}",
        ),
    ]


def least_that_hold(intervals: int) -> int:
    """Return how many of these confidence intervals must contain 1.0, at least.

    They are intervals of the ratio of a base to its second timing (A/A). Suppose that each contains 1.0 with
    probability HOLD. Then the probability that fewer intervals than the result contain 1.0 is below CHANCE (one-sided
    binomial test).
    """
    from scipy.special import bdtr  # 0.1 s, which a worker does not need

    return int(np.searchsorted(bdtr(np.arange(intervals + 1), intervals, HOLD), CHANCE))


class BasePair(NamedTuple):
    """The CPU times of a base (such as v2), which was timed twice in each round.

    first_ns: int64[rounds], the first timing. second_ns: int64[rounds], the second timing (the A/A arm).
    """

    second_ns: NDArray[np.int64]
    first_ns: NDArray[np.int64]


def base_pairs(timed: pa.Table) -> list[BasePair]:
    """Return the times of each base and of its second timing (the A/A arm).

    A measurement that several blocks of the sweep contain counts once.
    """
    arms: dict[str, dict[tuple[object, ...], StoredRow]] = {"aa": {}, "measure": {}}
    for row in stored_rows(timed.select([*SELF, "arm", "cpu_ns"])):
        of_arm = arms["measure" if row.arm in _BASE_ARMS else "aa"] if row.arm in (*_BASE_ARMS, "aa") else None
        if of_arm is not None:
            of_arm.setdefault(tuple(getattr(row, name) for name in SELF), row)
    return [
        BasePair(np.array(again.cpu_ns, np.int64), np.array(arms["measure"][key].cpu_ns, np.int64))
        for key, again in arms["aa"].items()
        if key in arms["measure"]
    ]


def _checks_of_host(timed: pa.Table) -> list[Check]:
    """Check the CPU time of other processes, the time taken by the hypervisor, and changes of the host's speed.

    Rows of other tools may lack these columns. The list is empty if all rows lack them.
    """
    watched = timed.filter(pc.is_valid(timed["watched_ns"]))
    rows = watched.select(["cell_id", *_WATCHED]).to_pylist()
    cells = list({tuple(row.values()): row for row in rows}.values())  # all rows of a measurement have the same values
    if not cells:
        return []
    total_ns = sum(cell["watched_ns"] for cell in cells)
    others = sum(cell["others_cpu_ns"] for cell in cells) / total_ns
    made = [
        Check(
            name="cores that others used",
            seen=others,
            limit=0.2,
            words=f"other processes used {others:.2f} cores on average while cells were timed",
        )
    ]
    if all(cell["stolen_ns"] is not None for cell in cells):
        stolen = sum(cell["stolen_ns"] for cell in cells) / total_ns
        made.append(
            Check(
                name="cores that the hypervisor took",
                seen=stolen,
                limit=0.01,
                words=f"the hypervisor gave {stolen:.3f} cores to others on average",
            )
        )
    slow, fast = np.percentile([cell["yardstick_ns"] for cell in cells], [95, 5])
    swing = float(slow / fast) - 1
    made.append(
        Check(
            name="swing of the host's speed",
            seen=swing,
            limit=0.1,
            words=f"one and the same work took {percent(swing)} longer at the slowest twentieth of cells "
            "than the fastest",
        )
    )
    return made


def _checks_of_samples(timed: pa.Table) -> list[Check]:
    """Check how many samples waited for something, and whether the first round was slower than the others."""
    cpu_ns, wall_ns = (timed[name].combine_chunks() for name in ("cpu_ns", "wall_ns"))
    cpu, wall = (column.flatten().to_numpy().astype(np.float64) for column in (cpu_ns, wall_ns))
    waited = float(np.mean(wall > WAITED * cpu))
    firsts = cpu[np.concatenate([[0], np.cumsum(pc.list_value_length(cpu_ns).to_numpy())[:-1]])]
    rest = np.array([np.median(samples[1:] or samples) for samples in cpu_ns.to_pylist()])
    first = float(np.median(firsts / np.maximum(rest, 1))) - 1
    return [
        Check(
            name="samples that waited",
            seen=waited,
            limit=0.05,
            words=f"{percent(waited)} of the samples took {WAITED:.1f} times their CPU time or longer by the clock",
        ),
        Check(
            name="first rounds above the rest",
            seen=first,
            limit=0.02,
            words=f"the first round of the median arm took {percent(first)} longer than its others",
        ),
    ]
