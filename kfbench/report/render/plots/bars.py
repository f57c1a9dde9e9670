"""Draw bar charts: the fields of each format as stacked bars, histograms, and a small chart per workload."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

import pandas as pd

from kfbench.records import PAYLOAD
from kfbench.report.render.look import GROUPS, INK, OTHER, PAPER, style
from kfbench.report.render.plots.canvas import as_svg, hide, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# A word in the name of a field -> the group of the field. The first word that matches counts.
GROUP_WORDS: Final = {
    "batch_header": "batch header",
    "timestamp": "timestamps",
    "crc": "CRC",
    "offset": "offsets",
    "length": "lengths and counts",
    "count": "lengths and counts",
    "size": "lengths and counts",
    "attributes": "attributes, magic",
    "magic": "attributes, magic",
}


def group_of(field: str) -> str | None:
    """Return the group (a key of `look.GROUPS`) that a field belongs to; None for payload."""
    if field in PAYLOAD:
        return None
    return next((group for word, group in GROUP_WORDS.items() if word in field), "lengths and counts")


@as_svg
def stacked(panels: Mapping[str, pd.DataFrame]) -> "Figure":
    """Draw overhead in bytes per record, split into groups of fields. Each format has a bar.

    panels: title of a panel (a batch size) -> frame with a row per format and a column per group.
    """
    rows = max(len(frame) for frame in panels.values())
    figure, all_axes = new_figure(5.9, 1.3 + 0.36 * rows, columns=len(panels), sharey=True)
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
            end = (total, i)
            axes.annotate(f"{total:.1f}", end, xytext=(4, 0), textcoords="offset points", va="center", fontsize=12)
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
def histograms(panels: Mapping[str, pd.DataFrame]) -> "Figure":
    """Draw histograms, one panel each.

    panels: "title (x label)" -> frame with a row per bin and a column per series. The values are shares from 0 to 1.
    The first series is drawn as bars, the others as step lines over the bars.
    """
    width, height = (9.2, 2.3) if len(panels) > 2 else (5.9, 2.8)
    figure, all_axes = new_figure(width, height, columns=len(panels))
    for axes, (title_and_label, frame) in zip(all_axes, panels.items(), strict=True):
        title, _, xlabel = title_and_label.partition(" (")
        places = range(len(frame))
        bars, *lines = frame.columns
        axes.bar(places, frame[bars] * 100, width=0.86, color=OTHER.light, label=bars)
        for name in lines:
            axes.step(places, frame[name] * 100, where="mid", color=INK, linewidth=1.3, label=name)
        step = 4 if len(frame) > 8 else 1  # fewer labels than bars, where they would overlap
        labels = [f"{edge:.2f}" if isinstance(edge, float) else edge for edge in frame.index[::step]]
        axes.set_xticks(places[::step], labels, fontsize=11, rotation=40 if 6 < len(frame) <= 8 else 0)
        axes.set_ylim(0, None)
        axes.set_title(title)
        axes.set_xlabel(xlabel.removesuffix(")"), fontsize=12)
        axes.grid(axis="x", visible=False)
        axes.tick_params(axis="x", length=0)
        if lines:
            axes.legend(fontsize=11, handlelength=1.1)
    all_axes[0].set_ylabel("%", rotation=0, labelpad=8)
    return figure


@as_svg
def multiples(panels: Mapping[str, pd.DataFrame]) -> "Figure":
    """Draw a small bar chart per workload, all with the same axis from 0 to 1.

    panels: name of a workload -> frame with a row per codec and a column per format. The values are shares, written at
    the bars. Missing values have no bar.
    """
    columns = 2
    lines = -(-len(panels) // columns)
    bars = max(int(frame.notna().sum().sum()) for frame in panels.values())
    figure, all_axes = new_figure(5.9, lines * (0.42 + 0.17 * bars), columns=columns, rows=lines)
    most = max(1.0, *(float(frame.max().max()) for frame in panels.values()))
    for axes, (title, frame) in zip(all_axes, panels.items(), strict=False):
        labels, place = {}, 0.0
        for codec, row in frame.iterrows():
            labels[place + (row.notna().sum() - 1) / 2] = str(codec)
            for name, share in row.dropna().items():
                axes.barh([place], [share], color=style(str(name)).light, height=0.86)
                axes.annotate(f"{name} {share:.0%}", (share, place), xytext=(4, 0), textcoords="offset points",
                              va="center", fontsize=10)  # fmt: skip
                place += 1
            place += 0.5
        axes.set_yticks(list(labels), list(labels.values()))
        axes.set_ylim(place - 0.9, -0.6)
        axes.set_xlim(0, most * 1.75)  # room for the names
        axes.set_xticks([])
        axes.spines["bottom"].set_visible(False)
        axes.tick_params(axis="y", length=0)
        axes.set_title(title, fontsize=11)
    hide(all_axes[len(panels) :])
    return figure


@as_svg
def shares(table: pd.DataFrame, base: str) -> "Figure":
    """Draw bytes relative to a base (1) as bars, in groups. The name and the number stand at each bar.

    table: a row per kind, named "format" (drawn hollow) or "format + dictionary" (filled), and a column per group.
    """
    figure, (axes,) = new_figure(5.9, 0.9 + 0.36 * (len(table) + 1) * len(table.columns))
    labels, place = {}, 0.0
    for group, column in table.items():
        labels[place + (len(table) - 1) / 2] = str(group)
        for name, share in column.dropna().items():
            shade = style(str(name).partition(" ")[0]).light
            is_filled = "+" in str(name)
            axes.barh([place], [share], color=shade if is_filled else PAPER, edgecolor=shade, height=0.8, linewidth=1.3)
            axes.annotate(f"{name} {share:.2f}", (share, place), xytext=(5, 0), textcoords="offset points", va="center")
            place += 1
        place += 0.8
    axes.set_yticks(list(labels), [label.replace(" per", "\nper") for label in labels.values()])
    axes.set_ylim(place - 1.2, -0.8)
    axes.set_xlim(0, 1.25)
    axes.set_xticks([0, 0.25, 0.5, 0.75, 1], ["0", "0.25", "0.5", "0.75", "1"])
    axes.set_xlabel(f"bytes relative to {base}")
    axes.grid(axis="y", visible=False)
    axes.tick_params(axis="y", length=0)
    return figure
