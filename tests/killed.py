"""A run that is written by processes that are killed, each one step later: `python -m tests.killed FOLDER`.

A step is whatever Python's audit hooks see of files: opened, renamed, removed, folders made. The last process lives.

A process dies before its step is done. No hook sees what is written to a file that is open, so one that dies when it
opens what it has written, to settle it, leaves half of it: as if killed in the middle. Of power that fails, and what
the kernel had put on a disk by then, nothing here tells.
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
    """What is missing of the run, to its end."""
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
    """Raises RuntimeError where a process ends in another way than killed or done."""
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
