"""Dictionaries that stand in a log: their control batches, damage, conflicts, and readers that read in pieces."""

import json
import struct
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from kfbench import FORMATS, BatchFields, EncodedLog, Records, read_log, write_log
from kfbench.broker.convert import convert
from kfbench.broker.fetch import fetch
from kfbench.codecs import TrainedOn
from kfbench.errors import CorruptLog, InvalidDictionary, InvalidRecords, MissingDictionary
from kfbench.log import dictionary_batch
from kfbench.log.dictionaries import stored_dictionaries
from kfbench.sources import log as log_source
from tests.dictionary_samples import BY_NAME, OTHER, RAW, RECORDS, TRAINED, body, segment
from tests.reference import dictionaries as reference

NAMES = [name for name, fmt in FORMATS.items() if fmt.capabilities.dictionaries]
every_format = pytest.mark.parametrize("name", NAMES)


def stored(value: bytes | None, name: str = "v2", key: bytes = reference.KEY) -> bytes:
    """Return a control batch with this value."""
    records = Records.from_lists([value], [key])
    return bytes(FORMATS[name].encode(records, 1, batch_fields=BatchFields(is_control=True)))


@every_format
@pytest.mark.parametrize("kind", BY_NAME)
def test_a_segment_is_readable_alone(name: str, kind: str) -> None:
    data = segment(name, BY_NAME[kind])
    back = read_log(data)
    assert back.records.part(1, len(back.records)) == RECORDS
    assert dict(back.dictionaries) == {BY_NAME[kind].number: BY_NAME[kind]}
    assert back.batches["is_control"].tolist() == [True] + 6 * [False]
    assert back.batches["dictionary"].tolist() == [-1] + 6 * [BY_NAME[kind].number]
    assert bytes(write_log(back)) == data
    key, value = back.records.key(0), back.records.value(0)
    assert key == reference.KEY
    assert value is not None
    assert reference.read_stored(key, value) == (BY_NAME[kind].number, BY_NAME[kind].data)


@pytest.mark.parametrize("name", ["v2", "columnar"])
def test_write_log_puts_a_dictionary_in_front(name: str) -> None:
    log = FORMATS[name].encode(RECORDS.at_offsets(np.arange(100, 160)), 10, codec="zstd")
    written = write_log(read_log(log), TRAINED)
    back = read_log(written)
    assert back.batches["base_offset"].tolist() == [99, *range(100, 160, 10)]
    assert back.batches["dictionary"].tolist() == [-1] + 6 * [1]
    assert written.positions.tolist() == [*back.batches["position"].tolist(), len(written.data)]
    assert back.records.part(1, 61) == RECORDS.at_offsets(np.arange(100, 160))
    assert len(written.data) - written.positions[1] < 0.9 * len(log.data)
    again = write_log(back, replace(OTHER, number=2))  # both dictionaries stand in the log now
    assert {*read_log(again).dictionaries} == {1, 2}
    with pytest.raises(InvalidDictionary):
        write_log(back, OTHER)
    plain = FORMATS[name].encode(RECORDS, 10)
    assert bytes(write_log(read_log(plain), TRAINED)) == bytes(plain)  # nothing to compress: nothing is stored
    with pytest.raises(InvalidRecords, match="begins at 0"):  # a record at the dictionary's offset would be skipped
        write_log(read_log(FORMATS[name].encode(RECORDS, 10, codec="zstd")), TRAINED)


def test_given_dictionaries_add_to_those_in_the_log() -> None:
    data = segment("v2") + body("columnar", RAW)
    with pytest.raises(MissingDictionary) as refusal:
        read_log(data)
    assert (refusal.value.number, refusal.value.position) == (300, len(segment("v2")))
    assert len(read_log(data, dictionaries=[RAW]).records) == 121
    assert len(read_log(segment("v2"), dictionaries=[TRAINED]).records) == 61  # the same one twice
    for given in ([OTHER], [replace(RAW, number=1)]):
        with pytest.raises(CorruptLog) as conflict:
            read_log(segment("v2"), dictionaries=given)
        assert (conflict.value.position, conflict.value.field) == (0, "dictionary")


def test_two_dictionaries_with_one_number() -> None:
    """Segments of two partitions in one file: the second dictionary is an error, and its batches do not read."""
    first, second = segment("v2"), segment("v2", OTHER)
    with pytest.raises(CorruptLog) as conflict:
        read_log(first + second)
    assert (conflict.value.position, conflict.value.field) == (len(first), "dictionary")
    back = read_log(first + second, on_error="skip")
    assert back.records.part(1, 61) == RECORDS
    assert len(back.records) == 61
    assert [type(error) for error in back.errors] == [CorruptLog] + 6 * [MissingDictionary]


VALUE = reference.stored_value(1, TRAINED.data)
DAMAGED = {
    "null": None,
    "empty": b"",
    "37 bytes": VALUE[:37],
    "no frame": VALUE[:38],
    "half a frame": VALUE[:-20],
    "version 1": b"\0\1" + VALUE[2:],
    "number 0": VALUE[:2] + bytes(4) + VALUE[6:],
    "a negative number": VALUE[:2] + b"\xff" * 4 + VALUE[6:],
    "another SHA-256": VALUE[:6] + bytes(32) + VALUE[38:],
    "another dictionary": VALUE[:38] + reference.stored_value(1, OTHER.data)[38:],
    "more than 128 KiB": reference.stored_value(1, bytes(131_073)),
    "256 MiB": reference.stored_value(1, bytes(256 << 20)),
    "7 bytes": reference.stored_value(1, b"1234567"),
    "damaged tables": reference.stored_value(1, TRAINED.data[:8] + b"\xff" * 40 + TRAINED.data[48:]),
    "bytes after the frame": VALUE + b"\0",
}


@pytest.mark.parametrize("case", DAMAGED)
@pytest.mark.parametrize("name", ["v2", "columnar"])
def test_a_damaged_dictionary(case: str, name: str) -> None:
    before, bad = bytes(FORMATS["v2"].encode(RECORDS, 60)), stored(DAMAGED[case], name)
    if len(bad) < 80:  # too small for a dictionary, so it is another control record
        bad = stored((DAMAGED[case] or b"") + bytes(60), name)
    data = before + bad + body(name) + before
    with pytest.raises(CorruptLog) as refusal:
        read_log(data)
    assert (refusal.value.position, refusal.value.field) == (len(before), "dictionary")
    back = read_log(data, on_error="skip")
    assert len(back.records) == 120
    assert [type(error) for error in back.errors] == [CorruptLog] + 6 * [MissingDictionary]
    assert len(read_log(data, on_error="skip", dictionaries=[TRAINED]).records) == 180


def test_other_records_are_no_dictionaries() -> None:
    """Control records of another type or with a longer key, data with the key, and a dictionary that was refused."""
    other, marker = struct.pack(">hh", 0, 6), struct.pack(">hh", 0, 1)
    data = stored(bytes(100), key=other) + stored(bytes(100), key=b"\0\0\0\x2a" + reference.KEY)
    assert len(read_log(data).records) == 2
    not_control = bytes(FORMATS["v2"].encode(Records.from_lists([VALUE], [reference.KEY]), 1))
    assert not read_log(not_control).dictionaries
    log = read_log(stored(bytes(6), key=marker) + bytes(dictionary_batch(RAW, "v2")))
    assert list(stored_dictionaries(log)) == [RAW]
    assert list(stored_dictionaries(replace(log, dictionaries={}))) == []


def test_a_log_cannot_store_any_number_of_dictionaries() -> None:
    """Each of these takes 100 bytes and claims 128 KiB."""
    value = reference.stored_value(1, bytes(131_072))
    assert len(value) < 100
    data = b"".join(stored(value[:2] + i.to_bytes(4, "big") + value[6:]) for i in range(1, 400))
    back = read_log(data, on_error="skip")
    assert len(back.dictionaries) == 256
    assert len(back.errors) == 399 - 256


def test_a_compressed_control_batch() -> None:
    records = Records.from_lists([VALUE], [reference.KEY])
    log = FORMATS["v2"].encode(records, 1, codec="gzip", batch_fields=BatchFields(is_control=True))
    assert read_log(bytes(log) + body("v2")).dictionaries[1] == TRAINED


def test_readers_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Later chunks, and later shares of a file, use the dictionary at the head of the segment."""
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(segment("columnar") + 20 * body("columnar"))
    monkeypatch.setattr(log_source, "FIRST_BYTES", 2_000)
    whole = log_source.segment_at(path)
    for start in (0, 6_000):
        chunks = list(replace(whole, start=start, piece_bytes=2_000).chunks())
        assert len(chunks) > 3
        assert not any(each.size_bytes for chunk in chunks for each in chunk.damage)  # copies repeat offsets
        assert chunks[-1].kinds == {"columnar zstd-dictionary": chunks[-1].log and len(chunks[-1].log)}
    assert sum(len(chunk.records) for chunk in replace(whole, piece_bytes=2_000).chunks()) == 21 * 60 + 1


def test_fetch_and_convert() -> None:
    log = EncodedLog(data=np.frombuffer(segment("v3"), np.uint8), positions=np.zeros(1, np.int64))
    assert fetch(log, "v3").zero_copy
    back = read_log(fetch(log, "v2").data)
    assert back.records.part(1, 61) == RECORDS
    assert back.batches["codec"].tolist() == ["none"] + 6 * ["zstd"]
    bare = body("v3")
    with pytest.raises(MissingDictionary) as refusal:
        fetch(bare, "v2")
    assert refusal.value.position == 0
    assert read_log(fetch(bare, "v2", dictionaries=[TRAINED]).data).records == RECORDS
    assert read_log(convert(bare, "v2", dictionaries=[TRAINED]).data).records == RECORDS


@pytest.mark.parametrize(
    "changed",
    [
        {"records": -1},
        {"size_bytes": 0.5},
        {"format": "v" * 41},
        {"format": "v\n2"},
        {"batch_size": 0},
        {"batch_size": "1"},
    ],
)
def test_a_file_with_an_odd_origin_keeps_its_dictionary(changed: dict[str, object]) -> None:
    origin = {"format": "v2", "batch_size": 10, "records": 5, "size_bytes": 7}
    stored = read_log(bytes(dictionary_batch(RAW, "v2")))
    for given, wanted in ((origin, TrainedOn(**origin)), (origin | changed, None)):  # type: ignore[arg-type]
        headers = [[("trained-on", json.dumps(given).encode())]]
        records = Records.from_lists(stored.records.values(), stored.records.keys(), headers=headers)
        log = read_log(bytes(FORMATS["v2"].encode(records, 1, batch_fields=stored.batch_fields)))
        assert [each.trained_on for each in stored_dictionaries(log)] == [wanted]
        assert list(stored_dictionaries(log)) == [RAW]
