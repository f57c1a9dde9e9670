"""Compare `append` with Kafka's LogValidator.

Batches, records, counts and refusals are equal; bytes are, where they must be.
"""

import numpy as np
import pytest

from kfbench import read_log
from kfbench.broker.append import append
from kfbench.errors import CorruptLog, Refused, WouldLose
from tests.broker_vectors import BrokerVector, broker_vectors
from tests.sidecars import check_sidecar

VECTORS = broker_vectors("validate")
NO_ERROR = "UNKNOWN_SERVER_ERROR"  # Kafka throws an exception for which the protocol has no error code

# Kafka's message -> our error, if Kafka's builder throws before its validator or if we need lossy=True.
OUR_ERRORS = {
    "Transactional records are not supported": "UNSUPPORTED_FOR_MESSAGE_FORMAT",
    "Idempotent messages are not supported": "UNSUPPORTED_FOR_MESSAGE_FORMAT",
    "ZStandard compression is not supported": "UNSUPPORTED_COMPRESSION_TYPE",
    "does not support record headers": WouldLose,
    "Invalid negative timestamp": NO_ERROR,
    "Invalid negative producer epoch": None,  # we accept it, because no format forbids it
    "key is skipped in PartialDefaultRecord": None,  # we accept it, because Kafka's refusal is a bug
}


def of(*, refused: bool, unnamed: bool = False) -> list[BrokerVector]:
    return [
        vector
        for vector in VECTORS
        if bool(vector.refused) == refused
        and unnamed == (vector.refused is not None and vector.refused["error"] == NO_ERROR)
    ]


def test_there_are_vectors_of_each_kind() -> None:
    assert len(of(refused=False)) > 50
    assert len(of(refused=True)) > 20
    assert of(refused=True, unnamed=True)


@pytest.mark.sampled(30)
@pytest.mark.parametrize("vector", of(refused=False), ids=str)
def test_accepts_the_requests_that_kafka_accepts(vector: BrokerVector) -> None:
    done = append(vector.source, None, **vector.options)
    expected = vector.sidecar["validation"]
    assert {
        "maxTimestampMs": done.max_timestamp_ms.tolist(),
        "nextOffset": done.next_offset,
        "numRecordsConverted": done.converted_records,
        "messageSizeMaybeChanged": done.work.rewritten > 0,
    } == {name: expected[name] for name in ("nextOffset", "numRecordsConverted", "messageSizeMaybeChanged")} | {
        "maxTimestampMs": [expected["maxTimestampMs"]]
    }
    if vector.sidecar["byteExact"] or not expected["messageSizeMaybeChanged"]:
        assert bytes(done.data) == vector.expected
    log = read_log(done.data)
    placed = [  # another compression library may give other bytes
        batch | {"position": int(row["position"]), "size": int(row["size_bytes"]), "crc": int(row["crc"])}
        for batch, row in zip(vector.sidecar["batches"], log.batch_rows, strict=True)
    ]
    if "gzip_commit_to_zstd" in vector.name:
        assert log.batch_rows["is_control"].all()  # here Kafka turns control records into plain records
        return
    check_sidecar(log, placed)
    assert done.encoded.positions.tolist() == [0, len(done.data)]


@pytest.mark.sampled(30)
@pytest.mark.parametrize("vector", of(refused=True), ids=str)
def test_refuses_the_requests_that_kafka_refuses(vector: BrokerVector) -> None:
    given = np.frombuffer(vector.source, np.uint8).copy()
    with pytest.raises(Refused) as refusal:
        append(given, None, in_place=True, **vector.options)
    assert vector.refused is not None
    assert refusal.value.error == vector.refused["error"]
    assert bytes(given) == vector.source


@pytest.mark.parametrize("vector", of(refused=True, unnamed=True), ids=str)
def test_where_kafka_has_no_error(vector: BrokerVector) -> None:
    assert vector.refused is not None
    message = vector.refused["message"]
    expected = next(expected for text, expected in OUR_ERRORS.items() if text in message)
    options = vector.options | {"lossy": False}
    if expected is None:
        append(vector.source, None, **options)
    elif expected is WouldLose:
        with pytest.raises(WouldLose):
            append(vector.source, None, **options)
    else:
        with pytest.raises(Refused) as refusal:
            append(vector.source, None, **options)
        assert refusal.value.error == expected


def test_bytes_after_the_last_batch_are_refused() -> None:
    vector = next(vector for vector in VECTORS if vector.name.startswith("validate_v2_to_v2_none"))
    with pytest.raises(CorruptLog, match="length"):
        append(vector.source + bytes(12) + b"\xff" * 20, None)
