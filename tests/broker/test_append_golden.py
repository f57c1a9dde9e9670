"""Requests that Kafka's LogValidator refuses by an exception without an error of the protocol.

tests/test_golden.py compares all other requests, and what becomes of them, with Kafka's.
"""

from typing import Any

import pytest

from kfbench.broker.append import append
from kfbench.errors import CorruptLog, Refused, WouldLose
from kfbench.measure.golden.steps import append_options
from kfbench.measure.golden.vectors import GOLDEN, Sidecar, read_vector, vectors

VECTORS = [read_vector(GOLDEN, entry["name"]).sidecar for entry in vectors() if entry["category"] == "validate"]
NO_ERROR = "UNKNOWN_SERVER_ERROR"  # Kafka throws an exception for which the protocol has no error code

# Kafka's message -> our error, if Kafka's builder throws before its validator or if we need lossy=True.
OUR_ERRORS: dict[str, Any] = {
    "Transactional records are not supported": "UNSUPPORTED_FOR_MESSAGE_FORMAT",
    "ZStandard compression is not supported": "UNSUPPORTED_COMPRESSION_TYPE",
    "does not support record headers": WouldLose,
    "Invalid negative producer epoch": None,  # we accept it, because no format forbids it
    "key is skipped in PartialDefaultRecord": None,  # we accept it, because Kafka's refusal is a bug
}


def is_unnamed(sidecar: Sidecar) -> bool:
    return bool(sidecar.get("refused")) and sidecar["refused"]["error"] == NO_ERROR


@pytest.mark.parametrize("sidecar", [each for each in VECTORS if is_unnamed(each)], ids=lambda sidecar: sidecar["name"])
def test_where_kafka_has_no_error(sidecar: Sidecar) -> None:
    expected = next(expected for text, expected in OUR_ERRORS.items() if text in sidecar["refused"]["message"])
    source = bytes.fromhex(sidecar["source"])
    options = append_options(sidecar["spec"]["steps"][-1]) | {"lossy": False}
    if expected is None:
        append(source, None, **options)
    elif expected is WouldLose:
        with pytest.raises(WouldLose):
            append(source, None, **options)
    else:
        with pytest.raises(Refused) as refusal:
            append(source, None, **options)
        assert refusal.value.error == expected


def test_bytes_after_the_last_batch_are_refused() -> None:
    sidecar = next(sidecar for sidecar in VECTORS if sidecar["name"].startswith("validate_v2_to_v2_none"))
    source, options = bytes.fromhex(sidecar["source"]), append_options(sidecar["spec"]["steps"][-1])
    with pytest.raises(CorruptLog, match="length"):
        append(source + bytes(12) + b"\xff" * 20, None, **options)
