"""Rows of several seeds are joined to one row per arm (timed call): summed bytes and all rounds.

All formats use the same seeds.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from kfbench.report.data.arms import first_of_blocks, one_per_arm
from kfbench.report.data.paths import Paths
from kfbench.report.data.results import Results
from kfbench.report.page import page
from kfbench.report.section import Block
from kfbench.report.topics.broker_paths import path_table
from kfbench.report.topics.prefix import prefix_times
from tests.report.broker_rows import broker_rows
from tests.report.columns import results_of, row_of
from tests.runs import stored

Row = dict[str, Any]
OTHER = 7  # the second seed; tests/runs.py uses others


def again(rows: list[Row]) -> list[Row]:
    return [*map(dict, rows), *(row | {"seed": OTHER} for row in rows)]


def by_arm(results: Results, kind: str) -> dict[tuple[str, str, str], Any]:
    rows = {"bytes": results.grid_bytes, "cpu": results.cpu}[kind]
    found = {(row.cell_id, row.format, f"{row.operation} {row.arm} {row.codec}"): row for row in rows.itertuples()}
    assert len(found) == len(rows)
    return found


def test_two_seeds_of_the_same_measurements_are_twice_the_bytes_and_the_same_figures(
    rows: list[Row], results: Results, tmp_path: Path
) -> None:
    both = results_of(tmp_path, again(rows))
    one, two = by_arm(results, "bytes"), by_arm(both, "bytes")
    assert one.keys() == two.keys() and len(one) > 20
    for key, row in two.items():
        assert (row.size_bytes, row.records) == (2 * one[key].size_bytes, 2 * one[key].records)
        assert row.size_per_record == one[key].size_per_record
        if isinstance(row.field_bytes, str):
            fields = json.loads(one[key].field_bytes)
            assert json.loads(row.field_bytes) == {name: 2 * size for name, size in fields.items()}
    once_timed, timed = by_arm(results, "cpu"), by_arm(both, "cpu")
    assert once_timed.keys() == timed.keys() and len(timed) > 20
    for key, row in timed.items():
        assert len(row.cpu_ns) == 2 * len(once_timed[key].cpu_ns)
        assert row.ns_per_record == pytest.approx(once_timed[key].ns_per_record)
    ratios, before = (each.with_ratios(each.cpu)["ratio"] for each in (both, results))
    assert [ratio.median for ratio in ratios] == pytest.approx([ratio.median for ratio in before])
    assert len(prefix_times(both)) == len(prefix_times(results)) > 0


def test_rounds_of_a_seed_are_paired_with_those_of_the_same_seed(rows: list[Row], tmp_path: Path) -> None:
    """Rounds are paired within a seed. If everything is 100 times slower under the second seed, no ratio changes."""
    slow = [row | {"cpu_ns": [100 * ns for ns in row["cpu_ns"]]} if row.get("cpu_ns") else row for row in rows]
    other = [row | {"seed": OTHER} for row in slow]
    one, two = (results_of(tmp_path / name, each) for name, each in (("one", again(rows)), ("two", [*rows, *other])))
    ratios, before = (each.with_ratios(each.cpu)["ratio"] for each in (two, one))
    assert [ratio.median for ratio in ratios] == pytest.approx([ratio.median for ratio in before])


def test_a_seed_that_a_format_lacks_counts_for_none(rows: list[Row], tmp_path: Path) -> None:
    two = again(rows)
    broken = next(row for row in two if row["seed"] == OTHER and row["kind"] == "bytes" and row["format"] == "v3")
    broken |= {"status": "error", "error": "it broke", "size_bytes": None}
    found = by_arm(results_of(tmp_path, two), "bytes")
    sizes = {key[1]: row for key, row in found.items() if key[0] == broken["cell_id"] and row.codec == "none"}
    assert {row.records for row in sizes.values()} == {broken["records"]} and "v3" in sizes
    others = {row.records for key, row in found.items() if key[0] != broken["cell_id"]}
    assert min(others) > broken["records"]


def test_a_format_that_failed_in_each_seed_leaves_the_others_all_seeds(rows: list[Row], tmp_path: Path) -> None:
    two = again(rows)
    first = next(row for row in two if row["kind"] == "bytes" and row["format"] == "v3")
    for row in two:
        if (row["kind"], row["cell_id"], row["format"]) == ("bytes", first["cell_id"], "v3"):
            row |= {"status": "error", "error": "it broke", "size_bytes": None}
    found = by_arm(results_of(tmp_path, two), "bytes")
    here = {key[1]: row.records for key, row in found.items() if key[0] == first["cell_id"] and row.codec == "none"}
    assert "v3" not in here and set(here.values()) == {2 * first["records"]}


def test_a_block_has_all_its_seeds_though_another_has_one(rows: list[Row], tmp_path: Path) -> None:
    """One block has two seeds of a cell.

    Another block has one seed and more formats. Only the table of both uses just the common seed.
    """
    batch = [row for row in rows if (row["kind"], row["grid"]) == ("bytes", "batch")]
    block = [row for row in batch if row["format"] in ("v2", "v3")]
    results = results_of(tmp_path, [*again(block), *(row | {"grid": "more"} for row in batch)])
    shown = results.grid_rows
    assert shown.loc[shown["grid"] == "batch", "records"].min() == 2 * min(row["records"] for row in batch)
    assert results.grid_bytes["records"].max() == max(row["records"] for row in batch)


def test_a_number_is_not_hidden_behind_the_error_of_another_block(rows: list[Row], tmp_path: Path) -> None:
    (row,) = [
        row
        for row in rows
        if (row["kind"], row["grid"], row["batch_size"], row["format"]) == ("bytes", "batch", 5, "v3")
    ]
    error = row | {"grid": "a-block-before", "status": "error", "error": "it broke", "size_bytes": None}
    frame = stored(tmp_path, [error, row]).measurements()
    assert first_of_blocks(frame)["status"].tolist() == ["ok"]
    both = one_per_arm(frame)
    assert both["size_bytes"].tolist() == [row["size_bytes"]]


@pytest.mark.usefixtures("drawn")
def test_every_section_of_a_report_can_be_of_several_seeds(rows: list[Row], results: Results, tmp_path: Path) -> None:
    blocks = [Block(name=name, title=name, analysis="a") for name in dict.fromkeys(row["grid"] for row in rows)]
    one, two = (page(each, blocks).sections for each in (results, results_of(tmp_path, again(rows))))
    assert [each.name for each in one] == [each.name for each in two]
    tables = [{table.name: table for section in each for table in section.tables} for each in (one, two)]
    assert tables[0].keys() == tables[1].keys()
    assert tables[0]["overhead"] == tables[1]["overhead"]


def test_paths_of_several_seeds_are_one_row_each(tmp_path: Path) -> None:
    one, two = (Paths(results_of(tmp_path / str(len(each)), each)) for each in (broker_rows(), again(broker_rows())))
    assert [arm.status for arm in one.arms] == [arm.status for arm in two.arms]
    before, after = (path_table(each, "append", shown=True) for each in (one, two))
    assert before is not None and after is not None
    for codec in ("none", "gzip 6", "zstd 3"):
        row, other = (row_of(each, format="v3", codec=codec) for each in (before, after))
        assert row["batches"] == other["batches"] and row["out (× bytes in)"] == other["out (× bytes in)"]
        assert row["CPU (ns per record)"] == pytest.approx(other["CPU (ns per record)"])
    memory = {(arm.cell_id, arm.codec, arm.format): arm.extra_bytes for arm in one.of("append")}
    for arm in two.of("append"):
        assert arm.extra_bytes == pytest.approx(memory[arm.cell_id, arm.codec, arm.format], nan_ok=True)
