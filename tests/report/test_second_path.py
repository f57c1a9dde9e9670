"""A second path from the stored rows to 65 tables: SQL, with no code of the report, gives the same numbers.

second_path.toml declares the tables. Their cells are compared with the published pages, and with today's pages of the
same rows.
"""

import re
import shutil
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from functools import reduce
from html import unescape
from pathlib import Path
from typing import Any, Final

import duckdb
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from kfbench.report.data.results import Results
from kfbench.report.data.views import Views
from kfbench.report.page import CHAPTERS
from kfbench.report.section import Answer
from kfbench.report.topics.blocks import block_tables
from kfbench.store import open_run

REPORT: Final = Path(__file__).parents[2] / "reports" / "2026-11-24.20"
TABLES: Final = 65
NUMBERS: Final = 4468
CLOSE: Final = 6e-5  # pages have five digits
NOT_IN_SQL: Final = {"floor", "records per batch"}  # columns of numbers that are not compared
SECTIONS: Final = {
    "workloads", "batch-size", "timestamp-spread", "key-size", "value-size", "headers", "nulls", "offset-holes",
    "base-timestamp", "compressed", "cpu-batch-size", "cpu-value-size", "cpu-key-size", "cpu-timestamp-spread",
    "columnar",
}  # fmt: skip
KEYS: Final[Mapping[Any, float]] = {"null": -1.0, "no": 0.0, "yes": 1.0}  # words of a page -> stored values
Cells = dict[tuple[Any, ...], float]

ROWS: Final = """
CREATE TEMP TABLE measured AS
SELECT *, codec || coalesce(' ' || level, '') AS with_codec,
    if(coalesce(variant, 'default') = 'default', workload, workload || '/' || variant) AS label,
    list_filter([
        if(batch_size <> 100, 'batch_size', ''), if(key_bytes <> 16, 'key_bytes', ''),
        if(value_bytes <> 100, 'value_bytes', ''), if(timestamp_spread_ms <> 0, 'timestamp_spread_ms', ''),
        if(headers <> 0, 'headers', ''), if(payload <> 'template', 'payload', ''),
        if(null_share <> 0, 'null_share', ''), if(header_key_bytes <> 12, 'header_key_bytes', ''),
        if(header_value_bytes <> 20, 'header_value_bytes', ''), if(offset_stride <> 1, 'offset_stride', ''),
        if(base_timestamp_ms <> 1767225600000, 'base_timestamp_ms', ''), if(producer, 'producer', ''),
        if(append_time, 'append_time', '')
    ], lambda axis: axis <> '' AND workload = 'grid') AS axes_moved
FROM read_parquet(?) WHERE status = 'ok' AND arm IS DISTINCT FROM 'aa'
"""
# Blocks of the sweep have copies of a row. Seeds are added up: each round of a seed counts once.
TABLE: Final = """
WITH once AS (
    SELECT DISTINCT ON (cell_id, seed, with_codec, operation, format) *
    FROM measured WHERE {where} AND list_has_all([{axes}], axes_moved)
), sizes AS (
    SELECT cell_id, codec, with_codec, operation, format, {rows},
        sum(size_bytes) / sum(records) AS size, sum(overhead_bytes) / sum(records) AS overhead
    FROM once GROUP BY ALL
), rounds AS (
    SELECT cell_id, codec, with_codec, operation, format, {rows}, seed, generate_subscripts(cpu_ns, 1) AS round,
        unnest(cpu_ns) / inner_loops / records AS ns
    FROM once
), arms AS (
    SELECT *, max(size) FILTER (format = 'v2') OVER (PARTITION BY cell_id, with_codec) AS v2_size,
        max(size) FILTER (codec = 'none') OVER (PARTITION BY cell_id, format) AS plain_size
    FROM sizes
), timed AS (
    SELECT *, max(ns) FILTER (format = 'v2') OVER (PARTITION BY cell_id, with_codec, operation, seed, round) AS v2_ns
    FROM rounds
)
SELECT {columns}, median({value}), count(DISTINCT cell_id), {rows} FROM {source} GROUP BY ALL
"""


def declared() -> Iterator[dict[str, Any]]:
    """Yield the declaration of each table."""
    for table in tomllib.loads(Path(__file__).with_name("second_path.toml").read_text())["table"]:
        for values in table.pop("each", [{}]):
            yield {key: text.format(**values) for key, text in table.items()}


DECLARED: Final = {table["name"]: table for table in declared()}


def recomputed(parquet: Path) -> dict[str, Cells]:
    """Compute the numbers of each table by SQL: a map of (*key cells, column) to numbers."""
    database = duckdb.connect()
    database.execute(ROWS, [str(parquet)])
    found: dict[str, Cells] = {}
    for name, table in DECLARED.items():
        axes = ", ".join(f"'{axis}'" for axis in table["rows"].split(", "))
        source = "timed" if "kind = 'cpu'" in table["where"] else "arms"
        sql = TABLE.format(**{"columns": "format", **table}, axes=axes, source=source)
        cells = found[name] = {}
        for column, value, of_cells, *key in database.execute(sql).fetchall():
            assert of_cells == 1, (name, key)
            if value is not None:
                cells[*(each if isinstance(each, str) else float(each) for each in key), column] = value
    return found


def shown(pages: Iterable[str]) -> dict[str, Cells]:
    """Read the numbers of each declared table from pages: a map of (*key cells, column) to numbers."""
    found: dict[str, Cells] = {}
    table = r'<table id="t-([^"]+)"><caption[^>]*>.*?</caption><thead><tr>(.*?)</tr></thead><tbody>(.*?)</tbody>'
    for name, head, body in (match.groups() for text in pages for match in re.finditer(table, text, re.DOTALL)):
        if name not in DECLARED:
            continue
        columns = re.findall(r"<th[^>]*>([^<]*)(?: <span>(.*?)</span>)?</th>", head)
        keys, unit = DECLARED[name]["rows"].count(",") + 1, DECLARED[name].get("unit")
        cells = found[name] = {}
        for row in re.findall(r"<tr[^>]*>(.*?)</tr>", body, re.DOTALL):
            values = [cell(*match) for match in re.findall(r"<t[hd]([^>]*)>(.*?)</t[hd]>", row)]
            for (column, of_column), value in list(zip(columns, values, strict=True))[keys:]:
                if isinstance(value, float) and column not in NOT_IN_SQL and unit in (None, of_column):
                    cells[*(KEYS.get(key, key) for key in values[:keys]), column] = value
    return found


def cell(attributes: str, text: str) -> float | str:
    number = re.search(r'data-v="([^"]+)"', attributes)
    return float(number[1]) if number else unescape(text)


def todays(folder: Path) -> dict[str, Cells]:
    """Return the numbers of the tables that today's code makes from the rows of a run."""
    run = open_run(folder)
    results = Results(run.measurements())
    views = Views(results)
    answers = [entry.answer(views) for chapter in CHAPTERS for entry in chapter.entries if entry.name in SECTIONS]
    tables = [table for answer in answers if isinstance(answer, Answer) for table in (*answer.tables, *answer.more)]
    for grid in (each["name"] for each in run.manifest["grids"]):
        if any(name.startswith(f"{grid}-bytes") for name in DECLARED):
            tables += [each.table for each in block_tables(results, grid)]
    return shown(table.to_html() for table in tables if table is not None)


def differing(numbers: Mapping[str, Cells], others: Mapping[str, Cells]) -> dict[str, list[tuple[Any, ...]]]:
    """Return the keys of the cells whose numbers differ or are missing in `others`, by table."""
    found = {
        name: [key for key, value in cells.items() if key not in of or abs(of[key] - value) > CLOSE * abs(value) + 1e-9]
        for name, cells in numbers.items()
        for of in [others.get(name, {})]
    }
    return {name: keys for name, keys in found.items() if keys}


@pytest.fixture(scope="module")
def published() -> dict[str, Cells]:
    return shown(path.read_text(encoding="utf-8") for path in sorted(REPORT.glob("*.html")))


@pytest.fixture(scope="module")
def from_rows() -> dict[str, Cells]:
    return recomputed(REPORT / "measurements.parquet")


def test_published_numbers_are_those_of_the_rows(published: dict[str, Cells], from_rows: dict[str, Cells]) -> None:
    assert (len(published), sum(map(len, published.values()))) == (TABLES, NUMBERS)
    assert differing(published, from_rows) == {}


@pytest.mark.slow
@pytest.mark.usefixtures("drawn")
def test_todays_numbers_are_those_of_the_rows(from_rows: dict[str, Cells]) -> None:
    today = todays(REPORT)
    assert (len(today), sum(map(len, today.values()))) == (TABLES, NUMBERS)
    assert differing(today, from_rows) == {}


@pytest.mark.slow
@pytest.mark.usefixtures("drawn")
def test_a_changed_size_changes_published_numbers(published: dict[str, Cells], tmp_path: Path) -> None:
    """One stored size_bytes is doubled: v2 under gzip 1 at one record per batch."""
    for name in ("manifest.json", "environment.json"):
        shutil.copy(REPORT / name, tmp_path)
    rows = pq.read_table(REPORT / "measurements.parquet")
    wanted = {"kind": "bytes", "grid": "codecs", "batch_size": 1, "value_bytes": 100, "codec": "gzip", "level": 1}
    parts = (pc.equal(rows[name], value) for name, value in {**wanted, "format": "v2"}.items())
    is_changed = pc.fill_null(reduce(pc.and_, parts), False)
    assert pc.sum(is_changed).as_py() == 1
    sizes = pc.if_else(is_changed, pc.multiply(rows["size_bytes"], 2), rows["size_bytes"])
    rows = rows.set_column(rows.column_names.index("size_bytes"), rows.field("size_bytes"), sizes)
    pq.write_table(rows, tmp_path / "measurements.parquet")
    today = todays(tmp_path)
    moved = {(1.0, "gzip 1", name) for name in ("v0", "v1", "v3")}
    assert {name: set(keys) for name, keys in differing(published, today).items()} == {
        "codecs": {(1.0, "gzip 1", "v2")},
        "codecs-ratio": moved,
        "codecs-plain": {(1.0, "gzip 1", "v2")},
    }
    assert differing(today, recomputed(tmp_path / "measurements.parquet")) == {}
