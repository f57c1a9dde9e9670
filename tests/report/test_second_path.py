"""A second path from the stored rows to every table of the report gives the same numbers: see second_path.py."""

import gzip
import json
import shutil
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from math import isclose
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from kfbench.present.stored_times import load_peers
from kfbench.report.build import Report
from kfbench.report.files import report_of
from kfbench.report.sources import clients
from kfbench.store import open_run
from tests.report.cells import compare
from tests.report.conftest import PUBLISHED
from tests.report.second_path import DATASETS, recomputed, text_of
from tests.report.second_path_times import Numbers

JOINS: Final = True  # the tables have those of the shipped runs
WORDS: Final = {"null": "-1"}  # words of key cells -> stored values
CLOSE: Final = 1e-9
# The rows of two changed numbers: bytes of v2 alone in its batch, and times of v3 in the batches of a workload.
BYTES: Final = {"grid": "codecs", "format": "v2", "batch_size": 1, "value_bytes": 100, "codec": "gzip", "level": 1}
TIMED: Final = {
    "kind": "cpu", "workload": "cloudevents", "batch_size": None, "codec": "none", "operation": "encode",
    "format": "v3", "arm": "measure", "cache": "resident",
}  # fmt: skip
CLIENT: Final = ("mean × fastest", "mean × kfbench", "least × kfbench")  # this size has the least
ENDS: Final = ("", " low", " high")
PEER: Final = ("kafka-go", "decode", "v2", "measure")  # and a sample of its times
Tables = Mapping[str, Mapping[str, Any]]  # as in tables.json


def without_missing(report: Report) -> Tables:
    """Return all tables of a report, as its tables.json has them, without the list of what is missing."""
    return {name: table for name, table in json.loads(json.dumps(report.json)).items() if name != "missing"}


@pytest.fixture(scope="module")
def tables(published: Report) -> Tables:
    return without_missing(published)


@pytest.fixture(scope="module")
def again() -> dict[str, Numbers]:
    return recomputed(PUBLISHED)


def keyed(table: Mapping[str, Any], keys: int) -> Numbers:
    """Return a table as the second path has it: key cells -> column -> cell. keys: the number of key columns."""
    found = {
        tuple(WORDS.get(text_of(cell), text_of(cell)) for cell in row[:keys]): {
            column: cell
            for column, cell in zip(table["columns"][keys:], row[keys:], strict=True)
            if cell not in (None, "")
        }
        for row in table["rows"]
    }
    assert len(found) == len(table["rows"]), "key cells do not tell rows apart"
    return found


def differing(tables: Tables, found: Mapping[str, Numbers]) -> Iterator[tuple[Any, ...]]:
    """Yield each cell that only one of both paths has, or that differs. Text is compared if the second path has it."""
    for name, table in tables.items():
        if name not in found:
            yield name, "no second path"
            continue
        own = found[name]
        shown = keyed(table, len(next(iter(own))))
        yield from ((name, key, "only one path has this row") for key in sorted(own.keys() ^ shown.keys()))
        worded = {column for row in own.values() for column, cell in row.items() if isinstance(cell, str)}
        for key in own.keys() & shown.keys():
            for column in table["columns"]:
                cell, other = shown[key].get(column), own[key].get(column)
                if column not in worded and not is_number(cell) and not is_number(other):
                    continue
                if not equal(cell, other):
                    yield name, key, column, cell, other


def is_number(cell: object) -> bool:
    return isinstance(cell, int | float) and not isinstance(cell, bool)


def equal(cell: float | str | None, other: float | str | None) -> bool:
    if isinstance(cell, int | float) and isinstance(other, int | float):
        return isclose(cell, other, rel_tol=CLOSE, abs_tol=1e-12)
    return cell == other


def numbers_in(table: Mapping[str, Any]) -> int:
    return sum(is_number(cell) for row in table["rows"] for cell in row)


OWN: Final = {("v2",): {"bytes": 1.0, "words": "tie"}, ("v3",): {"bytes": 2.0, "words": "v3"}}
ROWS: Final = [["v2", 1.0, "tie"], ["v3", 2.0, "v3"]]


@pytest.mark.parametrize(
    ("own", "columns", "rows", "wrong"),
    [
        (OWN, ["format", "bytes", "words"], ROWS, 0),
        ({}, ["format", "bytes", "words"], ROWS, 1),
        (OWN, ["format", "size", "words"], ROWS, 2),
        (OWN, ["format", "bytes", "words"], [*ROWS, ["v1", 3.0, "v1"]], 1),
        (OWN, ["format", "bytes", "words"], ROWS[:1], 1),
        (OWN, ["format", "bytes", "words"], [ROWS[0], ["v3", 2.0 + 1e-8, "v3"]], 1),
        (OWN, ["format", "bytes", "words"], [ROWS[0], ["v3", None, "v3"]], 1),
        (OWN, ["format", "bytes", "words"], [ROWS[0], ["v3", 2.0, "v2"]], 1),
    ],
)
def test_no_table_row_or_column_is_left_out(own: Numbers, columns: list[str], rows: list[Any], wrong: int) -> None:
    """The second path lacks a table, a column or a row, has another row, number or word, or the table has a dash."""
    found = {"sizes": own} if own else {}
    assert len(list(differing({"sizes": {"columns": columns, "rows": rows}}, found))) == wrong


@pytest.mark.slow
def test_numbers_are_those_of_the_rows(tables: Tables, again: dict[str, Numbers]) -> None:
    """Key cells count as compared: a row that only one path has is a difference."""
    assert list(differing(tables, again)) == []
    assert not again.keys() - tables.keys()
    assert sum(map(numbers_in, tables.values())) > 5_000


def place_of(rows: pa.Table, values: Mapping[str, Any]) -> int:
    """Return the place of the one row with these values."""
    found = pc.equal(rows["status"], "ok")
    for name, value in values.items():
        found = pc.and_(found, pc.is_null(rows[name]) if value is None else pc.equal(rows[name], value))
    (place,) = pc.indices_nonzero(pc.fill_null(found, False)).to_pylist()
    return int(place)


def with_changed(rows: pa.Table, column: str, place: int, value: Any) -> pa.Table:
    """Return the rows with one other value."""
    values = rows[column].to_pylist()
    values[place] = value
    at = rows.column_names.index(column)
    return rows.set_column(at, rows.field(column), pa.array(values, rows.field(column).type))


def slower(samples: list[int]) -> list[int]:
    """Double the fastest sample, so that the median and both ends of an interval move."""
    place = samples.index(min(samples))
    return [*samples[:place], 2 * samples[place], *samples[place + 1 :]]


@pytest.fixture(scope="module")
def changed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Tables, dict[str, Numbers]]:
    """Change three stored numbers: a size, a sample of an arm, and one in the file of other implementations.

    Return the tables of both paths.
    """
    folder = tmp_path_factory.mktemp("changed") / "report"
    shutil.copytree(PUBLISHED, folder)
    rows = pq.read_table(folder / "measurements.parquet")
    place = place_of(rows, BYTES)
    rows = with_changed(rows, "size_bytes", place, 2 * rows["size_bytes"][place].as_py())
    place = place_of(rows, TIMED)
    rows = with_changed(rows, "cpu_ns", place, slower(rows["cpu_ns"][place].as_py()))
    pq.write_table(rows, folder / "measurements.parquet")
    file = json.loads((DATASETS / "peers" / "cpu.json").read_bytes())
    cell = next(each for each in file["cells"] if (each["batch_size"], each["value_bytes"]) == (100, 1000))
    names = ("peer", "operation", "format", "arm")
    (arm,) = (arm for arm in cell["arms"] if tuple(arm[name] for name in names) == PEER)
    arm["cpu_ns"] = slower(arm["cpu_ns"])
    peers = folder.parent / "cpu.json"
    peers.write_text(json.dumps(file), encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(clients, "load_peers", lambda: load_peers(peers))
        return without_missing(report_of(open_run(folder))), recomputed(folder, peers)


@pytest.mark.slow
def test_changed_rows_change_their_numbers(tables: Tables, changed: tuple[Tables, dict[str, Numbers]]) -> None:
    now, again = changed
    assert list(differing(now, again)) == []
    keys = {name: len(next(iter(own))) for name, own in again.items()}
    before, after = ({name: keyed(each[name], keys[name]) for name in each} for each in (tables, now))
    found = {
        (name, *key, column)
        for name, rows in before.items()
        for key, row in rows.items()
        for column, cell in row.items()
        if after[name][key][column] != cell
    }
    assert found == {
        ("codecs", "1", "gzip 1", "v2"),
        ("grid-cells", "v2", "gzip 1", "1", "100", "bytes per record"),
        *(("codecs-ratio", "1", "gzip 1", name) for name in ("v0", "v1", "v3")),
        *(("workloads-cpu", "cloudevents", f"encode, v3 × v2{end}") for end in ENDS),
        ("workload-cells", "cloudevents", "v3", "none", "encode ns"),
        *(("workload-cells", "cloudevents", "v3", "none", f"encode ratio ×{end}") for end in ENDS),
        *(("verdict", "Record headers", f"v3 encode × v2 CPU{end}") for end in ENDS),
        *(("peers", "decode", "v2", "100", "1000", f"kafka-go v0.4.51 ×{end}") for end in ENDS),
        *(("client-cells", "decode", "100", "1000", "kafka-go", f"× fastest ×{end}") for end in ENDS),
        ("client-cells", "decode", "100", "1000", "kafka-go", "ns per record ns"),
        *(("clients", "decode", "7", "kafka-go", "v0.4.51", column) for column in CLIENT),
    }


def still_shown(table: Mapping[str, Any], moved: Mapping[str, Any]) -> dict[str, Any]:
    """Return what kept.toml keeps of a table, with the values and words that changed."""
    columns = table["columns"]
    places = [place for place, column in enumerate(columns) if column not in moved.get("gone", ())]
    rows = [list(row) for row in table["rows"] if row[0] in moved.get("only", (row[0],))]
    for first, column, old, new in moved.get("changed", ()):
        (row,) = (row for row in rows if row[0] == first)
        assert row[columns.index(column)] == old
        row[columns.index(column)] = new
    words = moved.get("words", {})
    return {
        "columns": [columns[place] for place in places],
        "rows": [[words.get(row[place], row[place]) for place in places] for row in rows],
    }


@pytest.mark.slow
def test_published_cells_stay(tables: Tables) -> None:
    """The pages of the report's first day have five digits of a number."""
    folder = Path(__file__).parent
    old: Tables = json.loads(gzip.decompress((folder / "cells-2026-11-24.20.json.gz").read_bytes()))
    kept = tomllib.loads((folder / "kept.toml").read_text(encoding="utf-8"))
    shown = {name: still_shown(old[name], moved) for name, moved in kept.items()}
    assert compare(shown, tables, kept) == 0
    assert {*old} & {*tables} - {*kept} == {"failures"}
    before = Counter[tuple[str, ...]]()
    for status, kind, _, _, rows, _, reason in old["failures"]["rows"]:
        before[status, kind, reason] += rows
    assert before == {(*row[:3],): row[3] for row in tables["failures"]["rows"]}
