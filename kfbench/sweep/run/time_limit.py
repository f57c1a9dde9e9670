"""A time limit for code that may never return: first an exception, then the end of the process."""

import faulthandler
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

AGAIN_S: Final = 1.0  # an exception inside a finalizer is lost, so another one follows
ENDS_AFTER: Final = 2  # the process ends after this number of limits


class TookTooLong(BaseException):
    """The limit has passed. It is not an Exception, because the limited code may catch these and go on."""


@contextmanager
def time_limit(limit_s: float) -> Iterator[None]:
    """Raise TookTooLong in the body after limit_s. End the process after twice that time.

    Compiled code handles no signals and holds the interpreter's lock. Then no Python thread can end the process, but
    faulthandler's watchdog can. Python handles signals only in the main thread, so other threads have no limit.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def late(*_: object) -> None:
        raise TookTooLong(f"it took longer than {limit_s:g} s")

    with Path(os.devnull).open("w") as nowhere:
        before = signal.signal(signal.SIGALRM, late)
        faulthandler.dump_traceback_later(ENDS_AFTER * limit_s, exit=True, file=nowhere)
        try:
            try:
                signal.setitimer(signal.ITIMER_REAL, limit_s, AGAIN_S)
                yield
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)  # the timer's own signal may have interrupted the call above
            faulthandler.cancel_dump_traceback_later()
            signal.signal(signal.SIGALRM, before)
