"""What a host did beside a measurement, and whether the CPU times of a run can be trusted.

`glance` and `since` say what others took of the host while a cell was timed, `yardstick_ns` how fast it was just
before. `checks` holds them, and what the samples themselves show, against limits; a run that misses one is noisy.
"""

import hashlib
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from kfbench.measure.cpu import READINGS, paired_ratio
from kfbench.measure.schema import SELF

TIMED_KINDS: Final = ("cpu", *READINGS, "prefix", "broker")
YARDSTICK_PASSES: Final = 5
_YARDSTICK: Final = bytes(1 << 16)
LEAST_INTERVALS: Final = 20  # of fewer, a share says nothing
HOLD: Final = 0.92  # of nominal 95 % intervals, at least; how many do is chance, and the limit allows for it
CHANCE: Final = 0.05
WAITED: Final = 1.1  # a sample whose wall time is so many times its CPU time has waited for something
_WATCHED: Final = ("watched_ns", "others_cpu_ns", "stolen_ns", "yardstick_ns")


@dataclass(frozen=True, kw_only=True)
class Glance:
    """Counters of the host at one moment. None: the system does not say."""

    wall_ns: int
    own_cpu_ns: int
    host_cpu_ns: int
    stolen_ns: int | None


def glance() -> Glance:
    """host_cpu_ns counts in ticks of 10 ms, on all cores together."""
    times = psutil.cpu_times()
    busy_s = sum(getattr(times, name, 0.0) for name in ("user", "nice", "system", "irq", "softirq"))
    stolen_s = getattr(times, "steal", None)
    return Glance(
        wall_ns=time.perf_counter_ns(),
        own_cpu_ns=time.process_time_ns(),
        host_cpu_ns=round(busy_s * 1e9),
        stolen_ns=None if stolen_s is None else round(stolen_s * 1e9),
    )


def since(before: Glance) -> dict[str, int | None]:
    """The columns of the result table: others_cpu_ns may be a tick below zero, so that sums of it come out right."""
    now = glance()
    own_ns = now.own_cpu_ns - before.own_cpu_ns
    stolen = None if now.stolen_ns is None or before.stolen_ns is None else now.stolen_ns - before.stolen_ns
    return {
        "watched_ns": now.wall_ns - before.wall_ns,
        "others_cpu_ns": now.host_cpu_ns - before.host_cpu_ns - own_ns,
        "stolen_ns": stolen,
    }


def yardstick_ns() -> int:
    """The fastest of some passes over one piece of work, always the same: it rises when the clock falls."""
    best = 1 << 62
    for _ in range(YARDSTICK_PASSES):
        start = time.perf_counter_ns()
        hashlib.blake2b(_YARDSTICK)
        best = min(best, time.perf_counter_ns() - start)
    return best


@dataclass(frozen=True, kw_only=True)
class Check:
    """One thing that was looked at. limit: the most that is well, or the least where at_least; words: what was seen.

    goal: what it should be, where the limit leaves room for chance. A run that misses the goal alone is not noisy."""

    name: str
    seen: float
    limit: float
    words: str
    at_least: bool = False
    goal: float | None = None

    @property
    def passed(self) -> bool:
        return self._is_well(self.limit)

    @property
    def met(self) -> bool | None:
        return None if self.goal is None else self._is_well(self.goal)

    def _is_well(self, limit: float) -> bool:
        return self.seen >= limit if self.at_least else self.seen <= limit


def noise_facts(rows: pa.Table) -> dict[str, Any]:
    """For the manifest: whether the run is noisy, what was seen that makes it so, and all checks, host by host."""
    names = sorted(rows["host"].drop_null().unique().to_pylist())
    each = {host: found for host in names if (found := checks(rows.filter(pc.equal(rows["host"], host))))}
    seen = [
        check.words if len(each) == 1 else f"{host}: {check.words}"
        for host, found in each.items()
        for check in found
        if not check.passed
    ]
    hosts = {
        host: [asdict(check) | {"passed": check.passed, "met": check.met} for check in found]
        for host, found in each.items()
    }
    return {"noisy": bool(seen), "seen": seen, "hosts": hosts}


def checks(rows: pa.Table) -> list[Check]:
    """What the timed rows of one host say of their own noise; nothing where there are none."""
    timed = rows.filter(pc.and_(pc.is_in(rows["kind"], pa.array(TIMED_KINDS)), pc.equal(rows["status"], "ok")))
    timed = timed.filter(pc.is_valid(timed["cpu_ns"]))
    if not len(timed):
        return []
    return [*_of_base(timed), *_of_host(timed), *_of_samples(timed)]


def _of_base(timed: pa.Table) -> list[Check]:
    """The base against itself."""
    ratios = np.array([paired_ratio(*pair) for pair in base_pairs(timed)]).reshape(-1, 3)
    if len(ratios) < LEAST_INTERVALS:
        return []
    low, high = ratios[:, 1], ratios[:, 2]
    held = float(np.mean((low <= 1) & (high >= 1)))
    least = least_that_hold(len(ratios)) / len(ratios)
    width = float(np.median(high - low)) / 2
    return [
        Check(
            name="A/A intervals that hold 1.0",
            seen=held,
            limit=least,
            at_least=True,
            goal=HOLD,
            words=f"{held:.1%} of {len(ratios):,} nominal 95 % intervals of a base against itself hold 1.0",
        ),
        Check(
            name="A/A half-width",
            seen=width,
            limit=0.02,
            words=f"the median interval of a base against itself is 1 ± {width:.2%}",
        ),
    ]


def least_that_hold(intervals: int) -> int:
    """The fewest that may hold 1.0: where each does with a chance of HOLD, fewer come in less than CHANCE of all runs
    (binomial test, one-sided)."""
    from scipy.special import bdtr  # 0.1 s, which a worker has no use for

    return int(np.searchsorted(bdtr(np.arange(intervals + 1), intervals, HOLD), CHANCE))


def base_pairs(timed: pa.Table) -> list[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """(the second time, the first time) of each A/A arm, round by round; cells of several blocks once."""
    named = timed.select([*SELF, "arm"]).to_pylist()
    keys = [tuple(row[name] for name in SELF) for row in named]
    arms: dict[str, dict[tuple[Any, ...], int]] = {"aa": {}, "measure": {}}
    for i, (key, row) in enumerate(zip(keys, named, strict=True)):
        arms[row["arm"]].setdefault(key, i)
    samples = timed["cpu_ns"]
    return [
        (_ints(samples[i].as_py()), _ints(samples[arms["measure"][key]].as_py()))
        for key, i in arms["aa"].items()
        if key in arms["measure"]
    ]


def _ints(values: Sequence[int]) -> NDArray[np.int64]:
    return np.array(values, np.int64)


def _of_host(timed: pa.Table) -> list[Check]:
    """What others did, cell by cell, and how steady the host's speed was. Runs from before these columns: nothing."""
    watched = timed.filter(pc.is_valid(timed["watched_ns"]))
    rows = watched.select(["cell_id", *_WATCHED]).to_pylist()
    cells = list({tuple(row.values()): row for row in rows}.values())  # all rows of a measurement say the same
    if not cells:
        return []
    total_ns = sum(cell["watched_ns"] for cell in cells)
    others = sum(cell["others_cpu_ns"] for cell in cells) / total_ns
    found = [
        Check(
            name="cores that others used",
            seen=others,
            limit=0.2,
            words=f"other processes used {others:.2f} cores on average while cells were timed",
        )
    ]
    if all(cell["stolen_ns"] is not None for cell in cells):
        stolen = sum(cell["stolen_ns"] for cell in cells) / total_ns
        found.append(
            Check(
                name="cores that the hypervisor took",
                seen=stolen,
                limit=0.01,
                words=f"the hypervisor gave {stolen:.3f} cores to others on average",
            )
        )
    slow, fast = np.percentile([cell["yardstick_ns"] for cell in cells], [95, 5])
    swing = float(slow / fast) - 1
    found.append(
        Check(
            name="swing of the host's speed",
            seen=swing,
            limit=0.1,
            words=f"one and the same work took {swing:.1%} longer at the slowest twentieth of cells than the fastest",
        )
    )
    return found


def _of_samples(timed: pa.Table) -> list[Check]:
    """Samples that waited, and first rounds that were still warming up."""
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
            words=f"{waited:.1%} of the samples took {WAITED:.1f} times their CPU time or longer by the clock",
        ),
        Check(
            name="first rounds above the rest",
            seen=first,
            limit=0.02,
            words=f"the first round of the median arm took {first:.1%} longer than its others",
        ),
    ]
