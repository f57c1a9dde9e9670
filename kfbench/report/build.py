"""Build a report from its declarations: all tables, then the pages with their texts, figures and tables.

What the run has no rows for is left out, and the table `missing` lists it.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Final

import pandas as pd

from kfbench.errors import InvalidConfig
from kfbench.measure.cpu import Interval
from kfbench.present.declaration import (
    SectionView,
    TableView,
    View,
    nearest,
    read_view,
    unique_tables,
)
from kfbench.present.engine import BuiltTable, TableSource
from kfbench.present.fields import Unmeasured, fill_fields
from kfbench.present.rows import Runs, failed_checks, machine_words, noise_state, run_date, run_words
from kfbench.present.table import Ranked, Table, prose
from kfbench.present.views import plain_table, preset_json, rows_of, view_json
from kfbench.report.sources import SOURCES
from kfbench.report.view_packages import VIEWS, SourceFunction

OWN: Final = Path(__file__).parent / "views"
FRONT: Final = "index"  # the page that has the calculator
DIGITS: Final = 10  # of a number in tables.json


@dataclass(frozen=True, kw_only=True)
class PageSection:
    """A section of a page, ready to print.

    run: the machine and noise of the run whose rows it shows; empty for the report's own, and for several runs, which
    stand below their tables. command: measures its rows again; empty if it is unknown.
    """

    name: str
    title: str
    text: tuple[str, ...]
    tables: tuple[Table, ...]
    more: tuple[Table, ...]
    run: str
    command: str


@dataclass(frozen=True, kw_only=True)
class Page:
    """A page, ready to print.

    title, lead, answer: its words with their numbers. run: the machine and noise of the report's run, or of the
    other runs that all rows are of. noisy: the failed noise checks. views: the rows and presets for the page's script;
    None without presets. plain: the rows of the first preset, for a page without a script.
    """

    name: str
    short: str
    title: str
    lead: str
    answer: str
    run: str
    noisy: Sequence[str]
    sections: tuple[PageSection, ...]
    views: Mapping[str, Any] | None
    plain: Table | None


def all_views() -> list[View]:
    """Return the declarations of the report, then those of other packages."""
    return [*map(read_view, sorted(OWN.glob("*.toml"))), *(read_view(each.path) for each in VIEWS.values())]


def joined_profiles() -> list[str]:
    """Return the profiles whose newest run the report joins."""
    views = all_views()
    return sorted({name for view in views for name in (*view.joins, *(each.profile for each in view.sections))} - {""})


class Report:
    """The tables and pages of a report.

    Args:
        runs: the rows.
        is_strict: a field in a text without a number and an unknown value of a preset are errors. Otherwise they are
            left out.
    """

    def __init__(self, runs: Runs, *, is_strict: bool = False) -> None:
        self.runs, self._is_strict = runs, is_strict
        self._views, self._joins = all_views(), joined_profiles()
        self._sources: dict[str, SourceFunction] = {
            **SOURCES, "failures": failures, "measured_runs": self._run_rows,
            "missing": lambda _: pd.DataFrame(list(self._missing.items()), columns=["part", "reason"]),
        }  # fmt: skip
        for each in VIEWS.values():
            if twice := sorted({*each.sources} & {*self._sources}):
                raise InvalidConfig(f"{each.path.name}: two sources are named {twice[0]}")
            self._sources |= each.sources
        self._declared = unique_tables(self._views)
        sections = [section for view in self._views for section in view.sections if section.profile]
        self._profiles = {name: each.profile for each in sections for name in (*each.tables, *each.more)}
        self._frames: dict[str, pd.DataFrame] = {}
        self._missing: dict[str, str] = {}
        self.tables = _Lazy(self._declared, self._build_table)

    def _build_table(self, name: str) -> BuiltTable:
        view, table = self._declared[name]
        return BuiltTable(table, self._source(view, table), view.path.name)

    def _source(self, view: View, table: TableView) -> TableSource:
        if table.source == "run":
            return TableSource(rows=self.runs.own)
        if table.source not in self._sources and table.source in self._joins:
            rows = self.runs.joined.get(table.source)
            return TableSource(frame=pd.DataFrame()) if rows is None else TableSource(rows=rows)
        if table.source not in self._sources:
            known = ["run", *self.runs.manifests, *self._sources]
            raise InvalidConfig(f"{view.path.name}: table {table.name}: no source {table.source}"
                                f"{nearest(table.source, known)}")  # fmt: skip
        return TableSource(frame=self._frame(table.source))

    def _frame(self, source: str) -> pd.DataFrame:
        if source not in self._frames:
            self._frames[source] = self._sources[source](self.runs)
        return self._frames[source]

    def _manifest(self, table: str) -> Mapping[str, Any]:
        """Return the manifest of the run whose rows a table has."""
        source = self._declared[table][1].source
        apart: Mapping[str, Any] | None = self._frame(source).attrs.get("manifest") if source in self._sources else None
        return apart or self.runs.manifests.get(self._profiles.get(table, source), self.runs.manifests["run"])

    @cached_property
    def pages(self) -> list[Page]:
        """The pages that have a section or a preset, in their order. The front page comes first."""
        by_name: dict[str, list[View]] = {}
        places = {view.page.name: view.page.place for view in reversed(self._views) if view.page}
        for view in self._views:
            if view.page:
                by_name.setdefault(view.page.name, []).append(view)
        found = [self._page(by_name[name]) for name in sorted(by_name, key=lambda name: places[name])]
        return [page for page in found if page.sections or page.views or page.name == FRONT]

    def _page(self, views: Sequence[View]) -> Page:
        """Return a page from all declarations that belong to it. The first one has its words."""
        page, place = views[0].page, f"{views[0].path.name}: page"
        assert page is not None
        # The words come first, because the table `missing` of a section lists those that are left out.
        words = {name: self._text(getattr(page, name), page.short, place) or "" for name in ("title", "lead", "answer")}
        found = [each for view in views for section in view.sections if (each := self._section(view, section))]
        shown = self._presets(views)
        first = next((each for each in shown["presets"] if each["drawing"] != "text"), None) if shown else None
        plain = plain_table(first, shown["views"][first["view"]]) if shown and first else None
        in_views = [each["cite"]["table"] for each in shown["views"].values()] if shown else []
        in_sections = [table.name for section in found for table in (*section.tables, *section.more)]
        own, manifests = self.runs.manifests["run"], [*map(self._manifest, in_views + in_sections)]
        of_page = [own] if own in manifests or page.name == FRONT else manifests[: len(in_views)] or manifests or [own]
        origins = {run_words(each): each for each in of_page}
        return Page(
            name=page.name, short=page.short, sections=tuple(found), views=shown, plain=plain, run=" ".join(origins),
            noisy=[seen for each in origins.values() for seen in failed_checks(each)], **words,
        )  # fmt: skip

    def _presets(self, views: Sequence[View]) -> dict[str, Any] | None:
        """Return the presets of a page that have rows, with the rows of their views."""
        shown: dict[str, Any] = {}
        presets: list[dict[str, Any]] = []
        for view in views:
            place = f"{view.path.name}: preset"
            for preset in view.presets:
                words = {name: self._text(getattr(preset, name), preset.title, place) for name in ("caption", "text")}
                if preset.drawing == "text":
                    if words["text"]:
                        presets.append({"id": preset.id, "title": preset.title, "drawing": "text", **_html(words)})
                    continue
                if preset.view not in shown and (rows := self._rows_of_view(view, preset.view)):
                    shown[preset.view] = rows
                if preset.view in shown:
                    each = preset_json(
                        preset, shown[preset.view], f"{place} {preset.id}", **_html(words), is_strict=self._is_strict
                    )
                    drawn_column = shown[preset.view]["columns"][preset.metric]
                    if any(drawn_column[row] is not None for row in rows_of(each, shown[preset.view])):
                        presets.append(each)
                        continue
                self._missing.setdefault(preset.title, f"no rows of {preset.view}")
        drawn = [preset for preset in presets if preset["drawing"] != "text"]
        return (
            {"views": shown, "presets": [*drawn, *(each for each in presets if each not in drawn)]} if drawn else None
        )

    def _rows_of_view(self, view: View, name: str) -> dict[str, Any] | None:
        data = next((each for each in view.data if each.name == name), None)
        if data is None or data.table not in self._declared:
            raise InvalidConfig(f"{view.path.name}: no view {name}{nearest(name, [each.name for each in view.data])}")
        table = self.tables[data.table].table
        if table is None:
            return None
        manifest = self._manifest(data.table)
        environment = manifest["environment"]
        version = environment.get("packages", {}).get("kfbench", "")
        cite = {
            "source": f"kfbench {version}",
            "revision": (environment.get("git_revision") or "unknown")[:12],
            "table": data.table,
        }
        return view_json(self.tables[data.table], table, run_words(manifest), cite)

    def _section(self, view: View, section: SectionView) -> PageSection | None:
        place = f"{view.path.name}: section {section.name}"
        tables = self._shown(section.tables, place)
        more = self._shown(section.more, place)
        declared = [*section.tables, *section.more]
        lacks_first = section.tables and section.tables[0] not in [table.name for table in tables]
        if lacks_first or (declared and not tables and not more):
            self._missing.setdefault(section.title, f"no rows of {declared[0]}")
            return None
        texts = [text for each in section.text if (text := self._text(each, section.title, place))]
        if not tables and not texts:
            return None
        runs = {table.name: run_words(self._manifest(table.name)) for table in (*tables, *more)}
        words = {name: each for name, each in runs.items() if each != run_words(self.runs.manifests["run"])}
        if not (has_one := len({*runs.values()}) == 1):
            tables, more = (
                [replace(each, notes=(*each.notes, words[each.name])) if each.name in words else each for each in part]
                for part in (tables, more)
            )
        return PageSection(
            name=section.name,
            title=section.title,
            text=tuple(texts),
            tables=tuple(tables),
            more=tuple(more),
            run=next(iter(words.values()), "") if has_one else "",
            command=self._command(section),
        )

    def _text(self, text: str, title: str, place: str) -> str | None:
        """Return a text with its numbers; None if the run lacks one."""
        try:
            return fill_fields(text, self.tables, place)
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

    def _command(self, section: SectionView) -> str:
        """Return the command that measures the rows of a section again; empty without rows of a run of its own."""
        names = [*section.tables, *section.more]
        arms = [self.tables[name].arms for name in names if self._declared[name][1].source == "run"]
        found = [each for each in arms if len(each) and "grid" in each]
        if not found:
            return ""
        grids, kinds = (",".join(sorted({str(value) for each in found for value in each[column]})) for column in
                        ("grid", "kind"))  # fmt: skip
        return f"kfbench run {self.runs.manifests['run']['profile']} --filter grid={grids} --filter kind={kinds}"

    def _run_rows(self, _: Runs) -> pd.DataFrame:
        """Return one row per run whose rows are in the report, its own first."""
        apart = (self._frame(source).attrs.get("manifest") for source in SOURCES)
        found = {str(each["started"]): each for each in (*self.runs.manifests.values(), *apart) if each}
        rows = [
            {**each, "measured": f"{run_date(each)}, {machine_words(each['environment'])}", "state": noise_state(each)}
            for each in found.values()
        ]
        return pd.DataFrame(rows, columns=["profile", "title", "measured", "state"])

    @cached_property
    def json(self) -> dict[str, Any]:
        """Every table by name: its caption, columns and rows, with numbers of DIGITS significant digits.

        An interval takes three columns: its median, and its ends as "NAME low" and "NAME high". A number that is shown
        as words takes two: the number, and "NAME words".
        """
        self.pages  # noqa: B018 they say what is missing
        return {name: as_json(table) for name in self._declared if (table := self.tables[name].table)}


class _Lazy(Mapping[str, BuiltTable]):
    """Tables by name, each built when it is asked for."""

    def __init__(self, names: Mapping[str, Any], build: Callable[[str], BuiltTable]) -> None:
        self._names, self._build = names, cache(build)

    def __getitem__(self, name: str) -> BuiltTable:
        return self._build(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def _html(words: Mapping[str, str | None]) -> dict[str, str]:
    return {name: prose(text or "") for name, text in words.items()}


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
    """Return a table as plain values: caption, columns, rows. Numbers have DIGITS significant digits."""
    columns: list[str] = []
    parts: list[tuple[str, ...]] = []
    for place, column in enumerate(table.columns):
        cells = [row[place] for row in table.rows]
        has_interval = any(isinstance(cell, Interval) for cell in cells)
        has_words = any(isinstance(cell, Ranked) and cell.rank is not None for cell in cells)
        parts.append(("", " low", " high") if has_interval else ("", " words") if has_words else ("",))
        columns += [f"{column.name} {column.unit}".strip() + part for part in parts[-1]]
    rows = [
        [
            float(f"{value:.{DIGITS}g}") if isinstance(value, float) else value
            for cell, part in zip(row, parts, strict=True)
            for value in _values(cell, len(part))
        ]
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
