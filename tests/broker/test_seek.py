"""Compare `seek_offset` and `seek_time` with Kafka's FileRecords (`searchForOffsetWithSize`, `searchForTimestamp`)."""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kfbench.broker.seek import SeekResult, seek_offset, seek_time
from kfbench.broker.source import headers
from kfbench.broker.time_index import TimeIndex
from kfbench.errors import CorruptLog, Refused
from kfbench.formats import FORMATS
from kfbench.layouts import HEADERS_FIRST_BIT
from kfbench.records import Records
from tests.broker.sample_logs import COMPRESSED, poisoned, steady
from tests.common import ENRICHED, MESSAGES, ON_BROKERS, batch_fields_of, bounds_of, records_of, reference_decode
from tests.reference import log as reference_log
from tests.reference.model import Batch
from tests.strategies import NOW_MS, cases_of
from tests.test_golden import OURS, index, vector

NAMED = sorted(ON_BROKERS)
TIMED = [name for name in NAMED if name != "v0"]


def batch_of_offset(batches: Sequence[Batch], offset: int) -> Batch | None:
    return next((batch for batch in batches if batch.last_offset >= offset), None)


def overlap(batches: Sequence[Batch]) -> bool:
    """Return True if offsets go down anywhere, inside a batch or from batch to batch. No broker writes such logs."""
    inside = any(message.offset > batch.last_offset for batch in batches for message in batch.messages)
    return inside or any(a.last_offset >= b.base_offset for a, b in pairwise(batches))


class Place(NamedTuple):
    position: int  # byte position of the batch
    offset: int
    timestamp_ms: int | None


def record_of_time(batches: Sequence[Batch], timestamp_ms: int, start: int) -> Place | None:
    for batch in batches:
        latest = batch.append_time_ms if batch.is_append_time else batch.max_timestamp_ms
        if latest >= timestamp_ms:
            for message, stamp in zip(batch.messages, batch.read_timestamps_ms(), strict=True):
                if stamp >= timestamp_ms and message.offset >= start:
                    return Place(batch.position, message.offset, stamp)
    return None


def place(found: SeekResult | None) -> Place | None:
    return None if found is None else Place(found.position, found.offset, found.timestamp_ms)


def around(values: Sequence[int], more: Sequence[int] = ()) -> st.SearchStrategy[int]:
    near = {value + step for value in values for step in (-1, 0, 1)} | {0, *more}
    return st.sampled_from(sorted(value for value in near if -1 <= value < 2**63))


@pytest.mark.parametrize("name", NAMED)
@given(data=st.data())
def test_by_offset(name: str, data: st.DataObject) -> None:
    fmt, case = FORMATS[name], data.draw(cases_of(name))
    codec = data.draw(st.sampled_from(fmt.capabilities.codecs))
    log = fmt.encode(records_of(case.messages), bounds_of(case), codec, batch_fields=batch_fields_of(case))
    batches, _ = reference_decode(name, bytes(log))
    offset = data.draw(around([batch.last_offset for batch in batches] + [m.offset for m in case.messages]))
    expected = batch_of_offset(batches, offset)
    interval = data.draw(st.sampled_from([None, 0, 100]))
    built = None if interval is None else TimeIndex.build(log, interval, fmt=fmt)
    if overlap(batches):  # then headers alone do not lead to the batch
        if name in ENRICHED:
            return
        built = None
    found = seek_offset(log, offset, fmt=fmt, index=built, base_offset=True)
    if expected is None:
        assert found is None
        return
    assert found is not None
    assert (found.position, found.size_bytes) == (expected.position, expected.size_bytes)
    assert found.base_offset == expected.base_offset
    assert found.offset <= expected.last_offset
    assert found.offset == expected.last_offset or (name.startswith("enriched") and codec != "none")


@pytest.mark.parametrize("name", TIMED)
@given(data=st.data())
def test_by_time(name: str, data: st.DataObject) -> None:
    fmt, case = FORMATS[name], data.draw(cases_of(name))
    codec = data.draw(st.sampled_from(fmt.capabilities.codecs))
    log = fmt.encode(records_of(case.messages), bounds_of(case), codec, batch_fields=batch_fields_of(case))
    batches, _ = reference_decode(name, bytes(log))
    stamps = [stamp for batch in batches for stamp in batch.read_timestamps_ms()]
    stamp = data.draw(around(stamps + [batch.max_timestamp_ms for batch in batches]))
    start = data.draw(st.just(0) | around([m.offset for m in case.messages]))
    expected = record_of_time(batches, stamp, start)
    if any(message.offset > batch.last_offset for batch in batches for message in batch.messages):
        return  # the search trusts the last offset in the header
    assert place(seek_time(log, stamp, fmt=fmt, start_offset=start)) == expected
    if not overlap(batches):
        built = TimeIndex.build(log, data.draw(st.sampled_from([0, 100])), fmt=fmt)
        assert place(seek_time(log, stamp, fmt=fmt, index=built, start_offset=start)) == expected


@pytest.mark.sampled
@pytest.mark.parametrize(("name", "codec"), COMPRESSED)
def test_by_offset_only_headers_are_read(name: str, codec: str) -> None:
    """The search reads headers only. It finds the batch although every payload is damaged."""
    fmt = FORMATS[name]
    log = fmt.encode(steady(), 100, codec, lossy=True)
    rows = headers(log.data, fmt)
    broken = poisoned(log, fmt)
    found = seek_offset(broken, 750, fmt=fmt)
    assert found is not None
    assert (found.position, found.offset, found.timestamp_ms) == (log.positions[7], 799, None)
    assert found.base_offset == (None if name in ("v0", "v1") else 700)
    assert found.work.read_bytes == rows["header_bytes"][:8].sum()
    assert (found.work.untouched, found.work.decompressed_bytes, found.work.batches) == (8, 0, 8)
    if name in ("v0", "v1"):  # v0 and v1 have the first offset only inside the set
        with pytest.raises(CorruptLog, match=f"byte {log.positions[7]}: crc"):
            seek_offset(broken, 750, fmt=fmt, base_offset=True)
        opened = seek_offset(log, 750, fmt=fmt, base_offset=True)
        assert opened is not None
        assert opened.base_offset == 700
        assert opened.work.decompressed_bytes == fmt.size(steady(), 100)[7]
        assert opened.work.read_bytes == rows["header_bytes"][:7].sum() + rows["size_bytes"][7]


@pytest.mark.compiled_only
@pytest.mark.sampled
@pytest.mark.parametrize(("name", "codec"), [cell for cell in COMPRESSED if cell[0] != "v0"])
def test_by_time_one_batch_is_opened(name: str, codec: str) -> None:
    fmt = FORMATS[name]
    log = fmt.encode(steady(), 100, codec, lossy=True)
    rows = headers(log.data, fmt)
    found = seek_time(poisoned(log, fmt, int(log.positions[7])), NOW_MS + 749_500, fmt=fmt)
    assert found is not None
    assert (found.position, found.timestamp_ms) == (log.positions[7], NOW_MS + 750_000)
    plain = fmt.encode(steady(), 100, "none", lossy=True)
    opened = rows["size_bytes"][7] - rows["header_bytes"][7]
    assert found.work.read_bytes == rows["header_bytes"][:8].sum() + opened
    if name in MESSAGES:
        assert found.work.decompressed_bytes == fmt.size(steady(), 100)[7]
    elif fmt.features & HEADERS_FIRST_BIT and codec == "gzip":  # these codecs decompress whole blocks
        assert 0 < found.work.decompressed_bytes < 1000
    else:
        assert found.work.decompressed_bytes == np.diff(plain.positions)[7] - rows["header_bytes"][7]


def test_with_an_index_fewer_headers_are_read() -> None:
    fmt = FORMATS["v2"]
    log = fmt.encode(steady(), 10)
    built = TimeIndex.build(log)
    plain, looked_up = seek_offset(log, 990), seek_offset(log, 990, index=built)
    assert plain is not None
    assert looked_up is not None
    assert place(plain) == place(looked_up)
    assert plain.work.untouched == 100
    assert looked_up.work.untouched <= 5
    assert looked_up.index_bytes == 16 * len(built).bit_length()
    assert plain.index_bytes == 0


@pytest.mark.parametrize("name", ["v1", "v2"])
def test_batches_before_the_starting_offset_stay_closed(name: str) -> None:
    fmt = FORMATS[name]
    log = fmt.encode(steady(), 1, "none" if name == "v1" else "gzip")
    found, rows = seek_time(log, NOW_MS, start_offset=900), headers(log.data, fmt)
    assert found is not None
    assert found.offset == 900
    opened = rows["size_bytes"][900] - rows["header_bytes"][900]
    assert found.work.read_bytes == rows["header_bytes"][:901].sum() + opened
    assert seek_time(log, NOW_MS, start_offset=1000) is None
    broken = log.data.copy()
    broken[int(log.positions[899]) + int(rows["header_bytes"][899])] ^= 1  # a payload byte that is not read
    assert place(seek_time(broken, NOW_MS, start_offset=900)) == place(found)


def test_a_set_is_opened_if_the_offset_may_be_in_a_hole() -> None:
    """An enriched header has the first offset and the number of messages, not the last offset.

    If the offset may lie in a gap, the search opens the set.
    """
    fmt = FORMATS["enriched-ms"]
    offsets = [0, 1, 2, 10, 20, 30, 31, 32, 33]
    records = Records.from_lists([b"v"] * 9, offsets=offsets)
    log = fmt.encode(records, 3, "gzip")
    want = {0: 0, 2: 0, 3: 1, 9: 1, 12: 1, 13: 1, 21: 1, 30: 1, 31: 2, 33: 2}
    for offset, batch in want.items():
        found = seek_offset(log, offset, fmt=fmt)
        assert found is not None, offset
        assert found.position == log.positions[batch], offset
    assert seek_offset(log, 34, fmt=fmt) is None
    closed, opened = seek_offset(log, 12, fmt=fmt), seek_offset(log, 13, fmt=fmt)
    assert closed is not None
    assert opened is not None
    assert closed.work.decompressed_bytes == 0
    assert (opened.work.decompressed_bytes, opened.offset) == (3 * 44, 30)


def test_v0_has_no_times() -> None:
    log = FORMATS["v0"].encode(Records.from_lists([b"v"] * 3), 3)
    for fmt in ("v0", None):
        with pytest.raises(Refused, match="UNSUPPORTED_FOR_MESSAGE_FORMAT: Cannot search offsets based on timestamp"):
            seek_time(log, NOW_MS, fmt=fmt)
    assert seek_time(b"", NOW_MS) is None
    later = FORMATS["v2"].encode(Records.from_lists([b"v"], timestamps_ms=[NOW_MS], offsets=[3]), 1)
    mixed = bytes(log) + bytes(later)
    assert place(seek_time(mixed, NOW_MS)) == (len(log.data), 3, NOW_MS)
    assert seek_time(mixed, NOW_MS + 1) is None


def test_an_opened_batch_is_checked_and_named_by_its_position() -> None:
    log = FORMATS["v2"].encode(steady(count=30), 10, "gzip")
    broken = log.data.copy()
    broken[log.positions[1] + 80] ^= 1
    with pytest.raises(CorruptLog, match=f"batch at byte {log.positions[1]}: crc"):
        seek_time(broken, NOW_MS + 15_000)
    assert seek_time(broken, NOW_MS + 5_000) is not None


SEGMENTS = [
    entry["name"] for entry in index(OURS) if entry["category"] in ("segment", "compaction") and entry["error"] is None
]


@pytest.mark.sampled(24)
@pytest.mark.parametrize("name", SEGMENTS)
def test_segments_of_mixed_magics(name: str) -> None:
    """Kafka's classes wrote these logs. They mix v0, v1 and v2; some are compacted."""
    log, _ = vector(OURS, name)
    batches, _ = reference_log.decode(log)
    lasts, stamps = [batch.last_offset for batch in batches], [batch.max_timestamp_ms for batch in batches]
    for offset in {0, *lasts, *(last + 1 for last in lasts)}:
        expected, found = batch_of_offset(batches, offset), seek_offset(log, offset)
        assert (None if found is None else found.position) == (None if expected is None else expected.position)
    for stamp in {stamp + step for stamp in stamps for step in (0, 1) if stamp >= 0}:
        assert place(seek_time(log, stamp)) == record_of_time(batches, stamp, 0)
