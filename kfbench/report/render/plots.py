"""Figures as SVG text, the same bytes for the same numbers: fixed hash salt, no date, text kept as text."""

import io
import math
import sys
import textwrap
from collections.abc import Mapping, Sequence
from itertools import pairwise
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeAlias

import matplotlib as mpl
import pandas as pd

from kfbench.records import PAYLOAD
from kfbench.report.data.shown_formats import in_order
from kfbench.report.render.look import GRID, GROUPS, INK, OTHER, PAPER, STYLES, style
from kfbench.report.render.tables import number

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FEW = 5  # lines that have room for a name each
RC: Any = MappingProxyType(
    {
        "svg.fonttype": "none",
        "svg.hashsalt": "kfbench",
        "font.family": "sans-serif",
        "font.sans-serif": ["DejaVu Sans"],  # matplotlib brings it: the layout is the same on every machine
        "font.size": 10.0,
        "text.color": INK,
        "axes.edgecolor": INK,
        "axes.labelcolor": INK,
        "axes.titlesize": 10.5,
        "axes.titleweight": "bold",
        "axes.titlelocation": "left",
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.grid": True,
        "axes.axisbelow": True,
        "grid.color": GRID,
        "grid.linewidth": 0.6,
        "xtick.color": INK,
        "ytick.color": INK,
        "xtick.minor.visible": False,
        "ytick.minor.visible": False,
        "lines.linewidth": 1.8,
        "lines.markersize": 4.5,
        "figure.facecolor": PAPER,
        "axes.facecolor": "none",
        "savefig.facecolor": PAPER,
        "legend.frameon": False,
    }
)


def _figure(
    width: float, height: float, columns: int = 1, rows: int = 1, **options: Any
) -> "tuple[Figure, list[Axes]]":
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasSVG(figure)
    return figure, list(figure.subplots(rows, columns, squeeze=False, **options).flat)


def _svg(figure: "Figure") -> str:
    out = io.StringIO()
    figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None})
    return out.getvalue()


def _spread(positions: Sequence[float], gap: float) -> list[float]:
    """Label heights in [0, 1], as near to the wanted ones as a least gap allows, in the same order."""
    order = sorted(range(len(positions)), key=lambda i: positions[i])
    placed = [positions[i] for i in order]
    for _ in range(200):
        moved = False
        for j in range(len(placed) - 1):
            lack = gap - (placed[j + 1] - placed[j])
            if lack > 1e-6:
                placed[j] -= lack / 2
                placed[j + 1] += lack / 2
                moved = True
        if not moved:
            break
    result = [0.0] * len(placed)
    for i, height in zip(order, placed, strict=True):
        result[i] = height
    return result


def _label_ends(axes: "Axes", ends: Mapping[str, float]) -> None:
    """Names at the right end of the lines instead of a legend, pushed apart where they would touch."""
    bottom, top = (float(axes.transData.inverted().transform(axes.transAxes.transform((0, y)))[1]) for y in (0.0, 1.0))
    log = axes.get_yscale() == "log"

    def height(value: float) -> float:
        if log:
            return math.log(value / bottom) / math.log(top / bottom)
        return (value - bottom) / (top - bottom)

    heights = _spread([height(value) for value in ends.values()], gap=0.062)
    for name, at in zip(ends, heights, strict=True):
        axes.annotate(
            name,
            (1.0, at),
            xycoords="axes fraction",
            xytext=(6, 0),
            textcoords="offset points",
            color=style(name).light,
            va="center",
            annotation_clip=False,
        )


def _ticks(axes: "Axes", which: str, values: Sequence[float]) -> None:
    from matplotlib.ticker import FixedLocator, NullFormatter, NullLocator

    axis = getattr(axes, f"{which}axis")
    axis.set_major_locator(FixedLocator(list(values)))
    axis.set_minor_locator(NullLocator())
    axis.set_minor_formatter(NullFormatter())
    getattr(axes, f"set_{which}ticklabels")([number(int(v) if v == int(v) else v, 1) for v in values])


def thinned(levels: Sequence[float], most: int = 8) -> list[float]:
    """Of many tick positions on a log axis the ones of 1, 10, 100, ... and enough others."""
    if len(levels) <= most:
        return list(levels)
    powers = [v for v in levels if str(int(v)).rstrip("0") in ("1", "")]
    return powers if len(powers) >= 3 else list(levels[:: max(1, len(levels) // most)])


def _lines(axes: "Axes", table: pd.DataFrame) -> dict[str, float]:
    """One line a column of the table; returns the last value of each."""
    ends = {}
    for name in table.columns:
        line = table[name].dropna()
        if line.empty:
            continue
        look = style(str(name))
        axes.plot(
            line.index,
            line.to_numpy(),
            color=look.light,
            marker=look.marker,
            linestyle=look.dash,
            clip_on=False,
        )
        ends[str(name)] = float(line.iloc[-1])
    return ends


def _down_to(line: pd.DataFrame, edge: float) -> tuple[list[float], list[float]]:
    """x and y of a falling line on two logarithmic axes, cut where it leaves the picture: what is only clipped lies
    beneath the caption for whoever asks the page what is there."""
    xs: list[float] = []
    ys: list[float] = []
    for x, y in line.items():
        if y < edge and ys:
            share = math.log(ys[-1] / edge) / math.log(ys[-1] / max(y, sys.float_info.min))
            return [*xs, xs[-1] * (x / xs[-1]) ** share], [*ys, edge]
        xs.append(float(x))
        ys.append(float(y))
    return xs, ys


def overhead(table: pd.DataFrame, xlabel: str = "records a batch", floor: pd.DataFrame | None = None) -> str:
    """Overhead bytes a record over batch size. table: index batch sizes, one column a format; floor: a series with the
    same index, a lean header of 29 bytes and a count a batch and the entropy of the columns."""
    with mpl.rc_context(dict(RC)):
        figure, (axes,) = _figure(5.7, 3.9)
        axes.set_xscale("log")
        axes.set_yscale("log")
        ends = _lines(axes, table)
        low, high = float(table.min().min()), float(table.max().max())
        if floor is not None:
            low = min(low, max(float(floor.min()), low / 10))  # it may go to nothing, which is no place on this axis
            xs, ys = _down_to(floor, low * 0.85)
            axes.fill_between(xs, ys, low * 0.85, color=GRID, linewidth=0)
            axes.plot(xs, ys, color=INK, linewidth=1.0)
            seen = floor[floor >= low]
            place = (float(seen.index[-1]), float(seen.iloc[-1]))
            axes.annotate("floor", place, xytext=(5, 0), textcoords="offset points", va="center")
        axes.set_ylim(low * 0.85, high * 1.15)
        _ticks(
            axes,
            "y",
            [v for v in (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 35, 50, 70, 100, 200, 500) if low * 0.85 <= v <= high * 1.15],
        )
        _ticks(axes, "x", thinned([float(v) for v in table.index]))
        axes.set_xlabel(xlabel)
        axes.set_ylabel("overhead, bytes a record")
        figure.draw_without_rendering()
        _label_ends(axes, ends)
        return _svg(figure)


def break_even(ratios: pd.DataFrame, base: str = "v2") -> str:
    """Overhead relative to the base format over batch size; below 1 a format has less. ratios: index batch sizes, one
    column a format."""
    with mpl.rc_context(dict(RC)):
        figure, (axes,) = _figure(5.7, 3.6)
        axes.set_xscale("log")
        axes.set_yscale("log")
        ends = _lines(axes, ratios)
        low, high = float(ratios.min().min()), float(ratios.max().max())
        axes.set_ylim(low * 0.9, high * 1.12)
        _ticks(
            axes,
            "y",
            [v for v in (0.2, 0.3, 0.4, 0.5, 0.7, 1, 1.5, 2, 3, 4, 5) if low * 0.9 <= v <= high * 1.12],
        )
        axes.set_yticklabels([f"{v:g}×" for v in axes.get_yticks()])
        _ticks(axes, "x", thinned([float(v) for v in ratios.index]))
        axes.set_xlabel("records a batch")
        axes.set_ylabel(f"overhead relative to {base}")
        figure.draw_without_rendering()
        _label_ends(axes, ends)
        return _svg(figure)


def steps(table: pd.DataFrame, boundaries: Mapping[float, str], xlabel: str) -> str:
    """Overhead over an axis on which varints grow. boundaries: where (dotted), and each place's name."""
    with mpl.rc_context(dict(RC)):
        figure, (axes,) = _figure(5.7, 3.2)
        axes.set_xscale("symlog", linthresh=1, linscale=0.4)
        ends = _lines(axes, table)
        low, high = float(table.min().min()), float(table.max().max())
        pad = max((high - low) * 0.12, 0.3)
        axes.set_ylim(low - pad, high + pad)
        first, last = float(table.index[0]), float(table.index[-1])
        shown = {at: name for at, name in boundaries.items() if first < at < last}
        for at in shown:
            axes.axvline(at, color=INK, linewidth=0.8, linestyle=(0, (1, 2)), zorder=0)
        ticks = {first: number(int(first)), **shown, last: boundaries.get(last, number(int(last)))}
        _ticks(axes, "x", list(ticks))
        axes.set_xticklabels(list(ticks.values()))
        axes.set_xlabel(xlabel)
        axes.set_ylabel("overhead, bytes a record")
        figure.draw_without_rendering()
        _label_ends(axes, ends)
        return _svg(figure)


def group_of(field: str) -> str | None:
    """The group that a field of a breakdown is drawn in; None for payload."""
    if field in PAYLOAD:
        return None
    for words, group in (
        (("batch_header",), "batch header"),
        (("timestamp",), "timestamps"),
        (("crc",), "CRC"),
        (("offset",), "offsets"),
        (("length", "count", "size"), "lengths and counts"),
        (("attributes", "magic"), "attributes, magic"),
    ):
        if any(word in field for word in words):
            return group
    return "lengths and counts"


def stacked(panels: Mapping[str, pd.DataFrame]) -> str:
    """Overhead bytes a record by field group, one bar a format, one panel a batch size.

    panels: title -> frame with formats as index and groups as columns.
    """
    with mpl.rc_context(dict(RC)):
        rows = max(len(frame) for frame in panels.values())
        figure, all_axes = _figure(5.9, 1.3 + 0.36 * rows, columns=len(panels), sharey=True)
        for axes, (title, frame) in zip(all_axes, panels.items(), strict=True):
            left = [0.0] * len(frame)
            for group, (shade, _) in GROUPS.items():
                if group not in frame:
                    continue
                widths = frame[group].fillna(0).tolist()
                axes.barh(
                    list(frame.index),
                    widths,
                    left=left,
                    color=shade,
                    height=0.66,
                    edgecolor=PAPER,
                    linewidth=0.8,
                    label=group,
                )
                left = [a + b for a, b in zip(left, widths, strict=True)]
            for i, total in enumerate(left):
                axes.annotate(
                    f"{total:.1f}",
                    (total, i),
                    xytext=(4, 0),
                    textcoords="offset points",
                    va="center",
                    fontsize=9,
                )
            axes.set_xlim(0, max(left) * 1.16)
            axes.set_title(title)
            axes.set_xlabel("bytes a record")
            axes.grid(axis="y", visible=False)
            axes.tick_params(axis="y", length=0)
        all_axes[0].invert_yaxis()
        handles, labels = all_axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=3, fontsize=9, handlelength=1.1)
        return _svg(figure)


Zone: TypeAlias = tuple[float, float]


def ratios(panels: Mapping[str, pd.DataFrame], xlabel: str, noise: Zone | Mapping[str, Zone] | None = None) -> str:
    """Ratios with intervals: a dot and a bar a row, which says where a panel has none for it.

    panels: title -> frame with columns label, format, median, low, high (low, high may be NaN); noise: the A/A band,
    of all panels or by title.
    """
    with mpl.rc_context(dict(RC)):
        labels = list(dict.fromkeys(label for frame in panels.values() for label in frame["label"]))
        formats = in_order(name for frame in panels.values() for name in frame["format"])
        figure, all_axes = _figure(
            5.9, 1.5 + (0.16 * len(formats) + 0.18) * len(labels), columns=len(panels), sharey=True
        )
        step = 0.72 / max(len(formats), 1)
        for axes, (title, frame) in zip(all_axes, panels.items(), strict=True):
            axes.set_xscale("log")
            if (zone := noise.get(title) if isinstance(noise, Mapping) else noise) is not None:
                axes.axvspan(*zone, color=GRID, linewidth=0)
            axes.axvline(1.0, color=INK, linewidth=0.9)
            for y in sorted({*range(len(labels))} - {labels.index(label) for label in frame["label"]}):
                middle = (0.5, y)
                axes.annotate(
                    "not measured", middle, xycoords=axes.get_yaxis_transform(), ha="center", va="center", fontsize=8
                )
            for row in frame.itertuples():
                look = style(str(row.format))
                y = labels.index(row.label) + (formats.index(row.format) - (len(formats) - 1) / 2) * step
                if row.low == row.low:
                    axes.plot([row.low, row.high], [y, y], color=look.light, linewidth=1.6)
                axes.plot([row.median], [y], color=look.light, marker=look.marker, linestyle="none")
            low = min(float(frame[["low", "median"]].min().min()), 1.0)
            high = max(float(frame[["high", "median"]].max().max()), 1.0)
            low, high = low / 1.06, high * 1.06
            axes.set_xlim(low, high)
            _ticks(axes, "x", _ratio_ticks(low, high, most=6 if len(panels) < 3 else 4))
            axes.set_xticklabels([f"{v:g}×" for v in axes.get_xticks()])
            axes.set_title(title)
            axes.grid(axis="y", visible=False)
            axes.tick_params(axis="y", length=0)
        figure.supxlabel(xlabel, fontsize=10)
        all_axes[0].set_yticks(range(len(labels)), labels)
        all_axes[0].set_ylim(len(labels) - 0.5, -0.5)
        for axes in all_axes:
            for i in range(1, len(labels)):
                axes.axhline(i - 0.5, color=GRID, linewidth=0.6)
        _format_legend(figure, all_axes[0], formats)
        return _svg(figure)


def paths(panels: Mapping[str, pd.DataFrame], xlabel: str, row_height: float = 0.42) -> str:
    """Broker paths or workloads: a dot a format in a row each, one panel a codec, all on one axis.

    panels: title -> frame with columns label, format, median. row_height: in inches.
    """
    with mpl.rc_context(dict(RC)):
        every = list(panels.values())
        labels = list(dict.fromkeys(label for frame in every for label in frame["label"]))
        formats = in_order(name for frame in every for name in frame["format"])
        columns = min(2, len(panels))
        lines = -(-len(panels) // columns)
        height = 1.1 + lines * (0.55 + row_height * len(labels))
        figure, all_axes = _figure(5.9, height, columns=columns, rows=lines, sharex=True, sharey=True)
        low = min(1.0, *(float(frame["median"].min()) for frame in every)) / 1.3
        high = max(1.0, *(float(frame["median"].max()) for frame in every)) * 1.3
        step = 0.74 / len(formats)
        for axes, (title, frame) in zip(all_axes, panels.items(), strict=False):
            axes.set_xscale("log")
            axes.axvline(1.0, color=INK, linewidth=0.9)
            for row in frame.itertuples():
                look = style(str(row.format))
                y = labels.index(row.label) + (formats.index(row.format) - (len(formats) - 1) / 2) * step
                axes.plot([row.median], [y], color=look.light, marker=look.marker, linestyle="none", clip_on=False)
            for i in range(1, len(labels)):
                axes.axhline(i - 0.5, color=GRID, linewidth=0.6)
            axes.set_xlim(low, high)
            _ticks(axes, "x", _ratio_ticks(low, high, most=5))
            axes.set_xticklabels([f"{v:g}×" for v in axes.get_xticks()])
            axes.set_title(title)
            axes.grid(axis="y", visible=False)
            axes.tick_params(axis="y", length=0)
            axes.tick_params(axis="x", labelbottom=True)
        for axes in all_axes[len(panels) :]:
            axes.set_visible(False)
        all_axes[0].set_yticks(range(len(labels)), labels)
        all_axes[0].set_ylim(len(labels) - 0.5, -0.5)
        figure.supxlabel(xlabel, fontsize=10)
        _format_legend(figure, all_axes[0], formats)
        return _svg(figure)


def winners(cells: pd.DataFrame, xlabel: str, ylabel: str) -> str:
    """A map of cells, each with the name and the colour of the smallest format: the stronger, the more it saves.

    cells: frame with columns x, y (labels, in the order to draw them), words, format ("" for a tie) and saving (share).
    """
    from matplotlib.patches import Rectangle

    with mpl.rc_context(dict(RC)):
        across, down = list(dict.fromkeys(cells["x"])), list(dict.fromkeys(cells["y"]))
        figure, (axes,) = _figure(5.9, 0.75 + 0.27 * len(down))
        most = max(float(cells["saving"].max()), 0.01)
        for cell in cells.itertuples():
            x, y = across.index(cell.x), down.index(cell.y)
            shade = style(str(cell.format)).light if cell.format else GRID
            strength = 0.14 + 0.2 * cell.saving / most if cell.format else 0.35  # words keep 4.5:1 on either page
            axes.add_patch(Rectangle((x - 0.48, y - 0.46), 0.96, 0.92, facecolor=shade, alpha=strength, linewidth=0))
            axes.annotate(cell.words, (x, y), ha="center", va="center", fontsize=8)
        axes.set_xlim(-0.5, len(across) - 0.5)
        axes.set_ylim(len(down) - 0.5, -0.5)
        axes.set_xticks(range(len(across)), across)
        axes.set_yticks(range(len(down)), down)
        axes.set_xlabel(xlabel)
        axes.set_ylabel(ylabel)
        axes.grid(visible=False)
        axes.tick_params(length=0)
        for side in ("left", "bottom"):
            axes.spines[side].set_visible(False)
        return _svg(figure)


def pareto(
    panels: Mapping[str, pd.DataFrame], xlabel: str, ylabel: str, noise: tuple[float, float] | None = None
) -> str:
    """Two ratios of each format against one another, with the interval of the second as a bar; the front is a line of
    steps, for between two formats there is none. A format that is behind it and has no mark of its own is left out.

    panels: title -> frame with columns format, lost (in words; hollow, and named, unless empty), bytes, median, low,
    high, front, and beyond (named, and not drawn); noise: the A/A band.
    """
    with mpl.rc_context(dict(RC)):
        columns = min(2, len(panels))
        lines = -(-len(panels) // columns)
        figure, all_axes = _figure(5.9, 0.7 + 2.6 * lines, columns=columns, rows=lines)
        drawn: list[str] = []
        for axes, (title, frame) in zip(all_axes, panels.items(), strict=False):
            has_a_mark = frame["format"].isin([*STYLES]) | frame["front"] | (frame["lost"] != "")
            shown = frame[~frame["beyond"] & has_a_mark]
            drawn += shown["format"].tolist()
            if noise is not None:
                axes.axhspan(*noise, color=GRID, linewidth=0)
            axes.axhline(1.0, color=INK, linewidth=0.7)
            axes.axvline(1.0, color=INK, linewidth=0.7)
            for row in shown.itertuples():
                look = style(str(row.format))
                mark, fill = look.marker, "none" if row.lost else look.light
                if row.lost and str(row.format) not in STYLES:
                    mark = "o"  # a cross has nothing to fill
                axes.plot([row.bytes, row.bytes], [row.low, row.high], color=look.light, linewidth=1.2)
                axes.plot([row.bytes], [row.median], color=look.light, marker=mark, mfc=fill, linestyle="none")
                if str(row.format) not in STYLES:  # the others are told by their marks
                    at = (float(row.bytes), float(row.median))
                    axes.annotate(str(row.format), at, xytext=(4, -10), textcoords="offset points", fontsize=8)
            told = [*_named("more of both", frame[frame["beyond"]]), *_named("hollow", shown[shown["lost"] != ""])]
            low, high = axes.get_ylim()
            axes.set_ylim(low - 0.06 * (high - low), high + 0.1 * len(told) * (high - low))  # room for words
            axes.annotate("\n".join(told), (0.03, 0.97), xycoords="axes fraction", va="top", fontsize=7.5)
            _front(axes, shown[shown["front"]].sort_values("bytes", kind="stable"))
            axes.set_title(title)
        for axes in all_axes[len(panels) :]:
            axes.set_visible(False)
        figure.supxlabel(xlabel, fontsize=10)
        figure.supylabel(ylabel, fontsize=10)
        formats = in_order(drawn)
        _format_legend(figure, all_axes[0], [name for name in formats if name in STYLES])
        return _svg(figure)


def _named(what: str, frame: pd.DataFrame) -> list[str]:
    """what: v0, without times; v1, in lines of a panel's width."""
    lost = dict(zip(frame["format"], frame["lost"], strict=True))
    words = [f"{name}, without {lost[name]}" if lost[name] else name for name in in_order(lost)]
    return textwrap.wrap(f"{what}: {'; '.join(words)}", 34) if words else []


def _front(axes: "Axes", front: pd.DataFrame) -> None:
    """From the fewest bytes to the edge: at each number of bytes the least time of those that take no more."""
    if front.empty:
        return
    axes.autoscale(False)
    least = front["median"].cummin().tolist()
    axes.plot(
        [*front["bytes"], axes.get_xlim()[1]],
        [*least, least[-1]],
        drawstyle="steps-post",
        color=INK,
        linewidth=0.8,
        linestyle=(0, (1, 2)),
        zorder=1,
    )


def histograms(panels: Mapping[str, pd.DataFrame]) -> str:
    """Shares of classes side by side: one panel a title, with its x label in brackets behind.

    panels: "title (x label)" -> frame with the classes as index and a column a series, shares from 0 to 1. The first
    series is drawn as bars, others as lines of steps over them.
    """
    with mpl.rc_context(dict(RC)):
        figure, all_axes = _figure(9.2, 2.3, columns=len(panels))
        for axes, (title, frame) in zip(all_axes, panels.items(), strict=True):
            title, _, xlabel = title.partition(" (")
            places = range(len(frame))
            bars, *lines = frame.columns
            axes.bar(places, frame[bars] * 100, width=0.86, color=OTHER.light, label=bars)
            for name in lines:
                axes.step(places, frame[name] * 100, where="mid", color=INK, linewidth=1.3, label=name)
            axes.set_xticks(list(places), list(frame.index), fontsize=8, rotation=40 if len(frame) > 6 else 0)
            axes.set_ylim(0, None)
            axes.set_title(title)
            axes.set_xlabel(xlabel.removesuffix(")"), fontsize=9)
            axes.grid(axis="x", visible=False)
            axes.tick_params(axis="x", length=0)
            if lines:
                axes.legend(fontsize=8, handlelength=1.1)
        all_axes[0].set_ylabel("%", rotation=0, labelpad=8)
        return _svg(figure)


def growth(table: pd.DataFrame) -> str:
    """CPU seconds over records, both logarithmic, beside lines of a constant cost a record (dotted).

    table: index records, one column a workload. Of more than a FEW the cheapest and the dearest have their names.
    """
    with mpl.rc_context(dict(RC)):
        figure, (axes,) = _figure(5.7, 3.9)
        axes.set_xscale("log")
        axes.set_yscale("log")
        first, last = float(table.index.min()), float(table.index.max())
        costs = table.div(table.index, axis=0) * 1e9
        low, high = float(costs.min().min()), float(costs.max().max())
        guides = [10.0**power for power in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)]
        for cost in guides:
            axes.plot(
                [first, last],
                [first * cost / 1e9, last * cost / 1e9],
                color=INK,
                linewidth=0.8,
                linestyle=(0, (1, 2)),
                zorder=0,
            )
            axes.annotate(
                f"{cost:g} ns a record",
                (first, first * cost / 1e9),
                xytext=(4, 5),
                textcoords="offset points",
                fontsize=8,
                rotation_mode="anchor",
            )
        for name in table.columns:
            line = table[name].dropna()
            axes.plot(line.index, line.to_numpy(), color=OTHER.light, linewidth=0.9, marker=".", markersize=3)
        axes.set_ylim(first * guides[0] / 1e9, last * guides[-1] / 1e9)
        powers = [10.0**power for power in range(3, 16) if first <= 10.0**power <= last]
        _ticks(axes, "x", powers if len(powers) > 1 else [first, last])
        axes.set_xlabel("records")
        axes.set_ylabel("CPU seconds")
        figure.draw_without_rendering()
        ends = costs.ffill().iloc[-1].sort_values()
        named = list(ends.index) if len(ends) <= FEW else [ends.index[0], ends.index[-1]]
        _label_ends(axes, {str(name): float(table[name].dropna().iloc[-1]) for name in named})
        return _svg(figure)


def _format_legend(figure: "Figure", axes: "Axes", formats: Sequence[str]) -> None:
    handles = [
        axes.plot([], [], color=style(name).light, marker=style(name).marker, linestyle="none", label=name)[0]
        for name in formats
    ]
    figure.legend(handles=handles, loc="outside upper center", ncols=min(len(formats), 3), fontsize=9, handlelength=1.1)


def _ratio_ticks(low: float, high: float, most: int) -> list[float]:
    """Round ratios that fit the span: fine ones near 1, coarse ones for wide spans."""
    width = math.log(high / low)
    for candidates in (
        (0.9, 0.92, 0.94, 0.96, 0.98, 1, 1.02, 1.04, 1.06, 1.08, 1.1),
        (0.7, 0.8, 0.9, 1, 1.1, 1.2, 1.3, 1.4),
        (0.4, 0.6, 0.8, 1, 1.2, 1.4, 1.6, 2, 2.4),
        (0.5, 0.75, 1, 1.25, 1.5, 2, 2.5),
        (0.1, 0.15, 0.2, 0.3, 0.5, 0.7, 1, 1.5, 2, 3, 5),
        (0.1, 0.2, 0.3, 0.5, 1, 2, 3, 5),
        (0.1, 0.2, 0.5, 1, 2, 5),
        (0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100),
        (0.01, 0.1, 1, 10, 100),
        (0.0001, 0.01, 1, 100, 10000),
    ):
        inside = [v for v in candidates if low <= v <= high]
        nearest = min((math.log(b / a) for a, b in pairwise(inside)), default=width)
        fits = len(inside) <= most and nearest * 1.1 * most >= width  # or their labels would touch
        if candidates[0] <= low * 1.02 and high <= candidates[-1] * 1.02 and fits:
            return inside
    return [1.0]
