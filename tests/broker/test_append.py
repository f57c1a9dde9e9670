"""`append` assigns the right header fields and counts its work. tests/test_golden.py compares it with Kafka."""

import gzip
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from kfbench import FORMATS, Records
from kfbench.batches import BatchFields, EncodedLog
from kfbench.broker.append import append
from kfbench.errors import IllegalCombination, InvalidRecords
from kfbench.layouts import NO_TIMESTAMP
from kfbench.limits import Limits
from kfbench.log.writing import chained
from tests.broker.sample_logs import FIXED, LATER_MS, NAMES, SEALED, VARIABLE, encoded, joined, records, refused
from tests.common import MESSAGES, batch_fields_of, bounds_of, messages_of, records_of
from tests.reference import v01
from tests.reference.model import Message
from tests.strategies import NOW_MS, Case, cases_of


class TestAssigns:
    @pytest.mark.parametrize("name", NAMES)
    def test_each_request_its_own_partition(self, name: str) -> None:
        done = append(encoded(name), name, base_offset=[1000, 0])
        assert isinstance(done.next_offset, np.ndarray)
        assert done.next_offset.tolist() == [1005, 5]
        offsets = FORMATS[name].decode(done.encoded).records.offsets.tolist()
        assert offsets == [*range(1000, 1005), *range(5)]

    @pytest.mark.sampled
    @pytest.mark.parametrize("codec", ["none", "gzip"])
    @pytest.mark.parametrize(
        "name", [name for name in NAMES if "append_time_ms" in FORMATS[name].capabilities.batch_fields]
    )
    def test_append_time(self, name: str, codec: str) -> None:
        done = append(encoded(name, codec), name, timestamp_type="append", now_ms=LATER_MS)
        back = FORMATS[name].decode(done.encoded)
        assert set(back.records.timestamps_ms.tolist()) == {LATER_MS}
        assert done.max_timestamp_ms.tolist() == [LATER_MS] * 2
        sent = records(10).timestamps_ms.tolist()
        if name != "v1" or codec != "none":  # this overwrites the create time
            assert back.create_timestamps_ms.tolist() == sent
        if "tagged_fields" in FORMATS[name].capabilities.batch_fields:
            assert back.batch_rows["max_timestamp_ms"].tolist() == [sent[4], sent[9]]

    @pytest.mark.parametrize("codec", ["none", "lz4"])
    @pytest.mark.parametrize("name", ["enriched", "enriched-ms"])
    def test_enriched_messages_get_their_time_of_arrival(self, name: str, codec: str) -> None:
        now_ms = LATER_MS // 1000 * 1000
        done = append(encoded(name, codec), name, timestamp_type="append", now_ms=now_ms)
        assert set(FORMATS[name].decode(done.encoded).batch_rows["max_timestamp_ms"].tolist()) == {now_ms}

    @pytest.mark.sampled
    @pytest.mark.parametrize("name", ["v1", *SEALED])
    @pytest.mark.parametrize("wrong_ms", [0, NOW_MS - 1, LATER_MS])
    def test_a_wrong_maximum_is_mended(self, name: str, wrong_ms: int) -> None:
        log = encoded(name, "gzip", max_timestamp_ms=wrong_ms)
        done = append(log, name)
        right = records(10).timestamps_ms[[4, 9]].tolist()
        assert FORMATS[name].decode(done.encoded).batch_rows["max_timestamp_ms"].tolist() == right
        assert done.max_timestamp_ms.tolist() == right

    @pytest.mark.sampled
    @pytest.mark.parametrize("codec", ["none", "gzip"])
    @pytest.mark.parametrize("source", ["v0", "v1", "v2", "v3", "v3-full", "kip98", "enriched-ms"])
    @pytest.mark.parametrize("target", ["v0", "v1", "v2", "v3", "v3-headers-first", "kip98", "enriched-ms"])
    def test_another_format(self, source: str, target: str, codec: str) -> None:
        done = append(encoded(source, codec), source, to=target, base_offset=100, lossy=True)
        back = FORMATS[target].decode(done.encoded)
        assert back.records.offsets.tolist() == list(range(100, 110))
        sent = messages_of(records(10))
        assert [(m.key, m.value) for m in messages_of(back.records)] == [(m.key, m.value) for m in sent]
        if "v0" not in (source, target):
            assert back.records.timestamps_ms.tolist() == [m.timestamp_ms for m in sent]
        if source != target:
            assert (done.converted_records, done.work.in_place) == (10, 0)
        if target in SEALED:
            assert len(back) == 2  # the broker stores one batch per produce request

    def test_another_codec(self) -> None:
        done = append(encoded("v2", "gzip"), "v2", codec="lz4", base_offset=1)
        assert set(FORMATS["v2"].decode(done.encoded).batches["codec"]) == {"lz4"}
        plain = 2 * int(FORMATS["v2"].size(records(5))[0] - 61)
        assert (done.work.decompressed_bytes, done.work.recompressed_bytes, done.work.rewritten) == (plain, plain, 2)

    @pytest.mark.sampled
    @pytest.mark.parametrize("name", ["v1", "v2", "v3", "v3-headers-first", "kip98", "enriched-ms"])
    @pytest.mark.parametrize("codec", [None, "none", "gzip"])
    def test_codecs_that_change_from_request_to_request(self, name: str, codec: str | None) -> None:
        sent = ["gzip", "snappy", "gzip", "lz4"]
        log = joined(*(encoded(name, each) for each in sent))
        done = append(log, name, codec=codec, base_offset=3)
        each = [append(encoded(name, was), name, codec=codec, base_offset=3 + 10 * i) for i, was in enumerate(sent)]
        assert bytes(done.data) == b"".join(bytes(one.data) for one in each)
        assert (done.positions == chained([one.positions for one in each])).all()
        assert done.max_timestamp_ms.tolist() == [time for one in each for time in one.max_timestamp_ms.tolist()]
        for counter in ("in_place", "rewritten", "decompressed_bytes", "recompressed_bytes"):
            assert getattr(done.work, counter) == sum(getattr(one.work, counter) for one in each)
        assert done.converted_records == sum(one.converted_records for one in each)

    @pytest.mark.parametrize("name", [name for name in NAMES if FORMATS[name].magic == 3])
    def test_batches_of_the_logs_format_stay(self, name: str) -> None:
        log = encoded(name, "gzip")
        is_tagged = (
            "tagged_fields" in FORMATS[name].capabilities.batch_fields
        )  # may share batch headers, which attributes do not show
        assert append(log, None, to=name).work.in_place == (0 if is_tagged else 2)
        assert append(log, name, to=name).work.in_place == 2
        assert append(log, None, to="v3" if name != "v3" else "v3-unsigned").work.rewritten == 2

    @pytest.mark.parametrize("codec", ["none", "gzip"])
    @pytest.mark.parametrize("name", ["v3-tagged", "v3-full"])
    def test_a_producer_cannot_forge_append_time(self, name: str, codec: str) -> None:
        right = records(10).timestamps_ms[[4, 9]].tolist()
        for fields in ({"append_time_ms": LATER_MS}, {"append_time_ms": LATER_MS, "timestamp_type": 0}):
            done = append(encoded(name, codec, **fields), name)
            rows = FORMATS[name].decode(done.encoded).batch_rows
            assert (rows["max_timestamp_ms"].tolist(), done.max_timestamp_ms.tolist()) == (right, right)
            assert rows["append_time_ms"].tolist() == [NO_TIMESTAMP] * 2
            assert done.work.in_place == 2

    def test_of_all_magics(self) -> None:
        data = [bytes(encoded(name).data) for name in ("v0", "v1")]
        ends = [0, *np.cumsum([len(part) for part in data]).tolist()]
        log = EncodedLog(data=np.frombuffer(b"".join(data), np.uint8), positions=np.array(ends))
        done = append(log, base_offset=5)
        assert done.next_offset == 25
        assert append(log, to="v2", base_offset=5).work.rewritten == 20

    def test_an_incomplete_last_batch_is_cut_off(self) -> None:
        log = encoded("v1")
        done = append(log.data[:-1], "v1")
        assert (len(done.data), done.next_offset) == (int(len(log.data) * 0.9), 9)


class TestSetsOutOfOrder:
    """Compressed sets with wrong relative offsets, as some clients write them.

    The broker rebuilds the set with right ones.
    """

    @pytest.mark.parametrize("offsets", [[0, 0, 0], [0, 2, 4], [2, 1, 0], [1, 2, 3]])
    def test_v1(self, offsets: list[int]) -> None:
        messages = [Message(offset=i, timestamp_ms=NOW_MS, key=b"k", value=b"v") for i in offsets]
        inner = b"".join(v01.entry(1, m.offset, 0, NOW_MS, m.key, m.value) for m in messages)
        sent = v01.wrapper(1, "gzip", messages, gzip.compress(inner))
        done = append(sent, "v1", base_offset=50)
        assert FORMATS["v1"].decode(done.data).records.offsets.tolist() == [50, 51, 52]
        assert (done.work.rewritten, done.work.in_place, done.converted_records) == (1, 0, 3)
        assert done.work.decompressed_bytes == len(inner)

    @pytest.mark.parametrize("name", ["v2", "v3", "v3-headers-first", "v3-full", "enriched-ms"])
    def test_holes(self, name: str) -> None:
        held = records(10)
        sparse = records_of(
            [
                Message(offset=m.offset * 2, timestamp_ms=m.timestamp_ms, key=m.key, value=m.value)
                for m in messages_of(held.part(0, 5))
            ]
            + messages_of(held.part(5, 10))
        )
        log = FORMATS[name].encode(sparse, 5, "gzip")
        done = append(log, name, base_offset=50, origin="coordinator")
        back = FORMATS[name].decode(done.encoded).records
        assert back.offsets.tolist() == list(range(50, 60))
        assert [m.value for m in messages_of(back)] == [m.value for m in messages_of(held)]
        assert (done.work.rewritten, done.work.in_place, done.converted_records) == (1, 1, 5)

    def test_a_control_batch(self) -> None:
        """A plain control batch stays plain even if the topic has a codec.

        If its offsets are out of order, the batch is rebuilt (Kafka's check `record.offset() != expectedOffset`).
        """
        marker = Records.from_lists([bytes(6)], keys=[b"\0\0\0\1"], timestamps_ms=[NOW_MS], offsets=[5])
        log = FORMATS["v2"].encode(marker, batch_fields=BatchFields(is_control=True))
        assert append(log, "v2", origin="coordinator").work.in_place == 1
        assert append(log, "v2", origin="coordinator", codec="none").work.in_place == 1
        done = append(log, "v2", origin="coordinator", codec="gzip", base_offset=9)
        assert (done.work.rewritten, done.work.in_place) == (1, 0)
        back = FORMATS["v2"].decode(done.encoded)
        assert (back.records.offsets.tolist(), back.batch_rows["is_control"].tolist()) == ([9], [True])

    def test_metadata_that_is_read_twice_counts_once_against_the_limits(self) -> None:
        sparse = Records.from_lists([bytes(1000)] * 100, timestamps_ms=[1] * 100, offsets=[0, *range(2, 101)])
        fmt = FORMATS["v3-headers-first"]
        log = fmt.encode(sparse, 100, "gzip")
        limits = Limits(batch_bytes=int(fmt.size(sparse, 100)[0]), log_expansion=1)
        assert len(fmt.decode(log, limits=limits)) == 1
        done = append(log, fmt, origin="coordinator", limits=limits)
        assert done.work.rewritten == 1
        assert done.work.decompressed_bytes > 100_000

    def test_from_zero(self) -> None:
        log = FORMATS["v1"].encode(
            records_of([Message(offset=i, timestamp_ms=NOW_MS, key=b"k", value=b"v") for i in range(7, 10)]), 3, "gzip"
        )
        assert append(log, "v1", from_zero=False).work.in_place == 1
        assert append(log, "v1").work.rewritten == 1


class TestInPlace:
    @pytest.mark.sampled
    @pytest.mark.parametrize("append_time", [False, True])
    @pytest.mark.parametrize("codec", ["none", "gzip"])
    @pytest.mark.parametrize("name", [*FIXED, "v1"])
    def test_touches_no_more_than_header_fields(self, name: str, codec: str, append_time: bool) -> None:
        """Values that are 1,000 times longer cause equal work. `written_bytes` covers every changed byte."""
        counted = []
        options: dict[str, Any] = {"timestamp_type": "append", "now_ms": LATER_MS} if append_time else {}
        for value in (5, 5000):
            log = encoded(name, codec, value=value)
            before = log.data.copy()
            done = append(log, name, base_offset=2**40, in_place=True, partition_leader_epoch=3, **options)
            assert np.shares_memory(done.data, log.data)
            work = done.work
            assert (work.rewritten, work.shifted, len(done.data)) == (0, 0, len(before))
            assert 0 < np.count_nonzero(done.data != before) <= work.written_bytes
            assert work.written_bytes <= 40 * work.in_place
            counted.append((work.written_bytes, work.in_place))
        assert counted[0] == counted[1]

    @pytest.mark.parametrize("name", VARIABLE)
    def test_a_varlong_that_grows_shifts_the_batch(self, name: str) -> None:
        log = encoded(name)
        done = append(log, name, timestamp_type="append", now_ms=LATER_MS)
        assert (done.work.shifted, done.work.in_place, done.work.rewritten) == (2, 0, 0)
        assert len(done.data) > len(log.data)
        assert done.work.written_bytes > len(log.data) // 2
        assert set(FORMATS[name].decode(done.encoded).records.timestamps_ms.tolist()) == {LATER_MS}
        same = append(log, name, timestamp_type="append", now_ms=int(records(10).timestamps_ms[9]))
        assert same.work.shifted < 2

    @pytest.mark.parametrize("name", ["v3-headers-first", "v3-full"])
    def test_no_more_than_the_metadata_is_decompressed(self, name: str) -> None:
        log = encoded(name, "zstd", value=200_000)
        assert append(log, name).work.decompressed_bytes < 1_000_000
        assert append(encoded("v3", "zstd", value=200_000), "v3").work.decompressed_bytes > 2_000_000

    def test_without_in_place_the_input_is_not_changed(self) -> None:
        log = encoded("v2")
        before = log.data.copy()
        append(log, "v2", base_offset=9, timestamp_type="append", now_ms=LATER_MS)
        assert (log.data == before).all()

    @pytest.mark.parametrize("kind", ["grows", "is rebuilt"])
    @pytest.mark.parametrize("name", ["v3", "v3-headers-first"])
    def test_requests_that_fit_are_set_in_the_buffer_and_others_are_not(self, name: str, kind: str) -> None:
        fits = FORMATS[name].encode(records(5), 5, "gzip")
        held = records(5) if kind == "grows" else records(5, per_batch=1)
        other = FORMATS[name].encode(
            held, 5, "gzip", batch_fields=BatchFields(max_timestamp_ms=int(held.timestamps_ms[0]), last_offset=4)
        )
        log = joined(fits, other, fits)
        before = log.data.copy()
        done = append(log, name, base_offset=77, in_place=True, origin="coordinator")
        assert (done.work.in_place, done.work.shifted + done.work.rewritten) == (2, 1)
        assert not np.shares_memory(done.data, log.data)
        for r in (0, 2):
            set_here = log.data[log.positions[r] : log.positions[r + 1]]
            assert (set_here == done.data[done.positions[r] : done.positions[r + 1]]).all()
            assert (set_here != before[log.positions[r] : log.positions[r + 1]]).any()
        between = slice(log.positions[1], log.positions[2])
        assert (log.data[between] == before[between]).all()
        assert done.work.written_bytes >= len(done.data)  # the result of all requests is one new buffer
        assert FORMATS[name].decode(done.encoded).records.offsets.tolist() == list(range(77, 92))

    def test_takes_a_buffer_that_can_be_written_to(self) -> None:
        with pytest.raises(InvalidRecords, match="writeable"):
            append(
                np.frombuffer(bytes(encoded("v2").data), np.uint8)[: encoded("v2").positions[1]], "v2", in_place=True
            )

    def test_nothing_is_written_where_a_later_request_is_refused(self) -> None:
        log = encoded("v2")
        log.data[-1] ^= 1
        before = log.data.copy()
        refused(log, "v2", "CORRUPT_MESSAGE", "crc", int(log.positions[1]), base_offset=5, in_place=True)
        assert (log.data == before).all()

    def test_nothing_is_written_where_a_later_request_would_lose(self) -> None:
        parts = encoded("v1"), encoded("v2", "gzip")
        data = np.concatenate([part.data for part in parts])
        log = EncodedLog(
            data=data, positions=np.append(parts[0].positions, len(parts[0].data) + parts[1].positions[1:])
        )
        before = data.copy()
        with pytest.raises(IllegalCombination):
            append(log, to="v1", codec="zstd", in_place=True)
        assert (data == before).all()


@pytest.mark.sampled
@pytest.mark.parametrize("codec", ["none", "snappy"])
@pytest.mark.parametrize("name", NAMES)
@settings(suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow])
@given(data=st.data())
def test_the_same_records_at_new_offsets(name: str, codec: str, data: st.DataObject) -> None:
    case: Case = data.draw(cases_of(name))
    fmt = FORMATS[name]
    log = fmt.encode(records_of(case.messages), bounds_of(case), codec, batch_fields=batch_fields_of(case), lossy=True)
    sent = fmt.decode(log)
    base = data.draw(st.integers(0, 2**40))
    assume(len(set(log.positions.tolist())) == len(log.positions))  # message formats have no empty batch
    assume((sent.records.timestamps_ms >= -1).all())  # Kafka's builder refuses timestamps below -1
    assume(not sent.batch_rows["timestamp_type"].any())  # a topic with create time refuses these
    done = append(log, name, base_offset=base, partition_leader_epoch=7, origin="coordinator")
    back = fmt.decode(done.encoded)
    if "partition_leader_epoch" in fmt.capabilities.batch_fields:
        assert set(back.batch_rows["partition_leader_epoch"].tolist()) <= {7}
    assert back.records.timestamps_ms.tolist() == sent.records.timestamps_ms.tolist()
    if codec != "none" or name in MESSAGES:  # deltas in other plain batches are not checked
        wide = (sent.batch_rows["last_offset"] - sent.batch_rows["base_offset"] + 1 != sent.batch_rows["count"]).any()
        assert wide or back.records.offsets.tolist() == list(range(base, base + len(sent.records)))
        assert wide or done.next_offset == base + len(sent.records)
    got, want = messages_of(back.records), messages_of(sent.records)
    assert [(m.key, m.value, m.headers) for m in got] == [(m.key, m.value, m.headers) for m in want]
    assert done.work.batches == len(sent) or name in MESSAGES
    assert np.array_equal(done.positions[[0, -1]], [0, len(done.data)])
