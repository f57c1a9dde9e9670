"""Formats differ for all readers, also colour-blind ones, on light and dark pages. Compact pages look as before."""

import re
from itertools import combinations
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from numpy.typing import NDArray

from kfbench.formats import RESEARCH
from kfbench.present import look
from kfbench.present.calculator.data import SCRIPTS
from kfbench.present.compact import compact_script, compact_svg, compact_tables
from kfbench.present.names import PICTURED
from kfbench.present.page import TEMPLATES

# Colour blindness by Machado, Oliveira and Fernandes 2009, severity 1.0, linear RGB.
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
    seen = {name: lab(SIGHT[sight] @ linear(getattr(style, page))) for name, style in look.STYLES.items()}
    distances = {pair: float(np.linalg.norm(seen[pair[0]] - seen[pair[1]])) for pair in combinations(seen, 2)}
    assert min(distances.values()) >= 25, min(distances, key=lambda pair: distances[pair])


@pytest.mark.parametrize(("page", "background"), [("light", "#ffffff"), ("dark", "#15181c")])
def test_every_colour_stands_out_from_its_page(page: str, background: str) -> None:
    shades = {getattr(style, page) for style in [*look.STYLES.values(), look.OTHER]}
    assert all(contrast(shade, background) >= 3 for shade in shades)


def test_formats_differ_without_colour_too() -> None:
    marks = [style.marker for style in look.STYLES.values()]
    assert len(set(marks)) == len(marks)


def test_pictures_have_a_style_for_what_they_show() -> None:
    assert tuple(look.STYLES) == (*PICTURED, *RESEARCH)


FIGURE = """<svg viewBox="0 0 424.8 529.2">
<defs>
<style type="text/css">*{stroke-linejoin: round; stroke-linecap: butt}</style>
</defs>
<g>
<g/>
<g clip-path="url(#a)">
<path d="M 140.19 489.1 \nL 27.04 -5.25 \nC 1.19 2.25 -0.59 2.01 0.5 2.00 \nz\n" style="fill: none; stroke: red"/>
</g>
<text style="font-size: 12px; fill: currentColor" x="136.69" y="61.96">a b</text>
</g>
</svg>"""


def test_a_figure_keeps_its_shapes_texts_and_named_groups() -> None:
    small = compact_svg(FIGURE)
    assert small == (
        '<svg viewBox="0 0 424.8 529.2"><g clip-path="url(#a)">'
        '<path d="M140.2 489.1L27 -5.25C1.19 2.25 -0.59 2.01 0.5 2z" style="fill:none;stroke:red"/></g>'
        '<text style="font-size:12px" x="136.7" y="62">a b</text></svg>'
    )
    assert compact_svg(small) == small
    ET.fromstring(small)


@pytest.mark.parametrize("name", ["page.js", *SCRIPTS])
def test_a_script_loses_only_indentation_and_lines_of_comments(name: str) -> None:
    script = (TEMPLATES / name).read_text()
    assert not [line for line in script.splitlines() if line.count("`") % 2], "a text of several lines has spaces"
    code = [line.strip() for line in script.splitlines()]
    kept = [line for line in code if line and not re.fullmatch(r"//.*|/\*\*.*\*/", line)]
    assert compact_script(script).strip().splitlines() == kept


def test_a_table_loses_only_line_breaks_between_its_tags() -> None:
    assert compact_tables("<tr>\n<td>a\nb</td>\n</tr>\n<p>\n") == "<tr><td>a\nb</td></tr>\n<p>\n"
