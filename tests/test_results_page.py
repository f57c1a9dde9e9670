"""The examples of reading a run in docs/results.md work."""

import re
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from kfbench.measure.schema import table
from kfbench.store import Run
from kfbench.sweep.definition.profile import load_profile
from kfbench.sweep.run.task import measure_cell
from tests.runs import MANIFEST, stored

TEXT = (Path(__file__).parents[1] / "docs" / "results.md").read_text(encoding="utf-8")
# Smaller copies of the blocks that the examples use. v0 under zstd is a skipped row, not a null size.
SWEEP = """
title = "for tests"
analysis = "a"
bytes = {records = 200}
cpu = {records = 100, rounds = 3, sample_us = 20}

[[grid]]
name = "batch-key-spread"
title = "sizes"
analysis = "a"
measure = ["bytes", "floor"]
formats = ["v0", "v2", "v3"]
illegal = "skip"
codecs = {none = [], zstd = [3]}
axes = {batch_size = [1, 10, 50], key_bytes = ["null", 16]}

[[grid]]
name = "cpu-batch-key-spread"
title = "times"
analysis = "a"
measure = ["cpu"]
formats = ["v2", "v3"]
seeds = [0, 1]
axes = {batch_size = [1, 10]}
"""


def examples() -> dict[str, str]:
    """Return the Python examples by the first word of the line above them, such as `pandas`."""
    found = re.findall(r"^(\w+)[^\n]*:\n\n```python\n(.*?)```", TEXT, re.DOTALL | re.MULTILINE)
    return dict(found)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("results")
    path = folder / "small.toml"
    path.write_text(SWEEP)
    rows = [row for cell in load_profile(path).cells for row in measure_cell(cell)]
    half = len(rows) // 2
    whole = stored(folder, rows)
    (part,) = (whole.path / "measurements").iterdir()
    first, second = (part.with_name(f"part-0000{n}.parquet") for n in range(2))
    write(first, rows[:half])
    write(second, rows[half:])
    (whole.path / "measurements" / "part-00002.damaged").write_bytes(b"left by a run that was resumed")
    return whole


def write(path: Path, rows: list[dict[str, Any]]) -> None:
    import pyarrow.parquet as pq

    pq.write_table(table(rows), path, compression="zstd")


def read(name: str, run: Run) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Run an example of the page. Return its totals and ratios in a fixed order, with a new index."""
    names: dict[str, Any] = {"run": str(run.path)}
    exec(examples()[name], names)
    totals = names["totals"][["format", "batch_size", "bytes_per_record"]].sort_values(["format", "batch_size"])
    ratios = names["ratios"][["operation", "cell_id", "seed", "ratio"]].sort_values(["operation", "cell_id", "seed"])
    assert (len(totals), len(ratios)) == (3 * 3, 2 * 2 * 2)
    return totals.reset_index(drop=True), ratios.reset_index(drop=True)


def test_there_is_an_example_for_every_reader() -> None:
    assert list(examples()) == ["kfbench", "pandas", "DuckDB"]


def test_kfbench_reads_what_the_page_says(run: Run) -> None:
    names: dict[str, Any] = {"run": run.path}
    exec(examples()["kfbench"], names)
    assert len(names["rows"]) == run.manifest["rows"]


def test_duckdb_reads_what_pandas_reads(run: Run) -> None:
    for found, expected in zip(read("DuckDB", run), read("pandas", run), strict=True):
        pd.testing.assert_frame_equal(found, expected, check_dtype=False)


def test_the_page_names_what_a_manifest_has(run: Run) -> None:
    keys = set(re.findall(r"`(\w+)`", TEXT.partition("| in the manifest |")[2].partition("\n\n")[0]))
    assert set(MANIFEST) | {"schema_version", "state", "started", "finished", "duration_s", "rows"} <= keys
