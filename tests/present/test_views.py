"""A view has the numbers of its table, and a preset names what the view has."""

import json
from typing import Any, Final

import msgspec
import pytest

from kfbench.errors import InvalidConfig
from kfbench.measure.cpu import Interval
from kfbench.present.declaration import PresetView
from kfbench.present.engine import BuiltTable
from kfbench.present.views import chip_words, plain_table, preset_json, rows_of, sparse, view_json
from tests.present.made import built, counted, timed

KEYS: Final = ["format", "batch_size", "with_codec"]
ROWS: Final = [
    *(counted(name, size - batch, batch) for batch in (1, 10, 1000) for name, size in (("v2", 2001), ("v3", 1907))),
    counted("v3", 1234, 10, codec="zstd", level=3),
    timed("v2", [100, 110, 120, 130, 140] * 3, 10), timed("v3", [150, 111, 240, 99, 134] * 3, 10),
]  # fmt: skip
METRICS: Final = [
    {"metric": "size", "name": "bytes", "unit": "", "of": {"kind": "bytes"}},
    {"metric": "ns", "key": "encode", "of": {"operation": "encode"}},
    {"metric": "time_ratio", "key": "ratio", "of": {"operation": "encode"}, "hides_base": False},
    {"metric": "ns", "key": "decode", "of": {"operation": "decode"}},
]
GIVEN: Final = {
    "id": "one", "title": "What?", "drawing": "bars", "view": "cells", "label": ["format", "with_codec"],
    "where": {"format": ["v3"], "batch_size": [10]}, "metric": "size", "beside": ["encode"],
    "base": {"format": "v2", "batch_size": 10, "with_codec": "none"},
}  # fmt: skip


def cells() -> BuiltTable:
    made = built(ROWS, rows=KEYS, columns=[], metrics=METRICS, base={"format": "v2"})
    assert made.table is not None
    return made


def view() -> dict[str, Any]:
    made = cells()
    assert made.table is not None
    return view_json(made, made.table, "here", {})


def preset(*, is_strict: bool = True, **changed: Any) -> dict[str, Any]:
    return preset_json(
        msgspec.convert(GIVEN | changed, PresetView), view(), "a.toml: preset one", "", "", is_strict=is_strict
    )


def test_columns_times_their_scale_are_the_cells_of_the_table() -> None:
    found, made = view(), cells()
    json.dumps(found, allow_nan=False)
    assert made.table is not None and {len(each) for each in found["columns"].values()} == {len(made.table.rows)}
    for at, (row, key) in enumerate(zip(made.table.rows, made.shown_keys, strict=True)):
        for name, value in zip(KEYS, key, strict=True):
            assert found["dims"][name]["values"][found["columns"][name][at]] == chip_words(name, value)
        for name, cell in zip(("size", "encode", "ratio"), row[len(KEYS) :], strict=True):
            ends = (cell.median, cell.low, cell.high) if isinstance(cell, Interval) else (cell,)
            for part, end in zip(("", "_low", "_high"), ends, strict=False):
                whole, scale = found["columns"][name + part][at], found["metrics"][name]["scale"]
                assert (whole is None) == (end is None)
                assert end is None or whole * scale == pytest.approx(end, abs=0.51 * scale)
    assert found["dims"]["batch_size"]["numbers"] == [1, 10, 1000] and found["dims"]["format"]["numbers"] is None
    assert "ratio_low" in found["columns"] and "size_low" not in found["columns"]


def test_a_metric_that_was_not_measured_has_no_number_and_no_error() -> None:
    """No batch was decoded."""
    assert set(view()["columns"]["decode"]) == {None} and view()["metrics"]["decode"]["label"] == "decode"


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"label": ["formt"]}, r"no dimension formt; did you mean format\?"),
        ({"where": {"codec": ["none"]}}, r"no dimension codec; did you mean with_codec\?"),
        ({"chips": ["batch_sizes"]}, r"no dimension batch_sizes; did you mean batch_size\?"),
        ({"one": ["batch"]}, "no dimension batch"),
        ({"base": {"formats": "v2"}}, r"no dimension formats; did you mean format\?"),
        ({"series": "formats"}, r"no dimension formats; did you mean format\?"),
        ({"metric": "sizes"}, r"no metric sizes; did you mean size\?"),
        ({"beside": ["encoded"]}, r"no metric encoded; did you mean encode\?"),
        ({"where": {"with_codec": ["zstd 33"]}}, r"no with_codec zstd 33; did you mean zstd 3\?"),
        ({"base": {"batch_size": 1001}}, r"no batch_size 1,001; did you mean 1,000\?"),
    ],
)
def test_an_unknown_word_is_refused_with_the_file_and_the_nearest_one(changed: dict[str, Any], why: str) -> None:
    with pytest.raises(InvalidConfig, match=rf"^a\.toml: preset one: {why}"):
        preset(**changed)


def test_a_run_that_lacks_a_value_shows_the_others() -> None:
    found = preset(is_strict=False, where={"format": ["v1", "v3"], "batch_size": [7]})
    assert found["where"] == {"format": ["v3"], "batch_size": []} and rows_of(found, view()) == []


def test_a_preset_shows_the_rows_of_its_values_with_and_without_a_script() -> None:
    found, made = preset(), cells()
    wanted = [at for at, key in enumerate(made.shown_keys) if key[:2] == ("v3", 10)]
    assert rows_of(found, view()) == wanted and len(wanted) == 2
    assert rows_of(preset(where={}), view()) == [*range(len(made.shown_keys))]
    table = plain_table(found, view())
    assert [column.name for column in table.columns] == ["format", "codec", "bytes", "encode", "against v2, 10, none"]
    assert made.table is not None
    for row, at in zip(table.rows, wanted, strict=True):
        assert row[:2] == (made.shown_keys[at][0], made.shown_keys[at][2])
        assert row[2] == pytest.approx(made.table.rows[at][3], abs=0.001)


def test_a_column_with_few_values_is_sparse() -> None:
    found = sparse({"views": {"one": view()}})["views"]["one"]["columns"]
    for key, column in view()["columns"].items():
        known = {row: value for row, value in enumerate(column) if value is not None}
        assert found[key] in (column, known) and (found[key] == known) == (3 * len(known) < len(column))
