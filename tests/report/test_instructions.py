"""The section about instructions: its numbers are those of the rows, and it names the cells that disagree with time."""

import re
from pathlib import Path
from typing import Any, Final

import duckdb
import pytest
from scipy.stats import spearmanr

from kfbench.report.data.joined import FOLDER, INSTRUCTIONS, joined_runs
from kfbench.report.data.results import Results
from kfbench.report.data.views import Views
from kfbench.report.section import Answer
from kfbench.report.topics.instructions import instructions_answer
from kfbench.shipped import DATASETS
from kfbench.store import Run
from tests.report.columns import some
from tests.runs import stored

JOINS: Final = True  # runs of other profiles, see tests/runs.py
Row = dict[str, Any]
FORMATS: Final = ("v0", "v1", "v2", "v3")
COUNTS: Final = {"v0": 90, "v1": 110, "v2": 200, "v3": 240}  # instructions per record, ten of them Python's
NS: Final = {  # v3 takes more instructions than v2 and less time, v0 the reverse where it decodes
    "encode": {"v0": 100, "v1": 200, "v2": 300, "v3": 250},
    "decode": {"v0": 400, "v1": 150, "v2": 300, "v3": 200},
}
MISSES: Final = {"v0": 0, "v1": 0, "v2": 10, "v3": 0}


@pytest.fixture
def timed(rows: list[Row]) -> list[Row]:
    """Rows of CPU time on one grid with known times per record, the same in each round."""
    return [
        row | {"cpu_ns": [NS[row["operation"]][row["format"]] * row["records"] * row["inner_loops"]] * 7}
        for row in rows
        if row["kind"] == "cpu" and row["grid"] == "batch" and row["format"] in FORMATS
    ]


def counted(timed: list[Row]) -> list[Row]:
    """Return a row of counts beside each row of CPU time. The first call, with half of the batches, is not shown."""
    times = ("cpu_ns", "wall_ns", "inner_loops", "warm_up_calls")
    sizes = [100, 200]
    return [
        {name: value for name, value in row.items() if name not in times}
        | {"kind": INSTRUCTIONS, "grid": "counted", "counted_records": sizes, "python_instructions": [500, 2000]}
        | {
            "kernel_instructions": [10_000, (COUNTS[row["format"]] - 10) * sizes[1]],
            "library_instructions": [0, 0],
        }
        | {
            "l1_misses": [MISSES[row["format"]] * size for size in sizes],
            "last_level_misses": [0, 0],
            "library_instructions": [0, 0],
        }
        for row in timed
        if row["arm"] == "measure"
    ]


@pytest.fixture
def answer(timed: list[Row], tmp_path: Path) -> Answer:
    run = stored(tmp_path, [*timed, *counted(timed)])
    found = instructions_answer(Views(Results(run.measurements()), None, joined_runs(run)))
    assert isinstance(found, Answer)
    return found


def test_instructions_stand_beside_time(answer: Answer) -> None:
    table, _ = map(some, answer.tables)
    assert [row[:2] for row in table.rows] == [
        (operation, size) for operation in NS for size in ("1", "2", "3", "5", "10", "100")
    ]
    for operation, _, *numbers in table.rows:
        assert numbers == pytest.approx([n for name in FORMATS for n in (COUNTS[name], NS[str(operation)][name])])


def test_cells_that_disagree_have_a_reason(answer: Answer) -> None:
    _, table = map(some, answer.tables)
    found = {(row[0], row[1]): row[4:] for row in table.rows}
    assert set(found) == {("v0", "decode"), ("v3", "encode"), ("v3", "decode")} and len(table.rows) == 3 * 6
    counts, estimate, time, reason = found["v3", "encode"]
    assert (counts, estimate, time.median) == pytest.approx((240 / 200, 240 / 300, 250 / 300))  # type: ignore[union-attr]
    assert "caches" in str(reason) and "caches" not in str(found["v0", "decode"][-1])


def test_the_rank_correlation_is_scipys(answer: Answer) -> None:
    pairs = [
        (COUNTS[name] / COUNTS["v2"], times[name] / times["v2"]) for times in NS.values() for name in ("v0", "v1", "v3")
    ]
    places, rank, differing = map(float, re.findall(r"(?<!v)\d+(?:\.\d+)?", answer.means))
    assert (places, differing) == (6 * len(pairs), 3 * 6)
    assert rank == pytest.approx(spearmanr(*zip(*pairs * 6, strict=True)).statistic, abs=0.005)


def test_the_shipped_numbers_are_those_that_sql_finds(run: Run) -> None:
    """A run without counts joins the shipped ones."""
    answer = instructions_answer(Views(Results(run.measurements()), None, joined_runs(run)))
    assert isinstance(answer, Answer)
    query = """
        SELECT
            (kernel_instructions[2] + library_instructions[2] + python_instructions[2]) / counted_records[2], timed.ns
        FROM read_parquet($file) counted JOIN (
            SELECT cell_id, operation, format, records, list_median(cpu_ns) / inner_loops / records AS ns
            FROM read_parquet($file) WHERE kind = 'cpu' AND codec = 'none' AND arm = 'measure'
        ) timed USING (cell_id, operation, format, records)
        WHERE kind = 'instructions' AND codec = 'none' AND list_contains($formats, format)
        ORDER BY operation DESC, batch_size, format"""
    given = {"file": str(DATASETS / FOLDER / INSTRUCTIONS / "measurements.parquet"), "formats": FORMATS}
    found = duckdb.execute(query, given).fetchall()
    shown = [number for row in some(answer.tables[0]).rows for number in row[2:]]
    assert shown == pytest.approx([number for pair in found for number in pair]) and len(shown) == 2 * 3 * 4 * 2
