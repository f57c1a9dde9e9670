"""Tagged fields of v3 batches: append time and create time in one batch, headers of the batch, and unknown tags."""

import struct
import tracemalloc

import numpy as np
import pytest

from kfbench import FORMATS, BatchFields, Limits, Records, read_log, write_log
from kfbench.errors import CorruptLog, InvalidRecords, WouldLose
from tests.common import check_against_reference, messages_of, one_batch, records_of
from tests.formats.fuzz import READ, check_agrees_with_reference, check_refused, check_verdict, sealed
from tests.reference import tags, v23
from tests.reference.model import Message
from tests.reference.records import common_headers
from tests.reference.varint import unsigned, zigzag
from tests.strategies import NOW_MS

NAMES = v23.TAGGED_NAMES
UNSET_TIME = "00 08 ffffffffffffffff"
every_name = pytest.mark.parametrize("name", NAMES)
every_codec = pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
MESSAGES = [Message(offset=i, timestamp_ms=NOW_MS + i, value=b"v", headers=(("h", b"x"),)) for i in range(2)]
RECORDS = records_of(MESSAGES)


def with_tags(section: str | bytes, messages: list[Message] = MESSAGES) -> bytes:
    """Return a v3 batch with the tag bytes `section` between its record count and its records."""
    plain = v23.encode("v3", messages)
    header = bytearray(plain[: len(plain) - len(v23.records_section("v3", messages))])
    header[21] |= v23.TAGGED >> 8
    content = bytes.fromhex(section) if isinstance(section, str) else section
    return sealed(bytes(header) + content + v23.records_section("v3", messages))


# Tag 0: the append time


@every_name
def test_a_broker_writes_the_append_time_in_place(name: str) -> None:
    """A broker sets the append time in place: attributes, checksum and the eight bytes of tag 0 change, no others."""
    fresh = bytearray(FORMATS[name].encode(RECORDS).data)
    stamped = bytes(FORMATS[name].encode(RECORDS, batch_fields=BatchFields(append_time_ms=NOW_MS)))
    at = fresh.index(bytes.fromhex(UNSET_TIME)) + 2
    fresh[at : at + 8] = struct.pack(">q", NOW_MS)
    fresh[22] |= 8
    assert sealed(bytes(fresh)) == stamped


@pytest.mark.parametrize("name", ["v2", "v3", "v3-headers-first"])
def test_other_formats_have_one_time(name: str) -> None:
    both_times = BatchFields(append_time_ms=NOW_MS + 99, timestamp_type=0)
    with pytest.raises(WouldLose, match="append_time_ms"):
        FORMATS[name].encode(RECORDS, batch_fields=both_times)
    log = FORMATS[name].encode(RECORDS, batch_fields=both_times, lossy=True)
    assert log.losses == {"append_time_ms": 1}
    assert bytes(log) == bytes(FORMATS[name].encode(RECORDS))
    seen = FORMATS[name].decode(FORMATS[name].encode(RECORDS, batch_fields=BatchFields(append_time_ms=NOW_MS + 99)))
    assert seen.batches["append_time_ms"].tolist() == seen.batches["max_timestamp_ms"].tolist() == [NOW_MS + 99]


def test_without_tag_0_the_header_has_the_append_time() -> None:
    for section in ("00", "01 07 00", "01 01 05 02 0268 0278"):
        data = bytearray(with_tags(section))
        data[22] |= 8
        back = FORMATS["v3-tagged"].decode(sealed(bytes(data)))
        assert back.records.timestamps_ms.tolist() == [NOW_MS + 1] * 2
        assert back.batches["append_time_ms"].tolist() == [NOW_MS + 1]
        check_agrees_with_reference(sealed(bytes(data)))
    back = FORMATS["v3-tagged"].decode(with_tags("00"))
    assert back.records == RECORDS
    assert back.batches["append_time_ms"].tolist() == [-1]


# Unknown tags


@every_name
def test_tags_are_written_in_ascending_order(name: str) -> None:
    fields = {"tagged_fields": {200: b"c", 2: b"a", 64: b"b"}}
    check_against_reference(name, one_batch(*MESSAGES, **fields))
    data = bytes(FORMATS[name].encode(RECORDS, batch_fields=BatchFields(**fields)))  # type: ignore[arg-type]
    assert bytes.fromhex("02 01 61 40 01 62 c801 01 63") in data


@every_name
def test_one_mapping_is_for_all_batches(name: str) -> None:
    log = FORMATS[name].encode(RECORDS, 1, batch_fields=BatchFields(tagged_fields={7: b"x"}))
    assert [dict(each) for each in FORMATS[name].decode(log).tagged_fields] == [{7: b"x"}] * 2


def test_tags_may_be_numpys_integers() -> None:
    log = FORMATS["v3-tagged"].encode(RECORDS, batch_fields=BatchFields(tagged_fields={np.int64(7): b"x"}))  # type: ignore[dict-item]
    assert dict(FORMATS["v3-tagged"].decode(log).tagged_fields[0]) == {7: b"x"}


@pytest.mark.sampled
@pytest.mark.parametrize("name", ["v2", "v3", "v3-full"])
@pytest.mark.parametrize("given", [{0: bytes(8)}, {1: b""}, {-1: b""}, {2**32: b""}, {7: "x"}, {"7": b"x"}, 7, [7]])
def test_invalid_tags_are_refused(name: str, given: object) -> None:
    with pytest.raises(InvalidRecords, match="tagged_fields"):
        FORMATS[name].encode(RECORDS, batch_fields=BatchFields(tagged_fields=given))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "section",
    [
        "",
        "80",
        "ffffffffff",
        "01",
        "01 02",
        "01 02 80",
        "01 02 ff01 00",
        "01 02 ffffffff0f",
        "01 02 ffffffff07",
        "02 02 00",
        f"02 02 00 {UNSET_TIME}",
        "02 03 00 02 00",
        "02 02 00 02 00",
        f"02 {UNSET_TIME} {UNSET_TIME}",
        "ffffffff07 02 00",
        "ffffffff0f 02 00",
        *(f"01 00 {size:02x} {'00' * size}" for size in (0, 1, 7, 9)),
    ],
)
def test_tags_that_are_refused(section: str) -> None:
    """The reader refuses tags that are cut short, too large, out of order or repeated."""
    check_refused(with_tags(section), "v3-tagged")  # the bytes of the records are read as tags


@pytest.mark.parametrize(
    "section", [f"8100 {UNSET_TIME}", "01 8000 08 ffffffffffffffff", "01 00 8800 ffffffffffffffff", "00", "01 07 00"]
)
def test_tags_that_are_read_but_not_canonical(section: str) -> None:
    """The reader accepts over-long varints, and a batch without room for the append time.

    It marks them as not canonical.
    """
    assert FORMATS["v3-tagged"].decode(with_tags(section)).records == RECORDS
    check_verdict(with_tags(section), "v3-tagged", READ)


# Tag 1: headers of the batch

A, B, NULL = ("a", b"1"), ("b", b"2"), ("a", None)


@pytest.mark.sampled
@pytest.mark.parametrize("name", v23.BATCH_HEADERS_NAMES)
@pytest.mark.parametrize(
    ("lists", "shared"),
    [
        ([[A]], [A]),
        ([[A], [A]], [A]),
        ([[A, B], [A, B], [A]], [A]),
        ([[A, A, B], [A, A]], [A, A]),
        ([[A, B], [B, A]], []),
        ([[A], []], []),
        ([[], [A]], []),
        ([[], []], []),
        ([[NULL], [("a", b"")]], []),
        ([[NULL], [NULL, A]], [NULL]),
        ([[("", b"")], [("", b"")]], [("", b"")]),
        ([[("ab", b"c")], [("a", b"bc")]], []),
        ([[A, B, A], [A, B, B], [A, B]], [A, B]),
        ([[("ключ", b"x" * 300)]] * 3, [("ключ", b"x" * 300)]),
    ],
)
def test_headers_that_all_records_begin_with_are_stored_once(
    name: str, lists: list[list[tuple[str, bytes | None]]], shared: list[tuple[str, bytes | None]]
) -> None:
    messages = [Message(offset=i, headers=tuple(headers)) for i, headers in enumerate(lists)]
    assert list(common_headers(messages)) == shared
    check_against_reference(name, one_batch(*messages))
    log = FORMATS[name].encode(records_of(messages))
    assert messages_of(FORMATS[name].decode(log).records) == messages
    if name == "v3-batch-headers" and not shared:
        assert bytes(log) == bytes(FORMATS["v3-tagged"].encode(records_of(messages)))


def test_a_reader_takes_any_prefix() -> None:
    """Tag 1 has headers that all records start with.

    The reader accepts three that our encoder does not write: one that records repeat, an empty one, and one of several
    headers without an append time.
    """
    for section, prefix in [
        (f"02 {UNSET_TIME} 01 05 02 0268 0278", (("h", b"x"),)),
        (f"02 {UNSET_TIME} 01 01 00", ()),
        ("01 01 06 04 0269 01 00 00", (("i", None), ("", b""))),
    ]:
        data = with_tags(section)
        back = FORMATS["v3-batch-headers"].decode(data)
        assert [tuple(back.records.headers(i)) for i in range(2)] == [prefix + message.headers for message in MESSAGES]
        check_verdict(data, "v3-batch-headers", READ)


@pytest.mark.parametrize(
    "content",
    ["", "01", "02", "0202", "020268", "02026802", "0202680278 00", "00 00", "0201", "0200", "ffffffff0f", "fefffffff0f"
     [:10], "80"],
)  # fmt: skip
def test_batch_headers_that_are_refused(content: str) -> None:
    """The reader refuses batch headers that are cut short, negative counts and key lengths, and remaining bytes."""
    check_refused(with_tags(b"\1" + tags.write({1: bytes.fromhex(content)})[1:]), "v3-tagged")


# Conversions and hostile tags


@pytest.mark.parametrize(
    "content", [zigzag(1) + zigzag(-(2**31)), zigzag(2**31 - 1), zigzag(1), b"\xff" * 4, zigzag(0) + b"\0"]
)
def test_tag_1_of_an_empty_batch_is_checked_too(content: bytes) -> None:
    """Tag 1 is checked even in an empty batch, where no record uses it."""
    bare = bytes(FORMATS["v3-tagged"].encode(Records.from_lists([]), [0, 0]))
    section = b"\x02" + bytes.fromhex(UNSET_TIME) + b"\x01" + unsigned(len(content)) + content
    assert bare.endswith(b"\x01" + bytes.fromhex(UNSET_TIME))
    empty = sealed(bare[:-11] + section)
    sound = bytes(FORMATS["v3-batch-headers"].encode(RECORDS))
    with pytest.raises(CorruptLog, match="tag 1"):
        read_log(empty)
    log = read_log(sound + empty + sound, on_error="skip")
    assert [error.position for error in log.errors] == [len(sound)]
    assert log.batches["canonical"].tolist() == [True, True]


def test_a_refused_batch_spends_nothing_of_what_the_others_may_share() -> None:
    many = [Message(offset=i, timestamp_ms=NOW_MS, headers=(("h", None),) * 50) for i in range(40)]
    sound = bytes(FORMATS["v3-batch-headers"].encode(records_of(many[:4])))
    hostile = bytes(FORMATS["v3-batch-headers"].encode(records_of(many)))
    limits = Limits(batch_headers=1000, log_expansion=1)
    log = read_log(sound + hostile + sound + sound, on_error="skip", limits=limits)
    assert (len(log), len(log.errors)) == (3, 1)


@pytest.mark.compiled_only
def test_one_large_tag_among_many_batches_takes_no_more_than_its_room() -> None:
    records = Records.from_lists([b"v"] * 2000)
    fields = BatchFields(tagged_fields=[{7: bytes(1 << 20)}, *[{}] * 1999])
    tracemalloc.start()
    log = FORMATS["v3-tagged"].encode(records, 1, batch_fields=fields)
    assert tracemalloc.get_traced_memory()[1] < 8 << 20
    tracemalloc.stop()
    assert bytes(write_log(read_log(log))) == bytes(log)


@pytest.mark.compiled_only
@every_codec
def test_tags_of_each_batch_in_logs_of_several_chunks(codec: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kfbench.batches.CHUNK_BYTES", 200)
    records = Records.from_lists([b"v" * 30] * 50)
    given = [{2 + i: b"tag %d" % i} for i in range(25)]
    log = FORMATS["v3-tagged"].encode(records, 2, codec, batch_fields=BatchFields(tagged_fields=given))
    back = FORMATS["v3-tagged"].decode(log)
    assert [dict(fields) for fields in back.tagged_fields] == given
    assert back.records == records
