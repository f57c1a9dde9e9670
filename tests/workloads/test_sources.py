"""Every number in datasets/workloads has a source, or is marked as an assumption."""

import re
from pathlib import Path

import pytest

from kfbench.workloads.catalogue import FILES
from kfbench.workloads.named.file import WORDS, load, parameters

PATHS = sorted(FILES.glob("*.toml"))
MARK = "assumed"
NAMED = re.compile(
    r"""\b(19|20)\d\d\b | @\ [0-9a-f]{8} | \b(KIP-|RFC\ )\d+ | \b(since|before|version|section|pull\ request)\ \d
    | \b\d+\.\d+\.\d | \b\w+\.(java|json|cc|yaml)\b | \b[a-z]\w*/\w+ | [A-Z][a-z]+[A-Z]\w+
    | \b([a-z]+\.){1,5}[a-z]+(=|:\ |$) | \bmeasured\ (on|for)\b | \bformat\b""",
    re.VERBOSE,
)


def names_something(source: str) -> bool:
    """Return True if the text is an assumption or names a place.

    A place is a year, commit, version, section, file, class or setting.
    """
    return source.startswith(f"{MARK}: ") or bool(NAMED.search(source))


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_every_number_and_every_template_has_a_source(path: Path) -> None:
    found = parameters(path)
    assert any(isinstance(each.value, int | float | list) for each in found)
    assert [each.path for each in found if each.source is None and each.path.rpartition(".")[2] not in WORDS] == []


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_what_is_assumed_is_said_to_be(path: Path) -> None:
    found = parameters(path)
    sources = [each.source for each in found if each.source is not None]
    # Expected compression bands are not published. Their text says how they were derived.
    published = [each.source for each in found if each.source and "bands" not in each.path.split(".")]
    assert [source for source in published if not names_something(source)] == []
    assumed = [source for source in sources if source.lower().startswith(MARK)]
    assert all(source.startswith(f"{MARK}: ") for source in assumed)
    assert bool(assumed) <= bool(load(path).assumptions)


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_a_workload_says_what_it_is_for(path: Path) -> None:
    model = load(path)
    assert model.question.endswith("?") and len(model.story) > 150
    assert len(model.summary) <= 120 and not model.summary.endswith(".")
