"""A wheel stands on its own: what a command reads at run time is in it."""

import os
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest

pytestmark = pytest.mark.thorough
ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this checkout, unpacked; it comes before the checkout on PYTHONPATH."""
    folder = tmp_path_factory.mktemp("wheel")
    options = ["--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir", str(folder)]
    subprocess.run([sys.executable, "-m", "pip", "wheel", *options, str(ROOT)], check=True, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    with ZipFile(wheel) as file:
        file.extractall(folder / "installed")
    return folder / "installed"


def run(installed: Path, code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", f"import kfbench\nassert kfbench.__file__.startswith({str(installed)!r})\n{code}"],
        cwd=installed,
        env={**os.environ, "PYTHONPATH": str(installed)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_wheel_knows_every_profile(installed: Path) -> None:
    code = "from kfbench.sweep.sweep_file import SWEEPS; print(*sorted(path.name for path in SWEEPS.iterdir()))"
    assert run(installed, code).split() == sorted(path.name for path in (ROOT / "datasets" / "sweeps").iterdir())


def test_the_wheel_knows_every_workload(installed: Path) -> None:
    code = "from kfbench.workloads.catalogue import WORKLOADS; print(*(each.file.name for each in WORKLOADS.values()))"
    assert run(installed, code).split() == sorted(path.name for path in (ROOT / "datasets" / "workloads").iterdir())


def test_the_wheel_holds_the_golden_vectors(installed: Path) -> None:
    """One of them is checked as `kfbench verify` does it."""
    code = (
        "from kfbench.measure.golden import GOLDEN, check_vector, vectors; entries = vectors();"
        "print(*sorted(path.name for path in GOLDEN.iterdir()));"
        "print([outcome.problem for outcome in check_vector(GOLDEN, entries[0])])"
    )
    names, problems = run(installed, code).splitlines()
    assert names.split() == sorted(path.name for path in (ROOT / "datasets" / "golden").iterdir())
    assert problems == "['', '', '']"


def test_the_wheel_holds_the_package_and_nothing_else(installed: Path) -> None:
    assert {path.name for path in installed.iterdir()} == {"kfbench", "kfbench-0.1.0.dist-info"}
    ours = {
        path.relative_to(ROOT) for path in (ROOT / "kfbench").rglob("*") if path.is_file() and path.suffix != ".pyc"
    }
    assert ours <= {path.relative_to(installed) for path in installed.rglob("*")}
