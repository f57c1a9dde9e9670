"""A failure of Maven or javac gives an error of one line, and leaves no folder in the cache."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tools import builds, jvm

Fake = Callable[[str, str], None]


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Fake:
    """Return a function that puts a shell script on PATH in place of a program. The cache is empty."""
    monkeypatch.setattr(jvm, "CACHE", tmp_path / "cache")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    (tmp_path / "bin").mkdir()

    def put(name: str, script: str) -> None:
        path = tmp_path / "bin" / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)

    return put


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "pom.xml"
    path.write_text("<project/>")
    return path


@pytest.mark.parametrize(
    ("script", "kind", "said"),
    [
        ("exit 1", jvm.ToolError, "mvn ends with status 1 and prints nothing"),
        ("echo; echo The POM is no POM; echo more; exit 1", jvm.ToolError, "The POM is no POM"),
        ("echo Could not transfer artifact; exit 1", jvm.UnreachableError, "Could not transfer artifact"),
        (None, jvm.ToolError, "mvn: not on PATH"),
    ],
)
def test_maven_fails(script: str | None, kind: type[Exception], said: str, fake: Fake, source: Path) -> None:
    if script:
        fake("mvn", script)
    with pytest.raises(jvm.ToolError) as failure:
        jvm.fetched(source)
    assert (type(failure.value), str(failure.value).removeprefix(f"{source}: ")) == (kind, said)
    assert not list(jvm.CACHE.iterdir())


def test_javac_fails(fake: Fake, source: Path) -> None:
    fake("javac", "echo A.java:1: error; exit 1")
    with pytest.raises(jvm.ToolError, match=r"javac ends with status 1: A\.java:1: error"):
        jvm.compiled([source], source.parent)


def test_make_golden_says_so_in_one_line(fake: Fake, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from tests.oracle import golden

    fake("mvn", "echo Unknown host; exit 1")
    monkeypatch.setattr(golden, "GOLDEN", tmp_path)
    with pytest.raises(SystemExit, match=r"^make golden: .*pom\.xml: Unknown host$"):
        golden.main()


def test_a_command_that_takes_too_long_is_ended() -> None:
    with pytest.raises(TimeoutError, match=r"sleep takes more than 0\.2 s"):
        builds.run(["sleep", "60"], os.environ, most_s=0.2)
