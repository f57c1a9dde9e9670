"""A failure of Maven or javac gives an error of one line. A missing or failing compiler makes a peer absent.

Neither leaves a folder in the cache.
"""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tools import builds, jvm
from tools.builds import ToolError, UnreachableError
from tools.peers import franz_go, rskafka
from tools.peers.base.arm import Absent
from tools.peers.base.toolchains import GO, PEERS, RUST, Toolchain, built

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
        ("exit 1", ToolError, "mvn ends with status 1 and prints nothing"),
        ("echo; echo The POM is no POM; echo more; exit 1", ToolError, "The POM is no POM"),
        ("echo Could not transfer artifact; exit 1", UnreachableError, "Could not transfer artifact"),
        (None, ToolError, "mvn: not on PATH"),
    ],
)
def test_maven_fails(script: str | None, kind: type[Exception], said: str, fake: Fake, source: Path) -> None:
    if script:
        fake("mvn", script)
    with pytest.raises(ToolError) as failure:
        jvm.fetched(source)
    assert (type(failure.value), str(failure.value).removeprefix(f"{source}: ")) == (kind, said)
    assert not list(jvm.CACHE.iterdir())


def test_javac_fails(fake: Fake, source: Path) -> None:
    fake("javac", "echo A.java:1: error; exit 1")
    with pytest.raises(ToolError, match=r"javac ends with status 1: A\.java:1: error"):
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


@pytest.mark.usefixtures("fake")
def test_without_a_compiler_the_peer_is_absent() -> None:
    for start, compiler in ((franz_go.start, "go"), (rskafka.start, "rustc")):
        with pytest.raises(Absent, match=f"^{compiler}: not on PATH"), start():
            pass


@pytest.mark.parametrize(
    ("toolchain", "script", "kind", "said"),
    [
        (GO, 'test "$1" = version || { echo no such package; exit 1; }', ToolError, "no such package"),
        (GO, 'test "$1" = version || { echo dial tcp: lookup proxy; exit 1; }', UnreachableError, "dial tcp"),
        (GO, "echo broken; exit 3", ToolError, "go ends with status 3: broken"),
        (RUST, "echo failed to download; exit 101", UnreachableError, "failed to download"),
        (RUST, "echo mismatched types; exit 101", ToolError, "cargo ends with status 101 in .*: mismatched types"),
    ],
)
def test_a_build_that_fails_gives_a_reason(
    toolchain: Toolchain, script: str, kind: type[ToolError], said: str, fake: Fake, tmp_path: Path
) -> None:
    fake(toolchain.build[0], script)
    if toolchain is RUST:
        fake("rustc", "echo rustc 1.0")
    folder = PEERS / {"go": "go-kafka-go", "rust": "rust-rskafka"}[toolchain.language]
    cache = tmp_path / "cache"
    with pytest.raises(ToolError, match=said) as failure:
        built(folder, toolchain, cache)
    assert type(failure.value) is kind
    assert not cache.exists() or not list(cache.iterdir())


def test_a_new_compiler_makes_a_new_build(fake: Fake, tmp_path: Path) -> None:
    found = set()
    for version in ("1.1", "1.2", "1.2"):
        fake("go", f'test "$1" = version && echo {version} && exit\necho built > "$5/go-kafka-go"')
        program = built(PEERS / "go-kafka-go", GO, tmp_path / "cache")
        assert program.read_text() == "built\n"
        assert [path.name for path in program.parent.iterdir()] == ["go-kafka-go"]
        found.add(program)
    assert len(found) == 2
