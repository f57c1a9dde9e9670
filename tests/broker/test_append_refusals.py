"""`append` refuses invalid requests and options. The error has a name and the position of the batch."""

import gzip
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

from kfbench import FORMATS, Records
from kfbench.batches import BatchFields, EncodedLog
from kfbench.broker.append import append
from kfbench.broker.convert import convert
from kfbench.broker.fetch import fetch
from kfbench.broker.mirror import mirror
from kfbench.broker.seek import seek_offset
from kfbench.errors import CorruptLog, IllegalCombination, InvalidConfig, InvalidRecords, Refused, WouldLose
from kfbench.formats.base.batched import BatchedFormat
from kfbench.measure.golden.steps import append_options
from kfbench.measure.golden.vectors import GOLDEN, Sidecar, read_vector, vectors
from tests.broker.sample_logs import FIXED, LATER_MS, NAMES, SEALED, encoded, records, refused
from tests.common import messages_of, records_of
from tests.reference import v01
from tests.reference.model import Message
from tests.strategies import NOW_MS


class TestRefuses:
    def test_more_than_one_batch(self) -> None:
        for name, codec in (*((name, "none") for name in SEALED), ("v1", "gzip"), ("enriched", "gzip")):
            log = encoded(name, codec)
            refused(log.data, name, "INVALID_RECORD", "more than one batch", int(log.positions[1]))
        assert append(encoded("v1").data, "v1").next_offset == 10

    def test_a_format_without_broker_paths(self) -> None:
        other = BatchedFormat(name="other", magic=6, summary="declares no `appending`")
        log = EncodedLog(data=encoded("v2").data, positions=encoded("v2").positions)
        calls: list[Callable[[], object]] = [
            *(partial(path, log, fmt=other) for path in (append, mirror, partial(seek_offset, offset=0))),
            *(partial(path, log, "v2", fmt=other) for path in (fetch, convert)),
            *(partial(path, log, other) for path in (fetch, convert)),
            partial(append, log, to=other),
        ]
        for call in calls:
            with pytest.raises(IllegalCombination, match="other: no broker path takes it"):
                call()
        assert not other.has_broker_paths and FORMATS["v2"].has_broker_paths

    def test_no_batch(self) -> None:
        refused(b"", "v2", "INVALID_RECORD", "no batches at all")

    def test_two_magics(self) -> None:
        one, other = bytes(encoded("v1").data), bytes(encoded("v0").data)
        refused(one + other, "v1", "INVALID_RECORD", "magic 0 is not the same", len(one))

    @pytest.mark.parametrize("name", SEALED)
    def test_a_range_that_is_not_the_count(self, name: str) -> None:
        log = FORMATS[name].encode(records(5), 5, batch_fields=BatchFields(base_offset=0, last_offset=9))
        refused(log, name, "INVALID_RECORD", "inconsistent batch offset range of 10 and count of records 5")

    @pytest.mark.parametrize("name", SEALED)
    def test_an_empty_batch(self, name: str) -> None:
        log = FORMATS[name].encode(records(0), [0, 0], batch_fields=BatchFields(base_offset=0, last_offset=3))
        refused(log, name, "INVALID_RECORD", "invalid reported count for record batch: 0")
        assert append(log, name, origin="coordinator").next_offset == 0

    @pytest.mark.parametrize("name", SEALED)
    def test_a_range_below_zero(self, name: str) -> None:
        log = FORMATS[name].encode(records(0), [0, 0], batch_fields=BatchFields(base_offset=9, last_offset=3))
        refused(log, name, "INVALID_RECORD", "invalid offset range", from_zero=False)

    @pytest.mark.parametrize("name", [*SEALED, "enriched", "enriched-ms"])
    def test_a_control_batch_of_a_client(self, name: str) -> None:
        marker = Records.from_lists([bytes(6)], keys=[b"\0\0\0\1"], timestamps_ms=[NOW_MS // 1000 * 1000])
        log = FORMATS[name].encode(marker, batch_fields=BatchFields(is_control=True))
        refused(log, name, "INVALID_RECORD", "clients are not allowed to write control records")
        done = append(log, name, origin="coordinator", base_offset=5, codec="gzip" if name in SEALED else None)
        assert done.work.in_place == 1  # control batches stay uncompressed
        assert FORMATS[name].decode(done.encoded).batch_rows["is_control"].tolist() == [True]

    def test_a_producer_without_a_sequence(self) -> None:
        for name in SEALED:
            log = encoded(name, producer_id=4711, producer_epoch=0)
            refused(log, name, "INVALID_RECORD", "invalid sequence number -1 in a batch with producer id 4711")

    @pytest.mark.parametrize("target", ["v0", "v1", "enriched"])
    def test_producers_that_messages_cannot_name(self, target: str) -> None:
        named: dict[str, Any] = {"producer_id": 4711, "producer_epoch": 0, "base_sequence": 0}
        unsupported = "UNSUPPORTED_FOR_MESSAGE_FORMAT"
        refused(encoded("v2", **named), "v2", unsupported, "idempotent", to=target, lossy=True)
        log = encoded("v2", is_transactional=True, **named)
        refused(log, "v2", unsupported, "transactional", to=target, lossy=True)

    def test_zstd_below_magic_2(self) -> None:
        refused(encoded("v2", "zstd"), "v2", "UNSUPPORTED_COMPRESSION_TYPE", "zstd", to="v1")
        with pytest.raises(IllegalCombination, match="zstd"):
            append(encoded("v1"), "v1", codec="zstd")

    @pytest.mark.parametrize("name", [name for name in NAMES if name != "v0"])
    def test_times_too_far_off(self, name: str) -> None:
        log = encoded(name)
        first, last = records(10).timestamps_ms[[0, 9]].tolist()
        append(log, name, now_ms=last, before_max_ms=last - first, after_max_ms=0)
        promise = f"timestamp {first} of record 0 is out of range"
        refused(log, name, "INVALID_TIMESTAMP", promise, now_ms=last, before_max_ms=last - first - 1)
        with pytest.raises(Refused, match=f"timestamp {last} of record") as refusal:
            append(log, name, now_ms=first, after_max_ms=last - first - 1)
        assert refusal.value.position > 0
        now = {"timestamp_type": "append", "now_ms": first}
        if name in FIXED:
            assert append(log, name, after_max_ms=0, **now).work.in_place == 2  # create times are not checked

    @pytest.mark.parametrize("name", ["v1", *SEALED])
    def test_append_time_of_a_producer(self, name: str) -> None:
        log = encoded(name, "gzip", append_time_ms=LATER_MS)
        now: dict[str, Any] = {"timestamp_type": "append", "now_ms": LATER_MS}
        refused(log, name, "INVALID_TIMESTAMP", "producer should not set timestamp type to LogAppendTime", **now)
        taken = append(log, name)  # in a topic with create time Kafka accepts the batch
        assert set(FORMATS[name].decode(taken.encoded).batches["timestamp_type"]) == {"create"}

    @pytest.mark.parametrize("name", NAMES)
    def test_no_key_on_a_compacted_topic(self, name: str) -> None:
        held = records_of([*messages_of(records(5)), *messages_of(records(5, key=None))])
        log = FORMATS[name].encode(held, 5, "gzip", lossy=name == "v0")
        where = int(log.positions[1])
        refused(log, name, "INVALID_RECORD", "without key: record 0", where, compacted=True)
        assert append(encoded(name), name, compacted=True).next_offset == 10

    def test_a_record_out_of_time_comes_before_one_without_a_key(self) -> None:
        held = records_of(
            [
                Message(offset=0, timestamp_ms=NOW_MS, key=None, value=b"v"),
                Message(offset=1, timestamp_ms=0, key=b"k", value=b"v"),
            ]
        )
        log = FORMATS["v2"].encode(held)
        refused(log, "v2", "INVALID_TIMESTAMP", "record 1", compacted=True, now_ms=NOW_MS, before_max_ms=9)

    @pytest.mark.sampled
    @pytest.mark.parametrize("name", NAMES)
    @pytest.mark.parametrize("codec", ["none", "gzip"])
    def test_a_checksum_that_does_not_hold(self, name: str, codec: str) -> None:
        log = encoded(name, codec)
        log.data[-1] ^= 1
        with pytest.raises(Refused) as refusal:
            append(log, name)
        assert refusal.value.error == "CORRUPT_MESSAGE"
        assert refusal.value.position >= log.positions[1]

    def test_a_message_of_another_magic_inside(self) -> None:
        inner = v01.entry(1, 0, 0, NOW_MS, b"k", b"v") + v01.entry(0, 1, 0, -1, b"k", b"v")
        messages = [Message(offset=i, timestamp_ms=NOW_MS, key=b"k", value=b"v") for i in range(2)]
        sent = v01.wrapper(1, "gzip", messages, gzip.compress(inner))
        refused(sent, "v1", "INVALID_RECORD", "magic does not match the outer magic 1")

    def test_a_set_inside_a_set(self) -> None:
        inner = bytes(FORMATS["v1"].encode(records(5), 5, "gzip").data)
        sent = v01.wrapper(
            1, "gzip", [Message(offset=0, timestamp_ms=NOW_MS, key=None, value=None)], gzip.compress(inner)
        )
        refused(sent, "v1", "INVALID_RECORD", "compressed message inside")

    def test_offsets_that_do_not_begin_at_zero(self) -> None:
        log = FORMATS["v2"].encode(records_of([Message(offset=7, timestamp_ms=NOW_MS, key=b"k", value=b"v")]))
        refused(log, "v2", "INVALID_RECORD", "should be 0")
        assert append(log, "v2", from_zero=False).next_offset == 1

    def test_a_negative_time_in_a_rebuilt_batch(self) -> None:
        log = FORMATS["v2"].encode(records_of([Message(offset=0, timestamp_ms=-5, key=b"k", value=b"v")]))
        refused(log, "v2", "UNKNOWN_SERVER_ERROR", "negative timestamp -5", codec="gzip")

    def test_headers_in_messages(self) -> None:
        log = FORMATS["v2"].encode(
            records_of([Message(offset=0, timestamp_ms=NOW_MS, key=b"k", value=b"v", headers=(("h", b"x"),))])
        )
        with pytest.raises(WouldLose, match="headers"):
            append(log, "v2", to="v1")
        assert append(log, "v2", to="v1", lossy=True).work.losses == {"headers": 1}

    def test_a_request_that_ends_inside_a_batch(self) -> None:
        log = encoded("v2")
        cut = EncodedLog(data=log.data, positions=log.positions - np.array([0, 1, 0]))
        with pytest.raises(CorruptLog, match="ends inside"):
            append(cut, "v2")

    def test_an_undecodable_payload(self) -> None:
        plain = encoded("v2", "gzip")
        with pytest.raises(CorruptLog, match="magic"):
            append(plain, "v3")

    @pytest.mark.sampled
    @pytest.mark.parametrize(
        "options",
        [
            {"timestamp_type": "append"},
            {"timestamp_type": "sometime"},
            {"origin": "replication"},
            {"base_offset": [0, 1, 2]},
            {"partition_leader_epoch": 2**31},
            {"partition_leader_epoch": -2},
            {"base_offset": 2**63},
            {"base_offset": -5},
            {"base_offset": True},
            {"base_offset": 1.5},
            {"base_offset": [0, -1]},
            {"base_offset": 2**63 - 10},
            {"base_offset": [0, 2**63 - 3]},
            {"now_ms": 2**63, "timestamp_type": "append"},
            {"now_ms": -7, "timestamp_type": "append"},
            {"now_ms": NOW_MS, "before_max_ms": -1},
            {"now_ms": NOW_MS, "after_max_ms": 2**64},
        ],
        ids=str,
    )
    @pytest.mark.parametrize("codec", ["none", "gzip"])
    def test_options_out_of_range(self, codec: str, options: dict[str, Any]) -> None:
        log = encoded("v2", codec)
        before = log.data.copy()
        with pytest.raises((InvalidConfig, InvalidRecords), match=r"base_offset|epoch|_ms|timestamp_type|origin"):
            append(log, "v2", in_place=True, **options)
        assert (log.data == before).all()

    def test_numbers_at_the_ends_of_their_ranges(self) -> None:
        options: dict[str, Any] = {"base_offset": 2**63 - 11, "partition_leader_epoch": 2**31 - 1}
        assert append(encoded("v2"), "v2", **options).next_offset == 2**63 - 1


# Requests of datasets/golden that Kafka's LogValidator refuses by an exception without an error of the protocol.
# tests/test_golden.py compares all other requests, and what becomes of them, with Kafka's.

VECTORS = [read_vector(GOLDEN, entry["name"]).sidecar for entry in vectors() if entry["category"] == "validate"]
NO_ERROR = "UNKNOWN_SERVER_ERROR"  # Kafka throws an exception for which the protocol has no error code

# Kafka's message -> our error, if Kafka's builder throws before its validator or if we need lossy=True.
OUR_ERRORS: dict[str, Any] = {
    "Transactional records are not supported": "UNSUPPORTED_FOR_MESSAGE_FORMAT",
    "ZStandard compression is not supported": "UNSUPPORTED_COMPRESSION_TYPE",
    "does not support record headers": WouldLose,
    "Invalid negative producer epoch": None,  # we accept it, because no format forbids it
    "key is skipped in PartialDefaultRecord": None,  # we accept it, because Kafka's refusal is a bug
}


def is_unnamed(sidecar: Sidecar) -> bool:
    return bool(sidecar.get("refused")) and sidecar["refused"]["error"] == NO_ERROR


@pytest.mark.parametrize("sidecar", [each for each in VECTORS if is_unnamed(each)], ids=lambda sidecar: sidecar["name"])
def test_where_kafka_has_no_error(sidecar: Sidecar) -> None:
    expected = next(expected for text, expected in OUR_ERRORS.items() if text in sidecar["refused"]["message"])
    source = bytes.fromhex(sidecar["source"])
    options = append_options(sidecar["spec"]["steps"][-1]) | {"lossy": False}
    if expected is None:
        append(source, None, **options)
    elif expected is WouldLose:
        with pytest.raises(WouldLose):
            append(source, None, **options)
    else:
        with pytest.raises(Refused) as refusal:
            append(source, None, **options)
        assert refusal.value.error == expected


def test_bytes_after_the_last_batch_are_refused() -> None:
    sidecar = next(sidecar for sidecar in VECTORS if sidecar["name"].startswith("validate_v2_to_v2_none"))
    source, options = bytes.fromhex(sidecar["source"]), append_options(sidecar["spec"]["steps"][-1])
    with pytest.raises(CorruptLog, match="length"):
        append(source + bytes(12) + b"\xff" * 20, None, **options)
