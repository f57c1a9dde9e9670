"""Pages pass an automated accessibility checker."""

import itertools
from pathlib import Path

from tests.browser.chromium import Chromium, Tab

WIDE_PX = 4000
ALL_BUT_CONTRAST = """axe.run(document, {rules: {"color-contrast": {enabled: false}}}).then(({violations}) =>
  violations.flatMap(({id, nodes}) => nodes.map(node => `${id}: ${node.html.slice(0, 200)}`)))"""
# With nothing clipped or wrapped, axe checks all contrasts except those in figures (see test_page.py).
CONTRAST = """(document.head.insertAdjacentHTML("beforeend", `<style>
  .scroll{overflow:visible!important;max-height:none!important} main{max-width:none!important}
  th,nav,.up{position:static!important} th{white-space:nowrap!important} caption{margin:0!important}</style>`),
axe.run(document, {runOnly: ["color-contrast"]})).then(({violations, incomplete}) =>
  [...violations, ...incomplete].flatMap(({nodes}) => nodes.map(node => node.html.slice(0, 200)))
    .filter(html => !html.startsWith("<text")))"""


def with_axe(tab: Tab, axe: str) -> Tab:
    tab.ask("document.querySelectorAll('details').forEach(each => each.open = true)")
    tab.ask(f"{axe};undefined")
    return tab


def check_accessible(chromium: Chromium, axe: str, page: Path, address: str = "") -> None:
    """Check a page, its contrasts on light and dark pages. Dark mode changes colours only."""
    assert with_axe(chromium.open(page, address=address), axe).ask(ALL_BUT_CONTRAST) == []
    for dark in (False, True):
        assert with_axe(chromium.open(page, WIDE_PX, dark=dark, address=address), axe).ask(CONTRAST) == []


def test_axe_finds_nothing(chromium: Chromium, axe: str, page: Path) -> None:
    check_accessible(chromium, axe, page)


def test_axe_finds_nothing_in_the_explorer(chromium: Chromium, axe: str, front: Path) -> None:
    check_accessible(chromium, axe, front, "#headers=2&records=0&formats=All+formats")


def test_axe_finds_what_is_wrong(chromium: Chromium, axe: str, answer: Path, tmp_path: Path) -> None:
    worse = tmp_path / "worse.html"
    worse.write_text(answer.read_text().replace(' lang="en"', "").replace("--ink:#1c1e21", "--ink:#dddddd"))
    tab = with_axe(chromium.open(worse), axe)
    assert [said.partition(":")[0] for said in tab.ask(ALL_BUT_CONTRAST)] == ["html-has-lang"]
    assert len(tab.ask(CONTRAST)) > 10


def test_the_first_key_skips_to_the_content(chromium: Chromium, page: Path) -> None:
    tab = chromium.open(page)
    tab.press("Tab")
    link = "document.activeElement.getBoundingClientRect()"
    assert tab.ask("document.activeElement.textContent") == "Skip to the content"
    assert tab.ask(f"{link}.top") >= 0
    tab.press("Enter", "\r")
    assert tab.ask("location.hash") == "#content"


def test_what_has_the_focus_shows_it(chromium: Chromium, page: Path) -> None:
    tab = chromium.open(page)
    seen: set[str] = set()
    for _ in range(120):
        tab.press("Tab")
        name, outline = tab.ask(
            "[document.activeElement.tagName, getComputedStyle(document.activeElement).outlineStyle]"
        )
        if name == "BODY" and seen:  # below the last element of a short page
            break
        seen.add(name)
        assert outline == "solid", name
    assert seen >= ({"A", "INPUT", "SELECT"} if tab.ask("document.body.className") == "front" else {"A", "BUTTON"})


def test_headings_go_down_one_at_a_time_and_figures_say_what_they_show(chromium: Chromium, page: Path) -> None:
    tab = chromium.open(page)
    levels = tab.ask("[...document.querySelectorAll('h1,h2,h3,h4')].map(each => Number(each.tagName[1]))")
    assert levels[0] == 1 and levels.count(1) == 1
    assert all(after <= before + 1 for before, after in itertools.pairwise(levels))
    figures = tab.ask("""[...document.querySelectorAll("figure")].map(each => [
      each.querySelector("svg[role=img]").getAttribute("aria-label"),
      Boolean(each.nextElementSibling?.querySelector("table"))])""")
    assert figures or not page.parent.name.startswith("what-if")  # a report's first questions have bars or a heat map
    for alt, has_table in figures:
        assert len(alt) > 40 and has_table
