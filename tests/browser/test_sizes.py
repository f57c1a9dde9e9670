"""`templates/sizes.js` computes the bytes that `Format.size` gives."""

import json
from collections import Counter
from pathlib import Path

import pytest

from kfbench.formats import FORMATS
from kfbench.present.calculator.rules import page_rules
from kfbench.present.look import group_of
from kfbench.present.page import TEMPLATES
from tests.browser.chromium import Chromium
from tests.browser.explorer_points import (
    Settings,
    python_fields,
    python_sizes,
    random_settings,
    stops_settings,
)

BY_STOPS = "columnar"  # sizes.js knows it only where timestamps are equal, and at STOPS
PLAIN: Settings = {
    "records": 100, "key_bytes": 16, "value_bytes": 100, "span_ms": 1000,
    "headers": 0, "header_key_bytes": 12, "header_value_bytes": 20,
}  # fmt: skip
EXTREMES = [
    PLAIN | changed
    for changed in (
        {"records": 1},
        {"records": 1, "span_ms": 86_400_000},
        {"span_ms": 0},
        {"key_bytes": -1, "value_bytes": -1, "header_value_bytes": -1, "headers": 2},
        {"key_bytes": 0, "value_bytes": 0, "headers": 1, "header_key_bytes": 0, "header_value_bytes": 0},
        {"headers": 64, "header_value_bytes": 70_000},
        {"records": 3, "span_ms": 2**50},
        {"records": 1_000_000},
        {"records": 1_000_000, "span_ms": 86_400_000},
        {"records": 999_999, "span_ms": 31_536_000_000},
        {"records": 1_000_000, "span_ms": 7, "value_bytes": 1_000_000},
        {"null_values": 30},
        {"null_values": 100},
        {"records": 20_000, "null_values": 3001, "value_bytes": 60, "headers": 1},
    )
]


def browser_sizes(chromium: Chromium, folder: Path, settings: list[Settings]) -> dict[str, list[int | None]]:
    """Return the sizes of window.kfbench.sizes, as columns like those of `python_sizes`."""
    page = folder / "sizes.html"
    page.write_text(
        f'<script type="application/json" id="kfbench-rules">{json.dumps(page_rules())}</script>'
        f'<script type="application/json" id="points">{json.dumps(settings)}</script>'
        f"<script>{(TEMPLATES / 'sizes.js').read_text()}</script>"
    )
    tab = chromium.open(page)
    rows = tab.ask("JSON.parse(document.getElementById('points').textContent).map(window.kfbench.sizes)")
    return {name: [row[name] for row in rows] for name in rows[0]}


@pytest.fixture(params=["random", "stops", "extremes"])
def settings(request: pytest.FixtureRequest) -> list[Settings]:
    if request.param == "random":
        return random_settings(10_000, 23)
    return stops_settings(1000, 23) if request.param == "stops" else EXTREMES


def test_sizes_are_those_of_python(chromium: Chromium, tmp_path: Path, settings: list[Settings]) -> None:
    expected, found = python_sizes(settings), browser_sizes(chromium, tmp_path, settings)
    assert set(found) == set(FORMATS)
    for name in FORMATS:
        pairs = list(zip(settings, expected[name], found[name], strict=True))
        if name == BY_STOPS:
            known = [pair for pair in pairs if pair[2] is not None]
            assert len(known) > len(pairs) / 20
            pairs = known
        assert [pair for pair in pairs if pair[1] != pair[2]] == [], name


def test_the_bytes_of_fields_are_those_of_python(chromium: Chromium, tmp_path: Path) -> None:
    page = tmp_path / "fields.html"
    rules, script = json.dumps(page_rules()), (TEMPLATES / "sizes.js").read_text()
    page.write_text(f'<script type="application/json" id="kfbench-rules">{rules}</script><script>{script}</script>')
    tab = chromium.open(page)
    for settings in (PLAIN, PLAIN | {"headers": 3}, PLAIN | {"records": 1, "headers": 1, "span_ms": 0}):
        found = tab.ask(f"window.kfbench.fields({json.dumps(settings)})")
        for name in FORMATS:
            if found[name] is None:
                assert settings["headers"] and not FORMATS[name].capabilities.headers
                continue
            groups = Counter[str]()
            for field, size in python_fields(settings, name).items():
                payload = "record headers" if field.startswith("header_") else "keys and values"
                groups[group_of(field) or payload] += size
            assert {group: size for group, size in found[name].items() if size} == +groups, (name, settings)


@pytest.mark.parametrize(
    "changed", [{"records": 0}, {"key_bytes": -2}, {"span_ms": -1}, {"headers": 1.5}, {"null_values": 101}]
)
def test_settings_that_no_batch_has_are_null(chromium: Chromium, tmp_path: Path, changed: Settings) -> None:
    assert {sizes[0] for sizes in browser_sizes(chromium, tmp_path, [PLAIN | changed]).values()} == {None}
