"""Kernels of the columnar batch: metadata as one column per field, then the payload (keys, values, header bytes)."""
