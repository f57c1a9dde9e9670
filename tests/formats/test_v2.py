"""v2: a batch by hand, damage with a correct checksum, and edge cases of Kafka's classes."""

import struct

import pytest

from kfbench import FORMATS, BatchFields, Records
from kfbench.errors import CorruptLog
from tests.common import messages_of
from tests.formats.fuzz import sealed
from tests.reference import v23
from tests.reference.model import Message
from tests.reference.varint import zigzag
from tests.strategies import INT32, NOW_MS

V2 = FORMATS["v2"]
ATTRIBUTES_AT, COUNT_AT, RECORDS_AT = 21, 57, 61


def test_a_batch_by_hand() -> None:
    records = Records.from_lists(
        [b"v", None], keys=[None, b"k"], timestamps_ms=[1000, 1001], headers=[[("h", b"")], []]
    )
    log = V2.encode(records, batch_fields=BatchFields(last_offset=4, partition_leader_epoch=2))
    header = "0000000000000000 00000044 00000002 02 c3f3c281 0000 00000004 00000000000003e8 00000000000003e9"
    producer = "ffffffffffffffff ffff ffffffff"
    first, second = "14 00 00 00 01 0276 02 0268 00", "0e 00 02 02 026b 01 00"
    assert log.data.tobytes() == bytes.fromhex(f"{header} {producer} 00000002 {first} {second}")


@pytest.mark.parametrize(
    ("base", "records", "last"),
    [(0, 3, 2), (INT32 - 1, 2, INT32), (INT32, 2, 0), (INT32 - 1, 4, 1), (-1, 5, -1)],
)
def test_sequences_wrap(base: int, records: int, last: int) -> None:
    log = V2.encode(Records.from_lists([b""] * records), batch_fields=BatchFields(producer_id=1, base_sequence=base))
    assert V2.decode(log).batches["last_sequence"].tolist() == [last]


def test_a_delete_horizon_makes_deltas_long() -> None:
    records = Records.from_lists([b"v"] * 2, timestamps_ms=[NOW_MS, NOW_MS + 1])
    horizon = NOW_MS + 86_400_000
    log = V2.encode(records, batch_fields=BatchFields(delete_horizon_ms=horizon))
    assert len(log.data) - len(V2.encode(records).data) == 2 * (len(zigzag(-86_400_000)) - 1)
    row = V2.decode(log).batches.iloc[0]
    assert row["delete_horizon_ms"] == row["base_timestamp_ms"] == horizon
    assert row["max_timestamp_ms"] == NOW_MS + 1
    assert V2.decode(log).records == records


# Damage under a correct checksum


SMALL = Message(offset=0, timestamp_ms=NOW_MS, key=b"k", value=b"v", headers=(("h", b"x"),))


@pytest.mark.parametrize(
    ("at", "new", "field"),
    [
        (21, "0006", "attributes"),
        (21, "0007", "attributes"),
        (57, "ffffffff", "count"),
        (57, "7fffffff", "count"),
        (57, "00000002", "count"),
        (61, "01", "record length"),
        (61, "7e", "record length"),
        (61, "16", "header value length"),
        (61, "1a", "record length"),
        (61, "ffffffff7f", "record length"),
        (63, "ffffffffffffffffffff", "timestamp delta"),
        (64, "ffffffffff", "offset delta"),
        (65, "20", "key length"),
        (67, "20", "value length"),
        (69, "01", "header count"),
        (69, "7e", "header count"),
        (70, "01", "header key length"),
        (70, "7e", "header key length"),
        (72, "7e", "header value length"),
    ],
)
def test_the_damaged_field_is_named(at: int, new: str, field: str) -> None:
    sound = v23.encode("v2", [SMALL])
    assert sound[61:].hex() == "18000000026b02760202680278"
    change = bytes.fromhex(new)
    batch = sealed(sound[:at] + change + sound[at + len(change) :])
    with pytest.raises(CorruptLog) as refusal:
        V2.decode(batch)
    assert (refusal.value.position, refusal.value.field) == (0, field)
    assert "\n" not in str(refusal.value)


def test_bytes_after_the_last_record_are_named() -> None:
    sound = v23.encode("v2", [SMALL, SMALL])
    fewer = sealed(sound[:COUNT_AT] + struct.pack(">i", 1) + sound[RECORDS_AT:])
    with pytest.raises(CorruptLog, match="bytes are left after the last record"):
        V2.decode(fewer)


def test_a_count_of_zero_before_bytes_reads_as_nothing() -> None:
    sound = v23.encode("v2", [SMALL])
    back = V2.decode(sealed(sound[:COUNT_AT] + bytes(4) + sound[RECORDS_AT:]))
    assert (len(back), len(back.records)) == (1, 0)
    assert not back.batches["canonical"].any()


@pytest.mark.parametrize(("at", "new"), [(21, "ff80"), (21, "4000"), (62, "01"), (61, "9800"), (63, "8000")], ids=str)
def test_batches_that_are_read_but_not_canonical(at: int, new: str) -> None:
    """The reader accepts unused bits, record attributes and over-long varints, like Kafka's reader.

    It marks the batch as not canonical.
    """
    sound = v23.encode("v2", [SMALL])
    if new in ("9800", "8000"):
        grown = bytearray(sound[:at] + bytes.fromhex(new) + sound[at + 1 :])
        if new == "8000":
            grown[61] += 2
        changed = sealed(bytes(grown))
    else:
        change = bytes.fromhex(new)
        changed = sealed(sound[:at] + change + sound[at + len(change) :])
    if new == "ff80":  # change only the high byte of the attributes
        changed = sealed(changed[:22] + b"\0" + changed[23:])
    back = V2.decode(changed)
    assert messages_of(back.records) == [SMALL]
    assert back.batches["canonical"].tolist() == [False]
    assert V2.decode(sound).batches["canonical"].tolist() == [True]
