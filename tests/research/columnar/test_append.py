"""`append` of columnar batches sets offsets in place. No other broker path takes columnar."""

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kfbench import FORMATS, BatchFields, Records
from kfbench.broker.append import append
from kfbench.broker.compact import compact, filtered
from kfbench.broker.convert import convert
from kfbench.broker.expire import expire
from kfbench.broker.fetch import fetch
from kfbench.broker.mirror import mirror
from kfbench.broker.seek import seek_offset, seek_time
from kfbench.broker.time_index import TimeIndex
from kfbench.broker.upgrade import upgrade
from kfbench.errors import CorruptLog, IllegalCombination, KfbenchError, Refused
from tests.common import messages_of, records_of, reference_decode
from tests.formats.fuzz import mutations, sealed
from tests.reference.model import Message
from tests.research.columnar import cases as columnar_cases
from tests.research.columnar import reference as columnar
from tests.research.columnar.batches import (
    ANCHOR_MS,
    ATTRIBUTES_AT,
    COLUMNAR,
    COUNT_AT,
    LATER_MS,
    aged,
    encoded,
    messages,
)
from tests.strategies import NOW_MS

V2 = bytes(FORMATS["v2"].encode(records_of(messages())))
OTHER_PATHS: dict[str, Callable[[Any], object]] = {
    "compact": partial(compact, now_ms=LATER_MS),
    "compact, format given": partial(compact, now_ms=LATER_MS, fmt="columnar"),
    "filter": partial(filtered, keep=True, now_ms=LATER_MS),
    "convert": partial(convert, to="v2"),
    "convert to columnar": lambda _: convert(V2, "columnar"),
    "convert a mixed log": lambda log: convert(V2 + bytes(log), "v3"),
    "fetch": partial(fetch, reader="columnar"),
    "fetch by an older reader": partial(fetch, reader="v2"),
    "mirror": partial(mirror, fmt="columnar"),
    "seek by offset": partial(seek_offset, offset=2),
    "seek by time": partial(seek_time, timestamp_ms=NOW_MS),
    "seek by time, format given": partial(seek_time, timestamp_ms=NOW_MS, fmt="columnar"),
    "expire": lambda log: expire([log], LATER_MS),
    "index": TimeIndex.build,
    "append to columnar": lambda _: append(V2, to="columnar"),
}


@pytest.mark.parametrize("path", OTHER_PATHS)
def test_no_other_path(path: str) -> None:
    with pytest.raises(IllegalCombination, match="no path for columnar: it is a research format; append is the only"):
        OTHER_PATHS[path](encoded())


def test_no_upgrade(tmp_path: Path) -> None:
    segment = tmp_path / "00000000000000000000.log"
    for log, to in ((bytes(encoded()), "v2"), (V2, "columnar")):
        segment.write_bytes(log)
        with pytest.raises(IllegalCombination, match="no path for columnar"):
            upgrade(segment, to)
        assert segment.read_bytes() == log


@pytest.mark.parametrize(
    "options", [{"timestamp_type": "append", "now_ms": LATER_MS}, {"to": "v2"}, {"codec": "lz4"}], ids=str
)
def test_nothing_but_offsets(options: dict[str, Any]) -> None:
    log = encoded("gzip")
    before = bytes(log)
    for fmt in (None, "columnar"):
        with pytest.raises(IllegalCombination, match="columnar: append sets offsets, but no append time, format or"):
            append(log, fmt, in_place=True, **options)
    assert bytes(log) == before


@pytest.mark.parametrize("codec", ["none", "zstd"])
@pytest.mark.parametrize("fields", [{}, {"producer_id": 7, "producer_epoch": 1, "base_sequence": 3}], ids=["", "state"])
def test_columns_and_payload_are_not_touched(codec: str, fields: dict[str, int]) -> None:
    log = encoded(codec, **fields)
    before = bytes(log)
    done = append(log, codec=codec, in_place=True, base_offset=2**56 + 5, partition_leader_epoch=2**24 + 1)
    assert np.shares_memory(done.data, log.data)
    assert (done.work.in_place, done.work.decompressed_bytes) == (1, 0)
    assert (done.next_offset, done.max_timestamp_ms.tolist()) == (2**56 + 10, [ANCHOR_MS])
    differing = np.flatnonzero(np.frombuffer(before, np.uint8) != done.data)
    assert {*differing.tolist()} <= {*range(8), *range(12, 16)}
    assert (done.work.written_bytes, done.work.read_bytes) == (12, len(before))
    (batch,), _ = reference_decode("columnar", bytes(done.data))
    assert [m.offset for m in batch.messages] == [2**56 + 5 + i for i in range(5)]
    assert batch.partition_leader_epoch == 2**24 + 1
    assert batch.read_timestamps_ms() == [NOW_MS + i for i in range(5)]
    assert [(m.key, m.value, m.headers) for m in batch.messages] == [(m.key, m.value, m.headers) for m in messages()]


@pytest.mark.parametrize("times_ms", [[-9, -5], [NOW_MS, 2**47], [-1, -1]])
def test_any_maximum_that_is_the_latest_time(times_ms: list[int]) -> None:
    """A maximum below -1, one beyond 48 bits, and no time at all."""
    done = append(COLUMNAR.encode(Records.from_lists([b"v"] * 2, timestamps_ms=times_ms), 2))
    assert (done.work.in_place, done.max_timestamp_ms.tolist()) == (1, [max(*times_ms, -1)])
    assert COLUMNAR.decode(done.data).records.timestamps_ms.tolist() == times_ms


def test_stored_offsets_that_rise_by_one() -> None:
    batch = bytearray(columnar.encode([Message(offset=0, timestamp_ms=NOW_MS, key=b"k", value=b"v")]))
    batch[ATTRIBUTES_AT] |= columnar.OFFSETS >> 8
    sent = sealed(bytes(batch[: COUNT_AT + 1]) + b"\0\0" + bytes(batch[COUNT_AT + 1 :]))  # last offset delta, one delta
    done = append(sent, base_offset=9)
    assert (done.work.in_place, done.work.rewritten) == (1, 0)
    assert COLUMNAR.decode(done.data).records.offsets.tolist() == [9]


def with_offsets(codec: str, offsets: list[int]) -> bytes:
    sent = Records.from_lists([b"a", b"b", b"c"], timestamps_ms=[NOW_MS] * 3, offsets=offsets)
    return bytes(COLUMNAR.encode(sent, 3, codec, batch_fields=BatchFields(base_offset=0, last_offset=2)))


@pytest.mark.parametrize(
    "sent",
    [
        *(with_offsets(codec, offsets) for codec in ("none", "gzip") for offsets in ([0, 2, 1], [0, 0, 2], [1, 1, 1])),
        *(bytes(encoded("gzip", max_timestamp_ms=wrong_ms)) for wrong_ms in (0, NOW_MS - 1, LATER_MS)),
        aged(NOW_MS + 50),
        bytes(encoded(append_time_ms=LATER_MS)),
        bytes(encoded(append_time_ms=ANCHOR_MS)),
    ],
)
def test_a_batch_that_would_have_to_be_rebuilt_is_refused(sent: bytes) -> None:
    """Offsets out of order, a maximum timestamp that is not the latest create time, or an append time."""
    log = np.frombuffer(bytes(encoded()) + sent, np.uint8).copy()
    before, first = log.tobytes(), len(bytes(encoded()))
    two = FORMATS["columnar"].encode(records_of([]), [0])
    two = type(two)(data=log, positions=np.array([0, first, len(log)]))
    with pytest.raises(Refused, match="offsets do not rise by one, or the largest create time is not") as refusal:
        append(two, in_place=True)
    assert (refusal.value.error, refusal.value.position, log.tobytes()) == ("INVALID_RECORD", first, before)


@pytest.mark.compiled_only
@settings(max_examples=200)
@given(data=st.data())
def test_a_damaged_batch_is_refused_or_keeps_its_records(data: st.DataObject) -> None:
    """`append` refuses a damaged batch that has a correct checksum, or stores it with the same records.

    It may also accept an unreadable batch, if this is compressed or a control batch.
    """
    drawn = data.draw(columnar_cases.batches(max_count=9))
    codec = data.draw(st.sampled_from(["none", "none", "none", "lz4"]))
    sent = data.draw(mutations(columnar.encode(drawn, data.draw(columnar_cases.fields_of(drawn)), codec)))
    bits = int.from_bytes(sent[ATTRIBUTES_AT : ATTRIBUTES_AT + 2], "big") if len(sent) > COUNT_AT else 0
    before = None
    with suppress(CorruptLog):
        before = COLUMNAR.decode(sent)
    try:
        done = append(sent, base_offset=1000, origin="coordinator")
    except KfbenchError:
        return
    assert (done.work.in_place, done.work.decompressed_bytes) == (1, 0)
    if before is None:
        assert bits & (columnar.CODEC | columnar.CONTROL)
        with pytest.raises(CorruptLog):
            COLUMNAR.decode(done.data)
        return
    back = COLUMNAR.decode(done.data)
    assert [(m.key, m.value, m.headers) for m in messages_of(back.records)] == [
        (m.key, m.value, m.headers) for m in messages_of(before.records)
    ]
    (row,) = back.batch_rows
    assert back.records.timestamps_ms.tolist() == before.records.timestamps_ms.tolist()
    assert max(row["max_timestamp_ms"], -1) == max([*before.records.timestamps_ms.tolist(), -1])
    if row["count"] == row["last_offset"] - row["base_offset"] + 1:
        assert back.records.offsets.tolist() == list(range(1000, 1000 + len(back.records)))
