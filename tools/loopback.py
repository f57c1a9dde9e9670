"""Helpers for servers on loopback: find a free port, and wait for an answer."""

import socket
import time
from collections.abc import Callable

LOOPBACK = "127.0.0.1"


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
