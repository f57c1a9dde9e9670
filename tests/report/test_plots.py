"""Figures: equal numbers give equal bytes, colours differ, and nothing is loaded from a network."""

import re
from itertools import pairwise
from xml.etree import ElementTree as ET

import numpy as np
import pandas as pd
import pytest

from kfbench.report.data.arms import Band
from kfbench.report.render import look, plots
from kfbench.report.render.plots import canvas, lines

SVG = "{http://www.w3.org/2000/svg}"


def overhead_frame() -> pd.DataFrame:
    index = pd.Index([1, 2, 5, 10, 100, 1000], name="batch_size")
    return pd.DataFrame({"v0": 26.0, "v2": 9 + 61 / index.to_numpy(), "v3": 8 + 49 / index.to_numpy()}, index=index)


def ratio_frame() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "label": ["1", "1", "10"],
            "format": ["v0", "v3", "v3"],
            "median": [2.0, 1.01, 0.98],
            "low": [1.9, 1.0, np.nan],
            "high": [2.1, 1.02, np.nan],
        }
    )


def floor() -> pd.Series:
    return overhead_frame()["v3"] / 4


FIGURES = {
    "overhead": lambda: plots.overhead(overhead_frame()),
    "floor": lambda: plots.overhead(overhead_frame(), floor=floor()),
    "winners": lambda: plots.winners(
        pd.DataFrame(
            [("10", "1", "v0 −45 %", "v0", 0.45), ("10", "2", "v3 −9.0 %", "v3", 0.09), ("100", "1", "tie", "", 0.0)],
            columns=["x", "y", "words", "format", "saving"],
        ),
        "value",
        "records per batch",
    ),
    "pareto": lambda: plots.pareto(
        {
            title: pd.DataFrame(
                [
                    ("v1", "", 1.2, 1.5, 1.4, 1.6, False, True),
                    ("v0", "times", 0.8, 0.6, 0.5, 0.7, False, False),
                    ("v2", "", 1.0, 0.7, 0.7, 0.7, True, False),
                    ("kip98", "", 0.9, 0.8, 0.7, 0.9, True, False),
                ],
                columns=["format", "lost", "bytes", "median", "low", "high", "front", "beyond"],
            )
            for title in ("encode", "decode", "encode, small")
        },
        "bytes",
        "CPU",
        Band(0.95, 1.05),
    ),
    "break_even": lambda: plots.break_even(overhead_frame().div(overhead_frame()["v2"], axis=0)),
    "steps": lambda: plots.steps(overhead_frame(), {64.0: "64 ms"}, "timestamp spread"),
    "stacked": lambda: plots.stacked(
        {"one": pd.DataFrame({"batch header": [0.0, 61.0], "offsets": [8.0, 1.0]}, index=["v0", "v2"])}
    ),
    "paths": lambda: plots.paths(
        {
            "none": pd.DataFrame({"label": ["append", "mirror"], "format": ["v0", "v3"], "median": [2.0, 0.3]}),
            "gzip": pd.DataFrame({"label": ["append"], "format": ["v2"], "median": [1.0]}),
            "zstd": pd.DataFrame({"label": ["mirror"], "format": ["v3-headers-first"], "median": [70.0]}),
        },
        "CPU",
    ),
    "growth": lambda: plots.growth(
        pd.DataFrame({f"w{i}": [0.05, 0.5 + i, None if i else 5.0] for i in range(7)}, index=[10**6, 10**7, 10**8])
    ),
    "ratios": lambda: plots.ratios({"encode": ratio_frame(), "decode": ratio_frame()}, "CPU", Band(0.99, 1.02)),
    "multiples": lambda: plots.multiples(
        {"one": pd.DataFrame({"v2": [1.0, 0.5], "columnar": [0.9, None]}, index=["no codec", "zstd 3"])}
    ),
    "histograms": lambda: plots.histograms(
        {
            "Lengths (bytes)": pd.DataFrame({"value": [0.75, 0.25], "key": [0.0, 1.0]}, index=["8", "16"]),
            "Batches (records)": pd.DataFrame({"batches": [1.0]}, index=["1"]),
        }
    ),
}


@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_is_the_same_every_time_and_says_no_date(name: str) -> None:
    first, second = FIGURES[name](), FIGURES[name]()
    assert first == second
    assert "<dc:date>" not in first
    ET.fromstring(first)


@pytest.mark.parametrize("name", FIGURES)
def test_an_inline_figure_is_self_contained_and_named(name: str) -> None:
    svg = look.inline(FIGURES[name](), "here", "what it shows")
    root = ET.fromstring(svg)
    assert root.get("role") == "img"
    assert root.get("aria-label") == "what it shows"
    ids = [each.get("id", "") for each in root.iter() if each.get("id")]
    assert ids
    assert all(each.startswith("here-") for each in ids)
    references = [v for e in root.iter() for v in e.attrib.values() if v.startswith(("#", "url(#"))]
    assert references
    assert all(v.strip("url()#") in ids for v in references)
    assert look.INK not in svg
    assert not [shade for style in look.STYLES.values() for shade in [style.light] if shade in svg]


def test_bars_of_a_histogram_are_as_high_as_their_shares() -> None:
    """The first panel has two bars of 75 % and 25 %. The SVG draws each bar as a path from the axis upwards."""
    svg = FIGURES["histograms"]()
    paths = [re.findall(r"-?[\d.]+", path) for path in re.findall(rf'd="([^"]+)"[^>]*fill: {look.OTHER.light}', svg)]
    heights = [max(ys) - min(ys) for ys in ([float(y) for y in path[1::2]] for path in paths)]
    assert len(heights) >= 3
    assert heights[0] == pytest.approx(3 * heights[1], rel=0.01)


def test_a_floor_that_goes_to_nothing_ends_with_the_picture() -> None:
    """A floor of 0 cannot be drawn on a logarithmic axis. The line ends at the edge of the figure."""
    gone = floor()
    gone.iloc[-1] = 0.0
    root = ET.fromstring(plots.overhead(overhead_frame(), floor=gone))
    height = float(root.attrib["viewBox"].split()[-1])
    drawn = [path.attrib["d"] for path in root.iter(f"{SVG}path")]
    places = [float(y) for d in drawn for y in re.findall(r"[ML] \S+ (\S+)", d)]
    assert places and max(places) <= height + 0.01
    xs, ys = lines.cut_at_edge(pd.Series([10.0, 1.0, 0.01], index=[1.0, 10.0, 100.0]), 0.1)
    assert xs == pytest.approx([1, 10, 10**1.5]) and ys == [10, 1, 0.1]
    assert lines.cut_at_edge(floor(), 0.1)[1] == list(floor())


def test_a_map_colours_no_tie_and_a_larger_saving_more() -> None:
    shades = dict(re.findall(r"fill: (#\w+); opacity: ([\d.]+)", FIGURES["winners"]()))
    old, new = look.STYLES["v0"].light, look.STYLES["v3"].light
    assert shades.keys() == {old, new, look.GRID} and float(shades[old]) > float(shades[new])


def test_what_loses_something_is_hollow() -> None:
    hollow = re.findall(r"fill-opacity: 0; stroke: (#\w+)", FIGURES["pareto"]())
    assert hollow.count(look.STYLES["v0"].light) == 3  # one in each of three panels
    assert look.STYLES["v2"].light not in hollow


def test_a_front_is_steps_for_no_format_lies_between_two() -> None:
    """The front is a line of horizontal and vertical segments that falls to the right."""
    dotted = re.findall(r'<path d="([^"]+)"[^>]*stroke-dasharray: 0.8,1.6', FIGURES["pareto"]())
    assert len(dotted) == 3
    for path in dotted:
        points = [tuple(map(float, point)) for point in re.findall(r"([\d.]+) ([\d.]+)", path)]
        assert all((x == a or y == b) and a >= x and b >= y for (x, y), (a, b) in pairwise(points))
        assert (len({x for x, _ in points}), len({y for _, y in points})) == (3, 2)  # two formats and the edge


def test_labels_that_would_touch_are_pushed_apart_in_order() -> None:
    placed = canvas.spread_labels([0.5, 0.1, 0.5, 0.51], gap=0.06)
    assert all(b - a >= 0.06 - 1e-5 for a, b in zip(sorted(placed), sorted(placed)[1:], strict=False))
    assert placed[1] == min(placed)
    assert placed[3] == max(placed)


def test_every_field_of_every_format_has_a_group() -> None:
    from kfbench import FORMATS, Records

    for fmt in FORMATS.values():
        groups = {field: plots.group_of(field) for field in fmt.breakdown(Records.from_lists([b"v"]))}
        assert {group for group in groups.values() if group} <= set(look.GROUPS)
        assert {field for field, group in groups.items() if group is None} <= {
            "key",
            "value",
            "header_key",
            "header_value",
        }


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("low", "high"), [(0.38, 1.27), (0.2, 1.1), (0.65, 2.0), (0.77, 1.6), (0.9, 3.9), (0.02, 1.3), (0.97, 1.05)]
)
@pytest.mark.parametrize("most", [4, 5, 6])
def test_a_short_range_has_more_than_two_ticks(low: float, high: float, most: int) -> None:
    ticks = canvas.ratio_ticks(low, high, most)
    assert 2 < len(ticks) <= most and 1 in ticks and all(low <= tick <= high for tick in ticks)
