"""Kernels compiled before anything is measured: on all cores, where cells would do it one after another.

The first to call a kernel compiles it for the whole machine, in some seconds. What is already in the cache is loaded.
"""

from collections import defaultdict
from collections.abc import Callable, Container, Iterable, Sequence
from typing import Any

import numpy as np

from kfbench.batches import BatchFields
from kfbench.formats import FORMATS
from kfbench.measure.broker import measure_path
from kfbench.records import Records
from kfbench.sweep.grid import Cell
from kfbench.workloads.catalogue import NamedWorkload

BATCH_RECORDS = 5
RECORDS = 20

Names = tuple[str, ...]
Call = tuple[Callable[[Any], None], Any]


def compilations(cells: Sequence[Cell]) -> list[Call]:
    """Functions and what to call them with, all at once, the longest first.

    Formats share kernels with their kind, paths with formats, and named workloads those that fill templates: two calls
    that want the same kernel at the same time would both compile it.
    """
    families: dict[type, dict[str, None]] = defaultdict(dict)
    paths: dict[str, dict[str, None]] = defaultdict(dict)
    for cell in (each for each in cells if each.kind != "floor"):
        for name in (*cell.formats, *([cell.to] if cell.to else [])):
            families[type(FORMATS[name])][name] = None
        if cell.path and not cell.to:  # a conversion is reading and writing, which its formats have compiled
            paths[cell.path].update(dict.fromkeys(cell.formats))
    workloads = tuple(dict.fromkeys(cell.workload for cell in cells if isinstance(cell.workload, NamedWorkload)))
    calls: list[Call] = [
        (compile_formats, (tuple(names), tuple((path, both) for path, on in paths.items() if (both := _in(names, on)))))
        for names in sorted(families.values(), key=len, reverse=True)
    ]
    return calls + [(compile_payloads, workloads)] * bool(workloads)


def compile_formats(formats_and_paths: tuple[Names, tuple[tuple[str, Names], ...]]) -> None:
    """Formats of a kind, then the paths that go through them."""
    names, paths = formats_and_paths
    times = [1_767_225_600_000 + i for i in range(RECORDS)]
    records = Records.from_lists([b"value"] * RECORDS, keys=[b"key"] * RECORDS, timestamps_ms=times)
    bounds = np.arange(0, RECORDS + 1, BATCH_RECORDS)
    for name in names:
        fmt = FORMATS[name]
        log = fmt.encode(records, bounds, lossy=True)
        fmt.size(records, bounds)
        fmt.breakdown(records, bounds)
        _ = fmt.decode(log.data).batches
    for path, on in paths:  # an error is nobody's business here: the cell that meets it has a row for it
        formats = [FORMATS[name] for name in on]
        measure_path(path, formats, None, records, bounds, "none", None, BatchFields(), rounds=1, sample_ns=1, seed=0)


def _in(names: Iterable[str], others: Container[str]) -> Names:
    return tuple(name for name in names if name in others)


def compile_payloads(workloads: tuple[NamedWorkload, ...]) -> None:
    """Their shapes were made when the sweep was checked."""
    for workload in workloads:
        _ = workload.generate(records=BATCH_RECORDS, seed=0).records
