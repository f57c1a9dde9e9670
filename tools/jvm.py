"""Jars that Maven fetches for a pom, and classes that javac compiles, both stored in a cache folder.

A folder of the cache is complete or absent. It is filled under another name first, so two processes may fill it at the
same time. Its name ends in a hash of its sources.
"""

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from kfbench.sweep.host.java import UTF8_LOCALE

CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "kfbench"
RELEASE = 17
ESCAPES = r"\x1b\[[0-9;]*m"
OUT_OF_REACH = ("Could not transfer", "No plugin found for prefix", "Unknown host", "offline mode")


class ToolError(Exception):
    """Jars or classes cannot be made. The message is one line with the reason."""


class UnreachableError(ToolError):
    """Maven could not reach the registry."""


def fetched(pom: Path) -> Path:
    """Return the folder of the pom's jars and their dependencies. Raises ToolError or its child UnreachableError."""

    def fill(folder: Path) -> None:
        goal = ["dependency:copy-dependencies", f"-DoutputDirectory={folder}"]
        command = ["mvn", "-q", "-B", "-Dstyle.color=never", "-f", str(pom), *goal]
        status, output = _run(command)
        if status:
            kind = UnreachableError if any(words in output for words in OUT_OF_REACH) else ToolError
            first, *_ = output.splitlines() or [f"mvn ends with status {status} and prints nothing"]
            raise kind(f"{pom}: {first}")

    return _cached("jars", [pom], "", fill)


def compiled(sources: Sequence[Path], jars: Path) -> Path:
    """Return the folder with the classes of `sources`. Raises ToolError."""

    def fill(folder: Path) -> None:
        options = ["--release", str(RELEASE), "-Xlint:all,-classfile,-processing", "-Werror"]
        status, output = _run(["javac", "-cp", f"{jars}/*", *options, "-d", str(folder), *map(str, sources)])
        if status:
            raise ToolError(f"javac ends with status {status}: {output}")

    return _cached("classes", sources, jars.name, fill)


class _Ended(NamedTuple):
    status: int
    output: str


def _run(command: Sequence[str]) -> _Ended:
    try:
        done = subprocess.run(
            command, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8"
        )
    except FileNotFoundError:
        raise ToolError(f"{command[0]}: not on PATH") from None
    return _Ended(done.returncode, re.sub(ESCAPES, "", done.stdout).strip())


def java(*arguments: str | Path, class_path: Sequence[Path | str]) -> list[str]:
    """Return a command, to be started in `environment`. class_path: folders of classes, and FOLDER/* for jars."""
    return ["java", "-Xmx512m", "-cp", os.pathsep.join(map(str, class_path)), *map(str, arguments)]


def environment() -> dict[str, str]:
    """Return the environment of this process, in a locale in which a JVM reads paths as UTF-8."""
    return {**os.environ, **UTF8_LOCALE}


def _cached(kind: str, sources: Sequence[Path], salt: str, fill: Callable[[Path], None]) -> Path:
    digest = hashlib.sha256(salt.encode())
    for source in sorted(sources):
        digest.update(source.read_bytes())
    folder = CACHE / f"{kind}-{digest.hexdigest()[:16]}"
    if folder.is_dir():
        return folder
    CACHE.mkdir(parents=True, exist_ok=True)
    fresh = Path(tempfile.mkdtemp(prefix=f"{folder.name}.", dir=CACHE))
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
