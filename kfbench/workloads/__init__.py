"""List the workloads by name.

Each module in this folder is a family of workloads and defines `WORKLOADS`. The subfolders have the code that families
use.
"""

from collections.abc import Mapping
from importlib import import_module
from pkgutil import iter_modules
from types import MappingProxyType

from kfbench.workloads.base.workload import BLOCK_RECORDS, NoSuchPoint, Sample, Workload

__all__ = ["BLOCK_RECORDS", "WORKLOADS", "NoSuchPoint", "Sample", "Workload"]


def _discover() -> Mapping[str, Workload]:
    found: dict[str, Workload] = {}
    for module in sorted(iter_modules(__path__), key=lambda each: each.name):
        if module.ispkg:
            continue
        family: Mapping[str, Workload] = import_module(f"{__name__}.{module.name}").WORKLOADS
        taken = found.keys() & family.keys()
        if taken:
            raise ImportError(f"{module.name}: the workload {min(taken)} exists already")
        found |= family
    return MappingProxyType(found)


WORKLOADS: Mapping[str, Workload] = _discover()
