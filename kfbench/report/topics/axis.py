"""Sections about the overhead per record along one axis, such as the key size. All other axes are fixed."""

from typing import Final, NamedTuple

import pandas as pd

from kfbench.formats import BASE_FORMAT
from kfbench.measure.floor import FLOOR
from kfbench.report.data.axes import AXES, level, with_settings
from kfbench.report.data.results import Slice, as_cell
from kfbench.report.data.shown_formats import NEW, pictured
from kfbench.report.data.views import Views
from kfbench.report.data.words import batch_words, span
from kfbench.report.render import plots
from kfbench.report.section import Answer, Figure, Missing, Texts
from kfbench.tables import Column, Table, listed, number

# The axes with a picture -> the values from which a varint needs one more byte. Zig-zag varints of 1, 2 and 3 bytes
# end at 63, 8,191 and 1,048,575.
STEPS: Final = {
    "timestamp_spread_ms": {64.0: "64 ms", 8192.0: "8.2 s", 1_048_576.0: "17 min", 86_400_000.0: "1 day"},
    "key_bytes": {64.0: "64", 8192.0: "8,192"},
}


def axis_answer(run: Views, axis: str, name: str) -> Answer | str:
    """Return the section about the overhead along one axis; a reason if the run lacks the rows.

    name: the name of the section, of its table and of its figure.
    """
    results = run.results
    part = results.along(results.uncompressed, axis) if axis in results.axes else None
    if part is None:
        return f"no bytes without a codec at two levels of one axis: {AXES[axis].name}"
    caption = "Overhead, bytes per record, uncompressed"
    return Answer(
        means=step_sentence(part),
        texts=Texts(rows=part.rows),
        figures=(steps_figure(part, name),) if axis in STEPS else (),
        tables=(axis_table(part, "overhead_per_record", name=name, caption=caption),),
    )


def steps_figure(part: Slice, name: str) -> Figure | Missing:
    frame = pictured(part.pivot("overhead_per_record"))
    numeric = frame.loc[frame.index >= 0, moving(frame)]  # null is not a length; flat lines are not drawn
    label = AXES[part.axis].label
    if numeric.empty:
        return Missing(what=f"Overhead over {label}", why="no format's overhead depends on it at the levels measured")
    return Figure(
        name=name,
        svg=plots.steps(numeric, STEPS[part.axis], "timestamp spread" if part.axis == "timestamp_spread_ms" else label),
        alt=f"Overhead in bytes per record over {label}: {ends_words(numeric)}",
        caption=with_settings("Dotted: where a zig-zag varint needs one byte more", part.setting),
        numbers=name,
    )


def axis_table(
    part: Slice, column: str, *, name: str, caption: str, digits: int = 2, floor: pd.Series | None = None
) -> Table:
    """Return a table with a row per value of the axis, and a column per format.

    column: the column of the rows to show. floor: the metadata floor (lower limit), shown as a further column.
    """
    pivot = part.pivot(column)
    if floor is not None:
        pivot = pivot.assign(**{FLOOR: floor})
    return _levels_table(part, pivot, name=name, caption=caption, digits=digits)


def relative_table(part: Slice, column: str, *, name: str, caption: str) -> Table:
    """Return a table of numbers divided by those of v2, with a row per value of the axis and a column per format.

    column: the column of the rows to show.
    """
    sizes = part.pivot(column)
    ratios = (
        sizes.div(sizes[BASE_FORMAT], axis=0).drop(columns=BASE_FORMAT) if BASE_FORMAT in sizes else sizes.iloc[:, :0]
    )
    return _levels_table(part, ratios, name=name, caption=caption, digits=3)


def _levels_table(part: Slice, pivot: pd.DataFrame, *, name: str, caption: str, digits: int) -> Table:
    return Table(
        name=name,
        caption=with_settings(caption, part.setting),
        columns=(AXES[part.axis], *(Column(name=f, digits=digits) for f in pivot.columns)),
        rows=tuple(
            (level(part.axis, at), *map(as_cell, row)) for at, row in zip(pivot.index, pivot.to_numpy(), strict=True)
        ),
    )


class Ends(NamedTuple):
    """The ends of a line along an axis.

    first, last: the first and the last value of the axis that has a number. start, end: the numbers there.
    """

    first: int
    start: float
    last: int
    end: float


def ends_of(column: pd.Series) -> Ends:
    found = column.dropna()
    return Ends(found.index[0], float(found.iloc[0]), found.index[-1], float(found.iloc[-1]))


def ends_words(frame: pd.DataFrame) -> str:
    ends = {name: ends_of(frame[name]) for name in frame}
    return "; ".join(f"{name} {at.start:.1f} at {at.first} and {at.end:.1f} at {at.last}" for name, at in ends.items())


def overhead_sentence(part: Slice) -> str:
    """Give the overhead per record of constant formats, and of v2 and v3 at both ends of the batch sizes."""
    overhead = pictured(part.pivot("overhead_per_record"))
    changing = moving(overhead)
    sentences = [
        f"In every batch, {name} has {overhead[name].max():.0f} bytes of overhead per record."
        for name in overhead.columns
        if name not in changing
    ]
    for name in (BASE_FORMAT, NEW):
        if name in changing:
            at = ends_of(overhead[name])
            sentences.append(
                f"With {name} it is {at.start:.1f} at {batch_words(at.first)} and {at.end:.1f} at "
                f"{number(int(at.last))}."
            )
    return " ".join(sentences)


def moving(overhead: pd.DataFrame) -> list[str]:
    """Return the formats whose overhead varies along the axis by 0.005 bytes per record or more."""
    return [name for name in overhead.columns if overhead[name].max() - overhead[name].min() >= 0.005]


def step_sentence(part: Slice) -> str:
    """Describe the overhead of v2 and v3 along the axis, and name the formats that do not depend on it."""
    overhead = pictured(part.pivot("overhead_per_record"))
    swept = [name for name in overhead.columns if overhead[name].iloc[[0, -1]].notna().all()]
    changing = moving(overhead)
    sentences = [
        f"Overhead of {name}: {span(overhead[name].dropna().tolist())} bytes per record."
        for name in (BASE_FORMAT, NEW)
        if name in changing
    ]
    if {BASE_FORMAT, NEW} <= set(swept):
        gain = overhead[BASE_FORMAT] - overhead[NEW]
        sentences.append(f"The saving of {NEW} is {span(gain.dropna().tolist())} bytes per record.")
    if still := [name for name in swept if name not in changing]:
        sentences.append(f"The axis does not change {listed(still)}.")
    return " ".join(sentences)
