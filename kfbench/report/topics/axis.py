"""Tables and sentences of one axis: what a record costs while one property changes and all others stand still."""

import pandas as pd

from kfbench.formats import BASE_FORMAT
from kfbench.measure.floor import FLOOR
from kfbench.report.data.axes import AXES, level
from kfbench.report.data.results import Slice, as_cell
from kfbench.report.data.shown_formats import pictured
from kfbench.report.render.tables import Column, Table, listed, number


def table(
    part: Slice, column: str, *, name: str, caption: str, digits: int = 2, floor: pd.DataFrame | None = None
) -> Table:
    """One row a level of the axis, one column a format, and one of the floor: a series over the same levels."""
    pivot = part.pivot(column)
    if floor is not None:
        pivot = pivot.assign(**{FLOOR: floor})
    return _levels(part, pivot, name=name, caption=caption, digits=digits)


def ratio_table(part: Slice, column: str, *, name: str, caption: str) -> Table:
    """One row a level of the axis, one column a format, relative to v2."""
    sizes = part.pivot(column)
    ratios = (
        sizes.div(sizes[BASE_FORMAT], axis=0).drop(columns=BASE_FORMAT) if BASE_FORMAT in sizes else sizes.iloc[:, :0]
    )
    return _levels(part, ratios, name=name, caption=caption, digits=3)


def _levels(part: Slice, pivot: pd.DataFrame, *, name: str, caption: str, digits: int) -> Table:
    return Table(
        name=name,
        caption=f"{caption} ({part.setting})",
        columns=(AXES[part.axis], *(Column(name=f, digits=digits) for f in pivot.columns)),
        rows=tuple(
            (level(part.axis, at), *map(as_cell, row)) for at, row in zip(pivot.index, pivot.to_numpy(), strict=True)
        ),
    )


def ends(column: pd.DataFrame) -> tuple[tuple[int, float], tuple[int, float]]:
    """((first level, value), (last level, value)) of one column of a pivot, absent cells left out."""
    found = column.dropna()
    return (found.index[0], float(found.iloc[0])), (found.index[-1], float(found.iloc[-1]))


def overhead_sentence(part: Slice) -> str:
    overhead = pictured(part.pivot("overhead_per_record"))
    still = [name for name in overhead.columns if name not in moving(overhead)]
    parts = []
    if still:
        pays = listed([f"{name} pays {overhead[name].max():.0f}" for name in still])
        parts.append(f"{pays} bytes a record whatever the batch")
    spans = []
    for name in moving(overhead):
        (first, most), (last, least) = ends(overhead[name])
        spans.append(f"{name} from {most:.1f} at {number(int(first))} to {least:.1f} at {number(int(last))}")
    if spans:
        who = "the others share a header" if still else "a header is shared"
        parts.append(f"{who} out over the batch: {listed(spans)} records a batch")
    return "; ".join(parts) + "." if parts else ""


def moving(overhead: pd.DataFrame) -> list[str]:
    """The formats whose overhead changes along the axis."""
    return [name for name in overhead.columns if overhead[name].max() - overhead[name].min() >= 0.005]


def step_sentence(part: Slice) -> str:
    """What the axis does to v2 and v3, and which formats do not care."""
    overhead = pictured(part.pivot("overhead_per_record"))
    swept = [name for name in overhead.columns if overhead[name].iloc[[0, -1]].notna().all()]
    changing = moving(overhead)
    still = [name for name in swept if name not in changing]
    first, last = (level(part.axis, overhead.index[i]) for i in (0, -1))
    unit = AXES[part.axis].unit
    ends = f"from {number(first)} to {number(last)} {unit}".rstrip()
    parts = []
    if goes := [
        f"{f} from {overhead[f].min():.2f} to {overhead[f].max():.2f}" for f in (BASE_FORMAT, "v3") if f in changing
    ]:
        parts.append(f"{AXES[part.axis].name} {ends} takes {listed(goes)} bytes of overhead a record")
    if still:
        parts.append(f"{listed(still)} {'does' if len(still) == 1 else 'do'} not depend on it")
    if {BASE_FORMAT, "v3"} <= set(swept):
        gain = overhead[BASE_FORMAT] - overhead["v3"]
        least, most = f"{gain.min():.2f}", f"{gain.max():.2f}"
        parts.append(f"v3 stays {least if least == most else f'{least} to {most}'} bytes a record below {BASE_FORMAT}")
    text = "; ".join(parts)
    return text[:1].upper() + text[1:] + "." if text and goes else f"{text}." if text else ""
