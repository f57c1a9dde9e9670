"""Tables in a real browser: sorted and filtered with mouse and keyboard."""

import re
from pathlib import Path

import pytest

from kfbench.present.table import Cell, Column, Ranked, Table
from tests.browser.chromium import Chromium, Tab

pytestmark = pytest.mark.browser


@pytest.fixture
def tab(chromium: Chromium, answer: Path) -> Tab:
    """Open the what-if page. The script variable `table` is its long table of fields."""
    tab = chromium.open(answer)
    tab.ask("""globalThis.table = document.getElementById("t-fields"), undefined""")
    return tab


def column(tab: Tab, at: int) -> list[str]:
    """Return the visible cells of the column with index `at`."""
    cells: list[str] = tab.ask(
        f"[...table.tBodies[0].rows].filter(row => row.checkVisibility()).map(row => row.cells[{at}].textContent)"
    )
    return cells


def values(cells: list[str]) -> list[int]:
    return [int(cell.replace(",", "")) for cell in cells if cell != "–"]


def test_a_head_sorts_up_down_and_back(tab: Tab) -> None:
    stored = column(tab, 0)
    assert len(stored) >= 15 and stored != sorted(stored)
    orders = []
    for _ in range(3):
        tab.ask('table.tHead.rows[0].cells[1].querySelector("button").click()')
        orders.append((tab.ask('table.tHead.rows[0].cells[1].getAttribute("aria-sort")'), column(tab, 1)))
    (up, ascending), (down, descending), (none, back) = orders
    assert (up, down, none) == ("ascending", "descending", None)
    assert values(ascending) == sorted(values(back)) and values(descending) == sorted(values(back), reverse=True)
    absent = back.count("–")
    assert absent and ascending[-absent:] == descending[-absent:] == ["–"] * absent  # null is neither least nor most
    assert column(tab, 0) == stored


def test_one_column_at_a_time_by_keys(tab: Tab) -> None:
    tab.ask('table.tHead.rows[0].cells[2].querySelector("button").click()')
    tab.ask('table.tHead.rows[0].cells[0].querySelector("button").focus()')
    tab.press("Enter", "\r")
    assert column(tab, 0) == sorted(column(tab, 0), key=str.lower)
    assert tab.ask('[...table.tHead.rows[0].cells].map(cell => cell.getAttribute("aria-sort"))')[:3] == [
        "ascending", None, None,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("cells", "sorted_cells"),
    [
        (("later", None, "earlier", None), ["earlier", "later", "–", "–"]),
        (
            (Ranked("v0 −9.7 %", -0.097), Ranked("never", None), None, Ranked("v3 −24 %", -0.24)),
            ["v3 −24 %", "v0 −9.7 %", "never", "–"],
        ),
    ],
    ids=["words", "words for numbers"],
)
def test_what_is_absent_comes_last(
    chromium: Chromium, answer: Path, tmp_path: Path, cells: tuple[Cell, ...], sorted_cells: list[str]
) -> None:
    rows = tuple(enumerate(cells))
    made = Table(name="made", caption="Made", columns=(Column(name="row"), Column(name="cell")), rows=rows)
    page = tmp_path / "page.html"
    page.write_text(answer.read_text().replace("</main>", f"{made.to_html()}</main>"))
    tab = chromium.open(page)
    tab.ask('globalThis.table = document.getElementById("t-made"), undefined')
    tab.ask('table.tHead.rows[0].cells[1].querySelector("button").click()')
    assert column(tab, 1) == sorted_cells
    tab.ask('table.tHead.rows[0].cells[1].querySelector("button").click()')
    last = sum(cell is None or getattr(cell, "rank", 0) is None for cell in cells)
    assert column(tab, 1) == [*reversed(sorted_cells[:-last]), *sorted_cells[-last:]]


def test_a_filter_leaves_rows_with_all_its_words(tab: Tab) -> None:
    everything = column(tab, 0)
    tab.ask('document.querySelector("[aria-controls=t-fields]").focus()')
    said = "document.querySelector('[aria-controls=t-fields]').closest('p').querySelector('output').textContent"
    tab.type("LENGTH")
    left = [name for name in everything if "length" in name]
    assert 1 < len(left) < len(everything)
    assert column(tab, 0) == left
    assert tab.ask(said) == f"{len(left)} of {len(everything)} rows"
    tab.type(" nowhere")
    assert column(tab, 0) == [] and tab.ask(said) == f"0 of {len(everything)} rows"
    tab.press("Escape")
    assert column(tab, 0) == everything and tab.ask(said) == ""


def test_a_filter_survives_sorting(tab: Tab) -> None:
    tab.ask('document.querySelector("[aria-controls=t-fields]").focus()')
    tab.type("length")
    left = column(tab, 0)
    tab.ask('table.tHead.rows[0].cells[0].querySelector("button").click()')
    assert column(tab, 0) == sorted(left)


def test_numbers_are_found_as_they_are_typed(chromium: Chromium, answer: Path, tmp_path: Path) -> None:
    """A filter with a typed hyphen finds numbers that are printed with a minus sign."""
    changed = tmp_path / "changed.html"
    changed.write_text(answer.read_text().replace('scope="row">key_length', 'scope="row">−7 key_length'))
    tab = chromium.open(changed)
    tab.ask('globalThis.table = document.getElementById("t-fields"), undefined')
    tab.ask('document.querySelector("[aria-controls=t-fields]").focus()')
    tab.type("-7")
    assert column(tab, 0) == ["−7 key_length"]


def test_short_tables_have_no_filter(tab: Tab) -> None:
    boxes = tab.ask("[...document.querySelectorAll('.filter input')].map(box => box.getAttribute('aria-controls'))")
    rows = tab.ask("[...document.querySelectorAll('main table')].map(each => [each.id, each.tBodies[0].rows.length])")
    assert boxes == [name for name, length in rows if length >= 15]
    assert len(boxes) < len(rows)


def test_a_table_is_copied_as_csv_as_far_as_it_is_shown(tab: Tab) -> None:
    """The copy has the rows that the filter left, without hidden columns, and numbers as exact as the page has them."""
    tab.ask('document.querySelector("[aria-controls=t-fields]").focus()')
    tab.type("length")
    tools = 'document.getElementById("t-fields").parentElement.nextElementSibling'
    heads = tab.ask("[...table.tHead.rows[0].cells].map(each => each.textContent.trim())")
    assert len(heads) >= 3
    tab.ask("table.tHead.rows[0].cells[1].hidden = true, [...table.rows].forEach(row => row.cells[1].hidden = true)")
    copied = tab.ask("csvOf(table)")
    head, *rows = copied.splitlines()
    assert head.count(",") == len(heads) - 2 and heads[0] in head
    assert [row.partition(",")[0] for row in rows] == column(tab, 0)
    assert any("," in each for each in column(tab, 2)) and all(row.count(",") == head.count(",") for row in rows)
    tab.ask(f"{tools}.querySelector('button').click()")
    assert tab.ask(
        f"new Promise(done => setTimeout(() => done({tools}.querySelector('output').textContent), 300))"
    ) == (f"{len(rows)} rows copied")
    assert tab.ask(f"{tools}.querySelector('a').hash") == "#t-fields"


def test_columns_of_a_wide_table_can_be_hidden(chromium: Chromium, answer: Path, tmp_path: Path) -> None:
    columns = tuple(Column(name=name) for name in "abcdefg")
    made = Table(name="made", caption="Made", columns=columns, rows=(tuple("ABCDEFG"), tuple("hijklmn")))
    page = tmp_path / "page.html"
    page.write_text(answer.read_text().replace("</main>", f"{made.to_html()}</main>"))
    tab = chromium.open(page)
    tab.ask('globalThis.table = document.getElementById("t-made"), undefined')
    boxes = "table.parentElement.nextElementSibling.querySelectorAll('details input')"
    assert tab.ask(f"{boxes}.length") == 6  # the first column names the rows
    tab.ask(f"{boxes}[1].click()")
    assert (
        tab.ask("[...table.rows].map(row => [...row.cells].filter(each => each.checkVisibility()).length)") == [6] * 3
    )
    assert tab.ask("csvOf(table)").splitlines()[1] == "A,B,D,E,F,G"
    tab.ask(f"{boxes}[1].click()")
    assert tab.ask("csvOf(table)").splitlines()[1] == "A,B,C,D,E,F,G"


def test_without_its_script_a_page_is_whole(chromium: Chromium, answer: Path, tmp_path: Path) -> None:
    bare = tmp_path / "bare.html"
    bare.write_text(re.sub("<script>.*?</script>", "", answer.read_text(), flags=re.DOTALL))
    tab = chromium.open(bare, 390)
    controls = "[...document.querySelectorAll('input, select, button, .filter')]"
    assert tab.ask(f"{controls}.filter(each => each.checkVisibility()).length") == 0
    assert tab.ask("[...document.querySelectorAll('tr')].every(row => row.checkVisibility())")
    assert tab.ask("[...document.querySelectorAll('.scroll')].every(region => region.tabIndex === 0)")
