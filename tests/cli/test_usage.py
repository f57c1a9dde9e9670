"""Help, wrong usage, missing files and unexpected errors of every command."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import typer.main

from kfbench.cli import app
from kfbench.cli.app import REMOVED
from tests.cli.command import Run

HEAVY = {"cramjam", "jinja2", "matplotlib", "numba", "numpy", "pandas", "pyarrow", "pyspark", "rich", "scipy"}
COMMANDS = typer.main.get_command(app).commands.keys()  # type: ignore[attr-defined]


def test_help_names_every_command(kfbench: Run) -> None:
    done = kfbench("--help")
    assert done.status == 0
    listed = done.out.partition("Commands:")[2]
    assert {line.split()[0] for line in listed.strip().splitlines()} == COMMANDS
    assert kfbench() == done


def test_a_shell_completes_commands_and_options() -> None:
    for words, number, wanted in (("kfbench wh", 1, "what-if"), ("kfbench what-if --fo", 2, "--format")):
        asked = {"_KFBENCH_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(number)}
        command = [sys.executable, "-m", "kfbench"]
        done = subprocess.run(command, env=os.environ | asked, capture_output=True, text=True, timeout=60)
        assert done.stdout.split() == [wanted], done.stderr


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_each_command_has_help(kfbench: Run, command: str) -> None:
    done = kfbench(command, "--help")
    assert done.status == 0
    assert done.out.startswith(f"Usage: kfbench {command} ")


def test_help_imports_nothing_heavy() -> None:
    code = "import sys; from kfbench.cli import main; main(); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code, "--help"], capture_output=True, text=True, check=True)
    assert "Commands:" in done.stdout
    assert not HEAVY & {name.partition(".")[0] for name in done.stdout.split()}


def test_version(kfbench: Run) -> None:
    assert kfbench("--version") == (0, "kfbench 0.1.0\n", "")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["no-such-command"], "no-such-command"),
        (["run"], "PROFILE"),
        (["formats", "--no-such-option"], "--no-such-option"),
        (["inspect"], "PATH"),
        (["verify", "smoke", "default"], "default"),
        (["verify", "--golden"], "--golden"),
    ],
)
def test_wrong_usage_is_one_line_and_status_2(kfbench: Run, arguments: list[str], said: str) -> None:
    assert said in kfbench(*arguments).refused(status=2)


@pytest.mark.parametrize("command", ["inspect", "what-if", "migrate", "report", "run", "sweep", "verify"])
def test_a_file_that_does_not_exist(kfbench: Run, tmp_path: Path, command: str) -> None:
    line = kfbench(command, tmp_path / "nowhere.toml").refused()
    assert str(tmp_path / "nowhere.toml") in line
    assert "no such file" in line.lower()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("place", [0, 1, 2])
def test_debug_shows_the_traceback_wherever_it_stands(kfbench: Run, tmp_path: Path, place: int) -> None:
    arguments = ["inspect", str(tmp_path / "nowhere.log")]
    assert "Traceback" not in kfbench(*arguments).err
    arguments.insert(place, "--debug")
    done = kfbench(*arguments)
    assert done.status == 1
    assert done.err.startswith("Traceback")
    assert done.err.splitlines()[-1].startswith("kfbench: ")


@pytest.mark.parametrize("command", REMOVED)
def test_a_removed_command_is_answered_by_what_to_use(kfbench: Run, command: str) -> None:
    line = kfbench(command, "RUN", "--out", "file.json").refused(status=2)
    assert REMOVED[command] in line and command not in COMMANDS


def test_a_name_after_two_dashes_is_no_option(kfbench: Run) -> None:
    assert kfbench("inspect", "--", "--debug").refused().startswith("kfbench: --debug: ")


def test_unforeseen_failures_are_one_line_too(kfbench: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    @app.command(name="break")
    def broken() -> None:
        raise ValueError("first line\nsecond line")

    try:
        line = kfbench("break").refused()
    finally:
        app.registered_commands.pop()
    assert line == "kfbench: ValueError: first line second line (unexpected; --debug shows where)\n"
