"""The section that splits the overhead of each format into its fields."""

import json
from collections.abc import Mapping

import numpy as np
import pandas as pd

from kfbench.formats import BASE_FORMAT
from kfbench.records import PAYLOAD
from kfbench.report.data.results import Results, as_cell
from kfbench.report.data.shown_formats import in_order, pictured
from kfbench.report.data.views import Views
from kfbench.report.data.words import batch_words
from kfbench.report.render import plots
from kfbench.report.render.look import GROUPS
from kfbench.report.section import Answer, Figure
from kfbench.tables import Column, Table, listed, number, plain_columns


def fields_answer(run: Views) -> Answer | str:
    by_size = {size: frame for size in (1, 100) if (frame := field_bytes(run.results, size)) is not None}
    if not by_size:
        return "no bytes by field in batches of 1 or 100"
    panels = {f"batch of {number(int(size))}": group_bytes(frame) for size, frame in by_size.items()}
    groups = groups_table(panels, name="fields-groups")
    words = "; ".join(
        f"{panel}: " + ", ".join(f"{name} {total:.1f}" for name, total in frame.sum(axis=1).items())
        for panel, frame in panels.items()
    )
    figure = Figure(
        name="fields",
        svg=plots.stacked(panels),
        alt=f"Overhead in bytes per record by group of fields. {words}",
        caption="Overhead by group of fields; the tables have every field.",
        numbers=groups.name,
    )
    return Answer(
        means=fields_sentence(by_size),
        figures=(figure,),
        tables=(groups, *(fields_table(frame, size) for size, frame in by_size.items())),
    )


def field_bytes(results: Results, batch_size: int) -> pd.DataFrame | None:
    """Return bytes per record with a row per field and a column per format, without payload fields.

    The numbers are those of one workload setting with this batch size, the nearest to the grid's defaults. Return None
    if there is none.
    """
    rows = results.uncompressed[results.uncompressed["field_bytes"].notna()]
    rows = results.nearest(rows[rows["batch_size"] == batch_size], batch_size=batch_size)
    if rows.empty:
        return None
    columns = {
        row.format: pd.Series(json.loads(row.field_bytes), dtype=float) / row.records for row in rows.itertuples()
    }
    by_field = pd.concat(columns, axis=1, sort=False)
    by_field = by_field[in_order(by_field.columns)].drop(index=[name for name in PAYLOAD if name in by_field.index])
    return by_field.replace(0.0, np.nan).dropna(how="all")  # 0 bytes: the format does not have this field


def fields_table(by_field: pd.DataFrame, batch_size: int) -> Table:
    rows = [(str(field), *map(as_cell, row)) for field, row in zip(by_field.index, by_field.to_numpy(), strict=True)]
    return Table(
        name=f"fields-{batch_size}",
        caption=f"Overhead by field, bytes per record, {batch_words(batch_size)}",
        columns=(Column(name="field"), *(Column(name=str(name)) for name in by_field.columns)),
        rows=(*rows, ("all overhead", *map(as_cell, by_field.sum()))),
    )


def group_bytes(by_field: pd.DataFrame) -> pd.DataFrame:
    """Add up the fields of each group. The result has a row per format in figures, and a column per group."""
    shown = pictured(by_field)
    return shown.groupby([plots.group_of(str(field)) for field in shown.index]).sum().T


def groups_table(panels: Mapping[str, pd.DataFrame], *, name: str) -> Table:
    """Return a table with a row per batch size and format, and a column per group of fields.

    panels: the batch size in words -> the result of `group_bytes`.
    """
    shown = [group for group in GROUPS if any(group in frame for frame in panels.values())]
    rows = [
        (panel, str(fmt), *(as_cell(row.get(group)) for group in shown), float(row.sum()))
        for panel, frame in panels.items()
        for fmt, row in frame.iterrows()
    ]
    return Table(
        name=name,
        caption="Overhead by group of fields, bytes per record",
        columns=(
            Column(name="batches"),
            Column(name="format", swatch=True),
            *plain_columns(*shown),
            Column(name="all overhead"),
        ),
        rows=tuple(rows),
    )


def fields_sentence(by_size: Mapping[int, pd.DataFrame]) -> str:
    """Name the three largest fields of v2 for each batch size. All fields of the batch header count as one field."""
    sentences = []
    for size, by_field in by_size.items():
        if BASE_FORMAT not in by_field:
            continue
        owners = ["the batch header" if str(name).startswith("batch_header.") else str(name) for name in by_field.index]
        total = by_field[BASE_FORMAT].groupby(owners).sum()
        top = total.sort_values(ascending=False, kind="stable").head(3)
        share = f"{100 * top.sum() / total.sum():.0f} % of {BASE_FORMAT}'s overhead"
        sentences.append(f"At {batch_words(size)}, {listed(list(map(str, top.index)))} are {share}.")
    return " ".join(sentences)
