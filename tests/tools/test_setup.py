"""`tools/setup.sh` installs a lock with uv from the index that pip's configuration names, and with pip where uv fails.

The index is a server on loopback. Its wheels are made from what is installed here, and from a package of this test.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import threading
import tomllib
import zipfile
from collections.abc import Iterator, Mapping
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from importlib.metadata import distribution, requires
from pathlib import Path
from typing import NamedTuple

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tools.loopback import LOOPBACK
from tools.uv_with_pip_settings import pip_settings, uv_variables

ROOT = Path(__file__).parents[2]
LOCKED = ("editables", "hatchling", "packaging", "pathspec", "pluggy", "setuptools", "trove-classifiers", "uv")


def _write_wheel(folder: Path, name: str, version: str, files: Mapping[str, bytes]) -> Path:
    """Write a wheel of these files; those of its .dist-info that are missing are added."""
    info = f"{name.replace('-', '_')}-{version}.dist-info"
    added = {
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n".encode(),
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    files = {**added, **files}
    files[f"{info}/RECORD"] = "".join(f"{each},,\n" for each in [*files, f"{info}/RECORD"]).encode()
    wheel = folder / name / f"{name.replace('-', '_')}-{version}-py3-none-any.whl"
    wheel.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(wheel, "w") as archive:
        for each, content in files.items():
            member = zipfile.ZipInfo(each)
            member.external_attr = 0o100755 << 16  # pip keeps the mode of regular files alone
            archive.writestr(member, content)
    links = [f'<a href="{each.name}">{each.name}</a>\n' for each in sorted(wheel.parent.glob("*.whl"))]
    (wheel.parent / "index.html").write_text("<!DOCTYPE html>\n" + "".join(links))
    return wheel


def _installed_files(name: str) -> dict[str, bytes]:
    """Return the files of an installed package as its wheel has them."""
    found = distribution(name)
    files = {}
    for file in found.files or ():
        if "__pycache__" not in file.parts and (path := Path(str(found.locate_file(file)))).is_file():
            outside = file.parts[0] == ".."
            files[f"{name}-{found.version}.data/scripts/{file.name}" if outside else str(file)] = path.read_bytes()
    return files


def _lock_lines(wheel: Path) -> str:
    name, version = wheel.name.split("-")[:2]
    return (
        f"{name.replace('_', '-')}=={version} \\\n    --hash=sha256:{hashlib.sha256(wheel.read_bytes()).hexdigest()}\n"
    )


class Index(NamedTuple):
    folder: Path
    url: str
    user_agents: dict[str, str]  # file name -> program that fetched it last


@pytest.fixture
def index(tmp_path: Path) -> Iterator[Index]:
    folder = tmp_path / "index"
    folder.mkdir()
    user_agents = {}

    class Handler(SimpleHTTPRequestHandler):
        def do_GET(self) -> None:
            user_agents[Path(self.path).name] = self.headers["User-Agent"].split("/")[0]
            super().do_GET()

        def log_message(self, *arguments: object) -> None:
            pass

    with ThreadingHTTPServer((LOOPBACK, 0), partial(Handler, directory=str(folder))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield Index(folder, f"http://{LOOPBACK}:{server.server_address[1]}", user_agents)
        server.shutdown()


def _environment(home: Path, pip_conf: str = "", **variables: str) -> dict[str, str]:
    """Return an environment whose only configuration of pip is this file."""
    (home / ".config/pip").mkdir(parents=True, exist_ok=True)
    (home / ".config/pip/pip.conf").write_text(pip_conf)
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PIP_", "UV_", "XDG_"))}
    return kept | {"HOME": str(home), "PYTHONDONTWRITEBYTECODE": ""} | variables


def _project(folder: Path, wheels: list[Path]) -> Path:
    (folder / "tools").mkdir(parents=True)
    for name in ("setup.sh", "uv_with_pip_settings.py"):
        shutil.copy(ROOT / "tools" / name, folder / "tools")
    (folder / "pyproject.toml").write_text(
        '[build-system]\nrequires = ["hatchling"]\nbuild-backend = "hatchling.build"\n'
        '[project]\nname = "kfbench"\nversion = "1"\n'
        '[tool.hatch.build.targets.wheel]\npackages = ["kfbench"]\n'
    )
    (folder / "kfbench").mkdir()
    (folder / "kfbench/__init__.py").write_text("")
    (folder / "requirements.lock").write_text("".join(map(_lock_lines, sorted(wheels))))
    (folder / "requirements-report.txt").write_text("\n".join(LOCKED))
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("works", [True, False])
def test_the_lock_is_installed_from_the_index_of_pip(tmp_path: Path, index: Index, works: bool) -> None:
    wheels = [
        _write_wheel(index.folder, name, distribution(name).version, _installed_files(name))
        for name in LOCKED
        if works or name != "uv"
    ]
    if not works:
        wheels.append(
            _write_wheel(index.folder, "uv", "1", {"uv-1.data/scripts/uv": b"#!/bin/sh\necho no >&2; exit 3\n"})
        )
    thing = _write_wheel(index.folder, "kfbench-thing", "1.5", {"kfbench_thing.py": b"NUMBER = 5\n"})
    project = _project(tmp_path / "a project", [*wheels, thing])
    environment = _environment(tmp_path, f"[global]\nindex-url = {index.url}\n", PYTHON=sys.executable)

    def set_up(*packages: str) -> str:
        done = subprocess.run(
            ["sh", project / "tools/setup.sh", *packages], env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stderr

    for packages in (["report"], []):
        assert thing.name not in index.user_agents
        complaints = set_up(*packages)
        assert len(complaints.splitlines()) == (1 if works else 2), complaints
        assert ("kfbench.uv" in complaints) != works
    assert index.user_agents[thing.name] == ("uv" if works else "pip")
    assert not set_up("report")  # everything is there
    python = project / ".venv/bin/python"
    subprocess.run([python, "-c", "import kfbench, kfbench_thing"], cwd=tmp_path, check=True)
    assert list(project.glob(".venv/lib/python3*/site-packages/__pycache__/kfbench_thing.*.pyc"))


def test_make_report_gets_what_kfbench_with_spark_requires() -> None:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    project, groups = declared["project"], declared["dependency-groups"]
    wanted = [*project["dependencies"], *project["optional-dependencies"]["sweep"], *groups["setup"]]
    left, found = [*map(Requirement, wanted)], set[str]()
    while left:
        needed = left.pop()
        if needed.name not in found and (not needed.marker or needed.marker.evaluate({"extra": ""})):
            found.add(needed.name)
            left += map(Requirement, requires(needed.name) or ())
    names = (ROOT / "requirements-report.txt").read_text(encoding="utf-8").split()
    assert {canonicalize_name(each) for each in found} <= {*names}


INDEX, OTHER = "https://one.example/simple", "https://two.example/simple"


@pytest.mark.parametrize(
    ("pip_conf", "variables", "expected"),
    [
        (f"[global]\nindex-url = {OTHER}\n[install]\nindex_url = {INDEX}", {}, {"UV_DEFAULT_INDEX": INDEX}),
        (f"[global]\nindex-url = {OTHER}", {"PIP_INDEX_URL": INDEX}, {"UV_DEFAULT_INDEX": INDEX}),
        (f"[global]\nindex-url = {OTHER}", {"UV_DEFAULT_INDEX": INDEX}, {"UV_DEFAULT_INDEX": INDEX}),
        (f"[global]\nextra-index-url =\n    {OTHER}\n    {INDEX}", {}, {"UV_INDEX": f"{OTHER} {INDEX}"}),
        ("[install]\nfind-links =\n  wheels\n  /opt/more", {}, {"UV_FIND_LINKS": "wheels,/opt/more"}),
        ("[global]\ncert = /one.pem", {"SSL_CERT_FILE": "/other.pem"}, {"SSL_CERT_FILE": "/one.pem"}),
        ("[global]\nproxy = http://proxy.example:3128", {}, {"ALL_PROXY": "http://proxy.example:3128"}),
    ],
)
def test_uv_gets_what_pip_is_configured_for(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, pip_conf: str, variables: dict[str, str], expected: dict[str, str]
) -> None:
    for name in [each for each in os.environ if each.startswith(("PIP_", "UV_"))]:
        monkeypatch.delenv(name)
    (tmp_path / "pip.conf").write_text(pip_conf)
    for name, value in {"PIP_CONFIG_FILE": str(tmp_path / "pip.conf"), **variables}.items():
        monkeypatch.setenv(name, value)
    assert expected.items() <= uv_variables(pip_settings(), os.environ).items()
