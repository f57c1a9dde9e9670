"""Draw bytes against CPU time, with the front: the formats that no other format beats in both."""

import textwrap
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

import pandas as pd

from kfbench.report.data.arms import Band
from kfbench.report.data.shown_formats import in_order
from kfbench.report.render.look import GRID, INK, STYLES, style
from kfbench.report.render.plots.canvas import DOTTED, add_format_legend, as_svg, hide, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PANEL_WIDTH: Final = 27  # width of the text in a panel, in characters


@as_svg
def pareto(panels: Mapping[str, pd.DataFrame], xlabel: str, ylabel: str, noise: Band | None = None) -> "Figure":
    """Draw each format as a dot: bytes on the x axis, CPU time with its interval on the y axis. Both are ratios to v2.

    The front is a dotted step line. A format that is not on the front and has no own marker is left out.

    Args:
        panels: title -> frame with columns format, lost, bytes, median, low, high, front and beyond. lost: the lost
            fields in words; such a format is drawn hollow and named. beyond: True if the format is only named, not
            drawn.
        xlabel, ylabel: the labels of the axes.
        noise: the CPU ratios of v2 to itself (A/A), drawn as a grey band.
    """
    columns = min(2, len(panels))
    lines = -(-len(panels) // columns)
    figure, all_axes = new_figure(5.9, 0.7 + 2.6 * lines, columns=columns, rows=lines)
    drawn: list[str] = []
    for axes, (title, frame) in zip(all_axes, panels.items(), strict=False):
        has_mark = frame["format"].isin([*STYLES]) | frame["front"] | (frame["lost"] != "")
        shown = frame[~frame["beyond"] & has_mark]
        drawn += shown["format"].tolist()
        if noise is not None:
            axes.axhspan(*noise, color=GRID, linewidth=0)
        axes.axhline(1.0, color=INK, linewidth=0.7)
        axes.axvline(1.0, color=INK, linewidth=0.7)
        _draw_formats(axes, shown)
        words = [*_names("more of both", frame[frame["beyond"]]), *_names("hollow", shown[shown["lost"] != ""])]
        low, high = axes.get_ylim()
        axes.set_ylim(low - 0.06 * (high - low), high + 0.1 * len(words) * (high - low))  # room for the text
        axes.annotate("\n".join(words), (0.03, 0.97), xycoords="axes fraction", va="top", fontsize=10)
        _draw_front(axes, shown[shown["front"]].sort_values("bytes", kind="stable"))
        axes.set_title(title)
    hide(all_axes[len(panels) :])
    figure.supxlabel(xlabel, fontsize=12)
    figure.supylabel(ylabel, fontsize=12)
    add_format_legend(figure, all_axes[0], [name for name in in_order(drawn) if name in STYLES])
    return figure


def _draw_formats(axes: "Axes", shown: pd.DataFrame) -> None:
    for row in shown.itertuples():
        look, has_style = style(str(row.format)), str(row.format) in STYLES
        marker, fill = look.marker, "none" if row.lost else look.light
        if row.lost and not has_style:
            marker = "o"  # the marker x cannot be hollow
        axes.plot([row.bytes, row.bytes], [row.low, row.high], color=look.light, linewidth=1.2)
        axes.plot([row.bytes], [row.median], color=look.light, marker=marker, mfc=fill, linestyle="none")
        if not has_style:  # the legend has only formats with a style
            point = (float(row.bytes), float(row.median))
            axes.annotate(str(row.format), point, xytext=(4, -10), textcoords="offset points", fontsize=11)


def _names(title: str, frame: pd.DataFrame) -> list[str]:
    """Return lines of text, for example "title: v0, without times; v1". Each line is at most PANEL_WIDTH long."""
    lost = dict(zip(frame["format"], frame["lost"], strict=True))
    words = [f"{name}, without {lost[name]}" if lost[name] else name for name in in_order(lost)]
    return textwrap.wrap(f"{title}: {'; '.join(words)}", PANEL_WIDTH) if words else []


def _draw_front(axes: "Axes", front: pd.DataFrame) -> None:
    """Draw the front (formats that no other format beats in both) as a step line.

    At each number of bytes, it shows the least CPU time of all formats with at most this number.
    """
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
        linestyle=DOTTED,
        zorder=1,
    )
