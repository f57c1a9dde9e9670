"""The table of the smallest format per workload agrees with the rows."""

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from kfbench.report.data.named import TIE, Named, Sizes
from kfbench.report.data.paths import Paths
from kfbench.report.data.results import Results
from kfbench.report.page import page
from kfbench.report.section import Section
from kfbench.report.topics import broker_paths, workloads
from kfbench.store import Run
from kfbench.workloads.catalogue import WORKLOADS as CATALOGUE
from tests.report.broker_rows import broker_rows
from tests.report.columns import column, row_of
from tests.report.workload_rows import Row, changed, size_bytes, workload_rows
from tests.runs import stored


@pytest.fixture(scope="module")
def stored_rows(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return stored(tmp_path_factory.mktemp("named"), workload_rows())


@pytest.fixture(scope="module")
def named(stored_rows: Run) -> Named:
    return Named(Results(stored_rows.measurements()))


def built(run: Run) -> dict[str, Section]:
    return {section.name: section for section in page(Results(run.measurements()), []).sections}


def test_the_verdict_has_the_question_and_the_smallest(named: Named) -> None:
    table = workloads.smallest_table(named)
    row = row_of(table, workload="cluster-metadata")
    assert row["question"] == CATALOGUE["cluster-metadata"].describe().question
    assert row["smallest, no codec"] == "v0, without times and producer ids"  # 126 bytes; v3 takes 156
    assert row["smallest that loses nothing, no codec"] == "v3"
    assert row["smallest, zstd 3"] == "v3" and "smallest that loses nothing, zstd 3" not in row  # no loss
    assert row_of(table, workload="forgotten")["question"] is None
    assert row_of(table, workload="forgotten")["smallest that loses nothing, no codec"] == "tie"
    assert row_of(table, workload="forgotten")["smallest, no codec"] == "v2 and v3"


def test_within_one_percent_is_a_tie(tmp_path: Path) -> None:
    sizes = {"v2": 1_000_000, "v3": 1_000_000}

    def resize(row: Row) -> None:
        if row["status"] == "ok" and row["kind"] == "bytes":
            row["size_bytes"] = sizes.get(row["format"], 2_000_000)

    at = {}
    for size in (1_000_000, int(1_000_000 * (1 + TIE)), int(1_000_000 * (1 + TIE)) + 1):
        sizes["v2"] = size
        table = workloads.smallest_table(changed(tmp_path / str(size), resize))
        at[size] = row_of(table, workload="service-events")["smallest, no codec"]
    assert list(at.values()) == ["tie", "tie", "v3"]


def test_a_format_that_loses_something_is_not_the_smallest_that_loses_nothing(tmp_path: Path) -> None:
    def whole(row: Row) -> None:
        if row["format"] == "v1" and row["status"] == "ok" and row["kind"] == "bytes":
            row["losses"] = "{}"

    row = row_of(workloads.smallest_table(changed(tmp_path, whole)), workload="cluster-metadata")
    assert row["smallest that loses nothing, no codec"] == "v1"
    assert row["smallest, no codec"] == "v0, without times and producer ids"


def sizes_of(lost: dict[str, tuple[str, ...]], **of: float) -> Sizes:
    return Sizes(
        workload="one", variant="default", with_codec="none", records_per_batch=1, of=of,
        lost={name: lost.get(name, ()) for name in of},
    )  # fmt: skip


@pytest.mark.parametrize(
    ("of", "winners", "is_tie"),
    [
        ({"v2": 234.09, "v3": 232.59, "v3-a": 230.67}, ("v3", "v3-a"), False),  # v3 also ties with v2
        ({"v2": 234.09, "v3": 233.09, "v3-a": 230.67}, ("v3-a",), False),
        ({"v2": 100.0, "v3": 99.5}, ("v2",), True),
        ({"v2": 99.5, "v3": 100.0}, ("v2",), True),
        ({"v2": 90.0, "v3": 100.0}, ("v2",), False),
        ({"v2": 100.0, "v3": 90.0, "v3-a": 89.9}, ("v3", "v3-a"), False),
        ({"v2": 100.0}, (), False),
        ({"v1": 100.0, "v3": 90.0}, (), False),
    ],
)
def test_who_is_near_the_smallest_shares_its_place_and_v2_takes_it(
    of: dict[str, float], winners: tuple[str, ...], is_tie: bool
) -> None:
    found = sizes_of({}, **of)
    assert (found.winners, found.is_tie) == (winners, is_tie)


def test_what_loses_something_wins_nothing_but_is_stated_where_it_is_smaller() -> None:
    found = sizes_of({"v0": ("times",)}, v0=50.0, v2=100.0, v3=80.0)
    assert found.winners == ("v3",) and found.at_a_loss == ["v0"]
    assert sizes_of({"v0": ("times",)}, v0=79.9, v2=100.0, v3=80.0).at_a_loss == []
    assert sizes_of({"v0": ("times",)}, v0=50.0, v2=100.0).winners == ()


def test_rounds_that_are_no_pairs_have_no_ratio(tmp_path: Path) -> None:
    def cut(row: Row) -> None:
        if (row["kind"], row["format"], row["workload"]) == ("cpu", "v3", "user-activity"):
            row["cpu_ns"] = row["cpu_ns"][:-2]

    found = changed(tmp_path, cut)
    assert ("user-activity", "encode", "v3") not in found.cpu and ("user-activity", "encode", "v1") in found.cpu


def test_the_figure_has_what_gains_most_first(named: Named) -> None:
    panels = workloads.bytes_panels(named)
    assert list(panels) == ["no codec", "zstd 3"]
    order = list(dict.fromkeys(panels["no codec"]["label"]))
    assert order == ["cluster-metadata", "user-activity", "service-events", "forgotten"]
    assert set(panels["no codec"]["format"]) == {"v0", "v1", "v3"} and set(panels["zstd 3"]["format"]) == {"v3"}


def test_a_run_without_workloads_has_no_such_section(results: Results, broker_run: Run, stored_rows: Run) -> None:
    assert not Named(results).sizes and not Named(Results(broker_run.measurements())).sizes
    section = built(stored_rows)["workloads"]
    assert section.means and section.figures and [table.name for table in section.tables] == [
        "workloads", "workloads-none", "workloads-zstd-3", "workloads-cpu",
    ]  # fmt: skip


def test_bytes_alone_or_v2_alone_is_enough(tmp_path: Path) -> None:
    only = [row for row in workload_rows() if row["kind"] == "bytes" and row["codec"] == "gzip"]
    section = built(stored(tmp_path / "gzip", only))["workloads"]
    assert [table.name for table in section.tables] == ["workloads", "workloads-gzip-6"]
    only = [row for row in only if row["format"] == "v2"]
    section = built(stored(tmp_path / "v2", only))["workloads"]
    assert not section.means and not section.figures
    assert set(column(section.tables[0], "smallest, gzip 6")) == {"v2"}


def test_tables_of_the_grid_do_not_change_with_workloads(
    rows: list[dict[str, Any]], results: Results, broker_run: Run, tmp_path: Path
) -> None:
    """Rows of workloads have no axes, so pandas turns integers into floats and booleans into objects.

    Tables of the grid stay equal.
    """
    both = Results(stored(tmp_path / "grid", rows + workload_rows()).measurements())
    one, other = (each.grid_rows.reset_index(drop=True) for each in (both, results))
    axes = other[results.axes]
    pd.testing.assert_frame_equal(one[results.axes], axes)
    assert (both.aa["ratio"].tolist(), both.noise) == (results.aa["ratio"].tolist(), results.noise)
    found, alone = (
        Paths(Results(run.measurements()))
        for run in (stored(tmp_path / "paths", broker_rows() + workload_rows()), broker_run)
    )
    for path in ("append", "seek-offset"):
        assert broker_paths.path_table(found, path, shown=True) == broker_paths.path_table(alone, path, shown=True)
        assert broker_paths.ratio_table(found, path) == broker_paths.ratio_table(alone, path)


def test_seeds_are_compared_where_there_are_several(tmp_path: Path, stored_rows: Run) -> None:
    assert workloads.seed_table(Results(stored_rows.measurements())) is None
    rows = [row for row in workload_rows() if row["kind"] == "bytes"]
    others = [row | {"seed": 2} for row in rows if row["workload"] != "forgotten"]
    for row in others:
        if (row["format"], row["codec"], row["workload"]) == ("v3", "zstd", "user-activity"):
            row["size_bytes"] += 500
    table = workloads.seed_table(Results(stored(tmp_path, rows + others).measurements()))
    assert table is not None and column(table, "codec") == ["gzip 6", "none", "zstd 3"]
    assert column(table, "cells") == [5] * 3 and column(table, "seeds") == [2] * 3
    packed, plain = row_of(table, codec="zstd 3"), row_of(table, codec="none")
    assert packed["worst cell (× v2)"] == pytest.approx(500 / size_bytes("v2", 50, "zstd"))
    assert packed["which is of"] == "user-activity/rate-10000" and plain["worst cell (× v2)"] == 0
    assert packed["median cell (× v2)"] > 0


def test_bytes_and_rounds_of_all_seeds_count(tmp_path: Path) -> None:
    """Under the second seed v3 takes 10 % more bytes and twice the CPU time.

    Bytes are averaged, and the CPU rounds of both seeds count.
    """
    rows = workload_rows()
    for row in workload_rows():
        if row["status"] == "ok" and row["format"] == "v3":
            if row["kind"] == "bytes":
                row["size_bytes"] = row["size_bytes"] * 11 // 10
            else:
                row["cpu_ns"] = [2 * ns for ns in row["cpu_ns"]]
        rows.append(row | {"seed": 2})
    found = Named(Results(stored(tmp_path, rows).measurements()))
    (sizes,) = (each for each in found.under("none") if each.workload == "user-activity")
    one = size_bytes("v3", 5, "none")
    assert sizes.of["v3"] == (one + one * 11 // 10) / 2_000 and sizes.of["v2"] == size_bytes("v2", 5, "none") / 1_000
    assert sizes.records_per_batch == 5 and sizes.lost["v0"] == ("times", "producer ids")
    ratio = found.cpu["user-activity", "encode", "v3"]
    assert ratio.low == pytest.approx(1.1, rel=0.03) and ratio.high == pytest.approx(2.2, rel=0.03)
    alone = Named(Results(stored(tmp_path, workload_rows()).measurements()))
    assert len(found.cpu) == len(alone.cpu) and (found.seeds, alone.seeds) == (2, 1)


def test_an_error_under_one_block_hides_no_number_of_another(tmp_path: Path) -> None:
    rows = workload_rows()
    errors = [
        row | {"grid": "a-block-before", "status": "error", "error": "it broke", "size_bytes": None, "cpu_ns": None}
        for row in rows
        if row["status"] == "ok"
    ]
    both, alone = (Named(Results(stored(tmp_path, each).measurements())) for each in (errors + rows, rows))
    assert both.sizes == alone.sizes and both.cpu == alone.cpu
