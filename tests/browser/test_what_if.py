"""The explorer in the page of a what-if: it starts from the log, and has the numbers of its tables."""

import json
from pathlib import Path

import pytest

from tests.browser.chromium import Chromium
from tests.browser.test_explorer import number, row_of, with_address

pytestmark = pytest.mark.browser
WORKLOAD = "document.getElementById('c-workload').value"


def test_it_starts_from_the_log_with_the_bytes_of_the_tables(chromium: Chromium, answer: Path) -> None:
    found = json.loads(answer.with_name("what-if.json").read_text())
    tab = chromium.open(answer)
    assert tab.ask(WORKLOAD) == "this log" and tab.ask("location.hash") == ""
    for codec in ("none", "lz4"):
        tab.ask(f"""(box => {{ box.value = "{codec}"; box.dispatchEvent(new Event("change")); }})(
          document.getElementById("c-codec"))""")
        for row in found["sizes"]:
            if row["codec"] == codec:
                assert number(row_of(tab, row["format"])[1]) == pytest.approx(
                    row["size_bytes"] / found["records"], abs=0.051
                )
    assert tab.ask("document.querySelector('#explorer-table thead').textContent").count("CPU") == 0
    assert tab.complaints() == []


@pytest.mark.parametrize("codec", ["none", "lz4"])
def test_the_bill_is_that_of_the_tables(chromium: Chromium, answer: Path, codec: str) -> None:
    found = json.loads(answer.with_name("what-if.json").read_text())
    months = {row["format"]: row["month"]["total"] for row in found["sizes"] if row["codec"] == codec}
    assert len(months) > 1
    tab = chromium.open(answer)
    tab.ask(f"""(box => {{ box.value = "{codec}"; box.dispatchEvent(new Event("change")); }})(
      document.getElementById("c-codec"))""")
    for name, dollars in months.items():
        assert number(row_of(tab, name)[3]) == pytest.approx(dollars, rel=2e-3, abs=0.51)


def test_other_settings_are_no_longer_the_log(chromium: Chromium, answer: Path) -> None:
    tab = with_address(chromium, answer, "#records=400&codec=lz4")
    assert tab.ask(WORKLOAD) == "" and row_of(tab, "v2")[1] == "–"
    assert "not measured" in tab.ask("document.getElementById('explorer-source').textContent")
    plain = with_address(chromium, answer, "#records=400")
    assert number(row_of(plain, "v2")[1]) > 0
    plain.ask("""(box => { box.value = "this log"; box.dispatchEvent(new Event("change")); })(
      document.getElementById("c-workload"))""")
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
