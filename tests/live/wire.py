"""The requests of Kafka's protocol that tests need, encoded by kafka-python. No client changes the bytes of a batch."""

import socket
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

with warnings.catch_warnings():
    warnings.filterwarnings("ignore", r"(read|open)_text is deprecated", DeprecationWarning)
    from kafka import errors
    from kafka.protocol.admin import CreateTopicsRequest
    from kafka.protocol.metadata import ApiVersionsRequest, FindCoordinatorRequest
    from kafka.protocol.parser import KafkaProtocol
    from kafka.protocol.producer import AddPartitionsToTxnRequest, EndTxnRequest, InitProducerIdRequest, ProduceRequest

VERSIONS: dict[Any, tuple[int, ...]] = {
    ProduceRequest: (0, 1, 2, 3, 7, 8),
    FindCoordinatorRequest: (1,),
    CreateTopicsRequest: (2,),
    InitProducerIdRequest: (1,),
    AddPartitionsToTxnRequest: (0,),
    EndTxnRequest: (0,),
}
"""The versions of requests that are used. They have no tagged fields."""
NONE = 0
UNKNOWN_SERVER_ERROR, CORRUPT_MESSAGE = errors.UnknownError.errno, errors.CorruptRecordError.errno
INVALID_TIMESTAMP, INVALID_RECORD = errors.InvalidTimestampError.errno, errors.InvalidRecordError.errno
OUT_OF_ORDER_SEQUENCE_NUMBER = errors.OutOfOrderSequenceNumberError.errno
NOT_YET = {
    each.errno
    for each in (
        errors.UnknownTopicOrPartitionError,
        errors.LeaderNotAvailableError,
        errors.NotLeaderForPartitionError,
        errors.CoordinatorLoadInProgressError,
        errors.CoordinatorNotAvailableError,
        errors.NotCoordinatorError,
        errors.ConcurrentTransactionsError,
    )
}
WAIT_S = 30


@dataclass(frozen=True, kw_only=True)
class Produced:
    """The broker's answer to a produced batch."""

    error: int
    base_offset: int
    append_time_ms: int = -1


class Producer(NamedTuple):
    id: int
    epoch: int


class Wire:
    """A connection to a broker. Its methods send one request each."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=WAIT_S)
        self._protocol = KafkaProtocol(client_id="kfbench")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def ask(self, request: Any, error_of: Callable[[Any], int] = lambda answer: answer.error_code) -> Any:
        """Send a request and return its answer. Repeat it while the broker does not know a new topic or producer."""
        deadline = time.monotonic() + WAIT_S
        while True:
            self._protocol.send_request(request)
            self._socket.sendall(self._protocol.send_bytes())
            answers: list[Any] = []
            while not answers:
                data = self._socket.recv(1 << 16)
                if not data:
                    raise ConnectionError("the broker closed the connection")
                answers = self._protocol.receive_bytes(data)
            [(_, answer)] = answers
            if error_of(answer) not in NOT_YET or time.monotonic() > deadline:
                return answer
            time.sleep(0.05)

    def versions(self) -> dict[int, range]:
        """Return the lowest and highest version of each API that the broker accepts."""
        answer = self.ask(ApiVersionsRequest[0]())
        return {each.api_key: range(each.min_version, each.max_version + 1) for each in answer.api_keys}

    def create_topic(self, name: str, partitions: int = 1, **configs: str) -> None:
        """Create a topic. configs: Kafka's configuration names with _ in place of dots."""
        topic = CreateTopicsRequest.CreatableTopic
        given = [topic.CreatableTopicConfig(name=key.replace("_", "."), value=configs[key]) for key in configs]
        asked = topic(name=name, num_partitions=partitions, replication_factor=1, assignments=[], configs=given)
        request = CreateTopicsRequest[2](topics=[asked], timeout_ms=1000 * WAIT_S, validate_only=False)
        assert self.ask(request, lambda answer: answer.topics[0].error_code).topics[0].error_code == NONE

    def produce(
        self, topic: str, records: bytes, partition: int = 0, version: int = 8, transactional_id: str | None = None
    ) -> Produced:
        """Send a batch and return the answer."""
        data = ProduceRequest.TopicProduceData
        batch = data.PartitionProduceData(index=partition, records=records)
        request = ProduceRequest[version](
            transactional_id=transactional_id, acks=-1, timeout_ms=1000 * WAIT_S,
            topic_data=[data(name=topic, partition_data=[batch])],
        )  # fmt: skip
        answer = self.ask(request, lambda answer: answer.responses[0].partition_responses[0].error_code)
        [found] = answer.responses[0].partition_responses
        return Produced(error=found.error_code, base_offset=found.base_offset, append_time_ms=found.log_append_time_ms)

    def init_producer_id(self, transactional_id: str | None = None) -> Producer:
        if transactional_id:
            self.ask(FindCoordinatorRequest[1](key=transactional_id, key_type=1))
        request = InitProducerIdRequest[1](transactional_id=transactional_id, transaction_timeout_ms=1000 * WAIT_S)
        answer = self.ask(request)
        assert answer.error_code == NONE
        return Producer(answer.producer_id, answer.producer_epoch)

    def add_partition(self, transactional_id: str, producer: Producer, topic: str, partition: int = 0) -> None:
        asked = AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(name=topic, partitions=[partition])
        request = AddPartitionsToTxnRequest[0](
            v3_and_below_transactional_id=transactional_id, v3_and_below_producer_id=producer.id,
            v3_and_below_producer_epoch=producer.epoch, v3_and_below_topics=[asked],
        )  # fmt: skip

        def error_of(answer: Any) -> int:
            [found] = answer.results_by_topic_v3_and_below[0].results_by_partition
            return int(found.partition_error_code)

        assert error_of(self.ask(request, error_of)) == NONE

    def end_transaction(self, transactional_id: str, producer: Producer, commit: bool) -> None:
        request = EndTxnRequest[0](
            transactional_id=transactional_id, producer_id=producer.id, producer_epoch=producer.epoch, committed=commit
        )
        assert self.ask(request).error_code == NONE
