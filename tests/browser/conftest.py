"""The browser, and pages for all tests: two of a report (of the newest committed rows), and a `what-if` answer."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from kfbench.report.files import files_of
from kfbench.report.publish import newest
from kfbench.store import open_run
from kfbench.whatif import page as what_if_page
from kfbench.whatif.ask import what_if
from tests.browser.chromium import Chromium, program
from tests.recorded import FOLDER

HERE = Path(__file__).parent
REPORTS = HERE.parents[1] / "reports"
UNREACHABLE = ("ENOTFOUND", "EAI_AGAIN", "ECONNREFUSED", "ECONNRESET", "ENETUNREACH", "ETIMEDOUT")


@pytest.fixture(scope="session")
def chromium() -> Iterator[Chromium]:
    path = program()
    if path is None:
        pytest.skip("no Chromium or Chrome on PATH")
    with Chromium(path) as running:
        yield running


@pytest.fixture(scope="session")
def front(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Render the pages of the newest committed report. Return the path of its front page."""
    folder = tmp_path_factory.mktemp("report")
    for name, data in files_of(open_run(newest(REPORTS))):
        if name.endswith(".html"):
            (folder / name).write_bytes(data)
    return folder / "index.html"


@pytest.fixture(scope="session")
def chapter(front: Path) -> Path:
    """Return the path of the report's longest chapter."""
    return front.with_name("kip931.html")


@pytest.fixture(scope="session")
def answer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write index.html of a what-if of two recorded logs. The path that it shows is wider than a phone."""
    folder = tmp_path_factory.mktemp("what-if")
    logs = folder / ("deep" * 20)
    logs.mkdir()
    for name in ("service-headers.log", "telemetry.log"):
        shutil.copy(FOLDER / name, logs)
    found = what_if(sorted(logs.iterdir()), ["v1", "v3"], ["none", "lz4"], rate_mb_s=3)
    return what_if_page.publish(found, folder) / "index.html"


@pytest.fixture(params=["answer", "front", "chapter"])
def page(request: pytest.FixtureRequest) -> Path:
    """Return each of the three pages in turn."""
    path: Path = request.getfixturevalue(request.param)
    return path


@pytest.fixture(scope="session")
def axe(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the script of axe-core (an accessibility checker). Version and hash come from package-lock.json."""
    if not os.environ.get("KFBENCH_REGISTRIES"):
        pytest.skip("downloads from a registry of npm packages: set KFBENCH_REGISTRIES=1 to run it")
    if not shutil.which("npm"):
        pytest.skip("needs npm on PATH")
    folder = tmp_path_factory.mktemp("axe")
    for name in ("package.json", "package-lock.json"):
        shutil.copy(HERE / name, folder)
    command = ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    if done.returncode and any(word in done.stderr for word in UNREACHABLE):
        pytest.skip("the registry of npm packages is out of reach")
    assert done.returncode == 0, done.stderr
    return (folder / "node_modules" / "axe-core" / "axe.min.js").read_text()
