"""`tools/setup.sh` installs a lock with uv from the index that pip's configuration names, and with pip where uv fails.

The index is a server on loopback. Its wheels are made from what is installed here, and from a package of this test.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import threading
import zipfile
from collections.abc import Iterator, Mapping
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from importlib.metadata import distribution
from pathlib import Path
from typing import NamedTuple

import pytest

from tools.loopback import LOOPBACK
from tools.uv_with_pip_settings import uv_variables

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
    done = subprocess.run(
        ["sh", project / "tools/setup.sh"],
        env=_environment(tmp_path, f"[global]\nindex-url = {index.url}\n", PYTHON=sys.executable),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert len(done.stderr.splitlines()) == (1 if works else 2), done.stderr
    assert ("kfbench.uv" in done.stderr) != works
    assert index.user_agents[thing.name] == ("uv" if works else "pip")
    python = project / ".venv/bin/python"
    subprocess.run([python, "-c", "import kfbench, kfbench_thing"], cwd=tmp_path, check=True)
    assert list(project.glob(".venv/lib/python3*/site-packages/__pycache__/kfbench_thing.*.pyc"))


CONFIGURED = {
    "section of the command": ("[global]\nindex-url = {other}\n[install]\nindex_url = {url}\n", {}),
    "variable before file": ("[global]\nindex-url = {other}\n", {"PIP_INDEX_URL": "{url}"}),
    "file named by a variable": ("[global]\nindex-url = {other}\n", {"PIP_CONFIG_FILE": "{home}/pip.conf"}),
    "second index has the version": (
        "[global]\nindex-url = {other}\nextra-index-url =\n    {other}/none\n    {url}\n",
        {},
    ),
    "folders, one of them missing": (
        "[install]\nno-index = yes\nfind-links =\n  none\n  index/kfbench-thing\n",  # a space would end a path
        {},
    ),
    "page of links": ("[global]\nno-index = true\n", {"PIP_FIND_LINKS": "{url}/kfbench-thing/"}),
    "uv's own variable wins": ("[global]\nindex-url = {other}\n", {"UV_DEFAULT_INDEX": "{url}"}),
    "uv's own variable wins over none": ("[global]\nno-index = 1\n", {"UV_DEFAULT_INDEX": "{url}"}),
}


@pytest.mark.parametrize("case", CONFIGURED)
def test_uv_finds_what_pip_is_configured_for(tmp_path: Path, index: Index, case: str) -> None:
    thing = _write_wheel(index.folder, "kfbench-thing", "1.5", {"kfbench_thing.py": b"NUMBER = 5\n"})
    _write_wheel(index.folder / "other", "kfbench-thing", "1.4", {"kfbench_thing.py": b"NUMBER = 4\n"})
    words = {"url": index.url, "other": f"{index.url}/other", "home": str(tmp_path)}
    pip_conf, variables = CONFIGURED[case]
    (tmp_path / "pip.conf").write_text(f"[global]\nindex-url = {index.url}\n")
    (tmp_path / "lock").write_text(_lock_lines(thing))
    environment = _environment(
        tmp_path, pip_conf.format(**words), **{name: text.format(**words) for name, text in variables.items()}
    )
    lock, python = str(tmp_path / "lock"), sys.executable
    options = ["--target", str(tmp_path / "target"), "--require-hashes", "--no-deps", "--python", python, "-r", lock]
    done = subprocess.run(
        [sys.executable, ROOT / "tools/uv_with_pip_settings.py", "pip", "install", "--quiet", *options],
        cwd=tmp_path, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "target/kfbench_thing.py").read_text() == "NUMBER = 5\n"


def test_certificates_proxy_and_patience_are_those_of_pip(tmp_path: Path) -> None:
    settings = {
        "cert": "/certificates.pem", "client-cert": "/client.pem", "proxy": "proxy.example:3128",
        "default-timeout": "2.6", "retries": "9", "trusted-host": "a.example b.example:81",
    }  # fmt: skip
    variables = uv_variables(settings, {"SSL_CERT_FILE": "/other.pem", "UV_HTTP_RETRIES": "1"})
    assert variables["SSL_CERT_FILE"] == "/certificates.pem"
    assert variables["SSL_CLIENT_CERT"] == "/client.pem"
    assert variables["HTTPS_PROXY"] == variables["HTTP_PROXY"] == "http://proxy.example:3128"
    assert variables["UV_HTTP_TIMEOUT"] == "3"
    assert variables["UV_HTTP_RETRIES"] == "1"
    assert variables["UV_INSECURE_HOST"] == "a.example b.example:81"
    assert uv_variables({"cert": str(tmp_path)}, {})["SSL_CERT_DIR"] == str(tmp_path)
    assert uv_variables({}, {"REQUESTS_CA_BUNDLE": "/bundle.pem"})["SSL_CERT_FILE"] == "/bundle.pem"
    assert "SSL_CERT_FILE" not in uv_variables({}, {})
