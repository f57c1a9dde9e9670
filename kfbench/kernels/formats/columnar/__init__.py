"""Kernels of the columnar batch: the columns of all records, then the payload (keys, values, header bytes)."""
