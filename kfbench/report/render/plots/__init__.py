"""Draw figures as SVG text. The same numbers give the same bytes on every machine.

For this, the hash salt is fixed, the date is left out, and text stays text.
"""

from kfbench.report.render.plots.bars import group_of, histograms, multiples, shares, stacked
from kfbench.report.render.plots.canvas import thinned
from kfbench.report.render.plots.dots import paths, ratios
from kfbench.report.render.plots.lines import break_even, growth, overhead, steps
from kfbench.report.render.plots.pareto import pareto
from kfbench.report.render.plots.winner_map import winners

__all__ = [
    "break_even",
    "group_of",
    "growth",
    "histograms",
    "multiples",
    "overhead",
    "pareto",
    "paths",
    "ratios",
    "shares",
    "stacked",
    "steps",
    "thinned",
    "winners",
]
