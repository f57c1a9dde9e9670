"""One measuring task a host at a time: a lock of the host, whichever sweep, session or executor asks for it."""

import fcntl
import math
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from kfbench.errors import KfbenchError

# Not TMPDIR: executors of one host may have different ones.
_SHARED: Final = Path("/tmp")
LOCK: Final = (_SHARED if _SHARED.is_dir() else Path(tempfile.gettempdir())) / "kfbench-measuring.lock"
_LOCKS: Final = Path("/proc/locks")  # Linux alone says who holds a lock
_POLL_S: Final = 0.02


class NotAlone(KfbenchError):
    """The lock cannot be used here: no CPU time of this host can be trusted."""


class SomeoneMeasures(KfbenchError):
    """Another process has measured all the while."""


@contextmanager
def alone(patience_s: float = math.inf) -> Iterator[None]:
    """Begins once nobody else on this host measures. The kernel frees the lock of a process that dies.

    Raises NotAlone where the lock cannot be opened, SomeoneMeasures after patience_s.
    """
    try:
        lock = _opened()
    except OSError as error:
        raise NotAlone(f"{LOCK}: nothing can be timed without it: {error.strerror}") from error
    try:
        _take(lock, patience_s)
        yield
    finally:
        os.close(lock)


def _take(lock: int, patience_s: float) -> None:
    # Nobody is woken when a wait is over: a signal would be, but those are of whoever limits a cell.
    until = time.monotonic() + patience_s
    while True:
        try:
            return fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= until:
                raise SomeoneMeasures(f"{_holder(lock)} measures on this host") from None
        except OSError as error:
            raise NotAlone(f"{LOCK}: nothing can be timed without it: {error.strerror}") from error
        time.sleep(_POLL_S)


def _holder(lock: int) -> str:
    """Who has the lock. Not by what is written in the file: it may be another user's, or of a process that is gone."""
    inode = f":{os.fstat(lock).st_ino}"
    try:
        lines = _LOCKS.read_text().splitlines()
    except OSError:
        lines = []
    # 1: FLOCK ADVISORY WRITE pid major:minor:inode start end; a waiter's line has an arrow, a process of another
    # container is 0.
    held = (line.split() for line in lines)
    found = next((words[4] for words in held if words[1] == "FLOCK" and words[5].endswith(inode)), "0")
    return f"process {found}" if found != "0" else "another process"


def _opened() -> int:
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW
    try:  # it may be another user's: Linux refuses O_CREAT then, and whoever may read it may lock it
        return os.open(LOCK, flags)
    except FileNotFoundError:
        return os.open(LOCK, flags | os.O_CREAT, 0o644)
