"""The commands of docs/first-hour.md exist. Run in order, they print what the page shows."""

import os
import re
import shlex
import shutil
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from kfbench.report.build import all_views

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "first-hour.md").read_text(encoding="utf-8")
EXACT = ("inspect", "what-if")  # their output depends only on bytes, so every shown line must be equal
INTERRUPTED = "# Ctrl-C"  # a comment after a command: interrupt it once rows are stored
STATUS = {"compare": (0, 3), "doctor": (0, 1)}  # exit statuses that depend on the machine
DATE = re.compile(r"(?<=mine/)(runs/)?\d{4}-\d\d-\d\d")


@dataclass(frozen=True, kw_only=True)
class Step:
    """A command of the page, and the lines of its output that the page shows."""

    command: str
    shown: tuple[str, ...]

    @property
    def words(self) -> list[str]:
        return shlex.split(self.command, comments=True)

    @property
    def subcommand(self) -> str | None:
        return self.words[1] if self.words[0] == ".venv/bin/kfbench" else None


def steps() -> list[Step]:
    found = []
    for block in re.findall(r"```console\n(.*?)```", PAGE, re.DOTALL):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, *shown = part.replace("\\\n", "").splitlines()
            found.append(Step(command=command, shown=tuple(line for line in shown if line.strip(" …"))))
    return found


STEPS = steps()
KFBENCH = [step for step in STEPS if step.subcommand]


def files() -> dict[str, str]:
    """Return the files that the reader shall write, by name. The name is in the line above the code block."""
    return dict(re.findall(r"`(\S+\.toml)`[^`]*:\n\n```toml\n(.*?)```", PAGE, re.DOTALL))


def test_the_page_has_commands_of_every_kind() -> None:
    assert {"inspect", "what-if", "run", "sweep", "compare", "doctor"} <= {step.subcommand for step in KFBENCH}
    assert [step for step in STEPS if step.command.endswith(INTERRUPTED)]
    assert files()


def test_pages_that_it_sends_to_are_in_the_report() -> None:
    paragraph = PAGE.partition("Then the page of your case")[2].partition("\n\n")[0].replace("\n", " ")
    asked = re.findall(r"\*([^*]+)\*", paragraph)
    assert asked and set(asked) <= {view.page.short for view in all_views() if view.page}


def printed(step: Step, folder: Path) -> str:
    """Run the command in `folder` and return its stdout. Raise AssertionError for an unexpected exit status."""
    command = step.command
    if today := next((path.name.partition(".")[0] for path in sorted(folder.glob("mine/runs/*"))), None):
        command = DATE.sub(rf"\g<1>{today}", command)
    if step.words[:2] == ["make", "report"]:  # `make report` would set up .venv again
        command = f".venv/bin/kfbench run {step.words[2].removeprefix('PROFILE=')}"
    with subprocess.Popen(
        ["bash", "-c", f"exec {command}" if command.endswith(INTERRUPTED) else command],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"COLUMNS": "200"},
    ) as process:
        if step.command.endswith(INTERRUPTED):
            deadline = time.monotonic() + 120
            while not list(folder.glob("mine/runs/*/measurements/part-*")):
                assert time.monotonic() < deadline and process.poll() is None
                time.sleep(0.05)
            process.send_signal(signal.SIGINT)
        out, complaints = process.communicate(timeout=300)
    allowed = (130,) if step.command.endswith(INTERRUPTED) else STATUS.get(step.subcommand or "", (0,))
    assert process.returncode in allowed, complaints
    return out


def comparable(line: str) -> str:
    """Return a line without a last column of one decimal. It is a CPU time, which differs from run to run."""
    return " ".join(re.sub(r"\s+[\d,]+\.\d$", "", line).split())


@pytest.mark.slow
@pytest.mark.thorough
@pytest.mark.spark
@pytest.mark.skipif(
    not (ROOT / ".venv" / "bin" / "kfbench").exists(), reason="the page types .venv/bin/kfbench: make setup"
)
def test_the_hour_in_its_order(tmp_path: Path) -> None:
    for name in (".venv", "datasets"):
        (tmp_path / name).symlink_to(ROOT / name)
    shutil.copytree(ROOT / "notebooks", tmp_path / "notebooks")
    (tmp_path / "reports").mkdir()
    for report in (ROOT / "reports").glob("[0-9]*"):
        (tmp_path / "reports" / report.name).symlink_to(report)
    for name, text in files().items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    for step in STEPS:
        out = printed(step, tmp_path)
        if step.words[:2] == ["make", "report"]:  # reports of the smoke profile are not published
            assert re.fullmatch(r"reports/unpublished/[\d-]+\.1\n", out) and (tmp_path / out.strip()).is_dir()
        if step.subcommand in EXACT:
            there = {comparable(line) for line in out.splitlines()}
            assert not [line for line in step.shown if comparable(line) not in there], step.command
