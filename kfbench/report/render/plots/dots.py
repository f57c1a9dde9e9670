"""Draw ratios as dots on a logarithmic axis. Each case has a row, and each codec or operation has a panel."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import pandas as pd

from kfbench.report.data.arms import Band
from kfbench.report.data.shown_formats import in_order
from kfbench.report.render.look import GRID, INK, style
from kfbench.report.render.plots.canvas import add_format_legend, as_svg, hide, new_figure, set_ratio_ticks, set_rows

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Rows:
    """Compute the vertical positions of dots. Each label has a row, and each row has a place for each format.

    All panels have the same rows. height: the share of a row's height that its formats use.
    """

    def __init__(self, frames: Iterable[pd.DataFrame], height: float) -> None:
        every = pd.concat(frames)
        self.labels = list(dict.fromkeys(every["label"]))
        self.formats = in_order(every["format"])
        self._step = height / max(len(self.formats), 1)

    def y(self, label: str, format_name: str) -> float:
        """Return the y coordinate of a format's dot. The distance of two rows is 1."""
        middle = (len(self.formats) - 1) / 2
        return self.labels.index(label) + (self.formats.index(format_name) - middle) * self._step


@as_svg
def ratios(panels: Mapping[str, pd.DataFrame], xlabel: str, noise: Band | Mapping[str, Band] | None = None) -> "Figure":
    """Draw ratios with their intervals, each as a dot with a bar.

    If a panel lacks a row that other panels have, it shows "not measured" there.

    Args:
        panels: title -> frame with columns label, format, median, low, high. low and high may be NaN.
        xlabel: the label of the x axis.
        noise: the ratios of v2 to itself (A/A), drawn as a grey band: one band for all panels, or one per title.
    """
    rows = Rows(panels.values(), 0.72)
    columns = min(2, len(panels))
    lines = -(-len(panels) // columns)
    height = 0.9 + lines * (0.6 + (0.13 * len(rows.formats) + 0.18) * len(rows.labels))
    figure, all_axes = new_figure(5.9, height, columns=columns, rows=lines, sharey=True)
    for axes, (title, frame) in zip(all_axes, panels.items(), strict=False):
        axes.set_xscale("log")
        if (band := noise.get(title) if isinstance(noise, Mapping) else noise) is not None:
            axes.axvspan(*band, color=GRID, linewidth=0)
        axes.axvline(1.0, color=INK, linewidth=0.9)
        measured = set(frame["label"])
        for i, label in enumerate(rows.labels):
            if label not in measured:
                axes.annotate(
                    "not measured", (0.5, i), xycoords=axes.get_yaxis_transform(), ha="center", va="center", fontsize=11
                )
        for row in frame.itertuples():
            look = style(str(row.format))
            y = rows.y(row.label, row.format)
            if pd.notna(row.low):
                axes.plot([row.low, row.high], [y, y], color=look.light, linewidth=1.6)
            axes.plot([row.median], [y], color=look.light, marker=look.marker, linestyle="none")
        low = min(float(frame[["low", "median"]].min().min()), 1.0)
        high = max(float(frame[["high", "median"]].max().max()), 1.0)
        set_ratio_ticks(axes, low / 1.06, high * 1.06, most=4)
        axes.set_title(title)
    hide(all_axes[len(panels) :])
    set_rows(all_axes[: len(panels)], rows.labels)
    figure.supxlabel(xlabel, fontsize=12)
    add_format_legend(figure, all_axes[0], rows.formats)
    return figure


@as_svg
def paths(panels: Mapping[str, pd.DataFrame], xlabel: str, row_height: float = 0.42) -> "Figure":
    """Draw ratios of broker paths or workloads without intervals. All panels have the same x axis.

    Args:
        panels: title (a codec) -> frame with columns label, format, median. Each label has a row, and each format a
            dot.
        xlabel: the label of the x axis.
        row_height: the height of a row in inches.
    """
    frames = list(panels.values())
    rows = Rows(frames, 0.74)
    columns = min(2, len(panels))
    lines = -(-len(panels) // columns)
    height = 1.1 + lines * (0.55 + row_height * len(rows.labels))
    figure, all_axes = new_figure(5.9, height, columns=columns, rows=lines, sharex=True, sharey=True)
    medians = pd.concat(frames)["median"]
    low, high = min(1.0, float(medians.min())) / 1.3, max(1.0, float(medians.max())) * 1.3
    for axes, (title, frame) in zip(all_axes, panels.items(), strict=False):
        axes.set_xscale("log")
        axes.axvline(1.0, color=INK, linewidth=0.9)
        for row in frame.itertuples():
            look = style(str(row.format))
            y = rows.y(row.label, row.format)
            axes.plot([row.median], [y], color=look.light, marker=look.marker, linestyle="none", clip_on=False)
        set_ratio_ticks(axes, low, high, most=4)
        axes.set_title(title)
        axes.tick_params(axis="x", labelbottom=True)
    hide(all_axes[len(panels) :])
    set_rows(all_axes[: len(panels)], rows.labels)
    figure.supxlabel(xlabel, fontsize=12)
    add_format_legend(figure, all_axes[0], rows.formats)
    return figure
