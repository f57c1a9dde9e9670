"""Workloads and tasks that fail in a Spark worker.

Workers import them by name. One kind records in a file that it has failed. Each acts as a normal workload until its
records are generated. Then it fails.
"""

import os
import time
from collections import deque
from itertools import repeat
from pathlib import Path
from typing import ClassVar, NoReturn, Self

from kfbench.measure.cell import axes_of
from kfbench.workloads import Sample, Workload
from kfbench.workloads.grid import GridPoint


class Faulty(GridPoint):
    folder: ClassVar[Path] = Path()  # not an axis; the worker gets the folder with the instance

    @classmethod
    def like(cls, point: Workload, folder: Path) -> Self:
        made = cls(**axes_of(point))
        object.__setattr__(made, "folder", folder)
        return made

    def generate(self, *, records: int, seed: int, start: int = 0) -> Sample:
        self.fail()
        return GridPoint(**axes_of(self)).generate(records=records, seed=seed, start=start)

    def fail(self) -> None:
        raise NotImplementedError

    def has_failed(self) -> bool:
        """Return True if the workload has failed before. Record that it fails now."""
        path = self.folder / type(self).__name__
        found = path.exists()
        path.touch()
        return found


class DiesOnce(Faulty):
    def fail(self) -> None:
        if not self.has_failed():
            os._exit(9)


class Dies(Faulty):
    def fail(self) -> None:
        os._exit(9)


class Raises(Faulty):
    def fail(self) -> None:
        raise RuntimeError("out of ideas")


class Hangs(Faulty):
    def fail(self) -> None:
        while True:
            try:
                time.sleep(1)
            except Exception:
                continue


class Deaf(Faulty):
    def fail(self) -> None:
        deque(repeat(None), maxlen=0)  # an endless loop that keeps the interpreter's lock, as a compiled kernel does


def broken(*_: object, **__: object) -> NoReturn:
    """Raise an error. It stands for a task that no worker can run."""
    raise ZeroDivisionError("no way")
