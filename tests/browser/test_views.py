"""The views in a real browser: questions, chips, bases, the address, three drawings, copies and keys."""

import itertools
import re
from pathlib import Path

import pytest

from kfbench.present.calculator.data import script_json
from kfbench.present.table import Table, plain_columns
from tests.browser.chromium import Chromium, Tab
from tests.browser.test_accessible import check_accessible

SIZES = dict(
    zip(itertools.product(("v2", "v3"), (1, 10, 100)), (186.0, 131.1, 125.97, 173.0, 128.9, None), strict=True)
)
CELLS = list(itertools.product(("v2", "v3"), (1, 10, 100), ("none", "zstd 3")))
PLAIN = [(SIZES[name, n], 1 if codec == "none" else 4) for name, n, codec in CELLS]
BYTES = [40.0, *(size and round(size / factor, 2) for size, factor in PLAIN)]  # the first row is the floor
VALUES = {"format": ["v2", "v3", "floor"], "records": ["1", "10", "100"], "codec": ["none", "zstd 3"]}
ROWS = [("floor", 1, "none"), *CELLS]
VIEW = {
    "dims": {
        "format": {"label": "format", "values": VALUES["format"], "numbers": None},
        "records": {"label": "records per batch", "values": VALUES["records"], "numbers": [1, 10, 100]},
        "codec": {"label": "codec", "values": VALUES["codec"], "numbers": None, "names": ["", "zstd 3"]},
    },
    "metrics": {
        "bytes": {"label": "bytes per record", "unit": "bytes", "digits": 1, "scale": 0.01},
        "encode": {"label": "encode", "unit": "ns", "digits": 0, "scale": 1},
    },
    "columns": {
        **{dim: [VALUES[dim].index(str(row[i])) for row in ROWS] for i, dim in enumerate(VALUES)},
        "bytes": [None if size is None else round(size * 100) for size in BYTES],
        **{"encode" + end: [None, *range(at, at + 12)] for end, at in (("", 30), ("_low", 29), ("_high", 33))},
    },
    "run": "Measured on a fast machine. Noisy run: 3 of 7.",
    "cite": {"source": "kfbench 9", "revision": "abc", "table": "explore"},
}  # fmt: skip
SAME = {"view": "cells", "metric": "bytes", "beside": ["encode"], "label": [], "one": ["codec"], "is_log": False}
PRESETS = [
    SAME | {"id": "bars", "title": "What saves?", "drawing": "bars", "label": ["format", "records", "codec"],
            "where": {"codec": ["none"], "records": ["1", "10"]}, "chips": ["records", "codec"], "order": "descending",
            "base": {"format": "v2", "records": "1"}, "of_base": False, "caption": "<b>Exact.</b>"},
    SAME | {"id": "heat", "title": "Is v3 worth it?", "drawing": "heat", "where": {"format": ["v3"]}, "chips": [],
            "x": "records", "y": "codec", "base": {"format": "v2"}, "of_base": True, "order": "stored", "caption": ""},
    SAME | {"id": "line", "title": "How large?", "drawing": "line", "where": {"format": ["v2", "v3"]},
            "chips": ["codec"], "x": "records", "series": "format", "base": None, "of_base": False, "caption": ""},
    SAME | {"id": "both", "title": "As you like", "drawing": "bars", "label": ["records"], "where": {"records": ["1"]},
            "one": ["records"], "chips": ["codec", "records"], "x": "records", "y": "codec", "series": "format",
            "order": "ascending", "base": None, "of_base": False, "caption": ""},
    {"id": "text", "title": "Cite", "view": None, "drawing": "text", "text": "<pre>Cite it.</pre>", "caption": ""},
]  # fmt: skip
TABLE = """[...document.querySelectorAll("#views tbody tr")].map(row =>
  [...row.cells].map(cell => cell.innerText.trim().replaceAll(String.fromCharCode(160), ' ')))"""
PRESSED = "[...document.querySelectorAll('#views [aria-pressed=true]')].map(each => each.textContent)"
COUNT = "document.querySelector('#views [role=status]').textContent"
NOTE = "document.querySelector('#views [role=alert]')"


@pytest.fixture(scope="module")
def page(answer: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page with views and the calculator."""
    path = tmp_path_factory.mktemp("views") / "index.html"
    data = script_json({"views": {"cells": VIEW}, "presets": PRESETS})
    plain = Table(name="plain", caption="What saves?", columns=plain_columns("row", "bytes"), rows=(("v2, 1", 186.0),))
    views = f'<section id="views" aria-label="Measurements">{plain.to_html()}</section>\
<script type="application/json" id="kfbench-views">{data}</script>'
    own = re.compile(r'<section id="views".*?</script>', re.DOTALL)  # those of what-if
    text, count = own.subn(lambda _: views, answer.read_text())
    assert count == 1
    path.write_text(text)
    return path


def click(tab: Tab, text: str) -> None:
    tab.ask(f"[...document.querySelectorAll('#views button')].find(each => each.textContent === {text!r}).click()")


def copied(tab: Tab, text: str) -> str:
    """Return what a click on the first button with this text copies."""
    tab.ask("globalThis.copyText = async text => { globalThis.copied = text; }, undefined")
    click(tab, text)
    return str(tab.ask("globalThis.copied"))


def test_bars_have_the_rows_of_the_chips_and_a_base(chromium: Chromium, page: Path) -> None:
    tab = chromium.open(page)
    assert [row[:1] + row[2:5] for row in tab.ask(TABLE)] == [
        ["floor, 1 records per batch", "40.0", "−78.5 %", "–"],
        ["v2, 1 records per batch", "186.0", "base", "30\n29–33"],
        ["v3, 1 records per batch", "173.0", "−7.0 %", "36\n35–39"],
        ["v2, 10 records per batch", "131.1", "−29.5 %", "32\n31–35"],
        ["v3, 10 records per batch", "128.9", "−30.7 %", "38\n37–41"],
    ]
    assert tab.ask(COUNT) == "5 of 13 rows shown." and tab.ask(PRESSED)[:4] == ["What saves?", "1", "10", "none"]
    assert "Noisy run: 3 of 7." in tab.ask("document.getElementById('views').innerText")
    tab.ask("document.querySelectorAll('#views tbody th button')[3].focus()")
    tab.press("Enter", "\r")
    assert [row[3] for row in tab.ask(TABLE)] == ["−69.5 %", "+41.9 %", "+32.0 %", "base", "−1.7 %"]
    assert tab.ask("document.activeElement.textContent") == "v2, 10 records per batch"
    for chip, rows in (("1", 2), ("10", 7), ("1", 4), ("10", 2)):  # without a last value all come back
        click(tab, chip)
        assert len(tab.ask(TABLE)) == rows
    assert tab.complaints() == []


def test_the_address_keeps_the_state_beside_the_calculators(chromium: Chromium, page: Path) -> None:
    tab = chromium.open(page, address="#records=250&view=bars&records=100&codec=zstd+3&base=v2_100")
    assert tab.ask("document.getElementById('n-records').value") == "250"
    assert [row[0] for row in tab.ask(TABLE)] == [f"{name}, 100 records per batch, zstd 3" for name in ("v2", "v3")]
    click(tab, "10")
    assert tab.ask("location.hash") == "#records=250&view=bars&records=100&records=10&codec=zstd+3&base=v2_100"
    tab.ask("""(field => { field.value = 17; field.dispatchEvent(new Event("change")); })(
      document.getElementById("n-key_bytes"))""")
    kept = tab.ask("location.hash")
    assert "key_bytes=17" in kept and kept.endswith("&view=bars&records=100&records=10&codec=zstd+3&base=v2_100")
    rows = tab.ask(TABLE)
    again = chromium.open(page, address=kept)
    assert again.ask(TABLE) == rows and again.ask(f"{NOTE}.hidden")
    click(again, "Is v3 worth it?")
    assert again.ask("location.hash").endswith("&view=heat")


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("view=none%3Cb%3E", "“none<b>” is no view of this page."),
        ("view=bars&records=70&records=1e99", "70 was not measured. 100 is used."),
        ("view=bars&codec=lz4", "codec: “lz4” is not a choice here."),
        ("view=bars&format=v2", "“format” is no setting of this view."),
        ("view=bars&base=v9_1", "base: “v9_1” is no row of this view."),
    ],
)
def test_what_an_address_has_wrong_is_said(chromium: Chromium, page: Path, address: str, said: str) -> None:
    tab = chromium.open(page, address=f"#{address}")
    assert said in tab.ask(f"{NOTE}.textContent") and tab.ask(f"{NOTE}.checkVisibility()")
    assert len(tab.ask(TABLE)) >= 2 and tab.complaints() == []
    click(tab, "10")
    assert tab.ask(f"{NOTE}.hidden")


def test_rows_are_copied_unrounded_and_cited(chromium: Chromium, page: Path) -> None:
    tab = chromium.open(page, address="#view=bars&records=100")
    head, *lines = copied(tab, "Copy CSV").splitlines()
    assert head == "format,records,codec,bytes,encode,encode_low,encode_high"
    assert lines == ["v2,100,none,125.97,34,33,37", "v3,100,none,,40,39,43"]
    sentence = copied(tab, "cite")
    for part in ("125.97 bytes per record, −32.3", "Scope: format v2, records per batch 100, codec none", "kfbench 9",
                 "Measured on a fast machine. Noisy run", "revision abc", "tables.json: explore, row 6"):  # fmt: skip
        assert part in sentence
    assert tab.ask("document.querySelector('#views output').textContent").endswith(sentence)


def test_a_heat_map_and_a_line_have_the_numbers_of_the_json(chromium: Chromium, page: Path) -> None:
    tab = chromium.open(page, address="#view=heat")
    size = dict(zip(ROWS, BYTES, strict=True))
    for codec in VALUES["codec"]:
        changes = [100 * (size["v3", n, codec] / size["v2", n, codec] - 1) for n in (1, 10)]  # type: ignore[operator]
        assert [codec, *(f"{change:.1f} %".replace("-", "−") for change in changes), "–"] in tab.ask(TABLE)
    assert "against 186 bytes per record of format v2. Scope: format v3, records" in copied(tab, "−7.0\u00a0%")
    line = chromium.open(page, address="#view=line&codec=none")
    assert line.ask("document.querySelector('#views svg[role=img]').getAttribute('aria-label')") == (
        "bytes per record, over records per batch: v2 from 186 to 125.97; v3 from 173 to 128.9."
    )
    assert line.ask("[...document.querySelectorAll('#views svg .label')].map(each => each.textContent)") == ["v3", "v2"]
    assert line.ask("document.querySelectorAll('#views svg circle').length") == 5  # of six cells one was not measured
    line.ask("document.querySelector('#views details').open = true")
    assert line.ask(TABLE) == [["v2", "186.0", "131.1", "126.0"], ["v3", "173.0", "128.9", "–"]]


def test_the_same_cells_are_drawn_in_three_ways_and_the_address_keeps_it(chromium: Chromium, page: Path) -> None:
    tab = chromium.open(page, address="#view=both")
    assert {row[2] for row in tab.ask(TABLE)} == {"40.0", "46.5", "43.3", "186.0", "173.0"}
    click(tab, "heat map")
    assert tab.ask("location.hash").endswith("#view=both&as=heat")
    click(tab, "line")
    assert tab.ask("document.querySelectorAll('#views svg circle').length") == 6  # records had one value, and has all
    again = chromium.open(page, address=tab.ask("location.hash"))
    assert {"As you like", "line"} <= {*again.ask(PRESSED)} and again.ask("location.hash").endswith("&as=line")
    wrong = chromium.open(page, address="#view=both&as=pie")
    assert "“pie” is no drawing of this view." in wrong.ask(f"{NOTE}.textContent") and len(wrong.ask(TABLE)) == 5


def test_keys_choose_questions_and_chips(chromium: Chromium, page: Path) -> None:
    tab = chromium.open(page)
    tab.ask("document.querySelector('#views .pills button').focus()")
    tab.press("Tab")
    tab.press("Enter", "\r")
    assert tab.ask("document.activeElement.textContent") == "Is v3 worth it?"
    assert "Is v3 worth it?" in tab.ask(PRESSED) and tab.ask(COUNT) == "6 of 13 rows shown."
    click(tab, "Cite")
    assert tab.ask("document.querySelector('#views pre').textContent") == "Cite it."


@pytest.mark.parametrize("width", [360, 1280])
@pytest.mark.parametrize("view", ["bars", "heat", "line"])
def test_nothing_is_cut(chromium: Chromium, page: Path, view: str, width: int) -> None:
    tab = chromium.open(page, address=f"#view={view}", width=width)
    assert tab.ask("document.documentElement.scrollWidth") == width
    cells = "document.querySelectorAll('#views :is(th, td, svg text)')"
    assert tab.ask(f"""[...{cells}].every(each => !each.checkVisibility()
      || each.getBoundingClientRect().right <= document.documentElement.clientWidth)""")


def test_each_choice_of_each_question_keeps_the_base(chromium: Chromium, front: Path) -> None:
    """The base of bars is the preset's, in what the reader chose, wherever that was measured."""
    tried = 0
    for path in sorted(front.parent.glob("*.html")):
        tab = chromium.open(path)
        data = tab.ask("JSON.parse(document.getElementById('kfbench-views')?.textContent ?? '{}')")
        for preset in (each for each in data.get("presets", []) if each["drawing"] == "bars" and each["base"]):
            view, one, where = data["views"][preset["view"]], preset["one"], preset["where"]
            dims, columns, metric = view["dims"], view["columns"], preset["metric"]
            for name, value in [(each, value) for each in one for value in dims[each]["values"]]:
                first = {each: where.get(each, dims[each]["values"])[0] for each in one}
                wanted = {**preset["base"], **first, name: value}
                at = {each: dims[each]["values"].index(word) for each, word in wanted.items()}
                rows = range(len(columns[metric]))
                sizes = [columns[metric][row] for row in rows if all(columns[each][row] == at[each] for each in at)]
                address = f"'view={preset['id']}&{name}=' + encodeURIComponent({value!r})"
                tab.ask(f"location.hash = {address}, undefined")
                found = tab.ask(f"new Promise(done => setTimeout(() => done({TABLE}), 20))")
                base = [row[2] for row in found if "base" in row[3:5]]
                if len(sizes) == 1 and sizes[0] is not None and base:
                    size = sizes[0] * view["metrics"][metric]["scale"]
                    assert float(base[0].replace(",", "")) == pytest.approx(size, rel=0.006), (preset["id"], wanted)
                    tried += 1
    assert tried >= 40


@pytest.mark.parametrize("view", ["bars", "heat", "line", "wrong"])
def test_axe_finds_nothing_in_the_views(chromium: Chromium, axe: str, page: Path, view: str) -> None:
    check_accessible(chromium, axe, page, f"#view={view}")
