"""Fetch jars with Maven and compile Java classes, both stored in the cache folder of `tools.builds`."""

import os
import re
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Self

import msgspec

from kfbench.sweep.host.java import UTF8_LOCALE
from tools import builds
from tools.builds import ToolError as ToolError
from tools.builds import UnreachableError as UnreachableError

CACHE = builds.CACHE
RELEASE = 17
OUT_OF_REACH = ("Could not transfer", "No plugin found for prefix", "Unknown host", "offline mode")


def fetched(pom: Path, properties: Mapping[str, str] = MappingProxyType({})) -> Path:
    """Return a folder with the jars of a Maven pom and all their dependencies. Fetch them unless they are in the cache.

    properties: values that replace those in the pom. Raises ToolError or its child UnreachableError.
    """
    options = [f"-D{name}={value}" for name, value in properties.items()]

    def fill(folder: Path) -> None:
        goal = ["dependency:copy-dependencies", f"-DoutputDirectory={folder}"]
        command = ["mvn", "-q", "-B", "-Dstyle.color=never", *options, "-f", str(pom), *goal]
        status, output = builds.run(command, environment())
        if status:
            kind = UnreachableError if any(words in output for words in OUT_OF_REACH) else ToolError
            first, *_ = output.splitlines() or [f"mvn ends with status {status} and prints nothing"]
            raise kind(f"{pom}: {first}")

    return builds.cached(CACHE, "jars", [pom], " ".join(options), fill)


def compiled(sources: Sequence[Path], jars: Path, moved: Sequence[tuple[str, str]] = ()) -> Path:
    """Return a folder with the compiled classes of the Java files `sources`.

    jars: the folder of jars that they import. moved: regular expressions, and what replaces their matches in the
    sources, for classes that are in another package in these jars. Raises ToolError.
    """

    def fill(folder: Path) -> None:
        options = ["--release", str(RELEASE), "-Xlint:all,-classfile,-processing", "-Werror"]
        with tempfile.TemporaryDirectory() as edited:
            files = [_edited(source, moved, Path(edited)) for source in sources] if moved else sources
            command = ["javac", "-cp", f"{jars}/*", *options, "-d", str(folder), *map(str, files)]
            status, output = builds.run(command, environment())
        if status:
            raise ToolError(f"javac ends with status {status}: {output}")

    return builds.cached(CACHE, "classes", sources, f"{jars.name} {moved}" if moved else jars.name, fill)


def _edited(source: Path, moved: Sequence[tuple[str, str]], folder: Path) -> Path:
    text = source.read_text(encoding="utf-8")
    for pattern, replacement in moved:
        text = re.sub(pattern, replacement, text)
    edited = folder / source.name
    edited.write_text(text, encoding="utf-8")
    return edited


def java(*arguments: str | Path, class_path: Sequence[Path | str]) -> list[str]:
    """Return a command line that starts a JVM. Run it with `environment()` as its environment.

    class_path: folders of classes, and FOLDER/* for folders of jars.
    """
    return ["java", "-Xmx512m", "-cp", os.pathsep.join(map(str, class_path)), *map(str, arguments)]


def environment() -> dict[str, str]:
    """Return this process's environment variables with a locale that makes a JVM read paths as UTF-8."""
    return {**os.environ, **UTF8_LOCALE}


class JsonServer:
    """A JVM that answers each line of JSON on its input with a line of JSON. It ends with the `with` block."""

    def __init__(self, command: Sequence[str]) -> None:
        self._process = subprocess.Popen(command, env=environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()

    def send(self, request: Any) -> Any:
        """Return the answer. Raises ToolError if the JVM has ended."""
        assert self._process.stdin and self._process.stdout
        self._process.stdin.write(msgspec.json.encode(request) + b"\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise ToolError(f"the JVM ended with status {self._process.wait()}")
        return msgspec.json.decode(line)
