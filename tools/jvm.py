"""Jars of a pom and Java sources of ours: fetched by Maven, compiled by javac, both kept in a cache folder.

A folder of the cache is complete or absent: it is filled under another name first, so that two processes may fill it
at once. Its name ends in a hash of what it was made from.
"""

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "kfbench"
RELEASE = 17
ESCAPES = r"\x1b\[[0-9;]*m"
OUT_OF_REACH = ("Could not transfer", "No plugin found for prefix", "Unknown host", "offline mode")


class UnreachableError(Exception):
    """Maven did not get at the registry."""


def fetched(pom: Path) -> Path:
    """The folder with the jars that `pom` names and theirs. Raises UnreachableError."""

    def fill(folder: Path) -> None:
        goal = ["dependency:copy-dependencies", f"-DoutputDirectory={folder}"]
        command = ["mvn", "-q", "-B", "-Dstyle.color=never", "-f", str(pom), *goal]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode:
            kind = UnreachableError if any(words in done.stdout for words in OUT_OF_REACH) else RuntimeError
            raise kind(f"{pom}: {re.sub(ESCAPES, '', done.stdout).strip().splitlines()[0]}")

    return _kept("jars", [pom], "", fill)


def compiled(sources: Sequence[Path], jars: Path) -> Path:
    """The folder with the classes of `sources`."""

    def fill(folder: Path) -> None:
        options = ["--release", str(RELEASE), "-Xlint:all,-classfile,-processing", "-Werror"]
        subprocess.run(["javac", "-cp", f"{jars}/*", *options, "-d", folder, *sources], check=True)

    return _kept("classes", sources, jars.name, fill)


def java(*arguments: str | Path, class_path: Sequence[Path | str]) -> list[str]:
    """A command; `class_path` holds folders of classes, and of jars where a name ends in /*."""
    return ["java", "-Xmx512m", "-cp", os.pathsep.join(map(str, class_path)), *map(str, arguments)]


def _kept(kind: str, sources: Sequence[Path], salt: str, fill: Callable[[Path], None]) -> Path:
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
