"""Rows of the kind "instructions": counts of one operation or broker path in each format of a cell.

A process under callgrind counts. It is kept for many cells, because it takes some 20 s to start.
"""

import os
import shutil
import signal
import tempfile
from collections.abc import Iterator, Sequence
from functools import lru_cache
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Final, cast

from kfbench.formats import FORMATS, Format
from kfbench.kernels.jit import before_compiling
from kfbench.measure.cpu import Arm, Operation
from kfbench.measure.encode_input import EncodeInput
from kfbench.measure.format_arms import prepare, why_no_fetch
from kfbench.measure.instructions import (
    ENVIRONMENT,
    KERNELS,
    Counts,
    command,
    count_calls,
    read_counts,
    why_not_counted,
)
from kfbench.measure.path_arms import prepare_path
from kfbench.measure.paths import PATHS
from kfbench.measure.schema import Row
from kfbench.sweep.definition.cell import Cell
from kfbench.sweep.definition.legality import illegal
from kfbench.sweep.host.child import LibraryEnded, Program, call_under, end_child
from kfbench.sweep.run.cell_rows import encode_input, failed, sample_of, skipped
from kfbench.workloads import WORKLOADS

LOADED_FORMATS: Final = ("v2", "v3")
_COMPILER: Final = Program("the compiler of kernels", environment=tuple(KERNELS.items()))


class NotCompiled(Exception):
    """A kernel is not in the cache. To compile it under valgrind would take minutes."""


def instruction_rows(cell: Cell) -> Iterator[Row]:
    """Count the instructions of a cell's operation: once for all its batches, and once for the first half of them.

    What a record takes is the difference, divided by the records of the second half. What a call takes beside its
    records is the rest.
    """
    rows = {name: skipped(name, reason) for name in cell.formats if (reason := _why_not(cell, name))}
    rows |= _counted(cell, [name for name in cell.formats if name not in rows])
    yield from ({"operation": cell.path, "to_format": cell.to, "arm": "measure"} | rows[name] for name in cell.formats)


def _why_not(cell: Cell, name: str) -> str | None:
    """Return the reason why a format's operation cannot be counted with these records; None if it can."""
    if reason := why_not_counted():
        return reason
    if cell.batches < 2:
        return "one batch only: what a record takes is the difference of two counts"
    if cell.path in PATHS:
        return illegal(name, sample_of(cell), cell.codec, cell.path, cell.to)
    if cell.path == "fetch-record" and cell.codec != "none":
        return "a codec cannot decompress one record alone"
    return illegal(name, sample_of(cell), cell.codec) or (
        why_no_fetch(FORMATS[name]) if cell.path == "fetch-record" else None
    )


def _counted(cell: Cell, names: Sequence[str]) -> dict[str, Row]:
    """Count formats together, because switching callgrind on takes long. If that fails, count each alone."""
    if not names:
        return {}
    try:
        try:
            return _counted_rows(cell, names)
        except NotCompiled:
            call_under(_COMPILER, _compile, cell, names)
            return _counted_rows(cell, names)
    except Exception as error:
        if len(names) > 1:
            return {name: row for each in names for name, row in _counted(cell, [each]).items()}
        is_end = isinstance(error, LibraryEnded)
        return {names[0]: skipped(names[0], str(error)) if is_end else failed(cell, names[0], error)}
    finally:
        end_child(_COMPILER)


def _counted_rows(cell: Cell, names: Sequence[str]) -> dict[str, Row]:
    folder = _folder()
    folder.mkdir(mode=0o700)
    try:
        records = call_under(valgrind(folder), _counted_in_fork, cell, names)
        counts = read_counts(folder)
    finally:
        shutil.rmtree(folder)
    common: Row = {"status": "ok", "records": cell.records, "batches": cell.batches, "counted_records": records}
    return {
        name: {"format": name} | common | dict(zip(Counts._fields, map(list, zip(*found, strict=True)), strict=True))
        for name, *found in zip(names, counts[::2], counts[1::2], strict=True)
    }


def valgrind(folder: Path) -> Program:
    return Program("valgrind", command(folder), tuple(ENVIRONMENT.items()))


@lru_cache
def _folder() -> Path:
    """Return the path of a folder that does not exist, in which callgrind writes during a call."""
    folder = Path(tempfile.mkdtemp(prefix="kfbench-instructions-"))
    folder.rmdir()
    return folder


def _count(cell: Cell, names: Sequence[str]) -> list[int]:
    """Count in this process, which runs under valgrind. Return the number of records of each count of a format."""
    sources = _sources(cell)
    with before_compiling(_refuse):
        count_calls(_arms(cell, names, sources))
    return [len(source.records) for source in sources]


def _counted_in_fork(cell: Cell, names: Sequence[str]) -> list[int]:
    """Count in a fork of this process, which runs under valgrind. See `_count`.

    The layout of memory moves some counts of Python and NumPy. A fork's does not depend on the cells before.
    """
    with before_compiling(_refuse):
        _load_kernels()
    fork = get_context("fork")
    here, there = fork.Pipe(duplex=False)
    process = fork.Process(target=_send_count, args=(there, cell, names))
    process.start()
    there.close()
    try:
        found = here.recv()
    except EOFError:
        process.join()
        os.kill(os.getpid(), -(process.exitcode or -signal.SIGABRT))
    process.join()
    if isinstance(found, Exception):
        raise found
    return list(found)


@lru_cache
def _load_kernels() -> None:
    """Load the kernels that most cells need, always the same ones. Loading the first takes valgrind 7 s."""
    cell = WORKLOADS["grid"].generate(records=10, seed=0)
    for name in LOADED_FORMATS:
        log = FORMATS[name].encode(cell.records, cell.bounds)
        FORMATS[name].decode(log.data)


def _send_count(there: Connection, cell: Cell, names: Sequence[str]) -> None:
    try:
        there.send(_count(cell, names))
    except Exception as error:
        there.send(error)


def _refuse() -> None:
    raise NotCompiled("a kernel is not compiled for the processor that instructions are counted on")


def _compile(cell: Cell, names: Sequence[str]) -> None:
    """Compile the kernels of a count, in a process that does not run under valgrind."""
    _load_kernels()
    for arm in _arms(cell, names, _sources(cell)):
        arm.before()
        arm.call()
        arm.verify()


def _sources(cell: Cell) -> list[EncodeInput]:
    whole = encode_input(cell, sample_of(cell))
    return [whole.between(0, cell.batches // 2), whole]


def _arms(cell: Cell, names: Sequence[str], sources: Sequence[EncodeInput]) -> list[Arm]:
    """Return the calls of each format, one per source."""
    return [_arm(cell, FORMATS[name], source) for name in names for source in sources]


def _arm(cell: Cell, fmt: Format, source: EncodeInput) -> Arm:
    if cell.path in PATHS:
        return prepare_path(PATHS[cell.path], fmt, FORMATS[cell.to] if cell.to else None, source, cell.seed)
    (arm,) = prepare([fmt], [source.encode(fmt).data], cast(Operation, cell.path), source)
    return arm
