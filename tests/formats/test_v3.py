"""v3 (KIP-931) and its two ablations against the reference, and what each feature saves over v2."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kfbench import FORMATS, BatchFields, Records
from kfbench.errors import CorruptLog
from tests import strategies
from tests.common import check_against_reference, check_codec_against_reference, messages_of, one_batch, records_of
from tests.formats.fuzz import check_agrees_with_reference, mutations, sealed
from tests.reference import codecs, v23
from tests.reference.model import Fields, Message
from tests.reference.varint import zigzag
from tests.strategies import INT32, INT64, NOW_MS, Case

NAMES = ["v3", "v3-attributes-only", "v3-header-only"]
CODECS = ["gzip", "snappy", "lz4", "zstd"]
ATTRIBUTES_AT, COMPACT_AT = 21, 37
every_name = pytest.mark.parametrize("name", NAMES)


@every_name
@given(case=strategies.cases())
def test_the_bytes_are_the_references(name: str, case: Case) -> None:
    check_against_reference(name, case)


@every_name
@given(data=st.data())
def test_the_decompressed_bytes_are_the_references(name: str, data: st.DataObject) -> None:
    case, codec = data.draw(strategies.cases(max_batches=2)), data.draw(st.sampled_from(CODECS))
    check_codec_against_reference(name, case, codec)


def test_a_batch_by_hand() -> None:
    """Every byte of a small batch, written out, but for the checksum."""
    records = Records.from_lists([b"v", None], keys=[None, b"k"], timestamps_ms=[1000, 1001])
    fields = BatchFields(last_offset=4, partition_leader_epoch=2, producer_id=7, producer_epoch=1, base_sequence=0)
    start, producer = "0000000000000000 {length} 00000002 03", "0000000000000007 0001 00000000"
    compact, fixed = "08 d00f 02 00000002", "00000004 00000000000003e8 00000000000003e9 00000002"
    bare, marked = "0c 00 00 01 0276 00  0c 02 02 026b 01 00", "0e 00 00 00 01 0276 00  0e 00 02 02 026b 01 00"
    for name, bits, header, body in [
        ("v3", "0080", compact, bare),
        ("v3-attributes-only", "0180", fixed, bare),
        ("v3-header-only", "0000", compact, marked),
    ]:
        data = FORMATS[name].encode(records, batch_fields=fields).data.tobytes()
        length = struct.pack(">i", len(data) - 12).hex()
        assert data[:17] == bytes.fromhex(start.format(length=length))
        assert data[21:] == bytes.fromhex(f"{bits} {producer} {header} {body}")


@pytest.mark.parametrize("records", [1, 2, 63, 64, 65])
@pytest.mark.parametrize("base", [-1, 0, NOW_MS, 2_199_023_255_551, 2_199_023_255_552, INT64])
def test_what_the_compact_header_takes(base: int, records: int) -> None:
    """44 bytes at the least, 51 typically; a record is a byte shorter than in v2, and so may be its length."""
    messages = [Message(offset=i, timestamp_ms=base, value=b"v") for i in range(records)]
    made = records_of(messages)
    header = 37 + len(zigzag(records - 1)) + len(zigzag(base)) + len(zigzag(0)) + 4
    size = {name: int(FORMATS[name].size(made, records)[0]) for name in ["v2", *NAMES]}
    assert size["v2"] - size["v3-header-only"] == 61 - header
    assert size["v2"] - size["v3-attributes-only"] == records
    assert size["v2"] - size["v3"] == 61 - header + records
    if base in (-1, 0) and records < 65:
        assert header == 44
    if base == NOW_MS and records in (2, 63, 64):
        assert header == 49
    for name in NAMES:
        check_against_reference(name, one_batch(*messages))


def test_the_widest_header_is_66_bytes() -> None:
    fields = BatchFields(base_offset=0, last_offset=INT32, base_timestamp_ms=-(2**63) + 1, max_timestamp_ms=INT64 // 2)
    log = FORMATS["v3"].encode(Records.from_lists([]), [0, 0], batch_fields=fields)
    assert len(log.data) == 66
    row = FORMATS["v3"].decode(log).batches.iloc[0]
    assert (row["last_offset"], row["base_timestamp_ms"], row["max_timestamp_ms"]) == (INT32, -(2**63) + 1, INT64 // 2)


@every_name
@pytest.mark.parametrize("append", [0, NOW_MS - 10**10, NOW_MS + 2**31, INT64])
def test_append_time_may_lie_far_from_the_records(name: str, append: int) -> None:
    """maxTimestampDelta is negative under clock skew, and past 24.8 days wider than int32."""
    messages = [Message(offset=i, timestamp_ms=NOW_MS + i) for i in range(3)]
    check_against_reference(name, one_batch(*messages, append_time_ms=append))


@every_name
def test_empty_and_control_batches(name: str) -> None:
    empty = Fields(base_offset=50, last_offset=59, base_timestamp_ms=-1, max_timestamp_ms=NOW_MS, producer_id=9)
    control = Fields(is_control=True, is_transactional=True, producer_id=9, producer_epoch=0)
    marker = Message(offset=60, timestamp_ms=NOW_MS, key=bytes(4), value=bytes(6))
    case = Case(batches=((), (marker,)), fields=(empty, control))
    check_against_reference(name, case)
    for codec in CODECS:
        check_codec_against_reference(name, case, codec)


def test_a_reader_needs_nothing_but_the_bytes() -> None:
    """Each name reads what the others write: the features are in the attributes."""
    records = Records.from_lists([b"a", None, b"c"], timestamps_ms=[1, 0, 2])
    for writer in NAMES:
        data = FORMATS[writer].encode(records, 2).data
        for reader in NAMES:
            assert FORMATS[reader].decode(data).records == records
    together = b"".join(bytes(FORMATS[name].encode(records, 2).data) for name in NAMES)
    assert len(FORMATS["v3"].decode(together).records) == 9


@every_name
@pytest.mark.parametrize("bit", range(9, 16))
def test_unknown_features_are_refused(name: str, bit: int) -> None:
    data = bytearray(v23.encode(name, [Message(offset=0, value=b"v")]))
    (attributes,) = struct.unpack_from(">H", data, ATTRIBUTES_AT)
    struct.pack_into(">H", data, ATTRIBUTES_AT, attributes | 1 << bit)
    with pytest.raises(CorruptLog, match="attributes: bits are set"):
        FORMATS[name].decode(sealed(bytes(data)))


@pytest.mark.parametrize("name", ["v3", "v3-header-only"])
def test_a_header_that_runs_past_the_batch(name: str) -> None:
    data = v23.encode(name, [Message(offset=0, timestamp_ms=NOW_MS, value=b"v")])
    for end in range(COMPACT_AT, COMPACT_AT + 11):
        with pytest.raises(CorruptLog, match="batch header"):
            FORMATS[name].decode(sealed(data[:end]))
    endless = data[:COMPACT_AT] + b"\xff" * 30
    with pytest.raises(CorruptLog, match="batch header"):
        FORMATS[name].decode(sealed(endless))


@pytest.mark.parametrize("name", ["v3", "v3-header-only"])
def test_an_over_long_header_is_read_but_not_canonical(name: str) -> None:
    message = Message(offset=0, timestamp_ms=NOW_MS, value=b"v")
    data = v23.encode(name, [message])
    assert data[COMPACT_AT] == 0
    back = FORMATS[name].decode(sealed(data[:COMPACT_AT] + b"\x80\x00" + data[COMPACT_AT + 1 :]))
    assert messages_of(back.records) == [message]
    assert back.batches["canonical"].tolist() == [False]


@every_name
@given(data=st.data())
def test_changed_bytes_read_as_the_reference_reads_them(name: str, data: st.DataObject) -> None:
    messages = data.draw(strategies.message_lists(min_size=0, max_size=3))
    fields = data.draw(strategies.v2_fields(messages, 0))
    check_agrees_with_reference(data.draw(mutations(v23.encode(name, messages, fields))))


@every_name
@given(data=st.data())
def test_changed_bytes_inside_a_codec(name: str, data: st.DataObject) -> None:
    messages = data.draw(strategies.message_lists(min_size=1, max_size=3))
    codec = data.draw(st.sampled_from(CODECS))
    plain = v23.encode(name, messages)
    header = len(plain) - len(v23.records_section(name, messages))
    changed = data.draw(mutations(plain))
    batch = bytearray(plain[:header] + codecs.compress(codec, changed[header:], 2))
    batch[ATTRIBUTES_AT + 1] |= CODECS.index(codec) + 1
    check_agrees_with_reference(sealed(bytes(batch)))
