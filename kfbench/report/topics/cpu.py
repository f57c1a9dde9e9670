"""Sections about CPU time along one axis, such as the value size: ratios to v2, and nanoseconds per record."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import pandas as pd

from kfbench.formats import BASE_FORMAT
from kfbench.measure.cpu import OPERATIONS
from kfbench.report.data.axes import AXES, level, with_settings
from kfbench.report.data.results import Results, Slice
from kfbench.report.data.shown_formats import NEW, pictured
from kfbench.report.data.views import Views
from kfbench.report.data.words import cpu_range_sentence, span
from kfbench.report.render import plots
from kfbench.report.section import Answer, Figure, Missing, Texts
from kfbench.report.topics.axis import axis_table
from kfbench.tables import Interval, Table, number

MOST_LEVELS: Final = 6  # values of the axis in a picture; tables have all


def cpu_answer(run: Views, axis: str, name: str) -> Answer | str:
    """Return the section about CPU time along one axis; a reason if the run lacks the rows.

    name: the name of the section and of its figure. The names of its tables begin with it.
    """
    results = run.results
    part = cpu_slice(results, axis) if axis in results.axes and not results.cpu.empty else None
    if part is None:
        return f"no CPU times without a codec at two levels of one axis: {AXES[axis].name}"
    timed = set(part.rows["operation"])
    operations = [operation for operation in OPERATIONS if operation in timed]
    return Answer(
        means=cpu_sentence(results, part),
        texts=Texts(rows=part.rows),
        figures=(ratios_figure(results, part, operations, name),),
        tables=tuple(table for operation in operations for table in cpu_tables(part, operation, name)),
    )


def cpu_slice(results: Results, axis: str) -> Slice | None:
    """Return the CPU times of all operations along one axis without a codec, with ratios to v2."""
    rows = results.cpu[(results.cpu["codec"] == "none") & (results.cpu["arm"] == "measure")]
    part = results.along(rows, axis)
    return None if part is None else replace(part, rows=results.with_ratios(part.rows))


def cpu_tables(part: Slice, operation: str, name: str) -> list[Table]:
    """Return two tables about an operation: CPU ratios to v2, and CPU time in ns per record."""
    one = _of_operation(part, operation)
    others = replace(one, rows=one.rows[one.rows["format"] != BASE_FORMAT])
    caption = f"{operation.capitalize()}, CPU time relative to {BASE_FORMAT}"
    ns_caption = f"{operation.capitalize()}, ns of CPU time per record"
    return [
        axis_table(others, "ratio", name=f"{name}-{operation}", caption=caption, digits=3),
        axis_table(one, "ns_per_record", name=f"{name}-{operation}-ns", caption=ns_caption, digits=1),
    ]


def _of_operation(part: Slice, operation: str) -> Slice:
    return replace(part, rows=part.rows[part.rows["operation"] == operation])


def cpu_sentence(results: Results, part: Slice) -> str:
    """Give the range of v3's CPU time relative to v2, by operation, and the noise."""
    sentences = []
    for operation in OPERATIONS:
        rows = _of_operation(part, operation).rows
        medians = [ratio.median for ratio in rows.loc[rows["format"] == NEW, "ratio"] if ratio is not None]
        if medians:
            sentences.append(cpu_range_sentence(NEW, operation, medians, "on generated records"))
    if not sentences:
        sentences.append(f"This run times no {NEW}.")
    if results.noise:
        sentences.append(f"Over the cells of the grid, {BASE_FORMAT} against itself is {span(results.noise)}.")
    return " ".join(sentences)


def ratios_figure(results: Results, part: Slice, operations: Sequence[str], name: str) -> Figure | Missing:
    levels = plots.thinned(sorted(part.rows[part.axis].unique()), most=MOST_LEVELS)
    panels = {operation: _ratio_rows(_of_operation(part, operation), levels) for operation in operations}
    panels = {operation: frame for operation, frame in panels.items() if len(frame)}
    if not panels:
        return Missing(what=f"CPU time over {AXES[part.axis].label}", why=f"no {BASE_FORMAT} timed with another format")
    return Figure(
        name=name,
        svg=plots.ratios(panels, f"CPU time relative to {BASE_FORMAT}", results.noise),
        alt=f"CPU time relative to {BASE_FORMAT}. {cpu_sentence(results, part)}",
        caption=with_settings(
            f"Rows: {AXES[part.axis].label}. Bars: 95 % interval of the paired ratio. "
            f"Shaded: {BASE_FORMAT} against itself",
            part.setting,
        ),
        numbers={operation: f"{name}-{operation}" for operation in panels},
    )


def _ratio_rows(part: Slice, levels: Sequence[float]) -> pd.DataFrame:
    """Return the rows of one panel of `plots.ratios`: one per value of the axis and format, without v2."""
    formats = set(pictured(part.pivot("ratio")).columns) - {BASE_FORMAT}
    rows = part.rows[part.rows["format"].isin(formats) & part.rows[part.axis].isin(levels)]
    rows = rows.sort_values(part.axis, kind="stable")
    bars = [
        (number(level(part.axis, at)), name, ratio.median, ratio.low, ratio.high)
        for at, name, ratio in zip(rows[part.axis], rows["format"], rows["ratio"], strict=True)
        if isinstance(ratio, Interval)
    ]
    return pd.DataFrame(bars, columns=["label", "format", "median", "low", "high"])
