"""Each figure links to tables that have every number it draws: one table, or one per panel."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd

from kfbench.formats import BASE_FORMAT
from kfbench.report.data.named import Named
from kfbench.report.data.results import Results
from kfbench.report.page import page
from kfbench.report.section import Figure
from kfbench.report.topics import workloads
from kfbench.store import Run
from kfbench.tables import Interval, Table, number
from tests.report.workload_rows import workload_rows
from tests.runs import stored

DRAWN = {
    "overhead", "break-even", "timestamp-spread", "key-size", "fields", "compressed", "map-none", "pareto",
    "cpu-batch-size", "cpu-value-size", "workloads", "broker", "fleet", "claims-kip98", "aa-spread",
    "overview",
}  # fmt: skip


def panels_of(figure: Figure, arguments: tuple[Any, ...]) -> Iterator[tuple[str, set[float | str]]]:
    """Yield each linked table's name and the values that are drawn from it."""
    frames = [each for each in arguments if isinstance(each, pd.DataFrame | pd.Series)]
    for panel, frame in (arguments[0] if isinstance(arguments[0], dict) else {}).items():
        yield figure.numbers if isinstance(figure.numbers, str) else figure.numbers[panel], values(frame)
    for frame in frames:
        assert isinstance(figure.numbers, str)
        yield figure.numbers, values(frame)


def values(frame: pd.DataFrame | pd.Series) -> set[float | str]:
    """Return the numbers and words that are drawn.

    v2 divided by itself is always 1 and is left out. The cells of a map have words, which are returned.
    """
    shown = pd.DataFrame(frame)
    if "saving" in shown:
        shown = shown[["words"]]
    if BASE_FORMAT in shown and (shown[BASE_FORMAT] == 1).all():
        shown = shown.drop(columns=BASE_FORMAT)
    cells = [each for column in shown.to_dict("list").values() for each in column]
    cells = [each for each in cells if each == each and each != "" and not isinstance(each, bool)]
    return {each if isinstance(each, str) else round(float(each), 9) for each in cells}


def cells(table: Table) -> set[float | str]:
    found: set[float | str] = {column.name for column in table.columns}
    for cell in (cell for row in table.rows for cell in row):
        if isinstance(cell, Interval):
            found |= {round(each, 9) for each in (cell.median, cell.low, cell.high)}
        elif isinstance(cell, str):
            found.add(str(cell))
        elif cell is not None and not isinstance(cell, bool):
            found |= {round(float(cell), 9), number(cell)}  # an axis level is drawn as a word
    return found


def test_what_a_figure_draws_stands_in_the_table_that_it_links(
    runs: list[Run], drawn: dict[str, tuple[Any, ...]]
) -> None:
    seen = set()
    for run in runs:
        found = page(Results(run.measurements()), [])
        tables = {table.name: table for each in found.sections for table in (*each.tables, *each.more)}
        for figure in (*found.figures, *(figure for each in found.sections for figure in each.figures)):
            seen.add(figure.name)
            for name, wanted in panels_of(figure, drawn[figure.svg]):
                assert wanted and wanted <= cells(tables[name]), (figure.name, name, wanted - cells(tables[name]))
    assert seen == DRAWN


def test_a_codec_that_only_variants_have_has_no_panel_and_no_link(tmp_path: Path) -> None:
    rows = [row for row in workload_rows() if row["codec"] != "zstd" or row["variant"] != "default"]
    named = Named(Results(stored(tmp_path, rows).measurements()))
    assert named.shown_codecs == ["none", "zstd 3"]
    figure = workloads.bytes_figure(named)
    assert isinstance(figure, Figure) and figure.numbers == {"no codec": "workloads-none"}
