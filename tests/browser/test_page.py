"""A report in a real browser: phone and desktop, light and dark, printed, copied, without a network or a script."""

import re
from pathlib import Path

import pytest

from tests.browser.chromium import Chromium

PAPER_PX = 703  # A4 width minus two margins of 12 mm, at 96 px per inch
CUT = """what => [...document.querySelectorAll(what)].filter(
  each => each.getBoundingClientRect().right > document.documentElement.clientWidth + 1).map(each => each.outerHTML)"""


@pytest.mark.parametrize("width", [360, 390, 768, 1280, 1400])
def test_nothing_but_tables_scrolls_sideways(chromium: Chromium, page: Path, width: int) -> None:
    tab = chromium.open(page, width)
    tab.ask("document.querySelectorAll('details').forEach(each => each.open = true)")
    assert tab.ask("document.documentElement.clientWidth") == width
    assert tab.ask("document.documentElement.scrollWidth") == width
    assert tab.ask(f'({CUT})("h1, h2, p, figure, dl, pre, .scroll, nav")') == []


def test_what_scrolls_takes_the_keyboard(chromium: Chromium, page: Path) -> None:
    tab = chromium.open(page, 360)
    tab.ask("document.querySelectorAll('details').forEach(each => each.open = true)")
    regions = tab.ask("""new Promise(done => requestAnimationFrame(() => setTimeout(() => done(
      [...document.querySelectorAll(".scroll")].filter(each => each.checkVisibility()).map(each => [
        each.scrollWidth - each.clientWidth, each.scrollHeight - each.clientHeight, each.tabIndex === 0])))))""")
    assert all(focusable == (sideways > 0) and down == 0 for sideways, down, focusable in regions)
    if tab.ask("document.body.className") == "front":  # its one table may fit
        return
    assert any(sideways for sideways, *_ in regions) and not all(sideways for sideways, *_ in regions)
    cell = 'document.querySelector(".scroll[tabindex] tbody th").getBoundingClientRect().left'
    before = tab.ask(cell)
    tab.ask('document.querySelector(".scroll[tabindex]").scrollLeft = 1e6')
    assert tab.ask(cell) == pytest.approx(before, abs=1)  # the first column stays visible


def test_it_asks_for_nothing_and_nothing_is_refused(chromium: Chromium, page: Path) -> None:
    tab = chromium.open(page)
    assert tab.requests() == [page.as_uri()]
    assert tab.complaints() == []


def test_a_page_may_ask_for_nothing(chromium: Chromium, answer: Path, tmp_path: Path) -> None:
    changed = tmp_path / "changed.html"
    asking = '<img src="picture.png" alt=""><script src="script.js"></script></body>'
    changed.write_text(answer.read_text().replace("</body>", asking))
    tab = chromium.open(changed)
    tab.ask("fetch('what-if.json').catch(() => 0)")
    refused = [said for said in tab.complaints() if "Content Security Policy" in said]
    for name in ("picture.png", "script.js", "what-if.json"):
        assert any(name in said for said in refused)


def test_on_paper_nothing_is_folded_away_or_cut(chromium: Chromium, page: Path) -> None:
    tab = chromium.open(page, PAPER_PX, 1000, dark=True, media="print")
    assert tab.ask("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert tab.ask('[...document.querySelectorAll("nav, .tools, .skip")].filter(e => e.checkVisibility())') == []
    tab.ask('dispatchEvent(new Event("beforeprint"))')
    assert tab.ask('[...document.querySelectorAll("table")].every(each => each.checkVisibility())')
    assert tab.ask(f'({CUT})("p, figure, pre, dl, table")') == []
    tab.ask('dispatchEvent(new Event("afterprint"))')
    assert tab.ask('document.querySelectorAll("details[open]").length') == 0


def test_a_table_is_copied_as_csv(chromium: Chromium, answer: Path) -> None:
    """The copy has the rows in the order of the page, and numbers as exact as the page has them."""
    tab = chromium.open(answer)
    table = 'document.getElementById("t-fields")'
    shown = tab.ask(f"[...{table}.tBodies[0].rows].map(row => [row.cells[0].textContent, row.cells[2].textContent])")
    head, *rows = tab.ask(f"csvOf({table})").splitlines()
    assert [row.partition(",")[0] for row in rows] == [name for name, _ in shown]
    assert any("," in number for _, number in shown) and all(row.count(",") == head.count(",") for row in rows)
    tools = f"{table}.parentElement.nextElementSibling"
    tab.ask(f"{tools}.querySelector('button').click()")
    result = f"new Promise(done => setTimeout(() => done({tools}.querySelector('output').textContent), 300))"
    assert tab.ask(result) == f"{len(rows)} rows copied"
    assert tab.ask(f"{tools}.querySelector('a').hash") == "#t-fields"


def test_without_its_script_a_page_is_whole(chromium: Chromium, answer: Path, tmp_path: Path) -> None:
    bare = tmp_path / "bare.html"
    bare.write_text(re.sub("<script>.*?</script>", "", answer.read_text(), flags=re.DOTALL))
    tab = chromium.open(bare, 390)
    controls = "[...document.querySelectorAll('input, select, button')]"
    assert tab.ask(f"{controls}.filter(each => each.checkVisibility()).length") == 0
    assert tab.ask("[...document.querySelectorAll('tr')].every(row => row.checkVisibility())")
    assert tab.ask("[...document.querySelectorAll('.scroll')].every(region => region.tabIndex === 0)")
