"""Kernels compiled before anything is measured: on all cores, where cells would do it one after another.

The first to call a kernel compiles it for the whole machine, in some seconds. What is already in the cache is loaded.
"""

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from kfbench.batches import BatchFields
from kfbench.formats import FORMATS
from kfbench.measure.broker import PATHS, measure_path
from kfbench.records import Records
from kfbench.sweep.grid import BASE_FORMAT, Cell
from kfbench.workloads.catalogue import NamedWorkload

BATCH_RECORDS = 5
RECORDS = 20


Names = tuple[str, ...]
Call = tuple[Callable[[Any], None], Any]


def compilations(cells: Sequence[Cell]) -> list[list[Call]]:
    """Functions and what to call them with, one list after the other, each list at once: formats share kernels with
    their kind, paths with formats, and named workloads those that fill templates."""
    families: dict[type, list[str]] = defaultdict(list)
    for name in dict.fromkeys(name for cell in cells for name in (*cell.formats, cell.to) if name):
        families[type(FORMATS[name])].append(name)
    paths: dict[str, dict[str, None]] = defaultdict(dict)
    for cell in cells:
        if cell.path:
            paths[cell.path].update(dict.fromkeys(cell.formats))
    workloads = tuple(dict.fromkeys(cell.workload for cell in cells if isinstance(cell.workload, NamedWorkload)))
    return [
        [(compile_formats, tuple(names)) for names in families.values()]
        + ([(compile_payloads, workloads)] if workloads else []),
        [(compile_path, (path, tuple(names))) for path, names in paths.items()],
    ]


def compile_formats(names: Names) -> None:
    records, bounds = _records()
    for name in names:
        fmt = FORMATS[name]
        log = fmt.encode(records, bounds, lossy=True)
        fmt.size(records, bounds)
        fmt.breakdown(records, bounds)
        _ = fmt.decode(log.data).batches


def compile_payloads(workloads: tuple[NamedWorkload, ...]) -> None:
    """Their shapes were made when the sweep was checked."""
    for workload in workloads:
        _ = workload.generate(records=BATCH_RECORDS, seed=0).records


def compile_path(path_and_formats: tuple[str, Names]) -> None:
    """An error is nobody's business here: the cell that meets it has a row for it."""
    path, names = path_and_formats
    records, bounds = _records()
    to = FORMATS[BASE_FORMAT] if PATHS[path].converts else None
    formats = [FORMATS[name] for name in names if to is None or name != to.name]
    measure_path(path, formats, to, records, bounds, "none", None, BatchFields(), rounds=1, sample_ns=1, seed=0)


def _records() -> tuple[Records, np.ndarray[tuple[int], np.dtype[np.int64]]]:
    times = [1_767_225_600_000 + i for i in range(RECORDS)]
    records = Records.from_lists([b"value"] * RECORDS, keys=[b"key"] * RECORDS, timestamps_ms=times)
    return records, np.arange(0, RECORDS + 1, BATCH_RECORDS)
