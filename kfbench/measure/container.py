"""Read what a container may use: the limits of this process's control groups, in versions 1 and 2 of Linux's cgroups.

A limit holds for a group and all groups inside it, so the smallest counts. Without such groups nothing is limited.
"""

import math
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

import psutil

GROUPS: Final = Path("/proc/self/cgroup")
MOUNTED: Final = Path("/sys/fs/cgroup")


def cores() -> int:
    """Return the number of cores that this process may use: those it may run on, and no more than its share of time."""
    present = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return math.ceil(min(present, core_limit()))


def core_limit() -> float:
    """Return the share of time that the groups may run, in cores; infinity without a limit."""
    limits = [math.inf]
    for folder in _folders("cpu"):
        quota, period = _numbers(folder / "cpu.max") or [
            *_numbers(folder / "cpu.cfs_quota_us"), *_numbers(folder / "cpu.cfs_period_us")
        ] or [math.inf, 1]  # fmt: skip
        if quota > 0 and period > 0:  # without a limit, version 1 has the quota -1
            limits.append(quota / period)
    return min(limits)


def memory_limit_bytes() -> int | None:
    """Return the least limit of the groups that is below the memory of this machine; None without such a limit."""
    limits = [limit for folder in _folders("memory") for limit in _memory_limits(folder)]
    least = min(limits, default=math.inf)
    return int(least) if least < psutil.virtual_memory().total else None


def available_bytes() -> int:
    """Return the memory that this process can take without swapping, on this machine and in its groups."""
    free = [psutil.virtual_memory().available]
    for folder in _folders("memory"):
        used = _numbers(folder / "memory.current") or _numbers(folder / "memory.usage_in_bytes")
        limit = min(_memory_limits(folder), default=math.inf)
        if used and limit < psutil.virtual_memory().total:
            free.append(int(max(0, limit - used[0] + _reclaimable_bytes(folder))))
    return min(free)


def workers(bytes_each: int) -> int:
    """Return how many workers that need so much memory can work at the same time: one or more, one per core at most."""
    return max(1, min(cores(), available_bytes() // bytes_each))


def _memory_limits(folder: Path) -> list[float]:
    return [
        number for name in ("memory.max", "memory.high", "memory.limit_in_bytes") for number in _numbers(folder / name)
    ]


def _reclaimable_bytes(folder: Path) -> float:
    """Return the memory of files that were read once. Linux frees it before a group reaches its limit."""
    with suppress(OSError, ValueError):
        found = dict(line.split() for line in (folder / "memory.stat").read_text().splitlines())
        return float(found.get("total_inactive_file") or found.get("inactive_file") or 0)
    return 0.0


def _numbers(path: Path) -> list[float]:
    """Return the numbers in a file of a group; "max" is infinity. A file that is missing has none."""
    try:
        return [math.inf if word == "max" else float(word) for word in path.read_text().split()]
    except (OSError, ValueError):
        return []


def _folders(controller: str) -> Iterator[Path]:
    """Yield the folder of this process's group, and those of the groups around it.

    In a container the path of the group may be that of the host. Its own group is then where groups are mounted.
    """
    with suppress(OSError):
        for line in GROUPS.read_text().splitlines():
            _, controllers, group = line.split(":", 2)
            if controllers and controller not in controllers.split(","):
                continue
            for mounted in (
                (MOUNTED / controllers, MOUNTED / controller) if controllers else (MOUNTED, MOUNTED / "unified")
            ):
                folder = mounted / os.path.normpath(f"/{group}").lstrip("/")
                yield from (each for each in (folder, *folder.parents) if each.is_relative_to(mounted))
