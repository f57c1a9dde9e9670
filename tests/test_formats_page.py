"""docs/formats.md agrees with the code: byte offsets, types, bits and limits."""

from pathlib import Path

import pytest

from kfbench import layouts
from kfbench.limits import Limits
from kfbench.research.columnar.kernels import batch_header as columnar_header
from tests.page_tables import mask_of, tables

PAGE = (Path(__file__).parents[1] / "docs" / "formats.md").read_text(encoding="utf-8")
LAYOUTS = {name: layout for name, layout in vars(layouts).items() if name.endswith(("_MESSAGE", "_HEADER", "_TAIL"))}
LAYOUTS["COLUMNAR_HEADER"] = columnar_header.LAYOUT
HEADINGS = [line.removeprefix("## ") for line in PAGE.splitlines() if line.startswith("## ")]
TYPES = {">i8": "i64", ">i4": "i32", ">i2": "i16", "|i1": "i8", ">u4": "u32", ">u2": "u16", "|V6": "i48"}


def field_tables(headings: list[str]) -> list[list[list[str]]]:
    found = [[row[:3] for row in table] for heading in headings for table in tables(PAGE, heading)]
    return [table for table in found if table[0][-1] in TYPES.values()]


@pytest.mark.parametrize("name", LAYOUTS)
def test_every_field_has_the_offset_of_the_layout(name: str) -> None:
    layout = LAYOUTS[name]
    headings = [each for each in HEADINGS if name.lower().startswith(f"{each.split()[0].replace('-', '_')}_")]
    declared = [[str(layouts.position(layout, field)), field, TYPES[layout[field].str]] for field in layout.names]
    assert declared in field_tables(headings)


def test_every_table_of_fields_is_a_layout() -> None:
    assert len(field_tables(HEADINGS)) == len(LAYOUTS)


def test_sizes_in_prose() -> None:
    assert f"{layouts.KIP98_HEADER.itemsize} bytes, then messages" in PAGE
    fixed = layouts.V3_HEADER.itemsize + layouts.V3_FIXED_TAIL["count"].itemsize
    assert f"{fixed + 1 + 1 + 1} to {fixed + 5 + 10 + 10} bytes in all" in PAGE


def test_every_bit_is_the_constant_that_it_names() -> None:
    (rows,) = tables(PAGE, "Attributes bits of v2 and v3")
    masks = {"v2": 0, "v3": 0}
    for bits, constant, formats, _ in rows:
        mask = mask_of(bits)
        assert getattr(layouts, constant) == mask
        for name in formats.split(", "):
            masks[name] |= mask
    assert masks == {"v2": layouts.V2_ATTRIBUTES_MASK, "v3": layouts.V3_ATTRIBUTES_MASK}


def test_every_tag_of_an_enriched_message() -> None:
    (rows,) = [table for table in tables(PAGE, "enriched message") if len(table[0]) == 3]
    assert {int(tag): int(size) for tag, size, _ in rows} == layouts.TAG_BYTES


def test_limits_are_the_defaults() -> None:
    (rows,) = tables(PAGE, "Limits of readers")
    defaults = Limits()
    assert {name: int(default.replace(",", "")) for name, default, _ in rows} == {
        name: getattr(defaults, name) for name in Limits.__dataclass_fields__
    }
