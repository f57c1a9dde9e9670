"""Where the bytes go: overhead field by field."""

import json
from collections.abc import Mapping

import numpy as np
import pandas as pd

from kfbench.formats import BASE_FORMAT
from kfbench.records import PAYLOAD
from kfbench.report.data.results import Results, as_cell
from kfbench.report.data.shown_formats import in_order, pictured
from kfbench.report.render import plots
from kfbench.report.render.look import GROUPS
from kfbench.report.render.tables import Column, Table, listed
from kfbench.report.render.words import batch_words


def fields(results: Results, batch_size: int) -> pd.DataFrame | None:
    """Index: fields; one column a format; bytes a record in the cell nearest to the reference."""
    rows = results.uncompressed[results.uncompressed["field_bytes"].notna()]
    rows = rows[rows["batch_size"] == batch_size]
    rows = results.nearest(rows, batch_size=batch_size)
    if rows.empty:
        return None
    found = {row.format: pd.Series(json.loads(row.field_bytes), dtype=float) / row.records for row in rows.itertuples()}
    by_field = pd.concat(found, axis=1, sort=False)
    by_field = by_field[in_order(by_field.columns)].drop(index=[f for f in PAYLOAD if f in by_field.index])
    return by_field.replace(0.0, np.nan).dropna(how="all")  # no bytes: the format has no such field there


def table(by_field: pd.DataFrame, batch_size: int) -> Table:
    total = by_field.sum()
    rows = [(str(field), *map(as_cell, row)) for field, row in zip(by_field.index, by_field.to_numpy(), strict=True)]
    return Table(
        name=f"fields-{batch_size}",
        caption=f"Overhead by field, bytes a record, {batch_words(batch_size)}",
        columns=(Column(name="field"), *(Column(name=str(f)) for f in by_field.columns)),
        rows=(*rows, ("all overhead", *map(as_cell, total))),
    )


def groups(by_field: pd.DataFrame) -> pd.DataFrame:
    """Fields summed into groups. Index: the formats that figures show; a column a group."""
    shown = pictured(by_field)
    return shown.groupby([plots.group_of(str(field)) for field in shown.index]).sum().T


def group_table(panels: Mapping[str, pd.DataFrame], *, name: str) -> Table:
    """panels: which batches -> formats as index, groups as columns, bytes a record."""
    shown = [group for group in GROUPS if any(group in frame for frame in panels.values())]
    rows = [
        (panel, str(fmt), *(as_cell(row.get(group)) for group in shown), float(row.sum()))
        for panel, frame in panels.items()
        for fmt, row in frame.iterrows()
    ]
    return Table(
        name=name,
        caption="Overhead by group of fields, bytes a record",
        columns=(
            Column(name="batches"),
            Column(name="format", swatch=True),
            *(Column(name=group) for group in shown),
            Column(name="all overhead"),
        ),
        rows=tuple(rows),
    )


def _owner(field: str) -> str:
    """The batch header as one, a record's field as itself."""
    return "the batch header" if field.startswith("batch_header.") else field


def sentence(by_size: Mapping[int, pd.DataFrame]) -> str:
    """by_size: records a batch -> `fields`."""
    said = []
    for size, by_field in by_size.items():
        if BASE_FORMAT not in by_field:
            continue
        whole = by_field[BASE_FORMAT].groupby([_owner(str(field)) for field in by_field.index]).sum()
        top = whole.sort_values(ascending=False, kind="stable").head(3)
        share = top.sum() / whole.sum()
        said.append(
            f"at {batch_words(size)} {listed([str(f) for f in top.index])} are {100 * share:.0f} % of the "
            f"overhead of {BASE_FORMAT}"
        )
    text = "; ".join(said)
    return text[:1].upper() + text[1:] + "." if text else ""
