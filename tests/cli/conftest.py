"""Fixtures of command-line tests: the command, small segments, a sweep of two cells (measurements), stored runs."""

import io
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.console import Console

from kfbench.cli import main
from kfbench.formats import FORMATS
from kfbench.records import Records
from kfbench.whatif.compiling import compiling_behind
from tests.cli.command import SWEEP, Done, Run
from tests.runs import stored
from tests.strategies import NOW_MS


@pytest.fixture(scope="session", autouse=True)
def _compiled() -> None:
    """Compile the kernels that every what-if needs."""
    with compiling_behind(tuple(FORMATS), Console(file=io.StringIO())):
        pass


@pytest.fixture
def kfbench(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Return a command without its line about kernels that only damage or headers need: it is of an empty cache."""

    def run(*arguments: str | Path) -> Done:
        monkeypatch.setattr(sys, "argv", ["kfbench", *map(str, arguments)])
        status = main()
        out, err = capsys.readouterr()
        return Done(status, out, err.replace("kfbench: compiling kernels for these records, once\n", ""))

    return run


@pytest.fixture
def segment(tmp_path: Path) -> Path:
    """Write a segment of three v2 batches with two records each. Return its path."""
    records = Records.from_lists([b"value %d" % i for i in range(6)], timestamps_ms=list(range(NOW_MS, NOW_MS + 6)))
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(FORMATS["v2"].encode(records, batch_size=2).data.tobytes())
    return path


@pytest.fixture
def damaged(segment: Path) -> tuple[Path, int]:
    """Flip a bit in the second batch of the segment. Return the path and the byte position of that batch."""
    data = bytearray(segment.read_bytes())
    start = len(data) // 3
    data[start + 70] ^= 1
    segment.write_bytes(data)
    return segment, start


@pytest.fixture
def two_cells(tmp_path: Path) -> Path:
    path = tmp_path / "two.toml"
    path.write_text(SWEEP)
    return path


@pytest.fixture
def sizes(tmp_path: Path) -> Callable[[int], Path]:
    """Return a function that stores a run of one row with the given size in bytes. It returns the run's path."""

    def finished(size_bytes: int) -> Path:
        row = {"kind": "bytes", "cell_id": "one", "grid": "one", "workload": "grid", "seed": 1, "records": 10}
        result = {"status": "ok", "format": "v3", "codec": "none", "size_bytes": size_bytes}
        return stored(tmp_path, [row | result]).path

    return finished
