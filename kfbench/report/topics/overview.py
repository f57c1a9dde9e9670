"""A small bar chart per workload: its bytes in several formats, without a codec and under the best known one."""

from collections.abc import Mapping
from typing import Final

import pandas as pd

from kfbench.formats import BASE_FORMAT
from kfbench.report.data.named import NONE, codec_words
from kfbench.report.data.results import as_cell
from kfbench.report.data.shown_formats import NEW
from kfbench.report.data.views import Views
from kfbench.report.data.words import percent
from kfbench.report.render import plots
from kfbench.report.section import Figure
from kfbench.report.topics.columnar.measured import NAME, OWN, Columnar
from kfbench.tables import Column, Table

OVERVIEW: Final = (BASE_FORMAT, NEW)


def overview(run: Views) -> dict[str, pd.DataFrame]:
    """Return the bytes of each workload in its own batches, as shares of v2's bytes without a codec.

    The keys are workloads. A frame has a row per codec (none, and the best known), and a column per format.
    """
    columnar = Columnar(run.results)
    found: dict[str, dict[str, dict[str, float]]] = {}
    for codec in run.named.shown_codecs:
        research = {each.at.label: each.of.get(NAME) for each in columnar.under(codec, OWN)}
        for each in run.named.under(codec):
            sizes = {name: each.of.get(name) for name in OVERVIEW} | {NAME: research.get(each.label)}
            found.setdefault(each.label, {})[codec_words(codec)] = {name: size for name, size in sizes.items() if size}
    frames = {}
    for label, by_codec in found.items():
        plain = by_codec.get(codec_words(NONE), {}).get(BASE_FORMAT)
        if plain:
            frames[label] = pd.DataFrame(by_codec).T.reindex(columns=[*OVERVIEW, NAME]).astype(float) / plain
    return frames


def overview_table(frames: Mapping[str, pd.DataFrame]) -> Table:
    first = next(iter(frames.values()))
    return Table(
        name="overview",
        caption=f"Bytes of each workload as a share of {BASE_FORMAT}'s without a codec",
        columns=(
            Column(name="workload"),
            *(Column(name=name, unit=str(codec), digits=3) for codec in first.index for name in first.columns),
        ),
        rows=tuple(
            (label, *(as_cell(frame.at[codec, name]) if codec in frame.index else None
                      for codec in first.index for name in first.columns))
            for label, frame in frames.items()
        ),
    )  # fmt: skip


def overview_figure(frames: Mapping[str, pd.DataFrame]) -> Figure:
    alts = [
        f"{label}: "
        + "; ".join(
            f"{codec} " + ", ".join(f"{name} {percent(share)}" for name, share in row.dropna().items())
            for codec, row in frame.iterrows()
        )
        for label, frame in frames.items()
    ]
    return Figure(
        name="overview",
        svg=plots.multiples(frames),
        alt=f"Bytes of each workload as a share of {BASE_FORMAT}'s without a codec. {'. '.join(alts)}.",
        caption=f"Bytes of each workload in its own batches. 100 % is {BASE_FORMAT} without a codec.",
        numbers="overview",
    )
