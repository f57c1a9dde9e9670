"""A report in a real browser: phone and desktop, light and dark, printed, and without a network."""

import re
from pathlib import Path

import pytest

from tests.browser.chromium import Chromium, Tab

pytestmark = pytest.mark.browser
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


def test_what_scrolls_says_so_and_takes_the_keyboard(chromium: Chromium, page: Path) -> None:
    tab = chromium.open(page, 360)
    tab.ask("document.querySelectorAll('details').forEach(each => each.open = true)")
    regions = tab.ask("""new Promise(done => requestAnimationFrame(() => setTimeout(() => done(
      [...document.querySelectorAll(".scroll")].filter(each => each.checkVisibility()).map(each => [
        each.scrollWidth - each.clientWidth, each.scrollHeight - each.clientHeight, each.tabIndex === 0,
        each.classList.contains("more")])))))""")
    for sideways, down, focusable, hint in regions:
        assert (focusable, hint) == (sideways > 0 or down > 0, sideways > 1)
    if tab.ask("document.body.className") == "front":  # its one table may fit
        return
    assert any(hint for *_, hint in regions) and not all(sideways for sideways, *_ in regions)
    cell = 'document.querySelector(".scroll.more tbody th").getBoundingClientRect().left'
    before = tab.ask(cell)
    tab.ask('document.querySelector(".scroll.more").scrollLeft = 1e6')
    assert tab.ask(cell) == pytest.approx(before, abs=1)  # the first column stays visible


@pytest.mark.thorough
@pytest.mark.parametrize(("width", "height"), [(390, 844), (1280, 900)])
def test_the_first_screen_has_the_verdict_and_a_picture(
    chromium: Chromium, front: Path, width: int, height: int
) -> None:
    tab = chromium.open(front, width, height)
    for what, screens in ((".lead", 1), ("figure svg", 1), (".cards li", 2)):
        assert tab.ask(f'document.querySelector("{what}").getBoundingClientRect().bottom') < screens * height


@pytest.mark.parametrize(("width", "height"), [(360, 640), (1280, 720)])
def test_the_first_screen_of_a_what_if_has_the_answer(
    chromium: Chromium, answer: Path, width: int, height: int
) -> None:
    tab = chromium.open(answer, width, height)
    bottoms = tab.ask("""[".lead", ".cards li:nth-child(2)"].map(
      what => document.querySelector(what).getBoundingClientRect().bottom)""")
    assert max(bottoms) < height
    for what in (".lead", ".cards b"):
        assert re.search(r"\d", tab.ask(f'document.querySelector("{what}").textContent'))


@pytest.mark.parametrize("width", [1280, 1400])
def test_no_table_of_a_what_if_is_cut_off_on_a_desk(chromium: Chromium, answer: Path, width: int) -> None:
    cut = """[...document.querySelectorAll("#verdict .scroll, #explorer .scroll")].filter(
      each => each.scrollWidth > each.clientWidth).map(each => each.getAttribute("aria-labelledby"))"""
    assert chromium.open(answer, width).ask(cut) == []


@pytest.mark.thorough
@pytest.mark.parametrize("width", [390, 1280])
def test_the_contents_follow_the_reader(chromium: Chromium, chapter: Path, width: int) -> None:
    tab = chromium.open(chapter, width)
    for name in ("block-ablation", "fields"):
        assert jumped(tab, name) == 0
        seen = tab.ask("""(({top, bottom}) => top >= 0 && bottom <= innerHeight)(
          document.querySelector("nav [aria-current]").getBoundingClientRect())""")
        assert seen == (width == 1280)  # on a phone the contents are above all sections


@pytest.mark.thorough
def test_the_contents_stay_where_the_focus_is(chromium: Chromium, chapter: Path) -> None:
    tab = chromium.open(chapter, 1280, 500)
    tab.ask("document.querySelector('nav li a').focus()")
    jumped(tab, "block-ablation")
    assert tab.ask("document.querySelector('nav').scrollTop") == 0
    tab.ask("document.activeElement.blur()")
    jumped(tab, "fields")
    jumped(tab, "block-ablation")
    assert tab.ask("document.querySelector('nav').scrollTop") > 0


def jumped(tab: Tab, name: str) -> float:
    """Scroll to a section and wait until the contents mark it. Return how far the page moved meanwhile, in pixels."""
    moved: float = tab.ask(f"""new Promise((done, failed) => {{
      document.getElementById("{name}").scrollIntoView();
      const at = scrollY, gone = setTimeout(failed, 20000);
      const look = setInterval(() => {{
        if (document.querySelector("nav [aria-current]")?.hash !== "#{name}") return;
        clearInterval(look);
        clearTimeout(gone);
        done(scrollY - at);
      }}, 50);
    }})""")
    return moved


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


# sRGB from 0 to 1: the page, each text of a figure with its background, lines and swatches.
COLOURS = """(() => {
  const canvas = document.createElement("canvas").getContext("2d", {willReadFrequently: true});
  const painted = (...layers) => {
    for (const [colour, alpha] of layers) {
      Object.assign(canvas, {globalAlpha: alpha, fillStyle: colour}).fillRect(0, 0, 1, 1);
    }
    return [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3).map(each => each / 255);
  };
  const all = (what, which) => [...new Set([...document.querySelectorAll(what)].map(
    each => getComputedStyle(each)[which]))].map(colour => painted([colour, 1]));
  const page = [getComputedStyle(document.body).backgroundColor, 1];
  const words = [...document.querySelectorAll("figure text")].map(text => {
    text.scrollIntoView({block: "center"});
    const {left, top, width, height} = text.getBoundingClientRect();
    const behind = document.elementsFromPoint(left + width / 2, top + height / 2)
      .filter(each => each.matches("svg *:not(text)")).map(each => getComputedStyle(each))
      .filter(({fill}) => fill !== "none");
    const layers = behind.reverse().map(({fill, fillOpacity, opacity}) => [fill, fillOpacity * opacity]);
    return [painted([getComputedStyle(text).fill, 1]), painted(page, ...layers)];
  });
  const marks = [...all(".sw", "backgroundColor"), ...all("figure path[style*='stroke: var(--k']", "stroke")];
  return {page: painted(page), words, marks};
})()"""


def contrast(one: list[float], other: list[float]) -> float:
    """Return the contrast ratio by WCAG 2.2."""

    def luminance(rgb: list[float]) -> float:
        red, green, blue = (v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in rgb)
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_figures_and_swatches_stand_out(chromium: Chromium, page: Path, dark: bool) -> None:
    found = chromium.open(page, dark=dark).ask(COLOURS)
    assert (max(found["page"]) < 0.2) == dark
    assert found["words"] and min(contrast(word, behind) for word, behind in found["words"]) >= 4.5
    assert found["marks"] and min(contrast(mark, found["page"]) for mark in found["marks"]) >= 3


def test_every_colour_of_a_page_is_given_one(page: Path) -> None:
    text = page.read_text()
    assert set(re.findall(r"var\((--[\w-]+)", text)) <= set(re.findall(r"[{;](--[\w-]+):", text))


def test_on_paper_nothing_is_folded_away_or_cut(chromium: Chromium, page: Path) -> None:
    tab = chromium.open(page, PAPER_PX, 1000, dark=True, media="print")
    assert tab.ask("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert tab.ask('[...document.querySelectorAll("nav, .filter label, .skip")].filter(e => e.checkVisibility())') == []
    tab.ask('dispatchEvent(new Event("beforeprint"))')
    assert tab.ask('[...document.querySelectorAll("table")].every(each => each.checkVisibility())')
    assert tab.ask(f'({CUT})("p, figure, pre, dl, table")') == []
    tab.ask('dispatchEvent(new Event("afterprint"))')
    assert tab.ask('document.querySelectorAll("details[open]").length') == 0


@pytest.mark.thorough
def test_folded_tables_are_printed(chromium: Chromium, chapter: Path) -> None:
    tab = chromium.open(chapter)
    pages = sheets(tab.pdf())
    tab.ask('document.querySelectorAll("details").forEach(each => each.remove())')
    assert 0 < sheets(tab.pdf()) < pages


@pytest.mark.thorough
def test_the_front_page_is_printed_on_three_sheets(chromium: Chromium, front: Path) -> None:
    assert sheets(chromium.open(front).pdf()) <= 3


def sheets(pdf: bytes) -> int:
    """Return the number of pages of a PDF."""
    assert pdf.startswith(b"%PDF-")
    return len(re.findall(rb"/Type\s*/Page\b", pdf))
