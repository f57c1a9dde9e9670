"""Find combinations that a format does not support: a codec, headers, batch header fields, or a broker path."""

from typing import Final

from kfbench.broker.source import find
from kfbench.errors import IllegalCombination
from kfbench.formats import FORMATS
from kfbench.measure.paths import PATHS
from kfbench.workloads import Sample

# A log without these batch header fields means something else to readers, so a format must be able to store them. A
# format may lose other fields.
NEEDED: Final = {
    "is_transactional": "transactions",
    "is_control": "control batches",
    "delete_horizon_ms": "delete horizons",
}
NOT_SENT: Final = frozenset({"is_control", "last_offset", "delete_horizon_ms"})


def illegal(format_name: str, sample: Sample, codec: str, path: str = "", to: str | None = None) -> str | None:
    """Return the reason why the format cannot store the sample or take the broker path; None if it can.

    `to` is the format that the path converts to. It must support the codec and broker paths, but may lose headers.
    """
    shapes, capabilities = sample.shapes, FORMATS[format_name].capabilities
    if shapes.has_headers and not capabilities.headers:
        return f"{format_name} has no headers"
    for field, meaning in NEEDED.items():
        if field in sample.batch_fields.set_fields - capabilities.batch_fields:
            return f"{format_name} has no {meaning}"
    if path and (sample.batch_fields.set_fields & NOT_SENT or _has_holes(sample)):
        return f"{path} starts with batches that clients send: no control batches and no compacted batches"
    is_idempotent = "producer_id" in sample.batch_fields.set_fields
    if path == "append-convert" and to and FORMATS[to].holds_messages and is_idempotent:
        return f"a broker refuses to convert idempotent batches to {to}"
    for name in (format_name, to):
        if name and codec not in FORMATS[name].capabilities.codecs:
            return f"{name} has no {codec}"
        if name and path:
            try:
                find(FORMATS[name], for_append=path == "append")
            except IllegalCombination as error:
                return str(error)
    return PATHS[path].missing(FORMATS[format_name], shapes) if path else None


def _has_holes(sample: Sample) -> bool:
    """Return True if offsets are missing between records of a batch."""
    offsets, first, last = sample.shapes.offsets, sample.bounds[:-1], sample.bounds[1:] - 1
    return bool((offsets[last] - offsets[first] != last - first).any())
