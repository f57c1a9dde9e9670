"""Figures and scripts get smaller, and look and run as before."""

import re
from xml.etree import ElementTree as ET

import pytest

from kfbench.report.files import TEMPLATES
from kfbench.report.render.compact import compact_script, compact_svg
from kfbench.report.topics.explorer.data import SCRIPTS

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
