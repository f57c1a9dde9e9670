"""The command as a process: signals, closed pipes, terminals without Unicode."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from kfbench.cli.app import TURN_S
from tests.cli.command import process
from tests.vectors import write_vectors


@pytest.mark.skipif(not Path("/proc/self/wchan").exists(), reason="asks Linux whether the command waits")
@pytest.mark.parametrize(
    ("sent", "status", "line"), [(signal.SIGINT, 130, "kfbench: interrupted\n"), (signal.SIGTERM, 143, "")]
)
def test_a_signal_is_at_most_one_line_and_its_status(tmp_path: Path, sent: int, status: int, line: str) -> None:
    pipe = tmp_path / "segment.log"
    os.mkfifo(pipe)  # no process writes to this pipe, so the command waits
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # shells start background jobs with SIGINT off
    try:
        running = process("inspect", pipe, "--debug")
    finally:
        signal.signal(signal.SIGINT, before)
    try:
        deadline = time.monotonic() + 60
        while "wait_for_partner" not in Path(f"/proc/{running.pid}/wchan").read_text():
            assert running.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.05)
        running.send_signal(sent)
        out, err = running.communicate(timeout=60)
    finally:
        running.kill()
    assert (running.returncode, out, err) == (status, "", line)


@pytest.mark.parametrize("status", [0, pytest.param(3, marks=pytest.mark.thorough)])
def test_a_reader_that_leaves_early_is_no_failure(tmp_path: Path, two_cells: Path, status: int) -> None:
    """A reader that closes the pipe early changes neither stderr nor the exit status."""
    golden = write_vectors(tmp_path / "golden", trailingBytes=7 if status else 0)
    running = process("verify", two_cells, "--golden", golden)
    assert running.stdout is not None
    assert running.stderr is not None
    running.stdout.close()
    assert len(running.stderr.read().splitlines()) == (1 if status else 0)
    running.stderr.close()
    assert running.wait() == status


def test_a_terminal_without_unicode_still_gets_its_table() -> None:
    running = process("codecs", env={**os.environ, "LC_ALL": "C.UTF-8", "PYTHONIOENCODING": "ascii"})
    out, err = running.communicate()
    assert (running.returncode, err) == (0, "")
    assert "snappy" in out


def test_threads_of_a_command_take_short_turns() -> None:
    code = "import sys; from kfbench.cli import main; main(); print(sys.getswitchinterval(), file=sys.stderr)"
    ran = subprocess.run([sys.executable, "-c", code, "codecs"], capture_output=True, text=True, check=True)
    assert float(ran.stderr) == pytest.approx(TURN_S)
