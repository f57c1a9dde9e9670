"""Rows of the kind "instructions": counts of one operation or broker path in each format of a cell."""

from collections.abc import Iterator
from functools import partial

from kfbench.formats import FORMATS
from kfbench.measure.callgrind import CallCounts, why_not_counted
from kfbench.measure.child import LibraryEnded
from kfbench.measure.encode_input import EncodeInput
from kfbench.measure.instructions import CountRequest, count_instructions, why_no_operation
from kfbench.measure.paths import PATHS
from kfbench.measure.schema import Row
from kfbench.sweep.definition.cell import Cell
from kfbench.sweep.definition.legality import illegal
from kfbench.sweep.run.cell_rows import encode_input, failed, sample_of, skipped
from kfbench.workloads import Sample


def instruction_rows(cell: Cell) -> Iterator[Row]:
    """Count the instructions of a cell's operation: once for the first half of its batches, and once for all.

    What a record takes is the difference, divided by the records of the second half. What a call takes beside its
    records is the rest.
    """
    try:
        sample = sample_of(cell)
    except Exception as error:
        rows = {name: failed(cell, name, error) for name in cell.formats}
    else:
        rows = {name: skipped(name, reason) for name in cell.formats if (reason := _why_not(cell, name, sample))}
    if names := [name for name in cell.formats if name not in rows]:
        counted = CountRequest(operation=cell.path, make_source=partial(_source, cell), to=cell.to, seed=cell.seed)
        common: Row = {
            "status": "ok",
            "records": cell.records,
            "batches": cell.batches,
            "counted_records": [len(half.records) for half in counted.halves()],
        }
        for name, found in count_instructions(counted, names).items():
            if isinstance(found, LibraryEnded):
                rows[name] = skipped(name, str(found))
            elif isinstance(found, Exception):
                rows[name] = failed(cell, name, found)
            else:
                columns = zip(CallCounts._fields, map(list, zip(*found, strict=True)), strict=True)
                rows[name] = {"format": name} | common | dict(columns)
    yield from ({"operation": cell.path, "to_format": cell.to, "arm": "measure"} | rows[name] for name in cell.formats)


def _source(cell: Cell) -> EncodeInput:
    return encode_input(cell, sample_of(cell))


def _why_not(cell: Cell, name: str, sample: Sample) -> str | None:
    """Return the reason why a format's operation cannot be counted with these records; None if it can."""
    if reason := why_not_counted():
        return reason
    if cell.batches < 2:
        return "one batch only: what a record takes is the difference of two counts"
    if cell.path in PATHS:
        return illegal(name, sample, cell.codec, cell.path, cell.to)
    return illegal(name, sample, cell.codec) or why_no_operation(FORMATS[name], cell.path, cell.codec)
