"""A table has equal contents in a terminal, in Markdown and on an HTML page."""

import json
import re
from typing import Any

import pytest

from kfbench.measure.cpu import Interval
from kfbench.present.table import ABSENT, Column, Ranked, Table, listed, number, prose, slug

INTERVAL = Interval(median=1.25, low=1.0, high=1.5)
TABLE = Table(
    name="one",
    caption="Bytes & more",
    columns=(Column(name="format", swatch=True), Column(name="size", unit="bytes", digits=1), Column(name="ratio")),
    rows=(("v2", 1234.56, INTERVAL), ("v0|x", None, None)),
    notes=("a <note>",),
)


@pytest.mark.parametrize(
    ("cell", "digits", "text"),
    [
        (None, 2, ABSENT),
        (0, 2, "0"),
        (-1234, 2, "−1,234"),
        (1234.567, 2, "1,234.57"),
        (-0.001, 2, "0.00"),
        (-0.006, 2, "−0.01"),
        (True, 2, "yes"),
        ("v2", 2, "v2"),
        (INTERVAL, 2, "1.25 (1.00–1.50)"),
    ],
)
def test_a_number_in_words(cell: str | float | Interval | None, digits: int, text: str) -> None:
    assert number(cell, digits) == text


def test_html_carries_the_number_to_sort_by_and_escapes_text() -> None:
    html = TABLE.to_html()
    assert 'data-v="1234.6"' in html
    assert 'data-v="1.25"' in html
    assert "Bytes &amp; more" in html
    assert "a &lt;note&gt;" in html
    assert html.count("<tr>") == 3


def test_a_row_is_named_by_as_many_cells_as_tell_it_from_others() -> None:
    columns = tuple(Column(name=name) for name in ("records per batch", "format", "bytes", "place"))
    rows = ((1, "v2", 70.0, "front"), (1, "v3", 57.0, None), (10, "v2", 70.0, "front"))

    def named(*shown: tuple[Any, ...]) -> list[str]:
        found = Table(name="t", caption="", columns=columns, rows=shown).to_html()
        return re.findall(r'<th scope="row"[^>]*>(.+?)</th>', found)

    assert named(*rows) == ["1", "v2", "1", "v3", "10", "v2"]
    assert named(*rows[1:]) == ["1", "10"]
    assert named(rows[0], (*rows[0][:3], None)) == ["1", "1"]  # no cells of the row distinguish it
    assert named() == []


def test_words_that_stand_for_a_number_are_sorted_by_it() -> None:
    cells = (Ranked("v0 −24 %", -0.24), Ranked("tie", 0), Ranked("never", None))
    table = Table(name="t", caption="", columns=(Column(name="smallest"),), rows=tuple((cell,) for cell in cells))
    found = re.findall(r'<th scope="row"([^>]*)>(.+?)</th>', table.to_html())
    assert found == [
        (' class="w" data-v="-0.24"', "v0 −24 %"), (' class="w" data-v="0"', "tie"), ("", "never"),  # null has no rank
    ]  # fmt: skip
    assert json.dumps(table.to_dict()["rows"][0]) == json.dumps({"smallest": "v0 −24 %"})


def test_prose_is_escaped_and_has_code() -> None:
    assert prose("`a<b` & one ` more") == "<code>a&lt;b</code> &amp; one ` more"


def test_dict_keeps_numbers_as_numbers() -> None:
    ratio = {"median": 1.25, "low": 1.0, "high": 1.5}
    assert TABLE.to_dict()["rows"][0] == {"format": "v2", "size (bytes)": 1234.56, "ratio": ratio}


def test_a_row_of_the_wrong_length_is_refused() -> None:
    with pytest.raises(ValueError, match="2 cells for 1 columns"):
        Table(name="t", caption="", columns=(Column(name="a"),), rows=(("x", "y"),))


def test_words_are_listed_and_names_become_variables() -> None:
    assert [listed(w) for w in ([], ["a"], ["a", "b"], ["a", "b", "c"])] == ["", "a", "a and b", "a, b and c"]
    assert slug("lengths and counts") == "k-lengths-and-counts"
