"""Rows of the kind "instructions": counts of one operation or broker path in each format of a cell.

A process under callgrind counts. It is kept for many cells, because it takes some 20 s to start.
"""

import shutil
import tempfile
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Final, cast

from kfbench.formats import FORMATS
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

_COMPILER: Final = Program("the compiler of kernels", environment=tuple(KERNELS.items()))


class NotCompiled(Exception):
    """A kernel is not in the cache. To compile it under valgrind would take minutes."""


def instruction_rows(cell: Cell) -> Iterator[Row]:
    """Count the instructions of a cell's operation: once for all its batches, and once for the first half of them.

    What a record takes is the difference, divided by the records of the second half. What a call takes beside its
    records is the rest.
    """
    common: Row = {"operation": cell.path, "to_format": cell.to, "arm": "measure"}
    for name in cell.formats:
        try:
            reason = why_not_counted() or _why_not(cell, name)
            row = skipped(name, reason) if reason else _counted(cell, name)
        except LibraryEnded as error:
            row = skipped(name, str(error))
        except Exception as error:
            row = failed(cell, name, error)
        yield common | row


def _why_not(cell: Cell, name: str) -> str | None:
    """Return the reason why a format does not have the operation with these records; None if it has."""
    if cell.batches < 2:
        return "one batch only: what a record takes is the difference of two counts"
    if cell.path in PATHS:
        return illegal(name, sample_of(cell), cell.codec, cell.path, cell.to)
    if cell.path == "fetch-record" and cell.codec != "none":
        return "a codec cannot decompress one record alone"
    return illegal(name, sample_of(cell), cell.codec) or (
        why_no_fetch(FORMATS[name]) if cell.path == "fetch-record" else None
    )


def _counted(cell: Cell, name: str) -> Row:
    try:
        return _counted_row(cell, name)
    except NotCompiled:
        try:
            call_under(_COMPILER, _compile, cell, name)
        finally:
            end_child(_COMPILER)
        return _counted_row(cell, name)


def _counted_row(cell: Cell, name: str) -> Row:
    folder = _folder()
    folder.mkdir(mode=0o700)
    try:
        valgrind = Program("valgrind", command(folder), tuple(ENVIRONMENT.items()))
        row = call_under(valgrind, _count, cell, name)
        return row | dict(zip(Counts._fields, map(list, zip(*read_counts(folder), strict=True)), strict=True))
    finally:
        shutil.rmtree(folder)


@lru_cache
def _folder() -> Path:
    """Return the path of a folder that does not exist, in which callgrind writes during a call."""
    folder = Path(tempfile.mkdtemp(prefix="kfbench-instructions-"))
    folder.rmdir()
    return folder


def _count(cell: Cell, name: str) -> Row:
    """Count in this process, which runs under valgrind. Return the row without the counts."""
    sources = _sources(cell)
    with before_compiling(_refuse):
        count_calls(_arms(cell, name, sources))
    return {
        "format": name,
        "status": "ok",
        "records": cell.records,
        "batches": cell.batches,
        "counted_records": [len(source.records) for source in sources],
    }


def _refuse() -> None:
    raise NotCompiled("a kernel is not compiled for the processor that instructions are counted on")


def _compile(cell: Cell, name: str) -> None:
    """Compile the kernels of a count, in a process that does not run under valgrind."""
    for arm in _arms(cell, name, _sources(cell)):
        arm.before()
        arm.call()
        arm.verify()


def _sources(cell: Cell) -> list[EncodeInput]:
    whole = encode_input(cell, sample_of(cell))
    return [whole.between(0, cell.batches // 2), whole]


def _arms(cell: Cell, name: str, sources: Sequence[EncodeInput]) -> list[Arm]:
    fmt = FORMATS[name]
    if cell.path in PATHS:
        to = FORMATS[cell.to] if cell.to else None
        return [prepare_path(PATHS[cell.path], fmt, to, source, cell.seed) for source in sources]
    operation = cast(Operation, cell.path)
    return [prepare([fmt], [source.encode(fmt).data], operation, source)[0] for source in sources]
