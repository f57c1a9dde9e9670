"""A time limit on what may never come back: first an exception, then the end of the process."""

import faulthandler
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

AGAIN_S: Final = 1.0  # an exception that falls into a finalizer is lost: then the next one
ENDS_AFTER: Final = 2  # limits


class TookTooLong(BaseException):
    """Not an Exception: what is limited may have handlers for those, and go on."""


@contextmanager
def time_limit(limit_s: float) -> Iterator[None]:
    """Raises TookTooLong in its body after limit_s; ends the process after twice that.

    Compiled code hears no signal and holds the interpreter's lock, so that no Python thread could end the process:
    faulthandler's watchdog needs neither. Only where the main thread calls; another has no limit, for Python has no
    signals there.
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
            signal.setitimer(signal.ITIMER_REAL, 0)  # the one above may have been cut short by its own signal
            faulthandler.cancel_dump_traceback_later()
            signal.signal(signal.SIGALRM, before)
