"""Draw a map with the name of the smallest format in each cell."""

from typing import TYPE_CHECKING

import pandas as pd

from kfbench.report.render.look import GRID, style
from kfbench.report.render.plots.canvas import as_svg, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@as_svg
def winners(cells: pd.DataFrame, xlabel: str, ylabel: str) -> "Figure":
    """Draw a table of coloured cells. Each has the colour of its smallest format, which is stronger if it saves more.

    cells: frame with columns x and y (labels, in drawing order), words (the text of the cell), format ("" for a tie),
    and saving (share of v2's bytes, from 0 to 1).
    """
    from matplotlib.patches import Rectangle

    across, down = list(dict.fromkeys(cells["x"])), list(dict.fromkeys(cells["y"]))
    figure, (axes,) = new_figure(5.9, 0.75 + 0.27 * len(down))
    most = max(float(cells["saving"].max()), 0.01)
    for cell in cells.itertuples():
        x, y = across.index(cell.x), down.index(cell.y)
        shade = style(str(cell.format)).light if cell.format else GRID
        strength = (
            0.14 + 0.2 * cell.saving / most if cell.format else 0.35
        )  # text keeps a contrast of 4.5:1 on a light and a dark page
        axes.add_patch(Rectangle((x - 0.48, y - 0.46), 0.96, 0.92, facecolor=shade, alpha=strength, linewidth=0))
        axes.annotate(cell.words, (x, y), ha="center", va="center", fontsize=11)
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
    return figure
