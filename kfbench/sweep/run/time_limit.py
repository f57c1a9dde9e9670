"""Limit the time of code that may never return: raise an exception first, then end the process."""

import faulthandler
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from kfbench.measure.kinds.base import TookTooLong

AGAIN_S: Final = 1.0  # the exception is raised again at this interval, because Python drops one in a finalizer
ENDS_AFTER: Final = 2  # the process ends after this multiple of the limit


@contextmanager
def time_limit(limit_s: float) -> Iterator[None]:
    """Raise TookTooLong in the `with` body after `limit_s` seconds. End the process after twice this time.

    The exception is raised by a signal. Compiled code does not let Python handle signals, and it holds the
    interpreter's lock. So no Python thread can end the process then, but faulthandler's watchdog thread can. Python
    handles signals only in the main thread. In other threads, this function sets no limit.
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
