"""Servers on loopback: find a free port, run a server, and wait for an answer."""

import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from tools.builds import ToolError

LOOPBACK = "127.0.0.1"
END_S = 60


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        return int(probe.getsockname()[1])


def answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex((LOOPBACK, port)) == 0


def wait_for(what: str, holds: Callable[[], bool], most_s: float) -> None:
    """Call `holds` every 0.1 s until it returns True. Raises TimeoutError after `most_s` seconds.

    what: a name for the condition, for the message.
    """
    deadline = time.monotonic() + most_s
    while not holds():
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what}: not there after {most_s:g} s")
        time.sleep(0.1)


@contextmanager
def serving(
    name: str, command: Sequence[str], environment: Mapping[str, str], folder: Path, port: int | None, most_s: float
) -> Iterator[subprocess.Popen[bytes]]:
    """Run a server in a process group of its own while the `with` body runs. Its output is in `folder`/NAME.out.

    The body starts when the server's port, if it has one, answers. At the end the whole group is stopped.

    Raises ToolError if the server ends early, and TimeoutError if its port does not answer within `most_s` seconds, or
    the server does not end within 60 s.
    """
    output = folder / f"{name}.out"
    with output.open("wb") as stream:
        process = subprocess.Popen(
            command, env=environment, cwd=folder, stdout=stream, stderr=subprocess.STDOUT, start_new_session=True
        )
    try:
        if port is not None:
            wait_for(f"the {name}'s port", lambda: process.poll() is not None or answers(port), most_s)
            if process.poll() is not None:
                raise ToolError(f"the {name} ended: {output.read_text()[-2000:]}")
        yield process
    finally:
        process.terminate()
        try:
            process.wait(END_S)
        except subprocess.TimeoutExpired:
            raise TimeoutError(f"the {name} does not end within {END_S} s") from None
        finally:
            with suppress(ProcessLookupError):  # a server may leave processes of its own
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
