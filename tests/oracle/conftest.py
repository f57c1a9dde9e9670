"""The JVM that all oracle tests share. Pytest's summary shows the number of verdicts and the tests' notes."""

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
    """The number of judged batches and logs, by kind."""
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
