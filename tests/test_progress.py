"""The progress bar appears only at a terminal, and only for long reads."""

from io import StringIO

import pytest
from rich.console import Console

from kfbench import progress
from kfbench.progress import reading


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
