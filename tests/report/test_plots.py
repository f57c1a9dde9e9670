"""Figures: the same bytes for the same numbers, colours that everyone can tell apart, nothing from a network."""

import re
from itertools import combinations
from xml.etree import ElementTree as ET

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

from kfbench.report import plots

SVG = "{http://www.w3.org/2000/svg}"
# Machado, Oliveira and Fernandes 2009, severity 1.0, linear RGB.
SIGHT = {
    "normal": np.eye(3),
    "protanopia": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    ),
    "deuteranopia": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
    ),
    "tritanopia": np.array(
        [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]]
    ),
}
TO_XYZ = np.array(
    [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]]
)


def linear(colour: str) -> NDArray[np.float64]:
    rgb = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    return np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)


def lab(rgb: NDArray[np.float64]) -> NDArray[np.float64]:
    xyz = TO_XYZ @ np.clip(rgb, 0, 1) / np.array([0.95047, 1.0, 1.08883])
    f = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def contrast(one: str, other: str) -> float:
    a, b = sorted(float(linear(colour) @ [0.2126, 0.7152, 0.0722]) for colour in (one, other))
    return (b + 0.05) / (a + 0.05)


@pytest.mark.parametrize("sight", SIGHT)
@pytest.mark.parametrize("page", ["light", "dark"])
def test_no_two_formats_look_alike_to_anyone(sight: str, page: str) -> None:
    seen = {name: lab(SIGHT[sight] @ linear(getattr(style, page))) for name, style in plots.STYLES.items()}
    distances = {pair: float(np.linalg.norm(seen[pair[0]] - seen[pair[1]])) for pair in combinations(seen, 2)}
    assert min(distances.values()) >= 25, min(distances, key=lambda pair: distances[pair])


@pytest.mark.parametrize(("page", "background"), [("light", "#ffffff"), ("dark", "#15181c")])
def test_every_colour_stands_out_from_its_page(page: str, background: str) -> None:
    shades = {getattr(style, page) for style in [*plots.STYLES.values(), plots.OTHER]}
    assert all(contrast(shade, background) >= 3 for shade in shades)


def test_formats_differ_without_colour_too() -> None:
    marks = [style.marker for style in plots.STYLES.values()]
    assert len(set(marks)) == len(marks)


def test_the_colours_of_the_page_are_those_of_the_style_sheet() -> None:
    from kfbench.report.publish import TEMPLATES

    css = (TEMPLATES / "style.css").read_text()
    assert f"--other:{plots.OTHER.light}" in css
    assert f"--other:{plots.OTHER.dark}" in css
    assert f"--grid:{plots.GRID}" in css
    assert "--page:#15181c" in css


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


FIGURES = {
    "overhead": lambda: plots.overhead(overhead_frame()),
    "break_even": lambda: plots.break_even(overhead_frame()),
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
    "ratios": lambda: plots.ratios({"encode": ratio_frame(), "decode": ratio_frame()}, "CPU", (0.99, 1.02)),
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
    svg = plots.inline(FIGURES[name](), "here", "what it shows")
    root = ET.fromstring(svg)
    assert root.get("role") == "img"
    assert root.get("aria-label") == "what it shows"
    ids = [each.get("id", "") for each in root.iter() if each.get("id")]
    assert ids
    assert all(each.startswith("here-") for each in ids)
    references = [v for e in root.iter() for v in e.attrib.values() if v.startswith(("#", "url(#"))]
    assert references
    assert all(v.strip("url()#") in ids for v in references)
    assert plots.INK not in svg
    assert not [shade for style in plots.STYLES.values() for shade in [style.light] if shade in svg]


def test_bars_of_a_histogram_are_as_high_as_their_shares() -> None:
    """Of the one panel with two bars, 75 % and 25 %: the SVG draws each as a path from the axis up."""
    svg = FIGURES["histograms"]()
    paths = [re.findall(r"-?[\d.]+", path) for path in re.findall(rf'd="([^"]+)"[^>]*fill: {plots.OTHER.light}', svg)]
    heights = [max(ys) - min(ys) for ys in ([float(y) for y in path[1::2]] for path in paths)]
    assert len(heights) >= 3
    assert heights[0] == pytest.approx(3 * heights[1], rel=0.01)


@pytest.mark.parametrize("name", ["overhead", "break_even"])
def test_lines_are_named_at_their_ends(name: str) -> None:
    root = ET.fromstring(FIGURES[name]())
    texts = [text.text for text in root.iter(f"{SVG}text")]
    assert {"v0", "v2", "v3"} <= set(texts)


def test_labels_that_would_touch_are_pushed_apart_in_order() -> None:
    placed = plots._spread([0.5, 0.1, 0.5, 0.51], gap=0.06)
    assert all(b - a >= 0.06 - 1e-5 for a, b in zip(sorted(placed), sorted(placed)[1:], strict=False))
    assert placed[1] == min(placed)
    assert placed[3] == max(placed)


def test_every_field_of_every_format_has_a_group() -> None:
    from kfbench import FORMATS, Records

    for fmt in FORMATS.values():
        groups = {field: plots.group_of(field) for field in fmt.breakdown(Records.from_lists([b"v"]))}
        assert {group for group in groups.values() if group} <= set(plots.GROUPS)
        assert {field for field, group in groups.items() if group is None} <= {
            "key",
            "value",
            "header_key",
            "header_value",
        }
