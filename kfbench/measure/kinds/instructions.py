"""The kind "instructions": counts of one operation or broker path in each format, by callgrind."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, Final

import msgspec

from kfbench.formats import FORMATS
from kfbench.measure.callgrind import COUNTED_CALLS, CallCounts, why_not_counted
from kfbench.measure.cell import Cell
from kfbench.measure.child import LibraryEnded
from kfbench.measure.columns import INT64_LIST, Row, added
from kfbench.measure.cpu import OPERATIONS
from kfbench.measure.encode_input import EncodeInput
from kfbench.measure.instructions import CountRequest, count_instructions, why_no_operation
from kfbench.measure.kinds.base import (
    CellCosts,
    GridBlock,
    Kernels,
    Kind,
    PathTarget,
    Unavailable,
    encode_input,
    legal_input,
    sample_of,
)
from kfbench.measure.kinds.broker import path_targets
from kfbench.measure.paths import PATHS

_FORMAT_S: Final = 1.5  # making the records, switching callgrind on and off
_SLOWER: Final = 50  # under callgrind


class InstructionSettings(msgspec.Struct, forbid_unknown_fields=True, kw_only=True, frozen=True):
    """The size of a measurement of the kind "instructions", as in CpuSettings. Valgrind is 50 times slower."""

    records: int = 4_000
    payload_bytes: int = 1 << 20
    codec_payload_bytes: int = 1 << 16


class InstructionsKind(Kind):
    name = section = "instructions"
    settings = InstructionSettings
    columns = tuple(  # lists of two calls, for the first half of the batches and for all
        added(name, INT64_LIST, unit, meaning, is_measured=name != "counted_records")
        for name, unit, meaning in (
            ("counted_records", "records", "records of each call"),
            ("kernel_instructions", "instructions", "instructions of kernels and NumPy in each call"),
            ("library_instructions", "instructions", "instructions of the codec's library in each call"),
            ("python_instructions", "instructions", "instructions of Python and libc in each call"),
            ("l1_misses", "misses", "simulated misses of the first-level caches of instructions and data"),
            ("last_level_misses", "misses", "simulated misses of the last-level cache"),
        )
    )
    meanings = {"operation": "any operation of the other kinds, sizes or a path"}
    has_targets = counts_operations = True

    def problems(self, block: GridBlock, settings: Any) -> Iterator[str]:
        if block.operations == () and not block.paths:
            yield 'operations: measure = ["instructions"] needs operations or paths'

    def targets(self, block: GridBlock) -> list[PathTarget]:
        operations = OPERATIONS if block.operations is None else block.operations
        return [*(PathTarget(operation, None) for operation in dict.fromkeys(operations)), *path_targets(block)]

    def rows(self, cell: Cell) -> Iterator[Row]:
        """Count the instructions of a cell's operation: once for the first half of its batches, and once for all.

        What a record takes is the difference, divided by the records of the second half. What a call takes beside its
        records is the rest.
        """
        sources, rows = self.attempt(cell, partial(_countable, cell))
        if sources:
            counted = CountRequest(operation=cell.path, make_source=partial(_source, cell), to=cell.to, seed=cell.seed)
            common: Row = {
                "status": "ok",
                "records": cell.records,
                "batches": cell.batches,
                "counted_records": [len(half.records) for half in counted.halves()],
            }
            for name, found in count_instructions(counted, [*sources]).items():
                if isinstance(found, Exception):
                    error = Unavailable(str(found)) if isinstance(found, LibraryEnded) else found
                    rows[name] = self.failures(cell, name, error)
                else:
                    columns = dict(zip(CallCounts._fields, map(list, zip(*found, strict=True)), strict=True))
                    rows[name] = [{"format": name} | common | columns | key for key in self.row_keys(cell)]
        for name in cell.formats:
            yield from rows[name]

    def row_keys(self, cell: Cell) -> list[Row]:
        return [{"arm": "measure", "operation": cell.path, "to_format": cell.to}]

    def estimate_s(self, cell: Cell) -> float:
        costs = CellCosts.of(cell)
        calls = 1.5 * (COUNTED_CALLS + 1)  # a call for half of the records takes half as long
        return len(cell.formats) * (_FORMAT_S + calls * _SLOWER * (costs.codec_s + costs.plain_s))

    def kernels(self, cell: Cell) -> Kernels | None:
        """Return None: the processes that count compile for another processor than this one."""
        return None

    def note(self, cells: Sequence[Cell]) -> str | None:
        return why_not_counted() if cells else None


def _source(cell: Cell) -> EncodeInput:
    return encode_input(cell, sample_of(cell))


def _countable(cell: Cell, name: str) -> EncodeInput:
    """Return the cell's records. Raises Unavailable if the format's operation cannot be counted with them."""
    one_batch = "one batch only: what a record takes is the difference of two counts" if cell.batches < 2 else None
    if reason := why_not_counted() or one_batch:
        raise Unavailable(reason)
    source = legal_input(cell, name)
    if cell.path not in PATHS and (reason := why_no_operation(FORMATS[name], cell.path, cell.codec)):
        raise Unavailable(reason)
    return source


KINDS: Final = (InstructionsKind(),)
