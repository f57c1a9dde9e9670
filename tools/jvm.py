"""Fetch jars with Maven and compile Java classes, both stored in a cache folder (~/.cache/kfbench by default).

Each set of jars or classes is a subfolder, whose name ends in a hash of its source files. It is filled under another
name and then renamed. So it is never incomplete, and two processes may fill it at the same time.
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
    """Maven or javac failed, or a JVM ended too early. The message is the reason."""


class UnreachableError(ToolError):
    """Maven could not reach the registry."""


def fetched(pom: Path) -> Path:
    """Return a folder with the jars of a Maven pom and all their dependencies. Fetch them unless they are in the cache.

    Raises ToolError or its child UnreachableError.
    """

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
    """Return a folder with the compiled classes of the Java files `sources`. jars: the folder of jars that they import.

    Raises ToolError.
    """

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
    """Return a command line that starts a JVM. Run it with `environment()` as its environment.

    class_path: folders of classes, and FOLDER/* for folders of jars.
    """
    return ["java", "-Xmx512m", "-cp", os.pathsep.join(map(str, class_path)), *map(str, arguments)]


def environment() -> dict[str, str]:
    """Return this process's environment variables with a locale that makes a JVM read paths as UTF-8."""
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
