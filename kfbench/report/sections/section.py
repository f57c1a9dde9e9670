"""What a report is made of: figures with a caption, sections with a sentence, and what a run has no rows for."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from kfbench.report.render.tables import Table
from kfbench.report.sections.prose import Block


@dataclass(frozen=True, kw_only=True)
class Figure:
    """One picture: SVG text, what it shows in words for who cannot see it, and a caption.

    numbers: the name of the table that holds all that is drawn; where each panel has its own, panel -> name.
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
class Section:
    """One question. means: the computed sentence; prose: what the sweep's author wrote; more: tables folded away.

    blocks: those whose prose stands under their own titles, after the tables. wrap: the tables hold sentences. missing:
    figures that it would have of other runs.
    """

    name: str
    short: str
    title: str
    means: str = ""
    prose: tuple[str, ...] = ()
    figures: tuple[Figure, ...] = ()
    tables: tuple[Table, ...] = ()
    more: tuple[Table, ...] = ()
    blocks: tuple[Block, ...] = ()
    wrap: bool = False
    missing: tuple[Missing, ...] = ()


def apart(found: Iterable[Figure | Missing]) -> tuple[tuple[Figure, ...], tuple[Missing, ...]]:
    """The figures that are there, and those that are not."""
    every = list(found)
    return (
        tuple(each for each in every if isinstance(each, Figure)),
        tuple(each for each in every if isinstance(each, Missing)),
    )
