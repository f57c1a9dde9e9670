"""`append` of damaged columnar requests.

It refuses damage in headers and columns, and cannot see damage in a compressed payload.
"""

import gzip
import struct
from typing import Any

import numpy as np
import pytest

from kfbench import Limits
from kfbench.batches import EncodedLog
from kfbench.broker.append import append
from kfbench.errors import CorruptLog, Refused
from tests.formats.fuzz import sealed
from tests.reference.model import Fields, Message
from tests.research.columnar import reference as columnar
from tests.research.columnar.batches import (
    ANCHOR_MS,
    ATTRIBUTES_AT,
    CODECS,
    COLUMNAR,
    COUNT_AT,
    encoded,
    messages,
    with_payload,
)
from tests.strategies import NOW_MS

PAYLOAD = columnar.payload_section(messages())
MARKER = (b"\0\0\0\1", bytes(6))


class TestNotChecked:
    """Damage inside a compressed payload.

    `append` does not decompress, so the batch is stored and only readers find the damage.
    """

    def check(self, batch: bytes, promise: str, limits: Limits | None = None, **options: Any) -> None:
        done = append(batch, base_offset=7, limits=limits, **options)
        assert (done.work.in_place, done.work.decompressed_bytes) == (1, 0)
        assert bytes(done.data)[21:] == batch[21:]
        with pytest.raises(CorruptLog, match=promise):
            COLUMNAR.decode(done.data, limits=limits)

    @pytest.mark.parametrize("codec", CODECS)
    def test_a_payload_that_cannot_be_decompressed(self, codec: str) -> None:
        self.check(with_payload(b"\xfe no codec has made this \xfe", codec), "decompress")

    @pytest.mark.parametrize("wrong", [PAYLOAD[:-1], PAYLOAD + b"\0"], ids=["short", "long"])
    def test_a_payload_of_another_size_under_a_codec(self, wrong: bytes) -> None:
        self.check(with_payload(gzip.compress(wrong), "gzip"), r"payload: |grows past the limit of")

    @pytest.mark.parametrize("wrong", [PAYLOAD[:-1], PAYLOAD + b"\0", b""], ids=["short", "long", "none"])
    def test_plain_it_is_refused(self, wrong: bytes) -> None:
        with pytest.raises(Refused, match="payload: ") as refusal:
            append(with_payload(wrong))
        assert refusal.value.error == "INVALID_RECORD"

    def test_a_size_in_the_codecs_frame(self) -> None:
        packed = gzip.compress(PAYLOAD)
        self.check(with_payload(packed[:-4] + struct.pack("<I", len(PAYLOAD) + 1), "gzip"), "decompress")

    def test_a_nibble_behind_the_last_digit(self) -> None:
        """The last half-byte (padding) of a hex template is not 0.

        `append` refuses it in a plain payload and does not see it in a compressed one.
        """
        digits = [
            Message(offset=i, timestamp_ms=NOW_MS, key=None, value=b"", headers=(("h", b"%x" % digit),))
            for i, digit in enumerate([1, 2, 3, 10, 11])
        ]
        payload = columnar.payload_section(digits)
        assert payload == b"h\x12\x3a\xb0"  # four hexadecimal digits in half a byte each, then the fifth and padding
        damaged = payload[:-1] + b"\xb1"
        with pytest.raises(Refused, match="padding: ") as refusal:
            append(columnar.batch(digits, Fields(), "none", damaged))
        assert refusal.value.error == "INVALID_RECORD"
        self.check(columnar.batch(digits, Fields(), "gzip", gzip.compress(damaged)), "padding: ")

    def test_a_payload_that_grows_past_every_limit(self) -> None:
        bomb = with_payload(gzip.compress(bytes(10**6)), "gzip")
        self.check(bomb, "limit", limits=Limits(batch_bytes=10**5, log_expansion=1))

    @pytest.mark.parametrize("codec", ["none", "gzip"])
    def test_contents_of_control_records(self, codec: str) -> None:
        for key, value in ((b"\0\0", MARKER[1]), (MARKER[0], b"\0"), (b"\xff\xff\0\1", MARKER[1])):
            sound = [Message(offset=0, timestamp_ms=NOW_MS, key=b"0123"[: len(key)], value=b"012345"[: len(value)])]
            payload = key + value if codec == "none" else gzip.compress(key + value)
            batch = bytearray(columnar.batch(sound, Fields(), codec, payload))
            batch[22] |= columnar.CONTROL
            self.check(sealed(bytes(batch)), "control record", origin="coordinator")
        with pytest.raises(Refused, match="clients are not allowed"):
            append(sealed(bytes(batch)))


class TestOutsideOfTheCodec:
    """Damage in the header or in the columns. The payloads are not readable, so `append` cannot have used them."""

    @pytest.fixture
    def batch(self) -> bytes:
        return with_payload(b"\xfe" * 30, "zstd")

    def test_times_too_far_off(self, batch: bytes) -> None:
        append(batch, now_ms=ANCHOR_MS, before_max_ms=4)
        with pytest.raises(Refused, match=f"timestamp {NOW_MS} of record 0 is out of range") as refusal:
            append(batch, now_ms=ANCHOR_MS, before_max_ms=3)
        assert refusal.value.error == "INVALID_TIMESTAMP"

    def test_records_without_a_key(self) -> None:
        keyless = [Message(offset=i, timestamp_ms=NOW_MS, key=None if i == 3 else b"k", value=b"v") for i in range(5)]
        sent = columnar.batch(keyless, Fields(), "zstd", b"\xfe" * 30)
        assert append(sent).work.in_place == 1
        with pytest.raises(Refused, match="without key: record 3"):
            append(sent, compacted=True)

    @pytest.mark.parametrize(
        ("at", "bits", "promise"),
        [
            (COUNT_AT + 1, 0xFF, "column"),
            (COUNT_AT, 0x80, r"count|column|offset range|batch header"),
            (ATTRIBUTES_AT, 0x80, "column"),  # 8 bytes of the columns are taken for a timestamp
        ],
    )
    def test_damaged_columns(self, batch: bytes, at: int, bits: int, promise: str) -> None:
        broken = bytearray(batch)
        broken[at] |= bits
        log = np.frombuffer(sealed(bytes(broken)), np.uint8).copy()
        before = log.tobytes()
        with pytest.raises(Refused, match=promise) as refusal:
            append(log, in_place=True)
        assert (refusal.value.error, log.tobytes()) == ("INVALID_RECORD", before)

    def test_a_header_that_is_cut_short(self) -> None:
        """Report only the cut header.

        Other rules are not checked, because the fields would be read from the next batch.
        """
        whole = bytes(encoded(producer_id=7, producer_epoch=1, base_sequence=3))
        for end in range(COUNT_AT + 1, COUNT_AT + 15):
            with pytest.raises(Refused, match="a varint runs past the batch") as refusal:
                append(sealed(whole[:end]))
            assert refusal.value.error == "INVALID_RECORD"

    def test_a_batch_that_claims_more_records_than_a_log_may_hold(self) -> None:
        """A batch of fewer than 34 bytes holds 1,000 records without bytes.

        The refusal is CorruptLog, because Kafka has no error code for it.
        """
        null = [Message(offset=i, timestamp_ms=NOW_MS, key=None, value=None) for i in range(1000)]
        sent = columnar.encode(null)
        assert len(sent) < 34
        assert append(sent, limits=Limits(batch_records=1000)).next_offset == 1000
        with pytest.raises(CorruptLog, match=r"limits\.batch_records"):
            append(sent, limits=Limits(batch_records=999))
        two = EncodedLog(data=np.frombuffer(sent * 2, np.uint8), positions=np.arange(3) * len(sent))
        with pytest.raises(CorruptLog, match=r"limits\.log_expansion"):
            append(two, limits=Limits(batch_records=1000, log_expansion=1))
