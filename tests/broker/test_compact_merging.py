"""`compact` with merge_bytes joins consecutive batches into one, if one header can describe all of them."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import kfbench
from kfbench.broker.compact import compact
from kfbench.broker.retention import history_of
from kfbench.formats import FORMATS
from tests.broker.cleaner_logs import Written, batch_of, encoded, logs
from tests.common import ON_BROKERS, reference_decode
from tests.reference.model import Batch, Fields, Message
from tests.strategies import NOW_MS

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
