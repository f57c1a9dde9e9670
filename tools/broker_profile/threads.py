"""The CPU time of each thread of a process, from /proc."""

import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

PROC: Final = Path("/proc")


class Thread(NamedTuple):
    name: str
    cpu_ns: int


class Snapshot(NamedTuple):
    """The CPU time of a process's threads and of the machine at one moment.

    time_ns: since 1970. threads: by thread id. idle_ticks, all_ticks: of all processors since the start of the machine.
    """

    time_ns: int
    threads: Mapping[int, Thread]
    idle_ticks: int
    all_ticks: int


def snapshot(process: int) -> Snapshot:
    """Read the CPU time that each thread has used since its start, in the kernel and outside."""
    found = {}
    for task in (PROC / str(process) / "task").iterdir():
        with suppress(FileNotFoundError, ProcessLookupError):  # the thread has just ended
            cpu_ns = int((task / "schedstat").read_text().split()[0])
            found[int(task.name)] = Thread((task / "comm").read_text().rstrip("\n"), cpu_ns)
    ticks = [int(each) for each in (PROC / "stat").read_text().split("\n", 1)[0].split()[1:9]]
    return Snapshot(time.time_ns(), found, ticks[3] + ticks[4], sum(ticks))


def used(begin: Snapshot, end: Snapshot) -> dict[int, Thread]:
    """Return the CPU time of each thread between two snapshots. Threads that ended in between are left out."""
    started = {number: thread.cpu_ns for number, thread in begin.threads.items()}
    return {
        number: Thread(thread.name, thread.cpu_ns - started.get(number, 0)) for number, thread in end.threads.items()
    }


def busy_share(begin: Snapshot, end: Snapshot) -> float:
    """Return the busy share of all processors of the machine between two snapshots."""
    return 1 - (end.idle_ticks - begin.idle_ticks) / (end.all_ticks - begin.all_ticks)
