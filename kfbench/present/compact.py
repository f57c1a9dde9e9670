"""Make the style, the scripts and the figures of a page smaller without a change that a reader can see."""

import re
from typing import Final

_COORDINATES: Final = re.compile(r' (d|x|y|points|transform)="([^"]*)"')
_STYLE: Final = re.compile(r' style="[^"]*"')
_GRID: Final = r'(?: clip-path="[^"]*")? style="fill:none;stroke:var\(--grid\);stroke-width:0.6;stroke-linecap:square"'
_TICK: Final = ' style="fill:currentColor;stroke:currentColor;stroke-width:0.8"/>'  # as the mark that it uses
_LARGE: Final = re.compile(r"-?\d{2,}\.\d+")  # small numbers are the shapes of markers, and keep their digits
_GROUP: Final = re.compile(r"<g>|<g [^>]*>|</g>")
_COMMENT: Final = re.compile(r"^\s*(?://.*|/\*\*.*\*/)\n", re.MULTILINE)  # only those that have lines of their own


def compact_svg(svg: str) -> str:
    """Round coordinates of 10 px and more to 0.1 px. Remove spaces, groups without attributes, and repeated styles."""
    body = re.sub(r"<g/>|<defs>\s*<style[^>]*>[^<]*</style>\s*</defs>", "", svg)  # style.css has the rules
    body = _COORDINATES.sub(_shorter, body)
    body = _STYLE.sub(lambda found: found[0].replace(": ", ":").replace("; ", ";"), body)
    body = re.sub(r'(<text style="[^"]*);fill:currentColor"', r'\1"', body)  # the default of style.css
    body = re.sub(rf"(<use [^<>]*?){re.escape(_TICK)}", r"\1/>", re.sub(_GRID, ' class="gl"', body))
    return re.sub(r">\s+<", "><", _without_bare_groups(body))


def _shorter(attribute: re.Match[str]) -> str:
    name, value = attribute.groups()
    value = _LARGE.sub(lambda found: f"{float(found[0]):.1f}", value)
    value = re.sub(r"(\.\d*?)0+(?!\d)", r"\1", value)
    value = re.sub(r"\.(?!\d)", "", value)
    if name == "d":
        value = re.sub(r"\s*([A-Za-z])\s*", r"\1", value)
    return f' {name}="{value.strip()}"'


def _without_bare_groups(svg: str) -> str:
    is_bare: list[bool] = []  # of the open groups

    def kept(found: re.Match[str]) -> str:
        if found[0] == "</g>":
            return "" if is_bare.pop() else found[0]
        is_bare.append(found[0] == "<g>")
        return "" if is_bare[-1] else found[0]

    return _GROUP.sub(kept, svg)


def compact_script(script: str) -> str:
    """Remove indentation, and comments that have lines of their own."""
    return re.sub(r"^[ \t]+|\n(?=\n)", "", _COMMENT.sub("", script), flags=re.MULTILINE)


def compact_tables(page: str) -> str:
    """Remove line breaks between the tags of tables."""
    return re.sub(r">\n(?=</?(?:caption|t[rdh]|table|thead|tbody)\b)", ">", page)
