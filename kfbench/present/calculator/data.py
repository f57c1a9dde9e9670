"""The explorer as a part of a page (`templates/explorer.html`).

Its data are the rules of `sizes.js`, the cells of the run, and the assumptions of the bill.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from markupsafe import Markup

from kfbench.codecs import CODECS
from kfbench.formats import BASE_FORMAT, FORMATS, PROPOSED, RESEARCH, SHIPPED
from kfbench.layouts import NULL_LENGTH
from kfbench.present import look
from kfbench.present.calculator import rules
from kfbench.present.names import NEW, in_order
from kfbench.present.page import TEMPLATES, compact_script
from kfbench.present.table import slug

SCRIPTS: Final = ("sizes.js", "settings.js", "measured.js", "explorer.js")  # after words.js and line.js
NONE: Final = "none"
Numbers = dict[str, Any]
# The settings of a page whose address has none.
FIRST: Final = {
    "records": 10,
    "key_bytes": 16,
    "value_bytes": 100,
    "span_ms": 0,
    "headers": 0,
    "header_key_bytes": 12,
    "header_value_bytes": 20,
    "null_percent": 0,
    "mb_per_s": 10,
}


def format_sets() -> dict[str, list[str]]:
    """Return the sets of formats that a reader can choose from, by name. Each set has v2."""
    own = {name for name, fmt in FORMATS.items() if fmt.origin == "own"}
    sets = {
        f"{BASE_FORMAT} and {NEW}": {BASE_FORMAT, NEW},
        f"Shipped, {NEW}, research": {*SHIPPED, NEW, *RESEARCH},
        f"{NEW} and its variants": {BASE_FORMAT, NEW, *own},
        "Proposals": {BASE_FORMAT, *PROPOSED},
        "All formats": set(FORMATS),
    }
    known = {rule["name"] for rule in rules.format_rules()}
    return {name: in_order(chosen & known) for name, chosen in sets.items()}


@dataclass(frozen=True, kw_only=True)
class Content:
    """The content of an explorer besides exact sizes.

    Args:
        cells: see `report.calculator_rows.grid_cells`. `run` tells runs apart: the page interpolates within one run.
        workloads: see `report.calculator_rows.workload_cells`.
        sets: the sets of formats that a reader can choose from, by name. The first set is shown first.
        first: the settings of a page whose address has none. The others are those of FIRST.
        operations: the operations with CPU times.
        month: the assumptions of a month's bill, see `kfbench.money.month_facts`.
        is_sampled: the bytes under a codec were estimated from a sample.
        runs: machine and noise of each run of `cells`, in words. The workloads are of the last one.
    """

    month: Mapping[str, Any]
    cells: Sequence[Numbers] = ()
    workloads: Sequence[Numbers] = ()
    sets: Mapping[str, Sequence[str]] = field(default_factory=format_sets)
    first: Mapping[str, float | str] = field(default_factory=dict)
    operations: Sequence[str] = ()
    is_sampled: bool = False
    runs: Sequence[str] = ("",)


def page_data(content: Content) -> dict[str, Any]:
    """Return the data of the page as plain values."""
    formats = list(dict.fromkeys((BASE_FORMAT, NEW, *in_order(FORMATS))))  # most cells have the first two only
    groups = {group: f"var(--{slug(group)})" for group in look.GROUPS}
    return {
        "base": BASE_FORMAT,
        "newest": NEW,
        "formats": formats,
        "colours": {name: f"var(--{slug(name)})" if name in look.STYLES else "var(--other)" for name in formats},
        "groups": groups | {"record headers": "var(--shade)", "keys and values": "var(--grid)"},
        "sets": content.sets,
        "first": {**FIRST, **content.first},
        "operations": content.operations,
        "is_sampled": content.is_sampled,
        "runs": content.runs,
        "cells": [
            [
                _without_last_zeros(cell["settings"]),
                cell.get("run", 0),
                *filter(None, _by_position(cell, formats).values()),
            ]
            for cell in content.cells
        ],
        "workloads": [
            {"name": cell["name"], "settings": cell["settings"]} | _by_position(cell, formats)
            for cell in content.workloads
        ],
        "codecs": codecs_of([*content.cells, *content.workloads]),
        "levels": {name: codec.default_level for name, codec in CODECS.items() if codec.default_level is not None},
        "month": content.month,
    }


def mean_settings(fields: Mapping[str, int], records: int, batches: int) -> Numbers:
    """Return the means of a workload from the bytes of its fields in v2. A header key length takes one byte or two."""
    headers = round(fields["header_key_length"] / records)
    each = max(headers * records, 1)
    return {
        "records": max(round(records / batches), 1),
        "key_bytes": round(fields["key"] / records) if fields["key"] else NULL_LENGTH,
        "value_bytes": round(fields["value"] / records),
        "headers": headers,
        "header_key_bytes": round(fields["header_key"] / each),
        "header_value_bytes": round(fields["header_value"] / each),
        "null_percent": 0,
    }


def codecs_of(cells: Iterable[Numbers]) -> list[str]:
    """Return the codecs with measured bytes, in the order of `kfbench.codecs.CODECS`: the default level comes first."""
    found = {codec for cell in cells for codec in cell["bytes"]} - {NONE}
    order = list(CODECS)
    return sorted(found, key=lambda codec: (order.index(codec.split()[0]), int((*codec.split(), -99)[1])))


def _by_position(cell: Mapping[str, Any], formats: Sequence[str]) -> dict[str, Any]:
    """Return the bytes and CPU times of a cell as lists in the order of the formats. 0 is missing."""
    return {
        "bytes": {codec: _list_of(of, formats) for codec, of in cell["bytes"].items()},
        "cpu": {
            codec: {operation: _list_of(of, formats) for operation, of in by_operation.items()}
            for codec, by_operation in cell["cpu"].items()
        },
    }


def _without_last_zeros(settings: Numbers) -> list[int]:
    found = list(settings.values())
    while found and found[-1] == 0:
        found.pop()
    return found


def _list_of(numbers: Mapping[str, Any], formats: Sequence[str]) -> list[Any]:
    last = max(formats.index(name) for name in numbers)
    return [numbers.get(name, 0) for name in formats[: last + 1]]


def script_json(value: Any) -> str:
    """Return JSON for a script element. No text in it can end the element."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).replace("<", "\\u003c")


def explorer_parts(content: Content) -> dict[str, object]:
    """Return what the template `explorer.html` needs, under the name `explorer`."""
    return {
        "rules": Markup(script_json(rules.page_rules())),
        "data": Markup(script_json(page_data(content))),
        "has_cpu": bool(content.operations),
        "css": Markup((TEMPLATES / "explorer.css").read_text()),
        "scripts": [Markup(compact_script((TEMPLATES / name).read_text())) for name in SCRIPTS],
    }
