"""`append` of columnar batches sets header fields in place, or rebuilds the batch."""

import struct
from typing import Any

import numpy as np
import pytest

from kfbench import FORMATS, BatchFields, Records, read_log
from kfbench.broker.append import append
from kfbench.broker.compact import compact
from kfbench.broker.convert import convert
from kfbench.broker.mirror import mirror
from tests.broker.columnar_batches import (
    ANCHOR_MS,
    ATTRIBUTES,
    COLUMNAR,
    FIXED,
    LATER_MS,
    aged,
    changed,
    encoded,
    messages,
)
from tests.common import reference_decode
from tests.formats.fuzz import sealed
from tests.reference import columnar
from tests.reference.model import Message
from tests.strategies import NOW_MS


class TestInPlace:
    @pytest.mark.parametrize("codec", ["none", "zstd"])
    @pytest.mark.parametrize("append_time", [False, True])
    @pytest.mark.parametrize(
        "fields", [{}, {"producer_id": 7, "producer_epoch": 1, "base_sequence": 3}], ids=["", "state"]
    )
    def test_columns_and_payload_are_not_touched(self, codec: str, append_time: bool, fields: dict[str, int]) -> None:
        log = encoded(codec, **fields)
        before = bytes(log)
        now: dict[str, Any] = {"timestamp_type": "append", "now_ms": LATER_MS} if append_time else {}
        done = append(log, in_place=True, base_offset=2**56 + 5, partition_leader_epoch=2**24 + 1, **now)
        assert np.shares_memory(done.data, log.data)
        assert (done.work.in_place, done.work.decompressed_bytes) == (1, 0)
        outside = {*range(8), *range(12, 16)}
        stamped = {*range(17, 21), 22, *range(23, FIXED)} if append_time else set()
        assert changed(before, done.data) <= outside | stamped
        assert done.work.written_bytes == 12 + (12 if append_time else 0)
        assert done.work.read_bytes == len(before) + (len(before) - ATTRIBUTES if append_time else 0)
        (batch,), _ = reference_decode("columnar", bytes(done.data))
        assert [m.offset for m in batch.messages] == [2**56 + 5 + i for i in range(5)]
        assert (batch.partition_leader_epoch, batch.is_append_time) == (2**24 + 1, append_time)
        assert batch.read_timestamps_ms() == ([LATER_MS] * 5 if append_time else [NOW_MS + i for i in range(5)])
        assert [(m.key, m.value, m.headers) for m in batch.messages] == [
            (m.key, m.value, m.headers) for m in messages()
        ]

    @pytest.mark.parametrize("codec", ["none", "zstd"])
    @pytest.mark.parametrize("in_place", [False, True])
    def test_create_times_are_lost_with_their_base(self, codec: str, in_place: bool) -> None:
        done = append(encoded(codec), timestamp_type="append", now_ms=LATER_MS, in_place=in_place)
        assert (done.work.in_place, dict(done.work.losses)) == (1, {"create timestamps": 5})
        assert dict(done.encoded.losses) == {"create timestamps": 5}
        assert COLUMNAR.decode(done.data).create_timestamps_ms.tolist() == [-1] * 5
        (batch,), _ = reference_decode("columnar", bytes(done.data))
        assert [m.timestamp_ms for m in batch.messages] == [-1] * 5

    def test_unknown_times_are_no_loss(self) -> None:
        times, offsets = [-1, NOW_MS, -1, -1, -1], [0, 1, 2, 0, 1]
        sent = COLUMNAR.encode(Records.from_lists([b"v"] * 5, timestamps_ms=times, offsets=offsets), [0, 3, 5])
        done = append(sent, timestamp_type="append", now_ms=LATER_MS)
        assert (done.work.in_place, dict(done.work.losses)) == (2, {"create timestamps": 1})

    def test_ages_are_not_converted_to_v2(self) -> None:
        """Regression test: create times of 1,000 and 2,000 ms became 999,000 and 1,000,000 ms in v2."""
        log = COLUMNAR.encode(Records.from_lists([b"a", b"b"], timestamps_ms=[1000, 2000]), 2)
        done = append(log, timestamp_type="append", now_ms=10**6)
        assert dict(done.work.losses) == {"create timestamps": 2}
        there = convert(done.data, "v2")
        read = FORMATS["v2"].decode(there.data)
        (row,) = read.batch_rows
        assert (row["base_timestamp_ms"], row["max_timestamp_ms"], row["append_time_ms"]) == (-1, 10**6, 10**6)
        assert read.create_timestamps_ms.tolist() == [-1, -1]
        assert read.records.timestamps_ms.tolist() == [10**6] * 2
        # The conversion back to columnar loses nothing and stores no create times.
        back = convert(there.data, "columnar")
        assert not back.work.losses
        assert len(back.data) < len(done.data)
        assert bytes(convert(back.data, "v2").data) == bytes(there.data)
        assert COLUMNAR.decode(back.data).batch_rows["canonical"].all()

    def test_a_mirror_and_a_cleaner_keep_the_append_time(self) -> None:
        """A mirror sends the append time as the timestamp of each record.

        Compaction keeps the append time of the batch.
        """
        done = append(encoded(), timestamp_type="append", now_ms=LATER_MS)
        sent = COLUMNAR.decode(mirror(done.data, "columnar").data)
        assert sent.create_timestamps_ms.tolist() == [LATER_MS] * 5
        for kept, count in ((encoded(count=3), 3), (encoded(), 3)):  # of 3 records 3 stay; of 5 records 3 stay
            stamped = append(kept, timestamp_type="append", now_ms=LATER_MS).data
            clean = COLUMNAR.decode(compact(stamped, now_ms=LATER_MS).data)
            assert clean.records.timestamps_ms.tolist() == [LATER_MS] * count
            (row,) = clean.batch_rows
            assert (row["append_time_ms"], row["max_timestamp_ms"]) == (LATER_MS, LATER_MS)

    def test_an_append_time_that_becomes_create_time(self) -> None:
        """Append a batch with append time to a topic with create time.

        Its records get the old append time as create time, as in Kafka.
        """
        stamped = append(encoded(), timestamp_type="append", now_ms=LATER_MS).data
        done = append(stamped)
        assert (done.work.in_place, done.work.rewritten) == (0, 1)
        back = COLUMNAR.decode(done.data)
        assert set(back.records.timestamps_ms.tolist()) == set(back.create_timestamps_ms.tolist()) == {LATER_MS}
        ageless = COLUMNAR.encode(Records.from_lists([b"v"] * 2, timestamps_ms=[NOW_MS] * 2), 2)
        done = append(append(ageless, timestamp_type="append", now_ms=LATER_MS).data)
        assert done.work.in_place == 1
        assert COLUMNAR.decode(done.data).create_timestamps_ms.tolist() == [LATER_MS] * 2

    def test_an_anchor_keeps_them(self) -> None:
        """Create times survive an append time if the batch stores its own create-time maximum (an anchor).

        A batch has one if its header maximum differs from the latest record. It also has one if an encoder wrote the
        append time.
        """
        log = encoded(max_timestamp_ms=NOW_MS + 99)
        done = append(log, timestamp_type="append", now_ms=LATER_MS)
        assert (done.work.in_place, dict(done.work.losses)) == (1, {})
        back = COLUMNAR.decode(done.data)
        assert back.create_timestamps_ms.tolist() == [NOW_MS + i for i in range(5)]
        assert set(back.records.timestamps_ms.tolist()) == {LATER_MS}

    @pytest.mark.parametrize("now_ms", [ANCHOR_MS, LATER_MS])
    def test_a_rebuilt_batch_keeps_create_times(self, now_ms: int) -> None:
        done = append(encoded("gzip"), codec="lz4", timestamp_type="append", now_ms=now_ms)
        assert (done.work.rewritten, dict(done.work.losses)) == (1, {})
        assert COLUMNAR.decode(done.data).create_timestamps_ms.tolist() == [NOW_MS + i for i in range(5)]

    def test_a_wrong_maximum_of_a_batch_with_an_anchor_is_corrected(self) -> None:
        for wrong_ms in (0, NOW_MS - 1, LATER_MS):
            done = append(encoded("gzip", max_timestamp_ms=wrong_ms))
            assert (done.work.in_place, done.max_timestamp_ms.tolist()) == (1, [ANCHOR_MS])
            back = COLUMNAR.decode(done.data)
            assert back.batch_rows["max_timestamp_ms"].tolist() == [ANCHOR_MS]
            assert back.records.timestamps_ms.tolist() == [NOW_MS + i for i in range(5)]

    def test_a_negative_maximum_stays_if_times_count_from_it(self) -> None:
        """The header maximum is -5 here, and the timestamps are stored relative to it.

        A v2 batch would get the maximum -1.
        """
        log = COLUMNAR.encode(Records.from_lists([b"v"] * 2, timestamps_ms=[-9, -5]), 2)
        done = append(log)
        assert (done.work.in_place, done.max_timestamp_ms.tolist()) == (1, [-1])
        assert COLUMNAR.decode(done.data).records.timestamps_ms.tolist() == [-9, -5]


class TestRebuilt:
    """Batches that `append` must rebuild, because it cannot set their maximum timestamp in place."""

    def test_one_beyond_48_bits(self) -> None:
        log = COLUMNAR.encode(Records.from_lists([b"v"] * 2, timestamps_ms=[NOW_MS, 2**47]), 2)
        assert append(log).work.in_place == 1  # create time: no field needs a change
        done = append(log, timestamp_type="append", now_ms=LATER_MS)
        assert (done.work.rewritten, done.work.in_place) == (1, 0)
        back = COLUMNAR.decode(done.data)
        assert back.records.timestamps_ms.tolist() == [LATER_MS] * 2
        assert back.create_timestamps_ms.tolist() == [NOW_MS, 2**47]
        assert back.batch_rows["canonical"].all()

    def test_a_broker_whose_clock_is_beyond(self) -> None:
        for now_ms, in_place in ((2**47 - 1, 1), (2**47, 0)):
            done = append(encoded(), timestamp_type="append", now_ms=now_ms)
            assert (done.work.in_place, done.work.rewritten) == (in_place, 1 - in_place)
            assert COLUMNAR.decode(done.data).records.timestamps_ms.tolist() == [now_ms] * 5

    def test_a_wide_maximum_that_fits_48_bits(self) -> None:
        """A maximum stored in the wide (64-bit) field forces a rebuild, even if the value fits 48 bits.

        Readers then ignore the 48-bit field at byte 23.
        """
        narrow, wide = (encoded(max_timestamp_ms=time_ms) for time_ms in (LATER_MS, 2**60))
        batch = bytearray(bytes(wide))
        at = bytes(batch).index(struct.pack(">q", 2**60))
        batch[at : at + 8] = struct.pack(">q", LATER_MS)
        sent = sealed(bytes(batch))
        for source, in_place in ((bytes(narrow), 1), (sent, 0)):
            done = append(source, timestamp_type="append", now_ms=LATER_MS + 5)
            assert (done.work.in_place, done.work.rewritten) == (in_place, 1 - in_place)
            assert set(COLUMNAR.decode(done.data).records.timestamps_ms.tolist()) == {LATER_MS + 5}

    def test_a_wrong_maximum_without_an_anchor(self) -> None:
        sent = aged(NOW_MS + 50)
        assert read_log(sent).records.timestamps_ms.tolist() == [NOW_MS + 46]
        done = append(sent)
        assert (done.work.rewritten, done.max_timestamp_ms.tolist()) == (1, [NOW_MS + 46])
        back = COLUMNAR.decode(done.data)
        assert back.records.timestamps_ms.tolist() == back.batch_rows["max_timestamp_ms"].tolist() == [NOW_MS + 46]
        assert append(sent, timestamp_type="append", now_ms=LATER_MS).work.in_place == 1

    @pytest.mark.parametrize("codec", ["none", "gzip"])
    @pytest.mark.parametrize("offsets", [[0, 2, 1], [2, 1, 0], [0, 0, 2], [1, 1, 1]])
    def test_offsets_that_do_not_rise_by_one_are_found_with_any_codec(self, codec: str, offsets: list[int]) -> None:
        sent = Records.from_lists([b"a", b"b", b"c"], timestamps_ms=[NOW_MS] * 3, offsets=offsets)
        log = COLUMNAR.encode(sent, 3, codec, batch_fields=BatchFields(base_offset=0, last_offset=2))
        done = append(log, base_offset=50)
        assert (done.work.rewritten, done.work.in_place) == (1, 0)
        back = COLUMNAR.decode(done.data).records
        assert back.offsets.tolist() == [50, 51, 52]
        assert [back.value(i) for i in range(3)] == [b"a", b"b", b"c"]

    def test_stored_offsets_that_rise_by_one(self) -> None:
        batch = bytearray(columnar.encode([Message(offset=0, timestamp_ms=NOW_MS, key=b"k", value=b"v")]))
        batch[ATTRIBUTES] |= columnar.OFFSETS >> 8
        sent = sealed(bytes(batch[: FIXED + 1]) + b"\0\0" + bytes(batch[FIXED + 1 :]))  # last offset delta, one delta
        done = append(sent, base_offset=9)
        assert (done.work.in_place, done.work.rewritten) == (1, 0)
        assert COLUMNAR.decode(done.data).records.offsets.tolist() == [9]
