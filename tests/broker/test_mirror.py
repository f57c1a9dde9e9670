"""`mirror` sends every record to its partition in order. It rebuilds only batches that it must rebuild."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kfbench.batches import BatchFields, EncodedLog
from kfbench.broker.append import append
from kfbench.broker.mirror import MirrorResult, mirror
from kfbench.broker.source import NOT_IN_HEADER, headers
from kfbench.errors import CorruptLog, IllegalCombination, InvalidConfig
from kfbench.formats import FORMATS, Format
from kfbench.layouts import HEADERS_FIRST_BIT
from kfbench.records import Records
from tests.broker.sample_logs import COMPRESSED, poisoned, steady
from tests.common import (
    ENRICHED,
    ON_BROKERS,
    batch_fields_of,
    bounds_of,
    messages_of,
    records_of,
    reference_decode,
)
from tests.recorded import FOLDER, NAMES, facts
from tests.reference.mirror import aborted_batches, expected_records
from tests.reference.model import Message
from tests.strategies import cases_of

NAMED = sorted(ON_BROKERS)


def read(fmt: Format, log: EncodedLog) -> list[Message]:
    return [replace(message, offset=0) for message in messages_of(fmt.decode(log).records)]


def check(fmt: Format, log: bytes, done: MirrorResult, partitions: int) -> None:
    batches, _ = reference_decode(fmt.name, log)
    assert [read(fmt, part) for part in done.partitions] == expected_records(batches, partitions)
    assert done.work.batches == len(batches)
    assert done.handed_on == done.work.untouched + done.work.in_place
    assert done.aborted == len(aborted_batches(batches))
    assert done.work.written_bytes == len(done.data)
    for part, expected in zip(done.partitions, expected_records(batches, partitions), strict=True):
        taken = append(part, fmt, base_offset=5)
        assert [replace(message, offset=0) for message in messages_of(fmt.decode(taken.data).records)] == expected
    assert (done.positions[0], done.positions[-1]) == (0, len(done.data))
    assert (done.bounds[0], done.bounds[-1]) == (0, len(done.positions) - 1)
    given = [log[batch.position : batch.position + batch.size_bytes] for batch in batches]
    sent = [done.data[start:end].tobytes() for start, end in pairwise(done.positions.tolist())]
    assert sum(part in given for part in sent) >= done.work.untouched
    rows = headers(done.data, fmt)
    assert (rows["producer_id"] == -1).all()
    assert not (rows["is_control"] | rows["is_transactional"] | rows["is_append_time"]).any()
    if fmt.magic > 1:
        has_count = rows["count"] != NOT_IN_HEADER
        assert not rows["base_offset"].any()
        assert (rows["last_offset"] - rows["base_offset"] + 1)[has_count].tolist() == rows["count"][has_count].tolist()
        assert not (fmt.decode(done.data).batch_rows["delete_horizon_ms"] != -1).any()


@pytest.mark.parametrize("name", NAMED)
@given(data=st.data())
def test_every_record_reaches_its_partition(name: str, data: st.DataObject) -> None:
    fmt, case = FORMATS[name], data.draw(cases_of(name, 6))
    codec = data.draw(st.sampled_from(fmt.capabilities.codecs))
    if name in ENRICHED and codec != "none" and any(fields.is_control for fields in case.fields):
        return  # the header of a compressed set has no bit for keys; a test below reads inside a set
    if name == "v1" and any(fields.base_offset is not None for fields in case.fields):
        return  # no broker writes these relative offsets
    log = fmt.encode(records_of(case.messages), bounds_of(case), codec, batch_fields=batch_fields_of(case))
    partitions, passing = data.draw(st.sampled_from([1, 2, 3, 8])), data.draw(st.booleans())
    done = mirror(
        log,
        fmt,
        partitions=partitions,
        pass_through=passing,
        batch_size=data.draw(st.sampled_from([1, 3, 100])),
        codec=data.draw(st.sampled_from([None, *fmt.capabilities.codecs])),
        reset_offsets=data.draw(st.booleans()),
    )
    assert passing or not done.handed_on
    check(fmt, bytes(log), done, partitions)


# values of Kafka's `UtilsTest.testMurmur2`
KNOWN = {
    b"21": -973932308,
    b"foobar": -790332482,
    b"a-little-bit-long-string": -985981536,
    b"a-little-bit-longer-string": -1486304829,
    b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
    b"abc": 479470107,
}


@pytest.mark.parametrize("partitions", [2, 7, 64])
def test_the_partition_of_a_key_is_kafkas(partitions: int) -> None:
    fmt = FORMATS["v2"]
    done = mirror(fmt.encode(Records.from_lists(list(KNOWN), keys=list(KNOWN))), fmt, partitions=partitions)
    for number, part in enumerate(done.partitions):
        expected = [key for key, value in KNOWN.items() if (value & 0x7FFFFFFF) % partitions == number]
        assert fmt.decode(part).records.keys() == expected


def some_keys(count: int = 1000) -> list[bytes | None]:
    return [b"user-%d" % (i % 37) for i in range(count)]


@pytest.mark.compiled_only
@pytest.mark.sampled
@pytest.mark.parametrize(("name", "codec"), COMPRESSED)
def test_where_keys_do_not_matter_only_headers_are_read(name: str, codec: str) -> None:
    fmt = FORMATS[name]
    log = fmt.encode(steady(some_keys()), 100, codec, lossy=True)
    broken = poisoned(log, fmt)
    if name == "kip98":  # the header has no record count, so only the records show gaps
        with pytest.raises(CorruptLog, match="batch at byte 0: crc"):
            mirror(broken, fmt)
        assert mirror(log, fmt).work.decompressed_bytes > 0
        return
    done = mirror(broken, fmt, reset_offsets=False)
    untouched = 10 if name == "v0" else 1  # the first batch starts at offset 0 already
    assert (done.work.untouched, done.work.in_place) == (untouched, 10 - untouched)
    assert done.work.read_bytes == done.work.written_bytes == len(broken)  # copied, not rebuilt
    assert (done.work.decompressed_bytes, done.work.recompressed_bytes) == (0, 0)
    given = [broken[log.positions[b] : log.positions[b + 1]].tobytes() for b in range(10)]
    first = {"v0": None, "v1": 99}.get(name, 0)  # the header of v1 has the last offset, not the first
    if first is not None:
        given = [first.to_bytes(8, "big") + each[8:] for each in given]
    assert bytes(done.encoded) == b"".join(given)


@pytest.mark.compiled_only
@pytest.mark.sampled
@pytest.mark.parametrize(("name", "codec"), COMPRESSED)
def test_a_destination_keeps_forwarded_sets(name: str, codec: str) -> None:
    fmt, records = FORMATS[name], steady(some_keys())
    records = replace(records, shapes=replace(records.shapes, offsets=5000 + np.arange(len(records))))
    done = mirror(fmt.encode(records, 100, codec, lossy=True), fmt, first_offset=5000)
    assert done.handed_on == 10
    taken = append(done.encoded, fmt)
    assert (taken.work.rewritten, taken.next_offset) == (10 if name == "v0" else 0, 1000)
    if name == "v1":  # the first set gets a wrong offset, so it is rebuilt
        rough = mirror(fmt.encode(records, 100, codec), fmt)
        assert append(rough.encoded, fmt).work.rewritten == 1
        assert fmt.decode(append(rough.encoded, fmt).data).records == fmt.decode(taken.data).records


@pytest.mark.compiled_only
@pytest.mark.sampled
@pytest.mark.parametrize(("name", "codec"), COMPRESSED)
def test_without_keys_only_a_flag_keeps_a_batch_closed(name: str, codec: str) -> None:
    fmt = FORMATS[name]
    log = fmt.encode(steady(), 100, codec, lossy=True)
    done = mirror(log, fmt, partitions=4, reset_offsets=False)
    assert (done.handed_on, done.work.recompressed_bytes) == (10, 0)
    parts = fmt.breakdown(steady(), 100)
    plain = sum(size for part, size in parts.items() if not part.startswith(fmt.bare_parts))
    if name in ENRICHED:
        assert done.work.decompressed_bytes == 0
        assert mirror(poisoned(log, fmt), fmt, partitions=4, reset_offsets=False).handed_on == 10
    elif fmt.features & HEADERS_FIRST_BIT and codec == "gzip":
        assert 0 < done.work.decompressed_bytes < plain / 10
    else:
        assert done.work.decompressed_bytes == plain
    if name not in ENRICHED:
        with pytest.raises(CorruptLog, match="batch at byte 0: crc"):
            mirror(poisoned(log, fmt), fmt, partitions=4)
    through = mirror(log, fmt, partitions=4, pass_through=False)
    assert (through.work.rewritten, through.work.written_bytes) == (10, len(through.data))
    assert through.work.decompressed_bytes == through.work.recompressed_bytes == plain
    assert [read(fmt, part) for part in through.partitions] == [read(fmt, part) for part in done.partitions]


def test_positions_stand_for_offsets_after_a_compaction() -> None:
    fmt = FORMATS["enriched-ms"]
    records = Records.from_lists([b"v%d" % i for i in range(6)], offsets=[10, 12, 13, 40, 41, 50])
    log = fmt.encode(records, 3, "gzip")
    done = mirror(log, fmt)
    checked = len(log.data) - 2 * 16  # a checksum covers neither offset nor length
    assert (done.work.in_place, done.work.written_bytes) == (2, len(log.data))
    assert done.work.read_bytes == len(log.data) + checked
    assert fmt.decode(done.data).records.shapes.offsets.tolist() == [0, 1, 2, 0, 1, 2]
    assert 4 <= (done.data != log.data).sum() <= 12
    taken = append(done.encoded, fmt, base_offset=7)
    assert (taken.work.in_place, taken.work.rewritten) == (2, 0)
    assert fmt.decode(taken.data).records.shapes.offsets.tolist() == list(range(7, 13))
    again = mirror(done.encoded, fmt)  # a mirror of the mirrored log
    assert (again.work.untouched, again.data.tobytes()) == (2, done.data.tobytes())
    kept = mirror(log, fmt, reset_offsets=False)
    assert [at for at in np.flatnonzero(kept.data != log.data) if at % log.positions[1] >= 8] == []
    assert append(kept.encoded, fmt).work.rewritten == 2


@pytest.mark.parametrize("name", ["v2", "v3", "v3-full", "kip98"])
@pytest.mark.parametrize("partitions", [1, 3])
def test_only_committed_transactions_are_sent(name: str, partitions: int) -> None:
    fmt = FORMATS[name]

    def batch(offset: int, producer: int, value: bytes) -> bytes:
        fields = BatchFields(producer_id=producer, producer_epoch=0, base_sequence=0, is_transactional=True)
        return bytes(fmt.encode(Records.from_lists([value], offsets=[offset]), 1, "gzip", batch_fields=fields))

    def marker(offset: int, producer: int, kind: int) -> bytes:
        fields = BatchFields(producer_id=producer, producer_epoch=0, is_transactional=True, is_control=True)
        records = Records.from_lists([bytes(6)], keys=[bytes([0, 0, 0, kind])], offsets=[offset])
        return bytes(fmt.encode(records, 1, batch_fields=fields))

    log = b"".join(
        [
            batch(0, 7, b"aborted"), batch(1, 8, b"committed"), batch(2, 7, b"aborted"), marker(3, 7, 0),
            batch(4, 7, b"committed"), marker(5, 8, 1), marker(6, 7, 1), batch(7, 9, b"undecided"),
        ]
    )  # fmt: skip
    done = mirror(log, fmt, partitions=partitions)
    records = fmt.decode(done.data).records
    assert sorted(records.value(i) or b"" for i in range(len(records))) == [b"committed", b"committed", b"undecided"]
    assert (done.aborted, done.work.dropped, done.handed_on) == (2, 5, 3)
    check(fmt, log, done, partitions)


def test_control_and_empty_batches_are_dropped() -> None:
    fmt = FORMATS["v2"]
    marker = fmt.encode(
        Records.from_lists([b"\0\0\0\0\0\0"], keys=[b"\0\0\0\1"]), batch_fields=BatchFields(is_control=True)
    )
    empty = fmt.encode(Records.from_lists([]), [0, 0], batch_fields=BatchFields(base_offset=4, last_offset=9))
    rest = fmt.encode(steady(count=10), 10)
    done = mirror(bytes(marker) + bytes(empty) + bytes(rest), fmt)
    assert done.data.tobytes() == bytes(rest)
    assert (done.work.dropped, done.work.untouched, dict(done.work.losses)) == (2, 1, {"is_control": 1})
    tags = FORMATS["enriched"]
    marker = tags.encode(
        Records.from_lists([b"\0\0\0\0\0\0"], keys=[b"\0\0\0\1"]), 1, "gzip", batch_fields=BatchFields(is_control=True)
    )
    assert mirror(marker, tags, partitions=3).work.dropped == 1
    assert len(mirror(b"", fmt, partitions=3).partitions) == 3


def test_a_damaged_batch_is_named_by_its_position() -> None:
    fmt = FORMATS["enriched"]
    keyless, keyed = (fmt.encode(steady(keys, 300), 100, "gzip", lossy=True) for keys in (None, some_keys(300)))
    whole = np.frombuffer(bytes(keyless) + bytes(keyed), np.uint8)
    at = len(keyless.data) + int(keyed.positions[1])
    broken = whole.copy()
    broken[at + 80] ^= 1
    with pytest.raises(CorruptLog, match=f"batch at byte {at}: crc"):
        mirror(broken, fmt, partitions=2)
    first = FORMATS["v3-headers-first"]
    log = first.encode(steady(), 100, "gzip")
    broken = log.data.copy()
    broken[log.positions[3] + 100] ^= 1
    with pytest.raises(CorruptLog, match=f"batch at byte {log.positions[3]}: crc"):
        mirror(broken, first, partitions=2)


def test_options_that_are_refused() -> None:
    log = FORMATS["v1"].encode(steady(some_keys()), 100, "gzip")
    with pytest.raises(InvalidConfig, match="partitions: 0 is below 1"):
        mirror(log, "v1", partitions=0)
    with pytest.raises(IllegalCombination, match="v1 has no zstd"):
        mirror(log, "v1", partitions=2, codec="zstd")
    for mixed in (bytes(log), bytes(FORMATS["v2"].encode(steady(), 100)) + bytes(log)):
        with pytest.raises(CorruptLog, match=f"byte {len(mixed) - len(log.data)}: magic"):
            mirror(mixed, "v2")


SEGMENTS = {name: set(facts(name).batches["magic"]) for name in NAMES if name.endswith(".log")}


@pytest.mark.compiled_only
@pytest.mark.sampled(12)
@pytest.mark.parametrize("name", [name for name, magics in SEGMENTS.items() if len(magics) == 1])
@pytest.mark.parametrize("partitions", [1, 5])
def test_recorded_segments(name: str, partitions: int) -> None:
    log, fmt = (FOLDER / name).read_bytes(), FORMATS[f"v{min(SEGMENTS[name])}"]
    check(fmt, log, mirror(log, fmt, partitions=partitions), partitions)
