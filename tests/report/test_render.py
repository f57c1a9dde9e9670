"""A table says the same in a terminal, in Markdown and on a page."""

import re

import pytest

from kfbench.report.render import ABSENT, Column, Interval, Table, listed, number, slug

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


def test_text_lines_up_and_keeps_every_cell() -> None:
    lines = TABLE.to_text().splitlines()
    assert lines[0] == "Bytes & more"
    assert lines[2].split("  ")[0] == "format"
    assert "1,234.6" in lines[4]
    assert ABSENT in lines[5]
    assert lines[4].index("1,234.6") + len("1,234.6") == lines[2].index("size (bytes)") + len("size (bytes)")
    assert lines[-1] == "a <note>"


def test_markdown_escapes_what_would_end_a_cell() -> None:
    text = TABLE.to_markdown()
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert len(rows) == 4
    assert all(len(re.findall(r"(?<!\\)\|", row)) == 4 for row in rows)
    assert r"v0\|x" in text
    assert "---:" in rows[1]


def test_html_carries_the_raw_number_and_escapes_text() -> None:
    html = TABLE.to_html()
    assert 'data-v="1234.56"' in html
    assert 'data-v="1.25"' in html
    assert "Bytes &amp; more" in html
    assert "a &lt;note&gt;" in html
    assert "background:var(--k-v2)" in html
    assert html.count("<tr>") == 3


def test_dict_keeps_numbers_as_numbers() -> None:
    assert TABLE.to_dict()["rows"][0] == {
        "format": "v2",
        "size (bytes)": 1234.56,
        "ratio": {"median": 1.25, "low": 1.0, "high": 1.5},
    }


def test_a_row_of_the_wrong_length_is_refused() -> None:
    with pytest.raises(ValueError, match="2 cells for 1 columns"):
        Table(name="t", caption="", columns=(Column(name="a"),), rows=(("x", "y"),))


def test_an_interval_holds_its_ends() -> None:
    assert INTERVAL.holds(1.0)
    assert INTERVAL.holds(1.5)
    assert not INTERVAL.holds(0.999)


def test_words_are_listed_and_names_become_variables() -> None:
    assert [listed(w) for w in ([], ["a"], ["a", "b"], ["a", "b", "c"])] == ["", "a", "a and b", "a, b and c"]
    assert slug("lengths and counts") == "k-lengths-and-counts"
