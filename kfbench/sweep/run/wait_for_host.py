"""Turns among sweeps that measure time on one host: people are told of whom theirs waits for, and not for ever."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from kfbench.measure.host_lock import NotAlone, SomeoneMeasures
from kfbench.sweep.run.cell import Measured

WAIT_S: Final = 1_800.0  # sweeps take turns of seconds: who lets nobody else measure for so long has stopped


def waiting(for_whom: object, wait_s: float) -> str:
    """The line that people are told."""
    return f"{for_whom}: waiting for a turn, {wait_s / 60:g} minutes at most"


class Turns:
    """Of one sweep. say: tells people a line; run: what they can resume."""

    def __init__(self, say: Callable[[str], None], run: Path) -> None:
        self._say = say
        self._run = run
        self._since: float | None = None  # our turn is missing

    def took(self, found: Measured) -> None:
        """What a task gave. Raises NotAlone where it could not ask for a turn, SomeoneMeasures after WAIT_S without."""
        if found.refused is None or found.rows.num_rows or found.passing.num_rows:
            self._since = None
        if found.refused is None:
            return
        if isinstance(found.refused, NotAlone):
            raise NotAlone(f"{found.refused}; --resume {self._run} continues the run")
        now = time.monotonic()
        if self._since is None:
            self._since = now - found.waited_s
            self._say(waiting(found.refused, WAIT_S))
        if now - self._since >= WAIT_S:
            raise SomeoneMeasures(
                f"{found.refused}, and gave no turn in {WAIT_S / 60:g} minutes; --resume {self._run} continues the run"
            )
