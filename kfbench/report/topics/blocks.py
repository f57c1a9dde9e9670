"""Sections for blocks of the sweep that no other section shows. They show the rows over the axes that vary."""

from collections.abc import Sequence
from typing import Final, NamedTuple

import pandas as pd

from kfbench.formats import BASE_FORMAT
from kfbench.report.data.axes import AXES, distance, level, with_settings
from kfbench.report.data.results import Results, as_cell, is_absent
from kfbench.report.data.shown_formats import NEW, worth_a_column
from kfbench.report.section import Answer, Block, Section, Texts
from kfbench.tables import Column, Interval, Table, number

SMALL_BLOCK_ROWS = 40  # a block with more rows has one table per axis
CODEC: Final = "with_codec"


class BlockTable(NamedTuple):
    """A table about a block of the sweep, and the rows that it shows.

    Its numbers are in the column `shown` of the rows.
    """

    table: Table
    rows: pd.DataFrame


def block_section(chapter: str, results: Results, block: Block) -> Section:
    tables = block_tables(results, block.name)
    answer = Answer(
        means=block_sentence(tables),
        prose=(block.analysis.strip(),),
        tables=tuple(each.table for each in tables),
        texts=Texts(rows=results.all[results.all["grid"] == block.name]),
    )
    return Section.of(chapter, f"block-{block.name}", block.title, block.title, answer)


def block_tables(results: Results, grid: str) -> list[BlockTable]:
    """Return the tables about one block of the sweep.

    A small block has one table of bytes and one table per timed operation. For a large block, these are split into
    tables per axis. The other axes are then fixed at the values nearest to the grid's defaults. grid: the name of the
    block.
    """
    found = []
    rows = results.grid_rows[results.grid_rows["grid"] == grid]
    plain = rows[rows["kind"] == "bytes"]
    if not plain.empty:
        compressed = bool((plain["codec"] != "none").any())
        value = _to_base(plain) if compressed else plain["overhead_bytes"] / plain["records"]
        caption = f"Bytes relative to {BASE_FORMAT} with the same codec" if compressed else "Overhead, bytes per record"
        found += _split_tables(results, plain.assign(shown=value), f"{grid}-bytes", caption, 4 if compressed else 2)
    in_block = rows[rows["kind"] == "cpu"]
    timed = results.cpu[results.cpu["cell_id"].isin(in_block["cell_id"])]
    timed = timed[(timed["arm"] == "measure") & timed["format"].isin(rows["format"])]
    timed = timed.merge(in_block[["cell_id", "codec"]].drop_duplicates())
    for operation, part in timed.groupby("operation", sort=False):
        part = results.with_ratios(part[part["format"] != BASE_FORMAT])
        caption = f"{str(operation).capitalize()}, CPU time relative to {BASE_FORMAT}"
        found += _split_tables(results, part.assign(shown=part["ratio"]), f"{grid}-{operation}", caption, 3)
    return found


def _to_base(rows: pd.DataFrame) -> pd.Series:
    """Return the size of each row relative to v2 on the same workload setting and under the same codec."""
    arms = rows["cell_id"] + "/" + rows["codec"] + "/" + rows["level"].astype(str)
    base = rows.assign(arm=arms)[rows["format"] == BASE_FORMAT].set_index("arm")["size_bytes"]
    return rows["size_bytes"] / arms.map(base[~base.index.duplicated()])


def _split_tables(results: Results, rows: pd.DataFrame, name: str, caption: str, digits: int) -> list[BlockTable]:
    varied = [axis for axis in results.axes if rows[axis].nunique() > 1]
    codec = [CODEC] if rows[CODEC].nunique() > 1 else []
    if len(rows.drop_duplicates([*varied, CODEC])) <= SMALL_BLOCK_ROWS:
        return [_block_table(rows, [*varied, *codec], name, caption, digits)]
    found = []
    for axis in varied:
        part, fixed = rows, []
        for other in (each for each in varied if each != axis):
            distances = {distance({other: value}): value for value in sorted(part[other].unique())}
            at = distances[min(distances)]
            part = part[part[other] == at]
            fixed.append(f"{AXES[other].name} {number(level(other, at))}")
        setting = with_settings(caption, ", ".join(fixed))
        found.append(_block_table(part, [axis, *codec], f"{name}-{axis}", setting, digits))
    return found


def _block_table(rows: pd.DataFrame, keys: list[str], name: str, caption: str, digits: int) -> BlockTable:
    keys = keys or ["batch_size"]
    pivot = rows.pivot(index=keys, columns="format", values="shown").sort_index()
    formats = worth_a_column(pivot)
    body = []
    for at, values in zip(pivot.index, pivot[formats].to_numpy(), strict=True):
        levels = at if isinstance(at, tuple) else (at,)
        shown = [value if key == CODEC else level(key, value) for key, value in zip(keys, levels, strict=True)]
        body.append((*shown, *map(as_cell, values)))
    columns = {CODEC: Column(name="codec"), **AXES}
    table = Table(
        name=name,
        caption=caption,
        columns=(*(columns[key] for key in keys), *(Column(name=f, digits=digits) for f in formats)),
        rows=tuple(body),
    )
    return BlockTable(table, rows)


def block_sentence(tables: Sequence[BlockTable]) -> str:
    """Give the least and the greatest ratio of v3 to v2, over all tables of bytes and of each operation."""
    spans: dict[str, list[float]] = {}
    for table, rows in tables:
        values = rows.loc[rows["format"] == NEW, "shown"]
        spans.setdefault(table.caption.partition(". Settings")[0], []).extend(
            value.median if isinstance(value, Interval) else value for value in values if not is_absent(value)
        )
    return " ".join(f"{what}: {NEW} {min(span):.3f} to {max(span):.3f}." for what, span in spans.items() if span)
