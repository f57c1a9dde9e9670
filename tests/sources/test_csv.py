"""CSV files: cells keep their bytes. A row with a wrong number of cells is reported with its row number."""

import json
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kfbench.errors import KfbenchError
from kfbench.sources import text_file
from kfbench.sources.columns import Columns
from kfbench.sources.text_file import TEXT_BYTES
from tests.sources.rows import chunks, count, damage_of, messages, values, written


def test_cells_of_csv_in_a_row_as_json(tmp_path: Path) -> None:
    path = written(tmp_path / "t.csv", 'id,"a ""name""",x\n7,007,\n-1.5e3,true,""\n"1,2","say ""hi""\nyou",+1\n')
    assert values(path, Columns()) == [
        b'{"id":7,"a \\"name\\"":"007","x":null}',
        b'{"id":-1.5e3,"a \\"name\\"":true,"x":""}',
        b'{"id":"1,2","a \\"name\\"":"say \\"hi\\"\\nyou","x":"+1"}',
    ]


def test_bytes_of_csv_stand_as_they_are_whatever_they_are(tmp_path: Path) -> None:
    every = bytes(set(range(256)) - set(b'\n\r,"'))
    path = written(tmp_path / "t.csv", b"\xef\xbb\xbf\xd0\xba,b\n" + every + b",\n\xff,x,\xfe\n\xc3\xa9,\xe9\n")
    found = chunks(path, Columns(key="к", value="b"))
    assert [(each.key, each.value) for each in messages(found)] == [(every, None), (b"\xc3\xa9", b"\xe9")]
    [damage] = damage_of(found)
    assert (damage.position, damage.size_bytes) == (2, 6)


def test_rows_of_another_width_are_left_out_each_with_its_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bad = {3, 4, 57, 300}
    rows = [f"{i},x" if i not in bad else f"{i}" if i % 2 else f"{i},x,y" for i in range(1, 301)]
    path = written(tmp_path / "t.csv", "\n".join(["a,b", *rows]) + "\n")
    for block in (TEXT_BYTES, 100):
        monkeypatch.setattr(text_file, "TEXT_BYTES", block)
        found = chunks(path, Columns(value="a"))
        assert [int(each.value or b"") for each in messages(found)] == [i for i in range(1, 301) if i not in bad]
        damage = damage_of(found)
        assert {each.position for each in damage} == bad
        assert damage[1].promise == "3 cells, 2 are wanted" and damage[0].promise == "1 cells, 2 are wanted"
    [alone] = chunks(written(tmp_path / "t.csv", "a,b\n1\n2\n"), Columns())
    assert count([alone]) == 0 and [each.position for each in alone.damage] == [1, 2]


def test_cells_that_are_not_utf8_are_left_out_of_rows_as_json(tmp_path: Path) -> None:
    path = written(tmp_path / "t.csv", b"a,b\n1,x\n2,\xff\n3,y\n")
    found = chunks(path, Columns())
    assert [each.value for each in messages(found)] == [b'{"a":1,"b":"x"}', b'{"a":3,"b":"y"}']
    assert [(each.position, each.field) for each in damage_of(found)] == [(2, "row")]
    assert values(path, Columns(value="b")) == [b"x", b"\xff", b"y"]


@pytest.mark.parametrize("text_bytes", [TEXT_BYTES, 100])
def test_a_quote_that_stays_open_leaves_out_its_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text_bytes: int
) -> None:
    monkeypatch.setattr(text_file, "TEXT_BYTES", text_bytes)
    rest = '1,"2\n' + "1,2\n" * 20
    path = written(tmp_path / "t.csv", "a,b\n" + "1,2\n" * 50 + rest)
    found = chunks(path, Columns(value="a"))
    [damage] = damage_of(found)
    assert (count(found), damage.position, damage.size_bytes) == (50, 51, len(rest)) and "quote" in damage.promise


@pytest.mark.parametrize(
    "row", ['2,"{}{}"\n', "2,{}{}\r\n", '"{}\n{}",2\n', '2,"{}{},2\n'], ids=["quoted", "plain", "lines", "open"]
)
@pytest.mark.parametrize("text_bytes", [100, 30])
def test_a_row_beyond_the_limit_is_left_out_and_the_rest_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, row: str, text_bytes: int
) -> None:
    monkeypatch.setattr(text_file, "TEXT_BYTES", text_bytes)
    monkeypatch.setattr(text_file, "LONGEST_ROW", 100)
    large = row.format("x" * 10, "x" * 200)
    rows = ["1,y\n", "2,y\n", large, "3,y\n", "4,y"]
    path = written(tmp_path / "t.csv", "a,b\n" + "".join(rows))
    found = chunks(path, Columns(key="a", value="b"))
    [damage] = damage_of(found)
    assert damage.position == 3 and damage.promise.startswith("more than ")
    assert ("quote" in damage.promise) == ("\n" in large.rstrip())  # a quote is suspected only if lines are inside it
    assert [(each.key, each.value) for each in messages(found)] == [
        (b"1", b"y"), (b"2", b"y"), (b"3", b"y"), (b"4", b"y"),
    ]  # fmt: skip


def edges() -> st.SearchStrategy[bytes]:
    return st.lists(st.sampled_from([b'"', b'""', b",", b"\n", b"\r\n", b"\r", b"a", b" ", "é".encode(), b"\xe9"])).map(
        b"".join
    )


@settings(max_examples=300)
@given(edges(), st.integers(1, 8), st.sampled_from([",", "\t"]))
def test_rows_are_where_arrow_sees_them_however_much_is_read_at_a_time(
    tmp_path_factory: pytest.TempPathFactory, text: bytes, text_bytes: int, separator: str
) -> None:
    """Arrow decides where rows end. Blocks of another size give the same rows, with the same numbers."""
    name = "t.tsv" if separator == "\t" else "t.csv"
    path = written(tmp_path_factory.mktemp("t") / name, b"h\n" + text)
    whole = chunks(path, Columns(value="h"))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(text_file, "TEXT_BYTES", text_bytes)
        cut = chunks(path, Columns(value="h"))
    assert messages(cut) == messages(whole)
    assert [(each.position, each.promise) for each in damage_of(cut)] == [
        (each.position, each.promise) for each in damage_of(whole)
    ]


@pytest.mark.parametrize(
    ("header", "names"),
    [
        ("\n\nid,v\n", ["id", "v"]),
        ("\r\n \t\r\nid,v\r\n", ["id", "v"]),
        ("\ufeffid,v\n", ["id", "v"]),
        ('\ufeff"id","v"\n', ["id", "v"]),
        ('"i\nd","v\r\n""x"""\n', ["i\nd", 'v\r\n"x"']),
        ('"i,d",v\n', ["i,d", "v"]),
        ('5" pipe,v\n', ['5" pipe', "v"]),
        ("id,v\r", ["id", "v"]),
        (",v\n", ["", "v"]),
        (" id,v \n", [" id", "v "]),
        ("1,2\n", ["1", "2"]),
    ],
)
@pytest.mark.parametrize("text_bytes", [TEXT_BYTES, 3])
def test_the_header_is_the_first_row_that_is_not_blank(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, header: str, names: list[str], text_bytes: int
) -> None:
    monkeypatch.setattr(text_file, "TEXT_BYTES", text_bytes)
    path = written(tmp_path / "t.csv", header + "".join(f"{i},x{i}\n" for i in range(50)))
    found = chunks(path, Columns(key=names[0], value=names[1]))
    assert [(each.key, each.value) for each in messages(found)] == [(b"%d" % i, b"x%d" % i) for i in range(50)]
    rows = [json.loads(value or b"") for value in values(path, Columns())]
    assert rows == [{names[0]: i, names[1]: f"x{i}"} for i in range(50)]


def test_columns_of_one_name_stay_apart(tmp_path: Path) -> None:
    path = written(tmp_path / "t.csv", "a,b,a\n1,2,3\n")
    assert values(path, Columns()) == [b'{"a":1,"b":2,"a":3}'] and values(path, Columns(value="b")) == [b"2"]


@pytest.mark.parametrize("text", ["id,v", "id,v\n", "\ufeffid,v\r\n\r\n", '"id","v"', "id,v\n  \n\t\n"])
def test_a_header_alone_has_no_records_and_no_damage(tmp_path: Path, text: str) -> None:
    found = chunks(written(tmp_path / "t.csv", text), Columns(key="id", value="v"))
    assert not count(found) and not damage_of(found)


@pytest.mark.parametrize("text", ["\n", "\r\n \r\n", "\ufeff", "\ufeff\n\n", "   "])
def test_without_a_header_nothing_is_read(tmp_path: Path, text: str) -> None:
    path = written(tmp_path / "t.csv", text)
    with pytest.raises(KfbenchError, match=f"^{re.escape(str(path))}: no header"):
        chunks(path, Columns())


def test_names_and_cells_of_any_bytes(tmp_path: Path) -> None:
    path = written(tmp_path / "t.csv", b"caf\xe9,\x1b[31m\n\xff,x\n")
    name = b"caf\xe9".decode(errors="surrogateescape")
    assert [(each.key, each.value) for each in messages(chunks(path, Columns(key=name, value="\x1b[31m")))] == [
        (b"\xff", b"x")
    ]
    with pytest.raises(KfbenchError) as raised:
        chunks(path, Columns(value="v"))
    assert str(raised.value) == rf"{path}: no column `v` (columns: caf\xe9, \x1b[31m)"
    path = written(tmp_path / "u.csv", b"caf\xe9\nx\n")
    assert [json.loads(value or b"") for value in values(path, Columns())] == [{"caf\ufffd": "x"}]


def test_spaces_are_a_blank_row_unless_they_are_inside_quotes(tmp_path: Path) -> None:
    path = written(tmp_path / "t.csv", 'a\n  \n1\n\t \r\n"\n  \n"\n \n x\n   ')
    assert values(path, Columns(value="a")) == [b"1", b"\n  \n", b" x"]
    path = written(tmp_path / "t.tsv", "a\tb\n  \n\t\n1\t\n")
    found = chunks(path, Columns(key="a"))
    assert [each.key for each in messages(found)] == [None, b"1"] and not damage_of(found)
