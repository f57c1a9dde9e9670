"""A scan of batch headers finds what a decoder of the whole log finds."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kfbench.broker.source import NOT_IN_HEADER, headers
from kfbench.errors import CorruptLog, IllegalCombination
from kfbench.formats import FORMATS
from kfbench.kernels.formats import scan
from kfbench.layouts import UNSET
from tests.common import LEGACY, MESSAGES, ON_BROKERS, batch_fields_of, bounds_of, records_of, reference_decode
from tests.recorded import FOLDER, NAMES, facts
from tests.reference.model import Message
from tests.strategies import cases_of

NAMED = sorted(ON_BROKERS)


def encoded(data: st.DataObject, name: str) -> bytes:
    fmt = FORMATS[name]
    case, codec = data.draw(cases_of(name)), data.draw(st.sampled_from(fmt.capabilities.codecs))
    return bytes(fmt.encode(records_of(case.messages), bounds_of(case), codec, batch_fields=batch_fields_of(case)))


@pytest.mark.parametrize("name", NAMED)
@given(data=st.data())
def test_headers_say_what_the_reference_reads(name: str, data: st.DataObject) -> None:
    log = encoded(data, name)
    batches, _ = reference_decode(name, log)
    rows = headers(np.frombuffer(log, np.uint8), FORMATS[name])
    assert rows["position"].tolist() == [batch.position for batch in batches]
    for row, batch in zip(rows, batches, strict=True):
        in_set = name in MESSAGES and batch.codec != "none"
        assert (row["size_bytes"], row["magic"]) == (batch.size_bytes, batch.magic)
        assert row["codec"] == ("none", "gzip", "snappy", "lz4", "zstd").index(batch.codec)
        if row["last_is_least"]:
            assert in_set and name not in LEGACY
            assert row["base_offset"] <= row["last_offset"] <= batch.last_offset
        else:
            assert row["last_offset"] == batch.last_offset
        if in_set and name in LEGACY:
            assert row["base_offset"] == UNSET
        else:
            assert row["base_offset"] == batch.base_offset
        assert row["count"] in (len(batch.messages), NOT_IN_HEADER)
        assert (row["count"] == NOT_IN_HEADER) == (name == "kip98" or (in_set and name in LEGACY))
        seen = batch.append_time_ms if batch.is_append_time else batch.max_timestamp_ms
        assert row["max_timestamp_ms"] == seen
        assert row["is_append_time"] == batch.is_append_time
        assert row["is_transactional"] == batch.is_transactional
        assert row["producer_id"] == batch.producer_id
        if not in_set:  # the wrapper of a compressed set does not show if its messages are control records
            assert row["is_control"] == batch.is_control
        any_key = any(message.key is not None for message in batch.messages)
        assert row["keys"] in (any_key, NOT_IN_HEADER)
        assert (row["keys"] == NOT_IN_HEADER) == (name not in MESSAGES or (in_set and name in LEGACY))


@pytest.mark.parametrize("name", NAMED)
@given(data=st.data())
def test_bytes_after_a_header_are_not_read(name: str, data: st.DataObject) -> None:
    log = np.frombuffer(encoded(data, name), np.uint8)
    rows = headers(log, FORMATS[name])
    poisoned = log.copy()
    for row in rows:
        assert row["header_bytes"] <= row["size_bytes"]
        poisoned[row["position"] + row["header_bytes"] : row["position"] + row["size_bytes"]] ^= 0xA5
    assert (headers(poisoned, FORMATS[name]) == rows).all()


@pytest.mark.parametrize("name", NAMED)
@given(data=st.data())
def test_damage_is_named_by_its_batch_or_read(name: str, data: st.DataObject) -> None:
    log = np.frombuffer(encoded(data, name), np.uint8).copy()
    if not len(log):
        return
    sound = headers(log, FORMATS[name])
    at, byte = data.draw(st.integers(0, len(log) - 1)), data.draw(st.integers(1, 255))
    log[at] ^= byte
    cut = log[: data.draw(st.integers(0, len(log)))]
    fmt = FORMATS[name]
    named = data.draw(st.booleans()) or not fmt.is_told_by_magic  # otherwise valid bytes may be read as another format
    before = sound[sound["position"] + sound["size_bytes"] <= min(at, len(cut))]
    damaged = int(before["position"][-1] + before["size_bytes"][-1]) if len(before) else 0
    try:
        rows = headers(cut, fmt if named else None)
    except CorruptLog as error:
        moved = damaged + 8 <= at < damaged + 12  # wrong length: the next batch seems to start elsewhere
        assert error.position == damaged or (moved and damaged < error.position < len(cut))  # noqa: PT017
        return
    except IllegalCombination:  # the magic became that of columnar
        assert not named
        return
    assert (rows[: len(before)] == before).all()
    assert (rows["position"] + rows["size_bytes"] <= len(cut)).all()


def test_a_scan_continues_after_full_rows() -> None:
    fmt = FORMATS["v2"]
    log = fmt.encode(records_of([]), [0], "none").data
    assert len(headers(log, fmt)) == 0
    log = fmt.encode(records_of([Message(offset=i) for i in range(1000)]), 1).data
    rows = headers(log, fmt)
    assert rows["base_offset"].tolist() == list(range(1000))
    assert len(headers(log, fmt, to_offset=500)) == 501
    assert len(headers(log, None, int(rows["position"][400]), to_offset=500)) == 101
    assert len(headers(log, fmt, to_ms=-1, from_offset=500)) == 501
    assert len(headers(log, fmt, to_ms=-1)) == 1


@pytest.mark.parametrize(
    ("at", "change", "promise"),
    [
        (8, b"\x00\x00\x00\x0d", "length: too small to be skipped"),
        (16, b"\x07", "magic: not the version"),
        (16, b"\x01", "magic: not the version"),
        (21, b"\xf0\x00", "attributes: bits are set"),
        (37, b"\xff" * 20, "batch header: a varint runs past the batch"),
    ],
)
def test_what_cannot_be_read_is_named(at: int, change: bytes, promise: str) -> None:
    fmt = FORMATS["v3"]
    whole = bytes(fmt.encode(records_of([Message(offset=i) for i in range(4)]), 2))
    second = len(whole) // 2
    broken = whole[: second + at] + change + whole[second + at + len(change) :]
    with pytest.raises(CorruptLog, match=f"byte {second}: {promise}"):
        headers(np.frombuffer(broken, np.uint8), fmt)


@pytest.mark.compiled_only
@pytest.mark.sampled(12)
@pytest.mark.parametrize("name", NAMES)
def test_recorded_segments(name: str) -> None:
    """Scans of segments written by a real broker give the facts that Kafka's reader recorded."""
    expected = facts(name).batches
    rows = headers(np.frombuffer((FOLDER / name).read_bytes(), np.uint8))
    for column in ("position", "size_bytes", "last_offset", "max_timestamp_ms", "producer_id", "magic"):
        assert rows[column].tolist() == expected[column], column
    older_set = [
        magic < 2 and codec != "none" for magic, codec in zip(expected["magic"], expected["codec"], strict=True)
    ]
    counts = [NOT_IN_HEADER if inside else count for inside, count in zip(older_set, expected["count"], strict=True)]
    assert rows["count"].tolist() == counts


@pytest.mark.parametrize("name", sorted(FORMATS))
@given(data=st.data())
def test_counts_come_from_headers(name: str, data: st.DataObject) -> None:
    """The record count is 1 if the header has no count, or the count 0. It is limited to 3 here."""
    log = np.frombuffer(encoded(data, name), np.uint8)
    if not FORMATS[name].is_told_by_magic:
        return
    batches, _ = reference_decode(name, bytes(log))
    positions = np.array([*(batch.position for batch in batches), len(log)])
    found = np.empty(len(batches), np.int64)
    scan.counts(log, positions, 3, found)
    FORMATS[name].add_record_counts(log, positions, 3, found)
    expected = [1 if name in MESSAGES else min(max(len(batch.messages), 1), 3) for batch in batches]
    assert found.tolist() == expected
    for start, end in zip(positions[:-1].tolist(), positions[1:].tolist(), strict=True):
        for cut in range(17, end - start):  # the last header is incomplete
            scan.counts(log[start : start + cut], np.array([0, cut]), 3, found[:1])
            FORMATS[name].add_record_counts(log[start : start + cut], np.array([0, cut]), 3, found[:1])
            assert 1 <= found[0] <= 3
