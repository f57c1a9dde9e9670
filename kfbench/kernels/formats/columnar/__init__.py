"""Kernels of the columnar batch: columns of all records first, outside the codec, then keys, values and headers."""

from kfbench.kernels.formats.columnar import fetching, fields, reading, record_headers, writing

__all__ = ["fetching", "fields", "reading", "record_headers", "writing"]
