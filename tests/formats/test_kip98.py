"""kip98 (the layout in the text of KIP-98): batches by hand, and the sizes that the text states."""

import struct

import numpy as np
import pytest

from kfbench import FORMATS, BatchFields, Records
from kfbench.errors import CorruptLog
from kfbench.records import Shapes
from tests.common import messages_of, records_of
from tests.formats.fuzz import CANONICAL, READ, check_refused, check_verdict, sealed
from tests.reference import kip98
from tests.reference.model import Fields, Message
from tests.strategies import NOW_MS

KIP98 = FORMATS["kip98"]
SMALL = Message(offset=0, timestamp_ms=NOW_MS, key=b"k", value=b"v")


def test_a_batch_by_hand() -> None:
    records = Records.from_lists(
        [b"v", None, b""], keys=[None, b"k", b""], timestamps_ms=[1000, 1001, 999], offsets=[0, 1, 130]
    )
    fields = BatchFields(last_offset=200, producer_id=7, producer_epoch=1, base_sequence=0)
    data = KIP98.encode(records, batch_fields=fields).data.tobytes()
    times = "00000000000003e8 00000000000003e9"
    messages = "04 01 00 00 76  05 02 02 01 016b  05 00 01 8201 00"
    assert data[:12] == bytes(8) + struct.pack(">i", 53 - 12 + 17)
    assert data[16:] == bytes.fromhex(f"02 0000 000000c8 {times} 0000000000000007 0001 00000000 {messages}")


def overhead_bytes(records: int, step_ms: int) -> int:
    """Return the bytes of the text's example that are neither keys nor values.

    The values have 1 KiB, the keys 100 bytes. step_ms: time from record to record.
    """
    shapes = Shapes(
        timestamps_ms=NOW_MS + step_ms * np.arange(records),
        offsets=np.arange(records),
        key_lengths=np.full(records, 100, np.int32),
        value_lengths=np.full(records, 1024, np.int32),
    )
    return int(KIP98.size(shapes, records)[0]) - records * 1124


@pytest.mark.parametrize(
    ("records", "one_ms", "sixty_four_ms"),
    [(1, 59, 59), (3, 71, 73), (10, 113, 122), (50, 353, 402), (100, 689, 752)],
)
def test_the_example_of_the_text(records: int, one_ms: int, sixty_four_ms: int) -> None:
    """The text states 53 + 7 n bytes, with two bytes per timestamp delta. Here a delta below 64 takes one byte."""
    assert overhead_bytes(records, 1) == one_ms == 53 + 6 * records + max(0, records - 64)
    assert overhead_bytes(records, 64) == sixty_four_ms == 53 + 7 * records - 1


@pytest.mark.parametrize("codec", range(8))
def test_codecs(codec: int) -> None:
    """A batch without messages has no payload. It is read under every codec, but not under an unknown one."""
    for data, verdict in ((kip98.encode([], Fields(base_offset=5, last_offset=9)), READ), (kip98.encode([SMALL]), "")):
        changed = sealed(data[:18] + bytes([codec]) + data[19:], "kip98")
        if codec > 4 or verdict:
            check_verdict(changed, "kip98", "attributes" if codec > 4 else verdict if codec else CANONICAL)


# Damage under a correct checksum


def with_messages(content: str) -> bytes:
    """Return a valid batch whose messages section is `content`."""
    return kip98.batch([SMALL], Fields(), "none", bytes.fromhex(content))


@pytest.mark.parametrize(
    "content",
    [
        "00",
        "01 00",
        "02 0000",
        "04 01 00 00",
        "03 01 00 00  00",
        "06 00 00 00 016b",
        "05 00 00 00 026b",
        "04 00 00 00 80",
        "04 02 00 00 01",
        "04 03 00 00 76",
        "05 02 00 00 00 76",
        "04 04 00 00 00",
        "03 83 00 00",
        "04 03 80 80 80",
        "04 03 00 ff ff",
        "ffffffff0f 03 00 00",
        "ffffffff07 03 00 00",
        "80",
        "08 03 00 ff ff ff ff ff 00",
        "0d 03 80 80 80 80 80 80 80 80 80 80 01 00",
    ],
)
def test_messages_that_are_refused(content: str) -> None:
    """The reader refuses wrong lengths, a null value with bytes, unknown attributes, and damaged varints.

    A damaged varint is cut short or too long.
    """
    data = with_messages(content)
    with pytest.raises(CorruptLog) as refusal:
        KIP98.decode(kip98.encode([SMALL]) + data)
    assert refusal.value.position == len(kip98.encode([SMALL]))
    check_refused(data, "kip98")


@pytest.mark.parametrize("content", ["8300 03 00 00", "04 03 8000 00", "05 03 00 808000", "06 00 00 00 8100 6b"])
def test_over_long_numbers_are_read_but_not_canonical(content: str) -> None:
    check_verdict(with_messages(content), "kip98", READ)
    check_verdict(with_messages("03 03 00 00"), "kip98", CANONICAL)


def test_kip98_and_v2_refuse_each_other() -> None:
    """kip98 and v2 have the same magic. The reader of each reports a batch of the other as damaged."""
    message = Message(offset=0, timestamp_ms=NOW_MS, value=bytes(50))
    ours, v2 = kip98.encode([message]), bytes(FORMATS["v2"].encode(records_of([message])))
    for reader, data in [("v2", ours), ("kip98", v2)]:
        with pytest.raises(CorruptLog, match="crc"):
            FORMATS[reader].decode(data)
    assert messages_of(KIP98.decode(ours).records) == [message]
