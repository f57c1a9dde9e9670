"""Draw figures from tables, as SVG text: lines, dots, stacked bars and maps.

A figure draws only numbers of the tables that it names. The same numbers give the same bytes on every machine: the hash
salt is fixed, the date is left out, and text stays text.
"""

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import pandas as pd

from kfbench.errors import InvalidConfig
from kfbench.measure.floor import FLOOR
from kfbench.present.canvas import (
    DOTTED,
    add_format_legend,
    as_svg,
    hide,
    label_line_ends,
    new_figure,
    set_ratio_ticks,
    set_rows,
    set_ticks,
    thinned,
)
from kfbench.present.declaration import FigureView, nearest
from kfbench.present.look import GRID, GROUPS, INK, PAPER, style
from kfbench.present.names import PICTURED, in_order
from kfbench.present.page import Figure
from kfbench.present.table import Interval, Ranked, Table, number, sort_key

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Picture

Panels = Mapping[str, pd.DataFrame]
TICKS: Final = (0.1, 0.2, 0.3, 0.4, 0.5, 0.7, 1, 1.5, 2, 3, 5, 10, 20, 35, 50, 70, 100, 200, 500)


def draw(view: FigureView, tables: Sequence[Table]) -> Figure | None:
    """Draw a declared figure; None without any number to draw. tables: one per panel, or one for all panels.

    Raises InvalidConfig for an unknown drawing or option.
    """
    if view.drawing not in DRAWINGS:
        raise InvalidConfig(f"figure {view.name}: no drawing {view.drawing}{nearest(view.drawing, DRAWINGS)}")
    frame, drawing = DRAWINGS[view.drawing]
    of_frame = {name: view.options[name] for name in ("unit", "label", "operation") if name in view.options}
    options = {name: value for name, value in view.options.items() if name not in of_frame}
    try:
        inspect.signature(drawing).bind({}, **options)
    except TypeError as error:
        raise InvalidConfig(f"figure {view.name}: {error}") from error
    titles = view.panels or [""]
    panels: dict[str, pd.DataFrame] = {}
    for place, table in enumerate(tables):
        panels |= frame(table, titles[min(place, len(titles) - 1)], **of_frame)
    panels = {title: part for title, part in panels.items() if not part.drop(columns=FLOOR, errors="ignore").empty}
    if not panels:
        return None
    names = [table.name for table in tables]
    numbers: str | dict[str, str] = names[0] if len(names) == 1 else dict(zip(titles, names, strict=True))
    return Figure(name=view.name, svg=drawing(panels, **options), alt=view.alt, caption=view.caption, numbers=numbers)


def series(table: Table, title: str, unit: str | None = None) -> dict[str, pd.DataFrame]:
    """Return a row per number in the table's first column, and a column per column of numbers.

    unit: only columns with this unit.
    """
    rows = [row for row in table.rows if isinstance(row[0], int | float)]
    wanted = [place for place, column in enumerate(table.columns) if place and unit in (None, column.unit)]
    values = [[sort_key(row[place]) for place in wanted] for row in rows]
    names = [table.columns[place].name for place in wanted]
    frame = pd.DataFrame(values, index=[row[0] for row in rows], columns=names).astype(float)
    return {title: frame.dropna(axis=1, how="all")}


def dots(
    table: Table, title: str, unit: str | None = None, label: int = 1, operation: str = ""
) -> dict[str, pd.DataFrame]:
    """Return a row per dot: label, format, median, low, high.

    label: how many columns name the row; with 2, the first one names the panel. operation: only columns whose heading
    begins with it.
    """
    panels: dict[str, list[tuple[Any, ...]]] = {}
    for row in table.rows:
        panel = number(row[0]) if label > 1 else title
        for cell, column in list(zip(row, table.columns, strict=True))[label:]:
            name = column.name.removeprefix(f"{operation}, ") if operation else column.name
            is_wanted = unit in (None, column.unit) and (not operation or name != column.name)
            if is_wanted and (median := sort_key(cell)) is not None and not isinstance(cell, str):
                low, high = (cell.low, cell.high) if isinstance(cell, Interval) else (None, None)
                panels.setdefault(panel, []).append((number(row[label - 1]), name, median, low, high))
    columns = ["label", "format", "median", "low", "high"]
    return {panel: pd.DataFrame(found, columns=columns).astype({"low": float, "high": float})
            for panel, found in panels.items()}  # fmt: skip


def groups(table: Table, title: str) -> dict[str, pd.DataFrame]:
    """Return a panel per value of the first column: a row per value of the second, a column per group of fields.

    title: of a panel whose value is empty.
    """
    names = [column.name for column in table.columns]
    frame = pd.DataFrame(table.rows, columns=names)
    shown = [name for name in GROUPS if name in names]
    parts = frame.groupby(names[0], sort=False)
    return {str(key) or title: part.set_index(names[1])[shown].astype(float) for key, part in parts}


def cells(table: Table, title: str) -> dict[str, pd.DataFrame]:
    """Return a row per cell of a map: x, y, words, format ("" for a tie) and saving."""
    found = []
    for row in table.rows:
        for cell, column in list(zip(row, table.columns, strict=True))[1:]:
            if isinstance(cell, Ranked):
                name = str(cell).partition(" ")[0].removesuffix("tie")
                found.append((column.label, number(row[0]), str(cell), name, -(cell.rank or 0)))
    return {title: pd.DataFrame(found, columns=["x", "y", "words", "format", "saving"])}


@as_svg
def draw_lines(
    panels: Panels,
    xlabel: str = "records per batch",
    ylabel: str = "overhead, bytes per record",
    scale: str = "log",
    boundaries: Mapping[str, str] | None = None,
    shown: Sequence[str] = PICTURED,
) -> "Picture":
    """Draw a line per column. The floor, if the table has it, is the edge of a grey area.

    Args:
        scale: of the y axis, "log" or "linear". The x axis is logarithmic; with boundaries, it begins at 0.
        boundaries: value of the x axis -> its label, where a varint takes one byte more.
        shown: the columns that are drawn; all if the table has none of them.
    """
    (table,) = panels.values()
    floor = table.pop(FLOOR) if FLOOR in table else None
    table = table[[name for name in table.columns if name in shown] or list(table.columns)]
    figure, (axes,) = new_figure(5.7, 3.9)
    axes.set_xscale("symlog", linthresh=1, linscale=0.4) if boundaries else axes.set_xscale("log")
    axes.set_yscale(scale)
    ends = {}
    for name, column in table.items():
        line, look = column.dropna(), style(str(name))
        axes.plot(line.index, line.to_numpy(), color=look.light, marker=look.marker, linestyle=look.dash, clip_on=False)
        ends[str(name)] = float(line.iloc[-1])
    low, high = float(table.min().min()), float(table.max().max())
    if floor is not None:
        low = min(low, max(float(floor.min()), low / 10))  # a logarithmic axis has no zero
        seen = floor[floor >= low]
        axes.fill_between(seen.index, seen, low * 0.85, color=GRID, linewidth=0)
        axes.plot(seen.index, seen, color=INK, linewidth=1.0)
        end = (float(seen.index[-1]), float(seen.iloc[-1]))
        axes.annotate("floor", end, xytext=(5, 0), textcoords="offset points", va="center")
    _set_y(axes, low, high, is_log=scale == "log")
    _set_x(axes, [float(x) for x in table.index], boundaries or {})
    axes.set_xlabel(xlabel)
    axes.set_ylabel(ylabel)
    label_line_ends(figure, axes, ends)
    return figure


def _set_y(axes: "Axes", low: float, high: float, *, is_log: bool) -> None:
    if is_log:
        axes.set_ylim(low * 0.85, high * 1.15)
        set_ticks(axes, "y", [tick for tick in TICKS if low * 0.85 <= tick <= high * 1.15])
    else:
        pad = max((high - low) * 0.12, 0.3)
        axes.set_ylim(low - pad, high + pad)


def _set_x(axes: "Axes", values: Sequence[float], boundaries: Mapping[str, str]) -> None:
    inside = {float(x): name for x, name in boundaries.items() if values[0] < float(x) < values[-1]}
    for x in inside:
        axes.axvline(x, color=INK, linewidth=0.8, linestyle=DOTTED, zorder=0)
    ticks = {values[0]: number(values[0], 0), **inside, values[-1]: number(values[-1], 0)} if inside else {}
    set_ticks(axes, "x", list(ticks) or thinned(values))
    if ticks:
        axes.set_xticklabels(list(ticks.values()))


@as_svg
def draw_dots(panels: Panels, xlabel: str = "relative to v2", row_height: float = 0.42) -> "Picture":
    """Draw ratios as dots, with a bar for an interval: a row per label, and in it a place per format."""
    every = pd.concat(panels.values())
    labels, formats = list(dict.fromkeys(every["label"])), in_order(every["format"])
    columns = min(2, len(panels))
    lines = -(-len(panels) // columns)
    height = 1.1 + lines * (0.55 + max(row_height, 0.11 * len(formats)) * len(labels))
    figure, all_axes = new_figure(5.9, height, columns=columns, rows=lines, sharex=True, sharey=True)
    low, high = (float(end) for end in (every[["median", "low"]].min().min(), every[["median", "high"]].max().max()))
    for axes, (title, frame) in zip(all_axes, panels.items(), strict=False):
        axes.set_xscale("log")
        axes.axvline(1.0, color=INK, linewidth=0.9)
        for row in frame.itertuples():
            look = style(str(row.format))
            y = labels.index(row.label) + (formats.index(row.format) - (len(formats) - 1) / 2) * 0.74 / len(formats)
            if pd.notna(row.low):
                axes.plot([row.low, row.high], [y, y], color=look.light, linewidth=1.6)
            axes.plot([row.median], [y], color=look.light, marker=look.marker, linestyle="none", clip_on=False)
        set_ratio_ticks(axes, min(low, 1.0) / 1.1, max(high, 1.0) * 1.1, most=4)
        axes.set_title(title)
        axes.tick_params(axis="x", labelbottom=True)
    hide(all_axes[len(panels) :])
    set_rows(all_axes[: len(panels)], labels)
    figure.supxlabel(xlabel, fontsize=12)
    add_format_legend(figure, all_axes[0], formats)
    return figure


@as_svg
def draw_bars(panels: Panels, xlabel: str = "relative to v2") -> "Picture":
    """Draw ratios as bars from 0, a group per label. The name and the number stand at each bar."""
    (frame,) = panels.values()
    height = 0.9 + 0.3 * (len(frame) + frame["label"].nunique())
    figure, (axes,) = new_figure(5.9, height)
    ticks, place = {}, 0.0
    for label, part in frame.groupby("label", sort=False):
        ticks[place + (len(part) - 1) / 2] = str(label)
        for row in part.itertuples():
            shade = style(str(row.format).partition(" ")[0]).light
            is_filled = "+" in str(row.format)
            axes.barh([place], [row.median], color=shade if is_filled else PAPER, edgecolor=shade, height=0.8)
            words = f"{row.format} {row.median:.2f}"
            axes.annotate(words, (row.median, place), xytext=(5, 0), textcoords="offset points", va="center")
            place += 1
        place += 0.8
    axes.set_yticks(list(ticks), [label.replace(" per", "\nper") for label in ticks.values()])
    axes.set_ylim(place - 1.2, -0.8)
    axes.set_xlim(0, 1.4 * float(frame["median"].max()))
    axes.set_xlabel(xlabel)
    axes.grid(axis="y", visible=False)
    axes.tick_params(axis="y", length=0)
    return figure


@as_svg
def draw_stacked(panels: Panels) -> "Picture":
    """Draw overhead in bytes per record, split into groups of fields. Each format has a bar."""
    panels = {title: frame.loc[[name for name in frame.index if name in PICTURED]] for title, frame in panels.items()}
    rows = max(len(frame) for frame in panels.values())
    figure, all_axes = new_figure(5.9, 1.3 + 0.36 * rows, columns=len(panels), sharey=True)
    for axes, (title, frame) in zip(all_axes, panels.items(), strict=True):
        left = [0.0] * len(frame)
        for group, (shade, _) in GROUPS.items():
            if group in frame:
                widths = frame[group].fillna(0).tolist()
                axes.barh(list(frame.index), widths, left=left, color=shade, height=0.66, edgecolor=PAPER,
                          linewidth=0.8, label=group)  # fmt: skip
                left = [a + b for a, b in zip(left, widths, strict=True)]
        for i, total in enumerate(left):
            axes.annotate(f"{total:.1f}", (total, i), xytext=(4, 0), textcoords="offset points", va="center")
        axes.set_xlim(0, max(left) * 1.16)
        axes.set_title(title)
        axes.set_xlabel("bytes per record")
        axes.grid(axis="y", visible=False)
        axes.tick_params(axis="y", length=0)
    all_axes[0].invert_yaxis()
    handles, labels = all_axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, fontsize=12, handlelength=1.1)
    return figure


@as_svg
def draw_map(panels: Panels, xlabel: str = "value, bytes", ylabel: str = "records per batch") -> "Picture":
    """Draw a table of coloured cells: the colour of the smallest format, stronger where it saves more."""
    from matplotlib.patches import Rectangle

    (frame,) = panels.values()
    across, down = list(dict.fromkeys(frame["x"])), list(dict.fromkeys(frame["y"]))
    figure, (axes,) = new_figure(0.95 * len(across) + 0.9, 0.75 + 0.27 * len(down))
    most = max(float(frame["saving"].max()), 0.01)
    for cell in frame.itertuples():
        x, y = across.index(cell.x), down.index(cell.y)
        shade = style(str(cell.format)).light if cell.format else GRID
        strength = 0.14 + 0.2 * cell.saving / most if cell.format else 0.35  # text keeps its contrast of 4.5:1
        axes.add_patch(Rectangle((x - 0.48, y - 0.46), 0.96, 0.92, facecolor=shade, alpha=strength, linewidth=0))
        axes.annotate(cell.words, (x, y), ha="center", va="center", fontsize=11)
    axes.set_xlim(-0.5, len(across) - 0.5)
    axes.set_ylim(len(down) - 0.5, -0.5)
    axes.set_xticks(range(len(across)), [name.removeprefix("value ").removesuffix(" bytes") for name in across])
    axes.set_yticks(range(len(down)), down)
    axes.set_xlabel(xlabel)
    axes.set_ylabel(ylabel)
    axes.grid(visible=False)
    axes.tick_params(length=0)
    for side in ("left", "bottom"):
        axes.spines[side].set_visible(False)
    return figure


Frame = Callable[..., dict[str, pd.DataFrame]]
DRAWINGS: Final[Mapping[str, tuple[Frame, Callable[..., str]]]] = {
    "lines": (series, draw_lines),
    "dots": (dots, draw_dots),
    "bars": (dots, draw_bars),
    "stacked": (groups, draw_stacked),
    "map": (cells, draw_map),
}
