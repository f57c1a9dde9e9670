"""Hand-made rows of a run, and tables that declarations build from them."""

import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from kfbench.measure.cell import axes_of
from kfbench.present.declaration import TableView
from kfbench.present.engine import BuiltTable, TableSource
from kfbench.present.rows import Rows, Runs
from kfbench.present.table import Cell, Table
from kfbench.workloads.grid import GridPoint
from tests.runs import MANIFEST, stored

Row = dict[str, Any]
COMMON: Final[Row] = axes_of(GridPoint()) | {
    "grid": "g", "workload": "grid", "seed": 1, "codec": "none", "codec_version": "1", "host": "here", "status": "ok",
    "records": 10,
}  # fmt: skip


def counted(name: str, size_bytes: int, batch_size: int | None = 1, **more: Any) -> Row:
    """Return a row of bytes of ten records. Their keys and values have 100 bytes each."""
    row: Row = {
        "kind": "bytes", "format": name, "batch_size": batch_size, "batches": 10 // (batch_size or 5) or 1,
        "size_bytes": size_bytes, "payload_bytes": 1000, "overhead_bytes": size_bytes - 1000, "losses": "{}",
    }  # fmt: skip
    return _in_a_cell(COMMON | row | more)


def timed(name: str, cpu_ns: Sequence[int], batch_size: int | None = 1, **more: Any) -> Row:
    """Return a row of the CPU time of encoding ten records once. cpu_ns: of each round."""
    row: Row = {
        "kind": "cpu", "format": name, "batch_size": batch_size, "batches": 10 // (batch_size or 5) or 1,
        "operation": "encode", "arm": "measure", "cache": "resident", "inner_loops": 1, "cpu_ns": list(cpu_ns),
        "wall_ns": list(cpu_ns),
    }  # fmt: skip
    return _in_a_cell(COMMON | row | more)


def _in_a_cell(row: Row) -> Row:
    """Name the cell after everything that tells it from others."""
    axes = [row["workload"], row.get("variant"), *(row[name] for name in axes_of(GridPoint()) if name in row)]
    return {"cell_id": "-".join(map(str, axes)), **row}


def failed(row: Row, status: str = "error", error: str = "it broke") -> Row:
    """Return the row of a failure, which has no numbers."""
    numbers = dict.fromkeys(("size_bytes", "overhead_bytes", "cpu_ns", "wall_ns", "losses"))
    return row | numbers | {"status": status, "error": error}


def rows_of(rows: Iterable[Row]) -> Rows:
    with tempfile.TemporaryDirectory() as folder:
        return Rows(stored(Path(folder), list(rows)).measurements())


def runs_of(rows: Iterable[Row], **manifest: Any) -> Runs:
    """Return a run that joins no other."""
    return Runs(own=rows_of(rows), joined={}, manifests={"run": MANIFEST | {"started": "2026-11-24"} | manifest})


def built(made: Rows | Iterable[Row], /, **view: Any) -> BuiltTable:
    """Return the table `made` of a declaration. A metric may be its name alone."""
    metrics = [{"metric": each} if isinstance(each, str) else each for each in view.pop("metrics", ["size"])]
    words = {"name": "made", "caption": "", "rows": ["batch_size"], "columns": ["format"], **view, "metrics": metrics}
    source = TableSource(rows=made if isinstance(made, Rows) else rows_of(made))
    return BuiltTable(msgspec.convert(words, TableView), source, "made.toml")


def cells(table: Table | None, keys: int = 1) -> dict[Any, Mapping[str, Cell]]:
    """Return the cells of each row by the names of their columns. keys: how many columns name a row."""
    assert table is not None
    names = [column.name for column in table.columns[keys:]]
    return {row[0] if keys == 1 else row[:keys]: dict(zip(names, row[keys:], strict=True)) for row in table.rows}
