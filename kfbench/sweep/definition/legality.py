"""Combinations that a format does not support: a codec, headers, a broker path."""

from typing import Final

from kfbench.formats import FORMATS
from kfbench.measure.paths import PATHS
from kfbench.workloads import Sample

# Without these header fields a log means something else to readers. The loss of other fields is only counted.
NEEDED: Final = {
    "is_transactional": "transactions",
    "is_control": "control batches",
    "delete_horizon_ms": "delete horizons",
}
NOT_SENT: Final = frozenset({"is_control", "last_offset", "delete_horizon_ms"})


def illegal(format_name: str, sample: Sample, codec: str, path: str = "", to: str | None = None) -> str | None:
    """Return the reason why the format does not support a cell; None if it does. A conversion may lose headers."""
    shapes, capabilities = sample.shapes, FORMATS[format_name].capabilities
    if shapes.has_headers and not capabilities.headers:
        return f"{format_name} has no headers"
    for field, meaning in NEEDED.items():
        if field in sample.batch_fields.set_fields - capabilities.batch_fields:
            return f"{format_name} has no {meaning}"
    if path and sample.batch_fields.set_fields & NOT_SENT:
        return f"{path} starts with batches that clients send: no control batches and no compacted batches"
    for name in (format_name, to):
        if name and codec not in FORMATS[name].capabilities.codecs:
            return f"{name} has no {codec}"
        if name and path and not FORMATS[name].has_broker_paths:
            return f"{name} has no broker paths"
    return PATHS[path].missing(FORMATS[format_name], shapes) if path else None
