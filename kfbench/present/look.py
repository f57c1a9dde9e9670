"""The colours and markers of formats and fields in figures, and how figures are put into a page.

A format has the same colour, marker and dash in all figures. The colours keep a CIELAB distance of 25 from one another,
in normal sight and under simulated protanopia, deuteranopia and tritanopia. They keep a contrast of 3:1 to their page
(tests/present/test_look.py). In the page, CSS variables replace the colours, so that dark mode can have other colours.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from kfbench.measure.floor import FLOOR
from kfbench.present.compact import compact_svg
from kfbench.present.table import slug
from kfbench.records import PAYLOAD

INK, GRID, PAPER = (
    "#1c1e21",
    "#d5d9de",
    "#fffffe",
)  # paper is not #ffffff, so that the page can find this colour and remove it


@dataclass(frozen=True, kw_only=True)
class Style:
    """The look of a format's line: its colours on a light and on a dark page, its marker and its dash pattern."""

    light: str
    dark: str
    marker: str
    dash: str | tuple[int, tuple[float, ...]]


STYLES: Mapping[str, Style] = MappingProxyType(
    {
        "v0": Style(light="#292928", dark="#f2f2f2", marker="s", dash=(0, (1, 1.6))),
        "v1": Style(light="#d07e06", dark="#eba607", marker="^", dash=(0, (5, 1.5))),
        "v2": Style(light="#0b45d0", dark="#3f6cf5", marker="o", dash="-"),
        "v3": Style(light="#ab1d0c", dark="#dc2f36", marker="D", dash="-"),
        "v3-attributes-only": Style(light="#a07acb", dark="#b088d4", marker="v", dash=(0, (4, 1.5, 1, 1.5))),
        "v3-header-only": Style(light="#10a37f", dark="#0abf82", marker="P", dash=(0, (2, 1.5))),
        "columnar": Style(light="#640678", dark="#905174", marker="h", dash=(0, (6, 1.5, 1, 1.5, 1, 1.5))),
    }
)
# The metadata floor has the colour of the text, and a marker that no format has.
LIMIT = Style(light=INK, dark="#e6e9ec", marker="|", dash="-")
OTHER = Style(light="#6e737a", dark="#a2a8b0", marker="x", dash=(0, (3, 1, 1, 1, 1, 1)))

# Groups of fields in the stacked bars, in an order that keeps neighbours distinct in grey. Colours: light, dark page.
GROUPS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "batch header": ("#10a37f", "#0abf82"),
        "offsets": ("#0b45d0", "#3f6cf5"),
        "lengths and counts": ("#d07e06", "#eba607"),
        "timestamps": ("#ab1d0c", "#dc2f36"),
        "attributes, magic": ("#292928", "#f2f2f2"),
        "CRC": ("#a07acb", "#b088d4"),
    }
)

# A word in the name of a field -> the group of the field. The first word that matches counts.
GROUP_WORDS: Mapping[str, str] = MappingProxyType(
    {
        "batch_header": "batch header",
        "timestamp": "timestamps",
        "crc": "CRC",
        "offset": "offsets",
        "length": "lengths and counts",
        "count": "lengths and counts",
        "size": "lengths and counts",
        "attributes": "attributes, magic",
        "magic": "attributes, magic",
    }
)


def group_of(field: str) -> str | None:
    """Return the group (a key of GROUPS) that a field belongs to; None for payload."""
    if field in PAYLOAD:
        return None
    return next((group for word, group in GROUP_WORDS.items() if word in field), "lengths and counts")


def style(name: str) -> Style:
    """Return the look of a format. Formats without their own style are all grey."""
    return LIMIT if name == FLOOR else STYLES.get(name, OTHER)


def css_variables(formats: Sequence[str], dark: bool) -> str:
    """Return CSS variables with the colours for a light or a dark page, for example `--k-v2:#0b45d0;...`.

    They cover these formats, all formats with a style, and all groups of fields.
    """
    shades = {slug(name): (style(name).dark if dark else style(name).light) for name in (*STYLES, *formats)}
    shades |= {slug(group): pair[dark] for group, pair in GROUPS.items()}
    return "".join(f"--{name}:{shade};" for name, shade in shades.items())


def inline(svg: str, name: str, description: str) -> str:
    """Prepare the SVG text of a figure for an HTML page.

    The XML prologue is removed. Ids get the prefix `name`. Colours become CSS variables, and the description becomes
    the alternative text. What a reader cannot see is left out (`compact_svg`).
    """
    body = svg[svg.index("<svg") :]
    body = re.sub(r"<metadata>.*?</metadata>\s*", "", body, flags=re.DOTALL)
    body = body.replace("xlink:href", "href")
    body = re.sub(
        r' id="[a-z0-9.]+_\d+"| transform="rotate\(-0 [^"]*"|font-family: [^;"]+; ', "", body
    )  # without effect
    body = re.sub(r'\b(id="|url\(#|href="#)', rf"\g<1>{name}-", body)
    body = re.sub(
        r'<svg [^>]*?viewBox="([^"]+)"[^>]*>', rf'<svg viewBox="\1" role="img" aria-label="{description}">', body
    )
    body = body.replace(INK, "currentColor").replace(GRID, "var(--grid)").replace(PAPER, "none")
    shades = {s.light: slug(n) for n, s in STYLES.items()}  # the groups use six of these shades
    for shade, variable in shades.items():
        body = body.replace(shade, f"var(--{variable})")
    body = body.replace(OTHER.light, "var(--other)")
    # Lines need a contrast of 3:1, text needs 4.5:1. So the colour of text is mixed with ink.
    body = re.sub(r"(<text [^>]*?fill: )(var\([^)]+\))", r"\1color-mix(in srgb, \2 70%, var(--ink))", body)
    return compact_svg(body)
