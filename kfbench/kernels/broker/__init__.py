"""Kernels of broker paths: append, compaction, mirroring."""

from kfbench.kernels.broker import append, last_keys, mirroring

__all__ = ["append", "last_keys", "mirroring"]
