"""asv about its benchmarks: it asks nobody, tells no machine's name, and its site needs no other host."""

import base64
import hashlib
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from itertools import product
from math import isnan
from pathlib import Path
from threading import Thread
from typing import Any, Final
from urllib.parse import urlsplit

import asv  # type: ignore[import-untyped]
import pytest
from asv.benchmarks import Benchmarks  # type: ignore[import-untyped]
from asv.config import Config  # type: ignore[import-untyped]
from asv.machine import Machine, MachineCollection  # type: ignore[import-untyped]
from asv.results import Results, iter_results_paths  # type: ignore[import-untyped]
from asv.util import UserError  # type: ignore[import-untyped]

from kfbench.kernels import CACHE_FOLDER
from kfbench.measure.environment import host, kernel
from tests.browser.chromium import Chromium, Tab, program
from tests.test_benchmarks import CLASSES, PREFIXES
from tools import asv_machine, asv_site

ROOT: Final = Path(__file__).parents[1]
CONF: Final = json.loads((ROOT / "asv.conf.json").read_text())
HISTORY: Final = ROOT / CONF["results_dir"]
TEMPLATE: Final = Path(asv.__file__).parent / "www"
BROWSER: Final = program()
LEAST_COMMITS: Final = 5
TALL_PX: Final = 4000  # a graph is drawn where it comes into view
OVERHEAD: Final = "formats.Overhead.track_overhead"
README: Final = asv_site.COPIES / "README.md"


def test_asv_installs_what_is_locked() -> None:
    assert any("requirements.lock" in command for command in CONF["install_command"])
    assert (ROOT / CONF["benchmark_dir"] / "__init__.py").is_file()
    for plugin in CONF["plugins"]:
        assert (ROOT / (plugin.lstrip(".").replace(".", "/") + ".py")).is_file()


def test_asv_finds_the_benchmarks_where_kfbench_alone_is_installed(tmp_path: Path) -> None:
    """In its environments the checkout is not on the path, as it is here."""
    (tmp_path / "kfbench").symlink_to(ROOT / "kfbench")
    program = f"""
import sys
sys.path[:] = [{str(tmp_path)!r}, *(path for path in sys.path if path not in ("", {str(ROOT)!r}))]
from asv_runner.discovery import list_benchmarks, update_sys_path
update_sys_path({str(ROOT / CONF["benchmark_dir"])!r})
with open({str(tmp_path / "found.json")!r}, "w") as found:
    list_benchmarks({str(ROOT / CONF["benchmark_dir"])!r}, found)
"""
    subprocess.run([sys.executable, "-c", program], cwd=tmp_path, check=True)
    found = json.loads((tmp_path / "found.json").read_text())
    assert {each["name"] for each in found} == {name for name, _ in methods()}


def test_asv_knows_this_machine_without_asking(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(Machine, "hardcoded_machine_name", None)
    asv_machine.setup()
    written = (tmp_path / ".asv-machine.json").read_text()
    name = Machine.get_unique_machine_name()
    known = MachineCollection.load(name)
    assert (known["machine"], known["os"]) == (name, kernel()) and known["num_cpu"]
    assert Machine.load(interactive=True).machine == name
    asv_machine.setup()
    assert (tmp_path / ".asv-machine.json").read_text() == written

    names = {name, host()}
    for seen, cpu, model in ((3, "another", "family 1"), (4, "another", "family 2"), (5, "another", None)):
        monkeypatch.setattr(Machine, "get_defaults", lambda cpu=cpu: known | {"cpu": cpu})
        monkeypatch.setattr(asv_machine, "cpu_model", lambda model=model: model)
        asv_machine.setup()
        names.add(Machine.get_unique_machine_name())
        assert len(names) == seen


# --- The site


def copies() -> dict[str, tuple[str, str]]:
    """Of the table in the copies' README: file -> (SHA-256, how asv's page loads it)."""
    rows = re.findall(r"^\| (\S+\.(?:js|css)) \| .+? \| ([0-9a-f]{64}) \| (.+?) \|$", README.read_text(), re.MULTILINE)
    return {name: (digest, how) for name, digest, how in rows}


def test_copies_are_what_their_page_says() -> None:
    ours = {asv_site.FROM_DISK, "README.md", "LICENSES.txt"}
    assert set(copies()) == {path.name for path in asv_site.COPIES.iterdir()} - ours
    licences = (asv_site.COPIES / "LICENSES.txt").read_text()
    for name, (digest, _) in copies().items():
        assert hashlib.sha256((asv_site.COPIES / name).read_bytes()).hexdigest() == digest, name
        assert name in licences


def test_copies_are_the_bytes_that_asv_s_page_asks_for() -> None:
    """By the page's own digests, but for what no package has as it is asked for."""
    asked = re.findall(r'"https://[^"]*/([^"/]+)" integrity="(sha\d+)-([^"]+)"', (TEMPLATE / "index.html").read_text())
    assert len(asked) == len(copies())
    same = {name for name, (_, how) in copies().items() if how == "the same bytes"}
    assert len(same) == 5
    for name, algorithm, digest in asked:
        if name in same:
            found = hashlib.new(algorithm, (asv_site.COPIES / name).read_bytes()).digest()
            assert base64.b64encode(found).decode() == digest, name


def test_a_page_that_loads_more_than_there_are_copies_of_is_refused(tmp_path: Path) -> None:
    page = tmp_path / "index.html"
    for loaded, said in (
        ('<script src="https://elsewhere.example/new.min.js" integrity="sha256-x"></script>', "new.min.js"),
        ('<link rel="stylesheet" href="//elsewhere.example/new.css">', "new.css"),
    ):
        page.write_text(f"<html><head>{loaded}</head></html>")
        with pytest.raises(UserError, match=said):
            asv_site.make_local(tmp_path)


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `asv publish` makes of the committed history."""
    folder = tmp_path_factory.mktemp("site")
    run_asv(folder, "publish", "--no-pull", "--html-dir", str(folder / "html"))
    return folder / "html"


def run_asv(home: Path, *arguments: str, config: Path | None = None) -> str:
    """asv without a terminal, as somebody who never ran it. Raises CalledProcessError."""
    command = [sys.executable, "-m", "asv", *arguments, *(["--config", str(config)] if config else [])]
    kernels = {"KFBENCH_CACHE_DIR": str(CACHE_FOLDER.parents[1])}  # compiled kernels lie in the home that it has not
    environment = os.environ | kernels | {"HOME": str(home), "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        command, cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_site_names_no_other_host(site: Path) -> None:
    page = (site / "index.html").read_text()
    assert not re.findall(r'<(?:script|link|img)[^>]*"(?:https?:)?//', page)
    for name in re.findall(r'(?:src|href)="([^"#:]+\.(?:js|css))"', page):
        assert (site / name).is_file(), name


def test_every_file_of_data_has_its_script(site: Path) -> None:
    data = list(site.rglob("*.json"))
    assert len(data) > 20
    for path in data:
        script = path.with_name(f"{path.name}.js").read_text()
        assert json.loads(script.removeprefix("asv_data = ").rstrip(";\n")) == json.loads(path.read_text())


@pytest.fixture
def served(site: Path) -> Iterator[str]:
    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=site)) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


@pytest.mark.browser
@pytest.mark.skipif(BROWSER is None, reason="no Chromium or Chrome on PATH")
@pytest.mark.parametrize("how", ["disk", "server"])
def test_a_browser_shows_the_history_and_asks_no_other_host(site: Path, served: str, how: str) -> None:
    with Chromium(str(BROWSER)) as browser:
        tab = browser.open(site / "index.html", height=TALL_PX)
        if how == "server":
            tab.send("Page.navigate", url=served)
        protocol = "http:" if how == "server" else "file:"
        drawn = "document.querySelectorAll('#summarygrid-display canvas.flot-base').length"
        wanted = "Object.keys(window.$?.asv?.main_json?.benchmarks ?? {}).length"
        until(tab, f"location.protocol == '{protocol}' && {drawn} > 10 && {drawn} == {wanted}")
        tab.ask("location.hash = '#/formats.Overhead.track_overhead'")
        until(tab, "document.querySelectorAll('#main-graph canvas.flot-base').length == 1")
        commits = tab.ask("Object.keys($.asv.main_json.revision_to_hash).length")
        assert commits >= LEAST_COMMITS
        tab.ask("location.hash = '#/summarylist'")
        until(tab, "document.querySelectorAll('#summarylist-body tbody tr').length > 10")
        tab.ask("location.hash = '#/regressions'")
        until(tab, "document.querySelector('#regressions-body').children.length > 0")
        assert {urlsplit(url).hostname for url in tab.requests()} <= {None, "", "127.0.0.1"}
        assert not [said for said in tab.complaints() if "favicon" not in said]


def until(tab: Tab, condition: str, patience_s: float = 60) -> None:
    end = time.monotonic() + patience_s
    while not tab.ask(condition):
        assert time.monotonic() < end, f"{condition}: {tab.ask('document.body.innerText')[:2000]}"
        time.sleep(0.05)


# --- The history


def test_the_history_is_of_several_commits_and_benchmarks() -> None:
    """Of each commit the bytes that nothing but the code decides; overhead of v2, one record a batch, is 70 bytes."""
    benchmarks = Benchmarks.load(Config.from_json(CONF | {"results_dir": str(HISTORY)}))
    found = list(committed())
    assert len({each.commit_hash for each in found}) >= LEAST_COMMITS
    for each in found:
        values = dict(zip(product(*benchmarks[OVERHEAD]["params"]), values_of(each, benchmarks), strict=True))
        assert values["'v2'", "1"] == 70.0, each.commit_hash
    names = {name for each in found for name in each.get_result_keys(benchmarks)}
    assert {name.rpartition(".")[2].partition("_")[0] for name in names} >= {"time", "peakmem", "track"}


def test_no_graph_opens_empty() -> None:
    """asv's page shows all values of the first parameter, and the first of each other one."""
    benchmarks = Benchmarks.load(Config.from_json(CONF | {"results_dir": str(HISTORY)}))
    newest = max(committed(), key=lambda each: each.date)
    for name, benchmark in benchmarks.items():
        first = [values[0] for values in benchmark["params"]]
        points = product(*benchmark["params"])
        values = newest.get_result_value(name, benchmark["params"])
        shown = [value for point, value in zip(points, values, strict=True) if list(point[1:]) == first[1:]]
        assert any(value is not None and not isnan(value) for value in shown), name


def committed() -> Iterator[Any]:
    """The results that git knows."""
    known = {ROOT / line for line in git("ls-files", "--", str(HISTORY)).splitlines()}
    for folder, name, machine in iter_results_paths(str(HISTORY)):
        if Path(folder) / name in known:
            yield Results.load(str(Path(folder) / name), machine_name=machine)


def git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True).stdout


def values_of(result: Any, benchmarks: Any) -> list[float | None]:
    found: list[float | None] = result.get_result_value(OVERHEAD, benchmarks[OVERHEAD]["params"])
    return found


def test_the_history_is_of_commits_of_this_repository() -> None:
    if git("rev-parse", "--is-shallow-repository") == "true\n":
        pytest.skip("a shallow clone: it lacks the commits that were measured")
    assert {each.commit_hash for each in committed()} <= set(git("rev-list", "HEAD").split())


def test_the_history_is_small_and_tells_no_machine_s_name() -> None:
    """Paths are looked for in test_workplace.py."""
    for each in committed():
        assert re.fullmatch("host-[0-9a-f]{8}", each.params["machine"])
        assert re.fullmatch(r"[A-Z]\w+ \d+\.\d+", each.params["os"])
        facts = json.loads((HISTORY / each.params["machine"] / "machine.json").read_text())
        assert facts.items() - {("version", 1)} <= each.params.items()
    assert sum(path.stat().st_size for path in HISTORY.rglob("*.json")) < 1_500_000


def test_the_list_of_benchmarks_is_that_of_the_code() -> None:
    """`asv run --bench just-discover --python=same` writes it anew."""
    listed = json.loads((HISTORY / "benchmarks.json").read_text())
    listed.pop("version")
    ours = {
        name: ([[repr(value) for value in values] for values in each.params], each.version) for name, each in methods()
    }
    assert {name: (each["params"], each["version"]) for name, each in listed.items()} == ours, "asv run, as above"


def methods() -> Iterator[tuple[str, Any]]:
    """What asv calls each benchmark, and its class."""
    for each in CLASSES:
        for method in dir(each):
            if method.startswith(PREFIXES):
                yield f"{each.__module__.partition('.')[2]}.{each.__name__}.{method}", each


# --- asv itself


@pytest.mark.thorough
def test_asv_runs_and_checks_the_benchmarks(tmp_path: Path) -> None:
    """As somebody's first command, without a terminal; what it stores goes elsewhere."""
    places = {"benchmark_dir": str(ROOT / CONF["benchmark_dir"]), "results_dir": "results", "env_dir": "environments"}
    config = tmp_path / "asv.conf.json"
    config.write_text(json.dumps(CONF | places | {"repo": str(ROOT)}))
    chosen = (
        r"Overhead.track_overhead\('v[23]', 1\)",
        "Render",
        r"time_compress\('lz4', 100\)",
        r"peakmem_size\('v2'\)",
    )
    said = run_asv(
        tmp_path, "run", "--quick", "--show-stderr", "--python=same", *(f"--bench={each}" for each in chosen),
        config=config,
    )  # fmt: skip
    assert "failed" not in said
    assert re.search(r"v2 +70.* v3 +57", said.replace("\n", " "))
    assert len([*tmp_path.glob("results/host-*/machine.json")]) == 1
    run_asv(tmp_path, "check", "--python=same", config=config)
