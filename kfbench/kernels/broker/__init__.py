"""Kernels of broker paths: append, compaction, mirroring."""
