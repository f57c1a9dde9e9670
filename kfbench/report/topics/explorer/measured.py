"""The rows of a run for the explorer: bytes under each codec, and CPU time, of grid points and of named workloads.

A cell is a grid point (synthetic records) or a named workload, with the numbers measured on its records.
"""

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import numpy as np
import pandas as pd

from kfbench.codecs import CODECS
from kfbench.formats import BASE_FORMAT
from kfbench.layouts import NULL_LENGTH
from kfbench.report.data.arms import arms_of, one_per_arm, paired
from kfbench.report.data.axes import GRID, REFERENCE
from kfbench.report.data.dictionaries import OWN
from kfbench.report.data.results import Results
from kfbench.report.data.rivals import Rivals
from kfbench.tables import Interval
from kfbench.workloads.catalogue import DEFAULT

# The form's settings, and the axes of the grid that they move. On all other axes a cell has the grid's default.
AXES: Final = {
    "records": "batch_size",
    "key_bytes": "key_bytes",
    "value_bytes": "value_bytes",
    "span_ms": "timestamp_spread_ms",
    "headers": "headers",
}
OTHERS: Final = (
    "header_key_bytes", "header_value_bytes", "payload", "offset_stride", "base_timestamp_ms", "producer", "append_time"
)  # fmt: skip
NONE: Final = "none"
Numbers = dict[str, Any]


def grid_cells(results: Results) -> list[Numbers]:
    """Return the cells of the grid that have bytes under a codec or CPU times.

    A cell has `settings`, `bytes` (codec -> format -> bytes per record) and `cpu` (see `_cpu_of`). The bytes without a
    codec are computed by the page.
    """
    cells: dict[str, Numbers] = defaultdict(lambda: {"settings": {}, "bytes": {}, "cpu": {}})
    sizes = results.grid_bytes
    for row in _default_rows(sizes[sizes["codec"] != NONE]).itertuples():
        cell = cells[str(row.cell_id)]
        cell["settings"] = cell["settings"] or _grid_settings(row)
        cell["bytes"].setdefault(row.codec, {})[row.format] = round(row.size_per_record, 2)
    timed = _default_rows(results.cpu[results.cpu["arm"] == "measure"])
    for row in results.with_ratios(timed).itertuples():
        if isinstance(row.ratio, Interval):
            cell = cells[str(row.cell_id)]
            cell["settings"] = cell["settings"] or _grid_settings(row)
            _add_cpu(cell, row, row.ratio)
    return list(cells.values())


def _default_rows(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rows on the axes of the form, under each codec's default level."""
    is_default = _has_default_level(rows)
    for axis in OTHERS:
        if axis in rows:
            is_default &= rows[axis].isna() | (rows[axis] == REFERENCE[axis])
    return rows[is_default]


def _has_default_level(rows: pd.DataFrame) -> pd.Series:
    levels = rows["codec"].map({name: codec.default_level for name, codec in CODECS.items()}).astype("float64")
    stored = rows["level"].astype("float64")
    return (stored == levels) | (stored.isna() & levels.isna()) | (rows["codec"] == NONE)


def _grid_settings(row: Any) -> Numbers:
    found = {name: int(getattr(row, axis, REFERENCE[axis])) for name, axis in AXES.items()}
    return found | {"null_percent": round(100 * float(getattr(row, "null_share", 0.0)))}


def workload_cells(results: Results) -> list[Numbers]:
    """Return a cell for each named workload in its default variant and its own batches.

    `settings` has the means of its records: they move the sliders. `bytes` has the codec "none" as well.
    """
    rows = results.research
    rows = rows[(rows["workload"] != GRID) & (rows["status"] == "ok") & rows["batch_size"].isna()]
    rows = one_per_arm(rows)
    rows = rows[(rows["variant"] == DEFAULT) & _has_default_level(rows) & (rows["cache"] != "cold")]
    return [
        cell
        for name, part in rows.groupby("workload", sort=True)
        if (cell := _workload_cell(str(name), part))["settings"]
    ]


def _workload_cell(name: str, rows: pd.DataFrame) -> Numbers:
    cell: Numbers = {"name": name, "settings": {}, "bytes": {}, "cpu": {}}
    for row in rows[rows["kind"] == "bytes"].itertuples():
        cell["bytes"].setdefault(row.codec, {})[row.format] = round(row.size_bytes / row.records, 2)
        if row.format == BASE_FORMAT and row.codec == NONE and isinstance(row.field_bytes, str):
            cell["settings"] = mean_settings(json.loads(row.field_bytes), row.records, row.batches)
    for row, ratio in _timed_pairs(rows[rows["kind"] == "cpu"]):
        _add_cpu(cell, row, ratio)
    return cell


def mean_settings(fields: Mapping[str, int], records: int, batches: int) -> Numbers:
    """Return the means of a workload from the bytes of its fields in v2. A header key length takes one byte or two."""
    headers = round(fields["header_key_length"] / records)
    each = max(headers * records, 1)
    return {
        "records": max(round(records / batches), 1),
        "key_bytes": round(fields["key"] / records) if fields["key"] else NULL_LENGTH,
        "value_bytes": round(fields["value"] / records),
        "headers": headers,
        "header_key_bytes": round(fields["header_key"] / each),
        "header_value_bytes": round(fields["header_value"] / each),
        "null_percent": 0,
    }


def _timed_pairs(rows: pd.DataFrame) -> Iterator[tuple[Any, Interval]]:
    """Yield each CPU measurement with its ratio to v2 under the same codec."""
    for _, part in rows[rows["arm"] == "measure"].groupby(["operation", "codec"], sort=True):
        arms = arms_of(part)
        base = next((arm for arm in arms if arm.format == BASE_FORMAT), None)
        for row, arm in zip(part.itertuples(), arms, strict=True):
            if base is not None and len(arm.cpu_ns) == len(base.cpu_ns):
                yield row, paired(arm, base)


def _add_cpu(cell: Numbers, row: Any, ratio: Interval) -> None:
    """Add cell["cpu"][codec][operation][format]: the ratio to v2, and the distances to both ends of its 95 % interval.

    All three are in thousandths. v2 has its CPU time in ns per record instead.
    """
    of_codec = cell["cpu"].setdefault(row.codec, {}).setdefault(row.operation, {})
    if row.format == BASE_FORMAT:
        ns = float(np.median(row.cpu_ns)) / row.records / row.inner_loops
        of_codec[row.format] = round(ns, 1)
    elif ratio.low is not None and ratio.high is not None:
        median, low, high = (round(1000 * x) for x in (ratio.median, ratio.low, ratio.high))
        of_codec[row.format] = [median, low - median, high - median]


def rival_bytes(found: Rivals) -> dict[str, Numbers]:
    """Return workload -> codec -> [name, bytes per record, those of v2] of each rival, in the workload's own batches.

    v2 was measured again on the records of the rivals, which may be fewer than those of the workload's cell.
    """
    rivals: dict[str, Numbers] = {}
    for key, size in found.sizes.items():
        if key.batch == OWN and key.format in found.best:
            base = found.size(key.workload, OWN, BASE_FORMAT, key.codec)
            if base:
                of_codec = rivals.setdefault(key.workload, {}).setdefault(key.codec, [])
                of_codec.append([key.format, round(size, 2), round(base, 2)])
    return rivals


def codecs_of(cells: Iterable[Numbers]) -> list[str]:
    """Return the codecs with measured bytes, in the order of `kfbench.codecs.CODECS`."""
    found = {codec for cell in cells for codec in cell["bytes"]}
    return [name for name in CODECS if name in found and name != NONE]
