"""The state of the host while calls are timed: CPU time of other processes, stolen time, and the host's speed."""

import hashlib
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

import psutil

from kfbench.measure.columns import Row

YARDSTICK_PASSES: Final = 5
_YARDSTICK: Final = bytes(1 << 16)


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


def watched(measure: Callable[[], Iterable[Row]]) -> list[Row]:
    """Return the rows of a measurement, each with the state of the host before and during it."""
    yardstick, before = yardstick_ns(), host_counters()
    rows = list(measure())
    state = {"yardstick_ns": yardstick} | counted_since(before)
    return [state | row for row in rows]
