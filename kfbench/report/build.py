"""Build a report from its declarations: all tables, then the pages with their texts, figures and tables.

What the run has no rows for is left out, and the table `missing` lists it.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import msgspec
import pandas as pd

from kfbench.errors import InvalidConfig
from kfbench.present.declaration import (
    FigureView,
    PageView,
    SectionView,
    TableView,
    View,
    nearest,
    read_view,
    unique_tables,
)
from kfbench.present.drawings import draw
from kfbench.present.engine import BuiltTable, Source
from kfbench.present.fields import Unmeasured, filled
from kfbench.present.page import Figure
from kfbench.present.rows import Runs
from kfbench.present.table import Interval, Ranked, Table
from kfbench.report.sources import SOURCES
from kfbench.report.view_packages import VIEWS, SourceFunction

OWN: Final = Path(__file__).parent / "views"
FRONT: Final = "index"  # the page that has the calculator


@dataclass(frozen=True, kw_only=True)
class Section:
    """A section of a page, ready to print. command: measures its rows again; empty if it is unknown."""

    name: str
    title: str
    text: tuple[str, ...]
    figures: tuple[Figure, ...]
    tables: tuple[Table, ...]
    more: tuple[Table, ...]
    command: str


@dataclass(frozen=True, kw_only=True)
class Page:
    """A page, ready to print. manifest: that of the run whose rows it shows."""

    view: PageView
    lead: str
    sections: tuple[Section, ...]
    manifest: Mapping[str, Any]


def all_views() -> list[View]:
    """Return the declarations of the report, then those of other packages."""
    return [*map(read_view, sorted(OWN.glob("*.toml"))), *(read_view(each.path) for each in VIEWS.values())]


def joined_profiles() -> list[str]:
    """Return the profiles whose newest run the report joins."""
    views = all_views()
    return sorted({name for view in views for name in (*view.joins, view.page.profile if view.page else "")} - {""})


class Report:
    """The tables and pages of a report.

    Args:
        runs: the rows.
        is_strict: a field in a text without a number is an error. Otherwise the text is left out.
    """

    def __init__(self, runs: Runs, *, is_strict: bool = False) -> None:
        self.runs, self._is_strict = runs, is_strict
        self._views = all_views()
        self._sources: dict[str, SourceFunction] = {**SOURCES, "missing": self._missing_rows, "failures": failures}
        for each in VIEWS.values():
            if twice := sorted({*each.sources} & {*self._sources}):
                raise InvalidConfig(f"{each.path.name}: two sources are named {twice[0]}")
            self._sources |= each.sources
        self._declared = unique_tables(self._views)
        self._figures = {figure.name: (view, figure) for view in self._views for figure in view.figures}
        self._frames: dict[str, pd.DataFrame] = {}
        self._missing: dict[str, str] = {}
        self.tables = _Lazy(self._declared, self._built)

    def _built(self, name: str) -> BuiltTable:
        view, table = self._declared[name]
        return BuiltTable(table, self._source(view, table), view.path.name)

    def _source(self, view: View, table: TableView) -> Source:
        if table.source == "run":
            return Source(rows=self.runs.own)
        if table.source not in self._sources and table.source in self.runs.joined:
            return Source(rows=self.runs.joined[table.source])
        if table.source not in self._sources:
            known = ["run", *self.runs.manifests, *self._sources]
            raise InvalidConfig(f"{view.path.name}: table {table.name}: no source {table.source}"
                                f"{nearest(table.source, known)}")  # fmt: skip
        if table.source not in self._frames:
            self._frames[table.source] = self._sources[table.source](self.runs)
        return Source(frame=self._frames[table.source])

    @cached_property
    def pages(self) -> list[Page]:
        """The pages that have a section, in their order. The front page comes first."""
        found = sorted(
            (view for view in self._views if view.page), key=lambda view: view.page.place if view.page else 0
        )
        pages = [self._page(view, view.page) for view in found if view.page]
        return [page for page in pages if page.sections or page.view.name == FRONT]

    def _page(self, view: View, page: PageView) -> Page:
        lead = (
            self._text(page.lead, page.title, f"{view.path.name}: page {page.name}") or ""
        )  # the table `missing` is last
        sections = [each for section in view.sections if (each := self._section(view, section))]
        return Page(
            view=page,
            lead=lead,
            sections=tuple(sections),
            manifest=self.runs.manifests.get(page.profile) or self.runs.manifests["run"],
        )

    def _section(self, view: View, section: SectionView) -> Section | None:
        place = f"{view.path.name}: section {section.name}"
        tables = self._shown(section.tables, place)
        more = self._shown(section.more, place)
        if section.tables and section.tables[0] not in [table.name for table in tables]:
            self._missing.setdefault(section.title, f"no rows of {section.tables[0]}")
            return None
        texts = [text for each in section.text if (text := self._text(each, section.title, place))]
        if not tables and not texts:
            return None
        return Section(
            name=section.name,
            title=section.title,
            text=tuple(texts),
            figures=tuple(self._drawn(section.figures, place)),
            tables=tuple(tables),
            more=tuple(more),
            command=self._command(section),
        )

    def _text(self, text: str, title: str, place: str) -> str | None:
        """Return a text with its numbers; None if the run lacks one."""
        try:
            return filled(text, self.tables, place)
        except Unmeasured as error:
            if self._is_strict:
                raise InvalidConfig(str(error)) from error
            self._missing.setdefault(f"{title}: a sentence", error.reason)
            return None

    def _shown(self, names: list[str], place: str) -> list[Table]:
        for name in names:
            if name not in self._declared:
                raise InvalidConfig(f"{place}: no table {name}{nearest(name, self._declared)}")
        return [table for name in names if (table := self.tables[name].table)]

    def _drawn(self, names: list[str], place: str) -> Iterator[Figure]:
        for name in names:
            if name not in self._figures:
                raise InvalidConfig(f"{place}: no figure {name}{nearest(name, self._figures)}")
            view, figure = self._figures[name]
            built = self._shown(figure.tables, f"{view.path.name}: figure {name}")
            words = _with_words(figure, self._text, view) if len(built) == len(figure.tables) else None
            if words and (drawn := draw(words, built)):
                is_hidden = any(self._declared[table][1].is_hidden for table in figure.tables)
                yield replace(drawn, numbers="") if is_hidden else drawn
            else:
                self._missing.setdefault(f"Figure {name}", f"no rows of {', '.join(figure.tables)}")

    def _command(self, section: SectionView) -> str:
        """Return the command that measures the rows of a section again; empty without rows of a run of its own."""
        arms = [self.tables[name].arms for name in section.tables if self._declared[name][1].source == "run"]
        found = [each for each in arms if len(each) and "grid" in each]
        if not found:
            return ""
        grids, kinds = (",".join(sorted({str(value) for each in found for value in each[column]})) for column in
                        ("grid", "kind"))  # fmt: skip
        return f"kfbench run {self.runs.manifests['run']['profile']} --filter grid={grids} --filter kind={kinds}"

    def _missing_rows(self, _: Runs) -> pd.DataFrame:
        return pd.DataFrame(list(self._missing.items()), columns=["part", "reason"])

    @cached_property
    def json(self) -> dict[str, Any]:
        """Every table by name: its caption, columns and rows, with unrounded numbers.

        An interval takes three columns: its median, and its ends as "NAME low" and "NAME high". A number that is shown
        as words takes two: the number, and "NAME words".
        """
        self.pages  # noqa: B018 they say what is missing
        return {name: as_json(table) for name in self._declared if (table := self.tables[name].table)}


class _Lazy(Mapping[str, BuiltTable]):
    """Tables by name, each built when it is asked for."""

    def __init__(self, names: Mapping[str, Any], build: Callable[[str], BuiltTable]) -> None:
        self._names, self._build, self._known = names, build, dict[str, BuiltTable]()

    def __getitem__(self, name: str) -> BuiltTable:
        if name not in self._known:
            self._known[name] = self._build(name)
        return self._known[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def _with_words(figure: FigureView, text: Callable[[str, str, str], str | None], view: View) -> FigureView:
    place = f"{view.path.name}: figure {figure.name}"
    words = {name: text(getattr(figure, name), f"Figure {figure.name}", place) or "" for name in ("caption", "alt")}
    words["alt"] = words["alt"] or words["caption"] or figure.name  # a picture has a description in every run
    return msgspec.structs.replace(figure, **words)


def failures(runs: Runs) -> pd.DataFrame:
    """Return the rows without a number, with one row per status, kind and reason."""
    rows = runs.own.every[runs.own.every["status"] != "ok"]
    left_out = runs.own.left_out
    rows = pd.concat([rows, left_out.assign(status="other host", error="timed on " + left_out["host"].astype(str))])
    reasons = rows["error"].fillna("").astype(str).str.partition("\n")[0] if len(rows) else rows["error"]
    groups = rows.assign(reason=reasons).groupby(["status", "kind", "reason"], dropna=False)
    found = [(*key, len(group), str(group["cell_id"].iloc[0])) for key, group in groups]
    return pd.DataFrame(found, columns=["status", "kind", "reason", "rows", "first_cell"])


def as_json(table: Table) -> dict[str, Any]:
    """Return a table as plain values: caption, columns, rows."""
    columns: list[str] = []
    parts: list[tuple[str, ...]] = []
    for place, column in enumerate(table.columns):
        cells = [row[place] for row in table.rows]
        has_interval = any(isinstance(cell, Interval) for cell in cells)
        has_words = any(isinstance(cell, Ranked) and cell.rank is not None for cell in cells)
        parts.append(("", " low", " high") if has_interval else ("", " words") if has_words else ("",))
        columns += [f"{column.name} {column.unit}".strip() + part for part in parts[-1]]
    rows = [
        [value for cell, part in zip(row, parts, strict=True) for value in _values(cell, len(part))]
        for row in table.rows
    ]
    return {"caption": table.caption, "columns": columns, "rows": rows}


def _values(cell: Any, count: int) -> list[Any]:
    """Return a cell as one value, as three (median, low, high), or as two (number, words)."""
    if isinstance(cell, Interval):
        return [cell.median, cell.low, cell.high]
    if isinstance(cell, Ranked) and cell.rank is not None:
        return [cell.rank, str(cell)]
    return [str(cell) if isinstance(cell, str) else cell, *[None] * (count - 1)]
