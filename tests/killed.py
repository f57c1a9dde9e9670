"""Write files in processes that are killed one step later each: `python -m tests.killed run|upgrade FOLDER`.

A step is a file event that Python's audit hooks report: open, rename, remove, mkdir, and changes of owner, mode and
times. Each process has its own folder in FOLDER. The last process finishes.

A process dies before it does its step. Hooks do not report writes to an open file. So a process that is killed when it
reopens a file to sync it leaves half of the file.

Power failures are not simulated.
"""

import os
import signal
import sys
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any, Final

import numpy as np

from kfbench import FORMATS, Records
from kfbench.broker.upgrade import upgrade
from kfbench.measure.schema import table
from kfbench.store import RunWriter, create_run
from tests.store.written import FACTS, row

STEPS: Final = ("open", "os.mkdir", "os.rename", "os.remove", "os.chown", "os.chmod", "os.utime")
SEGMENT: Final = "00000000000000000000.log"
BESIDE: Final = (".index", ".timeindex", ".txnindex")


def write(writer: RunWriter) -> None:
    """Write the missing rows of the run and mark the run as complete."""
    there = set(writer.found["size_bytes"].to_pylist())
    writer.note({"hosts": ["host-1"]})
    for sizes in ((1, 2), (3,)):
        writer.add(table(row(level=size, codec="zstd", size_bytes=size) for size in sizes if size not in there))
    writer.complete({"counts": {}})


def old_segment() -> bytes:
    records = Records.from_lists([b"value-%d" % i * 5 for i in range(60)], timestamps_ms=10**12 + np.arange(60))
    kinds = (("v2", "none"), ("v1", "gzip"), ("v1", "none"), ("v0", "none"))
    return b"".join(bytes(FORMATS[name].encode(records, 20, codec, lossy=True)) for name, codec in kinds)


def upgrade_segment(folder: Path) -> None:
    """Upgrade the segment in the folder in several pieces. Write it and its index files first, if it is missing."""
    log = folder / SEGMENT
    if not log.exists():
        folder.mkdir()
        for suffix in BESIDE:
            log.with_suffix(suffix).write_bytes(b"of the old bytes")
        log.write_bytes(old_segment())
    upgrade(log, "v2", chunk_bytes=1500)


WORK: Final[dict[str, Callable[[Path], None]]] = {
    "run": lambda out: write(create_run(out, FACTS)),
    "upgrade": upgrade_segment,
}


def _killed_at(step: int, folder: Path, work: Callable[[Path], None]) -> None:
    left = step

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal left
        if event not in STEPS:
            return
        file = arguments[0]
        path = Path(f"/proc/self/fd/{file}").readlink() if isinstance(file, int) else Path(file)
        if path.is_relative_to(folder):
            left -= 1
            if left < 0:
                if event == "open" and path.suffix == ".tmp" and path.exists():
                    os.truncate(path, path.stat().st_size // 2)
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(hook)
    work(folder)


def main(name: str, folder: Path) -> None:
    """Kill one process per step, until one finishes.

    Raise RuntimeError if a process ends neither finished nor killed.
    """
    for step in count():
        if not (pid := os.fork()):
            _killed_at(step, folder / f"{step:03d}", WORK[name])
            os._exit(0)
        status = os.waitpid(pid, 0)[1]
        if status == 0:
            return
        if not (os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL):
            raise RuntimeError(f"step {step}: a status of {status}")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
