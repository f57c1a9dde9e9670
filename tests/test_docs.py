"""Documentation pages: links lead somewhere, no host is named, the index links every page, and the code works."""

import importlib.util
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import typer.main
from asv.commands import make_argparser  # type: ignore[import-untyped]

import kfbench
from kfbench.cli import app

ROOT = Path(__file__).parents[1]
FOLDERS = ("docs", "datasets", "notebooks", "kfbench", "benchmarks", "tools")
PAGES = sorted(
    path
    for path in (
        *ROOT.glob("*.md"),
        ROOT / "reports" / "README.md",
        *(page for name in FOLDERS for page in (ROOT / name).rglob("*.md")),
    )
    if "templates" not in path.relative_to(ROOT).parts
)
LINK = re.compile(r"\]\(([^)\s]+)\)")
# A command line: a program, perhaps with its folder, and its arguments.
TYPED = re.compile(r"""^(?:\$ )?(?:\w+=\S+ )*(?:\S*/)?(?:(python3?) -m|(kfbench|asv)) (.*)""")
FENCED = re.compile(r"^```\w*\n(.*?)^```", re.MULTILINE | re.DOTALL)
# A path in backquotes that starts with a top-level folder of this repository.
PLACE = re.compile(r"`((?:kfbench|tests|tools|datasets|docs|benchmarks|notebooks)/[\w./-]*)`")
EXAMPLES = {"host", "broker", "127.0.0.1"}  # host names that a reader replaces; any port is allowed


def options_of(command: Any) -> set[str]:
    """Return the options of a command, or of all commands in a group such as `dictionary`."""
    own = {option for parameter in command.params for option in parameter.opts}
    return own.union(*map(options_of, getattr(command, "commands", {}).values()))


# Program -> command -> its options.
OPTIONS: dict[str, dict[str, set[str]]] = {
    "kfbench": {
        name: options_of(command)
        for name, command in typer.main.get_command(app).commands.items()  # type: ignore[attr-defined]
    },
    "asv": {name: set(parser._option_string_actions) for name, parser in make_argparser()[1].choices.items()},
}
every_page = pytest.mark.parametrize("page", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())


def text(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def anchors(page: Path) -> set[str]:
    """Return the link anchors of a page. In Markdown they are made from its headings."""
    if page.suffix == ".html":
        return set(re.findall(r' id="([\w-]+)"', text(page)))
    headings = re.findall(r"^#+ (.*)$", text(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@every_page
def test_links_lead_somewhere(page: Path) -> None:
    missing = []
    for link in LINK.findall(text(page)):
        if urlsplit(link).scheme:
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            missing.append(link)
    assert not missing


@every_page
def test_paths_that_are_named_are_there(page: Path) -> None:
    named = {place for place in PLACE.findall(text(page)) if not re.search("NAME", place)}
    assert not [place for place in named if not (ROOT / place).exists()]


@every_page
def test_no_page_names_a_host(page: Path) -> None:
    hosts = re.findall(r"\w://(?:https?://)?([\w.-]+)", text(page))
    assert {host.lower() for host in hosts} <= EXAMPLES


def code(page: Path) -> str:
    """Return the code on a page: fenced blocks and indented lines. Lines that end in a backslash are joined."""
    indented = [line for line in FENCED.sub("", text(page)).splitlines() if line.startswith("    ")]
    return "\n".join([*FENCED.findall(text(page)), *indented]).replace("\\\n", " ")


def commands_of(line: str) -> Iterator[tuple[str, list[str]]]:
    """Yield each command in a line: the program or module, and its arguments."""
    for part in re.split(r" (?:&&|\|) ", line.partition("  #")[0]):
        if found := TYPED.match(part.strip()):
            words = shlex.split(found[3], comments=True)
            yield (words[0], words[1:]) if found[1] else (found[2], words)


@every_page
def test_commands_and_their_options_exist(page: Path) -> None:
    for line in code(page).splitlines():
        for program, words in commands_of(line):
            assert program in OPTIONS or importlib.util.find_spec(program), line
            if program in OPTIONS and words[0] not in ("--version", "[OPTIONS]"):
                name, *rest = words
                assert name in OPTIONS[program], line
                options = {word.partition("=")[0] for word in rest if word.startswith("--")}
                assert options <= OPTIONS[program][name], line


@every_page
def test_targets_that_are_named_exist(page: Path) -> None:
    targets = set(re.findall(r"^([a-z]+):", text(ROOT / "Makefile"), re.MULTILINE))
    named = re.findall(r"^ *(?:\$ )?make ([a-z]+)", code(page), re.MULTILINE) + re.findall(
        r"`make ([a-z]+)", text(page)
    )
    assert set(named) <= targets


def test_the_python_of_readme_runs() -> None:
    (example,) = re.findall(r"```python\n(.*?)```", text(ROOT / "README.md"), re.DOTALL)
    done = subprocess.run([sys.executable, "-c", example], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "ratio_to_v2" in done.stdout


def test_every_page_is_in_the_index() -> None:
    index = text(ROOT / "docs" / "README.md")
    linked = {link.rstrip("/") for link in LINK.findall(index)}
    there = {path.name for path in (ROOT / "docs").glob("*.md")} | {"adr"}
    assert there - {"README.md"} <= linked


def test_the_readme_leads_to_the_index() -> None:
    assert {"docs/README.md", "docs/first-hour.md", "notebooks"} <= {
        link.rstrip("/") for link in LINK.findall(text(ROOT / "README.md"))
    }


def test_the_citation_is_of_this_version() -> None:
    citation = text(ROOT / "CITATION.cff")
    assert f"\nversion: {kfbench.__version__}\n" in citation
    assert "\nlicense: Apache-2.0\n" in citation


@pytest.mark.slow
def test_contributing_shows_a_format_that_works() -> None:
    page = text(ROOT / "CONTRIBUTING.md")
    (module,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    scope: dict[str, Any] = {}
    exec(compile(module, "lean.py", "exec"), scope)
    (lean,) = scope["FORMATS"]
    records = kfbench.Records.from_lists([b"value"] * 50, keys=[b"key"] * 50)
    encoded = lean.encode(records)
    assert len(encoded.data) == lean.size(records).sum() < kfbench.FORMATS["v3"].size(records).sum()
    assert lean.decode(encoded).records.value(49) == b"value"
