"""The workloads by name: one per TOML file in datasets/workloads, and the grid."""

from collections.abc import Mapping
from types import MappingProxyType

from kfbench.workloads import catalogue, grid
from kfbench.workloads.base import BLOCK_RECORDS, NoSuchPoint, Sample, Workload

__all__ = ["BLOCK_RECORDS", "WORKLOADS", "NoSuchPoint", "Sample", "Workload"]

WORKLOADS: Mapping[str, Workload] = MappingProxyType({**catalogue.WORKLOADS, **grid.WORKLOADS})
