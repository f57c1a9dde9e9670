"""Run a command in a test. The result has the exit status, stdout and stderr."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple


class Done(NamedTuple):
    status: int
    out: str
    err: str

    def refused(self, status: int = 1) -> str:
        """Check that the command failed with this status and printed only one line, on stderr. Return that line."""
        assert self.status == status
        assert self.out == ""
        assert self.err.startswith("kfbench: ")
        assert self.err.count("\n") == 1
        return self.err


Run = Callable[..., Done]


def process(*arguments: str | Path, env: dict[str, str] | None = None) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "kfbench", *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env)


SWEEP = """
title = "Two cells"
analysis = "For a test."
bytes = { records = 100 }
[[grid]]
name = "two"
title = "Two cells"
analysis = "For a test."
measure = ["bytes"]
formats = ["v1", "v2", "v3"]
[grid.axes]
batch_size = [1, 10]
"""
