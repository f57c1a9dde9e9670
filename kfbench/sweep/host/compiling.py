"""Compile Numba kernels on all cores, before anything is measured.

The first call of a kernel compiles it and stores it in a cache on disk, which all processes of the machine share.
Compiling a kernel takes up to some seconds. Without this module, they would count against the time limit of a
cell. Loading all kernels from the cache takes about a second.
"""

import hashlib
import os
import signal
import sys
import threading
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from itertools import product
from multiprocessing import get_context, parent_process
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, Final, NamedTuple, Self

import numpy as np
from rich.console import Console

from kfbench.arrays import Int64
from kfbench.errors import IllegalCombination
from kfbench.formats import FORMATS
from kfbench.kernels import CACHE_FOLDER, COMPILED
from kfbench.kernels.jit import WARNED, are_stored, compiled_only, load_compiler
from kfbench.measure.bytes import measure_size
from kfbench.measure.cell import Cell
from kfbench.measure.container import workers
from kfbench.measure.cpu import Operation
from kfbench.measure.encode_input import EncodeInput
from kfbench.measure.format_arms import prepare, why_no_fetch
from kfbench.measure.kinds import kind_of
from kfbench.measure.kinds.base import error_text
from kfbench.measure.path_arms import measure_path
from kfbench.progress import counting
from kfbench.records import Records
from kfbench.workloads.catalogue import NamedWorkload

BATCH_RECORDS = 5
RECORDS = 20
CODECS: Final = ("none", "gzip")  # one codec is enough, because all codecs use the same kernels
# Broker paths of a group share kernels, so one process compiles the group. The empty group stands for all other paths.
PATH_GROUPS: Final = (("append", "append-time", "mirror", "mirror-through", "mirror-look"), ())

DONE: Final = "compiled"
COMPILING: Final = "compiling kernels, once"
PROCESS_BYTES: Final = 400 << 20  # the memory of a process that compiles
LOOK_S: Final = 0.2
COMPILING_S: Final = 60.0  # about the time for the default profile on two cores

Names = tuple[str, ...]
PathsOfFormats = tuple[tuple[str, Names], ...]


class FormatKernels(NamedTuple):
    """The kernels of a format to compile. Encoding, decoding and sizes are always compiled.

    Args:
        with_headers: True to compile also for records with headers.
        operations: the operations that read only a part of a log and also need compiling.
    """

    format: str
    with_headers: bool
    operations: tuple[Operation, ...]


Call = tuple[Callable[[Any], None], Any]


def compilations(cells: Sequence[Cell]) -> list[Call]:
    """Return calls that compile all kernels that measuring these cells needs.

    The calls are meant to run in this order, in one process per core.

    Two processes that call the same kernel at the same time would both compile it. So everything that shares kernels is
    in one call: the formats of one class, a group of broker paths, or the payload templates of all named workloads.
    """
    formats: dict[str, None] = {}
    paths: dict[str, dict[str, None]] = defaultdict(dict)
    readings: dict[str, dict[Operation, None]] = defaultdict(dict)
    with_headers: set[str] = set()
    for cell in cells:
        if (kernels := kind_of(cell).kernels(cell)) is None:
            continue
        names = [name for name in (*cell.formats, cell.to or "") if name in FORMATS]
        formats |= dict.fromkeys(names)
        if not with_headers.issuperset(names) and _has_headers(cell):
            with_headers.update(names)
        for name, operations in kernels.readings.items():
            readings[name] |= dict.fromkeys(operations)
        if kernels.path:
            paths[kernels.path].update(dict.fromkeys(names))
    families = by_family(formats)
    calls: list[Call] = [
        (compile_formats, tuple(FormatKernels(name, name in with_headers, tuple(readings[name])) for name in names))
        for names in families
    ]
    for named in PATH_GROUPS:
        others = [path for path in paths if not any(path in group for group in PATH_GROUPS)]
        group = [path for path in named or others if path in paths]
        if group:
            calls.append((compile_paths, tuple((path, tuple(paths[path])) for path in group)))
    workloads = tuple(dict.fromkeys(cell.workload for cell in cells if isinstance(cell.workload, NamedWorkload)))
    return calls + [(compile_payloads, workloads)] * bool(workloads)


def _has_headers(cell: Cell) -> bool:
    if isinstance(cell.workload, NamedWorkload):
        return bool(cell.workload.generate(records=RECORDS, seed=0).shapes.header_bounds[-1])
    return bool(cell.axes.get("headers"))


def by_family(names: Iterable[str]) -> list[Names]:
    """Group the names of formats by the formats' class. Return the group that is slowest to compile first.

    Formats whose sizes depend on the payload come first, because they have the most kernels. Then larger groups come
    before smaller ones.
    """
    families: dict[type, list[str]] = defaultdict(list)
    for name in names:
        families[type(FORMATS[name])].append(name)

    def slowness(family: list[str]) -> tuple[bool, int]:
        return not any(FORMATS[name].capabilities.sizes_from_shapes for name in family), len(family)

    return [tuple(family) for family in sorted(families.values(), key=slowness, reverse=True)]


def are_compiled(calls: Sequence[Call]) -> bool:
    """Return True if `note_compiled` has recorded these calls, for this version of the code and this processor.

    True also if kernels cannot be stored: each process compiles its own.
    """
    return not COMPILED or not are_stored() or _mark_of(calls).exists()


def note_compiled(calls: Sequence[Call]) -> None:
    with suppress(OSError):  # without the mark, the next dry run adds the time of compiling again
        _mark_of(calls).touch()


def _mark_of(calls: Sequence[Call]) -> Path:
    names = repr([(function.__name__, argument) for function, argument in calls])
    return CACHE_FOLDER / f"{DONE}-{hashlib.sha256(names.encode()).hexdigest()[:16]}"


class Compilation:
    """Calls that compile kernels, in new processes: one per core, each takes the next call when it has ended one.

    A call may fail. The measurement that needs the kernel compiles it again, and has the error. Pipes join the
    processes, because not every container has shared memory.

    nice: how much lower the processes' priority is than that of this process.
    """

    def __init__(self, calls: Sequence[Call], nice: int = 0) -> None:
        self._calls, self._nice = calls, nice
        self._processes: list[BaseProcess] = []
        self._running: list[Connection] = []
        self._ended: dict[int, str | None] = {}  # the errors, by the number of the call

    def __enter__(self) -> Self:
        # A fork has everything imported already. A process with threads cannot be forked safely.
        can_fork = sys.platform == "linux" and threading.active_count() == 1
        context = get_context("fork" if can_fork else "spawn")
        if can_fork and self._calls:
            load_compiler()
        numbers, to_numbers = context.Pipe(duplex=False)
        with to_numbers:
            os.write(to_numbers.fileno(), bytes(range(len(self._calls))))
        with numbers, warnings.catch_warnings(action="ignore", category=DeprecationWarning):  # of NumPy's own threads
            for _ in range(min(workers(PROCESS_BYTES), len(self._calls))):
                results, to_results = context.Pipe(duplex=False)
                with to_results:
                    arguments = self._calls, numbers, to_results, self._nice
                    process: BaseProcess = context.Process(target=_run, args=arguments, daemon=True)  # type: ignore[attr-defined]
                    _start(process)
                self._processes.append(process)
                self._running.append(results)
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._processes:
            process.terminate()
            process.join()
        for results in self._running:
            results.close()

    def _is_running(self, first: int, wait_s: float = 0) -> bool:
        """Take the results that come within `wait_s` seconds. Return False if the first calls have ended."""
        for results in wait(self._running, wait_s):
            assert isinstance(results, Connection)
            try:
                number, failure = results.recv()
                self._ended[number] = failure
            except EOFError:
                self._running.remove(results)
                results.close()
        return bool(self._running) and not self._ended.keys() >= {*range(first)}

    def wait(self, console: Console, what: str = COMPILING, first: int | None = None) -> list[str]:
        """Show the progress until all calls have ended, or as many as `first`. Return the errors as text."""
        first = len(self._calls) if first is None else first
        if self._is_running(first):
            with counting(console, is_spoken=True) as progress:
                done = len(self._ended)
                bar = progress.add_task(what, total=len(self._calls) - done, unit="parts", failed="")
                while self._is_running(first, LOOK_S):
                    progress.update(bar, completed=len(self._ended) - done)
        failures = [failure for failure in self._ended.values() if failure]
        has_died = not self._running and len(self._ended) < len(self._calls)
        return [*failures, *["a process that compiles has ended early"] * has_died]


def _start(process: BaseProcess) -> None:
    """Start a process that ignores Ctrl-C, so only its parent ends it."""
    if threading.current_thread() is not threading.main_thread():  # only the main thread may set signal handlers
        process.start()
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        process.start()
    finally:
        signal.signal(signal.SIGINT, before)


def _run(calls: Sequence[Call], numbers: Connection, results: Connection, nice: int) -> None:
    """Make calls, each with the next of the numbers. Send the number, and None or an error."""
    if hasattr(os, "nice"):
        os.nice(nice)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # a fork has that of the command, which waits for the end of a call
    os.environ[WARNED] = "1"  # the process that waits says what is wrong with the cache
    parent = parent_process()
    while (number := os.read(numbers.fileno(), 1)) and parent and parent.is_alive():  # each byte has one reader
        results.send((number[0], why_not_compiled(calls[number[0]])))
        if not are_stored():
            return


def why_not_compiled(call: Call) -> str | None:
    """Compile kernels. Return the error as text, or None. The rows of cells that need these kernels have it, too."""
    function, argument = call
    try:
        with compiled_only():
            function(argument)
    except Exception as error:
        return error_text(error)
    return None


def compile_formats(formats: tuple[FormatKernels, ...]) -> None:
    """Compile the kernels of formats of one class, with a codec and without, as far as a format has them."""
    sample = sample_records()
    for wanted, codec in product(formats, CODECS):
        fmt = FORMATS[wanted.format]
        plain, full = (
            EncodeInput(records=records, bounds=sample.bounds, codec=codec)
            for records in (sample.plain, sample.with_headers)
        )
        for source in (plain, full) if wanted.with_headers else (plain,):
            with suppress(IllegalCombination):
                measure_size(fmt, source)
        for operation in wanted.operations:
            if operation == "fetch-record" and (codec != "none" or why_no_fetch(fmt)):
                continue
            with suppress(IllegalCombination):
                (arm,) = prepare([fmt], [plain.encode(fmt).data], operation, plain)
                arm.before()
                arm.call()


def compile_paths(paths: PathsOfFormats) -> None:
    """Compile the kernels of broker paths, with a codec and without, as far as a format takes them."""
    sample = sample_records()
    for (path, names), codec in product(paths, CODECS):
        source = EncodeInput(records=sample.plain, bounds=sample.bounds, codec=codec)
        with suppress(IllegalCombination):
            measure_path(path, [FORMATS[name] for name in names], None, source, rounds=1, sample_ns=1, seed=0)


def compile_payloads(workloads: tuple[NamedWorkload, ...]) -> None:
    """Compile the kernels that generate payload.

    The kernels that generate lengths, times and offsets are compiled already, because checking the sweep calls them.
    """
    for workload in workloads:
        _ = workload.generate(records=BATCH_RECORDS, seed=0).records


class SampleRecords(NamedTuple):
    """Records for the calls that compile kernels.

    bounds: int64[batches + 1], the first record of each batch, then the end. `plain` and `with_headers` share them.
    """

    plain: Records
    with_headers: Records
    bounds: Int64


def sample_records() -> SampleRecords:
    times = [1_767_225_600_000 + i for i in range(RECORDS)]
    values = [b"value"] * RECORDS
    return SampleRecords(
        plain=Records.from_lists(values, keys=[b"key"] * RECORDS, timestamps_ms=times),
        with_headers=Records.from_lists(values, timestamps_ms=times, headers=[[("name", b"value")]] * RECORDS),
        bounds=np.arange(0, RECORDS + 1, BATCH_RECORDS),
    )


def compile_for_cells(cells: Sequence[Cell], console: Console) -> None:
    """Compile the kernels that measuring these cells needs, on all cores. Skip this if the cache marks it as done."""
    calls = compilations(cells)
    if not are_compiled(calls):
        with Compilation(calls) as compilation:
            if not compilation.wait(console):
                note_compiled(calls)
