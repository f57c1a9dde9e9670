"""Tests for all formats. A new format in kfbench/formats/ is tested here without any change."""

import dataclasses
import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kfbench import formats
from kfbench.batches import BatchFields
from kfbench.errors import CorruptLog, IllegalCombination, InvalidRecords, KfbenchError, WouldLose
from kfbench.formats import FORMATS
from kfbench.limits import Limits
from kfbench.records import Records
from tests import strategies
from tests.common import (
    MESSAGES,
    check_round_trip,
    check_sizes,
    messages_of,
    records_of,
)
from tests.reference.model import Message
from tests.strategies import NOW_MS

NAMES = list(FORMATS)
WITH_CODECS = [(name, codec) for name, fmt in FORMATS.items() for codec in fmt.capabilities.codecs]
every_format = pytest.mark.parametrize("name", NAMES)
with_checksum = pytest.mark.parametrize("name", [name for name, fmt in FORMATS.items() if fmt.checksum])


def tick_ms(name: str) -> int:
    """Return the unit of a format's timestamps in milliseconds: 1 or 1000."""
    return 1 if FORMATS[name].capabilities.milliseconds else 1000


def sample(name: str, n: int = 40) -> Records:
    """Return `n` records with every kind of field that the format can carry."""
    can = FORMATS[name].capabilities
    messages = [
        Message(
            offset=100 + i + i // 7,
            timestamp_ms=NOW_MS + (i * 37) % 100 * tick_ms(name) if can.timestamps else -1,
            key=None if i % 5 == 0 else b"key-%d" % i,
            value=None if i % 11 == 3 else bytes([i]) * (i * 13 % 90),
            headers=(("trace", b"\1" * i), ("trace", None)) if can.headers and i % 3 == 0 else (),
        )
        for i in range(n)
    ]
    return records_of(messages)


def test_formats_by_origin() -> None:
    assert {"v0", "v1", "v2"} == formats.SHIPPED and {"columnar"} == formats.RESEARCH
    assert {"v3", "kip98", "enriched", "enriched-ms"} == formats.PROPOSED
    with pytest.raises(AttributeError):
        _ = formats.DISCARDED
    with pytest.raises(TypeError):
        FORMATS["v9"] = FORMATS["v2"]  # type: ignore[index]


@every_format
@given(data=st.data())
def test_size_and_breakdown_are_exact(name: str, data: st.DataObject) -> None:
    check_sizes(name, data.draw(strategies.cases_of(name)))


@every_format
@given(data=st.data())
def test_round_trip(name: str, data: st.DataObject) -> None:
    codec = data.draw(st.sampled_from(FORMATS[name].capabilities.codecs))
    check_round_trip(name, data.draw(strategies.cases_of(name)), codec)


@pytest.mark.sampled
@every_format
@pytest.mark.parametrize("plan", [0, -1, [0, 10], [1, 40], [0, 30, 20, 40], [], [[0, 40]], [0, 41]])
def test_invalid_plans_are_refused(name: str, plan: Any) -> None:
    for call in (FORMATS[name].encode, FORMATS[name].size, FORMATS[name].breakdown, FORMATS[name].losses):
        with pytest.raises(InvalidRecords, match="batch_size"):
            call(sample(name), plan)


@every_format
def test_no_records(name: str) -> None:
    fmt, none = FORMATS[name], Records.from_lists([])
    for codec in fmt.capabilities.codecs:
        log = fmt.encode(none, codec=codec)
        assert (len(log.data), log.positions.tolist()) == (0, [0])
    assert fmt.size(none).tolist() == []
    assert sum(fmt.breakdown(none).values()) == 0
    back = fmt.decode(b"")
    assert (len(back), len(back.records), len(back.batches)) == (0, 0, 0)


@pytest.mark.sampled
@pytest.mark.parametrize(("name", "codec"), WITH_CODECS)
def test_a_buffer_is_reused_and_never_overrun(name: str, codec: str) -> None:
    fmt, records = FORMATS[name], sample(name)
    expected = fmt.encode(records, 7, codec)
    size = len(expected.data)
    for room in (size, size + 1, size + 5000):
        arena = np.full(room + 200, 0xEE, np.uint8)
        out = arena[100 : 100 + room]
        log = fmt.encode(records, 7, codec, out=out)
        assert log.data.ctypes.data == out.ctypes.data
        assert log.data.tobytes() == expected.data.tobytes()
        assert log.positions.tolist() == expected.positions.tolist()
        assert (arena[:100] == 0xEE).all()
        assert (arena[100 + room :] == 0xEE).all()


@pytest.mark.sampled
@pytest.mark.parametrize(("name", "codec"), WITH_CODECS)
def test_a_buffer_that_is_too_small(name: str, codec: str) -> None:
    fmt, records = FORMATS[name], sample(name)
    size = len(fmt.encode(records, 7, codec).data)
    for room in (size - 1, 10, 0):
        with pytest.raises(InvalidRecords, match=f"out: {room} bytes, {size} are needed"):
            fmt.encode(records, 7, codec, out=np.empty(room, np.uint8))


@pytest.mark.sampled
@pytest.mark.parametrize("codec", ["none", "gzip"])
@every_format
def test_invalid_buffers_are_refused(name: str, codec: str) -> None:
    read_only = np.zeros(10_000, np.uint8)
    read_only.flags.writeable = False
    strided = np.zeros(20_000, np.uint8)[::2]
    buffers: list[Any] = [np.zeros(10_000, np.int8), np.zeros((100, 100), np.uint8), read_only, strided]
    for out in buffers:
        with pytest.raises(InvalidRecords, match="out"):
            FORMATS[name].encode(sample(name), codec=codec, out=out)


@every_format
def test_plain_payload_is_not_copied(name: str) -> None:
    log = FORMATS[name].encode(sample(name), 7)
    back = FORMATS[name].decode(log.data)
    assert np.shares_memory(back.records.value_data, log.data)
    assert np.shares_memory(back.records.key_data, log.data)
    assert not back.records.value_data.flags.writeable


@every_format
def test_anything_with_a_buffer_is_read(name: str) -> None:
    log = FORMATS[name].encode(sample(name), 7)
    for data in (bytes(log), bytearray(log.data), memoryview(bytes(log)), log.data, log):
        assert FORMATS[name].decode(data).records == sample(name)


# What a format cannot carry


@every_format
def test_losses_are_refused_or_counted(name: str) -> None:
    fmt, can = FORMATS[name], FORMATS[name].capabilities
    messages = [
        Message(offset=i, timestamp_ms=-1 if i == 4 else NOW_MS + i // 8, value=b"v", headers=(("h", b"1"),) * (i % 3))
        for i in range(10)
    ]
    records = records_of(messages)
    expected = {}
    if not can.timestamps:
        expected["timestamps"] = 9
    if can.timestamps and not can.milliseconds:
        expected["milliseconds"] = 2
    if not can.headers:
        expected["headers"] = sum(i % 3 for i in range(10))
    assert fmt.losses(records) == fmt.losses(records.shapes) == expected
    stripped = [
        dataclasses.replace(
            message,
            timestamp_ms=message.timestamp_ms // tick_ms(name) * tick_ms(name) if can.timestamps and i != 4 else -1,
            headers=message.headers if can.headers else (),
        )
        for i, message in enumerate(messages)
    ]
    if expected:
        with pytest.raises(WouldLose) as refusal:
            fmt.encode(records)
        for what, count in expected.items():
            assert what in str(refusal.value)
            assert str(count) in str(refusal.value)
    log = fmt.encode(records, lossy=True)
    assert log.losses == expected
    assert log.data.tobytes() == fmt.encode(records_of(stripped)).data.tobytes()
    assert fmt.size(records).tolist() == np.diff(log.positions).tolist()
    assert sum(fmt.breakdown(records).values()) == len(log.data)
    assert messages_of(fmt.decode(log).records) == stripped


@every_format
def test_batch_fields_that_a_format_lacks(name: str) -> None:
    fmt, records = FORMATS[name], sample(name)
    fields = BatchFields(
        producer_id=[-1, 7, 8, -1],
        producer_epoch=[-1, 0, 0, -1],
        base_sequence=[-1, 0, 10, -1],
        is_transactional=[False, True, False, False],
        partition_leader_epoch=3,
        append_time_ms=[-1, -1, NOW_MS, -1],
        delete_horizon_ms=[NOW_MS, -1, -1, -1],
        tagged_fields=[{7: b"x", 8: b""}, {}, {}, {}],
    )
    named = {
        "producer_id": 2, "producer_epoch": 2, "base_sequence": 2, "is_transactional": 1,
        "partition_leader_epoch": 4, "append_time_ms": 1, "timestamp_type": 1, "delete_horizon_ms": 1,
        "tagged_fields": 1,
    }  # fmt: skip
    expected = {field: count for field, count in named.items() if field not in fmt.capabilities.batch_fields}
    assert fmt.losses(records, 10, batch_fields=fields) == expected
    log = fmt.encode(records, 10, batch_fields=fields, lossy=True)
    assert log.losses == expected
    assert len(fmt.decode(log).records) == 40
    if expected:
        with pytest.raises(WouldLose, match=next(iter(expected))):
            fmt.encode(records, 10, batch_fields=fields)


@every_format
def test_as_many_fields_as_batches(name: str) -> None:
    with pytest.raises(InvalidRecords, match="2 items for 4 batches"):
        FORMATS[name].encode(sample(name), 10, batch_fields=BatchFields(base_offset=[0, 1]))


@every_format
def test_codecs_that_a_format_lacks(name: str) -> None:
    fmt = FORMATS[name]
    illegal = {"none", "gzip", "snappy", "lz4", "zstd"} - set(fmt.capabilities.codecs)
    assert illegal == ({"zstd"} if name in MESSAGES else set())
    for codec in illegal:
        for lossy in (False, True):
            with pytest.raises(IllegalCombination, match=f"{name}.*{codec}"):
                fmt.encode(sample(name), codec=codec, lossy=lossy)
    with pytest.raises(IllegalCombination, match="brotli"):
        fmt.encode(sample(name), codec="brotli")
    with pytest.raises(IllegalCombination, match="gzip has no level 11"):
        fmt.encode(sample(name), codec="gzip", level=11)
    with pytest.raises(IllegalCombination, match="none has no level 1"):
        fmt.encode(sample(name), level=1)


# Damage


@pytest.mark.compiled_only
@every_format
def test_a_log_cut_anywhere(name: str) -> None:
    """Cut the log at any byte. The reader returns the whole batches before the cut, without an error."""
    log = FORMATS[name].encode(sample(name, 12), 4)
    data = bytes(log)
    whole = FORMATS[name].decode(data)
    ends = [*whole.batches["position"].tolist(), len(data)]
    for cut in range(len(data)):
        back = FORMATS[name].decode(data[:cut])
        complete = sum(end <= cut for end in ends[1:])
        assert len(back) == complete
        assert back.trailing_bytes == cut - ends[complete]
        assert len(back.records) == whole.bounds[complete]


@with_checksum
def test_every_flipped_byte_is_caught(name: str) -> None:
    """No checksum covers base offset and leader epoch, which a broker sets. Every other flip is an error."""
    fmt, can = FORMATS[name], FORMATS[name].capabilities.batch_fields
    data = bytes(fmt.encode(sample(name, 3), 3))
    position_of = {
        "length": range(8, 12),
        "free": [*range(8), *(range(12, 16) if "partition_leader_epoch" in can else [])],
    }
    first = int(fmt.decode(data).batches["size_bytes"].iloc[0])
    for at in range(first):
        damaged = bytearray(data)
        damaged[at] ^= 0x55
        if at in position_of["free"]:
            assert len(fmt.decode(damaged).records) == 3
        elif at in position_of["length"]:
            kept = fmt.decode(damaged, on_error="skip")
            assert kept.errors or kept.trailing_bytes
        else:
            with pytest.raises(CorruptLog) as caught:
                fmt.decode(damaged)
            assert caught.value.position == 0
            assert caught.value.field == ("magic" if at == 16 else "crc")


@with_checksum
def test_sound_batches_survive_damaged_ones(name: str) -> None:
    fmt, records = FORMATS[name], sample(name)
    for codec in fmt.capabilities.codecs:
        data = bytearray(fmt.encode(records, 10, codec).data)
        whole = fmt.decode(bytes(data))
        starts = whole.batches["position"].tolist()
        hit = [1, 3] if codec != "none" or name not in MESSAGES else [10, 30]
        for batch in hit:
            data[starts[batch] + 45] ^= 1
        with pytest.raises(CorruptLog) as first:
            fmt.decode(data)
        assert first.value.position == starts[hit[0]]
        kept = fmt.decode(data, on_error="skip")
        assert [error.position for error in kept.errors] == [starts[batch] for batch in hit]
        assert all(error.field == "crc" for error in kept.errors)
        assert kept.batches["position"].tolist() == [at for i, at in enumerate(starts) if i not in hit]
        everything = messages_of(whole.records)
        sound = [
            message
            for i in range(len(whole))
            if i not in hit
            for message in everything[whole.bounds[i] : whole.bounds[i + 1]]
        ]
        assert messages_of(kept.records) == sound


@every_format
@given(noise=st.binary(max_size=300), data=st.data())
def test_noise_never_crashes_a_reader(name: str, noise: bytes, data: st.DataObject) -> None:
    log = bytes(FORMATS[name].encode(sample(name, 5), 2))
    for tried in (noise, log[: data.draw(st.integers(0, len(log)))] + noise):
        back = FORMATS[name].decode(tried, on_error="skip")
        assert len(back.batches) == len(back)
        assert len(messages_of(back.records)) == len(back.records)


@pytest.mark.compiled_only
@pytest.mark.sampled
@pytest.mark.parametrize(("name", "codec"), [(name, codec) for name, codec in WITH_CODECS if codec != "none"])
def test_the_limit_of_one_batch(name: str, codec: str) -> None:
    fmt = FORMATS[name]
    # The records are random bytes, which do not compress. So the limit on the expansion of a log does not apply.
    records = Records.from_lists([random.Random(i).randbytes(50_000) for i in range(4)])
    log = fmt.encode(records, [0, 1, 4], codec)
    least = int(fmt.decode(log).batches["records_size_bytes"].max())
    assert fmt.decode(log, limits=Limits(batch_bytes=least)).records == records
    with pytest.raises(CorruptLog, match="limit") as refusal:
        fmt.decode(log, limits=Limits(batch_bytes=least - 1))
    assert refusal.value.position == log.positions[1]
    kept = fmt.decode(log, on_error="skip", limits=Limits(batch_bytes=least - 1))
    assert (len(kept.records), len(kept.errors)) == (1, 1)


@every_format
def test_on_error_is_one_of_two(name: str) -> None:
    other: Any = "ignore"
    for data in (b"", bytes(FORMATS[name].encode(sample(name)))):
        with pytest.raises(KfbenchError, match="on_error"):
            FORMATS[name].decode(data, on_error=other)


@pytest.mark.parametrize("name", NAMES)
def test_out_may_not_hold_the_records(name: str) -> None:
    out = np.zeros(4096, np.uint8)
    records = sample(name)
    back = FORMATS[name].decode(FORMATS[name].encode(records, 2, out=out).data).records
    with pytest.raises(InvalidRecords, match=r"^out: "):
        FORMATS[name].encode(back, 5, out=out)
