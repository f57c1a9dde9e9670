"""Combinations that a format cannot have: a codec, headers, a broker path."""

from typing import Final

from kfbench.formats import FORMATS
from kfbench.measure.paths import PATHS
from kfbench.workloads import Sample

# A log without these header fields means something else to readers. Losses of other fields are counted.
NEEDED: Final = {
    "is_transactional": "transactions",
    "is_control": "control batches",
    "delete_horizon_ms": "delete horizons",
}
NOT_SENT: Final = frozenset({"is_control", "last_offset", "delete_horizon_ms"})


def illegal(format_name: str, sample: Sample, codec: str, path: str = "", to: str | None = None) -> str | None:
    """Return why the format cannot have such a cell; None if it can. A conversion may lose headers."""
    shapes, capabilities = sample.shapes, FORMATS[format_name].capabilities
    if shapes.has_headers and not capabilities.headers:
        return f"{format_name} has no headers"
    for field, meaning in NEEDED.items():
        if field in sample.batch_fields.set_fields - capabilities.batch_fields:
            return f"{format_name} has no {meaning}"
    if path and sample.batch_fields.set_fields & NOT_SENT:
        return f"{path} begins with what clients send: no control batches, and none that compaction has been through"
    for name in (format_name, to):
        if name and codec not in FORMATS[name].capabilities.codecs:
            return f"{name} has no {codec}"
        if name and path and not FORMATS[name].has_broker_paths:
            return f"{name} has no broker paths"
    return PATHS[path].missing(FORMATS[format_name], shapes) if path else None
