"""The section about the cost per record by batch size. The figure of the front page.

All other axes have the grid's default values.
"""

from collections.abc import Sequence
from typing import Final

import pandas as pd

from kfbench.formats import BASE_FORMAT
from kfbench.measure.cpu import OPERATIONS
from kfbench.report.data.arms import lost_of
from kfbench.report.data.axes import HEADLINE_BATCHES, REFERENCE, with_settings
from kfbench.report.data.results import Results, Slice, as_cell
from kfbench.report.data.shown_formats import pictured
from kfbench.report.data.views import Views
from kfbench.report.data.words import batch_words
from kfbench.report.render import plots
from kfbench.report.section import Answer, Figure, Missing, Texts
from kfbench.report.topics.axis import axis_table, ends_words, overhead_sentence, relative_table
from kfbench.report.topics.floors import floor_parts
from kfbench.tables import Column, Interval, Table, listed, number

NO_BATCH_SIZES: Final = "no bytes without a codec at two batch sizes"


def batch_size_answer(run: Views) -> Answer | str:
    results = run.results
    part = results.over_batch_size
    if part is None:
        return NO_BATCH_SIZES
    caption = "Overhead, bytes per record, uncompressed"
    ratio_caption = f"All bytes, payload too, relative to {BASE_FORMAT}"
    return Answer(
        means=overhead_sentence(part),
        texts=Texts(rows=part.rows),
        tables=(
            reference_table(results),
            axis_table(part, "overhead_per_record", name="overhead", caption=caption, floor=_floor(results, part)),
            relative_table(part, "size_per_record", name="ratio", caption=ratio_caption),
        ),
    )


def overhead_figure(results: Results, formats: Sequence[str]) -> Figure | Missing:
    """Draw the figure of the front page: overhead over batch size.

    formats: the formats of the first table; if empty, the formats of all other pictures are drawn.
    """
    part = results.over_batch_size
    if part is None:
        return Missing(what="Overhead over batch size", why=NO_BATCH_SIZES)
    every = part.pivot("overhead_per_record")
    frame = every[[name for name in every.columns if name in formats]] if formats else pictured(every)
    floor = _floor(results, part)
    if floor is None:
        below, ends = "The metadata floor is not drawn: this run has none at these points.", ends_words(frame)
    else:
        below = f"Floor: {floor_parts(_floors(results, part))}.{_below_floor(frame, floor, part.rows)}"
        ends = f"{ends_words(frame)}; {ends_words(floor.to_frame('the floor'))}"
    return Figure(
        name="overhead",
        svg=plots.overhead(frame, floor=floor),
        alt=f"Overhead in bytes per record over batch size, one line per format: {ends}",
        caption=with_settings("Overhead: bytes per record beyond keys, values and headers, uncompressed", part.setting)
        + f" Both axes are logarithmic. {below}",
        numbers="overhead",
    )


def _floors(results: Results, part: Slice) -> pd.DataFrame:
    return results.floors[results.floors["cell_id"].isin(part.rows["cell_id"])]


def _floor(results: Results, part: Slice) -> pd.Series | None:
    """Return the metadata floor (a lower limit) per value of the axis; None if it has fewer than two values."""
    rows, cells = _floors(results, part), part.rows.drop_duplicates("cell_id").set_index("cell_id")[part.axis]
    floor = pd.Series(rows["overhead_per_record"].to_numpy(), index=rows["cell_id"].map(cells)).sort_index()
    return floor.astype(float) if len(floor) > 1 else None


def _below_floor(frame: pd.DataFrame, floor: pd.Series, rows: pd.DataFrame) -> str:
    """Name the formats with less overhead than the metadata floor (computed from entropy), and the fields they lose."""
    words = []
    for name in frame:
        below = [batch_words(size) for size in floor.index if frame.at[size, name] < floor[size]]
        losses = rows[rows["format"] == name]["losses"]
        lost = list(dict.fromkeys(what for of_row in losses for what in lost_of(of_row)))
        if below:
            words.append(f"{name}{f' (without {listed(lost)})' if lost else ''} at {listed(below)}")
    return f" The header's size is a choice. Below the floor: {listed(words)}." if words else ""


def reference_table(results: Results) -> Table | None:
    """Return a table with a row per format: overhead at several batch sizes, then bytes and CPU time relative to v2."""
    part = results.over_batch_size
    if part is None:
        return None
    overhead = part.pivot("overhead_per_record")
    every_fourth = list(overhead.index[:: max(1, len(overhead) // 4)])
    batches = [size for size in HEADLINE_BATCHES if size in overhead.index] or every_fourth
    sizes = part.pivot("size_per_record")
    at = REFERENCE["batch_size"] if REFERENCE["batch_size"] in sizes.index else sizes.index[-1]
    cpu = headline_cpu(results)
    rows = []
    for name in overhead.columns:
        ratio = sizes.at[at, name] / sizes.at[at, BASE_FORMAT] if BASE_FORMAT in sizes else None
        times = [
            1.0 if name == BASE_FORMAT and (operation, name) in cpu else cpu.get((operation, name))
            for operation in OPERATIONS
        ]
        rows.append((name, *(as_cell(overhead.at[size, name]) for size in batches), as_cell(ratio), *times))
    return Table(
        name="reference",
        caption=with_settings(
            f"Overhead in bytes per record by batch size. Ratios to {BASE_FORMAT} are at {batch_words(at)}",
            part.setting,
        ),
        columns=(
            Column(name="format", swatch=True),
            *(Column(name=f"batch of {number(int(size))}", unit="bytes", digits=1) for size in batches),
            Column(name="all bytes", unit=f"× {BASE_FORMAT}", digits=3),
            *(Column(name=f"{operation} CPU", unit=f"× {BASE_FORMAT}") for operation in OPERATIONS),
        ),
        rows=tuple(rows),
    )


def headline_cpu(results: Results) -> dict[tuple[str, str], Interval | None]:
    """Return the CPU time relative to v2 without a codec. The keys are (operation, format).

    The times are those of the workload setting nearest to the grid's defaults.
    """
    timed = results.cpu[(results.cpu["codec"] == "none") & (results.cpu["arm"] == "measure")]
    rows = results.with_ratios(results.nearest(timed))
    return {(row.operation, row.format): row.ratio for row in rows.itertuples()}
