"""The requests of Kafka's protocol that tests need. They are packed by hand, so that no client changes a batch.

Kafka's sources define the messages in clients/src/main/resources/common/message. Only versions without tagged fields
are used.
"""

import socket
import struct
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Self, TypeVar

PRODUCE, FIND_COORDINATOR, API_VERSIONS, CREATE_TOPICS = 0, 10, 18, 19
INIT_PRODUCER_ID, ADD_PARTITIONS_TO_TXN, END_TXN = 22, 24, 26
PACKED_VERSIONS = {  # request versions, by API key
    PRODUCE: (0, 1, 2, 3, 7, 8),
    FIND_COORDINATOR: (1,),
    API_VERSIONS: (0,),
    CREATE_TOPICS: (2,),
    INIT_PRODUCER_ID: (1,),
    ADD_PARTITIONS_TO_TXN: (0,),
    END_TXN: (0,),
}

UNKNOWN_SERVER_ERROR = -1
NONE, CORRUPT_MESSAGE, UNKNOWN_TOPIC_OR_PARTITION, LEADER_NOT_AVAILABLE, NOT_LEADER = 0, 2, 3, 5, 6
COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR = 14, 15, 16
INVALID_TIMESTAMP, OUT_OF_ORDER_SEQUENCE_NUMBER = 32, 45
CONCURRENT_TRANSACTIONS, INVALID_RECORD = 51, 87
NOT_YET = {
    *(UNKNOWN_TOPIC_OR_PARTITION, LEADER_NOT_AVAILABLE, NOT_LEADER),
    *(COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR, CONCURRENT_TRANSACTIONS),
}
WAIT_S = 30


@dataclass(frozen=True, kw_only=True)
class Produced:
    """The broker's answer to a produced batch."""

    error: int
    base_offset: int
    append_time_ms: int = -1
    message: str | None = None


class Producer(NamedTuple):
    id: int
    epoch: int


class Answer:
    """Read the fields of an answer one after another."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def numbers(self, kinds: str) -> tuple[int, ...]:
        found = struct.unpack_from(f">{kinds}", self._data, self._at)
        self._at += struct.calcsize(f">{kinds}")
        return found

    def number(self, kind: str) -> int:
        return self.numbers(kind)[0]

    def text(self) -> str | None:
        length = self.number("h")
        if length < 0:
            return None
        self._at += length
        return self._data[self._at - length : self._at].decode()

    def done(self) -> bool:
        return self._at == len(self._data)


def text(value: str | None) -> bytes:
    if value is None:
        return struct.pack(">h", -1)
    return struct.pack(">h", len(value.encode())) + value.encode()


class Wire:
    """A connection to a broker. Its methods send one request each."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=WAIT_S)
        self._correlation = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def ask(self, api: int, version: int, body: bytes) -> Answer:
        assert version in PACKED_VERSIONS[api]
        self._correlation += 1
        request = struct.pack(">hhi", api, version, self._correlation) + text("kfbench") + body
        self._socket.sendall(struct.pack(">i", len(request)) + request)
        answer = self._exactly(struct.unpack(">i", self._exactly(4))[0])
        assert struct.unpack_from(">i", answer)[0] == self._correlation
        return Answer(answer[4:])

    def _exactly(self, size: int) -> bytes:
        parts = bytearray()
        while len(parts) < size:
            part = self._socket.recv(size - len(parts))
            if not part:
                raise ConnectionError("the broker closed the connection")
            parts += part
        return bytes(parts)

    def versions(self) -> dict[int, range]:
        """Return the lowest and highest version of each API that the broker accepts."""
        answer = self.ask(API_VERSIONS, 0, b"")
        assert answer.number("h") == NONE
        found = {}
        for _ in range(answer.number("i")):
            api, least, most = answer.numbers("hhh")
            found[api] = range(least, most + 1)
        return found

    def create_topic(self, name: str, partitions: int = 1, **configs: str) -> None:
        """Create a topic. configs: Kafka's configuration names with _ in place of dots."""
        body = struct.pack(">i", 1) + text(name) + struct.pack(">ihii", partitions, 1, 0, len(configs))
        body += b"".join(text(key.replace("_", ".")) + text(value) for key, value in configs.items())
        answer = self.ask(CREATE_TOPICS, 2, body + struct.pack(">i?", 1000 * WAIT_S, False))
        _, topics = answer.numbers("ii")
        assert (topics, answer.text(), answer.number("h"), answer.text()) == (1, name, NONE, None)

    def produce(
        self, topic: str, records: bytes, partition: int = 0, version: int = 8, transactional_id: str | None = None
    ) -> Produced:
        """Send a batch and return the answer. Wait if the partition is new and has no leader yet."""
        body = text(transactional_id) if version >= 3 else b""
        body += struct.pack(">hii", -1, 1000 * WAIT_S, 1) + text(topic)
        body += struct.pack(">iii", 1, partition, len(records)) + records
        return retried(lambda: self._produce(version, body), lambda produced: produced.error)

    def _produce(self, version: int, body: bytes) -> Produced:
        answer = self.ask(PRODUCE, version, body)
        answer.number("i")
        answer.text()
        _, _, error, base_offset = answer.numbers("iihq")
        append_time_ms = answer.number("q") if version >= 2 else -1
        if version >= 5:
            answer.number("q")  # log start offset, skipped
        message = None
        if version >= 8:
            errors = [f"record {answer.number('i')}: {answer.text()}" for _ in range(answer.number("i"))]
            message = "; ".join(filter(None, [answer.text(), *errors])) or None
        if version >= 1:
            answer.number("i")  # throttle time, skipped
        assert answer.done()
        return Produced(error=error, base_offset=base_offset, append_time_ms=append_time_ms, message=message)

    def init_producer_id(self, transactional_id: str | None = None) -> Producer:
        if transactional_id:
            retried(
                lambda: self.ask(FIND_COORDINATOR, 1, text(transactional_id) + b"\1").numbers("ih"),
                lambda found: found[1],
            )
        body = text(transactional_id) + struct.pack(">i", 1000 * WAIT_S)
        _, error, producer_id, epoch = retried(
            lambda: self.ask(INIT_PRODUCER_ID, 1, body).numbers("ihqh"), lambda found: found[1]
        )
        assert error == NONE
        return Producer(producer_id, epoch)

    def add_partition(self, transactional_id: str, producer: Producer, topic: str, partition: int = 0) -> None:
        body = text(transactional_id) + struct.pack(">qhi", *producer, 1) + text(topic)
        body += struct.pack(">ii", 1, partition)

        def ask() -> int:
            answer = self.ask(ADD_PARTITIONS_TO_TXN, 0, body)
            answer.numbers("ii")
            answer.text()
            return answer.numbers("iih")[2]

        assert retried(ask, lambda error: error) == NONE

    def end_transaction(self, transactional_id: str, producer: Producer, commit: bool) -> None:
        body = text(transactional_id) + struct.pack(">qh?", *producer, commit)
        error = retried(lambda: self.ask(END_TXN, 0, body).numbers("ih")[1], lambda error: error)
        assert error == NONE


T = TypeVar("T")


def retried(ask: Callable[[], T], error_of: Callable[[T], int]) -> T:
    """Repeat a request until it succeeds, because a broker may not know a new topic at once."""
    deadline = time.monotonic() + WAIT_S
    while True:
        found = ask()
        if error_of(found) not in NOT_YET or time.monotonic() > deadline:
            return found
        time.sleep(0.05)
