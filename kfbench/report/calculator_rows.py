"""The rows of a run for the calculator: bytes under each codec, and CPU time, of grid points and of named workloads.

A cell is a grid point (synthetic records) or a named workload, with the numbers measured on its records.
"""

import json
from collections import defaultdict
from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import pandas as pd

from kfbench.codecs import CODECS
from kfbench.formats import BASE_FORMAT
from kfbench.measure.cpu import OPERATIONS, Interval
from kfbench.money import month_facts
from kfbench.present.calculator.data import NONE, Content, Numbers, mean_settings
from kfbench.present.names import GRID, REFERENCE
from kfbench.present.rows import OWN, Rows, Runs, Where, run_words
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
ON_GRID: Final[Where] = {"workload": GRID, "research": False} | {axis: REFERENCE[axis] for axis in OTHERS}
DIGITS: Final = 4  # of bytes per record: the page multiplies them by a thousand records
CODEC_CPU: Final = "codec-cpu"  # the joined profile with a grid of batch size and value size under each codec


def report_content(runs: Runs) -> Content:
    """Return what the calculator of a report shows: the rows of CODEC_CPU if it is joined, and those of its own run."""
    found = {CODEC_CPU: runs.joined[CODEC_CPU], OWN: runs.own} if CODEC_CPU in runs.joined else {OWN: runs.own}
    cells = [cell | {"run": run} for run, rows in enumerate(found.values()) for cell in grid_cells(rows)]
    words = [run_words(runs.manifests[name]) for name in found]
    return Content(
        month=month_facts(), cells=cells, workloads=workload_cells(runs.own), operations=OPERATIONS, runs=words
    )


def grid_cells(rows: Rows) -> list[Numbers]:
    """Return the cells of the grid that have bytes under a codec or CPU times.

    A cell has `settings`, `bytes` (codec -> format -> bytes per record) and `cpu` (see `_add_cpu`). The bytes without a
    codec are computed by the page.
    """
    cells: dict[str, Numbers] = defaultdict(lambda: {"settings": {}, "bytes": {}, "cpu": {}})
    sizes = rows.arms({**ON_GRID, "kind": "bytes"})
    for row in sizes[sizes["codec"] != NONE].itertuples() if len(sizes) else ():
        cell = cells[str(row.cell_id)]
        cell["settings"] = cell["settings"] or _grid_settings(row)
        of_codec = cell["bytes"].setdefault(_codec(row.codec, row.level), {})
        of_codec[row.format] = round(row.size_bytes / row.records, DIGITS)
    for row, ratio in _times_and_ratios(rows, ON_GRID):
        cell = cells[str(row["cell_id"])]
        cell["settings"] = cell["settings"] or _grid_settings(row)
        _add_cpu(cell, row, ratio)
    return list(cells.values())


def _codec(name: str, level: Any) -> str:
    """Return the page's name of a codec: with its level, unless that is the default one."""
    codec = CODECS[name]
    return name if pd.isna(level) or level == codec.default_level else f"{name} {int(level)}"


def _times_and_ratios(rows: Rows, where: Where) -> Iterator[tuple["pd.Series[Any]", Interval | None]]:
    """Yield each CPU time with its ratio to v2; None for v2 itself.

    Under a codec: with a new context per batch, as Kafka's producer makes it.
    """
    where = {**where, "kind": "cpu", "cache": "resident"}
    arms = rows.arms(where)
    if arms.empty:
        return
    base = {"format": BASE_FORMAT}
    bases = rows.based(where, base)
    for (_, arm), place in zip(arms.iterrows(), rows.bases(arms, where, base), strict=True):
        if (arm.get("context") == "new") != (arm["codec"] != NONE):
            continue
        if arm["format"] == BASE_FORMAT:
            yield arm, None
        elif place is not None:
            yield arm, rows.time_ratio(arm, bases.iloc[place])


def _grid_settings(row: Any) -> Numbers:
    get = row.get if isinstance(row, pd.Series) else lambda name, default: getattr(row, name, default)
    found = {name: int(get(axis, REFERENCE[axis])) for name, axis in AXES.items()}
    return found | {"null_percent": round(100 * float(get("null_share", 0.0)))}


def workload_cells(rows: Rows) -> list[Numbers]:
    """Return a cell for each named workload in its default variant and its own batches.

    `settings` has the means of its records: they fill the form. `bytes` has the codec "none" as well.
    """
    where: Where = {"population": "named", "variant": DEFAULT, "batch_size": "null"}
    cells: dict[str, Numbers] = {}
    sizes = rows.arms({**where, "kind": "bytes"})
    for row in sizes.itertuples():
        name = str(row.workload)
        cell = cells.setdefault(name, {"name": name, "settings": {}, "bytes": {}, "cpu": {}})
        of_codec = cell["bytes"].setdefault(_codec(row.codec, row.level), {})
        of_codec[row.format] = round(row.size_bytes / row.records, DIGITS)
        if row.format == BASE_FORMAT and row.codec == NONE and isinstance(row.field_bytes, str):
            cell["settings"] = mean_settings(json.loads(row.field_bytes), row.records, row.batches)
    for arm, ratio in _times_and_ratios(rows, where):
        if arm["workload"] in cells:
            _add_cpu(cells[arm["workload"]], arm, ratio)
    return [cells[name] for name in sorted(cells) if cells[name]["settings"]]


def _add_cpu(cell: Numbers, row: "pd.Series[Any]", ratio: Interval | None) -> None:
    """Add cell["cpu"][codec][operation][format]: the ratio to v2, and the distances to both ends of its 95 % interval.

    All three are in thousandths. v2 has its CPU time in ns per record instead.
    """
    of_codec = cell["cpu"].setdefault(_codec(row["codec"], row["level"]), {}).setdefault(row["operation"], {})
    if ratio is None:
        of_codec[BASE_FORMAT] = round(float(np.median(row["cpu_ns"])) / row["records"] / row["inner_loops"], 1)
    else:
        median, low, high = (round(1000 * end) for end in (ratio.median, ratio.low, ratio.high))
        of_codec[row["format"]] = [median, low - median, high - median]
