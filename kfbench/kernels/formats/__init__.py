"""Kernels of the record formats, one module per layout."""
