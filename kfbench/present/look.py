"""The colours of formats and of groups of fields.

A format has the same colour in all pictures. The colours keep a CIELAB distance of 25 from one another,
in normal sight and under simulated protanopia, deuteranopia and tritanopia. They keep a contrast of 3:1 to their page
(tests/present/test_look.py). They are CSS variables, so that dark mode can have other colours.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from kfbench.present.table import slug
from kfbench.records import PAYLOAD

Shades = tuple[str, str]  # on a light and on a dark page

STYLES: Mapping[str, Shades] = MappingProxyType(
    {
        "v0": ("#292928", "#f2f2f2"),
        "v1": ("#d07e06", "#eba607"),
        "v2": ("#0b45d0", "#3f6cf5"),
        "v3": ("#ab1d0c", "#dc2f36"),
        "v3-attributes-only": ("#a07acb", "#b088d4"),
        "v3-header-only": ("#10a37f", "#0abf82"),
        "columnar": ("#640678", "#905174"),
    }
)
OTHER: Shades = ("#6e737a", "#a2a8b0")

# Groups of fields in the stacked bars, in an order that keeps neighbours distinct in grey. Colours: light, dark page.
GROUPS: Mapping[str, Shades] = MappingProxyType(
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


def css_variables(formats: Sequence[str], dark: bool) -> str:
    """Return CSS variables with the colours for a light or a dark page, for example `--k-v2:#0b45d0;...`.

    They cover these formats, all formats with a style, and all groups of fields.
    """
    shades = {slug(name): STYLES.get(name, OTHER)[dark] for name in (*STYLES, *formats)}
    shades |= {slug(group): pair[dark] for group, pair in GROUPS.items()}
    return "".join(f"--{name}:{shade};" for name, shade in shades.items())
