"""JSON lines: values keep their text. A line that is not JSON is reported with its line number."""

import gzip
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kfbench.errors import KfbenchError
from kfbench.sources import find, part, text_file
from kfbench.sources.columns import Columns
from kfbench.sources.text_file import TEXT_BYTES
from tests.sources.rows import chunks, damage_of, lines, messages, values, written


def test_values_of_json_lines_stand_as_they_are(tmp_path: Path) -> None:
    text = (
        '{"k":7,"v":{"b": [1, 2], "a":"\\u00e9"}}\n\n{"v":"\\u00e9\\n","k":"007"}\n{"k":null,"v":1.50,"z":1}\n{"k":"x"}'
    )
    found = messages(chunks(written(tmp_path / "t.jsonl", text), Columns(key="k", value="v")))
    assert [(each.key, each.value) for each in found] == [
        (b"7", b'{"b": [1, 2], "a":"\\u00e9"}'), (b"007", "é\n".encode()), (None, b"1.50"), (b"x", None),
    ]  # fmt: skip
    assert {each.timestamp_ms for each in found} == {-1}


def test_lines_that_are_no_json_are_left_out_each_with_its_number(tmp_path: Path) -> None:
    text = '{"v":"a"}\n[1]\n\n{"v":"b"}\nnot json\n{"v":\n"c"}\n{"v":"d"}\n{"v":"e'
    path = written(tmp_path / "t.jsonl", text)
    found = chunks(path, Columns(value="v"))
    assert [each.value for each in messages(found)] == [b"a", b"b", b"d"]
    damage = damage_of(found)
    assert [each.position for each in damage] == [2, 5, 6, 7, 9] and {each.field for each in damage} == {"JSON"}
    assert damage[-1].promise == "Input data was truncated" and damage[1].size_bytes == len("not json\n")


@pytest.mark.parametrize("text_bytes", [100, 50])
@pytest.mark.parametrize("share_bytes", [1 << 30, 60])
def test_a_line_beyond_the_limit_is_left_out_and_the_rest_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text_bytes: int, share_bytes: int
) -> None:
    monkeypatch.setattr(text_file, "LONGEST_ROW", 100)
    monkeypatch.setattr(text_file, "TEXT_BYTES", text_bytes)
    monkeypatch.setattr(part, "SHARE_BYTES", share_bytes)
    good, bad = '{"v":1}\n', '{"v":"' + "x" * 300 + '"}\n'
    path = written(tmp_path / "t.jsonl", good + bad + good * 2 + bad + good + bad.strip())
    found = [chunk for each in find([path], Columns(value="v")).parts for chunk in each.chunks()]
    assert [each.value for each in messages(found)] == [b"1"] * 4
    assert [(each.position, each.size_bytes) for each in damage_of(found)] == [
        (2, len(bad)), (5, len(bad)), (7, len(bad) - 1),
    ]  # fmt: skip


def test_a_column_may_come_late_in_json_lines(tmp_path: Path) -> None:
    text = json.dumps({"id": "x" * 1000}) + "\n"
    path = written(tmp_path / "t.jsonl", text * 5000 + '{"id": "y", "v": 1}\n')
    assert path.stat().st_size > TEXT_BYTES
    assert values(path, Columns(value="v")) == [None] * 5000 + [b"1"]
    with pytest.raises(KfbenchError, match=rf"^{path}: no column `w` in lines 1 to 5,001$"):
        chunks(path, Columns(value="v", key="w"))


@pytest.mark.parametrize("share_bytes", [1, 40, 333])
def test_shares_of_json_lines_have_every_line_once_with_its_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, share_bytes: int
) -> None:
    asked = Columns(value="v")
    text = "".join(f'{{"v": "{"x" * (i % 7)}{i}"}}\n' + "\n" * (i % 3) + "no\n" * (i % 11 == 0) for i in range(90))
    for ending in ("", '{"v": "' + "y" * 400 + '"}'):  # longer than a share of the file, and than one read
        path = written(tmp_path / "t.jsonl", text + ending)
        whole = chunks(path, asked)
        with monkeypatch.context() as patched:
            patched.setattr(part, "SHARE_BYTES", share_bytes)
            patched.setattr(text_file, "TEXT_BYTES", 60)
            shares = find([path], asked).parts
            found = [chunk for each in shares for chunk in each.chunks()]
        assert len(shares) > 3 and sum(each.size_bytes for each in shares) == path.stat().st_size
        assert len({each.key for each in shares}) == len(shares) and {each.name for each in shares} == {str(path)}
        assert [each.value for each in messages(found)] == [each.value for each in messages(whole)]
        assert damage_of(found) == damage_of(whole) and len(damage_of(whole)) == 9
        assert sum(each.size_bytes for each in found) == sum(each.size_bytes for each in whole)


def test_compressed_text_is_one_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(part, "SHARE_BYTES", 10)
    path = written(tmp_path / "t.jsonl.gz", gzip.compress(b'{"v": 1}\n' * 20))
    assert [each.value for each in messages(chunks(path, Columns(value="v")))] == [b"1"] * 20


DEEP = "[" * 50_000 + "]" * 50_000
UNDECODABLE = {
    "deep": f'{{"v":{DEEP}}}',
    "deep elsewhere": f'{{"x":{DEEP},"v":1}}',
    "lone surrogate": '{"v":"\\ud800"}',
    "NaN": '{"v":NaN}',
    "infinity": '{"v":-Infinity}',
    "leading zero": '{"v":007}',
    "control": '{"v":"a\x01"}',
    "no object": '"v"',
    "two objects": '{"v":1}{"v":2}',
    "zeros": "\0\0\0",
    "name": '{"\\udfff":1,"v":1}',
}


@pytest.mark.parametrize("line", UNDECODABLE.values(), ids=UNDECODABLE)
@pytest.mark.parametrize(
    "columns", [Columns(), Columns(value="v"), Columns(value='v"')], ids=["row", "name", "odd name"]
)
def test_a_line_that_no_decoder_takes_is_left_out_alone(tmp_path: Path, line: str, columns: Columns) -> None:
    name = columns.value or "v"
    good = [json.dumps({name: i}) for i in range(50)]
    path = written(tmp_path / "t.jsonl", "\n".join([*good[:20], line, *good[20:]]))
    found = chunks(path, columns)
    numbers = [i if columns.value else json.dumps({name: i}) for i in range(50)]
    assert [each.value for each in messages(found)] == [str(each).encode() for each in numbers]
    assert [each.position for each in damage_of(found)] == [21]


@pytest.mark.parametrize("number", ["9" * 5000, "1e999", "-0.0", "1E-400", "0." + "1" * 300])
def test_a_number_stays_as_it_is_whatever_its_size(tmp_path: Path, number: str) -> None:
    path = written(tmp_path / "t.jsonl", f'{{"v":{number}}}\n')
    assert values(path, Columns(value="v")) == [number.encode()]


def test_names_that_need_escapes_or_are_no_text(tmp_path: Path) -> None:
    names = ["\x1b[31m", 'a"b', "a\\b", "é", ""]
    path = written(tmp_path / "t.jsonl", json.dumps({name: i for i, name in enumerate(names)}) + "\n")
    for i, name in enumerate(names):
        assert values(path, Columns(value=name)) == [str(i).encode()]
    with pytest.raises(KfbenchError) as raised:
        chunks(path, Columns(value="caf\udce9"))
    assert str(raised.value) == rf"{path}: no column `caf\xe9` in lines 1 to 1"


@pytest.mark.parametrize("cell", ['{"a":' + DEEP + "}", DEEP, '{"a":"\\ud800"}', "\xe9", '[{"key":"\\ud800"}]'])
@pytest.mark.parametrize("name", ["t.csv", "t.parquet", "t.jsonl"])
def test_headers_that_no_decoder_takes_leave_out_their_row(tmp_path: Path, name: str, cell: str) -> None:
    cells = ['{"a":"b"}', cell, "{}"]
    data: list[str | bytes] = [text.encode("latin-1") for text in cells] if name != "t.jsonl" else [*cells]
    path = tmp_path / name
    if name == "t.csv":
        quoted = [b'"' + each.replace(b'"', b'""') + b'"' for each in data if isinstance(each, bytes)]
        written(path, b"h\n" + b"\n".join(quoted))
    elif name == "t.parquet":
        pq.write_table(pa.table({"h": data}), path)
    else:
        lines(path, [{"h": each} for each in data])
    found = chunks(path, Columns(value="h", headers="h"))
    assert [each.headers for each in messages(found)] == [(("a", b"b"),), ()]
    assert [(each.position, each.field) for each in damage_of(found)] == [(2, "column `h`")]
