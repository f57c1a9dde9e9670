"""`verify` detects a format that breaks any of its promises. Two other projects compute the checksums again."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import ArrayLike

from kfbench.arrays import Bytes, Int64
from kfbench.batches import BatchFields, DecodedLog, EncodedLog
from kfbench.formats import BY_MAGIC, FORMATS, Entries
from kfbench.formats.base.batched import BatchedFormat
from kfbench.formats.base.capabilities import Checksum
from kfbench.formats.base.messages import MessageFormat
from kfbench.measure.encode_input import EncodeInput
from kfbench.measure.verify import (
    Unverified,
    verify_breakdown,
    verify_log,
    verify_records,
    verify_size,
    wrong_checksum,
)
from kfbench.records import Records, Shapes
from kfbench.workloads.grid import GridPoint

BOUNDS = np.array([0, 100, 250])


def records(**axes: Any) -> Records:
    return GridPoint(timestamp_spread_ms=1_000, **axes).generate(records=250, seed=1).records


class Broken(BatchedFormat):
    """Format v2 with one fault, named by `fault`."""

    def __init__(self, fault: str) -> None:
        super().__init__(name="v2", magic=2, summary=fault)

    def size(
        self, records: Records | Shapes, batch_size: int | ArrayLike = 100, batch_fields: BatchFields | None = None
    ) -> Int64:
        sizes = super().size(records, batch_size, batch_fields)
        return sizes + 1 if self.summary == "size" else sizes

    def decode(self, data: Any, *args: Any, **options: Any) -> DecodedLog:
        log = super().decode(data, *args, **options)
        found = log.records
        shapes = found.shapes
        match self.summary:
            case "timestamps_ms" | "offsets":
                changed = getattr(shapes, self.summary).copy()
                changed[7] += 1
                return replace(log, records=replace(found, shapes=replace(shapes, **{self.summary: changed})))
            case "payload":
                starts = found.value_starts.copy()
                starts[7] += 1
                return replace(log, records=replace(found, value_starts=starts))
            case "create_timestamps_ms":
                return replace(log, create_timestamps_ms=log.create_timestamps_ms + 1)
            case "left over":
                return replace(log, trailing_bytes=3)
            case "decoded":
                return super().decode(data[:-1], *args, **options) if len(data) > 1 else log
        return log


def check(fault: str, given: Records) -> None:
    fmt, source = Broken(fault), EncodeInput(records=given, bounds=BOUNDS)
    log = source.encode(fmt)
    verify_records(fmt, source, log)
    verify_size(fmt, source, log)


def test_a_sound_format_passes() -> None:
    check("none", records())


@pytest.mark.parametrize(
    ("fault", "place"),
    [
        ("size", "for batch 0 at byte 0"),
        ("offsets", "item 7 was 7, 8 was read"),
        ("payload", "the value of record 7"),
        ("create_timestamps_ms", "item 0 was"),
        ("timestamps_ms", "timestamps_ms"),
        ("left over", "left over"),
    ],
)
def test_each_fault_is_named_with_its_place(fault: str, place: str) -> None:
    with pytest.raises(Unverified, match=place):
        check(fault, records())


@pytest.mark.parametrize(
    ("part", "change", "said"),
    [
        ("length", 1, "adds up to"),
        ("length", -10_000, "adds up to"),
        ("key", 1, "adds up to"),
        (("length", "key"), 1, "for key, the records hold 4000"),
        (("length", "value"), 1, "for value, the records hold"),
        (("attributes", "length"), 1_000, "says -750 bytes for attributes"),
    ],
)
def test_a_breakdown_that_does_not_add_up(part: str | tuple[str, str], change: int, said: str) -> None:
    """A breakdown must add up to the size.

    For a pair of parts, `change` bytes move from the first part to the second.
    """
    fmt, given = FORMATS["v2"], records()
    log, parts = fmt.encode(given, BOUNDS), fmt.breakdown(given, BOUNDS)
    verify_breakdown(fmt, parts, given, log)
    less, more = part if isinstance(part, tuple) else (None, part)
    parts[more] += change
    if less is not None:
        parts[less] -= change
    with pytest.raises(Unverified, match=said):
        verify_breakdown(fmt, parts, given, log)


def test_a_header_field_or_a_record_that_is_lost_is_noticed() -> None:
    fmt, producers = FORMATS["v2"], np.array([-1, 7])
    source = EncodeInput(
        records=records(), bounds=BOUNDS, batch_fields=BatchFields(producer_id=producers, partition_leader_epoch=3)
    )
    log = source.encode(fmt)
    verify_records(fmt, source, log)
    for fields, said in (
        (BatchFields(producer_id=producers + np.array([0, 1])), "producer_id differs .* batch 1 has 8, 7 was read"),
        (BatchFields(partition_leader_epoch=4), "partition_leader_epoch differs .* batch 0 has 4, 3 was read"),
    ):
        with pytest.raises(Unverified, match=said):
            verify_records(fmt, replace(source, batch_fields=fields), log)
    half = EncodedLog(data=log.data[: log.positions[1]], positions=log.positions[:2])
    with pytest.raises(Unverified, match="250 records encoded, 100 decoded"):
        verify_records(fmt, source, half)


def test_seconds_that_an_int32_cannot_hold_are_none() -> None:
    stamps = [-2, -1, 0, 999, 1_000, 2**31 * 1_000 - 1, 2**31 * 1_000, 2**62]
    given = Records.from_lists([b""] * len(stamps), timestamps_ms=stamps)
    left = EncodeInput(records=given, bounds=np.array([0, len(stamps)])).records_in(FORMATS["enriched"]).timestamps_ms
    assert left.tolist() == [-1, -1, 0, 0, 1_000, (2**31 - 1) * 1_000, -1, -1]


def test_carried_is_what_readers_get() -> None:
    given = records(headers=1)
    fields = BatchFields(append_time_ms=np.array([7, 8]), timestamp_type=np.array([1, 0]))
    source = EncodeInput(records=given, bounds=BOUNDS, batch_fields=fields)
    names = "v0", "v1", "v2", "enriched", "enriched-ms"
    v0, v1, v2, seconds, ms = (source.records_in(FORMATS[name]) for name in names)
    assert np.array_equal(seconds.timestamps_ms, given.timestamps_ms // 1_000 * 1_000)
    assert np.array_equal(ms.timestamps_ms, given.timestamps_ms)
    assert set(v0.timestamps_ms.tolist()) == {-1} and not v0.shapes.has_headers
    for each in (v1, v2):
        assert set(each.timestamps_ms[:100].tolist()) == {7}
        assert np.array_equal(each.timestamps_ms[100:], given.timestamps_ms[100:])
    assert not v1.shapes.has_headers and v2.headers(0) == given.headers(0)
    assert v0.value(3) == v1.value(3) == given.value(3)


@pytest.mark.parametrize("column", ["offsets", "timestamps_ms", "value"])
def test_a_log_is_compared_record_by_record(column: str) -> None:
    ten, fmt = records().part(0, 10), FORMATS["v2"]
    log = fmt.encode(ten, 10)
    verify_log("v2", fmt, log.data, ten)
    if column == "value":
        other = replace(ten, value_starts=ten.value_starts[::-1].copy())
    else:
        other = replace(ten, shapes=replace(ten.shapes, **{column: getattr(ten.shapes, column) + 1}))
    said = "keys, values or headers differ: the value of record 0" if column == "value" else f"{column} differ: item 0"
    with pytest.raises(Unverified, match=f"a path: {said}"):
        verify_log("a path", fmt, log.data, other)
    with pytest.raises(Unverified, match="10 records came out, not 9, and 0 bytes"):
        verify_log("a path", fmt, log.data, ten.part(0, 9))
    with pytest.raises(Unverified, match="10 records came out, not 10, and 7 bytes"):
        verify_log("a path", fmt, np.append(log.data, log.data[:7]), ten)


# Checksums

SAMPLE = GridPoint(batch_size=10, timestamp_spread_ms=9).generate(records=30, seed=1)
WITNESS = {"CRC-32C": "crc32c", "CRC-32": "binascii"}


def flipped(data: Bytes, position: int) -> Bytes:
    """Return a copy of the log with one byte inverted in each batch's stored checksum.

    Doing it twice restores the log.
    """
    data = np.array(data)
    data[Entries.of(data).positions[:-1] + position] ^= 0xFF
    return data


def checksum_of(name: str) -> Checksum:
    checksum = FORMATS[name].checksum
    assert checksum is not None
    return checksum


class _WrongKernel:
    """A format with a faulty checksum kernel: its reader and writer use the same wrong checksum."""

    def encode(self, *args: Any, **options: Any) -> EncodedLog:
        log: EncodedLog = super().encode(*args, **options)  # type: ignore[misc]
        at = checksum_of(self.name).position  # type: ignore[attr-defined]
        return replace(log, data=flipped(log.data, at))

    def decode(self, data: Any, *args: Any, **options: Any) -> DecodedLog:
        at = checksum_of(self.name).position  # type: ignore[attr-defined]
        found: DecodedLog = super().decode(flipped(data, at), *args, **options)  # type: ignore[misc]
        return found


class WrongBatches(_WrongKernel, BatchedFormat):
    pass


class WrongMessages(_WrongKernel, MessageFormat):
    pass


CHECKED = [name for name, fmt in FORMATS.items() if fmt.checksum]
WRONG = {
    "v1": WrongMessages(name="v1", magic=1, summary="", capabilities=FORMATS["v1"].capabilities),
    "v3": WrongBatches(name="v3", magic=3, summary="", features=FORMATS["v3"].features),
}


@pytest.mark.parametrize("codec", ["none", "gzip"])
@pytest.mark.parametrize("name", FORMATS)
def test_both_witnesses_agree_on_every_format(name: str, codec: str) -> None:
    log = FORMATS[name].encode(SAMPLE.records, SAMPLE.bounds, codec, lossy=True)
    assert wrong_checksum(log.data, FORMATS[name]) is None
    if FORMATS[name] in BY_MAGIC.values():  # the text of a proposal may use the magic of another format
        assert wrong_checksum(log.data) is None


@pytest.mark.parametrize("name", CHECKED)
def test_one_bit_of_any_covered_byte_is_seen(name: str) -> None:
    """A flipped bit is seen in every covered byte and in the stored checksum, and in no other byte."""
    fmt = FORMATS[name]
    log = fmt.encode(SAMPLE.records.part(0, 2), 2, lossy=True)
    start, end = Entries.of(log.data).positions[:2].tolist()
    _, position, covers_from = checksum_of(name)
    for at in range(start, end):
        data = np.array(log.data)
        data[at] ^= 1
        if at in range(8, 12):  # a wrong length: the next batch starts elsewhere
            continue
        seen = at >= covers_from or at in range(position, position + 4)
        assert bool(wrong_checksum(data, fmt)) == seen, at
    log = fmt.encode(SAMPLE.records, SAMPLE.bounds, lossy=True)
    second = int(Entries.of(log.data).positions[1])
    wrong = wrong_checksum(np.concatenate([log.data[:second], flipped(log.data[second:], position)]), fmt)
    assert f"entry 1 at byte {second}" in (wrong or "") and WITNESS[checksum_of(name).algorithm] in (wrong or "")


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_kernel_is_told_by_the_second_witness_alone(name: str) -> None:
    wrong, sound = WRONG[name], FORMATS[name]
    log = wrong.encode(SAMPLE.records, SAMPLE.bounds, lossy=True)
    assert wrong.decode(log.data).records == sound.decode(flipped(log.data, checksum_of(name).position)).records
    with pytest.raises(Unverified, match=f"second witness.*{WITNESS[checksum_of(name).algorithm]}"):
        verify_records(wrong, EncodeInput(records=SAMPLE.records, bounds=SAMPLE.bounds), log)
    with pytest.raises(Unverified, match=r"a path: entry 0 at byte 0: .*second witness"):
        verify_log("a path", wrong, log.data, SAMPLE.records)
