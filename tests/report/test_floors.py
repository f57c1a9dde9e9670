"""The metadata floor (a lower bound of metadata bytes) agrees with the rows. No table counts it as a format."""

from pathlib import Path
from typing import Any

import pytest

from kfbench.measure.columns import counts_text
from kfbench.measure.floor import FLOOR
from kfbench.report.data.named import Named
from kfbench.report.data.results import Results
from kfbench.report.topics import floors
from kfbench.report.topics.floors import Gap, gaps
from tests.report.columns import column, results_of, row_of, some
from tests.report.workload_rows import HEADER, OVERHEAD, RECORDS, WORKLOADS, Row, workload_rows

FLOOR_BYTES, HEADER_BYTES = 3, 2  # per record


def floor_rows(batch_of: dict[str, dict[str, int]] = WORKLOADS) -> list[Row]:
    """Return rows of floors for the workloads in tests.report.workload_rows."""
    return [
        {
            "kind": "floor", "cell_id": f"{workload}-{variant}", "grid": "named", "workload": workload,
            "variant": variant, "seed": 1, "codec": "none", "codec_version": "1", "host": "here", "format": FLOOR,
            "status": "ok", "records": RECORDS, "batches": RECORDS // batch,
            "size_bytes": RECORDS * (100 + FLOOR_BYTES), "payload_bytes": RECORDS * 100,
            "overhead_bytes": RECORDS * FLOOR_BYTES,
            "field_bytes": counts_text({"batch_header": RECORDS * HEADER_BYTES, "key_length": RECORDS}),
        }
        for workload, variants in batch_of.items() for variant, batch in variants.items()
    ]  # fmt: skip


def gaps_of(results: Results) -> list[Gap]:
    return gaps(results, Named(results))


@pytest.fixture(scope="module")
def named(tmp_path_factory: pytest.TempPathFactory) -> Results:
    return results_of(tmp_path_factory.mktemp("floors"), [*workload_rows(), *floor_rows()])


def overhead(name: str, batch: int) -> float:
    return OVERHEAD[name] + HEADER[name] / batch


def test_floors_of_a_sweep_stand_next_to_their_cells(rows: list[dict[str, Any]], results: Results) -> None:
    measured = [row for row in rows if row["kind"] == "floor"]
    assert len(measured) == len(results.floors) == 6  # only the block of batch sizes measures floors
    for row in results.floors.itertuples():
        point = next(each for each in measured if each["cell_id"] == row.cell_id)
        assert row.overhead_per_record == point["overhead_bytes"] / point["records"]
        assert (row.workload, row.grid, row.format) == ("grid", "batch", FLOOR)
        assert row.batch_size == point["batch_size"]
        cell = results.uncompressed[results.uncompressed["cell_id"] == row.cell_id]
        above = cell[cell["overhead_per_record"] > row.overhead_per_record]["format"]
        assert set(cell["format"]) - set(above) == ({"v0"} if row.batch_size == 1 else set())  # v0 stores no timestamps


def test_no_frame_takes_a_floor_for_a_format(results: Results) -> None:
    assert (results.all["kind"] == "floor").any()
    assert FLOOR not in results.formats
    frames = results.ok, results.grid_rows, results.grid_bytes, results.uncompressed, results.cpu
    assert not any((frame["format"] == FLOOR).any() for frame in frames)


def test_a_run_from_before_has_none(rows: list[dict[str, Any]], tmp_path: Path) -> None:
    before = results_of(tmp_path, [row for row in rows if row["kind"] != "floor"])
    assert before.floors.empty
    assert {*before.axes, "cell_id", "grid", "workload", "overhead_per_record"} <= set(before.floors.columns)
    assert floors.floors_table(gaps_of(before)) is None


def test_floors_of_several_seeds_are_one(tmp_path: Path) -> None:
    more = [row | {"seed": 2, "overhead_bytes": row["overhead_bytes"] * 2} for row in floor_rows()]
    both = results_of(tmp_path, [*workload_rows(), *floor_rows(), *more]).floors
    assert len(both) == len(floor_rows()) and (both["overhead_per_record"] == 1.5 * FLOOR_BYTES).all()


def test_a_floor_that_failed_is_listed_and_none(named: Results, tmp_path: Path) -> None:
    failed = [row | {"status": "error", "error": "out of ideas", "overhead_bytes": None} for row in floor_rows()[:1]]
    found = results_of(tmp_path, [*workload_rows(), *failed, *floor_rows()[1:]])
    assert len(found.floors) == len(named.floors) - 1
    assert (found.all[found.all["error"] == "out of ideas"]["kind"] == "floor").all()


def test_the_table_says_how_far_formats_are_above(named: Results) -> None:
    table = some(floors.floors_table(gaps_of(named)))
    assert column(table, "workload") == sorted(WORKLOADS)
    for name, batch in (("cluster-metadata", 1), ("service-events", 10), ("forgotten", 1_000)):
        row = row_of(table, workload=name)
        v2, v3 = overhead("v2", batch), overhead("v3", batch)
        assert row["floor (bytes)"] == FLOOR_BYTES and row["records per batch"] == batch
        assert (row["floor: header (bytes)"], row["floor: columns (bytes)"]) == (HEADER_BYTES, 1)
        assert (row["v2 (bytes)"], row["v3 (bytes)"]) == pytest.approx((v2, v3))
        assert row["v2 above the floor (%)"] == pytest.approx(100 * (v2 - FLOOR_BYTES) / v2)
        assert row["saved of it by v3 (%)"] == pytest.approx(100 * (v2 - v3) / (v2 - FLOOR_BYTES))
    assert not any("v3-headers-first" in each.label for each in table.columns)  # these rows have no v3-headers-first
    variants = some(floors.floors_table(gaps_of(named), variants=True))
    assert column(variants, "workload") == ["user-activity/rate-10", "user-activity/rate-10000"]


def test_a_workload_without_a_floor_or_without_v2_is_left_out(tmp_path: Path) -> None:
    rows = [row for row in workload_rows() if row["workload"] != "service-events" or row["format"] != "v2"]
    rows += floor_rows({"cluster-metadata": {"default": 1}, "service-events": {"default": 10}})
    found = some(floors.floors_table(gaps_of(results_of(tmp_path, rows))))
    assert column(found, "workload") == ["cluster-metadata"]
