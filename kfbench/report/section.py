"""The parts of a report: figures with a caption, sections with a computed answer, and what a run has no rows for."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import pandas as pd

from kfbench.report.data.arms import COLD
from kfbench.tables import Table


@dataclass(frozen=True, kw_only=True)
class Figure:
    """A picture and its words.

    Args:
        svg: the picture.
        alt: what it shows, in words.
        numbers: the name of the table that holds all that is drawn; by panel where each panel has a table of its own.
    """

    name: str
    svg: str
    alt: str
    caption: str
    numbers: str | Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class Missing:
    """A section or a figure that a run has no rows for. what: its title; why: what the run lacks."""

    what: str
    why: str


@dataclass(frozen=True, kw_only=True)
class Block:
    """A block of the sweep, as its author named and explained it."""

    name: str
    title: str
    analysis: str


@dataclass(frozen=True, kw_only=True)
class Texts:
    """The blocks whose texts a section prints.

    Args:
        rows: rows that the section shows.
        of: `any` takes every block that has one of these rows; `most` takes the block that has the most of their cells,
            the first of the sweep among equals.
        titled: print each text under its block's title, after the tables.
    """

    rows: pd.DataFrame
    of: Literal["any", "most"] = "most"
    titled: bool = False

    def names(self, stored: pd.DataFrame, order: Sequence[str]) -> list[str]:
        """Return the names of these blocks. stored: all rows of the run; order: all blocks, as the sweep has them."""
        if self.of == "any":
            present = set(self.rows["grid"])
            return [name for name in order if name in present]
        rows = stored[stored["cell_id"].isin(self.rows["cell_id"]) & (stored["cache"] != COLD)]
        rows = rows[rows["kind"].isin(self.rows["kind"]) & rows["codec"].isin(self.rows["codec"])]
        cells = rows.drop_duplicates(["grid", "cell_id", "codec", "level"])["grid"].value_counts(sort=False)
        return [name for name in order if name in cells and cells[name] == cells.max()][:1]


@dataclass(frozen=True, kw_only=True)
class Section:
    """A question and its answer.

    Args:
        short: its name in the contents.
        title: the question.
        means: the answer, computed.
        prose: paragraphs that stand before the tables.
        texts: the blocks whose texts follow these paragraphs.
        more: tables that are folded away.
        blocks: blocks whose texts stand under their own titles, after the tables.
        wrap: the tables hold sentences.
        missing: figures and tables that it would have of other runs.
    """

    name: str
    short: str
    title: str
    means: str = ""
    prose: tuple[str, ...] = ()
    texts: Texts | None = None
    figures: tuple[Figure, ...] = ()
    tables: tuple[Table, ...] = ()
    more: tuple[Table, ...] = ()
    blocks: tuple[Block, ...] = ()
    wrap: bool = False
    missing: tuple[Missing, ...] = ()

    def with_blocks(self, blocks: Sequence[Block]) -> "Section":
        """Return the section with the texts of these blocks, where their authors wrote any."""
        written = tuple(block for block in blocks if block.analysis.strip())
        if self.texts is not None and self.texts.titled:
            return replace(self, blocks=written)
        return replace(self, prose=(*self.prose, *(block.analysis.strip() for block in written)))

    def without_empty_tables(self) -> "Section":
        """Return the section without tables that have nothing but the names of their rows."""
        tables, more = (tuple(filter(has_cells, each)) for each in (self.tables, self.more))
        return replace(self, tables=tables, more=more)


def has_cells(table: Table) -> bool:
    """Return False for a table with only dashes behind the names of its rows. A table of words has its words."""
    body = list(zip(*table.rows, strict=True))[1:]
    is_absent = [all(cell is None for cell in column) for column in body]
    has_numbers = any(not isinstance(cell, str | None) for column in body for cell in column)
    return bool(body) and (has_numbers or not any(is_absent))


def drawn(figures: Iterable[Figure | Missing]) -> tuple[Figure, ...]:
    return tuple(figure for figure in figures if isinstance(figure, Figure))


def not_drawn(figures: Iterable[Figure | Missing]) -> tuple[Missing, ...]:
    return tuple(figure for figure in figures if isinstance(figure, Missing))
