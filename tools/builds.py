"""Run build tools and keep what they build in a cache folder (~/.cache/kfbench by default).

Each build is a subfolder, whose name ends in a hash of its source files. It is filled under another name and then
renamed. So it is never incomplete, and two processes may fill it at the same time.
"""

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "kfbench"
ESCAPES = r"\x1b\[[0-9;]*m"


class ToolError(Exception):
    """A build tool failed, or a program ended too early. The message is the reason."""


class UnreachableError(ToolError):
    """A build tool could not reach its registry."""


class Ended(NamedTuple):
    status: int
    output: str


def run(
    command: Sequence[str], environment: Mapping[str, str], folder: Path | None = None, most_s: float | None = None
) -> Ended:
    """Run a command in a folder and return its status and output.

    Raises ToolError if it is not on PATH, and TimeoutError if it takes more than `most_s` seconds.
    """
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            timeout=most_s,
        )
    except FileNotFoundError:
        raise ToolError(f"{command[0]}: not on PATH") from None
    except subprocess.TimeoutExpired:
        raise TimeoutError(f"{command[0]} takes more than {most_s} s") from None
    return Ended(done.returncode, re.sub(ESCAPES, "", done.stdout).strip())


def cached(cache: Path, kind: str, sources: Sequence[Path], salt: str, fill: Callable[[Path], None]) -> Path:
    """Return the folder of a build. Unless `cache` has it, call `fill` with a new folder first.

    sources: the files that the build depends on; salt: a text that it depends on.
    """
    digest = hashlib.sha256(salt.encode())
    for source in sorted(sources):
        digest.update(source.read_bytes())
    folder = cache / f"{kind}-{digest.hexdigest()[:16]}"
    if folder.is_dir():
        return folder
    cache.mkdir(parents=True, exist_ok=True)
    fresh = Path(tempfile.mkdtemp(prefix=f"{folder.name}.", dir=cache))
    try:
        fill(fresh)
        if not folder.is_dir():
            fresh.rename(folder)
    except OSError:
        if not folder.is_dir():  # else another process was faster
            raise
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    return folder
