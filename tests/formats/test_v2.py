"""v2: a batch by hand, and the verdict on each field that is damaged under a correct checksum."""

import pytest

from kfbench import FORMATS, BatchFields, Records
from tests.formats.fuzz import CANONICAL, READ, check_verdict, sealed
from tests.reference import v23
from tests.reference.model import Message
from tests.strategies import NOW_MS

V2 = FORMATS["v2"]


def test_a_batch_by_hand() -> None:
    records = Records.from_lists(
        [b"v", None], keys=[None, b"k"], timestamps_ms=[1000, 1001], headers=[[("h", b"")], []]
    )
    log = V2.encode(records, batch_fields=BatchFields(last_offset=4, partition_leader_epoch=2))
    header = "0000000000000000 00000044 00000002 02 c3f3c281 0000 00000004 00000000000003e8 00000000000003e9"
    producer = "ffffffffffffffff ffff ffffffff"
    first, second = "14 00 00 00 01 0276 02 0268 00", "0e 00 02 02 026b 01 00"
    assert log.data.tobytes() == bytes.fromhex(f"{header} {producer} 00000002 {first} {second}")


SMALL = Message(offset=0, timestamp_ms=NOW_MS, key=b"k", value=b"v", headers=(("h", b"x"),))


SOUND = v23.encode("v2", [SMALL])


@pytest.mark.parametrize(
    ("at", "removed", "new", "verdict"),
    [
        (21, 2, "0006", "attributes"),
        (21, 2, "0007", "attributes"),
        (57, 4, "ffffffff", "count"),
        (57, 4, "7fffffff", "count"),
        (57, 4, "00000002", "count"),
        (74, 0, "00", "count"),
        (61, 1, "01", "record length"),
        (61, 1, "7e", "record length"),
        (61, 1, "16", "header value length"),
        (61, 1, "1a", "record length"),
        (61, 5, "ffffffff7f", "record length"),
        (63, 10, "ffffffffffffffffffff", "timestamp delta"),
        (64, 5, "ffffffffff", "offset delta"),
        (65, 1, "20", "key length"),
        (67, 1, "20", "value length"),
        (69, 1, "01", "header count"),
        (69, 1, "7e", "header count"),
        (70, 1, "01", "header key length"),
        (70, 1, "7e", "header key length"),
        (72, 1, "7e", "header value length"),
        # As Kafka's reader: no records and ignored bytes, unused bits, record attributes, over-long varints.
        (57, 4, "00000000", READ),
        (21, 1, "ff", READ),
        (21, 1, "40", READ),
        (62, 1, "01", READ),
        (61, 1, "9800", READ),
        (61, 3, "1a008000", READ),
        (0, 0, "", CANONICAL),
    ],
)
def test_each_field(at: int, removed: int, new: str, verdict: str) -> None:
    assert SOUND[61:].hex() == "18000000026b02760202680278"
    check_verdict(sealed(SOUND[:at] + bytes.fromhex(new) + SOUND[at + removed :]), "v2", verdict)
