"""The parts of a report: figures with a caption, sections with a computed answer, and what a run has no rows for."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, Self

import pandas as pd

from kfbench.report.data.arms import COLD
from kfbench.tables import Table


@dataclass(frozen=True, kw_only=True)
class Figure:
    """A picture and its words.

    Args:
        alt: the content of the picture in words.
        numbers: the name of the table that holds all drawn numbers; panel -> name where each panel has its own table.
    """

    name: str
    svg: str
    alt: str
    caption: str
    numbers: str | Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class Missing:
    """A section or figure that a run has no rows for. what: its title; why: the rows that the run lacks."""

    what: str
    why: str


@dataclass(frozen=True, kw_only=True)
class Block:
    """A block of a sweep: a grid of measurements with a title and an explanation in the sweep's TOML."""

    name: str
    title: str
    analysis: str


@dataclass(frozen=True, kw_only=True)
class Texts:
    """The blocks whose texts a section prints.

    Args:
        rows: rows that the section shows.
        of: `any` takes every block that has one of these rows. `most` takes the block that has the most of their cells;
            among equals, the first of the sweep.
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
class Answer:
    """The answer to a section's question. A topic returns a string instead where the run lacks the rows for an answer.

    Args:
        means: the computed answer in sentences.
        prose: paragraphs before the tables.
        texts: the blocks whose texts follow these paragraphs.
        figures: the figures, and those that the run has no rows for.
        tables: the open tables; None for one without rows.
        more: the folded tables.
        wrap: True if the tables hold sentences.
    """

    means: str = ""
    prose: tuple[str, ...] = ()
    texts: Texts | None = None
    figures: tuple[Figure | Missing, ...] = ()
    tables: tuple[Table | None, ...] = ()
    more: tuple[Table | None, ...] = ()
    wrap: bool = False


@dataclass(frozen=True, kw_only=True)
class Section:
    """A question with its answer, ready to print.

    Args:
        short: the name in the contents.
        title: the question.
        blocks: blocks whose texts stand under their own titles, after the tables.
        missing: the figures that the run has no rows for.
    """

    name: str
    short: str
    title: str
    means: str
    prose: tuple[str, ...]
    texts: Texts | None
    figures: tuple[Figure, ...]
    tables: tuple[Table, ...]
    more: tuple[Table, ...]
    wrap: bool
    missing: tuple[Missing, ...]
    blocks: tuple[Block, ...] = ()

    @classmethod
    def of(cls, name: str, short: str, title: str, answer: Answer) -> Self:
        """Return the section without the tables and figures that have no numbers."""
        return cls(
            name=name,
            short=short,
            title=title,
            means=answer.means,
            prose=answer.prose,
            texts=answer.texts,
            figures=drawn(answer.figures),
            tables=with_cells(answer.tables),
            more=with_cells(answer.more),
            wrap=answer.wrap,
            missing=not_drawn(answer.figures),
        )

    def with_blocks(self, blocks: Sequence[Block]) -> "Section":
        """Return the section with the texts of these blocks, where their authors wrote any."""
        written = tuple(block for block in blocks if block.analysis.strip())
        if self.texts is not None and self.texts.titled:
            return replace(self, blocks=written)
        return replace(self, prose=(*self.prose, *(block.analysis.strip() for block in written)))


def with_cells(tables: Iterable[Table | None]) -> tuple[Table, ...]:
    """Return the tables that have more than the names of their rows."""
    return tuple(table for table in tables if table is not None and has_cells(table))


def has_cells(table: Table) -> bool:
    """Return False for a table with only dashes after the names of its rows. A table of words counts as filled."""
    body = list(zip(*table.rows, strict=True))[1:]
    is_absent = [all(cell is None for cell in column) for column in body]
    has_numbers = any(not isinstance(cell, str | None) for column in body for cell in column)
    return bool(body) and (has_numbers or not any(is_absent))


def drawn(figures: Iterable[Figure | Missing]) -> tuple[Figure, ...]:
    return tuple(figure for figure in figures if isinstance(figure, Figure))


def not_drawn(figures: Iterable[Figure | Missing]) -> tuple[Missing, ...]:
    return tuple(figure for figure in figures if isinstance(figure, Missing))
