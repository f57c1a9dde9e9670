"""Kernels of the record formats, one module per layout."""

from kfbench.kernels.formats import (
    batch,
    batch_description,
    batch_parts,
    columnar,
    control,
    enriched,
    header_fields,
    headers_first,
    kip98,
    legacy,
    rows,
    scan,
    shared_headers,
)

__all__ = [
    "batch",
    "batch_description",
    "batch_parts",
    "columnar",
    "control",
    "enriched",
    "header_fields",
    "headers_first",
    "kip98",
    "legacy",
    "rows",
    "scan",
    "shared_headers",
]
