"""The numbers from which `templates/sizes.js` computes the exact size of a batch in each format.

They come from `Format.breakdown` of a batch with one empty record, so a new format of a known layout needs no entry.
"""

from collections import Counter
from typing import Any, Final

import numpy as np

from kfbench import layouts
from kfbench.formats import FORMATS, Format
from kfbench.present.look import group_of
from kfbench.present.names import in_order
from kfbench.records import PAYLOAD, Shapes

BASE_TIME_MS: Final = 1_700_000_000_000
# The batch sizes and time spans for which the page knows columnar's ages.
STOPS: Final = {
    "records": (1, 2, 3, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 100_000, 1_000_000),
    "span_ms": (0, 1, 10, 100, 1000, 10_000, 60_000, 600_000, 3_600_000, 86_400_000),
}
# Each layout, and the fields by which it is known. A format with other fields is not computed.
MESSAGES: Final = {"offset", "length", "crc", "magic", "attributes", "key_length", "value_length"}
KIP98: Final = {"length", "attributes", "timestamp_delta", "offset_delta", "key_length"}
BATCH: Final = KIP98 | {"value_length", "header_count", "header_key_length", "header_value_length"}
COLUMNAR: Final = {"timestamp_age", "offset_delta", "key_length", "value_length", "header_columns"}
OPTIONAL: Final = {"timestamp", "tags_length", "timestamp_tag", "metadata_length", *PAYLOAD}
LAYOUTS: Final = {"messages": MESSAGES, "kip98": KIP98, "batch": BATCH, "columnar": COLUMNAR}


def equal_records(records: int, span_ms: int = 0) -> Shapes:
    """Return records with null keys and null values. Their timestamps rise evenly from BASE_TIME_MS by span_ms."""
    numbers = np.arange(records)
    lengths = np.full(records, layouts.NULL_LENGTH)
    times = BASE_TIME_MS + numbers * span_ms // max(records - 1, 1)
    return Shapes(timestamps_ms=times, offsets=numbers, key_lengths=lengths, value_lengths=lengths)


def layout_of(fmt: Format) -> str | None:
    """Return the name of the format's layout (a key of LAYOUTS); None if it has no closed form."""
    fields = {name for name in fmt.breakdown(equal_records(1), 1) if not name.startswith("batch_header.")}
    return next((layout for layout, known in LAYOUTS.items() if fields - OPTIONAL == known), None)


def format_rules() -> list[dict[str, Any]]:
    """Return the rule of each format that has a closed form, in the order of the report."""
    found = []
    for name in in_order(FORMATS):
        fmt = FORMATS[name]
        if layout := layout_of(fmt):
            parts = fmt.breakdown(equal_records(1), 1)
            rule = {
                "name": name,
                "layout": layout,
                "has_headers": fmt.capabilities.headers,
            }
            found.append(rule | (_message_rule(parts) if layout == "messages" else _batch_rule(fmt, parts)))
    return found


def _message_rule(parts: dict[str, int]) -> dict[str, Any]:
    groups: Counter[str] = Counter()
    for field, size in parts.items():
        if group := group_of(field):
            groups[group] += size
    return {"message": {group: size for group, size in groups.items() if size}}


def _batch_rule(fmt: Format, parts: dict[str, int]) -> dict[str, Any]:
    """Return the header bytes of a batch with one record, and the rules for more records."""
    fixed = fmt.breakdown(equal_records(200, 1000), 200)["batch_header.last_offset_delta"] == 4
    return {
        "header": sum(size for field, size in parts.items() if field.startswith("batch_header.")),
        "has_fixed_header": fixed,
        "attributes": parts.get("attributes", 0),
        "is_unsigned": bool(fmt.features & layouts.UNSIGNED_BIT),
        "is_headers_first": "metadata_length" in parts,
        "shares_headers": bool(fmt.features & layouts.SHARED_HEADERS),
    }


def age_bytes() -> list[list[int]]:
    """Return the bytes of columnar's column of ages, for each stop of span_ms and of records.

    The encoder chooses among encodings, so there is no closed form. Equal timestamps take no bytes.
    """
    columnar = next((fmt for fmt in FORMATS.values() if layout_of(fmt) == "columnar"), None)
    if columnar is None:
        return []
    return [
        [columnar.breakdown(equal_records(n, span_ms), n)["timestamp_age"] for n in STOPS["records"]]
        for span_ms in STOPS["span_ms"]
    ]


def page_rules() -> dict[str, Any]:
    """Return all that sizes.js needs: the formats' rules, and columnar's ages at the stops."""
    return {"formats": format_rules(), "stops": STOPS, "ages": age_bytes()}
