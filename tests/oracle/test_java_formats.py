"""The Java implementation of v2, v3, v3-headers-first and columnar writes our bytes and reads them as we do.

It was written from the specifications. So a difference is a fault of one side, or of the text.
"""

import random
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from kfbench import KfbenchError, read_log
from kfbench.formats import FORMATS
from tests.common import batch_fields_of, bounds_of, messages_of, records_of, reference_decode
from tests.formats.fuzz import sealed
from tests.oracle.generate import KAFKAS_NAMES, chunks, record_spec
from tests.reference.model import Batch, Message
from tests.research.columnar.cases import drawn
from tests.strategies import Case
from tools import java_formats
from tools.java_formats import CODECS, JavaFormats, JavaRefusesError

pytestmark = [pytest.mark.oracle, pytest.mark.slow]

SEED = 20261126
AT_ONCE = 40  # batches per request
SAMPLE, THOROUGH = 80, 6680  # generated batches per format and codec; thorough: 20,040 per format
DAMAGED, DAMAGED_THOROUGH = 300, 10_000  # per format
ATTRIBUTES_AT, HEADERS_FIRST = 21, 0x04  # high byte of the attributes, and its bit 10
LOW_ATTRIBUTES_AT, NO_RECORD_ATTRIBUTES = 22, 0x80  # Java has only variants of v3 with this bit
NAMES = KAFKAS_NAMES | {"base_timestamp_ms": "baseTimestamp", "max_timestamp_ms": "maxTimestamp"}
GOLDEN = Path(__file__).parents[2] / "datasets" / "golden"
COMBINATIONS = [(name, codec) for name in java_formats.FORMATS for codec in CODECS]


@pytest.fixture(scope="module", params=java_formats.VERSIONS)
def java(request: pytest.FixtureRequest, fetched: Callable[..., Path]) -> Iterator[JavaFormats]:
    with JavaFormats(request.param, fetched) as running:
        assert running.version == java_formats.VERSIONS[request.param]
        yield running


def generated(codec: str, batches: int) -> Iterator[Case]:
    """Yield cases: half of the batches as for Kafka's own writer, half with the shapes that columns are made for."""
    for chunk in chunks("v2", codec, SEED, batches // 2, AT_ONCE):
        yield chunk.case
    for first in range(0, batches - batches // 2, AT_ONCE):
        pairs = [drawn(SEED + seed) for seed in range(first, min(first + AT_ONCE, batches - batches // 2))]
        yield Case(batches=tuple(messages for messages, _ in pairs), fields=tuple(fields for _, fields in pairs))


@cache
def golden() -> tuple[Case, ...]:
    """Return the batches of all golden vectors that Kafka reads, many per case."""
    batches: list[Batch] = []
    for path in sorted(GOLDEN.glob("*.bin")):
        if '"error":null' in path.with_suffix(".json").read_text(encoding="utf-8"):
            batches += reference_decode("", path.read_bytes())[0]
    kept = [batch for batch in batches if batch.messages or batch.magic > 1]
    parts = [kept[first : first + AT_ONCE] for first in range(0, len(kept), AT_ONCE)]
    return tuple(
        Case(
            batches=tuple(tuple(batch.messages) for batch in part),
            fields=tuple(batch.fields(base_timestamp_ms=None) for batch in part),
        )
        for part in parts
    )


def specs(case: Case) -> list[dict[str, Any]]:
    """Return the case as a request for the Java writer."""
    return [
        {NAMES[name]: getattr(fields, name) for name in NAMES if getattr(fields, name) is not None}
        | {"records": [record_spec(message) for message in messages]}
        for messages, fields in zip(case.batches, case.fields, strict=True)
    ]


def encoded(name: str, codec: str, case: Case) -> list[bytes]:
    """Return our bytes, one item per batch."""
    log = FORMATS[name].encode(records_of(case.messages), bounds_of(case), codec, batch_fields=batch_fields_of(case))
    assert not log.losses
    data, positions = bytes(log), log.positions.tolist()
    return [data[start:end] for start, end in pairwise(positions)]


def judge(java: JavaFormats, name: str, codec: str, case: Case) -> None:
    """Compare bytes, and what each side reads from the other's."""
    ours = encoded(name, codec, case)
    theirs = java.write(name, codec, specs(case))
    if theirs != b"".join(ours):
        raise AssertionError(difference(java, name, codec, case, ours))
    ours_of_theirs = FORMATS[name].decode(theirs)
    assert messages_of(ours_of_theirs.source_records) == case.messages
    rows = java.read(b"".join(ours))
    check_read(rows, read_log(b"".join(ours)), case)


def difference(java: JavaFormats, name: str, codec: str, case: Case, ours: Sequence[bytes]) -> str:
    """Describe the shortest batch whose bytes differ."""
    found = []
    for spec, written, messages, fields in zip(specs(case), ours, case.batches, case.fields, strict=True):
        theirs = java.write(name, codec, [spec])
        if theirs != written:
            found.append(f"{name} {codec}\nours   {written.hex()}\nJava's {theirs.hex()}\n{fields}\n{messages}"[:4000])
    return min(found, key=len, default=f"{name} {codec}: only as a whole")


def check_read(rows: Sequence[dict[str, Any]], log: Any, case: Case) -> None:
    """Compare what Java reads with the drawn records and with the header fields that we read."""
    seen = iter(log.records.timestamps_ms.tolist())
    for row, batch, messages in zip(rows, log.batches.to_dict("records"), case.batches, strict=True):
        times = [next(seen) for _ in messages]
        expected = [record_spec(message) | {"timestamp": time} for message, time in zip(messages, times, strict=True)]
        assert row["records"] == expected
        assert row["skimmed"] == [[message.offset, time] for message, time in zip(messages, times, strict=True)]
        assert row["largest"] == largest(messages, times, batch["base_offset"])
        for field, javas in NAMES.items():
            key = {"transactional": "isTransactional", "control": "isControl"}.get(javas, javas)
            if key in row:
                assert row[key] == batch[field], field
        assert row["isAppendTime"] == (batch["timestamp_type"] == "append")
        assert row["hasHorizon"] == (batch["delete_horizon_ms"] != -1)


def largest(messages: Sequence[Message], times: Sequence[int], base_offset: int) -> int | str:
    """Return the largest time, or the refusal of an append whose offsets do not count from the first."""
    for i, message in enumerate(messages):
        if message.offset != base_offset + i:
            return f"offset {message.offset} of record {i}"
    return max(times, default=-1)


@pytest.mark.parametrize(("name", "codec"), COMBINATIONS)
def test_golden_vectors_agree(java: JavaFormats, name: str, codec: str) -> None:
    assert sum(len(case.batches) for case in golden()) > 200
    for case in golden():
        judge(java, name, codec, case)


@pytest.mark.parametrize("batches", [SAMPLE, pytest.param(THOROUGH, marks=pytest.mark.thorough)])
@pytest.mark.parametrize(("name", "codec"), COMBINATIONS)
def test_generated_batches_agree(java: JavaFormats, name: str, codec: str, batches: int) -> None:
    judged = 0
    for case in generated(codec, batches):
        judge(java, name, codec, case)
        judged += len(case.batches)
    assert judged == batches


def test_bytes_with_a_wrong_crc_or_length_are_refused(java: JavaFormats) -> None:
    case = next(generated("none", 2))
    for name in java_formats.FORMATS:
        whole = encoded(name, "none", case)[0]
        assert java.read(whole)
        with pytest.raises(JavaRefusesError, match="CRC"):
            java.read(whole[:-1] + bytes([whole[-1] ^ 1]))
        with pytest.raises(JavaRefusesError, match="bytes"):
            java.read(whole[:-1])


def damaged(name: str, number: int) -> Iterator[bytes]:
    """Yield batches without a codec in which one or two bytes are replaced, with the right CRC."""
    draw = random.Random(f"{name} {SEED}")
    whole = [data for case in generated("none", 400) for data in encoded(name, "none", case)]
    for _ in range(number):
        data = bytearray(draw.choice(whole))
        for _ in range(draw.choice([1, 1, 2])):
            at = draw.randrange(ATTRIBUTES_AT, min(len(data), draw.choice([60, 90, 200, 1 << 20])))
            data[at] = draw.choice([data[at] ^ 1 << draw.randrange(8), draw.randrange(256), 0xFF, 0])
        data[LOW_ATTRIBUTES_AT] &= 0xF8  # no codec
        if name.startswith("v3"):
            data[LOW_ATTRIBUTES_AT] |= NO_RECORD_ATTRIBUTES
            data[ATTRIBUTES_AT] &= HEADERS_FIRST
        yield sealed(bytes(data))


@pytest.mark.parametrize("number", [DAMAGED, pytest.param(DAMAGED_THOROUGH, marks=pytest.mark.thorough)])
@pytest.mark.parametrize("name", java_formats.FORMATS)
def test_both_sides_refuse_the_same_damage(java: JavaFormats, name: str, number: int) -> None:
    refused = 0
    for data in damaged(name, number):
        try:
            ours = [record_spec(message) for message in messages_of(FORMATS[name].decode(data).records)]
        except KfbenchError:
            refused += 1
            with pytest.raises(JavaRefusesError):
                java.read(data)
        except UnicodeDecodeError:  # a header key; both hand it out as bytes
            continue
        else:
            assert [record for row in java.read(data) for record in row["records"]] == ours, data.hex()
    assert number / 10 < refused < number * 9 / 10
