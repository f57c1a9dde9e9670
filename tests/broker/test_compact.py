"""`compact` gives the same log as a slow reference cleaner in every format.

tests/test_golden.py compares it with Kafka's cleaner.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import kfbench
from kfbench.broker.compact import CompactResult, compact, filtered, history_of
from kfbench.errors import CorruptLog, IllegalCombination, InvalidRecords, WouldLose
from kfbench.formats import FORMATS
from tests.broker.cleaner_logs import Written, batch_of, encoded, logs, marker, pieces, unlocated
from tests.common import ON_BROKERS, reference_decode, reference_encode
from tests.recorded import FOLDER
from tests.reference import cleaner, codecs, v01
from tests.reference.model import CODEC_NAMES, Batch, Fields, Message
from tests.reference.v23 import TAGGED_NAMES
from tests.strategies import NOW_MS


def test_compacts_a_segment_of_three_formats_as_a_real_broker_did() -> None:
    """Compact a recorded segment with batches of v0, v1 and v2.

    The result equals that of Kafka 2.8's cleaner, apart from delete horizons (KIP-534), which 2.8 does not have. The
    last records may go (`retain_last=False`), because another segment followed.
    """
    before, after = ((FOLDER / f"changelog-upgraded{kind}.log").read_bytes() for kind in ("-uncompacted", ""))
    done = compact(before, now_ms=NOW_MS, retain_last=False)
    ours, theirs = kfbench.read_log(done.encoded), kfbench.read_log(after)
    assert set(theirs.batches["magic"]) == {0, 1, 2} and len(theirs.records) < len(kfbench.read_log(before).records)
    assert ours.records == theirs.records
    assert ours.bounds.tolist() == theirs.bounds.tolist()
    of_the_library = ["position", "size_bytes", "crc"]
    of_the_horizon = ["attributes", "base_timestamp_ms", "delete_horizon_ms", "records_size_bytes"]
    made, left = (log.batches.drop(columns=of_the_library) for log in (ours, theirs))
    assert made[made["magic"] < 2].equals(left[left["magic"] < 2])
    assert made.drop(columns=of_the_horizon).equals(left.drop(columns=of_the_horizon))
    plain, ends = theirs.batches["codec"] == "none", theirs.batches["position"] + theirs.batches["size_bytes"]
    for batch in np.flatnonzero(plain):
        start, end = int(theirs.batches["position"][batch]), int(ends[batch])
        assert bytes(done.data[slice(*done.positions[batch : batch + 2])]) == after[start:end]


# Logs of every format, against a slow reference of the cleaner's rules


@pytest.mark.parametrize("name", ON_BROKERS)
@given(data=st.data())
def test_cleans_as_the_reference_does(name: str, data: st.DataObject) -> None:
    log = data.draw(logs(name))
    source = encoded(name, log)
    rules: dict[str, Any] = {
        "now_ms": NOW_MS,
        "delete_retention_ms": data.draw(st.sampled_from([0, 1, 86_400_000])),
        "keep_legacy_tombstones": data.draw(st.booleans()),
        "retain_last": data.draw(st.booleans()),
    }
    batches, _ = reference_decode(name, source)
    rules["end_offset"] = data.draw(st.sampled_from([None, None, *(batch.last_offset for batch in batches)]))
    can = FORMATS[name].capabilities
    expected = cleaner.clean(
        batches,
        **rules,
        has_horizon="delete_horizon_ms" in can.batch_fields,
        has_empty_batches=can.empty_batches,
        is_tagged=name in TAGGED_NAMES,
    )
    done = compact(source, fmt=name, **rules)
    made = pieces(done)
    assert len(made) == len(expected)
    for piece, kept in zip(made, expected, strict=True):
        batch = batches[kept.source]
        if kept.copied:
            assert piece == source[batch.position : batch.position + batch.size_bytes]
        elif batch.codec == "none" or not kept.messages:
            assert piece == reference_encode(name, kept.messages, kept.fields)
        else:
            again = reference_encode(name, kept.messages, kept.fields, batch.codec)
            (ours,), (theirs,) = reference_decode(name, piece)[0], reference_decode(name, again)[0]
            assert unlocated(ours) == unlocated(theirs)
    work, copied = done.work, sum(kept.copied for kept in expected)
    assert (work.untouched, work.rewritten) == (copied, len(expected) - copied)
    assert work.batches == len(batches)
    assert (work.read_bytes, work.written_bytes) == (len(source), len(done.data))
    assert done.kept_records == sum(
        len(batches[kept.source].messages) if kept.copied else len(kept.messages) for kept in expected
    )
    assert not work.losses


# Options, and rules of some formats


@pytest.mark.parametrize("name", ON_BROKERS)
@given(data=st.data())
def test_again_at_the_same_time_changes_nothing(name: str, data: st.DataObject) -> None:
    """A second compaction with the same clock changes no byte.

    One exception: the marker of a transaction that the first compaction emptied gets its delete horizon in the second.
    """
    producers, merge_bytes = data.draw(st.booleans()), data.draw(st.sampled_from([0, 64]))

    def again(log: Any) -> CompactResult:
        return compact(log, fmt=name, now_ms=NOW_MS, merge_bytes=merge_bytes)

    done = again(encoded(name, data.draw(logs(name, producers))))
    if producers:
        done = again(done.encoded)
    second = again(done.encoded)
    assert bytes(second.data) == bytes(done.data)
    assert second.positions.tolist() == done.positions.tolist()


def test_converts_to_v2_while_it_compacts() -> None:
    """KIP-724: a plain message becomes a batch of one record.

    A compressed set becomes one batch with the same offset range.
    """
    first = encoded("v0", [batch_of((0, b"a", b"0"), (1, b"b", b"1"))])
    second = encoded("v1", [batch_of((2, b"c", b"2"), (3, b"a", b"3"), (4, None, b"4"), codec="gzip")])
    third = encoded("v1", [batch_of((5, b"d", None), (6, b"e", b"6"), append_time_ms=NOW_MS)])
    fourth = encoded("v2", [batch_of((7, b"f", b"7"))])
    done = compact(first + second + third + fourth, to="v2", now_ms=NOW_MS)
    rows = kfbench.read_log(done.encoded).batches
    assert rows["magic"].tolist() == [2] * 5
    assert rows["base_offset"].tolist() == [1, 2, 5, 6, 7]
    assert rows["last_offset"].tolist() == [1, 4, 5, 6, 7]
    assert rows["count"].tolist() == [1, 2, 1, 1, 1]
    assert rows["codec"].tolist() == ["none", "gzip", "none", "none", "none"]
    assert rows["timestamp_type"].tolist() == ["create", "create", "append", "append", "create"]
    assert rows["delete_horizon_ms"].tolist() == [-1, -1, NOW_MS + 86_400_000, -1, -1]
    records = kfbench.read_log(done.encoded).records
    assert records.offsets.tolist() == [1, 2, 3, 5, 6, 7]
    assert records.timestamps_ms.tolist() == [-1, NOW_MS + 2, NOW_MS + 3, NOW_MS, NOW_MS, NOW_MS + 7]
    assert pieces(done)[-1] == fourth
    assert done.keyless_records == 1
    assert (done.work.untouched, done.work.rewritten, done.work.dropped) == (1, 4, 1)


@pytest.mark.parametrize("to", ON_BROKERS)
@given(data=st.data())
def test_converts_from_every_format(to: str, data: st.DataObject) -> None:
    """Compacting with a conversion keeps the same records as compacting without one.

    If source and target format are equal, no batch is rebuilt.
    """
    name = data.draw(st.sampled_from(sorted(ON_BROKERS)))
    log = data.draw(logs(name, producers=False))
    stayed = compact(encoded(name, log), fmt=name, now_ms=NOW_MS)
    done = compact(encoded(name, log), fmt=name, to=to, now_ms=NOW_MS, lossy=True)
    before, after = FORMATS[name].decode(stayed.encoded).records, FORMATS[to].decode(done.encoded).records
    assert after.offsets.tolist() == before.offsets.tolist()
    contents = [[(records.key(i), records.value(i)) for i in range(len(records))] for records in (before, after)]
    assert contents[0] == contents[1]
    assert done.work.batches == stayed.work.batches
    if to == name:
        assert bytes(done.data) == bytes(stayed.data)


def test_a_conversion_that_would_lose_is_refused() -> None:
    log = encoded("v2", [batch_of((0, b"a", b"1"), producer_id=1, producer_epoch=0, base_sequence=0)])
    with pytest.raises(WouldLose, match="producer_id"):
        compact(log, to="v1", now_ms=NOW_MS)
    done = compact(log, to="v1", now_ms=NOW_MS, lossy=True)
    assert done.work.losses["producer_id"] == 1
    zstd = FORMATS["v2"].encode(kfbench.Records.from_lists([b"v"], keys=[b"k"]), codec="zstd")
    with pytest.raises(IllegalCombination, match="zstd"):
        compact(zstd, to="v0", now_ms=NOW_MS, lossy=True)


def test_control_batches_that_a_target_lacks_are_counted() -> None:
    marker = Message(offset=1, timestamp_ms=NOW_MS, key=b"\0\0\0\2", value=b"")
    log = encoded(
        "v2", [batch_of((0, b"a", b"1")), Written(messages=(marker,), fields=Fields(is_control=True), codec="none")]
    )
    done = compact(log, to="v1", now_ms=NOW_MS, lossy=True)
    assert (len(done.encoded), done.kept_records, done.work.losses["is_control"]) == (1, 1, 1)
    assert (done.work.rewritten, done.work.dropped) == (1, 1)


@pytest.mark.parametrize("codec", ["none", "gzip"])
@pytest.mark.parametrize("end_offset", [None, 2, 3, 4])
def test_an_abort_after_the_end_offset_counts(end_offset: int | None, codec: str) -> None:
    """A transaction is aborted by a marker after `end_offset`, and its record still replaces no older one.

    Kafka's `LocalLog.collectAbortedTransactions` also reads later segments.
    """
    producer: dict[str, Any] = {"producer_id": 7, "producer_epoch": 0}
    log = [
        batch_of((0, b"k", b"committed"), codec=codec),
        batch_of((1, b"k", b"aborted"), base_sequence=0, is_transactional=True, codec=codec, **producer),
        marker(2, 0, **producer),
        batch_of((3, b"z", b"tail"), codec=codec),
    ]
    source = encoded("v2", log)
    done = compact(source, now_ms=NOW_MS, end_offset=end_offset)
    assert kfbench.read_log(done.encoded).records.offsets.tolist() == [0, 2, 3]
    assert done.aborted_records == 1
    assert done.work.decompressed_bytes == compact(source, now_ms=NOW_MS).work.decompressed_bytes


def test_a_producer_is_active_after_the_end_offset() -> None:
    """Compaction keeps an emptied batch for a producer's last sequence number.

    It does not if a batch after `end_offset` has a later sequence number.
    """
    producer: dict[str, Any] = {"producer_id": 7, "producer_epoch": 0}
    first = [batch_of((0, b"k", b"1"), base_sequence=0, **producer), batch_of((1, b"k", b"2"))]
    later = encoded("v2", [batch_of((2, b"q", b"3"), base_sequence=1, **producer)])
    rows = kfbench.read_log(compact(encoded("v2", first), now_ms=NOW_MS).encoded).batches
    assert rows["count"].tolist() == [0, 1]
    done = compact(encoded("v2", first) + later, now_ms=NOW_MS, end_offset=2)
    rows = kfbench.read_log(done.encoded).batches
    assert rows["base_offset"].tolist() == [1, 2]
    assert pieces(done)[-1] == later


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", ["gzip", "lz4"])
def test_a_set_of_mixed_magic_is_corrected_and_other_oddities_are_not(magic: int, codec: str) -> None:
    """KAFKA-4298: two compressed sets keep all records.

    Only the set whose last message has another magic is rebuilt.
    """

    def wrapper(key: bytes | None, last_magic: int, offset: int) -> bytes:
        inner = v01.entry(magic, 0 if magic else offset, 0, NOW_MS, b"%d" % offset, b"1")
        inner += v01.entry(last_magic, 1 if magic else offset + 1, 0, -1, b"%d" % (offset + 1), b"2")
        number = CODEC_NAMES.index(codec)
        return v01.entry(magic, offset + 1, number, NOW_MS, key, codecs.compress(codec, inner, magic))

    odd, mixed = wrapper(b"key", magic, 0), wrapper(None, 1 - magic, 2)
    log = kfbench.read_log(odd + mixed)
    assert log.batches["mixed_magic"].tolist() == [False, True]
    done = compact(odd + mixed, now_ms=NOW_MS)
    assert pieces(done)[0] == odd
    assert (done.work.untouched, done.work.rewritten) == (1, 1)
    assert done.work.decompressed_bytes == log.batch_rows["records_size_bytes"].sum()
    made = kfbench.read_log(done.encoded)
    assert not made.batches["mixed_magic"].any()
    assert made.records.offsets.tolist() == [0, 1, 2, 3]


@pytest.mark.sampled
@pytest.mark.parametrize("name", ON_BROKERS)
@pytest.mark.parametrize("codec", ["none", "gzip"])
def test_damage_stops_the_log(name: str, codec: str) -> None:
    """The error has the position of the damaged batch. An incomplete last batch counts as damage."""
    parts = [encoded(name, [batch_of((i, b"k", b"value"), codec=codec)]) for i in range(3)]
    good = b"".join(parts)
    bad = bytearray(good)
    bad[len(parts[0]) + len(parts[1]) - 1] ^= 1
    calls: list[Callable[[bytes], CompactResult]] = [
        lambda log: compact(log, fmt=name, now_ms=NOW_MS),
        lambda log: filtered(log, np.ones(3, np.bool_), fmt=name, now_ms=NOW_MS),
    ]
    for call in calls:
        with pytest.raises(CorruptLog) as refusal:
            call(bytes(bad))
        assert refusal.value.position == len(parts[0])
        with pytest.raises(CorruptLog) as refusal:
            call(good[:-1])
        assert refusal.value.position == len(parts[0]) + len(parts[1])
        call(good)


def test_flags_of_another_length_are_refused() -> None:
    source = encoded("v2", [batch_of((0, b"a", b"1"))])
    for wrong in (np.ones(2, np.bool_), np.ones(1, np.int64), np.ones((1, 1), np.bool_)):
        with pytest.raises(InvalidRecords, match="keep"):
            filtered(source, wrong, now_ms=NOW_MS)
    with pytest.raises(InvalidRecords, match="retain_empty"):
        filtered(source, [True], retain_empty=[True, False], now_ms=NOW_MS)


# Merging: consecutive batches become one, if one header can describe all of them

MERGES = st.sampled_from([1, 8, 64, 10**6])


def payload_bytes(batch: Batch) -> int:
    return sum(
        len(message.key or b"")
        + len(message.value or b"")
        + sum(len(key.encode()) + len(value or b"") for key, value in message.headers)
        for message in batch.messages
    )


def may_join(one: Batch, other: Batch) -> bool:
    if one.producer_id >= 0 or one.is_transactional or one.is_control or not one.messages or not other.messages:
        return False
    if one.magic < 2 and one.codec == "none":
        return False
    described = [
        (batch.codec, batch.is_append_time, batch.append_time_ms, batch.delete_horizon_ms, batch.partition_leader_epoch,
         batch.producer_id, batch.is_control, dict(batch.tagged_fields))
        for batch in (one, other)
    ]  # fmt: skip
    return described[0] == described[1] and not one.tagged_fields


@pytest.mark.parametrize("name", ON_BROKERS)
@given(data=st.data())
def test_merges_batches_that_one_header_can_describe(name: str, data: st.DataObject) -> None:
    source = encoded(name, data.draw(logs(name, producers=data.draw(st.integers(0, 3)) == 0)))
    merge_bytes = data.draw(MERGES)
    apart, _ = reference_decode(name, bytes(compact(source, fmt=name, now_ms=NOW_MS).data))
    done = compact(source, fmt=name, now_ms=NOW_MS, merge_bytes=merge_bytes)
    together, _ = reference_decode(name, bytes(done.data))
    whole = FORMATS[name].decode(source)
    undecided = whole.batch_rows["base_offset"][history_of(whole).first_undecided :]  # copied, not merged
    at = 0
    for batch in together:
        end = at + 1
        while end < len(apart) and sum(len(part.messages) for part in apart[at:end]) < len(batch.messages):
            assert may_join(apart[end - 1], apart[end])
            end += 1
        parts = apart[at:end]
        assert [message.offset for message in batch.messages] == [m.offset for part in parts for m in part.messages]
        assert batch.read_timestamps_ms() == [stamp for part in parts for stamp in part.read_timestamps_ms()]
        assert [(m.key, m.value, m.headers) for m in batch.messages] == [
            (m.key, m.value, m.headers) for part in parts for m in part.messages
        ]
        assert (batch.base_offset, batch.last_offset) == (parts[0].base_offset, parts[-1].last_offset)
        if len(parts) > 1:
            assert payload_bytes(batch) <= merge_bytes
        if end < len(apart) and may_join(apart[end - 1], apart[end]) and apart[end].base_offset not in undecided:
            assert sum(map(payload_bytes, apart[at : end + 1])) > merge_bytes
        at = end
    assert at == len(apart)
    assert done.work.batches == len(reference_decode(name, source)[0])


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"delete_horizon_ms": NOW_MS + 1}, {"delete_horizon_ms": NOW_MS + 2}),
        ({"delete_horizon_ms": NOW_MS + 1}, {}),
        ({"append_time_ms": NOW_MS}, {"append_time_ms": NOW_MS + 1}),
        ({"append_time_ms": NOW_MS}, {}),
        ({"partition_leader_epoch": 1}, {"partition_leader_epoch": 2}),
        ({"codec": "gzip"}, {}),
        ({"producer_id": 1}, {"producer_id": 1}),
        ({"tagged_fields": {7: b"x"}}, {}),
        ({"tagged_fields": {7: b"x"}}, {"tagged_fields": {7: b"x"}}),
    ],
)
def test_batches_with_different_headers_are_not_merged(one: dict[str, Any], other: dict[str, Any]) -> None:
    def batches_left(*given: dict[str, Any]) -> int:
        log = [batch_of((i, b"%d" % i, b"v"), **fields) for i, fields in enumerate(given)]
        return len(compact(encoded("v3-tagged", log), fmt="v3-tagged", now_ms=NOW_MS, merge_bytes=100).encoded)

    assert batches_left(one, other) == 2
    if one.keys().isdisjoint({"producer_id", "tagged_fields"}):
        assert batches_left(one, one) == 1


@pytest.mark.parametrize("headers", [(("trace", b"123"), ("t", None)), (("n", b""), ("ahead", b"123"))])
def test_merge_bytes_count_headers_and_remaining_records_only(headers: tuple[tuple[str, bytes | None], ...]) -> None:
    """Only headers and remaining records count towards merge_bytes.

    A batch here has 9 bytes of record headers and 2 bytes of key and value.
    """

    def message(offset: int, key: bytes, value: bytes) -> Message:
        return Message(offset=offset, timestamp_ms=NOW_MS, key=key, value=value, headers=headers)

    def batches_left(merge_bytes: int) -> list[int]:
        done = compact(source, now_ms=NOW_MS, merge_bytes=merge_bytes)
        return [int(count) for count in kfbench.read_log(done.encoded).batches["count"]]

    log = [[message(0, b"c", bytes(50)), message(1, b"a", b"1")], [message(2, b"b", b"1")], [message(3, b"c", b"1")]]
    source = encoded("v2", [Written(messages=tuple(each), fields=Fields(), codec="none") for each in log])
    assert [batches_left(merge_bytes) for merge_bytes in (33, 32, 22, 21)] == [[3], [2, 1], [2, 1], [1, 1, 1]]


def test_a_merged_batch_reaches_as_far_as_an_offset_delta() -> None:
    offsets = [0, 2**31 - 1, 2**31, 2**31 + 5, 2**40, 2**40 + 2**31]
    source = encoded("v2", [batch_of((offset, b"%d" % offset, b"v")) for offset in offsets])
    done = compact(source, now_ms=NOW_MS, merge_bytes=1_000)
    back = kfbench.read_log(done.encoded)
    assert back.records.offsets.tolist() == offsets
    assert back.batches["count"].tolist() == [2, 2, 1, 1]


def test_batches_of_one_format_are_merged_whether_or_not_they_have_headers_to_share() -> None:
    messages = [Message(offset=i, timestamp_ms=NOW_MS, key=b"%d" % i, value=b"v", headers=()) for i in range(2)]
    messages[1] = replace(messages[1], headers=(("h", b"1"),))
    source = encoded("v3-full", [Written(messages=(each,), fields=Fields(), codec="none") for each in messages])
    assert len(compact(source, fmt="v3-full", now_ms=NOW_MS, merge_bytes=100).encoded) == 1


def test_an_empty_batch_is_not_merged() -> None:
    source = encoded("v2", [batch_of((0, b"a", b"v")), batch_of(base_offset=1, last_offset=4, base_timestamp_ms=-1)])
    rows = kfbench.read_log(compact(source, now_ms=NOW_MS, merge_bytes=100).encoded).batches
    assert rows["count"].tolist() == [1, 0]
