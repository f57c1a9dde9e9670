"""Columns of a table become parts of records: types, times, headers. Values that do not fit are reported."""

import json
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kfbench.errors import KfbenchError
from kfbench.sources.columns import Columns, RowBatch, rows_of
from kfbench.sources.time_columns import times_of
from tests.sources.rows import chunks, damage_of, lines, messages, parquet, quoted, values, written
from tests.strategies import NOW_MS

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def test_what_json_has_no_type_for() -> None:
    noon = datetime(2026, 1, 2, 12, 0, 0, 6000, tzinfo=UTC)
    row = {
        "when": pa.array([noon], pa.timestamp("ms", "Europe/Berlin")),
        "local": pa.array([noon.replace(tzinfo=None)], pa.timestamp("ms")),
        "day": pa.array([date(2026, 1, 2)]),
        "price": pa.array([Decimal("1.50")]),
        "map": pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int8())),
        "kind": pa.array(["x"]).dictionary_encode(),
        "nan": pa.array([float("nan")]),
        "pair": pa.array([[1, 2]], pa.list_(pa.int8(), 2)),
        "nothing": pa.array([None]),
        "took": pa.array([timedelta(seconds=1)], pa.duration("ms")),
        "half": pa.array([0.5], pa.float16()),
        "none": pa.array([{}], pa.struct([])),
        "view": pa.array(["v"], pa.string_view()),
    }
    rows = RowBatch([*row], [*row.values()], np.ones(1, np.int64), 0)
    assert json.loads(rows.rows_as_json().item(0) or b"", parse_float=str) == {
        "when": "2026-01-02T12:00:00.006Z", "local": "2026-01-02T12:00:00.006", "day": "2026-01-02", "price": "1.50",
        "map": {"a": 1}, "kind": "x", "nan": None, "pair": [1, 2], "nothing": None, "took": 1000, "half": "0.5",
        "none": {}, "view": "v",
    }  # fmt: skip


def test_binary_and_numbers_as_keys_and_values(tmp_path: Path) -> None:
    path = parquet(tmp_path / "t.parquet", {"k": [1, None, -3], "v": [b"\xff\0", None, b""]})
    found = messages(chunks(path, Columns(key="k", value="v")))
    assert [(each.key, each.value) for each in found] == [(b"1", b"\xff\0"), (None, None), (b"-3", b"")]


def test_a_column_of_one_chunk_is_not_copied() -> None:
    batch = pa.RecordBatch.from_pydict({"v": [b"abc", None, b"d"] * 100})
    rows = rows_of(RowBatch(["v"], batch.columns, np.arange(300), 0), Columns(value="v"))
    assert rows.records.value_data.ctypes.data == batch.column(0).buffers()[2].address


@pytest.mark.parametrize(
    "cells",
    [
        [[{"key": "a", "value": b"1"}, {"key": "a", "value": None}], None, []],
        [[("a", b"1"), ("a", None)], None, []],
        ['[{"key": "a", "value": "1"}, {"key": "a"}]', None, ""],
        ['[{"key": "a", "value": 1}, {"key": "a", "value": null}]', "null", "{}"],
    ],
    ids=["structs", "map", "text", "numbers"],
)
def test_headers(tmp_path: Path, cells: list[Any]) -> None:
    kind = pa.map_(pa.string(), pa.binary()) if isinstance((cells[0] or [""])[0], tuple) else None
    path = parquet(tmp_path / "t.parquet", {"v": ["x"] * 3, "h": pa.array(cells, kind)})
    found = messages(chunks(path, Columns(value="v", headers="h")))
    assert [each.headers for each in found] == [(("a", b"1"), ("a", None)), (), ()]


ISO = [
    ("2026-01-02", "2026-01-02T00:00:00+00:00"),
    ("2026-01-02T03:04", "2026-01-02T03:04:00+00:00"),
    ("2026-01-02 03:04:05", "2026-01-02T03:04:05+00:00"),
    ("2026-01-02T03:04:05.6", "2026-01-02T03:04:05.600+00:00"),
    ("2026-01-02T03:04:05,006789123Z", "2026-01-02T03:04:05.006+00:00"),
    ("2026-01-02T03:04:05+02:00", "2026-01-02T01:04:05+00:00"),
    ("2026-01-02T03:04:05.5-0130", "2026-01-02T04:34:05.500+00:00"),
    ("2026-01-02T03:04:05+05", "2026-01-01T22:04:05+00:00"),
    ("2024-02-29T23:59:59Z", "2024-02-29T23:59:59+00:00"),
    ("2026-01-02 03:04:05 UTC", "2026-01-02T03:04:05+00:00"),
    ("2026-01-02 03:04:05.123456789123 +0000 UTC", "2026-01-02T03:04:05.123+00:00"),
    (" 2026-01-02t03Z ", "2026-01-02T03:00:00+00:00"),
    ("2026-01-02T03:04:05+01:00[Europe/Paris]", "2026-01-02T02:04:05+00:00"),
    ("20260102T030405.6Z", "2026-01-02T03:04:05.600+00:00"),
    ("20260102T0304+0130", "2026-01-02T01:34:00+00:00"),
    ("1767323045.678", "2026-01-02T03:04:05.678+00:00"),
    ("1.767323045678E9", "2026-01-02T03:04:05.678+00:00"),
]


NO_TIMES = [
    "", "soon", "2026-13-01", "2026-02-30T00:00:00Z", "2026-01-02T25:00:00", "1969-12-31T23:59:59Z", "-5", "1.5",
    "2026-01-02T03:04:05+25:00", "12345678901234567890", "2026-1-2", "\u0663",
    "2026-01-02T03:04.5", "2026-01-02 UTC", "20260102 1", "1e400", "nan", "0x10", "1_000",
]  # fmt: skip


def test_text_as_times() -> None:
    texts = [text for text, _ in ISO] + ["0", str(NOW_MS)] + NO_TIMES
    times_ms, bad, is_ms = times_of(pa.array(texts), "t")
    assert is_ms[: len(ISO)].all() and not is_ms[texts.index("0")]
    for text, iso in ISO:
        wanted = (datetime.fromisoformat(iso) - EPOCH) // timedelta(milliseconds=1)
        assert times_ms[texts.index(text)] == wanted and not bad[texts.index(text)], text
    assert times_ms[texts.index("0")] == 0 and times_ms[texts.index(str(NOW_MS))] == NOW_MS
    assert [text for text, is_bad in zip(texts, bad, strict=True) if is_bad] == NO_TIMES


MOMENTS = st.datetimes(datetime.fromisoformat("1970-01-02"), datetime.fromisoformat("9000-01-01"))


ZONES = st.none() | st.integers(-23 * 60, 23 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))


@given(st.lists(st.tuples(MOMENTS, ZONES), min_size=1, max_size=5))
def test_any_moment_as_text(given: list[tuple[datetime, timezone | None]]) -> None:
    texts = [moment.replace(tzinfo=zone).isoformat() for moment, zone in given]
    times_ms, bad, is_ms = times_of(pa.array(texts), "t")
    assert is_ms.all()
    known = [moment.replace(tzinfo=zone or UTC) for moment, zone in given]
    assert times_ms.tolist() == [(moment - EPOCH) // timedelta(milliseconds=1) for moment in known] and not bad.any()


@pytest.mark.parametrize(
    "cells",
    [
        pa.array([NOW_MS, 5], pa.int64()),
        pa.array([NOW_MS, 5], pa.uint64()),
        pa.array([NOW_MS, 5], pa.float64()),
        pa.array([NOW_MS * 1000 + 999, 5000], pa.timestamp("us")),
        pa.array([NOW_MS * 10**6, 5 * 10**6], pa.timestamp("ns", "Asia/Tokyo")),
        pa.array([str(NOW_MS), "5"]).dictionary_encode(),
    ],
    ids=lambda cells: str(cells.type),
)
def test_types_of_times(tmp_path: Path, cells: pa.Array) -> None:
    path = parquet(tmp_path / "t.parquet", {"t": cells, "v": ["a", "b"]})
    found = messages(chunks(path, Columns(value="v", timestamp="t")))
    assert [each.timestamp_ms for each in found] == [NOW_MS, 5]


def test_other_rows_that_are_no_records(tmp_path: Path) -> None:
    rows = [
        {"p": 0, "h": {}}, {"p": -1, "h": {}}, {"p": "x", "h": {}}, {"p": 2**31, "h": {}}, {"p": 1, "h": [1]},
        {"p": 2, "h": "no"}, {"p": None, "h": {}}, {"p": 3, "h": None},
    ]  # fmt: skip
    found = chunks(lines(tmp_path / "t.jsonl", rows), Columns(partition="p", headers="h"))
    assert [number for each in found if each.partitions is not None for number in each.partitions] == [0, 3]
    assert [(each.position, each.field) for each in damage_of(found)] == [(2, "column `p`"), (5, "column `h`")]
    nameless = pa.array([[{"key": "a", "value": "1"}], [{"key": None, "value": "1"}]])
    found = chunks(parquet(tmp_path / "t.parquet", {"h": nameless, "v": ["a", "b"]}), Columns(value="v", headers="h"))
    assert [each.value for each in messages(found)] == [b"a"]
    assert [each.position for each in damage_of(found)] == [2]


STORAGE = pa.array([b"\xff" * 16, None, bytes(range(16))], pa.binary(16))
TEXTS = pa.array(['{"a":1}', None, "x"])
BYTES = [b"\xff" * 16, None, bytes(range(16))]
PAIRS = pa.array([[1, 2], None, [3, 4]], pa.list_(pa.int8(), 2))
LISTS = [b"[1,2]", None, b"[3,4]"]


def extended(kind: pa.DataType, storage: pa.Array) -> pa.Array:
    return pa.ExtensionArray.from_storage(kind, storage)


class Unknown(pa.ExtensionType):  # type: ignore[misc]
    """A type that no library registers."""

    def __init__(self, storage: pa.DataType) -> None:
        super().__init__(storage, "tests.unknown")

    def __arrow_ext_serialize__(self) -> bytes:
        return b""


TYPES: dict[str, tuple[Any, list[bytes | None]]] = {
    "uuid": (extended(pa.uuid(), STORAGE), BYTES),
    "json": (extended(pa.json_(), TEXTS), [b'{"a":1}', None, b"x"]),
    "bool8": (extended(pa.bool8(), pa.array([1, None, 0], pa.int8())), [b"1", None, b"0"]),
    "opaque": (extended(pa.opaque(pa.binary(16), "t", "v"), STORAGE), BYTES),
    "tensor": (extended(pa.fixed_shape_tensor(pa.int8(), [2]), PAIRS), LISTS),
    "unregistered": (extended(Unknown(pa.binary(16)), STORAGE), BYTES),
    "nested": (extended(Unknown(pa.uuid()), extended(pa.uuid(), STORAGE)), BYTES),
    "dictionary": (TEXTS.dictionary_encode(), [b'{"a":1}', None, b"x"]),
    "dictionary of numbers": (pa.array([7, None, 8]).dictionary_encode(), [b"7", None, b"8"]),
    "dictionary of extension": (
        pa.DictionaryArray.from_arrays(pa.array([0, None, 1]), extended(pa.uuid(), STORAGE.drop_null())), BYTES,
    ),
    "run ends": (pc.run_end_encode(TEXTS), [b'{"a":1}', None, b"x"]),
    "text view": (TEXTS.cast(pa.string_view()), [b'{"a":1}', None, b"x"]),
    "binary view": (pa.array(BYTES, pa.binary_view()), BYTES),
    "large text": (TEXTS.cast(pa.large_string()), [b'{"a":1}', None, b"x"]),
    "list view": (pa.array([[1, 2], None, [3, 4]], pa.list_view(pa.int8())), LISTS),
    "large list view": (pa.array([[1, 2], None, [3, 4]], pa.large_list_view(pa.int8())), LISTS),
    "large list": (pa.array([[1, 2], None, [3, 4]], pa.large_list(pa.int8())), LISTS),
    "decimal32": (pa.array([Decimal("1.50"), None, Decimal("-2.00")], pa.decimal32(5, 2)), [b"1.50", None, b"-2.00"]),
    "decimal256": (pa.array([Decimal("1.50"), None, Decimal(0)], pa.decimal256(70, 2)), [b"1.50", None, b"0.00"]),
    "half": (pa.array([0.1, None, 7], pa.float16()), [b"0.1", None, b"7.0"]),
    "time": (pa.array([3_600_000, None, 0], pa.time32("ms")), [b"01:00:00.000", None, b"00:00:00.000"]),
    "uint64": (pa.array([2**64 - 1, None, 0], pa.uint64()), [b"18446744073709551615", None, b"0"]),
    "null": (pa.nulls(3), [None] * 3),
}  # fmt: skip


@pytest.mark.parametrize(("cells", "texts"), TYPES.values(), ids=TYPES)
def test_the_storage_of_every_type_is_used(tmp_path: Path, cells: pa.Array, texts: list[bytes | None]) -> None:
    batch = RowBatch(["c", "v"], [cells, pa.array(["x"] * 3)], np.arange(3), 0)
    assert rows_of(batch, Columns(key="c", value="v")).records.keys() == texts
    sliced = batch.part(1, 3, 0)
    assert rows_of(sliced, Columns(key="c", value="v")).records.keys() == texts[1:]
    path = tmp_path / "t.parquet"
    try:
        pq.read_table(parquet(path, {"c": cells}))
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid):  # a type that Parquet does not have
        return
    assert values(path, Columns(value="c")) == texts


@pytest.mark.parametrize("name", ["json", "bool8", "tensor", "dictionary", "run ends", "half", "list view"])
def test_extension_types_inside_others_become_json(name: str) -> None:
    cells, texts = TYPES[name]
    struct = pa.StructArray.from_arrays([cells], ["c"])
    batch = RowBatch(["s", "v"], [struct, cells], np.arange(3), 0)
    rows: list[Any] = [json.loads(value or b"") for value in rows_of(batch, Columns()).records.values()]
    assert [row["s"]["c"] for row in rows] == [row["v"] for row in rows] and rows[1] == {"s": {"c": None}, "v": None}
    if name in ("json", "dictionary", "run ends"):
        assert rows[0]["v"] == (texts[0] or b"").decode()


NUMBERS = (
    st.floats() | st.floats(0, 1e12).map(lambda number: round(number, 2)) | st.integers(-(10**12), 10**12).map(float)
)


@given(st.lists(st.none() | NUMBERS, min_size=1, max_size=20))
def test_floats_are_the_text_that_python_and_json_write(numbers: list[float | None]) -> None:
    batch = RowBatch(["f"], [pa.array(numbers, pa.float64())], np.arange(len(numbers)), 0)
    texts = [None if number is None else repr(number).encode() for number in numbers]
    assert rows_of(batch, Columns(value="f")).records.values() == texts
    finite = [number if number is not None and isfinite(number) else None for number in numbers]
    assert rows_of(batch, Columns()).records.values() == [
        json.dumps({"f": number}, separators=(",", ":")).encode() for number in finite
    ]


@pytest.mark.parametrize(
    ("cells", "kind", "texts"),
    [
        ([7, -1, None], pa.int64(), [b"7", b"-1", None]),
        ([7.0, 1.5, None], pa.float64(), [b"7.0", b"1.5", None]),
        ([12345678901.0, 1e-07, 1e16], pa.float64(), [b"12345678901.0", b"1e-07", b"1e+16"]),
        ([0.1, 7.0, None], pa.float32(), [b"0.1", b"7.0", None]),
        ([True, False, None], pa.bool_(), [b"true", b"false", None]),
        (["007", "é\n", None], pa.string(), [b"007", "é\n".encode(), None]),
        ([b"ab", b"", None], pa.binary(), [b"ab", b"", None]),
    ],
    ids=lambda cells: str(cells) if isinstance(cells, pa.DataType) else "",
)
def test_a_key_or_value_is_the_same_in_every_kind_of_table(
    tmp_path: Path, cells: list[Any], kind: pa.DataType, texts: list[bytes | None]
) -> None:
    rows = [{"k": cell.decode() if isinstance(cell, bytes) else cell, "n": 1} for cell in cells]
    text = [json.dumps(row["k"]) if isinstance(row["k"], bool) else quoted_float(row["k"]) for row in rows]
    found = {
        "parquet": parquet(tmp_path / "t.parquet", {"k": pa.array(cells, kind), "n": [1] * 3}),
        "json": lines(tmp_path / "t.jsonl", rows),
        "csv": written(tmp_path / "t.csv", "k,n\n" + "".join(f"{cell},1\n" for cell in text)),
    }
    for path in found.values():
        assert [(each.key, each.value) for each in messages(chunks(path, Columns(key="k", value="k")))] == [
            (each, each) for each in texts
        ]


def quoted_float(cell: object) -> str:
    return repr(cell) if isinstance(cell, float) else quoted(cell)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (Columns(), "the whole row as a value: bytes: JSON cannot hold binary: name one column as the value"),
        (Columns(value="text", timestamp="flag"), "column `flag`: numbers, text or times are wanted, not bool"),
        (Columns(value="text", headers="number"), "column `number`: list<struct<key, value>>, a map or text is wanted"),
        (Columns(value="text", headers="list"), "column `list`: list<struct<key, value>>, a map or text is wanted"),
    ],
)
def test_types_that_do_not_fit(tmp_path: Path, columns: Columns, message: str) -> None:
    rows = {"bytes": [b"x"], "text": ["x"], "flag": [True], "number": [1], "list": [["x"]]}
    path = parquet(tmp_path / "t.parquet", rows)
    with pytest.raises(KfbenchError) as raised:
        chunks(path, columns)
    assert str(raised.value).startswith(f"{path}: {message}")
