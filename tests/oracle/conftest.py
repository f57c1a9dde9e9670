"""The JVMs that the oracle tests share, one per version of Kafka.

The summary of pytest shows the number of compared batches and the tests' notes.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache
from pathlib import Path

import pytest

from tests.oracle.client import NEWER, OLDER, Kafka

VERDICTS = pytest.StashKey[Counter[str]]()
NOTES = pytest.StashKey[list[str]]()


@pytest.fixture(scope="session")
def running(fetched: Callable[..., Path]) -> Iterator[Callable[[str], Kafka]]:
    """Return a function that starts a version of Kafka at its first call."""
    with ExitStack() as stack:
        yield cache(lambda line: stack.enter_context(Kafka(line, fetched)))


@pytest.fixture(params=[OLDER, pytest.param(NEWER, marks=pytest.mark.thorough)])
def kafka(request: pytest.FixtureRequest, running: Callable[[str], Kafka]) -> Kafka:
    return running(request.param)


@pytest.fixture(params=[pytest.param(4, id="a quarter"), pytest.param(1, id="all", marks=pytest.mark.thorough)])
def part(request: pytest.FixtureRequest) -> int:
    """Return 4 to judge a quarter of the cases, 1 for all. Their seeds are fixed, so a quarter finds most faults."""
    return int(request.param)


@pytest.fixture(scope="session")
def verdicts(pytestconfig: pytest.Config) -> Counter[str]:
    """Return the counter of compared batches and logs by kind, which pytest's summary shows."""
    return pytestconfig.stash.setdefault(VERDICTS, Counter())


@pytest.fixture(scope="session")
def notes(pytestconfig: pytest.Config) -> list[str]:
    """Return the list of lines that tests add to pytest's summary."""
    return pytestconfig.stash.setdefault(NOTES, [])


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    for what, count in sorted(config.stash.get(VERDICTS, Counter()).items()):
        terminalreporter.write_line(f"{count:,} {what}")
    for note in config.stash.get(NOTES, list[str]()):
        terminalreporter.write_line(note)
