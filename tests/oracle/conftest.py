"""One JVM for all that asks Kafka; the number of verdicts, and notes of tests, stand in pytest's summary."""

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.oracle.client import Kafka

VERDICTS = pytest.StashKey[Counter[str]]()
NOTES = pytest.StashKey[list[str]]()


@pytest.fixture(scope="session")
def kafka(fetched: Callable[[Path], Path]) -> Iterator[Kafka]:
    with Kafka(fetched) as running:
        yield running


@pytest.fixture(scope="session")
def verdicts(pytestconfig: pytest.Config) -> Counter[str]:
    """Count here what was judged, by what it was."""
    return pytestconfig.stash.setdefault(VERDICTS, Counter())


@pytest.fixture(scope="session")
def notes(pytestconfig: pytest.Config) -> list[str]:
    """Lines for the summary."""
    return pytestconfig.stash.setdefault(NOTES, [])


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    for what, count in sorted(config.stash.get(VERDICTS, Counter()).items()):
        terminalreporter.write_line(f"{count:,} {what}")
    for note in config.stash.get(NOTES, list[str]()):
        terminalreporter.write_line(note)
