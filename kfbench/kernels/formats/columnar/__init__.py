"""Kernels of the columnar batch: columns of all records first, outside the codec, then keys, values and headers."""
