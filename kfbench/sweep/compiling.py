"""Kernels compiled before anything is measured: on all cores, where cells would do it one after another.

The first to call a kernel compiles it for the whole machine, in some seconds, which count as a cell's that has a time
limit. What is already in the cache is loaded, in a second for all.
"""

from collections import defaultdict
from collections.abc import Callable, Container, Iterable, Sequence
from contextlib import suppress
from itertools import product
from typing import Any, Final

import numpy as np

from kfbench.batches import BatchFields
from kfbench.formats import FORMATS
from kfbench.kernels import CACHE_FOLDER, COMPILED
from kfbench.measure.broker import measure_path
from kfbench.measure.size import measure_size
from kfbench.records import Records
from kfbench.sweep.grid import Cell
from kfbench.workloads.catalogue import NamedWorkload

BATCH_RECORDS = 5
RECORDS = 20
CODECS: Final = ("none", "gzip")  # which codec it is makes no difference to kernels

DONE: Final = "compiled"
COMPILING_S: Final = 30.0  # about, on two cores

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


def are_compiled() -> bool:
    """Whether a sweep has compiled its own for this state of the code, so that few can be missing. Reading a sweep
    compiles some, too: that there are any tells nothing."""
    return not COMPILED or (CACHE_FOLDER / DONE).exists()


def note_compiled() -> None:
    """That compilations were all called."""
    with suppress(OSError):  # the next dry run says half a minute too much
        (CACHE_FOLDER / DONE).touch()


def compile_formats(formats_and_paths: tuple[Names, tuple[tuple[str, Names], ...]]) -> None:
    """Formats of a kind, then the paths that go through them, with a codec and without, with headers and without."""
    names, paths = formats_and_paths
    times = [1_767_225_600_000 + i for i in range(RECORDS)]
    plain = Records.from_lists([b"value"] * RECORDS, keys=[b"key"] * RECORDS, timestamps_ms=times)
    full = Records.from_lists([b"value"] * RECORDS, timestamps_ms=times, headers=[[("name", b"value")]] * RECORDS)
    bounds = np.arange(0, RECORDS + 1, BATCH_RECORDS)
    # An error is nobody's business here: the cell that meets it has a row for it.
    for name, records, codec in product(names, (plain, full), CODECS):
        with suppress(Exception):
            measure_size(FORMATS[name], records, bounds, codec)
    for (path, on), codec in product(paths, CODECS):
        formats = [FORMATS[name] for name in on]
        with suppress(Exception):
            measure_path(path, formats, None, plain, bounds, codec, None, BatchFields(), rounds=1, sample_ns=1, seed=0)


def _in(names: Iterable[str], others: Container[str]) -> Names:
    return tuple(name for name in names if name in others)


def compile_payloads(workloads: tuple[NamedWorkload, ...]) -> None:
    """Their shapes were made when the sweep was checked."""
    for workload in workloads:
        _ = workload.generate(records=BATCH_RECORDS, seed=0).records
