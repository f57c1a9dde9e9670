"""The parts of a report: figures, sections with their answers, and notes about missing sections."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, Self

import pandas as pd

from kfbench.report.data.arms import COLD
from kfbench.shipped import DATASETS
from kfbench.tables import Table


@dataclass(frozen=True, kw_only=True)
class Figure:
    """A picture with its texts.

    Args:
        name: the name of the figure's file and of its anchor in the page.
        svg: the picture as SVG text.
        alt: a description of the picture in words.
        caption: the text below the picture.
        numbers: the name of the table that has all drawn numbers. If each panel has its own table: panel -> name.
    """

    name: str
    svg: str
    alt: str
    caption: str
    numbers: str | Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class Missing:
    """A section or figure that the run has no rows for. what: its title. why: the reason."""

    what: str
    why: str


@dataclass(frozen=True, kw_only=True)
class Block:
    """A block of a sweep: a set of measurements with a title and an explanation (`analysis`) in the sweep's TOML."""

    name: str
    title: str
    analysis: str


@dataclass(frozen=True, kw_only=True)
class Texts:
    """Select the blocks of the sweep whose explanations a section prints.

    Args:
        rows: the rows that the section shows.
        of: `any` selects every block that has one of these rows. `most` selects the block that measured the most of the
            shown workload settings (cells). If several have the most, it selects the first of the sweep.
        titled: print each text under its block's title, after the tables.
    """

    rows: pd.DataFrame
    of: Literal["any", "most"] = "most"
    titled: bool = False

    def names(self, stored: pd.DataFrame, order: Sequence[str]) -> list[str]:
        """Return the names of the selected blocks.

        stored: all rows of the run. order: the names of all blocks, in the order of the sweep.
        """
        if self.of == "any":
            present = set(self.rows["grid"])
            return [name for name in order if name in present]
        rows = stored[stored["cell_id"].isin(self.rows["cell_id"]) & (stored["cache"] != COLD)]
        rows = rows[rows["kind"].isin(self.rows["kind"]) & rows["codec"].isin(self.rows["codec"])]
        cells = rows.drop_duplicates(["grid", "cell_id", "codec", "level"])["grid"].value_counts(sort=False)
        return [name for name in order if name in cells and cells[name] == cells.max()][:1]


@dataclass(frozen=True, kw_only=True)
class Answer:
    """The content of a section.

    If the run lacks the rows for a section, its function returns the reason as a string instead.

    Args:
        means: the computed answer in sentences.
        prose: paragraphs before the tables.
        texts: selects the blocks of the sweep whose explanations follow these paragraphs.
        figures: the figures, and the figures that the run has no rows for.
        tables: the open tables; None for a table without rows.
        more: the folded tables.
        wrap: True if the tables contain sentences.
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
    """A section of a report: a question and its answer, ready to print. The other fields are those of Answer.

    Args:
        chapter: the name of the chapter.
        short: the name in the table of contents.
        title: the question.
        blocks: blocks whose explanations are printed under their own titles, after the tables.
        missing: the figures that the run has no rows for.
        command: the command that measures the section's rows again; empty if it is unknown.
    """

    chapter: str
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
    command: str = ""

    @classmethod
    def of(cls, chapter: str, name: str, short: str, title: str, answer: Answer) -> Self:
        """Create a section from an answer. Tables and figures without numbers are left out."""
        return cls(
            chapter=chapter,
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

    def with_command(self, profile: str) -> "Section":
        """Return a copy with the command that measures its rows again. profile: the name of the run's sweep."""
        is_shipped = (DATASETS / "sweeps" / f"{profile}.toml").is_file()  # a run does not store the path of another one
        if not is_shipped or self.texts is None or self.texts.rows.empty:
            return self
        grids, kinds = (",".join(sorted(set(self.texts.rows[column]))) for column in ("grid", "kind"))
        return replace(self, command=f"kfbench run {profile} --filter grid={grids} --filter kind={kinds}")

    def with_blocks(self, blocks: Sequence[Block]) -> "Section":
        """Return a copy of the section with the explanations of these blocks.

        Blocks without an explanation are skipped.
        """
        written = tuple(block for block in blocks if block.analysis.strip())
        if self.texts is not None and self.texts.titled:
            return replace(self, blocks=written)
        return replace(self, prose=(*self.prose, *(block.analysis.strip() for block in written)))


def with_cells(tables: Iterable[Table | None]) -> tuple[Table, ...]:
    """Return the tables that have cells besides the names of their rows."""
    return tuple(table for table in tables if table is not None and has_cells(table))


def has_cells(table: Table) -> bool:
    """Return False if a table has only dashes after the names of its rows.

    The first column has the names of the rows. A table of words without numbers must have a value in each column.
    """
    body = list(zip(*table.rows, strict=True))[1:]
    is_absent = [all(cell is None for cell in column) for column in body]
    has_numbers = any(not isinstance(cell, str | None) for column in body for cell in column)
    return bool(body) and (has_numbers or not any(is_absent))


def drawn(figures: Iterable[Figure | Missing]) -> tuple[Figure, ...]:
    return tuple(figure for figure in figures if isinstance(figure, Figure))


def not_drawn(figures: Iterable[Figure | Missing]) -> tuple[Missing, ...]:
    return tuple(figure for figure in figures if isinstance(figure, Missing))
