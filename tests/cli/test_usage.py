"""Help, wrong usage, missing files and unexpected errors of every command."""

import os
import re
import subprocess
import sys
from collections.abc import Callable
from inspect import signature
from pathlib import Path
from typing import Any

import pytest
import typer.main

from kfbench.cli import app
from kfbench.cli.app import HELP_ALL, LOGS, RARE, LongCommand
from kfbench.cli.logs import migrate, what_if
from kfbench.money import Prices, Traffic
from tests.cli.command import Run

HEAVY = {"cramjam", "jinja2", "matplotlib", "numba", "numpy", "pandas", "pyarrow", "pyspark", "rich", "scipy"}
COMMANDS: dict[str, Any] = typer.main.get_command(app).commands  # type: ignore[attr-defined]


def test_help_names_every_command_once(kfbench: Run) -> None:
    done = kfbench("--help")
    assert done.status == 0
    groups = done.out.partition(f"\n{LOGS}:\n")[2].splitlines()
    assert sorted(line.split()[0] for line in groups if line.startswith("  ")) == sorted(COMMANDS)
    assert kfbench() == done


@pytest.mark.parametrize("columns", ["80", "120"])
@pytest.mark.parametrize("name", [name for name, each in COMMANDS.items() if isinstance(each, LongCommand)])
def test_help_fits_a_screen_and_help_all_has_the_other_options(
    kfbench: Run, monkeypatch: pytest.MonkeyPatch, name: str, columns: str
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    short, whole = kfbench(name, "--help"), kfbench(name, HELP_ALL)
    assert short.status == whole.status == 0 and short.out.count("\n") < 36
    words = {each.name: re.compile(rf"^ *{each.opts[0]}\b(?!-)", re.MULTILINE) for each in COMMANDS[name].params}
    assert all(word.search(whole.out) for option, word in words.items() if option not in ("sources", "logs"))
    left_out = {option for option, word in words.items() if option in RARE and not word.search(short.out)}
    assert left_out == RARE & {*words}


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
    assert LOGS in done.stdout
    assert not HEAVY & {name.partition(".")[0] for name in done.stdout.split()}


@pytest.mark.parametrize("command", [what_if, migrate])
def test_defaults_of_options_are_those_of_the_library(command: Callable[..., None]) -> None:
    parameters = signature(command).parameters.values()
    given = {each.name.removeprefix("price_"): each.default for each in parameters}
    ours = vars(Prices()) | vars(Traffic())
    both = given.keys() & ours.keys()
    assert {"network_gb", "fan_out"} <= both and {name: given[name] for name in both} == {
        name: ours[name] for name in both
    }


def test_version(kfbench: Run) -> None:
    assert kfbench("--version") == (0, "kfbench 0.1.0\n", "")


@pytest.mark.parametrize("place", [0, 1, 2])
def test_debug_shows_the_traceback_wherever_it_stands(kfbench: Run, tmp_path: Path, place: int) -> None:
    arguments = ["inspect", str(tmp_path / "nowhere.log")]
    assert "Traceback" not in kfbench(*arguments).err
    arguments.insert(place, "--debug")
    done = kfbench(*arguments)
    assert done.status == 1
    assert done.err.startswith("Traceback")
    assert done.err.splitlines()[-1].startswith("kfbench: ")


def test_unforeseen_failures_are_one_line_too(kfbench: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    @app.command(name="break")
    def broken() -> None:
        raise ValueError("first line\nsecond line")

    try:
        line = kfbench("break").refused()
    finally:
        app.registered_commands.pop()
    assert line == "kfbench: ValueError: first line second line (unexpected; --debug shows where)\n"
