"""Kernels of broker paths: append, compaction, mirroring."""

from kfbench.kernels.broker import assignment, last_keys, mirroring, request_checks

__all__ = ["assignment", "last_keys", "mirroring", "request_checks"]
