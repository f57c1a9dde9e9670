"""Tables as sources of records: equal rows give equal records in every file type.

Only certain files count as tables.
"""

import gzip
import json
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from kfbench.errors import KfbenchError
from kfbench.sources import text_file
from kfbench.sources.columns import Columns
from kfbench.sources.tables import find, kind_of
from tests.reference.model import Message
from tests.sources.rows import (
    chunks,
    chunks_until_error,
    count,
    damage_of,
    lines,
    messages,
    only,
    parquet,
    quoted,
    values,
    written,
)
from tests.strategies import NOW_MS

ALL = Columns(key="key", value="value", timestamp="timestamp_ms", headers="headers", partition="partition")
NAMES = ("key", "value", "timestamp_ms", "headers", "partition")
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
    found = chunks(path, ALL)
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


@pytest.mark.parametrize("name", ["t.jsonl.gz", "t.csv.gz"])
def test_a_truncated_compressed_file_counts_as_far_as_it_goes(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text_file, "TEXT_BYTES", 1 << 14)
    rows = [f'{{"v":"{i * 7919 % 10007}"}}' if "json" in name else str(i * 7919 % 10007) for i in range(40_000)]
    text = "\n".join(rows if "json" in name else ["v", *rows])
    path = written(tmp_path / name, gzip.compress(text.encode(), 1)[:-1000])
    found, error = chunks_until_error(only(path, Columns(value="v")))
    assert "truncated" in str(error).lower()
    assert 20_000 < count(found) < 40_000


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("t.parquet", b"PAR1 no more", "Parquet"),
        ("t.parquet", b"", "the file is empty"),
        ("t.csv", b"", "the file is empty"),
        ("t.jsonl", b"", "the file is empty"),
        ("t.log", b"x", "no table: .parquet, "),
        ("t.parquet.gz", b"x", "no table: "),
    ],
)
def test_files_that_are_no_tables_are_refused_in_one_line(
    tmp_path: Path, name: str, content: bytes, message: str
) -> None:
    path = written(tmp_path / name, content)
    with pytest.raises(KfbenchError) as raised:
        find(path, Columns(value="v"))
    assert str(raised.value).startswith(f"{path}: ") and message in str(raised.value) and "\n" not in str(raised.value)


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


TEXT_RULE = {
    "plain": "{0}\n{1}\n{2}\n",
    "mark": "\ufeff{0}\n{1}\n{2}\n",
    "carriage returns": "{0}\r\n{1}\r\n{2}\r\n",
    "mixed": "\ufeff{0}\r\n{1}\n{2}",
    "no last break": "{0}\n{1}\n{2}",
    "blank rows": "\n\r\n{0}\n\n\n{1}\n\n{2}\n\n",
    "rows of spaces": "  \n{0}\n \t \r\n{1}\n\t\n{2}\n   ",
}


@pytest.mark.parametrize("text", TEXT_RULE.values(), ids=TEXT_RULE)
@pytest.mark.parametrize("name", ["t.csv", "t.jsonl", "t.csv.gz", "t.jsonl.gz"])
@pytest.mark.parametrize("text_bytes", [1 << 20, 1])
def test_one_rule_for_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, name: str, text_bytes: int
) -> None:
    monkeypatch.setattr(text_file, "TEXT_BYTES", text_bytes)
    rows = ['{"k":1,"v":"x"}', '{"k":2,"v":"y"}', '{"k":3,"v":"z"}'] if "json" in name else ["k,v", "2,y", "3,z"]
    content = text.format(*rows).encode()
    path = written(tmp_path / name, gzip.compress(content) if name.endswith(".gz") else content)
    found = chunks(path, Columns(key="k", value="v"))
    pairs = [(b"1", b"x"), (b"2", b"y"), (b"3", b"z")]
    assert [(each.key, each.value) for each in messages(found)] == (pairs if "json" in name else pairs[1:])
    assert not damage_of(found)


@pytest.mark.parametrize("name", ["t.csv", "t.jsonl", "t.parquet", "t.csv.gz"])
@pytest.mark.parametrize("folder", [b"caf\xe9", b"\xff\xfe", b"a\x1b[31m\nb", "\u202egpj.".encode()])
def test_a_path_of_any_bytes(tmp_path: Path, folder: bytes, name: str) -> None:
    place = tmp_path / os.fsdecode(folder)
    path = written(place / name, b"")
    if name == "t.parquet":
        parquet(tmp_path / "here.parquet", {"k": ["1"], "v": ["x"]}).rename(path)
    else:
        text = b'{"k":1,"v":"x"}\n' if "json" in name else b"k,v\n1,x\n"
        path.write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
    columns = Columns(key="k", value="v")
    for source in (path, place):
        [part] = find(source, columns).parts
        assert [each.value for each in messages(part.chunks())] == [b"x"] and os.fsencode(part.name) == os.fsencode(
            path
        )
    with pytest.raises(KfbenchError, match=r"no column `nothing`"):
        chunks(path, Columns(value="nothing"))


ARROWS_WORDS = re.compile(
    "straddl|Arrow|CSV parse|Invalid UTF8|Thrift|deserializ|Unexpected end of stream|0x", re.IGNORECASE
)


@pytest.mark.parametrize("name", ["t.parquet", "t.csv.gz", "t.jsonl.zst"])
def test_the_decoders_words_do_not_reach_the_user(tmp_path: Path, name: str) -> None:
    if name == "t.parquet":
        rows = [{"v": f"{i * 7919 % 10007}" * 9} for i in range(2000)]
        pq.write_table(pa.Table.from_pylist(rows), tmp_path / "rows.parquet", row_group_size=300)
        data = (tmp_path / "rows.parquet").read_bytes()
    else:
        text = "\n".join(["v", *(f"{i * 7919 % 10007}" for i in range(20_000))]).encode()
        data = gzip.compress(text) if name.endswith(".gz") else zstandard.compress(text)
    told = []
    for at in range(0, len(data), len(data) // 37):
        for broken in (data[: at + 1], data[:at] + bytes(64) + data[at + 64 :]):
            path = written(tmp_path / name, broken)
            try:
                told += [each.promise for chunk in only(path, Columns()).chunks() for each in chunk.damage]
            except KfbenchError as error:
                told.append(str(error).removeprefix(f"{path}: "))
    assert len(told) > 20 and not [words for words in told if ARROWS_WORDS.search(words) or "\n" in words]
