"""Declarations of tables, figures and pages are read from TOML, and a fault in one is named."""

from pathlib import Path

import pytest

from kfbench.errors import InvalidConfig
from kfbench.present.declaration import TableView, View, nearest, read_view, unique_tables

TABLE = '[[table]]\nname = "one"\ncaption = "c"\nrows = ["format"]\nmetrics = ["size"]\n'


def read(folder: Path, text: str, name: str = "made.toml") -> View:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return read_view(path)


def tables(folder: Path, text: str) -> dict[str, TableView]:
    return {table.name: table for table in read(folder, text).tables}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (TABLE + 'order_by = "size"', "unknown field `order_by`"),
        (TABLE.replace('["size"]', '[{ metric = "size", digit = 1 }]'), "unknown field `digit`"),
        (TABLE.replace("rows", "row"), "missing required field `rows`|unknown field `row`"),
        (TABLE.replace('"c"', "1"), "Expected `str`, got `int`"),
        (TABLE + 'at = "here"', "Invalid enum value 'here'"),
        (TABLE + "name = ", "Invalid value"),
        ("[[tabel]]", "unknown field `tabel`"),
        (TABLE.replace('["size"]', '"size"'), "Expected `array`, got `str`"),
        (TABLE + 'each = "x"', "Expected `array`, got `str`"),
        ('table = "one"', "Expected `array`, got `str`"),
        (TABLE.replace('"c"', '"by $axis"') + 'each = [{ axes = "key_bytes" }]', r"\$axis has no value in `each`"),
        ('[[preset]]\nid = "a"\ntitle = "b"\ndrawing = "bar"', "Invalid enum value 'bar'"),
        ('[[preset]]\nid = "a"\ntitle = "b"\ndrawing = "bars"\nlabels = []', "unknown field `labels`"),
    ],
)
def test_a_fault_is_named_with_the_file(text: str, why: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidConfig, match=rf"^made\.toml: .*({why})"):
        read(tmp_path, text)


def test_two_tables_of_one_name_are_an_error(tmp_path: Path) -> None:
    views = [read(tmp_path, TABLE, name) for name in ("a.toml", "b.toml")]
    with pytest.raises(InvalidConfig, match=r"b\.toml: two tables are named one"):
        unique_tables(views)
    assert [*unique_tables(views[:1])] == ["one"]


def test_defaults_are_those_of_every_table_and_conditions_are_joined(tmp_path: Path) -> None:
    defaults = '[defaults]\nbase = { format = "v2" }\nwhere = { kind = "bytes", codec = "none" }\n'
    found = tables(tmp_path, defaults + TABLE + 'where = { codec = "zstd" }\n')["one"]
    assert found.base == {"format": "v2"} and found.where == {"kind": "bytes", "codec": "zstd"}
    own = tables(tmp_path, defaults + TABLE + "base = {}\n")["one"]
    assert own.base == {} and own.where == {"kind": "bytes", "codec": "none"}


def test_conditions_of_the_defaults_are_of_stored_rows_only(tmp_path: Path) -> None:
    """A function's rows have other columns than those of a run."""
    defaults = '[defaults]\nwhere = { kind = "bytes" }\n'
    found = tables(tmp_path, defaults + TABLE + 'source = "verdict"\nwhere = { winner = "v3" }\n')["one"]
    assert found.where == {"winner": "v3"}


def test_a_metric_may_be_its_name_alone(tmp_path: Path) -> None:
    (metric,) = tables(tmp_path, TABLE)["one"].metrics
    assert (metric.metric, metric.how, metric.base, metric.columns) == ("size", "mean", None, None)


def test_each_makes_a_table_per_entry(tmp_path: Path) -> None:
    text = """
    [[table]]
    name = "by-$axis"
    caption = "Bytes by $words, in US$"
    rows = ["$axis"]
    where = { kind = "$kinds" }
    metrics = [{ metric = "size", name = "$words {format}" }]
    each = [
      { axis = "batch_size", words = "batch", kinds = ["bytes", "floor"] },
      { axis = "key_bytes", words = "key", kinds = "bytes" },
    ]
    """
    found = tables(tmp_path, text)
    assert {name: (table.caption, table.rows, table.where) for name, table in found.items()} == {
        "by-batch_size": ("Bytes by batch, in US$", ["batch_size"], {"kind": ["bytes", "floor"]}),
        "by-key_bytes": ("Bytes by key, in US$", ["key_bytes"], {"kind": "bytes"}),
    }
    assert found["by-key_bytes"].metrics[0].name == "key {format}"


def test_the_nearest_word_is_named_only_if_it_is_near() -> None:
    assert nearest("overhaed", ["size", "overhead"]) == "; did you mean overhead?"
    assert nearest("xyz", ["size", "overhead"]) == ""
