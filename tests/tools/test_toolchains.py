"""A missing or failing compiler makes a peer absent with a reason, and leaves no folder in the cache."""

from pathlib import Path

import pytest

from tools.builds import ToolError, UnreachableError
from tools.peers import franz_go, rskafka
from tools.peers.base.arm import Absent
from tools.peers.base.toolchains import GO, PEERS, RUST, Toolchain, built


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder that is all of PATH besides the system's own folders without compilers."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    return folder


def put(folder: Path, name: str, script: str) -> None:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


@pytest.mark.usefixtures("programs")
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
    toolchain: Toolchain, script: str, kind: type[ToolError], said: str, programs: Path, tmp_path: Path
) -> None:
    put(programs, toolchain.build[0], script)
    if toolchain is RUST:
        put(programs, "rustc", "echo rustc 1.0")
    folder = PEERS / {"go": "go-kafka-go", "rust": "rust-rskafka"}[toolchain.language]
    cache = tmp_path / "cache"
    with pytest.raises(ToolError, match=said) as failure:
        built(folder, toolchain, cache)
    assert type(failure.value) is kind
    assert not cache.exists() or not list(cache.iterdir())


def test_a_new_compiler_makes_a_new_build(programs: Path, tmp_path: Path) -> None:
    found = set()
    for version in ("1.1", "1.2", "1.2"):
        put(programs, "go", f'test "$1" = version && echo {version} && exit\necho built > "$5/go-kafka-go"')
        program = built(PEERS / "go-kafka-go", GO, tmp_path / "cache")
        assert program.read_text() == "built\n"
        assert [path.name for path in program.parent.iterdir()] == ["go-kafka-go"]
        found.add(program)
    assert len(found) == 2
