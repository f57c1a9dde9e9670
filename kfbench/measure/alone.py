"""One measuring task a host at a time: a lock of the host, whichever sweep, session or executor asks for it."""

import fcntl
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

# Not TMPDIR: executors of one host may have different ones.
_SHARED: Final = Path("/tmp")
LOCK: Final = (_SHARED if _SHARED.is_dir() else Path(tempfile.gettempdir())) / "kfbench-measuring.lock"


@contextmanager
def alone() -> Iterator[None]:
    """Begins once nobody else on this host measures. The kernel frees the lock of a process that dies.

    Raises OSError where the lock cannot be opened.
    """
    lock = _opened()
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


def _opened() -> int:
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW
    try:  # it may be another user's: Linux refuses O_CREAT then, and whoever may read it may lock it
        return os.open(LOCK, flags)
    except FileNotFoundError:
        return os.open(LOCK, flags | os.O_CREAT, 0o644)
