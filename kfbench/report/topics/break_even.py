"""The section about break-even: the number of records per batch from which one format is smaller than another."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from kfbench.bracket import Bracket, bracket
from kfbench.formats import BASE_FORMAT
from kfbench.report.data.axes import with_settings
from kfbench.report.data.results import Results, Slice
from kfbench.report.data.shown_formats import NEW, OLD, pictured
from kfbench.report.data.views import Views
from kfbench.report.render import plots
from kfbench.report.section import Answer, Figure, Missing
from kfbench.report.topics.axis import ends_words, relative_table
from kfbench.report.topics.reference import NO_BATCH_SIZES
from kfbench.tables import Cell, Column, Ranked, Table, number, plain_columns

SINGLE_RECORD = {"timestamp_spread_ms": 0, "offset_stride": 1}  # the values of these axes in a batch of one record


def first_smaller(sizes: pd.DataFrame, name: str, other: str) -> Bracket:
    """Find the batch size from which `name` is always smaller than `other`.

    The result has two measured batch sizes: the last one without this property, and the first one with it. sizes: bytes
    per record with a row per batch size and a column per format.
    """
    one, two = sizes[name].to_numpy(), sizes[other].to_numpy()
    known = ~(np.isnan(one) | np.isnan(two))
    return bracket([int(level) for level in sizes.index[known]], (one < two)[known].tolist())


def bracket_words(smaller: Bracket) -> Ranked:
    """Return the result of `first_smaller` as text, for example "4–5". Tables sort it by the second number."""
    after, at = smaller
    if at is None:
        return Ranked("never", None)
    if after is None:
        return Ranked(f"{number(at)} (always)" if at == 1 else f"≤ {number(at)}", at)
    return Ranked(number(at) if at == after + 1 else f"{number(after + 1)}–{number(at)}", at)


def break_even_table(results: Results) -> Table | None:
    """Return a table with the batch size from which each format is smaller than another, without a codec."""
    parts = results.slices(results.uncompressed, "batch_size")
    # Slices with few batch sizes would give an imprecise answer.
    parts = [part for part in parts if part.rows["batch_size"].nunique() * 2 > parts[0].rows["batch_size"].nunique()]
    if not parts:
        return None
    settings = _with_single_records(parts)
    shown = settings[0]
    batched = [name for name in shown.columns if name not in OLD]
    rows: list[tuple[Cell, ...]] = []
    for name in batched:
        for other in shown.columns:
            if other == name or (other in batched and other != BASE_FORMAT):
                continue
            everywhere = [
                first_smaller(sizes, name, other) for sizes in settings if {name, other} <= set(sizes.columns)
            ]
            rows.append((name, other, bracket_words(everywhere[0]), _range_words(everywhere), len(everywhere)))
    return Table(
        name="break-even",
        caption=with_settings("Records per batch from which a format is smaller, uncompressed", parts[0].setting),
        columns=(
            Column(name="format", swatch=True),
            Column(name="smaller than", swatch=True),
            *plain_columns("from, records per batch", "over every setting swept", "settings"),
        ),
        rows=tuple(rows),
        notes=("4–5: not at 3, yes at 5, and 4 was not measured. A setting: one point of all the other axes.",),
    )


def _with_single_records(parts: Sequence[Slice]) -> list[pd.DataFrame]:
    """Return bytes per record of each slice (batch sizes with all other axes fixed).

    Each frame has a row per batch size and a column per format. In a batch of one record, the timestamp spread and the
    offset stride mean nothing. So slices with a spread or stride get the row for one record from the slice without.
    """
    sizes = {tuple(part.fixed.items()): part.pivot("size_per_record") for part in parts}
    found = []
    for key, frame in sizes.items():
        still = sizes.get(tuple((dict(key) | SINGLE_RECORD).items()))
        if 1 not in frame.index and still is not None and 1 in still.index:
            frame = pd.concat([still.loc[[1]].reindex(columns=frame.columns), frame])
        found.append(frame)
    return found


def _range_words(brackets: Sequence[Bracket]) -> Ranked:
    order = sorted(brackets, key=lambda b: (float("inf") if b[1] is None else b[1], b[0] or 0))
    first, last = bracket_words(order[0]), bracket_words(order[-1])
    return first if first == last else Ranked(f"{first} to {last}", first.rank)


def break_even_sentence(results: Results) -> str:
    """Give the batch sizes from which v2 and v3 are smaller than v0 and v1."""
    part = results.over_batch_size
    sizes = part.pivot("size_per_record") if part is not None else pd.DataFrame()
    if BASE_FORMAT not in sizes:
        return ""
    sentences = []
    for name in (BASE_FORMAT, NEW):
        for old in OLD if name in sizes else ():
            if old in sizes:
                smaller = first_smaller(sizes, name, old)
                sentences.append(
                    f"From {bracket_words(smaller)} records per batch on, {name} is smaller than {old}."
                    if smaller.at
                    else f"Never smaller than {old}: {name}."
                )
    return " ".join(sentences)


def break_even_answer(run: Views) -> Answer | str:
    table, part = break_even_table(run.results), run.results.over_batch_size
    if table is None or part is None:
        return NO_BATCH_SIZES
    if not table.rows:
        return "no two of Kafka's formats or proposals beside one another over batch size"
    figure = overhead_ratio_figure(part)
    caption = f"Overhead relative to {BASE_FORMAT}"
    ratios = relative_table(part, "overhead_per_record", name="break-even-ratio", caption=caption)
    return Answer(
        means=break_even_sentence(run.results),
        figures=(figure,),
        tables=(table, ratios if isinstance(figure, Figure) else None),
    )


def overhead_ratio_figure(part: Slice) -> Figure | Missing:
    overhead = pictured(part.pivot("overhead_per_record"))
    if BASE_FORMAT not in overhead:
        return Missing(what=f"Overhead relative to {BASE_FORMAT}", why=f"no {BASE_FORMAT} over batch size")
    ratios = overhead.div(overhead[BASE_FORMAT], axis=0)
    return Figure(
        name="break-even",
        svg=plots.break_even(ratios),
        alt=f"Overhead relative to {BASE_FORMAT} over batch size: {ends_words(ratios)}",
        caption=with_settings(f"Below 1× a format has less overhead than {BASE_FORMAT}", part.setting),
        numbers="break-even-ratio",
    )
