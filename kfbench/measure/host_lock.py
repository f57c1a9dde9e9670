"""The host lock: only one process at a time may measure CPU time on a host.

It covers all sweeps, sessions and Spark executors on the host. A sweep waits for the lock, shows which process has it,
and gives up after 30 minutes.
"""

import fcntl
import math
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from kfbench.errors import KfbenchError

# Not in TMPDIR, if it can be avoided: executors of one host may have different values of TMPDIR.
_FOLDER = Path("/tmp")
if not os.access(_FOLDER, os.W_OK):
    with suppress(FileNotFoundError):
        _FOLDER = Path(tempfile.gettempdir())
LOCK: Final = _FOLDER / "kfbench-measuring.lock"
WAIT_S: Final = 1_800.0  # a process normally holds the lock for seconds; after half an hour it hangs
_LOCKS: Final = Path("/proc/locks")  # only Linux shows who holds a lock
_POLL_S: Final = 0.02


class HostLockUnusable(KfbenchError):
    """The host lock cannot be opened or locked, so CPU times of this host cannot be trusted."""


class HostLockHeld(KfbenchError):
    """Another process held the host lock during the whole wait."""


@contextmanager
def host_lock(patience_s: float = math.inf) -> Iterator[None]:
    """Hold the host lock inside the `with` block. The kernel frees the lock if the process dies.

    Raises HostLockUnusable if the lock cannot be opened, HostLockHeld after waiting for `patience_s` seconds.
    """
    try:
        lock = _open()
    except OSError as error:
        raise _unusable(error) from error
    try:
        _take(lock, patience_s)
        yield
    finally:
        os.close(lock)


def _unusable(error: OSError) -> HostLockUnusable:
    return HostLockUnusable(f"{LOCK}: nothing can be timed without it: {error.strerror}")


def _take(lock: int, patience_s: float) -> None:
    # Poll: a signal would end a blocking wait, but signals belong to the time limit of a cell.
    until = time.monotonic() + patience_s
    while True:
        try:
            return fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= until:
                raise HostLockHeld(f"{_holder(lock)} measures on this host") from None
        except OSError as error:
            raise _unusable(error) from error
        time.sleep(_POLL_S)


def _holder(lock: int) -> str:
    """Return a description of the process that has the lock.

    It is read from /proc/locks. The lock file cannot contain it, because another user's process may not write to the
    file.
    """
    inode = f":{os.fstat(lock).st_ino}"
    try:
        lines = _LOCKS.read_text().splitlines()
    except OSError:
        lines = []
    # A line: `1: FLOCK ADVISORY WRITE pid major:minor:inode start end`. A waiter's line has an arrow. The pid of a
    # process in another container is 0.
    locks = (line.split() for line in lines)
    pid = next((words[4] for words in locks if words[1] == "FLOCK" and words[5].endswith(inode)), "0")
    return f"process {pid}" if pid != "0" else "another process"


def _open() -> int:
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW
    try:  # another user may own the file: Linux then refuses O_CREAT, but lets a reader lock it
        lock = os.open(LOCK, flags)
    except FileNotFoundError:
        lock = os.open(LOCK, flags | os.O_CREAT, 0o644)
    if os.fstat(lock).st_uid == os.geteuid():
        os.fchmod(lock, 0o644)  # the umask may have made it private
    return lock


def waiting_line(holder: object, wait_s: float) -> str:
    """Return the line that shows the user which process has the lock, and the longest wait."""
    return f"{holder}: waiting for a turn, {wait_s / 60:g} minutes at most"


class HostLockWait:
    """Count how long one sweep has waited for the host lock, and end the sweep after WAIT_S seconds.

    Args:
        say: shows a line to the user.
        run: the folder of the run. Error messages tell the user to resume it.
    """

    def __init__(self, say: Callable[[str], None], run: Path) -> None:
        self._say = say
        self._run = run
        self._since_s: float | None = None  # None: not waiting

    def note(self, refused: HostLockHeld | HostLockUnusable | None, *, has_measured: bool, waited_s: float) -> None:
        """Handle the result of one task. If the task did not get the lock, show the user which process has it.

        Args:
            refused: the lock's error that ended the task early; None if the task ended normally.
            has_measured: True if the task finished at least one measurement.
            waited_s: the number of seconds that the task waited for the lock.

        Raises HostLockUnusable if the lock cannot be used, HostLockHeld after waiting for WAIT_S seconds.
        """
        if refused is None or has_measured:
            self._since_s = None
        if refused is None:
            return
        if isinstance(refused, HostLockUnusable):
            raise HostLockUnusable(f"{refused}; --resume {self._run} continues the run")
        now_s = time.monotonic()
        if self._since_s is None:
            self._since_s = now_s - waited_s
            self._say(waiting_line(refused, WAIT_S))
        if now_s - self._since_s >= WAIT_S:
            raise HostLockHeld(
                f"{refused}, and gave no turn in {WAIT_S / 60:g} minutes; --resume {self._run} continues the run"
            )
