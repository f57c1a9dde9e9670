"""The chapter about rivals: its numbers computed apart, and the run that it joins."""

import math
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pytest

from kfbench.report.data.joined import FOLDER, RIVALS, Joined
from kfbench.report.data.results import Results
from kfbench.report.data.rivals import COLUMNAR, Rivals, crossing, quantile
from kfbench.report.files import files_of
from kfbench.report.topics.front import _counts
from kfbench.report.topics.rivals import tables
from kfbench.shipped import DATASETS
from kfbench.store import Run, open_run
from kfbench.tables import Table

JOINS = True
SHIPPED = DATASETS / FOLDER / RIVALS


@pytest.fixture(scope="module")
def shipped() -> Run:
    return open_run(SHIPPED)


@pytest.fixture(scope="module")
def measured(shipped: Run) -> pd.DataFrame:
    found = shipped.measurements()
    is_full = ~(found["records"] / found["batches"] < 0.9 * found["batch_size"])
    return found[(found["status"] == "ok") & is_full].assign(batch_size=found["batch_size"].fillna(0))


@pytest.fixture(scope="module")
def found(shipped: Run) -> Rivals:
    return Rivals(Joined(run=shipped, is_own=True))


def by(table: Table, *key: Any) -> dict[str, Any]:
    """Return the cells of the row with this key, by the names of their columns."""
    (row,) = [row for row in table.rows if row[: len(key)] == key]
    return dict(zip([column.name for column in table.columns], row, strict=True))


def per_record(rows: pd.DataFrame, name: str) -> "pd.Series[float]":
    part = rows[rows["format"] == name].set_index("workload")
    return part["size_bytes"] / part["records"]


def test_means_are_geometric_over_workloads(measured: pd.DataFrame, found: Rivals) -> None:
    part = measured[(measured["kind"] == "rivals") & (measured["codec"] == "zstd")]
    table = tables.means_table(found)
    for (batch, column), name in product([(100, "100"), (0, "own batches")], (COLUMNAR, "parquet-best", "avro")):
        at = part[part["batch_size"] == batch]
        ratios = (per_record(at, name) / per_record(at, "v2")).dropna()
        assert len(ratios) >= 15
        wanted = float(np.exp(np.log(ratios).mean()))
        assert by(table, name)[column] == pytest.approx(wanted)


@pytest.mark.parametrize(
    ("ratios", "wanted"),
    [
        ([(1, 0.9), (10, 0.8)], 1),
        ([(1, 4.0), (100, 0.25)], 10),
        ([(1, 2.0), (10, 0.5), (100, 2.0), (1_000, 0.5)], 100 * 10**0.5),
        ([(1, 0.5), (10, 2.0)], math.inf),
        ([(1, 3.0)], math.inf),
    ],
)
def test_break_even_is_where_the_ratio_stays_at_one_or_below(ratios: list[tuple[int, float]], wanted: float) -> None:
    assert crossing(ratios) == pytest.approx(wanted)


def test_quantiles_are_values() -> None:
    values = [5.0, 1.0, math.inf, 2.0]
    assert [quantile(values, share) for share in (0, 0.25, 0.5, 0.75, 1)] == [1, 2, 5, math.inf, math.inf]


def test_break_evens_are_of_all_workloads(measured: pd.DataFrame, found: Rivals) -> None:
    part = measured[(measured["kind"] == "rivals") & (measured["codec"] == "zstd")]
    for base in ("v2", COLUMNAR):
        each = found.break_even("parquet-best", base)
        largest = part[part["batch_size"] == part["batch_size"].max()]
        assert each is not None and each.workloads == largest["workload"].nunique()
        still_larger = (per_record(largest, "parquet-best") > per_record(largest, base)).sum()
        assert each.never == still_larger
        assert each.low <= each.records <= each.high


def test_losses_are_where_a_rival_is_smaller_than_columnar(measured: pd.DataFrame, found: Rivals) -> None:
    part = measured[(measured["kind"] == "rivals") & (measured["codec"] == "zstd")]
    part = part.assign(per=part["size_bytes"] / part["records"]).pivot_table(
        values="per", index=["workload", "batch_size"], columns="format"
    )
    others = part.drop(columns=[COLUMNAR, "v2"])
    smaller = part.index[(others.min(axis=1) < part[COLUMNAR])]
    assert {(loss.workload, loss.batch) for loss in found.losses()} == {*smaller}
    for loss in found.losses():
        row = others.loc[(loss.workload, loss.batch)]
        assert row.idxmin() == loss.rival
        assert loss.ratio == pytest.approx(row.min() / part[COLUMNAR][loss.workload, loss.batch])


def test_cpu_ratios_are_paired_with_v2_of_the_same_rounds(measured: pd.DataFrame, found: Rivals) -> None:
    part = measured[
        (measured["kind"] == "rivals-cpu") & (measured["codec"] == "zstd") & (measured["batch_size"] == 100)
    ]
    part = part[part["operation"] == "encode"]
    medians = []
    for _, one in part.groupby("workload"):
        ns = {(row.format, row.arm): np.asarray(row.cpu_ns, np.float64) / row.inner_loops for row in one.itertuples()}
        medians.append(float(np.median(ns["parquet-best", "each"] / ns["v2", "each"])))
    shown = by(tables.cpu_table(found, "zstd"), "encode", "parquet-best", "one batch")["100"]
    assert shown == pytest.approx(float(np.exp(np.mean(np.log(medians)))))


def test_arms_that_failed_are_a_table_with_their_errors(shipped: Run) -> None:
    rows = shipped.measurements()
    is_first = rows.index == rows.index[rows["format"] == "vortex"][0]
    rows.loc[is_first, ["status", "error"]] = ["error", "a cell: vortex: RivalFailed: PanicException: late"]
    joined = Joined(run=shipped, is_own=True)
    vars(joined)["rows"] = rows
    table = tables.failed_table(Rivals(joined))
    assert table is not None and table.rows == (("vortex", "vortex: RivalFailed: PanicException: late", 1),)


def test_arms_that_were_not_measured_are_named_with_their_reason(shipped: Run) -> None:
    rows = shipped.measurements()
    is_lance = rows["format"] == "lance"
    rows.loc[is_lance, ["status", "error"]] = ["skipped", "ModuleNotFoundError: No module named 'lance'"]
    joined = Joined(run=shipped, is_own=True)
    vars(joined)["rows"] = rows
    found = Rivals(joined)
    table = tables.failed_table(found)
    assert table is not None
    assert table.rows == (("lance", "ModuleNotFoundError: No module named 'lance'", int(is_lance.sum())),)


def test_workloads_in_their_own_batches_are_a_table(measured: pd.DataFrame, found: Rivals) -> None:
    part = measured[(measured["kind"] == "rivals") & (measured["codec"] == "zstd") & (measured["batch_size"] == 0)]
    ratios = per_record(part, "parquet-best") / per_record(part, "v2")
    table = tables.own_table(found)
    assert len(table.rows) == len(ratios) == 19
    for workload, ratio in ratios.items():
        assert by(table, workload)["parquet-best"] == pytest.approx(ratio)


def test_memory_is_shown_without_a_codec_and_under_zstd(measured: pd.DataFrame, found: Rivals) -> None:
    part = measured[(measured["kind"] == "rivals-cpu") & (measured["arm"] == "each") & (measured["batch_size"] == 100)]
    part = part[(part["operation"] == "decode") & (part["format"] == "parquet")]
    for codec in ("none", "zstd"):
        wanted = part.loc[part["codec"] == codec, "call_bytes"].median() / 1000
        assert by(tables.memory_table(found), "decode", codec, "parquet")["100"] == pytest.approx(wanted)


def test_the_front_page_counts_what_the_run_has(shipped: Run) -> None:
    sizes = shipped.measurements().query("status == 'ok' and kind == 'rivals'")
    times = shipped.measurements().query("status == 'ok' and kind == 'rivals-cpu' and arm != 'aa'")
    assert _counts(Results(shipped.measurements())) == f"{len(sizes):,} sizes of rivals, {len(times):,} CPU times"


@pytest.mark.usefixtures("drawn")
def test_a_report_reads_the_rows_of_rivals_once(shipped: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    built: list[Joined] = []
    build = Rivals.__init__

    def counted(self: Rivals, joined: Joined) -> None:
        built.append(joined)
        build(self, joined)

    monkeypatch.setattr(Rivals, "__init__", counted)
    assert len([*files_of(shipped)]) > 1 and len(built) == 1


@pytest.mark.usefixtures("drawn")
def test_a_run_of_rivals_has_a_report_of_its_own(shipped: Run) -> None:
    files = dict(files_of(shipped))
    page = files["rivals.html"].decode()
    for fact in ("This run was measured", "parquet-best"):
        assert fact in page
    front = files["index.html"].decode()
    assert "parquet-best against v2" in front
    head = front.partition('<p class="meta">')[2].partition("</p>")[0]
    assert "sizes of rivals" in head and " 0 " not in head and "sets of batches" in front
    assert not any(name.startswith(f"{FOLDER}/{RIVALS}/") for name in files)


@pytest.mark.usefixtures("drawn")
def test_a_report_joins_the_run_of_rivals(run: Run, shipped: Run) -> None:
    files = dict(files_of(run))
    page = files["rivals.html"].decode()
    for fact in (shipped.manifest["started"][:10], shipped.manifest["environment"]["cpu"], "kfbench sweep rivals"):
        assert fact in page
    assert files[f"{FOLDER}/{RIVALS}/manifest.json"] == (SHIPPED / "manifest.json").read_bytes()
