"""Make cells of every kind."""

import sys
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from kfbench.formats import FORMATS, Format
from kfbench.measure.cell import Cell
from kfbench.measure.kinds import KINDS
from kfbench.measure.kinds.floor import FLOOR
from kfbench.research.dictionaries.kinds import DictionarySettings
from kfbench.workloads.catalogue import WORKLOADS as CATALOGUE
from kfbench.workloads.grid import GridPoint


def a_cell(kind: Any = "bytes", formats: tuple[str, ...] = ("v0", "v2", "v3"), **changes: Any) -> Cell:
    point = GridPoint(**changes.pop("axes", {}))
    given: dict[str, Any] = {
        "kind": kind, "cell_id": "c0ffee", "seed": 5, "workload": point, "records": 300, "codec": "none", "level": None,
        "formats": formats, "grids": {"g": formats}, "rounds": 5, "sample_us": 50,
    }  # fmt: skip
    return Cell(**given | changes)


def dictionary_cell(kind: Any = "dictionary", workload: str = "user-activity", **changes: Any) -> Cell:
    """Return a cell of a named workload in its own batches. Numbers of DictionarySettings are in `settings`."""
    settings = {"size_bytes": (4_096,), "rounds": 5, "sample_us": 50} | changes.pop("settings", {})
    given: dict[str, Any] = {"formats": ("v2", "columnar"), "codec": "zstd", "level": 3, "records": 1_000} | changes
    cell = a_cell(kind, settings=DictionarySettings(**settings), **given)
    return replace(cell, workload=CATALOGUE[workload])


def rival_cell(kind: Any = "rivals", workload: str = "user-activity", **changes: Any) -> Cell:
    """Return a cell of a named workload with 40 records in its own batches."""
    given: dict[str, Any] = {"formats": ("parquet", "v2"), "codec": "zstd", "level": 3, "records": 40, "rounds": 3}
    return replace(a_cell(kind, **given | changes), workload=CATALOGUE[workload])


def model_cell(start: int, records: int, workload: str = "consumer-offsets", **changes: Any) -> Cell:
    return replace(a_cell("model", **changes), workload=CATALOGUE[workload], start=start, records=records)


def measure_with(monkeypatch: pytest.MonkeyPatch, formats: Mapping[str, Format]) -> None:
    """Let all kinds measure these formats in the place of those with the same name. Other processes keep theirs."""
    for name in {type(kind).__module__ for kind in KINDS.values()}:
        if hasattr(sys.modules[name], "FORMATS"):
            monkeypatch.setattr(sys.modules[name], "FORMATS", {**FORMATS, **formats})


CELLS_OF_EVERY_KIND = [
    a_cell(),
    a_cell(codec="zstd", level=3, formats=("v2", "v3")),
    a_cell("cpu"),
    a_cell("cpu", codec="lz4", level=9, formats=("v2", "v3"), context="new"),
    a_cell("metadata"),
    a_cell("lookup"),
    a_cell("record", formats=("v2", "columnar")),
    a_cell("prefix", formats=("v3-full",), codec="gzip", level=6),
    a_cell("broker", path="append"),
    a_cell("broker", path="convert", to="v1", formats=("v0", "v2")),
    a_cell("instructions", path="encode", formats=("v2", "v3"), batches=3),
    dictionary_cell(),
    dictionary_cell("dictionary-cpu"),
    rival_cell(),
    rival_cell("rivals-cpu", formats=("arrow-ipc", "v2")),
    a_cell("model", start=300),
    a_cell("floor", formats=(FLOOR,)),
]
