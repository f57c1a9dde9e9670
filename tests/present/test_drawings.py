"""Figures draw the numbers of their tables and nothing else, with equal bytes for equal numbers."""

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, Final
from xml.etree import ElementTree as ET

import numpy as np
import pytest

from kfbench import FORMATS, Records
from kfbench.errors import InvalidConfig
from kfbench.present import look
from kfbench.present.canvas import ratio_ticks, spread_labels, thinned
from kfbench.present.declaration import FigureView
from kfbench.present.drawings import DRAWINGS, draw
from kfbench.present.page import Figure
from kfbench.present.table import Column, Interval, Ranked, Table
from kfbench.records import PAYLOAD

V0, V2, V3 = (look.STYLES[name].light for name in ("v0", "v2", "v3"))
MARK: Final = re.compile(r'<use xlink:href="#\w+" x="([\d.]+)" y="([\d.]+)" style="fill: (#\w+)')


def table(name: str, columns: Sequence[str], *rows: tuple[Any, ...], unit: str = "") -> Table:
    heads = [Column(name=each, unit=unit if place else "") for place, each in enumerate(columns)]
    return Table(name=name, caption="", columns=tuple(heads), rows=rows)


SPAN: Final = Interval(median=0.5, low=0.4, high=0.8)
OVERHEAD: Final = table("overhead", ["n", "v0", "v2", "v3"], *((n, 26.0, 9 + 61 / n, 8 + 49 / n) for n in (1, 10, 100)))
TIMES: Final = table("times", ["n", "v0", "v3"], (1, 4.0, SPAN), (10, 2.0, 1.0), (100, None, 0.25))
GROUPS: Final = table(
    "groups", ["batches", "format", "batch header", "offsets", "all overhead"],
    ("alone", "v0", None, 8.0, 26.0), ("alone", "v2", 60.0, 1.0, 70.0), ("full", "v2", 0.5, 1.0, 9.0),
)  # fmt: skip
WINS: Final = table(
    "wins", ["n", "10", "1,000"],
    (1, Ranked("v0 −45 %", -0.45), Ranked("v3 −9.0 %", -0.09)), (10, Ranked("tie", 0.0), Ranked("v2", 0.0)),
)  # fmt: skip
BARS: Final = table("bars", ["batches", "v2 + dictionary", "columnar"], ("10 per batch", 0.5, 0.75), ("100", 1.0, None))
FLOOR: Final = table("floor", ["n", "v2", "floor"], (1, 70.0, 7.0), (10, 15.1, 0.6), (100, 9.6, 0.0))
PATHS: Final = table(
    "paths", ["codec", "path", "v2"], ("none", "append", 1.0), ("none", "mirror", 0.1), ("gzip", "append", 1.0)
)
FIGURES: Final[dict[str, tuple[str, list[Table], dict[str, Any]]]] = {
    "lines": ("lines", [OVERHEAD], {}),
    "steps": ("lines", [OVERHEAD], {"scale": "linear", "boundaries": {"10": "ten"}, "shown": ["v2", "v3"]}),
    "floor": ("lines", [FLOOR], {}),
    "dots": ("dots", [TIMES, replace(TIMES, name="again")], {}),
    "paths": ("dots", [PATHS], {"label": 2}),
    "bars": ("bars", [BARS], {}),
    "stacked": ("stacked", [GROUPS], {}),
    "map": ("map", [WINS], {}),
}


def figure(name: str, **changed: Any) -> Figure:
    drawing, tables, options = FIGURES[name]
    view = {
        "name": name,
        "drawing": drawing,
        "tables": [each.name for each in tables],
        "caption": "c",
        "alt": "what it is",
    }
    panels = ["encode", "decode"][: len(tables)] if len(tables) > 1 else []
    found = draw(FigureView(**{**view, "panels": panels, "options": options, **changed}), tables)
    assert found is not None
    return found


def marks(svg: str, *shades: str) -> list[tuple[float, float]]:
    """Return the places of all marks of these colours, in the order in which they are drawn."""
    return [(float(x), float(y)) for x, y, shade in MARK.findall(svg) if shade in shades]


def texts(svg: str) -> list[str]:
    return ["".join(each.itertext()).strip() for each in ET.fromstring(svg).iter() if each.tag.endswith("}text")]


def is_linear(places: Sequence[float], values: Sequence[float]) -> bool:
    """Return True if places are a linear function of the values, to 0.1 px."""
    fit = np.polyfit(values, places, 1)
    return bool(abs(fit[0]) > 1 and np.allclose(np.polyval(fit, values), places, atol=0.1))


def test_every_drawing_is_tried_here() -> None:
    assert {drawing for drawing, *_ in FIGURES.values()} == set(DRAWINGS)


@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_is_the_same_every_time_and_says_no_date(name: str) -> None:
    first, second = figure(name).svg, figure(name).svg
    assert first == second and "<dc:date>" not in first
    ET.fromstring(first)


@pytest.mark.parametrize("name", FIGURES)
def test_an_inline_figure_is_self_contained_and_named(name: str) -> None:
    svg = look.inline(figure(name).svg, "here", "what it shows")
    root = ET.fromstring(svg)
    assert root.get("role") == "img" and root.get("aria-label") == "what it shows"
    ids = [each.get("id", "") for each in root.iter() if each.get("id")]
    assert ids and all(each.startswith("here-") for each in ids)
    references = [v for e in root.iter() for v in e.attrib.values() if v.startswith(("#", "url(#"))]
    assert references and all(v.strip("url()#") in ids for v in references)
    assert look.INK not in svg
    assert not [style.light for style in look.STYLES.values() if style.light in svg]


def test_a_line_has_a_mark_per_number_on_two_logarithmic_axes() -> None:
    svg = figure("lines").svg
    numbers = [row[column] for column in (1, 2, 3) for row in OVERHEAD.rows]
    places = marks(svg, V0, V2, V3)
    assert len(places) == len(numbers)
    assert is_linear([y for _, y in places], np.log([float(n) for n in numbers]))  # type: ignore[arg-type]
    assert is_linear([x for x, _ in places], np.log([1.0, 10.0, 100.0] * 3))  # type: ignore[arg-type]


def test_only_formats_that_are_asked_for_are_drawn() -> None:
    svg = figure("steps").svg
    assert not marks(svg, V0) and len(marks(svg, V2)) == len(marks(svg, V3)) == 3
    assert is_linear([y for _, y in marks(svg, V2, V3)], [float(row[i]) for i in (2, 3) for row in OVERHEAD.rows])  # type: ignore[arg-type]
    assert "ten" in texts(svg)


def test_a_floor_of_nothing_ends_with_the_picture() -> None:
    """A floor of 0 has no place on a logarithmic axis."""
    root = ET.fromstring(figure("floor").svg)
    height = float(root.attrib["viewBox"].split()[-1])
    drawn = [path.attrib["d"] for path in root.iter("{http://www.w3.org/2000/svg}path")]
    places = [float(y) for d in drawn for y in re.findall(r"[ML] \S+ (\S+)", d)]
    assert places and max(places) <= height + 0.01 and "floor" in texts(figure("floor").svg)


def test_a_dot_stands_at_each_ratio_of_each_panel_with_its_interval() -> None:
    """Five ratios in two panels, and a mark for each format in the legend. One ratio has an interval."""
    svg = figure("dots").svg
    places, medians = marks(svg, V0, V3), [4.0, 0.5, 2.0, 1.0, 0.25]
    assert len(places) == 2 * len(medians) + 2
    for panel in (places[:5], places[5:10]):
        assert is_linear([x for x, _ in panel], np.log(medians))  # type: ignore[arg-type]
    bars = re.findall(
        r'<path d="M ([\d.]+) ([\d.]+) \nL ([\d.]+) \2 \n" clip-path="[^"]*" style="fill: none; stroke: #ab1d0c', svg
    )
    assert len(bars) == 2
    low, _, high = map(float, bars[0])
    assert is_linear([*(x for x, _ in places[:5]), low, high], np.log([*medians, SPAN.low, SPAN.high]))  # type: ignore[arg-type]


def test_rows_of_two_labels_have_a_panel_per_first_label() -> None:
    svg = figure("paths").svg
    assert len(marks(svg, V2)) == 3 + 1 and {"none", "gzip", "append", "mirror"} <= set(texts(svg))


def test_bars_of_a_stack_are_as_wide_as_their_numbers() -> None:
    svg = figure("stacked").svg
    shade = look.GROUPS["offsets"][0]
    found = re.findall(rf'<path d="M ([\d.]+) [\d.]+ \nL ([\d.]+) [^"]*"[^>]*style="fill: {shade}', svg)
    widths = [abs(float(b) - float(a)) for a, b in found]
    assert widths[0] == pytest.approx(8 * widths[1], rel=0.01)
    assert {"8.0", "61.0", "1.5"} <= set(texts(svg)) and {"alone", "full"} <= set(texts(svg))


def test_a_bar_has_its_name_and_its_number() -> None:
    assert {"v2 + dictionary 0.50", "v2 + dictionary 1.00", "columnar 0.75"} <= set(texts(figure("bars").svg))
    assert sum("columnar" in text for text in texts(figure("bars").svg)) == 1


def test_a_map_has_the_words_of_its_table_and_colours_no_tie_and_a_larger_saving_more() -> None:
    svg = figure("map").svg
    assert {"v0 −45 %", "v3 −9.0 %", "tie", "v2"} <= set(texts(svg))
    shades = dict(re.findall(r"fill: (#\w+); opacity: ([\d.]+)", svg))
    assert shades.keys() == {V0, V2, V3, look.GRID} and float(shades[V0]) > float(shades[V3]) > float(shades[V2])


def test_a_figure_names_the_tables_of_its_numbers() -> None:
    assert figure("lines").numbers == "overhead"
    assert figure("dots").numbers == {"encode": "times", "decode": "again"}


@pytest.mark.parametrize(
    ("drawing", "given"),
    [
        ("dots", table("bare", ["n"], (1,))),
        ("lines", table("words", ["word", "v2"], ("one", 1.0))),
        ("lines", table("floors", ["n", "floor"], (1, 2.0))),
        ("map", table("maps", ["n", "10"], (1, None))),
    ],
)
def test_without_a_number_there_is_no_figure(drawing: str, given: Table) -> None:
    assert draw(FigureView(name="none", drawing=drawing, tables=["t"], caption="", alt=""), [given]) is None


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"drawing": "linse"}, r"figure lines: no drawing linse; did you mean lines\?"),
        ({"options": {"colour": "red"}}, r"figure lines: .*'colour'"),
    ],
)
def test_an_unknown_drawing_or_option_is_refused(changed: dict[str, Any], why: str) -> None:
    with pytest.raises(InvalidConfig, match=why):
        figure("lines", **changed)


def test_every_field_of_every_format_has_a_group() -> None:
    for fmt in FORMATS.values():
        groups = {field: look.group_of(field) for field in fmt.breakdown(Records.from_lists([b"v"]))}
        assert {group for group in groups.values() if group} <= set(look.GROUPS)
        assert {field for field, group in groups.items() if group is None} <= set(PAYLOAD)


def test_labels_that_would_touch_are_pushed_apart_in_order() -> None:
    placed = spread_labels([0.5, 0.1, 0.5, 0.51], gap=0.06)
    assert all(b - a >= 0.06 - 1e-5 for a, b in pairwise(sorted(placed)))
    assert placed[1] == min(placed) and placed[3] == max(placed)


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("low", "high"), [(0.38, 1.27), (0.2, 1.1), (0.65, 2.0), (0.77, 1.6), (0.9, 3.9), (0.02, 1.3), (0.97, 1.05)]
)
@pytest.mark.parametrize("most", [4, 5, 6])
def test_a_short_range_has_more_than_two_ticks(low: float, high: float, most: int) -> None:
    ticks = ratio_ticks(low, high, most)
    assert 2 < len(ticks) <= most and 1 in ticks and all(low <= tick <= high for tick in ticks)


def test_many_levels_have_ticks_at_powers_of_ten() -> None:
    assert thinned([1, 2, 3]) == [1, 2, 3]
    assert thinned([1, 2, 3, 5, 10, 20, 50, 100, 1000]) == [1, 10, 100, 1000]
