"""Draw line charts: overhead, break-even, steps of varints, and growth with the number of records."""

import math
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

import pandas as pd

from kfbench.formats import BASE_FORMAT
from kfbench.report.render.look import GRID, INK, OTHER, style
from kfbench.report.render.plots.canvas import DOTTED, as_svg, label_line_ends, new_figure, set_ticks, thinned
from kfbench.tables import number

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FEW: Final = 5  # with at most this many lines, each line has a label
OVERHEAD_TICKS: Final = (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 35, 50, 70, 100, 200, 500)
RATIO_TICKS: Final = (0.2, 0.3, 0.4, 0.5, 0.7, 1, 1.5, 2, 3, 4, 5)
OVERHEAD: Final = "overhead, bytes per record"


def draw_lines(axes: "Axes", table: pd.DataFrame) -> dict[str, float]:
    """Draw one line per column of the table. Return the last value of each line by its name."""
    ends = {}
    for name in table.columns:
        line = table[name].dropna()
        if line.empty:
            continue
        look = style(str(name))
        axes.plot(line.index, line.to_numpy(), color=look.light, marker=look.marker, linestyle=look.dash, clip_on=False)
        ends[str(name)] = float(line.iloc[-1])
    return ends


class Points(NamedTuple):
    """The x and y coordinates of the points of a line."""

    xs: list[float]
    ys: list[float]


def cut_at_edge(line: "pd.Series[float]", edge: float) -> Points:
    """Return the points of a falling line down to y = edge. Both axes are logarithmic.

    The rest of the line must not be drawn and clipped. The invisible part would lie under the caption, where a text
    search in the page finds it.
    """
    xs: list[float] = []
    ys: list[float] = []
    for x, y in line.items():
        if y < edge and ys:
            share = math.log(ys[-1] / edge) / math.log(ys[-1] / max(y, sys.float_info.min))
            return Points([*xs, xs[-1] * (x / xs[-1]) ** share], [*ys, edge])
        xs.append(float(x))
        ys.append(float(y))
    return Points(xs, ys)


def _set_log_range(axes: "Axes", low: float, high: float, ticks: tuple[float, ...]) -> None:
    axes.set_ylim(low, high)
    set_ticks(axes, "y", [tick for tick in ticks if low <= tick <= high])


@as_svg
def overhead(table: pd.DataFrame, floor: "pd.Series[float] | None" = None) -> "Figure":
    """Draw overhead in bytes per record over batch size.

    table: a row per batch size, a column per format. floor: the metadata floor (lower limit) per batch size.
    """
    figure, (axes,) = new_figure(5.7, 3.9)
    axes.set_xscale("log")
    axes.set_yscale("log")
    ends = draw_lines(axes, table)
    low, high = float(table.min().min()), float(table.max().max())
    if floor is not None:
        low = min(low, max(float(floor.min()), low / 10))  # a logarithmic axis has no zero
        points = cut_at_edge(floor, low * 0.85)
        axes.fill_between(points.xs, points.ys, low * 0.85, color=GRID, linewidth=0)
        axes.plot(points.xs, points.ys, color=INK, linewidth=1.0)
        seen = floor[floor >= low]
        end = (float(seen.index[-1]), float(seen.iloc[-1]))
        axes.annotate("floor", end, xytext=(5, 0), textcoords="offset points", va="center")
    _set_log_range(axes, low * 0.85, high * 1.15, OVERHEAD_TICKS)
    set_ticks(axes, "x", thinned([float(v) for v in table.index]))
    axes.set_xlabel("records per batch")
    axes.set_ylabel(OVERHEAD)
    label_line_ends(figure, axes, ends)
    return figure


@as_svg
def break_even(ratios: pd.DataFrame, base: str = BASE_FORMAT, what: str = "overhead") -> "Figure":
    """Draw overhead relative to the base format over batch size. Below 1, a format has less overhead than the base.

    ratios: a row per batch size, a column per format. what: what is drawn instead of overhead.
    """
    figure, (axes,) = new_figure(5.7, 3.6)
    axes.set_xscale("log")
    axes.set_yscale("log")
    ends = draw_lines(axes, ratios)
    _set_log_range(axes, float(ratios.min().min()) * 0.9, float(ratios.max().max()) * 1.12, RATIO_TICKS)
    axes.set_yticklabels([f"{v:g}×" for v in axes.get_yticks()])
    set_ticks(axes, "x", thinned([float(v) for v in ratios.index]))
    axes.set_xlabel("records per batch")
    axes.set_ylabel(f"{what} relative to {base}")
    label_line_ends(figure, axes, ends)
    return figure


@as_svg
def steps(table: pd.DataFrame, boundaries: Mapping[float, str], xlabel: str) -> "Figure":
    """Draw overhead over an axis on which varints grow by a byte at certain values.

    table: a row per value of the axis, a column per format. boundaries: value at which a varint grows (drawn as a
    dotted line) -> its label.
    """
    figure, (axes,) = new_figure(5.7, 3.2)
    axes.set_xscale("symlog", linthresh=1, linscale=0.4)
    ends = draw_lines(axes, table)
    low, high = float(table.min().min()), float(table.max().max())
    pad = max((high - low) * 0.12, 0.3)
    axes.set_ylim(low - pad, high + pad)
    first, last = float(table.index[0]), float(table.index[-1])
    shown = {x: name for x, name in boundaries.items() if first < x < last}
    for x in shown:
        axes.axvline(x, color=INK, linewidth=0.8, linestyle=DOTTED, zorder=0)
    ticks = {first: number(int(first)), **shown, last: boundaries.get(last, number(int(last)))}
    set_ticks(axes, "x", list(ticks))
    axes.set_xticklabels(list(ticks.values()))
    axes.set_xlabel(xlabel)
    axes.set_ylabel(OVERHEAD)
    label_line_ends(figure, axes, ends)
    return figure


@as_svg
def growth(table: pd.DataFrame) -> "Figure":
    """Draw CPU seconds over the number of records, on logarithmic axes. Dotted lines show a constant cost per record.

    table: a row per number of records, a column per workload. With more than FEW workloads, only the cheapest and the
    most expensive one are labelled.
    """
    figure, (axes,) = new_figure(5.7, 3.9)
    axes.set_xscale("log")
    axes.set_yscale("log")
    first, last = float(table.index.min()), float(table.index.max())
    costs_ns = table.div(table.index, axis=0) * 1e9
    low, high = float(costs_ns.min().min()), float(costs_ns.max().max())
    guides_ns = [10.0**power for power in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)]
    for cost_ns in guides_ns:
        ends_s = [first * cost_ns / 1e9, last * cost_ns / 1e9]
        axes.plot([first, last], ends_s, color=INK, linewidth=0.8, linestyle=DOTTED, zorder=0)
        axes.annotate(
            f"{cost_ns:g} ns per record",
            (first, ends_s[0]),
            xytext=(4, 5),
            textcoords="offset points",
            fontsize=11,
            rotation_mode="anchor",
        )
    for name in table.columns:
        line = table[name].dropna()
        axes.plot(line.index, line.to_numpy(), color=OTHER.light, linewidth=0.9, marker=".", markersize=3)
    axes.set_ylim(first * guides_ns[0] / 1e9, last * guides_ns[-1] / 1e9)
    powers = [10.0**power for power in range(3, 16) if first <= 10.0**power <= last]
    set_ticks(axes, "x", powers if len(powers) > 1 else [first, last])
    axes.set_xlabel("records")
    axes.set_ylabel("CPU seconds")
    last_ns = costs_ns.ffill().iloc[-1].sort_values()
    named = list(last_ns.index) if len(last_ns) <= FEW else [last_ns.index[0], last_ns.index[-1]]
    label_line_ends(figure, axes, {str(name): float(table[name].dropna().iloc[-1]) for name in named})
    return figure
