"""Settings, axes, ticks and labels that all figures share."""

import io
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import wraps
from itertools import pairwise
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, ParamSpec

import matplotlib as mpl

from kfbench.present.look import GRID, INK, PAPER, style
from kfbench.present.table import number

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

P = ParamSpec("P")

DOTTED: Final = (0, (1, 2))
LABEL_GAP: Final = 0.062  # least distance of labels at the ends of lines, as a share of the axis
RC: Final[Any] = MappingProxyType(  # Any: in matplotlib the keys are a union of 300 literals
    {
        "svg.fonttype": "none",
        "svg.hashsalt": "kfbench",
        "font.family": "sans-serif",
        "font.sans-serif": ["DejaVu Sans"],  # part of matplotlib, so the layout is the same on every machine
        "font.size": 12.0,
        "text.color": INK,
        "axes.edgecolor": INK,
        "axes.labelcolor": INK,
        "axes.titlesize": 12.0,
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


def as_svg(draw: "Callable[P, Figure]") -> Callable[P, str]:
    """Decorate a drawing function: it runs with the shared settings, and returns its figure as SVG text."""

    @wraps(draw)
    def drawn(*args: P.args, **kwargs: P.kwargs) -> str:
        with mpl.rc_context(dict(RC)):
            out = io.StringIO()
            draw(*args, **kwargs).savefig(out, format="svg", metadata={"Date": None, "Creator": None})
            return re.sub(r"(\d\.\d\d)\d+", r"\1", out.getvalue())  # a hundredth of a point is invisible

    return drawn


def new_figure(
    width: float, height: float, columns: int = 1, rows: int = 1, *, sharex: bool = False, sharey: bool = False
) -> "tuple[Figure, list[Axes]]":
    """Return a new figure and its axes, row by row. width, height: in inches."""
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasSVG(figure)
    return figure, list(figure.subplots(rows, columns, squeeze=False, sharex=sharex, sharey=sharey).flat)


def set_ticks(axes: "Axes", which: str, values: Sequence[float]) -> None:
    """Place ticks at these values on one axis, and label them with their numbers. which: "x" or "y"."""
    from matplotlib.ticker import FixedLocator, NullFormatter, NullLocator

    axis = getattr(axes, f"{which}axis")
    axis.set_major_locator(FixedLocator(list(values)))
    axis.set_minor_locator(NullLocator())
    axis.set_minor_formatter(NullFormatter())
    getattr(axes, f"set_{which}ticklabels")([number(int(v) if v == int(v) else v, 1) for v in values])


def set_ratio_ticks(axes: "Axes", low: float, high: float, most: int) -> None:
    """Let a logarithmic x axis go from low to high, with at most `most` ticks such as 0.5×, 1×, 2×."""
    axes.set_xlim(low, high)
    set_ticks(axes, "x", ratio_ticks(low, high, most))
    axes.set_xticklabels([f"{v:g}×" for v in axes.get_xticks()])


def ratio_ticks(low: float, high: float, most: int) -> list[float]:
    """Return at most `most` round ratios between low and high. A narrow range gets fine steps near 1."""
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
        fits = len(inside) <= most and nearest * 1.1 * most >= width  # otherwise the labels would touch
        if candidates[0] <= low * 1.02 and high <= candidates[-1] * 1.02 and fits:
            return inside
    return [1.0]


def thinned(levels: Sequence[float], most: int = 8) -> list[float]:
    """Return about `most` of the levels as ticks for a logarithmic axis.

    If there are at least three powers of 10, these are returned. Otherwise every n-th level is returned.
    """
    if len(levels) <= most:
        return list(levels)
    powers = [v for v in levels if str(int(v)).rstrip("0") in ("1", "")]
    return powers if len(powers) >= 3 else list(levels[:: max(1, len(levels) // most)])


def label_line_ends(figure: "Figure", axes: "Axes", ends: Mapping[str, float]) -> None:
    """Write the name of each line at its right end instead of a legend. Names that would overlap are moved apart.

    ends: name -> the line's last value.
    """
    figure.draw_without_rendering()
    bottom, top = (float(axes.transData.inverted().transform(axes.transAxes.transform((0, y)))[1]) for y in (0.0, 1.0))
    is_log = axes.get_yscale() == "log"

    def height(value: float) -> float:
        if is_log:
            return math.log(value / bottom) / math.log(top / bottom)
        return (value - bottom) / (top - bottom)

    heights = spread_labels([height(value) for value in ends.values()], LABEL_GAP)
    for name, label_height in zip(ends, heights, strict=True):
        axes.annotate(
            name,
            (1.0, label_height),
            xycoords="axes fraction",
            xytext=(6, 0),
            textcoords="offset points",
            color=style(name).light,
            va="center",
            annotation_clip=False,
        )


def spread_labels(positions: Sequence[float], gap: float) -> list[float]:
    """Move labels apart so that they are at least `gap` apart, and keep their order.

    positions: the wanted heights. All heights are shares of the axis, from 0 to 1.
    """
    order = sorted(range(len(positions)), key=lambda i: positions[i])
    placed = [positions[i] for i in order]
    for _ in range(200):
        is_moved = False
        for j in range(len(placed) - 1):
            lack = gap - (placed[j + 1] - placed[j])
            if lack > 1e-6:
                placed[j] -= lack / 2
                placed[j + 1] += lack / 2
                is_moved = True
        if not is_moved:
            break
    result = [0.0] * len(placed)
    for i, height in zip(order, placed, strict=True):
        result[i] = height
    return result


def add_format_legend(figure: "Figure", axes: "Axes", formats: Sequence[str]) -> None:
    """Add a legend with the colours and markers of the formats above the figure."""
    handles = [
        axes.plot([], [], color=style(name).light, marker=style(name).marker, linestyle="none", label=name)[0]
        for name in formats
    ]
    figure.legend(handles=handles, loc="outside upper center", ncols=min(len(formats), 4), handlelength=1.1)


def set_rows(all_axes: "Sequence[Axes]", labels: Sequence[str]) -> None:
    """Label the rows of all panels from top to bottom, and draw a thin line between rows."""
    all_axes[0].set_yticks(range(len(labels)), labels)
    all_axes[0].set_ylim(len(labels) - 0.5, -0.5)
    for axes in all_axes:
        axes.grid(axis="y", visible=False)
        axes.tick_params(axis="y", length=0)
        for i in range(1, len(labels)):
            axes.axhline(i - 0.5, color=GRID, linewidth=0.6)


def hide(unused: "Iterable[Axes]") -> None:
    for axes in unused:
        axes.set_visible(False)
