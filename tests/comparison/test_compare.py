"""`compare` finds regressions between two runs, lists other differences, and refuses runs that do not match."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from kfbench.comparison.agreement import agreement
from kfbench.comparison.compare import compare
from kfbench.comparison.text import comparison_text
from kfbench.errors import RunError
from kfbench.measure.environment import host
from kfbench.measure.schema import table
from kfbench.store import create_run
from tests.comparison.conftest import ONE, V3, Against, Edit, Row, each, of, times, without
from tests.runs import MANIFEST, stored


def test_a_run_is_no_regression_of_itself(against: Against, rows: list[Row]) -> None:
    found = against()
    assert not found.is_regression and found.rows == len(rows)
    assert json.loads(json.dumps(found.to_dict()))["is_regression"] is False


@pytest.mark.parametrize("by", [1, -1])
def test_one_byte_is_a_regression_in_either_direction(against: Against, by: int) -> None:
    found = against(each(ONE, size_bytes=lambda size: size + by))
    (change,) = found.changed
    assert isinstance(change.before, int) and isinstance(change.after, int)
    assert (change.column, change.after - change.before, change.row.format) == ("size_bytes", by, "v3")
    assert found.is_regression
    (entry,) = found.to_dict()["changed"]
    assert (entry["batch_size"], entry["before"], entry["after"]) == (5, change.before, change.after)


def test_a_list_of_numbers_is_exact(against: Against) -> None:
    first = (each(ONE, counted_records=[50, 99]),)
    assert not against(*first, first=first).changed
    (change,) = against(each(ONE, counted_records=[50, 100]), first=first).changed
    assert (change.column, change.before, change.after) == ("counted_records", [50, 99], [50, 100])


def test_a_floor_is_as_exact_as_a_byte(against: Against, rows: list[Row]) -> None:
    one = of(kind="floor", batch_size=5)
    found = against(each(one, overhead_bytes=lambda size: size + 1))
    (change,) = found.changed
    assert found.is_regression and (change.column, change.row.format) == ("overhead_bytes", "floor")
    older = against(first=(without(of(kind="floor")),))  # a version that stored no floors
    assert not older.is_regression and {each.formats for each in older.lone[1]} == {("floor",)}
    assert against(without(one)).is_regression


def test_a_number_that_becomes_an_error_is_a_regression_and_the_reverse_is_none(against: Against) -> None:
    broken = each(ONE, status="error", error="gone", size_bytes=None)
    found = against(broken)
    assert found.is_regression and {each.column for each in found.changed} == {"status", "size_bytes"}
    found = against(first=(broken,))
    assert not found.is_regression and [row.format for row in found.mended] == ["v3"]


def test_an_error_that_stands_for_all_operations_of_a_cell_is_a_regression(against: Against, rows: list[Row]) -> None:
    prefix = of(kind="prefix", codec="gzip")
    row = next(row for row in rows if prefix(row))
    gone = dict.fromkeys(["operation", "arm", "cpu_ns", "wall_ns", "inner_loops", "records"])
    found = against(
        without(prefix), more=(row | gone | {"status": "error", "error": "it failed"},), profile_text="else"
    )
    assert [(each.column, each.before, each.after) for each in found.changed] == [("status", "ok", "error")]
    assert found.is_regression and not found.missing


def test_a_skipped_operation_that_only_the_second_run_asks_for_is_no_regression(
    against: Against, rows: list[Row]
) -> None:
    row = next(row for row in rows if row["kind"] == "cpu" and row["status"] == "ok")
    gone = dict.fromkeys(["cpu_ns", "wall_ns", "inner_loops"])
    skipped = row | gone | {"operation": "seek-time", "status": "skipped", "error": "no timestamps"}
    assert not against(more=(skipped,), profile_text="else").is_regression


@pytest.mark.parametrize(
    ("rows_of", "changes"),
    [
        (of(status="skipped"), {"error": "in other words"}),
        (ONE, {"codec_version": "zlib 9"}),
        (ONE, {"extra_bytes": lambda size: (size or 0) + 57}),
        (V3, {"cpu_ns": times(1.02)}),
        (of(kind="cpu", arm="aa"), {"cpu_ns": times(1.5)}),
    ],
)
def test_columns_and_rows_that_are_not_judged(against: Against, rows_of: Callable[[Row], bool], changes: Row) -> None:
    assert not against(each(rows_of, **changes)).is_regression


def test_other_libraries_are_named(against: Against) -> None:
    environment = MANIFEST["environment"]
    other = environment | {"packages": environment["packages"] | {"numpy": "9.9"}, "load_1_min": 77.0}
    found = against(environment=other)
    assert [fact.name for fact in found.facts] == ["packages.numpy"]


def test_slower_and_faster_are_distinguished_from_the_same(against: Against) -> None:
    slower = against(each(V3, cpu_ns=times(1.5)))
    assert slower.is_regression and not slower.changed
    assert {(each.row.format, each.row.operation) for each in slower.slower_cells} == {("v3", "encode")}
    assert slower.slower_cells[0].change.median == pytest.approx(1.5, rel=1e-3)
    assert [(group.format, group.operation) for group in slower.slower_groups] == [("v3", "encode")]
    faster = against(each(V3, cpu_ns=times(0.6)))
    assert not faster.is_regression
    assert {group.verdict for group in faster.cpu.judged if (group.format, group.operation) == ("v3", "encode")} == {
        "faster"
    }


def test_one_slow_cell_is_shown_and_no_regression_of_its_format(against: Against) -> None:
    one = lambda row: V3(row) and row["batch_size"] == 100  # noqa: E731
    found = against(each(one, cpu_ns=times(2.0)))
    assert not found.is_regression and [each.row.batch_size for each in found.slower_cells] == [100]


def verdict_of_forty(quiet: list[Row], factor: Callable[[Row, int], float]) -> str:
    """Compare 40 copies of one cell. Return the verdict on v3's encode. factor: growth of the CPU time of copy i."""
    cell = next(row["cell_id"] for row in quiet if V3(row))
    arms = [row for row in quiet if (row["cell_id"], row.get("operation")) == (cell, "encode")]
    before = [row | {"cell_id": f"{i}"} for i in range(40) for row in arms]
    after = [row | {"cpu_ns": times(factor(row, int(row["cell_id"])))(row["cpu_ns"])} for row in before]
    found = agreement(table(before), table(after), 0.03)
    (group,) = (group for group in found.judged if group.format == "v3")
    return group.verdict


@pytest.mark.parametrize(
    ("slower", "faster", "verdict"), [(15, 0, "slower"), (0, 15, "faster"), (8, 7, "within"), (2, 0, "within")]
)
def test_many_cells_in_one_direction_are_a_verdict_though_the_median_stays(
    quiet: list[Row], slower: int, faster: int, verdict: str
) -> None:
    def factor(row: Row, i: int) -> float:
        return 1.0 if not V3(row) else 1.3 if i < slower else 0.7 if i < slower + faster else 1.0

    assert verdict_of_forty(quiet, factor) == verdict


@pytest.mark.parametrize(("of_aa", "verdict"), [(1.0, "slower"), (1.2, "slower"), (1.4, "unclear")])
def test_cells_that_moved_no_further_than_aa_arms_do_are_not_counted(
    quiet: list[Row], of_aa: float, verdict: str
) -> None:
    def factor(row: Row, i: int) -> float:
        return 1.3 if V3(row) and i < 15 else of_aa ** (-1) ** i if row["arm"] == "aa" and i % 4 < 2 else 1.0

    assert verdict_of_forty(quiet, factor) == verdict


def test_times_of_two_hosts_are_not_compared_but_sizes_are(against: Against) -> None:
    moved = each(lambda row: True, host="host-elsewhere")
    found = against(moved, each(V3, cpu_ns=times(3.0)))
    assert not found.is_regression and not found.cpu.groups
    entry = found.to_dict()["cpu"]
    assert entry["left_out"] == "those of A and of B are of two hosts" and min(entry["arms"]) > 0
    assert against(moved, each(ONE, size_bytes=1)).is_regression


def test_ratios_to_v2_of_two_hosts_stand_side_by_side_without_a_verdict(against: Against) -> None:
    moved = each(lambda row: True, host="host-elsewhere")
    slower = each(lambda row: bool(row.get("cpu_ns")), cpu_ns=times(5.0))
    columnar = each(of(kind="cpu", format="v0"), format="columnar")  # pretend that the run has it
    here = against(columnar, first=(columnar,))
    found = against(columnar, moved, slower, each(V3, cpu_ns=times(3.0)), first=(columnar,))
    assert not found.is_regression and not here.cpu.host_ratios
    ratios = {(each.kind, each.operation, each.format): each for each in found.cpu.host_ratios}
    assert {name for _, _, name in ratios} == {"v3", "columnar"}
    both = {("cpu", operation, name) for operation in ("encode", "decode") for name in ("v3", "columnar")}
    assert both <= ratios.keys()
    for group in here.cpu.judged:
        if each_of := ratios.get((group.kind, group.operation, group.format)):
            assert each_of.cells == len(group.cells)
            assert each_of.before == pytest.approx(group.median_before, rel=1e-6)
            factor = 3.0 if (group.kind, group.operation, group.format) == ("cpu", "encode", "v3") else 1.0
            assert each_of.after == pytest.approx(factor * each_of.before, rel=1e-3)
    encode = ratios["cpu", "encode", "v3"]
    (line,) = (line for line in comparison_text(found).splitlines() if re.match(r"\W*cpu\W+encode\W+v3\b", line))
    assert f"{encode.before:.3f}" in line and f"{encode.after:.3f}" in line
    assert encode._asdict() in found.to_dict()["cpu"]["ratios_of_two_hosts"]
    resized = each(V3, records=lambda records: records + 1)
    assert "encode" not in {each.operation for each in against(moved, resized, profile_text="else").cpu.host_ratios}


def test_one_name_of_two_machines_is_two_hosts(against: Against) -> None:
    slower = each(V3, cpu_ns=times(3.0))
    here: Row = {"machine": "x86_64", "cpu": "one", "cores": 2, "cache": {"L3": "1K"}, "load_1_min": 0.1}
    quiet, busy = {host(): here}, {host(): here | {"load_1_min": 9.0}}
    assert against(slower, first_facts={"host_facts": quiet}, host_facts=busy).is_regression
    newer = {host(): here | {"cpu_model": "family 6, model 1"}}  # a fact that older runs do not store
    assert against(slower, first_facts={"host_facts": quiet}, host_facts=newer).is_regression
    moved = {host(): here | {"cache": {"L3": "2K"}}}
    found = against(slower, first_facts={"host_facts": quiet}, host_facts=moved)
    assert not found.is_regression and not found.cpu.groups


def test_a_run_without_cpu_times_is_reported_as_such(against: Against) -> None:
    sizes = without(lambda row: row["kind"] != "bytes")
    for edits, first, reason in (
        ((sizes,), (), "B has none"),
        ((), (sizes,), "A has none"),
        ((sizes,), (sizes,), "neither run has any"),
    ):
        found = against(*edits, first=first, profile_text="else")
        assert not found.is_regression
        assert found.to_dict()["cpu"]["left_out"] == reason
    assert against().cpu_left_out is None and against().to_dict()["cpu"]["left_out"] is None
    resized = each(lambda row: row["kind"] != "bytes", records=lambda n: n and n + 1)
    assert against(resized, profile_text="else").cpu_left_out == "not one arm is of the same records in both"


def test_a_cell_that_a_repetition_lacks_is_a_regression(against: Against) -> None:
    found = against(without(ONE))
    assert found.is_regression and found.missing[0].formats == ("v3",)


def test_cells_that_another_sweep_does_not_request_are_listed(against: Against) -> None:
    found = against(without(of(kind="bytes", grid="key")), first=(without(of(grid="spread")),), profile_text="else")
    assert not found.is_regression
    assert {each.row.grid for each in found.lone[0]} == {"key"}
    assert {each.row.grid for each in found.lone[1]} == {"spread"}


def test_rows_of_other_records_are_counted_and_not_compared(against: Against, rows: list[Row]) -> None:
    other = each(lambda row: row["kind"] == "bytes", records=lambda n: n and n * 2, size_bytes=lambda n: n and n * 2)
    found = against(other, profile_text="else")
    assert not found.is_regression
    assert found.resized == sum(row["kind"] == "bytes" and row.get("records") is not None for row in rows)
    assert against(other).is_regression  # both runs must measure the same records


def test_a_run_from_before_the_column_cache_measured_resident_ones(rows: list[Row], tmp_path: Path) -> None:
    timed = [row for row in rows if row["kind"] == "cpu"]
    cold = [row | {"cache": "cold", "cpu_ns": times(9.0)(row["cpu_ns"])} for row in timed if row.get("cpu_ns")]
    known = [row | {"cache": "resident"} for row in timed]
    found = agreement(table(timed), table([*known, *cold]), 0.03)
    assert {group.operation for group in found.groups} == {"encode", "decode"}
    assert {each.difference for group in found.groups for each in group.cells} == {0.0}
    both = agreement(table([*timed, *cold]), table([*known, *cold]), 0.03)
    assert {group.operation for group in both.groups} == {"encode", "decode", "encode, cold", "decode, cold"}


def test_new_contexts_are_operations_of_their_own(rows: list[Row]) -> None:
    timed = [row for row in rows if row["kind"] == "cpu"]
    new = [row | {"context": "new", "cpu_ns": times(9.0)(row["cpu_ns"])} for row in timed if row.get("cpu_ns")]
    found = agreement(table([*timed, *new]), table([*timed, *new]), 0.03)
    words = {"encode", "decode"}
    assert {group.operation for group in found.groups} == words | {f"{each}, new contexts" for each in words}


def test_a_run_of_two_seeds_is_compared_with_its_repetition_seed_by_seed(against: Against, quiet: list[Row]) -> None:
    other, known = tuple(row | {"seed": 7} for row in quiet), of(kind="cpu", arm="measure", format="v3")
    found = against(first_more=other, more=other)
    assert not found.is_regression and found.rows == 2 * len(quiet)
    cells = len({(row["cell_id"], row["operation"]) for row in quiet if known(row)})
    assert (
        sum(len(group.cells) for group in found.cpu.judged if (group.kind, group.format) == ("cpu", "v3")) == 2 * cells
    )
    edited = tuple(row | {"size_bytes": row["size_bytes"] + 1} if ONE(row) else row for row in other)
    found = against(first_more=other, more=edited)
    assert [(each.column, each.row.seed) for each in found.changed] == [("size_bytes", 7)]


@pytest.mark.parametrize(
    ("edit", "first", "message"),
    [
        (each(lambda row: True, seed=7), (), "has too, but for other seeds"),
        (without(of(kind="bytes")), (without(lambda row: row["kind"] != "bytes"),), r"not one cell that .* has too$"),
    ],
)
def test_two_runs_with_nothing_in_common_are_refused(
    against: Against, edit: Edit, first: tuple[Edit, ...], message: str
) -> None:
    with pytest.raises(RunError, match=message):
        against(edit, first=first)


def test_a_row_that_is_there_twice_is_refused(rows: list[Row], tmp_path: Path) -> None:
    runs = [stored(tmp_path, rows) for _ in range(2)]
    (part,) = (runs[1].path / "measurements").iterdir()
    pq.write_table(table([*rows[1:], rows[1]]), part)
    with pytest.raises(RunError, match="same identity: bytes, batch"):
        compare(runs[0].path, runs[1].path, threshold=0.03)


def test_unfinished_runs_and_those_of_another_schema_are_refused(rows: list[Row], tmp_path: Path) -> None:
    sound = stored(tmp_path, rows).path
    running = create_run(tmp_path, MANIFEST).path
    for runs in ((sound, running), (running, sound)):
        with pytest.raises(RunError, match="state: running"):
            compare(*runs, threshold=0.03)
    other = stored(tmp_path, rows).path
    manifest = json.loads((other / "manifest.json").read_text())
    (other / "manifest.json").write_text(json.dumps(manifest | {"schema_version": 2}))
    for runs in ((sound, other), (other, sound)):
        with pytest.raises(RunError, match="schema_version: 2, this kfbench reads 1"):
            compare(*runs, threshold=0.03)
