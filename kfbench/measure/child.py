"""Call functions in a child process, because a library may end its process (an abort, a segmentation fault).

A worker keeps one child, or one per program that runs it, such as valgrind. A child that ends is replaced at the next
call.
"""

import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Final, ParamSpec, TypeVar

from kfbench.errors import KfbenchError

P = ParamSpec("P")
R = TypeVar("R")


class LibraryEnded(KfbenchError):
    """The child process ended during a call, by a library's fault."""


class ChildKilled(OSError):
    """Something else ended the child process during a call, such as a lack of memory. It may be measured again."""


_FROM_OUTSIDE: Final = {signal.SIGKILL, signal.SIGTERM}


@dataclass(frozen=True)
class ChildProgram:
    """A program that runs the child's Python, such as valgrind.

    Args:
        name: the name of the program, for errors.
        command: the words before those that run Python.
        environment: environment variables of the child, beside those of the parent.
    """

    name: str
    command: tuple[str, ...] = ()
    environment: tuple[tuple[str, str], ...] = ()


_PYTHON: Final = ChildProgram("the library")


@dataclass(frozen=True, kw_only=True)
class _Child:
    """parent: the process that started it. A fork of this process has no use of the child."""

    process: subprocess.Popen[bytes]
    connection: Connection
    parent: int


_KEPT: Final[dict[ChildProgram, _Child]] = {}


def call_in_child(function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """Return what the function returns in the child process. Function, arguments and result are pickled.

    Raises LibraryEnded or ChildKilled if the process ends, and the function's own errors. Any exception here, such as a
    time limit, also ends the child.
    """
    return call_under(_PYTHON, function, *args, **kwargs)


def call_under(program: ChildProgram, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """Return what the function returns in a child process that a program runs. See `call_in_child`."""
    child = _kept_child(program)
    try:
        child.connection.send((function, args, kwargs))
        is_ok, result = child.connection.recv()
    except (EOFError, BrokenPipeError, ConnectionResetError):
        raise _ending(program, child) from None
    except BaseException:
        end_child(program)
        raise
    if not is_ok:
        raise result
    return result  # type: ignore[no-any-return]


def _kept_child(program: ChildProgram) -> _Child:
    kept = _KEPT.get(program)
    if kept is None or kept.parent != os.getpid() or kept.process.poll() is not None:
        here, there = Pipe()
        places = os.pathsep.join(each or str(Path.cwd()) for each in sys.path)
        own = {**os.environ, "PYTHONPATH": places, **dict(program.environment)}
        code = f"from kfbench.measure.child import serve; serve({there.fileno()})"
        command = [*program.command, sys.executable, "-P", "-c", code]
        process = subprocess.Popen(command, env=own, stdin=subprocess.DEVNULL, pass_fds=[there.fileno()])
        there.close()
        kept = _KEPT[program] = _Child(process=process, connection=here, parent=os.getpid())
    return kept


def _ending(program: ChildProgram, child: _Child) -> LibraryEnded | ChildKilled:
    del _KEPT[program]
    code = child.process.wait()
    if -code in _FROM_OUTSIDE:
        return ChildKilled(f"signal {-code} ended the process that measures")
    return LibraryEnded(f"{program.name} ended its process: {f'signal {-code}' if code < 0 else f'exit status {code}'}")


def end_child(program: ChildProgram) -> None:
    """End the child process that the program runs, if there is one."""
    if child := _KEPT.pop(program, None):
        child.process.kill()
        child.process.wait()


def serve(descriptor: int) -> None:
    """Answer calls on a connection until the parent ends."""
    connection = Connection(descriptor)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's, which ends this process
    while True:
        try:
            function, args, kwargs = connection.recv()
        except EOFError:
            return
        try:
            answer: tuple[bool, Any] = True, function(*args, **kwargs)
        except Exception as error:
            answer = False, sendable(error)
        connection.send(answer)


def sendable(error: Exception) -> Exception:
    """Return the error, or a RuntimeError with its text if it cannot be pickled."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error
