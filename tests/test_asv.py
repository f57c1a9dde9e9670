"""asv (the benchmark tool airspeed velocity) runs without a terminal and names no machine.

Its committed history is complete.
"""

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from itertools import product
from math import isnan
from pathlib import Path
from typing import Any, Final

import pytest
from asv.benchmarks import Benchmarks  # type: ignore[import-untyped]
from asv.config import Config  # type: ignore[import-untyped]
from asv.machine import Machine, MachineCollection  # type: ignore[import-untyped]
from asv.results import Results, iter_results_paths  # type: ignore[import-untyped]
from asv.util import UserError  # type: ignore[import-untyped]

from kfbench import CODECS, FORMATS, WORKLOADS
from kfbench.kernels import CACHE_FOLDER
from kfbench.measure.environment import host, kernel
from tests.test_benchmarks import CLASSES, is_measured, methods
from tools import asv_plugin

ROOT: Final = Path(__file__).parents[1]
CONF: Final = json.loads((ROOT / "asv.conf.json").read_text())
HISTORY: Final[Path] = ROOT / CONF["results_dir"]
MEASURED_COMMITS: Final = 6
OTHER_MODULES: Final = {"jinja2", "matplotlib", "pandas", "psutil", "pyarrow", "pyspark", "rich", "tools", "typer"}
OVERHEAD: Final = "formats.Overhead.track_overhead"
BY_NAME: Final = {
    f"{each.__module__.partition('.')[2]}.{each.__name__}.{method}": each
    for each in CLASSES
    for method in methods(each)
}


def git(*arguments: str, folder: Path = ROOT) -> str:
    return subprocess.run(["git", *arguments], cwd=folder, capture_output=True, text=True, check=True).stdout


# --- Configuration and plugins


def test_asv_listens_at_a_short_path_whatever_tmpdir_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / ("long" * 30)
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", None)
    asv_plugin.setup()
    with tempfile.TemporaryDirectory(prefix="asv-forkserver-") as place, socket.socket(socket.AF_UNIX) as listening:
        listening.bind(f"{place}/socket")


def test_asv_installs_versions_of_the_lock() -> None:
    """asv installs the versions of the newest lock for every commit. pip then also checks the hashes."""
    (install, _) = CONF["install_command"]
    _, named = install.split(" -c {conf_dir}/requirements.lock ")
    locked = set(re.findall(r"^([\w-]+)==", (ROOT / "requirements.lock").read_text(), re.MULTILINE))
    assert set(named.split()) <= locked
    for plugin in CONF["plugins"]:
        assert (ROOT / (plugin.lstrip(".").replace(".", "/") + ".py")).is_file()


@pytest.mark.slow
def test_asv_finds_the_benchmarks_with_the_packages_that_it_installs(tmp_path: Path) -> None:
    """The environments that asv makes have kfbench, but neither tools/ nor the other packages installed here."""
    installed = CONF["install_command"][0].partition("requirements.lock ")[2].split()
    program = f"""
import sys
sys.path.insert(0, {str(ROOT)!r})
from asv_runner.discovery import list_benchmarks, update_sys_path
for absent in {sorted(OTHER_MODULES - set(installed))!r}:
    sys.modules[absent] = None
update_sys_path({str(ROOT / CONF["benchmark_dir"])!r})
with open({str(tmp_path / "found.json")!r}, "w") as found:
    list_benchmarks({str(ROOT / CONF["benchmark_dir"])!r}, found)
from benchmarks.broker import path
from benchmarks.workloads import WORKLOAD_NAMES, Payload
for name in WORKLOAD_NAMES:
    Payload().setup(name)
for module, function in (("append", "append"), ("compact", "filtered"), ("convert", "convert")):
    assert callable(path(module, function))
"""
    subprocess.run([sys.executable, "-c", program], cwd=tmp_path, check=True)
    found = json.loads((tmp_path / "found.json").read_text())
    assert {each["name"] for each in found} == set(BY_NAME)


def test_asv_knows_this_machine_without_asking(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(Machine, "hardcoded_machine_name", None)
    asv_plugin.setup()
    written = (tmp_path / ".asv-machine.json").read_text()
    name = Machine.get_unique_machine_name()
    known = MachineCollection.load(name)
    assert (known["machine"], known["os"]) == (name, kernel()) and known["num_cpu"]
    assert Machine.load(interactive=True).machine == name
    asv_plugin.setup()
    assert (tmp_path / ".asv-machine.json").read_text() == written

    names = {name, host()}
    for seen, cpu, model in ((3, "another", "family 1"), (4, "another", "family 2"), (5, "another", None)):
        monkeypatch.setattr(Machine, "get_defaults", lambda cpu=cpu: known | {"cpu": cpu})
        monkeypatch.setattr(asv_plugin, "cpu_model", lambda model=model: model)
        asv_plugin.setup()
        names.add(Machine.get_unique_machine_name())
        assert len(names) == seen


def test_full_names_all_that_this_checkout_has(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KFBENCH_ASV_NAMES", "left over")
    monkeypatch.delenv("KFBENCH_ASV", raising=False)
    asv_plugin.set_names()
    assert "KFBENCH_ASV_NAMES" not in os.environ
    monkeypatch.setenv("KFBENCH_ASV", "full")
    asv_plugin.set_names()
    names = json.loads(os.environ.pop("KFBENCH_ASV_NAMES"))
    assert (set(names["formats"]), set(names["codecs"])) == (set(FORMATS), set(CODECS))
    assert set(names["workloads"]) == set(WORKLOADS) - {"grid"}
    monkeypatch.setenv("KFBENCH_ASV", "all")
    with pytest.raises(UserError, match="KFBENCH_ASV='all'"):
        asv_plugin.set_names()


# --- asv itself


def asv(folder: Path, home: Path, *arguments: str) -> str:
    """Run asv without a terminal and with an empty home folder. Return its output."""
    kernels = {"KFBENCH_CACHE_DIR": str(CACHE_FOLDER.parents[1])}  # a home folder without compiled kernels
    environment = os.environ | kernels | {"HOME": str(home)}
    done = subprocess.run(
        [sys.executable, "-m", "asv", *arguments], cwd=folder, env=environment, stdin=subprocess.DEVNULL,
        capture_output=True, text=True, timeout=1200,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
@pytest.mark.thorough
def test_asv_runs_in_a_clean_clone(tmp_path: Path) -> None:
    """Run asv's `continuous`, `compare` and `publish` in a clone. Benchmarks are a format's size and a broker path."""
    if git("rev-list", "--max-count=2", "HEAD").count("\n") < 2:
        pytest.skip("a shallow clone: it lacks the commit before")
    clone, home = tmp_path / "clone", tmp_path / "home"
    home.mkdir()
    git("clone", "--quiet", str(ROOT), str(clone))
    shutil.rmtree(clone / CONF["results_dir"])
    chosen = [rf"--bench={OVERHEAD}\('v[23]', 1\)", r"--bench=Append.track_written_bytes\('v[12]', 'none'\)"]
    printed = asv(clone, home, "continuous", "HEAD~1", "HEAD", *chosen)
    assert "failed" not in printed and "BENCHMARKS NOT SIGNIFICANTLY CHANGED" in printed
    assert re.search(r"v2 +70.* v3 +57", printed.replace("\n", " "))
    (facts,) = clone.glob(f"{CONF['results_dir']}/host-*/machine.json")
    assert json.loads(facts.read_text())["machine"] == facts.parent.name
    compared = asv(clone, home, "compare", "HEAD~1", "HEAD")
    assert len(re.findall(rf"\| 70\.0 +\| 70\.0 .*{OVERHEAD}\('v2', 1\)", compared)) == 1
    asv(clone, home, "publish", "--no-pull")
    published = json.loads((clone / CONF["html_dir"] / "index.json").read_text())
    assert OVERHEAD in published["benchmarks"] and len(published["revision_to_hash"]) == 2


# --- The committed history


@pytest.fixture(scope="module")
def benchmarks() -> Any:
    return Benchmarks.load(Config.from_json(CONF | {"results_dir": str(HISTORY)}))


def committed() -> Iterator[Any]:
    """Yield asv's results that are committed in git."""
    known = {ROOT / line for line in git("ls-files", "--", str(HISTORY)).splitlines()}
    for folder, name, machine in iter_results_paths(str(HISTORY)):
        if Path(folder) / name in known:
            yield Results.load(str(Path(folder) / name), machine_name=machine)


def listed_commits() -> list[str]:
    return (HISTORY / "commits.txt").read_text().split()


def test_the_listed_commits_are_of_this_repository() -> None:
    if git("rev-parse", "--is-shallow-repository") == "true\n":
        pytest.skip("a shallow clone: it lacks the commits that were measured")
    ancestors = git("rev-list", "HEAD").split()
    places = [ancestors.index(each) for each in listed_commits()]  # newest commit first
    assert places == sorted(places) and len(set(places)) == MEASURED_COMMITS


def test_the_history_is_of_all_listed_commits_on_one_machine() -> None:
    found = list(committed())
    assert sorted(each.commit_hash for each in found) == sorted(listed_commits())
    assert len({each.params["machine"] for each in found}) == 1


def values(result: Any, benchmarks: Any, name: str) -> dict[tuple[str, ...], float | None]:
    """Return the value of each parameter set. None means failed, nan means not applicable."""
    parameters = benchmarks[name]["params"]
    return dict(zip(product(*parameters), result.get_result_value(name, parameters), strict=True))


def test_nothing_failed_in_any_commit(benchmarks: Any) -> None:
    for each in committed():
        for name in benchmarks:
            assert None not in values(each, benchmarks, name).values(), (each.commit_hash, name)


def test_the_newest_commit_has_every_applicable_value(benchmarks: Any) -> None:
    for newest in committed():
        if newest.commit_hash == listed_commits()[0]:
            for name, benchmark in BY_NAME.items():
                found = values(newest, benchmarks, name)
                for parameters, value in zip(product(*benchmark.params), found.values(), strict=True):
                    absent = value is not None and isnan(value) and not name.endswith("track_records_per_batch")
                    assert absent <= (not is_measured(benchmark, parameters)), (name, parameters)


def test_the_history_is_small_and_names_no_machine() -> None:
    """The files name no host and are below 1 MB in total. test_workplace.py searches for private paths."""
    for each in committed():
        assert re.fullmatch("host-[0-9a-f]{8}", each.params["machine"])
        assert re.fullmatch(r"[A-Z]\w+ \d+\.\d+", each.params["os"])
        facts = json.loads((HISTORY / each.params["machine"] / "machine.json").read_text())
        assert facts.items() - {("version", 1)} <= each.params.items()
    assert sum(path.stat().st_size for path in HISTORY.rglob("*.json")) < 1_000_000


def test_the_list_of_benchmarks_is_that_of_the_code() -> None:
    """If this test fails, rewrite the list with `asv run --bench just-discover --python=same`."""
    listed = json.loads((HISTORY / "benchmarks.json").read_text())
    listed.pop("version")
    ours = {
        name: ([[repr(value) for value in each] for each in benchmark.params], benchmark.version)
        for name, benchmark in BY_NAME.items()
    }
    assert {name: (each["params"], each["version"]) for name, each in listed.items()} == ours, "asv run, as above"
