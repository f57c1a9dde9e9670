"""The state of the host while calls are timed: CPU time of other processes, stolen time, and the host's speed."""

import hashlib
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Final

import psutil

from kfbench.measure.columns import Row

YARDSTICK_PASSES: Final = 5
_YARDSTICK: Final = bytes(1 << 16)


def host_counters() -> dict[str, int | None]:
    """Return counters of the host, all read at the same moment. Differences of two readings are durations.

    - watched_ns: the wall clock.
    - others_cpu_ns: the CPU time of all other processes on all cores; its resolution is 10 ms.
    - stolen_ns: the time that the hypervisor gave to other virtual machines; None if the system does not report it.
    """
    times = psutil.cpu_times()
    busy_s = sum(getattr(times, name, 0.0) for name in ("user", "nice", "system", "irq", "softirq"))
    stolen_s = getattr(times, "steal", None)
    return {
        "watched_ns": time.perf_counter_ns(),
        "others_cpu_ns": round(busy_s * 1e9) - time.process_time_ns(),
        "stolen_ns": None if stolen_s is None else round(stolen_s * 1e9),
    }


def counted_since(before: Mapping[str, int | None]) -> dict[str, int | None]:
    """Return the increase of the counters since `before`, as columns of the result table.

    others_cpu_ns may be negative by one tick (10 ms).
    """
    pairs = {name: (before[name], now) for name, now in host_counters().items()}
    return {name: None if then is None or now is None else now - then for name, (then, now) in pairs.items()}


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


def watch_host(measure: Callable[[], Iterable[Row]]) -> list[Row]:
    """Return the rows of a measurement, each with the state of the host before and during it."""
    yardstick, before = yardstick_ns(), host_counters()
    rows = list(measure())
    state = {"yardstick_ns": yardstick} | counted_since(before)
    return [state | row for row in rows]
