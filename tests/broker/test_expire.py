"""`expire` deletes old records and keeps young ones.

Its indexes have the same entries as Kafka's.
"""

from collections.abc import Iterable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kfbench.arrays import Bytes
from kfbench.batches import EncodedLog
from kfbench.broker.expire import expire
from kfbench.broker.source import headers
from kfbench.broker.time_index import TimeIndex
from kfbench.errors import CorruptLog, IllegalCombination, InvalidRecords, Refused
from kfbench.formats import FORMATS
from kfbench.log import read_log
from kfbench.records import Records
from tests.broker.sample_logs import poisoned
from tests.common import ON_BROKERS
from tests.strategies import NOW_MS

NAMED = sorted(ON_BROKERS)
TIMED = [name for name in NAMED if name != "v0"]


def segment(name: str, stamps: list[int], batch_size: int = 2, codec: str = "none", first: int = 0) -> EncodedLog:
    records = Records.from_lists(
        [b"v" * 30] * len(stamps), timestamps_ms=stamps, offsets=first + np.arange(len(stamps))
    )
    return FORMATS[name].encode(records, batch_size, codec, lossy=True)


def index_entries(positions: list[int], lasts: list[int], interval: int) -> list[tuple[int, int]]:
    """Return the entries (offset, byte position) that Kafka's `LogSegment.recover` writes batch by batch."""
    found: list[tuple[int, int]] = []
    last_entry = 0
    for position, last in zip(positions, lasts, strict=True):
        if position - last_entry > interval:
            found.append((last, position))
            last_entry = position
    return found


def overdue_bytes(segments: Iterable[Bytes], before_ms: int) -> int:
    """Return the number of bytes in batches whose records are all older than before_ms."""
    rows = [headers(each) for each in segments]
    return sum(int(each["size_bytes"][each["max_timestamp_ms"] < before_ms].sum()) for each in rows)


@given(
    st.lists(st.integers(-1, 50), min_size=0, max_size=60),
    st.integers(1, 4),
    st.sampled_from([0, 1, 99, 150, 400, 4096]),
)
def test_an_index_has_kafkas_entries(stamps: list[int], batch_size: int, interval: int) -> None:
    log = segment("v2", stamps, batch_size)
    rows = headers(log.data)
    by_offset = index_entries(rows["position"].tolist(), rows["last_offset"].tolist(), interval)
    index = TimeIndex.build(log, interval)
    assert list(zip(index.offsets.tolist(), index.positions.tolist(), strict=True)) == by_offset
    assert index.largest_ms == max(stamps, default=-1)
    assert index.work.read_bytes == 61 * len(rows)
    for entry, (position, stamp) in enumerate(zip(index.positions, index.timestamps_ms, strict=True)):
        upto = rows[rows["position"] <= position]
        assert stamp == upto["max_timestamp_ms"].max(), entry


@pytest.mark.parametrize("name", NAMED)
def test_an_index_needs_no_record(name: str) -> None:
    log = segment(name, [NOW_MS + 1000 * i for i in range(400)], 4, FORMATS[name].capabilities.codecs[1])
    rows = headers(log.data, FORMATS[name])
    index, sound = TimeIndex.build(poisoned(log, FORMATS[name]), 1000, fmt=name), TimeIndex.build(log, 1000, fmt=name)
    assert len(index) > 4
    assert index.positions.tolist() == sound.positions.tolist()
    assert index.work.read_bytes == rows["header_bytes"].sum() < len(log.data)
    assert np.diff(np.append(0, index.positions)).min() > 1000
    assert index.largest_ms == (-1 if name == "v0" else NOW_MS + 399_000)


@pytest.mark.parametrize("name", TIMED)
@given(data=st.data())
def test_expiry(name: str, data: st.DataObject) -> None:
    fmt = FORMATS[name]
    codec = data.draw(st.sampled_from(fmt.capabilities.codecs))
    stamps = data.draw(st.lists(st.lists(st.integers(0, 20), max_size=12), max_size=4))
    segments, first = [], 0
    for each in stamps:
        segments.append(segment(name, [1000 * stamp for stamp in each], 2, codec, first))
        first += len(each)
    before = 1000 * data.draw(st.integers(0, 21))
    active, exact = data.draw(st.booleans()), data.draw(st.booleans())
    by = data.draw(st.sampled_from(["segment", "head"]))
    interval = data.draw(st.sampled_from([0, 150, 400]))
    indexes = [TimeIndex.build(each, interval, fmt=fmt) for each in segments]
    rows = [headers(each.data, fmt) for each in segments]
    examined = segments[: len(segments) - (not active or not (rows and len(rows[-1])))]  # Kafka rolls an old segment
    is_young = [each["max_timestamp_ms"] >= before for each in rows]
    gone = next((number for number, _ in enumerate(examined) if is_young[number].any()), len(examined))
    head, seen = 0, rows[: gone + 1] if gone < len(examined) else rows[:gone]
    if by == "head" and gone < len(examined):
        first_young = int(rows[gone]["position"][is_young[gone]][0])
        entries = indexes[gone].positions
        head = first_young if exact else int(entries[entries < first_young].max(initial=0))
    done = expire(segments, before, by, fmt=fmt, interval_bytes=interval, exact=exact, active=active)  # type: ignore[arg-type]
    assert (done.deleted_segments, done.head_bytes) == (gone, head)
    left = [each.data for each in segments[gone:]]
    if left:
        left[0] = left[0][head:]
    assert [part.tobytes() for part in done.segments] == [part.tobytes() for part in left]
    for number, (part, source) in enumerate(zip(done.segments, segments[gone:], strict=True)):
        assert not len(part) or np.shares_memory(part, source.data) == (number > 0 or not head)
    assert done.work.batches == sum(map(len, seen))
    assert done.work.dropped == sum(map(len, rows[:gone])) + sum(
        (each["position"] < head).sum() for each in seen[gone:]
    )
    assert (done.work.shifted > 0) == (done.work.written_bytes > 0) == (head > 0)
    assert done.work.written_bytes == (len(left[0]) if head else 0)
    again = expire(segments, before, by, fmt=fmt, indexes=indexes, exact=exact, active=active)  # type: ignore[arg-type]
    assert (again.deleted_segments, again.head_bytes) == (gone, head)
    assert again.work.read_bytes <= done.work.read_bytes


def test_old_bytes_that_stay_and_bytes_read() -> None:
    stamps = [NOW_MS + 1000 * i for i in range(4000)]
    segments = [segment("v2", stamps[i : i + 1000], 10, first=i) for i in range(0, 4000, 1000)]
    indexes = [TimeIndex.build(each) for each in segments]
    before = NOW_MS + 2_605_000
    whole, head, exact = (
        expire(segments, before, indexes=indexes),
        expire(segments, before, "head", indexes=indexes),
        expire(segments, before, "head", indexes=indexes, exact=True),
    )
    assert [done.deleted_segments for done in (whole, head, exact)] == [2, 2, 2]
    size = len(segments[0].data) // 100
    overdue = [overdue_bytes(done.segments, before) for done in (whole, head, exact)]
    assert overdue[0] == 60 * size
    assert 0 < overdue[1] <= 4096 + 2 * size
    assert overdue[2] == 0
    assert whole.work.read_bytes == 3 * 16
    assert (whole.work.batches, whole.work.written_bytes) == (0, 0)  # no header was read
    copied = [len(done.segments[0]) for done in (head, exact)]
    assert [done.work.written_bytes for done in (head, exact)] == copied
    looked_up = 3 * 16 + 16 * len(indexes[2]).bit_length()
    assert head.work.read_bytes == looked_up + copied[0]
    passed = overdue[1] // size + 1
    assert exact.work.read_bytes == looked_up + 61 * passed + copied[1]
    assert (exact.work.dropped, exact.work.shifted) == (passed - 1, 1)
    built = expire(segments, before)
    assert built.work.read_bytes == 3 * (16 + 61 * 100)  # without an index, every header is read
    assert [len(read_log(part).records) for part in exact.segments] == [400, 1000]


def test_only_necessary_headers_are_read() -> None:
    segments = [segment("v2", list(range(i, i + 100)), first=i) for i in (0, 100, 200)]
    indexes = [TimeIndex.build(each) for each in segments]
    broken = [each.data.copy() for each in segments]
    for each in broken:
        each[16] = 9
    for by in ("segment", "head"):
        done = expire(broken, 150, by, indexes=indexes)
        assert (done.deleted_segments, done.work.dropped) == (1, 0)
    sound_first = [segments[0].data, *broken[1:]]
    assert expire(sound_first, 50).work.batches == 50
    with pytest.raises(CorruptLog, match="batch at byte 0: magic"):
        expire(sound_first, 150)


def test_v0_goes_by_its_files_or_not_at_all() -> None:
    segments = [segment("v0", [-1] * 6, first=i) for i in (0, 6, 12)]
    for by in ("segment", "head"):
        with pytest.raises(Refused, match="UNSUPPORTED_FOR_MESSAGE_FORMAT: no timestamp says how old"):
            expire(segments, NOW_MS, by)
        done = expire(segments, NOW_MS, by, modified_ms=[NOW_MS - 2, NOW_MS - 1, NOW_MS])
        assert (done.deleted_segments, done.head_bytes) == (2, 0)


def test_options_that_are_refused() -> None:
    log = segment("v2", [1, 2])
    with pytest.raises(IllegalCombination, match="by: "):
        expire([log], 5, "record")  # type: ignore[arg-type]
    with pytest.raises(InvalidRecords, match="indexes: 0 items for 1 segments"):
        expire([log], 5, indexes=[])
    with pytest.raises(CorruptLog, match="batch at byte 0: magic"):
        expire([bytes(log)[:16] + b"\x09" + bytes(log)[17:]], 5)
    assert expire([], 5).segments == ()
    assert expire([b""], 5, "head").segments[0].tobytes() == b""
