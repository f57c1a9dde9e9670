"""A real broker, shared by all tests of this folder. Each test has its own topics."""

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.live.wire import Wire
from tools import broker as kafka
from tools.broker import Broker


@pytest.fixture(scope="session")
def jars(fetched: Callable[[Path], Path]) -> Path:
    return fetched(kafka.POM)


@pytest.fixture(scope="session")
def broker(jars: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    with kafka.running(jars, tmp_path_factory.mktemp("broker")) as running:
        yield running


@pytest.fixture
def wire(broker: Broker) -> Iterator[Wire]:
    with Wire(broker.port) as connection:
        yield connection


NAMES = itertools.count()


@pytest.fixture
def topic() -> str:
    """Return a topic name that no other test has."""
    return f"topic-{next(NAMES)}"
