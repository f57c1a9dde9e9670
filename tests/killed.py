"""Write a run in processes that are killed one step later each: `python -m tests.killed FOLDER`.

A step is a file event that Python's audit hooks report: open, rename, remove or mkdir. The last process finishes.

A process dies before it does its step. Hooks do not report writes to an open file. So a process that is killed when it
reopens a file to sync it leaves half of the file.

Power failures are not simulated.
"""

import os
import signal
import sys
from itertools import count
from pathlib import Path
from typing import Any, Final

from kfbench.measure.schema import table
from kfbench.store import RunWriter, create_run
from tests.store.written import FACTS, row

STEPS: Final = ("open", "os.mkdir", "os.rename", "os.remove")


def write(writer: RunWriter) -> None:
    """Write the missing rows of the run and mark the run as complete."""
    there = set(writer.found["size_bytes"].to_pylist())
    writer.note({"hosts": ["host-1"]})
    for sizes in ((1, 2), (3,)):
        writer.add(table(row(level=size, codec="zstd", size_bytes=size) for size in sizes if size not in there))
    writer.complete({"counts": {}})


def _killed_at(step: int, out: Path) -> None:
    left = step

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal left
        if event in STEPS and str(arguments[0]).startswith(str(out)):
            left -= 1
            if left < 0:
                path = Path(arguments[0])
                if event == "open" and path.suffix == ".tmp" and path.exists():
                    os.truncate(path, path.stat().st_size // 2)
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(hook)
    write(create_run(out, FACTS))


def main(folder: Path) -> None:
    """Kill one process per step, until one finishes.

    Raise RuntimeError if a process ends neither finished nor killed.
    """
    for step in count():
        if not (pid := os.fork()):
            _killed_at(step, folder / f"{step:03d}")
            os._exit(0)
        status = os.waitpid(pid, 0)[1]
        if status == 0:
            return
        if not (os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL):
            raise RuntimeError(f"step {step}: a status of {status}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
