"""Real brokers of two versions, shared by all tests of this folder. Each test has its own topics."""

import itertools
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.live.wire import Wire
from tests.oracle.client import NEWER, OLDER
from tools import broker as kafka
from tools.broker import Broker

POMS = {OLDER: kafka.POM, NEWER: Path(__file__).with_name("pom-4.4.xml")}
"""Versions of Kafka, and the Maven files that have their brokers."""
ANY_TIMESTAMP = f"log.message.timestamp.after.max.ms={2**63 - 1}"
"""A setting that takes all timestamps. Kafka 4's default refuses those more than an hour ahead of the broker."""


class Server(NamedTuple):
    """A running broker, and the folder of its version's jars."""

    broker: Broker
    jars: Path


@pytest.fixture(scope="session")
def servers(
    fetched: Callable[[Path], Path], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[..., Server]]:
    """Return a function that starts a broker of a version, with some settings, at its first call."""
    with ExitStack() as stack:

        @cache
        def start(line: str, settings: tuple[str, ...] = (ANY_TIMESTAMP,)) -> Server:
            jars = fetched(POMS[line])
            folder = tmp_path_factory.mktemp("broker")
            return Server(stack.enter_context(kafka.running(jars, folder, settings=settings)), jars)

        yield start


@pytest.fixture(params=[OLDER, NEWER])
def server(request: pytest.FixtureRequest, servers: Callable[..., Server]) -> Server:
    return servers(request.param)


@pytest.fixture
def broker(server: Server) -> Broker:
    return server.broker


@pytest.fixture
def jars(server: Server) -> Path:
    return server.jars


@pytest.fixture
def wire(broker: Broker) -> Iterator[Wire]:
    with Wire(broker.port) as connection:
        yield connection


NAMES = itertools.count()


@pytest.fixture
def topic() -> str:
    """Return a topic name that no other test has."""
    return f"topic-{next(NAMES)}"
