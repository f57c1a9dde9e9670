"""The index of reports shows the comparison of the two reports that were selected."""

from pathlib import Path

import pytest

from tests.browser.chromium import Chromium
from tests.browser.test_accessible import ALL_BUT_CONTRAST, CONTRAST, WIDE_PX, with_axe
from tests.browser.test_page import CUT

pytestmark = pytest.mark.browser
SHOWN = "[...document.querySelectorAll('article')].filter(each => each.checkVisibility()).map(each => each.id)"


def test_the_selected_pair_is_shown_and_named_in_the_address(chromium: Chromium, index: Path) -> None:
    tab = chromium.open(index)
    pairs = tab.ask("[...document.querySelectorAll('article')].map(each => each.id)")
    alike = tab.ask("[...document.querySelectorAll('article[data-alike]')].map(each => each.id)")
    assert len(pairs) > 1 and tab.ask(SHOWN) == (alike or pairs)[:1]
    older, newer = pairs[-1].split("..")
    for name, value in (("older", older), ("newer", newer)):
        tab.ask(f"""{{ const select = document.forms[0].elements.{name}; select.value = "{value}";
          select.dispatchEvent(new Event("change", {{bubbles: true}})) }}""")
    assert tab.ask(SHOWN) == pairs[-1:]
    assert tab.ask("location.hash") == f"#{pairs[-1]}"


def test_reports_that_were_not_compared_are_named(chromium: Chromium, index: Path) -> None:
    tab = chromium.open(index)
    tab.ask("""{ const {older, newer} = document.forms[0].elements;
      const pairs = [...document.querySelectorAll("article")];
      for (const a of older.options) for (const b of newer.options)
        if (!pairs.some(each => each.id === `${a.value}..${b.value}`)) [older.value, newer.value] = [a.value, b.value];
      older.dispatchEvent(new Event("change", {bubbles: true})) }""")
    assert tab.ask(SHOWN) == []
    assert "Not compared" in tab.ask("document.querySelector('#choice output').textContent")


@pytest.mark.parametrize("width", [360, 1280])
def test_only_the_table_and_the_comparison_scroll_sideways(chromium: Chromium, index: Path, width: int) -> None:
    tab = chromium.open(index, width)
    assert tab.ask("document.documentElement.scrollWidth") == width
    assert tab.ask(f'({CUT})("h1, h2, h3, p, form, pre, .scroll")') == []


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_axe_finds_nothing_in_the_index(chromium: Chromium, axe: str, index: Path, dark: bool) -> None:
    assert with_axe(chromium.open(index), axe).ask(ALL_BUT_CONTRAST) == []
    assert with_axe(chromium.open(index, WIDE_PX, dark=dark), axe).ask(CONTRAST) == []
