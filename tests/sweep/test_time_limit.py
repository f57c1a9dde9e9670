"""The time limit ends code that never returns."""

import signal
import subprocess
import sys
import threading
import time

import pytest

from kfbench.measure.kinds.base import TookTooLong
from kfbench.sweep.run.task import time_limit


def _go_on() -> None:
    while True:
        try:
            time.sleep(30)
        except Exception:
            continue


def test_a_limit_ends_what_catches_every_exception_and_leaves_nothing_behind() -> None:
    before = signal.getsignal(signal.SIGALRM)
    began = time.monotonic()
    with pytest.raises(TookTooLong, match=r"it took longer than 2 s"), time_limit(2):
        _go_on()
    assert time.monotonic() - began < 20
    assert signal.getitimer(signal.ITIMER_REAL) == (0, 0) and signal.getsignal(signal.SIGALRM) is before


def test_what_is_in_time_is_left_alone() -> None:
    with time_limit(1.0):
        found = 1
    time.sleep(2.2)  # neither the timer signal nor the watchdog thread is left
    assert found == 1


def test_another_thread_has_no_limit() -> None:
    found = []

    def run() -> None:
        with time_limit(1e-3):
            time.sleep(0.05)
            found.append(1)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert found == [1]


DEAF = """\
from collections import deque
from itertools import repeat
from kfbench.sweep.run.task import time_limit
with time_limit(0.5):
    deque(repeat(None), maxlen=0)  # for ever, with the interpreter's lock, as a compiled kernel does
"""


def test_what_hears_no_signal_ends_with_its_process() -> None:
    began = time.monotonic()
    done = subprocess.run([sys.executable, "-c", DEAF], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (1, "", "") and time.monotonic() - began < 30
