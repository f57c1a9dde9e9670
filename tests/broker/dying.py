"""Kill `upgrade` of a segment file before and after each of its system calls.

    python -m tests.broker.dying FOLDER

Print one JSON line per killed process: the files that it left, and the files after the next upgrade. Each upgrade that
is killed runs in a forked process.
"""

import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from kfbench import FORMATS, Records
from kfbench.broker.upgrade import SUFFIX, upgrade

CALLS = (*("open", "close", "fstat", "write", "sendfile", "fsync", "fchown", "fchmod", "utime", "unlink", "replace"),)
BESIDE = (".index", ".timeindex", ".txnindex")


def segment(records: int) -> bytes:
    made = Records.from_lists(
        [b"value-%d" % i * 5 for i in range(records)], timestamps_ms=1_700_000_000_000 + np.arange(records)
    )
    encoded = [(name, FORMATS[name].encode(made, 20, codec, lossy=True)) for name, codec in KINDS]
    return b"".join(bytes(log) for _, log in encoded)


KINDS = (("v2", "none"), ("v1", "gzip"), ("v1", "none"), ("v0", "none"))


class Place:
    def __init__(self, folder: Path, old: bytes, chunk_bytes: int) -> None:
        self.log, self.old, self.chunk_bytes = folder / "00000000000000000000.log", old, chunk_bytes
        self.set_up()
        self.upgrade()
        self.new = self.log.read_bytes()
        assert self.new != old

    def set_up(self) -> None:
        self.log.write_bytes(self.old)
        for suffix in BESIDE:
            self.log.with_suffix(suffix).write_bytes(b"of the old bytes")

    def upgrade(self) -> None:
        upgrade(self.log, "v2", chunk_bytes=self.chunk_bytes)

    def found(self) -> dict[str, Any]:
        data = self.log.read_bytes()
        return {
            "segment": "old" if data == self.old else "new" if data == self.new else "neither",
            "beside": [suffix for suffix in BESIDE if self.log.with_suffix(suffix).exists()],
            "leftover": Path(f"{self.log}{SUFFIX}").exists(),
        }

    def die(self, number: int, afterwards: bool) -> dict[str, Any]:
        """Run `upgrade` in a forked process until `kill_at` kills it.

        Return the files that it left, and the files after a second upgrade.
        """
        self.set_up()
        child = os.fork()
        if child == 0:
            kill_at(number, afterwards)
            self.upgrade()
            os._exit(0)
        _, status = os.waitpid(child, 0)
        killed = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
        assert killed or os.waitstatus_to_exitcode(status) == 0, status
        left = self.found()
        self.upgrade()
        return {"killed": killed, "left": left, "then": self.found()}


def kill_at(number: int, afterwards: bool) -> None:
    """Make this process kill itself at the `number`-th system call listed in CALLS.

    afterwards: kill it after the call, or after half of the bytes of a write. Otherwise kill it before the call.
    """
    calls = 0

    def deadly(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*given: Any, **named: Any) -> Any:
            nonlocal calls
            calls += 1
            if calls < number:
                return real(*given, **named)
            if afterwards and name == "write":
                real(given[0], given[1][: len(given[1]) // 2])
            elif afterwards:
                real(*given, **named)
            os.kill(os.getpid(), signal.SIGKILL)
            return None

        return call

    for name in CALLS:
        setattr(os, name, deadly(name, getattr(os, name)))


def main(folder: str) -> None:
    place = Place(Path(folder), segment(60), chunk_bytes=1500)
    killed, number = True, 0
    while killed:
        number += 1
        for afterwards in (False, True):
            outcome = place.die(number, afterwards)
            killed = outcome["killed"]
            sys.stdout.write(json.dumps(outcome) + "\n")


if __name__ == "__main__":
    main(sys.argv[1])
