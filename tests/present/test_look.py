"""Formats differ for all readers, also colour-blind ones, on light and dark pages. Compact pages look as before."""

import re
from itertools import combinations

import numpy as np
import pytest
from numpy.typing import NDArray

from kfbench.present import look
from kfbench.present.calculator.data import SCRIPTS
from kfbench.present.page import PAGE_SCRIPTS, SHARED_SCRIPTS, TEMPLATES, compact_script, compact_tables

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
@pytest.mark.parametrize("page", [0, 1], ids=["light", "dark"])
def test_no_two_formats_look_alike_to_anyone(sight: str, page: int) -> None:
    seen = {name: lab(SIGHT[sight] @ linear(shades[page])) for name, shades in look.STYLES.items()}
    distances = {pair: float(np.linalg.norm(seen[pair[0]] - seen[pair[1]])) for pair in combinations(seen, 2)}
    assert min(distances.values()) >= 25, min(distances, key=lambda pair: distances[pair])


@pytest.mark.parametrize(("page", "background"), [(0, "#ffffff"), (1, "#15181c")])
def test_every_colour_stands_out_from_its_page(page: int, background: str) -> None:
    shades = {each[page] for each in [*look.STYLES.values(), look.OTHER]}
    assert all(contrast(shade, background) >= 3 for shade in shades)


@pytest.mark.parametrize("name", [*SHARED_SCRIPTS, *PAGE_SCRIPTS, *SCRIPTS])
def test_a_script_loses_only_indentation_and_lines_of_comments(name: str) -> None:
    script = (TEMPLATES / name).read_text()
    assert not [line for line in script.splitlines() if line.count("`") % 2], "a text of several lines has spaces"
    code = [line.strip() for line in script.splitlines()]
    kept = [line for line in code if line and not re.fullmatch(r"//.*|/\*\*.*\*/", line)]
    assert compact_script(script).strip().splitlines() == kept


def test_a_table_loses_only_line_breaks_between_its_tags() -> None:
    assert compact_tables("<tr>\n<td>a\nb</td>\n</tr>\n<p>\n") == "<tr><td>a\nb</td></tr>\n<p>\n"
