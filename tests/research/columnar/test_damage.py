"""Damaged and hostile columnar batches are refused before memory is allocated for the records that they claim."""

import itertools
import struct
import tracemalloc
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kfbench import FORMATS, Records, codecs
from kfbench.batches import DecodedLog
from kfbench.errors import CorruptLog, InvalidRecords
from kfbench.limits import Limits
from kfbench.log import read_log
from tests.common import messages_of, records_of
from tests.formats.fuzz import check_agrees_with_reference, sealed
from tests.reference.model import Fields, Message
from tests.reference.varint import unsigned, zigzag
from tests.research.columnar import cases as columnar_cases
from tests.research.columnar import reference as columnar
from tests.research.columnar.batches import (
    ATTRIBUTES_AT,
    CODECS,
    COLUMNAR,
    HEADED,
    batch_of,
    positions_of,
    with_headers,
)


@given(data=st.data(), cut=st.integers(17, 300))
def test_truncated_batches_agree_with_the_reference(data: st.DataObject, cut: int) -> None:
    case = data.draw(columnar_cases.cases(1))
    log = COLUMNAR.encode(records_of(case.messages), [0, len(case.messages)])
    check_agrees_with_reference(sealed(bytes(log)[: max(cut, 30)]))


LAYOUTS = {  # batches with record headers, by the layout of their columns
    "by position": records_of(HEADED),
    "one record": records_of(HEADED[:1]),
    "different keys": Records.from_lists(
        [b""] * 4, headers=[[("a", b"x"), ("bb", None)], [("c", b"y")], [], [("d", b"zz")]]
    ),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_headers_that_end_anywhere_agree_with_the_reference(layout: str) -> None:
    whole = bytes(COLUMNAR.encode(LAYOUTS[layout]))
    for cut in range(30, len(whole)):
        check_agrees_with_reference(sealed(whole[:cut]))


@pytest.mark.compiled_only
@pytest.mark.parametrize("byte", [0, 1, 0x7F, 0xFF])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_each_changed_byte_of_headers_agrees_with_the_reference(layout: str, byte: int) -> None:
    whole = bytes(COLUMNAR.encode(LAYOUTS[layout]))
    for at in range(ATTRIBUTES_AT, min(len(whole), 150)):
        check_agrees_with_reference(sealed(whole[:at] + bytes([byte]) + whole[at + 1 :]))


def refused_early(call: Callable[[], DecodedLog], match: str) -> None:
    tracemalloc.start()
    try:
        with pytest.raises(CorruptLog, match=match):
            call()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 1 << 20


@pytest.mark.parametrize("codec", CODECS)
def test_a_payload_is_not_decompressed_beyond_the_sum_of_its_lengths(codec: str) -> None:
    messages = [Message(offset=i, timestamp_ms=0, value=b"v" * 100) for i in range(2)]
    whole, larger = (
        columnar.batch(messages, Fields(), codec, codecs.find(codec).compress(bytes(size))) for size in (200, 16 << 20)
    )
    assert len(COLUMNAR.decode(whole).records) == 2
    refused_early(lambda: COLUMNAR.decode(larger), r"payload: .* limit of 200 bytes")


# One damaged batch per field that an error can name. test_reference.py has more kinds of damage.
REFUSED: dict[str, tuple[bytes, str]] = {
    "column": (batch_of(0x100, "c0 01 00 00"), "column"),
    "packed values": (batch_of(0x100, "03 47"), "padding"),
    "patches": (batch_of(0x100, "81 00 00 00 02 00 00"), "patches"),
    "offset delta": (batch_of(0x200, "01 40 8080808010"), "offset delta"),
    "column length": (batch_of(0x400, "40 8080808010"), "column length"),
    "base timestamp": (batch_of(0x2040, 16 * "00"), "attributes"),
    "empty batch": (batch_of(0x300, "00 00", "00"), "attributes"),
    "payload": (batch_of(0, "00"), "payload"),
    "codec": (batch_of(6, ""), "codec"),
    "headers": (batch_of(0x1000, "01 01 00 00"), "headers"),
    "payload of a template": (batch_of(0x1000, "01 01 00 fe 01 01 00", "03"), "payload"),
    "batch header": (batch_of(0, "", "80"), "batch header"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_hostile_batches_are_refused(name: str) -> None:
    data, promise = REFUSED[name]
    with pytest.raises(CorruptLog, match=promise) as refusal:
        COLUMNAR.decode(data)
    assert refusal.value.position == 0
    assert "\n" not in str(refusal.value)
    check_agrees_with_reference(data)
    sound = bytes(COLUMNAR.encode(Records.from_lists([b"v"])))
    decoded = COLUMNAR.decode(sound + data + sound, on_error="skip")
    assert (len(decoded), len(decoded.records), len(decoded.errors)) == (2, 2, 1)


def test_too_many_records_are_refused_before_memory_is_allocated() -> None:
    """A record may have no bytes, so a batch of 34 bytes can claim 2**31 records."""
    claim = batch_of(0, "", "ffffffff07")
    assert len(claim) == 34
    refused_early(lambda: COLUMNAR.decode(claim), "limits.batch_records")
    many = batch_of(0, "", "8040") * 400  # each claims 8,192 records
    refused_early(lambda: COLUMNAR.decode(many, limits=Limits(batch_records=1 << 13, log_expansion=1)), "log_expansion")
    two = batch_of(0, "", "e807") * 2
    decoded = COLUMNAR.decode(two, on_error="skip", limits=Limits(batch_records=1000, log_expansion=1))
    assert (len(decoded.records), len(decoded.errors)) == (1000, 1)
    with pytest.raises(CorruptLog, match="log_expansion"):
        COLUMNAR.read_times(two, positions_of(two), Limits(batch_records=1000, log_expansion=1))


def test_limits_hold_for_a_whole_log_and_not_for_each_run_of_one_magic() -> None:
    claim, between = batch_of(0, "", "e807"), bytes(FORMATS["v2"].encode(Records.from_lists([]), [0, 0]))
    limits = Limits(batch_records=1000, log_expansion=1)
    decoded = read_log((claim + between) * 5, on_error="skip", limits=limits)
    assert (len(decoded.records), len(decoded), len(decoded.errors)) == (1000, 6, 4)
    claim = batch_of(0x1000, "01 01" + "00 01 01", "e807")
    limits = Limits(batch_headers=1000, log_expansion=1)
    decoded = read_log((claim + between) * 5, on_error="skip", limits=limits)
    assert (len(decoded.records), len(decoded), len(decoded.errors)) == (1000, 6, 4)
    assert decoded.errors[0].promise == "more headers in all than limits.log_expansion allows a log of this size"
    claim = bytes(COLUMNAR.encode(with_headers([b"%04000x" % (i % 16) for i in range(1000)]), 1000))
    decoded = read_log((claim + between) * 5, on_error="skip", limits=Limits(batch_bytes=5_000_000, log_expansion=1))
    assert (len(decoded), {error.field for error in decoded.errors}) == (6, {"headers"})


def test_a_damaged_batch_does_not_count_towards_the_limits_of_a_log() -> None:
    damaged, sound = batch_of(0x100, "ff 00 00", "e807"), batch_of(0, "", "e807")
    between = bytes(FORMATS["v2"].encode(Records.from_lists([]), [0, 0]))
    limits = Limits(batch_records=1000, log_expansion=1)
    assert len(read_log(damaged + between + sound, on_error="skip", limits=limits).records) == 1000


def test_too_many_headers_are_refused_before_memory_is_allocated() -> None:
    """A header value that is equal in all records takes no bytes per record.

    So a small batch can claim many headers.
    """
    claim = batch_of(0x1000, "01 808008" + "00 01 01" * 4, "808040")
    refused_early(lambda: COLUMNAR.decode(claim, limits=Limits(batch_headers=1 << 20, batch_records=1 << 10)), "limits")
    records = Records.from_lists([b""] * 100, headers=[[("h", b"x" * 1000)]] * 100)
    log = COLUMNAR.encode(records)
    assert COLUMNAR.decode(log, limits=Limits(batch_headers=100)).records == records
    refused_early(lambda: COLUMNAR.decode(log, limits=Limits(batch_headers=99)), "batch_headers")
    refused_early(lambda: COLUMNAR.decode(log, limits=Limits(batch_bytes=1000, log_expansion=1)), "log_expansion")
    template = with_headers([b"%01000x" % i for i in range(100)])
    log = COLUMNAR.encode(template)
    refused_early(lambda: COLUMNAR.decode(log, limits=Limits(batch_bytes=1000, log_expansion=1)), "log_expansion")
    with pytest.raises(CorruptLog, match="field_bytes"):
        COLUMNAR.decode(log, limits=Limits(field_bytes=999))


def test_damage_behind_a_codec_leaves_the_other_batches() -> None:
    """Columns are read before payloads are decompressed.

    If a payload turns out damaged, the rows of its batch are dropped and other batches stay.
    """
    records = Records.from_lists(
        [b"value %d" % i for i in range(40)], headers=[[("h", b"%04x" % i)] for i in range(40)]
    )
    log = COLUMNAR.encode(records, 10, "zstd")
    parts = [bytes(log.data[start:end]) for start, end in itertools.pairwise(log.positions.tolist())]
    parts[1] = sealed(parts[1][:-4] + b"\xff" * 4)
    other = bytes(COLUMNAR.encode(records.part(10, 20), 10))
    parts[2] = sealed(parts[2][:-1])
    decoded = COLUMNAR.decode(b"".join([*parts, other]), on_error="skip")
    assert len(decoded.errors) == 2
    expected = [i for i in range(40) if not 10 <= i < 30] + list(range(10, 20))
    assert [message.value for message in messages_of(decoded.records)] == [b"value %d" % i for i in expected]
    assert [message.headers[0][1] for message in messages_of(decoded.records)] == [b"%04x" % i for i in expected]
    assert len(decoded.batches) == 3


BY_RECORD = [replace(each, headers=each.headers[: i % 3]) for i, each in enumerate(HEADED)]


@pytest.mark.parametrize("messages", [HEADED, BY_RECORD, HEADED[:1], HEADED[3:4]])
def test_nothing_is_written_behind_an_output_that_is_too_small(messages: list[Message]) -> None:
    records = records_of(messages)
    size = len(COLUMNAR.encode(records, [0, len(messages)]).data)
    for room in range(size):
        arena = np.full(room + 64, 0xEE, np.uint8)
        with pytest.raises(InvalidRecords, match=f"out: {room} bytes, {size} are needed"):
            COLUMNAR.encode(records, [0, len(messages)], out=arena[:room])
        assert (arena[room:] == 0xEE).all()


MASK = bytes(511) + b"\1"  # the bit mask of a template of 4,096 characters, one of which varies
TEMPLATE = b"\1\1\0\xfe\x80\x20" + MASK  # headers by position, one header, an empty key
ALL_VARY = TEMPLATE[:-512] + b"\xff" * 512
LARGE = b"\1\2\0\xfe\1\1\0\xff\x40" + zigzag(1 << 28)  # a template of one digit, then values of 256 MiB


@pytest.mark.parametrize(
    ("attributes", "count", "columns"),
    [(0x1000, 1 << 12, TEMPLATE), (0x1004, 1 << 12, ALL_VARY), (0x1004, 2, LARGE), (0x1000, 2, LARGE)],
)
def test_a_refused_batch_of_templates_takes_no_memory(attributes: int, count: int, columns: bytes) -> None:
    """Regression test: a damaged batch of 551 bytes once made the reader allocate 64 GiB."""
    covered = struct.pack(">H", attributes) + b"\xff" * 6 + unsigned(count) + columns + b"no codec"
    sound = bytes(COLUMNAR.encode(records_of(HEADED), [0, len(HEADED)]).data)
    data = sound + sealed(struct.pack(">qiibI", 0, 0, -1, 5, 0) + covered) + sound
    COLUMNAR.decode(data, on_error="skip")  # compile the kernels before memory is measured
    tracemalloc.start()
    found = COLUMNAR.decode(data, on_error="skip")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(found.errors) == 1 and len(found.records) == 2 * len(HEADED)
    assert peak < 150 * count + (1 << 20)
    with pytest.raises(CorruptLog):
        COLUMNAR.decode(data)
