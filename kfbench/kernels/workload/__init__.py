"""Kernels that generate records and their batches."""

from kfbench.kernels.workload import draws, kinds, linger, partition, periods, strata, templates, waits

__all__ = ["draws", "kinds", "linger", "partition", "periods", "strata", "templates", "waits"]
