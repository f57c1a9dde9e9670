"""The explorer in the page of a what-if: it starts from the log, and has the numbers of its tables."""

import json
from pathlib import Path

import pytest

from tests.browser.chromium import Chromium
from tests.browser.test_explorer import bill_of, choose, number, row_of

WORKLOAD = "document.getElementById('c-workload').value"


def test_it_starts_from_the_log_with_the_bytes_of_the_tables(chromium: Chromium, answer: Path) -> None:
    found = json.loads(answer.with_name("what-if.json").read_text())
    tab = chromium.open(answer)
    assert tab.ask(WORKLOAD) == "this log" and tab.ask("location.hash") == ""
    for codec in ("none", "lz4"):
        choose(tab, "c-codec", codec)
        for row in found["sizes"]:
            if row["codec"] == codec:
                assert number(row_of(tab, row["format"])[1]) == pytest.approx(
                    row["size_bytes"] / found["records"], abs=0.051
                )
    assert tab.ask("document.querySelector('#explorer-table thead').textContent").count("CPU") == 0
    assert tab.complaints() == []


def test_the_bill_is_that_of_the_tables(chromium: Chromium, answer: Path) -> None:
    found = json.loads(answer.with_name("what-if.json").read_text())
    months = {row["format"]: row["month"]["total"] for row in found["sizes"] if row["codec"] == "none"}
    tab = chromium.open(answer)
    assert tab.ask("document.getElementById('c-codec').value") == "none"  # the log has no codec
    for name, start in (("v2", "Today: v2"), ("v3", "v3 ")):
        assert number(bill_of(tab, start)[4]) == pytest.approx(months[name], rel=2e-3, abs=0.51)


def test_other_settings_are_no_longer_the_log(chromium: Chromium, answer: Path) -> None:
    tab = chromium.open(answer, address="#records=400&codec=lz4")
    assert tab.ask(WORKLOAD) == "" and row_of(tab, "v2")[1] == "–"
    assert "not measured" in tab.ask("document.getElementById('explorer-summary').textContent")
    plain = chromium.open(answer, address="#records=400")
    assert number(row_of(plain, "v2")[1]) > 0
    choose(plain, "c-workload", "this log")
    assert plain.ask("document.getElementById('n-records').value") != "400"


def test_means_outside_the_limits_are_clamped_and_it_says_so(chromium: Chromium, answer: Path, tmp_path: Path) -> None:
    page = tmp_path / "index.html"
    text = answer.read_text()
    assert text.count('"null_percent":0') == 2
    page.write_text(text.replace('"null_percent":0', '"null_percent":700'))
    tab = chromium.open(page)
    note = tab.ask("(note => note.hidden ? '' : note.textContent)(document.getElementById('explorer-notes'))")
    assert "700" in note and "100" in note
    assert tab.ask("document.getElementById('n-null_percent').value") == "100"
    assert tab.ask(WORKLOAD) == "this log"
