"""kfbench and Kafka refuse the same damaged batches, except for the listed differences."""

import struct
from collections import Counter
from collections.abc import Callable

import pytest

from kfbench import FORMATS, Records, read_log
from kfbench.codecs import CODECS
from kfbench.errors import CorruptLog
from tests.formats.fuzz import AFTER_MAGIC, sealed
from tests.fuzz.corpus import DamageSource
from tests.oracle.client import Kafka
from tests.oracle.differences import OF_READERS, difference
from tests.oracle.generate import MAGICS
from tests.reference import v01
from tests.reference.model import Message
from tests.sidecars import check_sidecar

SEED = 20261121
MUTANTS = 4000  # damaged logs per format, a third of them damaged under a codec

pytestmark = pytest.mark.oracle


def verdict(kafka: Kafka, data: bytes) -> str:
    """Compare how both readers judge a log, and return the result.

    Raise AssertionError for a difference that is not listed.
    """
    seen = kafka.read(data)
    error, refusal = seen["error"], None
    try:
        log = read_log(data)
    except CorruptLog as found:
        refusal, log = found, read_log(data, on_error="skip")
    if known := difference(OF_READERS, seen, refusal, log):
        return f"known difference: {known}"
    assert (error is None) == (refusal is None), f"Kafka: {error}; we: {refusal}"
    if error is None or refusal is None:
        check_sidecar(log, seen["batches"])
        assert log.trailing_bytes == seen["trailingBytes"]
        return "read by both"
    sound = seen["batches"][: error["batch"]]
    where = seen["batches"][error["batch"]]["position"] if error["stage"] != "nextBatch" else seen["validBytes"]
    assert refusal.position == where, f"Kafka: {error}; we: {refusal}"
    check_sidecar(read_log(data[:where]), sound)
    return "refused by both"


@pytest.mark.slow
@pytest.mark.parametrize("name", MAGICS)
def test_damaged_batches(name: str, kafka: Kafka, part: int, verdicts: Counter[str]) -> None:
    source, disagreements = DamageSource(name, SEED, recompress_every=3, first=AFTER_MAGIC), []
    for number in range(MUTANTS // part):
        data = source.damage(number)
        try:
            verdicts[f"damaged logs, judged by Apache Kafka and us, {verdict(kafka, data)}"] += 1
        except AssertionError as error:
            disagreements.append(f"{data.hex()}\n{error}")
    assert not disagreements, f"{len(disagreements)} logs; the smallest:\n{min(disagreements, key=len)}"


def small(name: str, codec: str) -> bytes:
    return bytes(FORMATS[name].encode(Records.from_lists([b"value"] * 3), codec=codec))


def an_inner_size_beyond_memory() -> bytes:
    inner = v01.inner_set(0, [Message(offset=0, value=b"value")]) + struct.pack(">qi", 1, 2**31 - 1) + bytes(20)
    return v01.wrapper(0, "gzip", [Message(offset=0)], CODECS["gzip"].compress(inner))


CASES: dict[str, Callable[[], bytes]] = {
    "memory": an_inner_size_beyond_memory,
    "empty with a codec": lambda: sealed(_patched(FORMATS["v2"].encode(Records.from_lists([]), [0, 0]).data, 22, 1)),
    "empty with codec 5": lambda: sealed(_patched(FORMATS["v2"].encode(Records.from_lists([]), [0, 0]).data, 22, 5)),
    "cut after a whole stream": lambda: sealed(small("v2", "snappy") + b"\0\0"),
    "reserved gzip flags": lambda: sealed(_patched(small("v2", "gzip"), 61 + 3, 0x80)),
}


def _patched(data: object, at: int, byte: int) -> bytes:
    patched = bytearray(data)  # type: ignore[call-overload]
    patched[at] = byte
    return bytes(patched)


@pytest.mark.parametrize("known", [known.name for known in OF_READERS])
def test_each_listed_difference_is_still_there(known: str, kafka: Kafka) -> None:
    assert verdict(kafka, CASES[known]()) == f"known difference: {known}"
