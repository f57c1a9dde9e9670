"""One block of the sweep on its own: its rows over the axes that it varies."""

from collections.abc import Sequence

import pandas as pd

from kfbench.formats import BASE_FORMAT
from kfbench.report.data.axes import AXES, distance, level
from kfbench.report.data.results import Results, as_cell, is_absent
from kfbench.report.data.shown_formats import worth_a_column
from kfbench.report.render.tables import Column, Interval, Table, number
from kfbench.report.render.words import codecs_of

SMALL_BLOCK_ROWS = 40  # more than that is read one axis at a time


def tables(results: Results, grid: str) -> list[tuple[Table, pd.DataFrame]]:
    """The tables of one block of the sweep, each with the rows that it shows.

    One table if the block is small; else one for each axis that it varies, the others standing near the reference.
    """
    found = []
    rows = results.grid_rows[results.grid_rows["grid"] == grid]
    plain = rows[rows["kind"] == "bytes"]
    if not plain.empty:
        compressed = bool((plain["codec"] != "none").any())
        value = _to_base(plain) if compressed else plain["overhead_bytes"] / plain["records"]
        caption = f"Bytes relative to {BASE_FORMAT} with the same codec" if compressed else "Overhead, bytes a record"
        found += _block(results, plain.assign(shown=value), f"{grid}-bytes", caption, 4 if compressed else 2)
    timed = results.cpu[results.cpu["cell_id"].isin(rows.loc[rows["kind"] == "cpu", "cell_id"])]
    timed = timed[(timed["arm"] == "measure") & timed["format"].isin(rows["format"])]
    timed = timed.merge(rows.loc[rows["kind"] == "cpu", ["cell_id", "codec"]].drop_duplicates())
    for operation, part in timed.groupby("operation", sort=False):
        part = results.with_ratios(part[part["format"] != BASE_FORMAT])
        caption = f"{str(operation).capitalize()}, CPU time relative to {BASE_FORMAT}"
        found += _block(results, part.assign(shown=part["ratio"]), f"{grid}-{operation}", caption, 3)
    return found


def _to_base(rows: pd.DataFrame) -> pd.DataFrame:
    """Size relative to v2 of the same cell and codec."""
    arms = rows["cell_id"] + "/" + rows["codec"] + "/" + rows["level"].astype(str)
    base = rows.assign(arm=arms)[rows["format"] == BASE_FORMAT].set_index("arm")["size_bytes"]
    return rows["size_bytes"] / arms.map(base[~base.index.duplicated()])


def _block(
    results: Results, rows: pd.DataFrame, name: str, caption: str, digits: int
) -> list[tuple[Table, pd.DataFrame]]:
    rows = rows.assign(arm=codecs_of(rows))
    varied = [axis for axis in results.axes if rows[axis].nunique() > 1]
    with_codec = ["arm"] if rows["arm"].nunique() > 1 else []
    if len(rows.drop_duplicates([*varied, "arm"])) <= SMALL_BLOCK_ROWS:
        return [(_block_table(rows, [*varied, *with_codec], name, caption, digits), rows)]
    found = []
    for axis in varied:
        part, fixed = rows, []
        for other in (each for each in varied if each != axis):
            distances = {distance({other: value}): value for value in sorted(part[other].unique())}
            at = distances[min(distances)]
            part = part[part[other] == at]
            fixed.append(f"{AXES[other].name} {number(level(other, at))}")
        table = _block_table(part, [axis, *with_codec], f"{name}-{axis}", f"{caption} ({', '.join(fixed)})", digits)
        found.append((table, part))
    return found


def _block_table(rows: pd.DataFrame, keys: list[str], name: str, caption: str, digits: int) -> Table:
    keys = keys or ["batch_size"]
    table = rows.pivot(index=keys, columns="format", values="shown").sort_index()
    formats = worth_a_column(table)
    names = {"arm": Column(name="codec")}
    body = []
    for at, values in zip(table.index, table[formats].to_numpy(), strict=True):
        levels = at if isinstance(at, tuple) else (at,)
        shown = [value if key == "arm" else level(key, value) for key, value in zip(keys, levels, strict=True)]
        body.append((*shown, *map(as_cell, values)))
    return Table(
        name=name,
        caption=caption,
        columns=(*(names.get(key) or AXES[key] for key in keys), *(Column(name=f, digits=digits) for f in formats)),
        rows=tuple(body),
    )


def sentence(found: Sequence[tuple[Table, pd.DataFrame]]) -> str:
    """What v3 does against v2 in the rows shown, over all tables of the same kind together."""
    spans: dict[str, list[float]] = {}
    for table, rows in found:
        what = table.caption.partition(" (")[0]
        values = rows[rows["format"] == "v3"]["shown"]
        spans.setdefault(what, []).extend(
            v.median if isinstance(v, Interval) else v for v in values if not is_absent(v)
        )
    said = [
        f"{what[:1].lower() + what[1:]}: v3 {min(each):.3f} to {max(each):.3f}" for what, each in spans.items() if each
    ]
    text = "; ".join(said)
    return text[:1].upper() + text[1:] + "." if text else ""
