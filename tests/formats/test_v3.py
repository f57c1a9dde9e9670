"""v3 (KIP-931) and its features: batches by hand, and the exact number of bytes that each feature saves."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kfbench import FORMATS, BatchFields, Records
from tests import strategies
from tests.common import check_against_reference, messages_of, one_batch
from tests.formats.fuzz import READ, check_agrees_with_reference, check_verdict, mutations, sealed
from tests.reference import v23
from tests.reference.model import Message
from tests.strategies import INT32, INT64, NOW_MS

BITS = {name: bits & 0xFFFF for name, (magic, bits) in v23.FEATURES.items() if magic == 3}
NAMES = list(BITS)
COMPACT_NAMES = [name for name in NAMES if not BITS[name] & v23.FIXED_HEADER]
ATTRIBUTES_AT, COMPACT_AT = 21, 37
every_name = pytest.mark.parametrize("name", NAMES)
SMALL = Message(offset=0, timestamp_ms=NOW_MS, value=b"v")
FIXED = "00000004 00000000000003e8 00000000000003e9 00000002"
COMPACT, COMPACT_UNSIGNED = "08 d00f 02 00000002", "04 d00f 02 00000002"
UNSET_TIME = "00 08 ffffffffffffffff"
MARKED = "16 00 00 00 01 0276 02 0268 0278  1c 00 02 02 026b 01 04 0268 0278 0269 01"
BARE = "14 00 00 01 0276 02 0268 0278  1a 02 02 026b 01 04 0268 0278 0269 01"
BARE_UNSIGNED = "0a 00 00 00 0276 01 0168 0278  0d 02 01 026b 00 02 0168 0278 0169 00"
HEADERS_FIRST = "10  00 00 01 02 02 02 02  02 02 02 01 04 02 02 02 01  76 68 78  6b 68 78 69"


@pytest.mark.parametrize(
    ("name", "header", "body"),
    [
        ("v3", COMPACT, BARE),
        ("v3-attributes-only", FIXED, BARE),
        ("v3-header-only", COMPACT, MARKED),
        ("v3-unsigned", COMPACT_UNSIGNED, BARE_UNSIGNED),
        ("v3-headers-first", COMPACT, HEADERS_FIRST),
        ("v3-tagged", f"{COMPACT} 01 {UNSET_TIME}", BARE),
        # Tag 1 has one header of 5 bytes. The records leave it out.
        (
            "v3-batch-headers",
            f"{COMPACT} 02 {UNSET_TIME} 01 05 02 0268 0278",
            "0c 00 00 01 0276 00  12 02 02 026b 01 02 0269 01",
        ),
        (
            "v3-full",
            f"{COMPACT_UNSIGNED} 02 {UNSET_TIME} 01 05 01 0168 0278",
            "0c  00 00 00 02 00  02 01 02 00 01 01 00  76  6b 69",
        ),
    ],
)
def test_a_batch_by_hand(name: str, header: str, body: str) -> None:
    records = Records.from_lists(
        [b"v", None],
        keys=[None, b"k"],
        timestamps_ms=[1000, 1001],
        headers=[[("h", b"x")], [("h", b"x"), ("i", None)]],
    )
    fields = BatchFields(last_offset=4, partition_leader_epoch=2, producer_id=7, producer_epoch=1, base_sequence=0)
    data = FORMATS[name].encode(records, batch_fields=fields).data.tobytes()
    assert data[:17] == bytes(8) + struct.pack(">iib", len(data) - 12, 2, 3)
    assert data[21:] == bytes.fromhex(f"{BITS[name]:04x} 0000000000000007 0001 00000000 {header} {body}")


@pytest.mark.parametrize("bit", range(12, 16))
def test_unknown_features_are_refused(bit: int) -> None:
    for name in NAMES:
        data = bytearray(v23.encode(name, [SMALL]))
        data[ATTRIBUTES_AT] |= 1 << bit - 8
        check_verdict(sealed(bytes(data)), name, "attributes")


def test_each_v3_format_reads_the_others() -> None:
    """A reader of any v3 format reads batches of the others, because attribute bits show the features of a batch."""
    records = Records.from_lists(
        [b"a", None, b"c"], timestamps_ms=[1, 0, 2], headers=[[("h", b"1")], [("h", b"1"), ("h", None)], []]
    )
    for writer in NAMES:
        data = FORMATS[writer].encode(records, 2).data
        for reader in NAMES:
            assert FORMATS[reader].decode(data).records == records
    together = b"".join(bytes(FORMATS[name].encode(records, 2).data) for name in NAMES)
    assert messages_of(FORMATS["v3"].decode(together).records) == messages_of(records) * len(NAMES)


# The header


@pytest.mark.parametrize(("base", "header"), [(-1, 44), (0, 44), (NOW_MS, 49), (2**40, 49), (2**41, 50), (INT64, 53)])
def test_bytes_of_the_compact_header(base: int, header: int) -> None:
    """A record takes one byte less than in v2. The header grows with the base timestamp."""
    records = Records.from_lists([b"v"] * 3, timestamps_ms=[base] * 3)
    v2, v3, compact, bare = (
        int(FORMATS[name].size(records).sum()) for name in ("v2", "v3", "v3-header-only", "v3-attributes-only")
    )
    assert (v2 - compact, v2 - bare, v2 - v3) == (61 - header, 3, 61 - header + 3)


def test_the_widest_header_is_66_bytes() -> None:
    fields = BatchFields(base_offset=0, last_offset=INT32, base_timestamp_ms=-(2**63) + 1, max_timestamp_ms=INT64 // 2)
    for name, width in [("v3", 66), ("v3-unsigned", 66), ("v3-tagged", 77)]:
        log = FORMATS[name].encode(Records.from_lists([]), [0, 0], batch_fields=fields)
        assert len(log.data) == width
        row = FORMATS[name].decode(log).batches.iloc[0]
        assert (row["last_offset"], row["base_timestamp_ms"]) == (INT32, -(2**63) + 1)
        assert row["max_timestamp_ms"] == INT64 // 2


@pytest.mark.sampled
@every_name
@pytest.mark.parametrize("append", [0, NOW_MS - 10**10, NOW_MS + 2**31, INT64])
def test_append_time_may_lie_far_from_the_records(name: str, append: int) -> None:
    """The difference of append time and base timestamp may be negative or exceed an int32.

    It is stored as maxTimestampDelta. Clock skew makes it negative; 24.8 days exceed an int32.
    """
    messages = [Message(offset=i, timestamp_ms=NOW_MS + i) for i in range(3)]
    check_against_reference(name, one_batch(*messages, append_time_ms=append))


@pytest.mark.parametrize("name", COMPACT_NAMES)
def test_damaged_headers(name: str) -> None:
    data = v23.encode(name, [SMALL])
    for end in range(COMPACT_AT, COMPACT_AT + 11):
        check_verdict(sealed(data[:end]), name, "batch header")
    check_verdict(sealed(data[:COMPACT_AT] + b"\xff" * 30), name, "batch header")
    assert data[COMPACT_AT] == 0
    check_verdict(sealed(data[:COMPACT_AT] + b"\x80\x00" + data[COMPACT_AT + 1 :]), name, READ)


# Damage under a correct checksum


@given(data=st.data(), features=st.integers(0, 31))
def test_all_combinations_of_features(data: st.DataObject, features: int) -> None:
    messages, fields = data.draw(strategies.batches_of("v3-full"))
    bits = features << 7
    v23_name = f"features {bits:#06x}"
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(v23.FEATURES, v23_name, (3, bits))
        if bits & v23.TAGGED:
            patch.setattr(v23, "BATCH_HEADERS_NAMES", [v23_name])
            patch.setattr(v23, "TAGGED_NAMES", [v23_name])
        written = v23.encode(v23_name, messages, fields)
    check_agrees_with_reference(written)
    check_agrees_with_reference(data.draw(mutations(written)))
