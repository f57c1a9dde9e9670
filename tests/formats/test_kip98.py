"""kip98 (the layout in the text of KIP-98): batches by hand, and the sizes that the text states."""

import struct

import numpy as np
import pytest

from kfbench import FORMATS, BatchFields, Records
from kfbench.errors import CorruptLog
from kfbench.records import Shapes
from tests.common import check_against_reference, messages_of, one_batch, records_of
from tests.formats.fuzz import check_agrees_with_reference, sealed
from tests.reference import kip98
from tests.reference.model import Fields, Message
from tests.strategies import INT32, NOW_MS

KIP98 = FORMATS["kip98"]
ATTRIBUTES_AT, RECORDS_AT = 17, 53
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


@pytest.mark.parametrize("delta", [0, 1, 63, 64, 127, 128, 16383, 16384, 2**21, 2**28, INT32, -1, -64, -(2**31)])
def test_offset_deltas_are_unsigned(delta: int) -> None:
    """Offset deltas are unsigned varints.

    A negative delta is written as an int32 in two's complement, in five bytes.
    """
    messages = [Message(offset=2**31), Message(offset=2**31 + delta)]
    check_against_reference("kip98", one_batch(*messages))
    width = 5 if delta < 0 else max(1, -(-delta.bit_length() // 7))
    assert KIP98.size(records_of(messages)).tolist() == [53 + 4 + 3 + width]


def test_a_codec_around_nothing() -> None:
    """A batch without messages has no payload. It is read under every codec in its attributes."""
    empty = kip98.encode([], Fields(base_offset=5, last_offset=9))
    for codec in range(5):
        data = bytearray(empty)
        data[ATTRIBUTES_AT + 1] |= codec
        assert len(KIP98.decode(sealed(bytes(data), "kip98")).records) == 0
        check_agrees_with_reference(sealed(bytes(data), "kip98"), "kip98")


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
    for log in (data, kip98.encode([SMALL]) + data):
        with pytest.raises(CorruptLog) as refusal:
            KIP98.decode(log)
        assert refusal.value.position == len(log) - len(data)
    check_agrees_with_reference(data, "kip98")


@pytest.mark.parametrize("content", ["8300 03 00 00", "04 03 8000 00", "05 03 00 808000", "06 00 00 00 8100 6b"])
def test_over_long_numbers_are_read_but_not_canonical(content: str) -> None:
    data = with_messages(content)
    assert KIP98.decode(data).batches["canonical"].tolist() == [False]
    check_agrees_with_reference(data, "kip98")
    assert KIP98.decode(with_messages("03 03 00 00")).batches["canonical"].tolist() == [True]


@pytest.mark.parametrize("attributes", ["0005", "0006", "0007"])
def test_unknown_codecs_are_refused(attributes: str) -> None:
    data = kip98.encode([SMALL])
    data = data[:ATTRIBUTES_AT] + bytes.fromhex(attributes) + data[ATTRIBUTES_AT + 2 :]
    with pytest.raises(CorruptLog, match="attributes"):
        KIP98.decode(sealed(data, "kip98"))


def test_kip98_and_v2_refuse_each_other() -> None:
    """kip98 and v2 have the same magic. The reader of each reports a batch of the other as damaged."""
    message = Message(offset=0, timestamp_ms=NOW_MS, value=bytes(50))
    ours, v2 = kip98.encode([message]), bytes(FORMATS["v2"].encode(records_of([message])))
    for reader, data in [("v2", ours), ("kip98", v2)]:
        with pytest.raises(CorruptLog, match="crc"):
            FORMATS[reader].decode(data)
    assert messages_of(KIP98.decode(ours).records) == [message]
