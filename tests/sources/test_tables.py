"""Tables as records: what was written comes out, whatever the file's kind; what is no record is named with its row."""

import base64
import gzip
import json
import pickle
import re
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kfbench.errors import KfbenchError
from kfbench.log.inspect import Damage
from kfbench.sources import tables
from kfbench.sources._columns import Columns, parts_of, rows_as_json, times_of
from kfbench.sources.part import Chunk
from kfbench.sources.tables import Table, find, kind_of
from tests.common import messages_of, records_of
from tests.reference.model import Message
from tests.strategies import NOW_MS, message_lists

ALL = Columns(key="key", value="value", timestamp="timestamp_ms", headers="headers", partition="partition")
NAMES = ("key", "value", "timestamp_ms", "headers", "partition")
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def only(path: Path, columns: Columns = ALL) -> Table:
    [part] = find(path, columns).parts
    assert isinstance(part, Table)
    return part


def chunks(path: Path, columns: Columns = ALL) -> list[Chunk]:
    part = only(path, columns)
    found = list(part.chunks())
    assert sum(each.size_bytes for each in found) + sum(each.size_bytes for each in damage_of(found)) <= part.size_bytes
    positions = [each.position for each in found]
    assert positions == sorted(positions)
    assert all(each.bounds is None for each in found)
    assert [offset for each in found for offset in each.records.offsets] == list(range(count(found)))
    return found


def until_error(part: Table) -> tuple[list[Chunk], Exception]:
    """What came before the error counts."""
    found = []
    try:
        for chunk in part.chunks():
            found.append(chunk)  # noqa: PERF402
    except (KfbenchError, OSError) as error:
        return found, error
    raise AssertionError("no error")


def count(found: Iterable[Chunk]) -> int:
    return sum(len(each.records) for each in found)


def messages(found: Iterable[Chunk]) -> list[Message]:
    return [message for each in found for message in messages_of(each.records)]


def values(path: Path, columns: Columns) -> list[bytes | None]:
    return [message.value for message in messages(chunks(path, columns))]


def damage_of(found: Iterable[Chunk]) -> list[Damage]:
    return [each for chunk in found for each in chunk.damage]


def lines(path: Path, rows: Iterable[Any]) -> Path:
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
    return path


def parquet(path: Path, columns: dict[str, Any], **options: Any) -> Path:
    pq.write_table(pa.table(columns), path, **options)
    return path


def written(path: Path, text: str | bytes) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


# What was written comes out


def renumbered(given: Sequence[Message]) -> list[Message]:
    """Tables have no offsets and no times below 0."""
    return [
        Message(offset=i, timestamp_ms=max(m.timestamp_ms, 0) // 2, key=m.key, value=m.value, headers=m.headers)
        for i, m in enumerate(given)
    ]


@settings(max_examples=25)
@given(message_lists(min_size=1).map(renumbered), st.integers(1, 4))
def test_records_that_were_written_as_parquet_come_out(
    tmp_path_factory: pytest.TempPathFactory, given: list[Message], group: int
) -> None:
    path = tmp_path_factory.mktemp("t") / "records.parquet"
    pq.write_table(records_of(given).to_arrow(), path, row_group_size=group)
    columns = Columns(key="key", value="value", timestamp="timestamp_ms", headers="headers")
    found = chunks(path, columns)
    assert messages(found) == given and not damage_of(found)
    assert sum(each.size_bytes for each in found) == sum(
        pq.read_metadata(path).row_group(i).column(j).total_compressed_size
        for i in range(pq.read_metadata(path).num_row_groups)
        for j in range(pq.read_metadata(path).num_columns)
    )


TEXTS = st.none() | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8)
ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "key": TEXTS,
            "value": TEXTS,
            "timestamp_ms": st.integers(0, 2**59),
            "headers": st.none() | st.dictionaries(st.text(max_size=3), TEXTS, max_size=3),
            "partition": st.integers(0, 3),
        }
    ),
    min_size=1,
    max_size=8,
)


def expected(rows: Sequence[dict[str, Any]]) -> list[Message]:
    def of(text: str | None) -> bytes | None:
        return None if text is None else text.encode()

    return [
        Message(
            offset=i,
            timestamp_ms=row["timestamp_ms"],
            key=of(row["key"]),
            value=of(row["value"]),
            headers=tuple((name, of(text)) for name, text in (row["headers"] or {}).items()),
        )
        for i, row in enumerate(rows)
    ]


def quoted(cell: object) -> str:
    """An empty text is not null."""
    return "" if cell is None else str(cell) if isinstance(cell, int) else '"' + str(cell).replace('"', '""') + '"'


@given(ROWS, st.sampled_from(["rows.jsonl", "rows.csv", "rows.tsv", "rows.jsonl.gz", "rows.parquet"]), st.booleans())
def test_the_same_rows_are_the_same_records_in_every_kind_of_table(
    tmp_path_factory: pytest.TempPathFactory, rows: list[dict[str, Any]], name: str, ascii_only: bool
) -> None:
    path = tmp_path_factory.mktemp("t") / name
    if path.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist([row | {"headers": json.dumps(row["headers"])} for row in rows]), path)
    elif "jsonl" in name:
        text = "".join(json.dumps(row, ensure_ascii=ascii_only) + "\n" for row in rows).encode()
        path.write_bytes(gzip.compress(text, 1) if name.endswith(".gz") else text)
    else:
        separator = "\t" if path.suffix == ".tsv" else ","
        cells = [row | {"headers": json.dumps(row["headers"])} for row in rows]
        table = [[*NAMES], *([quoted(row[name]) for name in NAMES] for row in cells)]
        path.write_bytes("".join(separator.join(row) + "\r\n" for row in table).encode())
    found = chunks(path)
    assert messages(found) == expected(rows) and not damage_of(found)
    partitions = [number for each in found if each.partitions is not None for number in each.partitions]
    assert partitions == [row["partition"] for row in rows]


def nested_of(text: str | None, deep: list[str | None]) -> dict[str, Any]:
    return {'a"b': text, "deep": deep}


@given(
    st.lists(
        st.fixed_dictionaries(
            {
                "text": TEXTS,
                "number": st.none() | st.integers(-(2**63), 2**63 - 1),
                "truth": st.none() | st.booleans(),
                "list": st.none() | st.lists(st.none() | st.integers(-9, 9) | st.just(None), max_size=3),
                "nested": st.none() | st.builds(nested_of, TEXTS, st.lists(TEXTS, max_size=2)),
                "real": st.none() | st.floats(allow_nan=False, allow_infinity=False),
            }
        ),
        min_size=1,
        max_size=6,
    )
)
def test_a_whole_row_is_json(tmp_path_factory: pytest.TempPathFactory, rows: list[dict[str, Any]]) -> None:
    kinds = pa.schema([
        ("text", pa.string()), ("number", pa.int64()), ("truth", pa.bool_()), ("list", pa.list_(pa.int8())),
        ("nested", pa.struct([('a"b', pa.string()), ("deep", pa.list_(pa.string()))])), ("real", pa.float64()),
    ])  # fmt: skip
    folder = tmp_path_factory.mktemp("t")
    pq.write_table(pa.Table.from_pylist(rows, kinds), folder / "rows.parquet")
    found = values(folder / "rows.parquet", Columns())
    assert [json.loads(value or b"") for value in found] == rows
    exact = [{name: row[name] for name in kinds.names if name != "real"} for row in rows]
    pq.write_table(pa.Table.from_pylist(exact, kinds.remove(5)), folder / "exact.parquet")
    dumped = [json.dumps(row, ensure_ascii=False, separators=(",", ":")).encode() for row in exact]
    assert values(folder / "exact.parquet", Columns()) == dumped
    text = "\r\n".join(json.dumps(row) for row in rows)
    assert values(written(folder / "rows.json", text), Columns()) == [line.encode() for line in text.split("\r\n")]


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
    assert json.loads(rows_as_json(pa.RecordBatch.from_pydict(row))[0].as_py(), parse_float=str) == {
        "when": "2026-01-02T12:00:00.006Z", "local": "2026-01-02T12:00:00.006", "day": "2026-01-02", "price": "1.50",
        "map": {"a": 1}, "kind": "x", "nan": None, "pair": [1, 2], "nothing": None, "took": 1000, "half": "0.5",
        "none": {}, "view": "v",
    }  # fmt: skip


def test_cells_of_csv_in_a_row_as_json(tmp_path: Path) -> None:
    path = written(tmp_path / "t.csv", 'id,"a ""name""",x\n7,007,\n-1.5e3,true,""\n"1,2","say ""hi""\nyou",+1\n')
    assert values(path, Columns()) == [
        b'{"id":7,"a \\"name\\"":"007","x":null}',
        b'{"id":-1.5e3,"a \\"name\\"":true,"x":""}',
        b'{"id":"1,2","a \\"name\\"":"say \\"hi\\"\\nyou","x":"+1"}',
    ]


def test_values_of_json_lines_stand_as_they_are(tmp_path: Path) -> None:
    text = (
        '{"k":7,"v":{"b": [1, 2], "a":"\\u00e9"}}\n\n{"v":"\\u00e9\\n","k":"007"}\n{"k":null,"v":1.50,"z":1}\n{"k":"x"}'
    )
    found = messages(chunks(written(tmp_path / "t.jsonl", text), Columns(key="k", value="v")))
    assert [(each.key, each.value) for each in found] == [
        (b"7", b'{"b": [1, 2], "a":"\\u00e9"}'), (b"007", "é\n".encode()), (None, b"1.50"), (b"x", None),
    ]  # fmt: skip
    assert {each.timestamp_ms for each in found} == {-1}


def test_binary_and_numbers_as_keys_and_values(tmp_path: Path) -> None:
    path = parquet(tmp_path / "t.parquet", {"k": [1, None, -3], "v": [b"\xff\0", None, b""]})
    found = messages(chunks(path, Columns(key="k", value="v")))
    assert [(each.key, each.value) for each in found] == [(b"1", b"\xff\0"), (None, None), (b"-3", b"")]


def test_a_column_of_one_chunk_is_not_copied() -> None:
    batch = pa.RecordBatch.from_pydict({"v": [b"abc", None, b"d"] * 100})
    parts = parts_of(batch, Columns(value="v"))
    assert parts.value.data.ctypes.data == batch.column(0).buffers()[2].address


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


# Times


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
]
NO_TIMES = [
    "", "soon", "2026-13-01", "2026-02-30T00:00:00Z", "2026-01-02T25:00:00", "1969-12-31T23:59:59Z", "-5", "1.5",
    "2026-01-02T03:04:05+25:00", "12345678901234567890", "2026-1-2", "\u0663",
]  # fmt: skip


def test_text_as_times() -> None:
    texts = [text for text, _ in ISO] + ["0", str(NOW_MS)] + NO_TIMES
    times_ms, bad = times_of(pa.array(texts), "t")
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
    times_ms, bad = times_of(pa.array(texts), "t")
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


# What is no record


@pytest.mark.parametrize("name", ["t.parquet", "t.jsonl", "t.csv"])
def test_rows_without_a_time_are_left_out_by_row_and_column(tmp_path: Path, name: str) -> None:
    times = ["1", "2026-02-31", "2", None, "soon", "3"]
    path = tmp_path / name
    if name == "t.jsonl":
        lines(path, [{"at": at, "v": str(i)} for i, at in enumerate(times)])
    elif name == "t.csv":
        written(path, "at,v\n" + "".join(f"{at or ''},{i}\n" for i, at in enumerate(times)))
    else:
        parquet(path, {"at": times, "v": list("012345")})
    found = chunks(path, Columns(value="v", timestamp="at"))
    assert [each.value for each in messages(found)] == [b"0", b"2", b"5"]
    [damage] = damage_of(found)
    assert (damage.position, damage.field) == (2, "column `at`")
    assert damage.promise.startswith("'2026-02-31' is no time")
    assert damage.promise.endswith("(and 2 more by row 6)")
    total = sum(each.size_bytes for each in found) + damage.size_bytes
    assert 2 * damage.size_bytes in (total, total - 1)


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


def test_lines_that_are_no_json_are_left_out_each_with_its_number(tmp_path: Path) -> None:
    text = '{"v":"a"}\n[1]\n\n{"v":"b"}\nnot json\n{"v":\n"c"}\n{"v":"d"}\n{"v":"e'
    path = written(tmp_path / "t.jsonl", text)
    found = chunks(path, Columns(value="v"))
    assert [each.value for each in messages(found)] == [b"a", b"b", b"d"]
    damage = damage_of(found)
    assert [each.position for each in damage] == [2, 5, 6, 7, 9] and {each.field for each in damage} == {"JSON"}
    assert damage[-1].promise == "Input data was truncated" and damage[1].size_bytes == len("not json\n")
    assert sum(each.size_bytes for each in found) + sum(each.size_bytes for each in damage) == len(text)


def test_rows_of_another_width_are_left_out_each_with_its_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bad = {3, 4, 57, 300}
    rows = [f"{i},x" if i not in bad else f"{i}" if i % 2 else f"{i},x,y" for i in range(1, 301)]
    path = written(tmp_path / "t.csv", "\n".join(["a,b", *rows]) + "\n")
    for block in (tables.TEXT_BYTES, 100):
        monkeypatch.setattr(tables, "TEXT_BYTES", block)
        found = chunks(path, Columns(value="a"))
        assert [int(each.value or b"") for each in messages(found)] == [i for i in range(1, 301) if i not in bad]
        damage = damage_of(found)
        assert {each.position for each in damage} == bad
        assert damage[1].promise == "3 cells, 2 are wanted" and damage[0].promise == "1 cells, 2 are wanted"
    assert sum(each.size_bytes for each in found) + sum(each.size_bytes for each in damage) == path.stat().st_size


def test_rows_of_another_width_alone_leave_no_byte_unaccounted(tmp_path: Path) -> None:
    path = written(tmp_path / "t.csv", "a,b\n1\n2\n")
    [found] = chunks(path, Columns())
    assert count([found]) == 0 and [each.position for each in found.damage] == [1, 2]
    assert found.size_bytes + sum(each.size_bytes for each in found.damage) == path.stat().st_size


def test_cells_that_are_not_utf8_are_left_out_of_rows_as_json(tmp_path: Path) -> None:
    path = written(tmp_path / "t.csv", b"a,b\n1,x\n2,\xff\n3,y\n")
    found = chunks(path, Columns())
    assert [each.value for each in messages(found)] == [b'{"a":1,"b":"x"}', b'{"a":3,"b":"y"}']
    assert [(each.position, each.promise) for each in damage_of(found)] == [(2, "Invalid UTF8 payload")]
    assert values(path, Columns(value="b")) == [b"x", b"\xff", b"y"]


def test_bytes_of_csv_stand_as_they_are_whatever_they_are(tmp_path: Path) -> None:
    every = bytes(set(range(256)) - set(b'\n\r,"'))
    path = written(tmp_path / "t.csv", b"\xef\xbb\xbf\xd0\xba,b\n" + every + b",\n\xff,x,\xfe\n\xc3\xa9,\xe9\n")
    found = chunks(path, Columns(key="к", value="b"))
    assert [(each.key, each.value) for each in messages(found)] == [(every, None), (b"\xc3\xa9", b"\xe9")]
    [damage] = damage_of(found)
    assert (damage.position, damage.size_bytes) == (2, 6)


ROWS_TO_DAMAGE = [{"k": f"k{i % 5}", "v": "x" * (i % 50), "t": NOW_MS + i, "h": '{"a": "b"}'} for i in range(120)]


@pytest.mark.parametrize("name", ["t.parquet", "t.jsonl", "t.csv", "t.jsonl.gz"])
@settings(max_examples=20)
@given(st.data())
def test_damage_is_an_error_of_one_line_or_stated(
    tmp_path_factory: pytest.TempPathFactory, name: str, data: st.DataObject
) -> None:
    path = tmp_path_factory.mktemp("t") / name
    if name == "t.parquet":
        pq.write_table(pa.Table.from_pylist(ROWS_TO_DAMAGE), path, row_group_size=40)
    elif name == "t.csv":
        rows = [",".join(quoted(cell) for cell in row.values()) for row in ROWS_TO_DAMAGE]
        path.write_text("\n".join(["k,v,t,h", *rows]))
    else:
        text = lines(path, ROWS_TO_DAMAGE).read_bytes()
        path.write_bytes(gzip.compress(text, mtime=0) if name.endswith(".gz") else text)
    content = bytearray(path.read_bytes())
    at = data.draw(st.integers(0, len(content) - 1))
    if data.draw(st.booleans()):
        content[at] = data.draw(st.integers(0, 255))
    else:
        del content[at : at + data.draw(st.sampled_from([1, 7, 100, len(content)]))]
    path.write_bytes(content or b"x")
    refused = ""
    try:
        found = chunks(path, Columns(key="k", value="v", timestamp="t", headers="h"))
    except KfbenchError as error:
        found, refused = [], str(error)
    assert all(each.position <= len(ROWS_TO_DAMAGE) + 1 for each in damage_of(found))
    assert not refused or (refused.startswith(f"{path}: ") and "\n" not in refused)


def test_a_quote_that_stays_open_ends_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "TEXT_BYTES", 1 << 10)
    path = written(tmp_path / "t.csv", "a,b\n" + "1,2\n" * 500 + '1,"2\n' + "1,2\n" * 2000)
    found, error = until_error(only(path, Columns(value="a")))
    assert re.fullmatch(r"\S+t\.csv: row [45]\d\d has no end within 0 MiB: is a quote left open\?", str(error))
    assert 0 < count(found) <= 500


def test_a_line_without_an_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "LONGEST_ROW", 100)
    monkeypatch.setattr(tables, "TEXT_BYTES", 50)
    path = written(tmp_path / "t.json", "{}\n" + "[" * 300)
    with pytest.raises(KfbenchError, match=r"^\S+t\.json: a line of more than 0 MiB: are these JSON lines\?$"):
        chunks(path, Columns())


def test_a_damaged_row_group_is_left_out_and_the_next_is_read(tmp_path: Path) -> None:
    path = parquet(
        tmp_path / "t.parquet", {"v": [base64.b64encode(bytes([i])) * 50 for i in range(200)]},
        row_group_size=50, compression="zstd", use_dictionary=False, column_encoding="PLAIN",
    )  # fmt: skip
    file = pq.read_metadata(path)
    column = file.row_group(1).column(0)
    data = bytearray(path.read_bytes())
    end = column.data_page_offset + column.total_compressed_size
    data[end - 200 : end] = bytes(200)
    path.write_bytes(data)
    found = chunks(path, Columns(value="v"))
    assert count(found) == 150
    [damage] = damage_of(found)
    assert (damage.position, damage.field, damage.size_bytes) == (51, "row group 1", column.total_compressed_size)
    assert damage.promise.endswith("(50 rows)")


@pytest.mark.parametrize("name", ["t.jsonl.gz", "t.csv.gz"])
def test_a_truncated_compressed_file_counts_as_far_as_it_goes(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "TEXT_BYTES", 1 << 14)
    rows = [f'{{"v":"{i * 7919 % 10007}"}}' if "json" in name else str(i * 7919 % 10007) for i in range(40_000)]
    text = "\n".join(rows if "json" in name else ["v", *rows])
    path = written(tmp_path / name, gzip.compress(text.encode(), 1)[:-1000])
    found, error = until_error(only(path, Columns(value="v")))
    assert "truncated" in str(error).lower()
    assert 20_000 < count(found) < 40_000


# Files


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("t.parquet", b"PAR1 no more", "Parquet"),
        ("t.parquet", b"", "the file is empty"),
        ("t.csv", b"", "the file is empty"),
        ("t.jsonl", b"", "the file is empty"),
        ("t.log", b"x", "no table: .parquet, "),
        ("t.parquet.gz", b"x", "no table: "),
    ],
)
def test_files_that_are_no_tables_are_refused_in_one_line(tmp_path: Path, name: str, content: bytes, said: str) -> None:
    path = written(tmp_path / name, content)
    with pytest.raises(KfbenchError) as raised:
        find(path, Columns(value="v"))
    assert str(raised.value).startswith(f"{path}: ") and said in str(raised.value) and "\n" not in str(raised.value)


def test_unknown_columns_are_named_with_those_there_are(tmp_path: Path) -> None:
    columns = Columns(key="id", value="vlaue")
    path = parquet(tmp_path / "t.parquet", {"id": [1], "value": ["x"]})
    with pytest.raises(KfbenchError, match=rf"^{path}: no column `vlaue` \(columns: id, value\)$"):
        find(path, columns)
    path = written(tmp_path / "t.csv", "id,value\n1,2\n")
    with pytest.raises(KfbenchError, match=rf"^{path}: no column `vlaue` \(columns: id, value\)$"):
        chunks(path, columns)
    path = written(tmp_path / "u.csv", "id,vlaue,id\n1,2,3\n")
    with pytest.raises(KfbenchError, match=rf"^{path}: several columns `id` "):
        chunks(path, columns)
    path = lines(tmp_path / "t.jsonl", [{"id": 1}, {"id": 2}])
    with pytest.raises(KfbenchError, match=rf"^{path}: no column `vlaue` in lines 1 to 2$"):
        chunks(path, columns)


def test_a_column_may_come_late_in_json_lines(tmp_path: Path) -> None:
    text = json.dumps({"id": "x" * 1000}) + "\n"
    path = written(tmp_path / "t.jsonl", text * 5000 + '{"id": "y", "v": 1}\n')
    assert path.stat().st_size > tables.TEXT_BYTES
    assert values(path, Columns(value="v")) == [None] * 5000 + [b"1"]
    with pytest.raises(KfbenchError, match=rf"^{path}: no column `w` in lines 1 to 5,001$"):
        chunks(path, Columns(value="v", key="w"))


@pytest.mark.parametrize(
    ("name", "topic"),
    [
        ("events.2024.csv.gz", "events.2024"),
        ("a/orders.parquet", "orders"),
        ("orders/day=1/hour=2/part-00000-7f-c000.snappy.parquet", "orders"),
        ("orders/000000_0.csv", "orders"),
        ("orders/part.0.parquet", "orders"),
        ("orders/parties.csv", "parties"),
    ],
)
def test_a_table_is_of_the_topic_that_its_name_says(tmp_path: Path, name: str, topic: str) -> None:
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    if ".parquet" in name:
        parquet(path, {"v": ["x"]})
    else:
        path.write_bytes(b"v\nx\n")
    assert only(path, Columns(value="v")).topic == topic


def test_rows_of_a_dictionary_are_few_at_a_time_whatever_an_entry_takes(tmp_path: Path) -> None:
    entry = pa.DictionaryArray.from_arrays(pa.array([0] * 60, pa.int32()), ["x" * (16 << 20)])
    path = parquet(tmp_path / "t.parquet", {"v": entry}, compression="zstd", store_schema=False)
    assert path.stat().st_size < 1 << 20
    before = pa.total_allocated_bytes()
    first = next(iter(only(path, Columns(value="v")).chunks()))
    assert first.records.shapes.payload_bytes == 16 << 20
    assert pa.total_allocated_bytes() - before < 400 << 20
    group = pq.read_metadata(path).row_group(0)
    assert tables._entry_bytes(group.column(0), str(path)) == (16 << 20) + 4
    small = parquet(tmp_path / "u.parquet", {"v": [str(i % 7) for i in range(1000)]})
    assert tables._entry_bytes(pq.read_metadata(small).row_group(0).column(0), str(small)) == 7 * (4 + 1)


def test_links_to_tables_are_not_followed_and_said(tmp_path: Path) -> None:
    other = parquet(tmp_path / "b.parquet", {"v": ["x"]})
    folder = tmp_path / "a"
    folder.mkdir()
    parquet(folder / "a.parquet", {"v": ["x"]})
    (folder / "b.parquet").symlink_to(other)
    (folder / "c").symlink_to(tmp_path / "nothing")
    found = find(folder, Columns(value="v"))
    assert [Path(part.name).name for part in found.parts] == ["a.parquet"]
    assert {Path(each.path).name: (each.size_bytes, each.is_data) for each in found.skipped} == {
        "b.parquet": (other.stat().st_size, True), "c": (0, False),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        (Columns(), "the whole row as a value: bytes: JSON cannot hold binary: name one column as the value"),
        (Columns(value="text", timestamp="flag"), "column `flag`: integers, text or times are wanted, not bool"),
        (Columns(value="text", headers="number"), "column `number`: list<struct<key, value>>, a map or text is wanted"),
        (Columns(value="text", headers="list"), "column `list`: list<struct<key, value>>, a map or text is wanted"),
    ],
)
def test_types_that_do_not_fit(tmp_path: Path, columns: Columns, said: str) -> None:
    rows = {"bytes": [b"x"], "text": ["x"], "flag": [True], "number": [1], "list": [["x"]]}
    path = parquet(tmp_path / "t.parquet", rows)
    with pytest.raises(KfbenchError) as raised:
        chunks(path, columns)
    assert str(raised.value).startswith(f"{path}: {said}")


def test_a_folder_of_tables(tmp_path: Path) -> None:
    parquet(tmp_path / "b.parquet", {"v": ["x"]})
    (tmp_path / "day=1").mkdir()
    lines(tmp_path / "day=1" / "a.jsonl", [{"v": 1}])
    written(tmp_path / "_SUCCESS", "")
    (tmp_path / "_temporary").mkdir()
    parquet(tmp_path / "_temporary" / "c.parquet", {"v": ["half"]})
    written(tmp_path / "broken.parquet", "PAR1")
    found = find(tmp_path, Columns(value="v"))
    assert [Path(part.name).name for part in found.parts] == ["b.parquet", "a.jsonl"]
    assert {Path(each.path).name: each.is_data for each in found.skipped} == {
        "_SUCCESS": False, "c.parquet": False, "broken.parquet": True,
    }  # fmt: skip
    [broken] = [each for each in found.skipped if each.is_data]
    assert broken.size_bytes == 4 and "Parquet" in broken.reason
    with pytest.raises(KfbenchError, match="no table in this folder"):
        find(written(tmp_path / "none" / "x.log", "x").parent, Columns())


@pytest.mark.parametrize(
    ("name", "kind"),
    [("a.PARQUET", "parquet"), ("a.b.csv", "csv"), ("a.tsv.zst", "csv"), ("a.ndjson", "json"), ("a.parquet.gz", None),
     ("a.log", None), ("a", None), ("a.gz", None)],
)  # fmt: skip
def test_kinds_by_name(name: str, kind: str | None) -> None:
    assert kind_of(name) == kind


def test_a_large_parquet_file_is_several_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = parquet(tmp_path / "t.parquet", {"v": list(range(1000))}, row_group_size=100)
    whole = messages(chunks(path, Columns(value="v")))
    size = pq.read_metadata(path).row_group(0).column(0).total_compressed_size
    monkeypatch.setattr(tables, "PART_BYTES", 3 * size)
    parts = find(path, Columns(value="v")).parts
    assert 3 <= len(parts) <= 5 and len({part.name for part in parts}) == len(parts)
    found = [chunk for part in parts for chunk in pickle.loads(pickle.dumps(part)).chunks()]
    assert [each.value for each in messages(found)] == [each.value for each in whole]
    assert [each.position for each in found] == sorted({each.position for each in found})


def test_chunks_are_bounded_whatever_the_dictionary_stands_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "CHUNK_BYTES", 1 << 20)
    monkeypatch.setattr(tables, "DECODED_BYTES", 4 << 20)
    path = parquet(tmp_path / "t.parquet", {"v": ["x" * 100_000, "y" * 100_000] * 300}, compression="zstd")
    assert path.stat().st_size < 200_000
    before = pa.total_allocated_bytes()
    sizes, held = [], 0
    for chunk in only(path, Columns(value="v")).chunks():
        sizes.append(chunk.records.shapes.payload_bytes)
        held = max(held, pa.total_allocated_bytes() - before)
    assert sum(sizes) == 60_000_000 and max(sizes) <= 1 << 20
    assert held < 16 << 20


@pytest.mark.parametrize("write", [parquet, None], ids=["parquet", "json"])
def test_the_same_chunks_every_time(tmp_path: Path, write: Callable[..., Path] | None) -> None:
    rows = [str(i) * 30 for i in range(20_000)]
    path = (
        parquet(tmp_path / "t.parquet", {"v": rows}) if write else lines(tmp_path / "t.json", [{"v": r} for r in rows])
    )
    once, twice = chunks(path, Columns(value="v")), chunks(path, Columns(value="v"))
    assert [(each.position, each.records) for each in once] == [(each.position, each.records) for each in twice]
