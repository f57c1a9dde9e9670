"""How records are divided into batches, header fields of batches, and the properties of a decoded log."""

import dataclasses
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kfbench import FORMATS, BatchFields, Records
from kfbench.batches import FIELD_DEFAULTS, plan
from kfbench.errors import InvalidRecords
from tests import strategies


@given(st.integers(0, 1000), st.integers(1, 1200))
def test_a_plan_by_number(records: int, batch_size: int) -> None:
    bounds = plan(records, batch_size).tolist()
    assert bounds == [*range(0, records, batch_size), records]


@pytest.mark.parametrize("batch_size", [10**12, 2**62, sys.maxsize, 2**70, np.int32(7), np.int64(2**40)])
def test_a_plan_takes_any_integer(batch_size: int) -> None:
    assert plan(10, batch_size).tolist() == [*range(0, 10, int(batch_size)), 10]
    assert plan(0, batch_size).tolist() == [0]


@given(st.integers(0, 50).flatmap(lambda n: st.tuples(st.just(n), strategies.plans(n))))
def test_a_plan_by_bounds_keeps_them(drawn: tuple[int, list[int]]) -> None:
    records, bounds = drawn
    made = plan(records, bounds)
    assert made.tolist() == bounds
    assert made.dtype == np.int64
    assert not made.flags.writeable


def test_a_callers_bounds_are_not_shared() -> None:
    bounds = np.array([0, 5, 10])
    made = plan(10, bounds)
    bounds[1] = 99
    assert made.tolist() == [0, 5, 10]


def test_a_callers_fields_are_not_shared() -> None:
    column = np.array([1, 2])
    fields = BatchFields(producer_id=column)
    column[0] = 99
    assert fields.rows["producer_id"].tolist() == [1, 2]
    assert not fields.rows.flags.writeable


def test_setting_the_append_time_sets_the_type() -> None:
    assert BatchFields(append_time_ms=[5, -1]).rows["timestamp_type"].tolist() == [1, 0]
    assert BatchFields(append_time_ms=5, timestamp_type=0).rows["timestamp_type"].tolist() == [0]


def test_which_fields_are_set() -> None:
    assert BatchFields().set_fields == frozenset()
    assert BatchFields(**FIELD_DEFAULTS).set_fields == frozenset()
    assert BatchFields(producer_id=[-1, 3], is_control=False).set_fields == {"producer_id"}


def test_a_scalar_stands_for_every_batch() -> None:
    fmt, records = FORMATS["v2"], Records.from_lists([b"v"] * 3)
    one, each = (fmt.encode(records, 1, batch_fields=BatchFields(producer_id=given)) for given in (7, [7, 7, 7]))
    assert one.data.tobytes() == each.data.tobytes()


COLUMNS = [
    "position", "size_bytes", "magic", "crc", "attributes", "codec", "timestamp_type", "base_offset", "last_offset",
    "count", "base_timestamp_ms", "max_timestamp_ms", "append_time_ms", "partition_leader_epoch", "producer_id",
    "producer_epoch", "base_sequence", "last_sequence", "is_transactional", "is_control", "delete_horizon_ms",
    "shared_headers", "records_size_bytes", "canonical", "mixed_magic", "dictionary",
]  # fmt: skip


def test_the_columns_that_notebooks_rely_on() -> None:
    for name, fmt in FORMATS.items():
        for log in (fmt.decode(b""), fmt.decode(fmt.encode(Records.from_lists([b"v"])))):
            assert list(log.batches.columns) == COLUMNS, name


def test_a_decoded_log_is_frozen() -> None:
    log = FORMATS["v2"].decode(FORMATS["v2"].encode(Records.from_lists([b"a", b"b", b"c"]), 2))
    with pytest.raises(dataclasses.FrozenInstanceError):
        log.trailing_bytes = 1  # type: ignore[misc]
    for column in (log.records.timestamps_ms, log.records.value_starts, log.create_timestamps_ms, log.bounds):
        with pytest.raises(ValueError, match="read-only"):
            column[0] = 1


def test_losses_want_a_field_for_each_batch() -> None:
    for name in ("v1", "v2"):
        fields = BatchFields(append_time_ms=[1, 2, 3], timestamp_type=0)
        with pytest.raises(InvalidRecords, match="3 items for 2 batches"):
            FORMATS[name].losses(Records.from_lists([b"v"] * 4), 2, fields)


def test_an_error_names_the_batch_among_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compressed batches are written in chunks. An error has the batch's number in the whole log."""
    monkeypatch.setattr("kfbench.batches.CHUNK_BYTES", 1)
    records = Records.from_lists([b"v"] * 6, offsets=[0, 1, 2, 3, 4, 2**33])
    for codec in ("none", "gzip"):
        with pytest.raises(InvalidRecords, match="batch 2 spans"):
            FORMATS["v2"].encode(records, 2, codec)


def test_fields_of_some_batches_and_with_other_columns() -> None:
    fields = BatchFields(producer_id=[1, 2, 3], tagged_fields=[{5: b"a"}, {}, {6: b"bc"}])
    assert fields.take([2, 0]).rows["producer_id"].tolist() == [3, 1]
    changed = fields.replace(base_offset=[10, 20, 30])
    assert changed.rows["base_offset"].tolist() == [10, 20, 30]
    assert changed.rows["producer_id"].tolist() == [1, 2, 3]
    assert changed.rows["tags_count"].tolist() == [1, 0, 1]
    assert changed.set_fields == {"producer_id", "base_offset", "tagged_fields"}
    assert len(BatchFields().replace(base_offset=[1, 2]).rows) == 2
    with pytest.raises(InvalidRecords, match="one item, or one per batch"):
        fields.replace(base_offset=[1, 2])
