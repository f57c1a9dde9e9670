"""Another process changes the buffer while it is read. Readers do not write outside their columns."""

from typing import Any

import numpy as np
import pytest

from kfbench import FORMATS, EncodedLog, Records
from kfbench.arrays import Bytes
from kfbench.codecs import Allowance
from kfbench.formats.base.batched import BatchReading
from kfbench.formats.base.reading import HeaderSpans
from kfbench.kernels.formats.batch_header import TAIL_COUNT, V2_COUNT

RECORDS = Records.from_lists([b"value"] * 100)
COUNT_POSITIONS = {"v2": V2_COUNT, "v3-attributes-only": TAIL_COUNT}


def reading_of(name: str, log: EncodedLog, data: Bytes) -> BatchReading:
    return BatchReading(
        data, log.positions, FORMATS[name].magic, "skip", Allowance.of(len(data), None), check_crcs=False
    )


def set_count(name: str, data: Bytes, count: int) -> None:
    at = COUNT_POSITIONS[name]
    data[at : at + 4] = np.frombuffer(count.to_bytes(4, "big"), np.uint8)


def bounds_of(reading: BatchReading, way: str) -> list[int]:
    if way == "index":
        reading.read_columns()
    else:
        reading.read_times()
    return [int(bound) for bound in reading.bounds]


@pytest.mark.parametrize("way", ["index", "times"])
@pytest.mark.parametrize("name", COUNT_POSITIONS)
def test_a_count_that_changes_after_the_survey_does_not_matter(name: str, way: str) -> None:
    log = FORMATS[name].encode(RECORDS, 100)
    data = log.data.copy()
    fewer = reading_of(name, log, data)
    set_count(name, data, 1)
    assert bounds_of(fewer, way) == [0, 100]
    assert not fewer.damage

    more = reading_of(name, log, data)
    set_count(name, data, 100)
    assert bounds_of(more, way) == [0, 0]
    assert [(error.position, error.field) for error in more.damage.errors()] == [(0, "count")]


def test_batches_have_the_counts_that_were_read() -> None:
    log = FORMATS["v2"].encode(RECORDS, 100)
    data = log.data.copy()
    back = FORMATS["v2"].decode(data)
    set_count("v2", data, 2**31 - 1)
    assert back.batches["count"].tolist() == [100]


@pytest.mark.parametrize("own", [[], [("own", None)]], ids=["equal", "first has one more"])
def test_more_shared_headers_stay_inside_the_allocated_columns(
    own: list[tuple[str, None]], monkeypatch: pytest.MonkeyPatch
) -> None:
    fmt, values = FORMATS["v3-batch-headers"], [b"value"] * 10
    shared = [("abcd", None)], [("a", None), ("b", None)]
    one, two = (fmt.encode(Records.from_lists(values, headers=[[*each, *own], *([each] * 9)]), 10) for each in shared)
    assert len(one.data) == len(two.data)
    data = one.data.copy()
    reading = reading_of(fmt.name, one, data)
    reading.read_columns()
    header_bounds = reading.header_bounds
    assert header_bounds[-1] == 10 + len(own)
    data[:] = two.data

    room, guard = int(header_bounds[-1]), 64  # rows that may be written, and guard rows after them
    columns: list[Any] = [np.full(room + guard, -7, kind) for kind in (np.int32, np.int64, np.int32, np.int64)]
    given = HeaderSpans(*(column[:room] for column in columns))
    monkeypatch.setattr("kfbench.formats.base.batched.header_room", lambda m: given)
    reading.records()
    assert [column[room:].tolist() for column in columns] == [[-7] * guard] * 4
