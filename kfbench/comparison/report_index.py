"""The index of a folder of reports: a page that lists them, and shows the comparison of two of them."""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Final, NamedTuple

from kfbench.comparison import THRESHOLD
from kfbench.comparison.compare import compare
from kfbench.comparison.text import comparison_text
from kfbench.errors import RunError
from kfbench.report.data import noise
from kfbench.report.data.results import Results
from kfbench.report.data.views import Views
from kfbench.report.files import html
from kfbench.report.publish import order
from kfbench.report.topics.front import front
from kfbench.store import open_run

PAGE: Final = "index.html"
MOST_COMPARED: Final = 5  # the newest reports of a profile; each pair of them takes about 2 s


class Entry(NamedTuple):
    """A report of the folder. verdict: its first sentences, or the reason why it cannot be read."""

    name: str
    verdict: str
    profile: str = ""
    machine: str = ""
    noise: str = ""
    is_readable: bool = True
    is_noisy: bool = True


class Pair(NamedTuple):
    """Two reports of a profile, the older one first.

    text: the words of `kfbench compare`. is_alike: both runs were quiet, on machines of one kind.
    """

    older: str
    newer: str
    text: str
    is_alike: bool


NamePairs = Sequence[tuple[str, str]]  # the newer report first


def index_html(folder: Path, track: Callable[[NamePairs], Iterable[tuple[str, str]]] = iter) -> str:
    """Return the page. A report that cannot be read has a row with the reason.

    track: a function that yields the pairs and shows the progress. Raises RunError if the folder has no reports.
    """
    names = sorted((path.parent for path in folder.glob("[0-9]*.*/manifest.json")), key=order, reverse=True)
    if not names:
        raise RunError(f"{folder}: no reports; make one with: kfbench run PROFILE --out {folder}")
    entries = [_entry(path) for path in names]
    newest: dict[str, list[str]] = {}
    for entry in entries:
        if entry.is_readable:
            newest.setdefault(entry.profile, []).append(entry.name)
    wanted = [pair for found in newest.values() for pair in combinations(found[:MOST_COMPARED], 2)]
    content = {
        "entries": entries,
        "pairs": _pairs(folder, track(wanted), {entry.name: entry for entry in entries}),
        "removed": "README.md" if (folder / "README.md").is_file() else "",
    }
    return html(content, (), "reports.html")


def place(text: str, folder: Path) -> Path:
    """Write the page into the folder, and return its path. A reader sees the old page or the whole new one."""
    page = folder / PAGE
    unfinished = page.with_name(f".{PAGE}.{os.getpid()}")
    try:
        unfinished.write_text(text, encoding="utf-8")
        unfinished.replace(page)
    finally:
        unfinished.unlink(missing_ok=True)
    return page


def _entry(path: Path) -> Entry:
    try:
        run = open_run(path)
        results = Results(run.measurements())
        facts = run.manifest.get("noise")
        environment = run.manifest["environment"]
        machine = ", ".join(str(environment[name]) for name in ("cpu", "cpu_model") if environment.get(name))
        words = front(Views(results, facts))
        lead = f"{words.headline} {words.lead}".strip()
        is_noisy = not facts or bool(facts["noisy"])
        return Entry(path.name, lead, str(run.manifest["profile"]), machine, noise.state(facts), is_noisy=is_noisy)
    except RunError as error:
        return Entry(path.name, str(error).replace(f"{path.parent}/", ""), is_readable=False)


def _pairs(folder: Path, wanted: Iterable[tuple[str, str]], entries: Mapping[str, Entry]) -> list[Pair]:
    found = []
    for newer, older in wanted:
        try:
            text = comparison_text(compare(folder / older, folder / newer, THRESHOLD))
        except RunError as error:  # for example, the runs have no cell in common
            text = str(error)
        kinds = {(entries[name].machine, entries[name].noise) for name in (older, newer)}
        is_alike = len(kinds) == 1 and not entries[newer].is_noisy
        found.append(Pair(older, newer, text.replace(f"{folder}/", ""), is_alike))
    return found
