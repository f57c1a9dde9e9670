"""The classes Records and Shapes check their input once, are immutable, and use Arrow's buffers without a copy."""

import dataclasses
from collections.abc import Callable
from typing import Any

import crc32c
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kfbench.batches import BatchFields, EncodedLog
from kfbench.errors import InvalidRecords
from kfbench.formats import FORMATS
from kfbench.records import Records, Shapes
from tests import strategies
from tests.common import records_of
from tests.reference.model import Message

VALUES = [b"one", None, b"", b"x" * 300]


def shapes(n: int = 3, **changes: Any) -> Shapes:
    columns: dict[str, Any] = {
        "timestamps_ms": np.arange(n),
        "offsets": np.arange(n),
        "key_lengths": np.full(n, -1),
        "value_lengths": np.full(n, 2),
    }
    return Shapes(**columns | changes)


def records(n: int = 3, **changes: Any) -> Records:
    parts: dict[str, Any] = {
        "shapes": shapes(n),
        "key_data": b"",
        "key_starts": np.zeros(n, np.int64),
        "value_data": bytes(range(2 * n)),
        "value_starts": np.arange(n) * 2,
    }
    return Records(**parts | changes)


@given(strategies.message_lists())
def test_lists_come_back(messages: tuple[Message, ...]) -> None:
    built = records_of(messages)
    assert len(built) == len(messages)
    for i, message in enumerate(messages):
        assert (built.key(i), built.value(i)) == (message.key, message.value)
        assert built.headers(i) == list(message.headers)
        assert (built.offsets[i], built.timestamps_ms[i]) == (message.offset, message.timestamp_ms)
    assert built.keys() == [message.key for message in messages]
    assert built.values() == [message.value for message in messages]
    assert built.header_lists() == [list(message.headers) for message in messages]


@given(strategies.message_lists())
def test_totals_count_bytes_and_no_nulls(messages: tuple[Message, ...]) -> None:
    shape = records_of(messages).shapes
    assert shape.key_bytes == sum(len(message.key or b"") for message in messages)
    assert shape.value_bytes == sum(len(message.value or b"") for message in messages)
    pairs = [pair for message in messages for pair in message.headers]
    assert shape.header_bytes == sum(len(name.encode()) + len(content or b"") for name, content in pairs)
    assert shape.payload_bytes == shape.key_bytes + shape.value_bytes + shape.header_bytes
    assert shape.has_headers == any(message.headers for message in messages)


@given(strategies.message_lists())
def test_arrow_round_trip(messages: tuple[Message, ...]) -> None:
    built = records_of(messages)
    table = built.to_arrow()
    table.validate(full=True)
    assert Records.from_arrow(table) == built
    assert table.column("value").to_pylist() == [message.value for message in messages]
    assert table.column("key").to_pylist() == [message.key for message in messages]


@pytest.mark.parametrize("difference", ["key", "value", "timestamp", "offset", "header", "null for empty"])
def test_unequal(difference: str) -> None:
    message = Message(offset=3, timestamp_ms=5, key=b"k", value=b"", headers=(("h", b"1"),))
    changes: dict[str, dict[str, Any]] = {
        "key": {"key": b"K"},
        "value": {"value": b"v"},
        "timestamp": {"timestamp_ms": 6},
        "offset": {"offset": 4},
        "header": {"headers": (("h", b"2"),)},
        "null for empty": {"value": None},
    }
    other = dataclasses.replace(message, **changes[difference])
    assert records_of((message,)) == records_of((message,))
    assert records_of((message,)) != records_of((other,))


def test_equality_ignores_the_order_of_buffers() -> None:
    scattered = records(value_data=b"....45..01..23", value_starts=[8, 12, 4])
    assert scattered == Records.from_lists([b"01", b"23", b"45"], timestamps_ms=[0, 1, 2])
    assert scattered.to_arrow().column("value").to_pylist() == [b"01", b"23", b"45"]


def with_headers(bounds: list[int], keys: list[int], values: list[int]) -> dict[str, Any]:
    return {"header_bounds": bounds, "header_key_lengths": keys, "header_value_lengths": values}


STRUCTS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


def from_arrow(**columns: pa.Array) -> Records:
    return Records.from_arrow(pa.table(columns))


def encode(**arguments: Any) -> EncodedLog:
    return FORMATS["v2"].encode(**{"records": Records.from_lists([b"v"] * 3)} | arguments)


REFUSALS: dict[Callable[..., object], list[tuple[dict[str, Any], str]]] = {
    shapes: [
        ({"offsets": np.arange(2)}, "offsets"),
        ({"key_lengths": np.full(3, -2)}, "key_lengths"),
        ({"value_lengths": np.array([0, -1, -7])}, "value_lengths"),
        ({"key_lengths": np.full(3, 2**31)}, "key_lengths"),
        ({"timestamps_ms": np.array([2**64 - 1, 0, 0], np.uint64)}, "timestamps_ms"),
        ({"timestamps_ms": np.array([0.5, 1.0, 2.0])}, "timestamps_ms"),
        ({"timestamps_ms": np.zeros((3, 1), np.int64)}, "timestamps_ms"),
        ({"offsets": np.array([True, False, True])}, "offsets"),
        ({"header_bounds": [0, 1, 1, 1]}, "header_bounds"),
        (with_headers([0, 2, 1, 2], [1, 1], [1, 1]), "header_bounds"),
        (with_headers([1, 1, 1, 1], [1], [1]), "header_bounds"),
        (with_headers([0, 1, 1], [1], [1]), "header_bounds"),
        (with_headers([0, 1, 1, 1], [-1], [1]), "header_key_lengths"),
        (with_headers([0, 1, 1, 1], [1], [-2]), "header_value_lengths"),
        (with_headers([0, 1, 1, 1], [1], []), "header_value_lengths"),
    ],
    records: [
        ({"value_starts": [0, 2, 5]}, "value_starts"),
        ({"value_starts": [0, 2, -1]}, "value_starts"),
        ({"value_starts": [0, 2, 2**63 - 1]}, "value_starts"),
        ({"value_starts": [0, 2]}, "value_starts"),
        ({"value_data": b""}, "value_starts"),
        ({"value_data": "text"}, "value_data"),
        ({"value_data": np.zeros((8, 8), np.uint8)[:, ::2]}, "value_data"),
        ({"key_starts": [0, 0]}, "key_starts"),
    ],
    Records.from_lists: [
        ({"values": [b"a", "b"]}, "values"),
        ({"values": [b"a", 3]}, "values"),
        ({"values": [b"a", b"b"], "keys": [b"k"]}, "key_lengths"),
        ({"values": [b"a", b"b"], "timestamps_ms": [1]}, "timestamps_ms|offsets"),
        ({"values": [b"a", b"b"], "timestamps_ms": ["now", "then"]}, "timestamps_ms|offsets"),
        ({"values": [b"a", b"b"], "offsets": [0, 1, 2]}, "offsets"),
        ({"values": [b"a", b"b"], "headers": [[]]}, "headers"),
        ({"values": [b"a"], "headers": [[(None, b"x")]]}, "headers"),
        ({"values": [b"a"], "headers": [[("k", "not bytes")]]}, "headers"),
        ({"values": [b"a"], "headers": [[("only a key",)]]}, "headers"),
        ({"values": [b"a"], "headers": [[("\ud800", b"a lone surrogate")]]}, "headers"),
    ],
    from_arrow: [
        ({"key": pa.array([b"a"])}, "value"),
        ({"value": pa.array([1])}, "value"),
        ({"value": pa.array([b"a"]), "key": pa.array([1.5])}, "key"),
        ({"value": pa.array([b"a"]), "timestamp_ms": pa.array([None], pa.int64())}, "timestamp_ms"),
        ({"value": pa.array([b"a"]), "timestamp_ms": pa.array([1.5])}, "timestamps_ms"),
        ({"value": pa.array([b"a"]), "headers": pa.array([b"a"])}, "headers"),
        ({"value": pa.array([b"a"]), "headers": pa.array([[b"a"]])}, "headers"),
        ({"value": pa.array([b"a"]), "headers": pa.array([[(None, b"x")]], STRUCTS)}, "header_key"),
    ],
    BatchFields: [
        ({"producer": 1}, "producer"),
        ({"crc": 1}, "crc"),
        ({"length": 1}, "length"),
        ({"producer_id": 2**63}, "producer_id"),
        ({"producer_epoch": 2**15}, "producer_epoch"),
        ({"base_sequence": -(2**31) - 1}, "base_sequence"),
        ({"partition_leader_epoch": [0, 2**31]}, "partition_leader_epoch"),
        ({"producer_id": 1.5}, "producer_id"),
        ({"producer_id": "one"}, "producer_id"),
        ({"producer_id": [1, 2], "base_offset": [0]}, "each column"),
        ({"producer_id": [[1]]}, "each column"),
        ({"timestamp_type": 2}, "timestamp_type"),
        ({"timestamp_type": -1}, "timestamp_type"),
        ({"producer_id": [[1], [1, 2]]}, "producer_id"),
        ({"is_control": "no"}, "is_control: True or False"),
        ({"is_transactional": [1.5]}, "is_transactional: True or False"),
        ({"tagged_fields": 7}, "tagged_fields"),
        ({"base_timestamp_ms": 5, "delete_horizon_ms": 10}, "base_timestamp_ms"),
    ],
    encode: [
        ({"records": [b"v"]}, "^records: "),
        ({"batch_fields": {"producer_id": 1}}, "^batch_fields: "),
        ({"out": bytearray(4096)}, "^out: "),
        ({"batch_size": "abc"}, "^batch_size: "),
        ({"batch_size": [0, 1.5, 3]}, "^batch_size: "),
        ({"batch_size": [0, 2**63]}, "^batch_size: "),
    ],
}


@pytest.mark.parametrize(
    ("make", "arguments", "words"), [(make, *case) for make, cases in REFUSALS.items() for case in cases]
)
def test_a_refusal_is_one_line_that_names_the_column(
    make: Callable[..., object], arguments: dict[str, Any], words: str
) -> None:
    with pytest.raises(InvalidRecords, match=words) as refusal:
        make(**arguments)
    assert "\n" not in str(refusal.value)


def test_the_start_of_a_null_is_ignored() -> None:
    built = records(key_starts=[2**62, -5, 7])
    assert [built.key(i) for i in range(3)] == [None] * 3
    table = built.to_arrow()
    table.validate(full=True)
    assert table.column("key").to_pylist() == [None] * 3


def test_frozen() -> None:
    built = Records.from_lists(VALUES, headers=[[("a", b"b")]] * 4)
    with pytest.raises(dataclasses.FrozenInstanceError):
        built.key_data = built.value_data  # type: ignore[misc]
    with pytest.raises(dataclasses.FrozenInstanceError):
        built.shapes.offsets = built.shapes.timestamps_ms  # type: ignore[misc]
    for holder in (built, built.shapes):
        for field in dataclasses.fields(holder):
            column = getattr(holder, field.name)
            if isinstance(column, np.ndarray):
                assert not column.flags.writeable, field.name
                with pytest.raises(ValueError, match="read-only"):
                    column[...] = 0


def test_a_callers_index_arrays_are_not_shared() -> None:
    lengths, starts = np.full(3, 2, np.int32), np.arange(3) * 2
    built = records(shapes=shapes(value_lengths=lengths), value_starts=starts)
    lengths[:] = 10**9
    starts[:] = 10**9
    assert [built.value(i) for i in range(3)] == [b"\0\1", b"\2\3", b"\4\5"]


def test_callers_bytes_are_shared() -> None:
    data = np.arange(6, dtype=np.uint8)
    assert np.shares_memory(records(value_data=data).value_data, data)
    assert records(value_data=memoryview(bytearray(range(6)))).value(2) == b"\4\5"


@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary(), pa.string(), pa.large_string()])
def test_arrow_buffers_are_taken_as_they_are(kind: pa.DataType) -> None:
    array = pa.array([b"one", None, b"", b"four"]).cast(kind)
    built = Records.from_arrow(pa.table({"value": array}))
    assert [built.value(i) for i in range(4)] == [b"one", None, b"", b"four"]
    data = array.buffers()[2]
    assert built.value_data.ctypes.data == data.address
    back = built.to_arrow().column("value").chunk(0)
    assert back.buffers()[2].address == data.address


@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary()])
def test_a_sliced_arrow_array(kind: pa.DataType) -> None:
    array = pa.array([b"skipped", b"one", None, b"", b"four", b"skipped"], kind).slice(1, 4)
    keys = pa.array([b"x", None, b"k1", b"k2", None, b"x"], kind).slice(1, 4)
    built = Records.from_arrow(pa.record_batch({"value": array, "key": keys}))
    assert [built.value(i) for i in range(4)] == [b"one", None, b"", b"four"]
    assert [built.key(i) for i in range(4)] == [None, b"k1", b"k2", None]
    assert built.value_data.ctypes.data == array.buffers()[2].address
    assert built.to_arrow().slice(1, 2).column("value").to_pylist() == [None, b""]
    assert Records.from_arrow(built.to_arrow().slice(1, 3)).value(2) == b"four"


def test_a_chunked_arrow_column() -> None:
    column = pa.chunked_array([[b"a", None], [], [b"bc"]], pa.binary())
    headers = pa.chunked_array(
        [[[("h", b"1")], None], [], [[("h", None), ("h", b"")]]],
        pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())])),
    )
    built = Records.from_arrow(pa.table({"value": column, "headers": headers}))
    assert [built.value(i) for i in range(3)] == [b"a", None, b"bc"]
    assert [built.headers(i) for i in range(3)] == [[("h", b"1")], [], [("h", None), ("h", b"")]]


def test_sliced_headers() -> None:
    kind = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
    headers = pa.array([[("x", b"x"), ("y", b"y")], [("a", b"1")], [], [("b", None)]], kind)
    table = pa.table({"value": pa.array([b"0", b"1", b"2", b"3"]), "headers": headers})
    built = Records.from_arrow(table.slice(1))
    assert [built.headers(i) for i in range(3)] == [[("a", b"1")], [], [("b", None)]]


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_arrow_timestamps_become_milliseconds(unit: str) -> None:
    stamps = pa.array([1_700_000_000_000, 0], pa.timestamp("ms")).cast(pa.timestamp(unit, "UTC"))
    built = Records.from_arrow(pa.table({"value": pa.array([b"a", b"b"]), "timestamp_ms": stamps}))
    assert built.timestamps_ms.tolist() == [1_700_000_000_000, 0]


def test_indices_count_from_the_end_and_stop_at_it() -> None:
    built = Records.from_lists([b"a", b"b"], headers=[[], [("h", b"")]])
    assert built.value(-1) == b"b"
    assert built.headers(-1) == [("h", b"")]
    for read in (built.key, built.value, built.headers):
        with pytest.raises(IndexError):
            read(2)


def test_a_read_only_view_of_a_writeable_array_is_copied() -> None:
    column = np.arange(3, dtype=np.int64)
    view = column.view()
    view.flags.writeable = False
    columns: dict[str, Any] = {"key_data": b"", "key_starts": [0] * 3, "value_data": b"abc", "value_starts": view}
    lengths: dict[str, Any] = {"key_lengths": [-1] * 3, "value_lengths": [1] * 3}
    records = Records(shapes=Shapes(timestamps_ms=np.zeros(3, int), offsets=np.arange(3), **lengths), **columns)
    column[:] = 1 << 46
    assert [records.value(i) for i in range(3)] == [b"a", b"b", b"c"]


def test_header_names_that_are_not_utf_8_stay_bytes_in_arrow() -> None:
    data = bytearray(bytes(FORMATS["v2"].encode(Records.from_lists([None], headers=[[("h", None)]]))))
    data[data.rindex(b"h")] = 0xFF
    data[17:21] = crc32c.crc32c(bytes(data[21:])).to_bytes(4, "big")
    records = FORMATS["v2"].decode(bytes(data)).records
    table = records.to_arrow()
    assert table["headers"].to_pylist() == [[{"key": b"\xff", "value": None}]]
    assert Records.from_arrow(table) == records


@given(strategies.message_lists().map(records_of), st.data())
def test_records_taken_in_any_order(records: Records, data: st.DataObject) -> None:
    indices = data.draw(st.lists(st.integers(0, len(records) - 1))) if len(records) else []
    taken = records.take(indices)
    assert len(taken) == len(indices)
    for i, source in enumerate(indices):
        assert (taken.key(i), taken.value(i), taken.headers(i)) == (
            records.key(source), records.value(source), records.headers(source)
        )  # fmt: skip
        assert (taken.timestamps_ms[i], taken.offsets[i]) == (records.timestamps_ms[source], records.offsets[source])
    assert taken.value_data is records.value_data
    first, end = sorted(data.draw(st.tuples(st.integers(0, len(records)), st.integers(0, len(records)))))
    assert records.part(first, end) == records.take(range(first, end))
