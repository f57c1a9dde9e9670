"""Plain text for people: aligned columns, nouns with plurals, numbers with their digits, progress of long reads."""

from io import StringIO

import pytest
from rich.console import Console

from kfbench import progress
from kfbench.present.table import Column, Table
from kfbench.progress import reading
from kfbench.text import count_words, number_range, percent, printable, printable_lines, size_words


def test_nouns_take_their_plural() -> None:
    assert [count_words(1, "byte"), count_words(1_000, "batch"), count_words(0, "loss")] == [
        "1 byte",
        "1,000 batches",
        "0 losses",
    ]
    assert [count_words(1.0, "time"), count_words(2.5, "day")] == ["1 time", "2.5 days"]


def test_sizes_are_whole_mib_or_bytes() -> None:
    assert [size_words(64 << 20), size_words(30_000), size_words(1), size_words(0)] == [
        "64 MiB", "30,000 bytes", "1 byte", "0 bytes",
    ]  # fmt: skip


def test_percentages_keep_their_digits_and_zero_has_no_sign() -> None:
    assert [percent(0.125), percent(-0.00001), percent(0.12345, 2), percent(0.05, None)] == [
        "12.5 %",
        "0.0 %",
        "12.35 %",
        "5 %",
    ]


def test_a_range_of_one_number_is_that_number() -> None:
    assert number_range([1.02, 0.98, 1]) == "0.98 to 1.02"
    assert number_range([1.001, 1.002]) == "1.00"
    assert number_range([1_000, 2], ",.0f", "–") == "2–1,000"


HOSTILE = "a\x1b[31m\r\n\t\x00\x7f\x9b\x85\u061c\u200f\u202e\u2028\u2066\udce9\ud800"
ESCAPED = r"a\x1b[31m\r\n\t\x00\x7f\x9b\x85\u061c\u200f\u202e\u2028\u2066\xe9\ud800"


def test_control_characters_are_escaped_and_other_text_stays() -> None:
    assert printable(HOSTILE) == ESCAPED and ESCAPED.isprintable()
    assert printable_lines(HOSTILE) == ESCAPED.replace(r"\n", "\n")
    for plain in ("größe, 日本 … × –", "नमस्ते‍", "a\\b", ""):
        assert printable(plain) == plain


def test_control_characters_break_no_table() -> None:
    table = Table(name="t", caption="c", columns=(Column(name=HOSTILE),), rows=((HOSTILE,), ("b",)))
    assert table.to_text().split("\n")[2:] == [ESCAPED, "-" * len(ESCAPED), ESCAPED, "b"]


def shown(is_terminal: bool) -> str:
    console = Console(file=StringIO(), force_terminal=is_terminal, width=100)
    with reading(4_000_000, "read", console) as advance:
        advance(1_000_000)
        advance(3_000_000)
    assert isinstance(console.file, StringIO)
    return console.file.getvalue()


def test_a_bar_is_shown_only_at_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "SILENT_S", 0)
    assert "4.0/4.0 MB" in shown(is_terminal=True)
    assert shown(is_terminal=False) == ""


def test_a_short_read_shows_no_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "SILENT_S", 3600)
    assert shown(is_terminal=True) == ""
