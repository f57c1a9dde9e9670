"""Call functions in a child process, because a library may end its process (an abort, a segmentation fault).

A worker keeps one child. A child that ends is replaced at the next call.
"""

import os
import pickle
import signal
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from typing import Any, Final, ParamSpec, TypeVar

from kfbench.errors import KfbenchError

P = ParamSpec("P")
R = TypeVar("R")


class LibraryEnded(KfbenchError):
    """The child process ended during a call, by a library's fault."""


class ChildKilled(OSError):
    """Something else ended the child process during a call, such as a lack of memory. It may be measured again."""


_FROM_OUTSIDE: Final = {signal.SIGKILL, signal.SIGTERM}


@dataclass(frozen=True, kw_only=True)
class _Child:
    """parent: the process that started it. A fork of this process has no use of the child."""

    process: SpawnProcess
    connection: Connection
    parent: int


_KEPT: Final[list[_Child]] = []  # none or one


def call_in_child(function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """Return what the function returns in the child process. Function, arguments and result are pickled.

    Raises LibraryEnded or ChildKilled if the process ends, and the function's own errors. Any exception here, such as a
    time limit, also ends the child.
    """
    child = _kept_child()
    try:
        child.connection.send((function, args, kwargs))
        is_ok, result = child.connection.recv()
    except (EOFError, BrokenPipeError, ConnectionResetError):
        raise _ending(child) from None
    except BaseException:
        _end(child)
        raise
    if not is_ok:
        raise result
    return result  # type: ignore[no-any-return]


def _kept_child() -> _Child:
    if _KEPT and (_KEPT[0].parent != os.getpid() or not _KEPT[0].process.is_alive()):
        _KEPT.clear()
    if not _KEPT:
        spawn = get_context("spawn")  # a fork would copy the threads' locks of libraries
        here, there = spawn.Pipe()
        process = spawn.Process(target=_serve, args=(there,), daemon=True)
        process.start()
        there.close()
        _KEPT.append(_Child(process=process, connection=here, parent=os.getpid()))
    return _KEPT[0]


def _ending(child: _Child) -> LibraryEnded | ChildKilled:
    _KEPT.clear()
    child.process.join()
    code = child.process.exitcode or 0
    if -code in _FROM_OUTSIDE:
        return ChildKilled(f"signal {-code} ended the process that measures")
    return LibraryEnded(f"the library ended its process: {f'signal {-code}' if code < 0 else f'exit status {code}'}")


def _end(child: _Child) -> None:
    _KEPT.clear()
    child.process.kill()
    child.process.join()


def _serve(connection: Connection) -> None:
    """Answer calls until the parent ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's, which ends this process
    while True:
        try:
            function, args, kwargs = connection.recv()
        except EOFError:
            return
        try:
            answer: tuple[bool, Any] = True, function(*args, **kwargs)
        except Exception as error:
            answer = False, _sendable(error)
        connection.send(answer)


def _sendable(error: Exception) -> Exception:
    """Return the error, or a RuntimeError with its text if it cannot be pickled."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error
