"""A child process answers calls. If it ends, the call has an error, and the next call gets a new child."""

import os
import signal
import time

import pytest

from kfbench.errors import CorruptLog
from kfbench.measure.child import ChildKilled, LibraryEnded, call_in_child
from kfbench.measure.kinds.base import TookTooLong
from kfbench.sweep.run.task import time_limit


def raise_corrupt() -> None:
    raise CorruptLog(3, "crc", "it differs")


def test_a_call_is_answered_by_one_child() -> None:
    child = call_in_child(os.getpid)
    assert child != os.getpid() and call_in_child(os.getpid) == child
    assert call_in_child(max, [1, 7], default=0) == 7


@pytest.mark.parametrize(
    ("number", "words"), [(signal.SIGABRT, "signal 6"), (signal.SIGSEGV, "signal 11"), (signal.SIGBUS, "signal 7")]
)
def test_a_child_that_a_signal_ends_is_an_error_and_replaced(number: int, words: str) -> None:
    child = call_in_child(os.getpid)
    with pytest.raises(LibraryEnded, match=f"^the library ended its process: {words}$"):
        call_in_child(signal.raise_signal, number)
    assert call_in_child(os.getpid) not in (child, os.getpid())


def test_a_child_that_something_else_kills_is_no_fault_of_a_library() -> None:
    with pytest.raises(ChildKilled, match="signal 9"):
        call_in_child(signal.raise_signal, signal.SIGKILL)


def test_a_child_that_exits_is_an_error() -> None:
    with pytest.raises(LibraryEnded, match="exit status 3"):
        call_in_child(os._exit, 3)


def test_a_child_that_ended_between_calls_is_replaced() -> None:
    os.kill(call_in_child(os.getpid), signal.SIGKILL)
    time.sleep(0.2)
    assert call_in_child(max, 1, 2) == 2


def test_errors_of_the_function_are_raised() -> None:
    with pytest.raises(OSError, match="No such file"):
        call_in_child(os.stat, "/does/not/exist")
    with pytest.raises(CorruptLog, match="it differs"):
        call_in_child(raise_corrupt)


def test_a_time_limit_ends_the_child() -> None:
    child = call_in_child(os.getpid)
    with pytest.raises(TookTooLong), time_limit(0.3):
        call_in_child(time.sleep, 60)
    with pytest.raises(ProcessLookupError):
        os.kill(child, 0)
    assert call_in_child(max, 1, 2) == 2
