"""The pages of research packages: their rows equal hand computations, and their declarations name what there is."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from kfbench.present.declaration import read_view
from kfbench.present.engine import BuiltTable, Source
from kfbench.present.rows import Rows, Runs
from kfbench.present.table import Interval
from kfbench.report.view_packages import VIEWS, ViewPackage
from kfbench.research.columnar.view import columnar_bytes, columnar_loss_counts, columnar_losses
from kfbench.research.dictionaries.view import dictionary_bytes, dictionary_gains, dictionary_times
from kfbench.research.rivals.view import crossing, rivals_break_even, rivals_means
from tests.runs import stored

Row = dict[str, Any]
COMMON: Row = {"variant": "default", "seed": 1, "codec_version": "1", "host": "here", "status": "ok"}


def runs_of(folder: Path, rows: Sequence[Row], profile: str = "") -> Runs:
    found = Rows(stored(folder, [COMMON | row for row in rows]).measurements())
    return Runs(own=found, joined={profile: found} if profile else {}, manifests={})


def ns(each: float) -> list[int]:
    return [int(each * 1000)] * 7


def times(ratios: dict[tuple[str, str], float], **common: Any) -> list[Row]:
    """Return rows of CPU times by format and arm."""
    return [
        common | {"format": name, "arm": arm, "cpu_ns": ns(ratio), "inner_loops": 1, "records": 100, "batches": 2}
        for (name, arm), ratio in ratios.items()
    ]


@pytest.fixture
def columnar(tmp_path: Path) -> Runs:
    rows: list[Row] = []
    for workload, sizes in {"kv-etc": (1000, 800, 900), "omb-1kb": (1000, 1250, 1000)}.items():
        at = {"grid": "columnar", "cell_id": workload, "workload": workload, "batch_size": 50, "codec": "none"}
        fields = ('{"key":100,"batch_header.x":200}', '{"header_key":40,"lengths":50}', '{"lengths":100}')
        for name, size, parts in zip(("v2", "columnar", "v3"), sizes, fields, strict=True):
            counts = {"size_bytes": size, "records": 100, "batches": 2, "field_bytes": parts}
            rows.append(at | counts | {"kind": "bytes", "format": name})
        floor = {"size_bytes": 20, "records": 100, "batches": 2, "field_bytes": '{"lengths":20}'}
        rows.append(at | floor | {"kind": "floor", "format": "floor"})
        slower = {("v2", "measure"): 1.0, ("v2", "aa"): 1.02, ("columnar", "measure"): 1.5, ("v3", "measure"): 2.0}
        for operation in ("encode", "decode"):
            ratios = slower if operation == "encode" else {**slower, ("columnar", "measure"): 1.02}
            rows += times(ratios, **at, kind="cpu", operation=operation, cache="resident")
    apart = {"grid": "named", "cell_id": "other", "workload": "user-activity", "codec": "none", "kind": "bytes"}
    rows.append(apart | {"format": "v2", "size_bytes": 1, "records": 1, "batches": 1, "field_bytes": "{}"})
    return runs_of(tmp_path, rows)


def test_columnar_bytes_are_of_cells_with_columnar(columnar: Runs) -> None:
    found = columnar_bytes(columnar)
    ratios = dict(zip(zip(found["workload"], found["format"], strict=True), found["ratio"], strict=True))
    assert ratios == {
        ("kv-etc", "columnar"): 0.8, ("kv-etc", "v3"): 0.9, ("omb-1kb", "columnar"): 1.25, ("omb-1kb", "v3"): 1.0,
    }  # fmt: skip
    assert set(found["batches"]) == {"50 records per batch"} and set(found["codec"]) == {"no codec"}


def test_a_tie_in_time_is_no_loss(columnar: Runs) -> None:
    lost = columnar_losses(columnar)
    assert [tuple(row) for row in lost[["what", "workload", "against"]].to_numpy()] == [
        ("bytes", "omb-1kb", "v2"), ("bytes", "omb-1kb", "v3"), ("encode", "kv-etc", "v2"), ("encode", "omb-1kb", "v2"),
    ]  # fmt: skip
    assert list(lost["ratio"])[:3] == [1.25, 1.25, Interval(median=1.5, low=1.5, high=1.5)]
    counts = columnar_loss_counts(columnar).set_index(["what", "other"])
    assert list(counts.loc[("encode", "v2")]) == [2, 2] and list(counts.loc[("decode", "v2")]) == [0, 2]
    assert math.isnan(counts.loc[("decode", "v3-headers-first"), "cells"])


@pytest.fixture
def dictionaries(tmp_path: Path) -> Runs:
    at = {"codec": "zstd", "level": 3, "records": 100, "batches": 10, "batch_size": 10, "kind": "dictionary"}
    one = at | {"workload": "lines-jvm-gc", "cell_id": "one", "grid": "dictionary-lines", "trained_share": 0.5}
    sizes = {"v2": (1_000_000, 600_000), "columnar": (800_000, 900_000)}
    rows: list[Row] = []
    for name, (plain, trained) in sizes.items():
        extra = {"dictionary_size_bytes": 32_768, "dictionary_stored_bytes": 5_000}
        rows.append(one | {"format": name, "dictionary": "plain", "size_bytes": plain, "part": 1})
        rows.append(one | {"format": name, "dictionary": "trained", "size_bytes": trained, "part": 1} | extra)
    parts = one | {
        "grid": "dictionary-lines-age",
        "trained_share": 0.1,
        "format": "columnar",
        "dictionary_size_bytes": 0,
    }
    for part, size in ((1, 400), (2, 600)):
        rows.append(parts | {"dictionary": "plain", "size_bytes": 1_000, "part": part})
        rows.append(
            parts | {"dictionary": "trained", "size_bytes": size, "part": part, "dictionary_size_bytes": 32_768}
        )
    timed = one | {"grid": "dictionary-cpu", "kind": "dictionary-cpu", "operation": "compress", "live": 1}
    for dictionary, size, ratio in (("plain", 0, 1.0), ("trained", 32_768, 0.5), ("trained", 4_096, 0.1)):
        which = {"dictionary": dictionary, "dictionary_size_bytes": size}
        rows += times({("v2", "measure"): ratio}, **timed, **which)
    return runs_of(tmp_path, rows, "dictionary")


def test_a_dictionary_is_charged(dictionaries: Runs) -> None:
    ratios = dictionary_bytes(dictionaries).set_index("kind")["ratio"]
    assert ratios["v2 + dictionary"] == pytest.approx(0.6 + 0.0005)
    assert ratios["columnar"] == 0.8
    gains = dictionary_gains(dictionaries).set_index("format")
    assert gains.loc["v2", "ratio"] == pytest.approx(600_500 / 1_000_000)
    assert gains.loc["v2", "pays_from_kb"] == pytest.approx(12.5)  # 5 000 bytes, of which 40 % are saved
    assert list(gains["pays"]) == [True, False] and list(gains["never"]) == [0, 1]


def test_times_are_relative_to_plain_zstd(dictionaries: Runs) -> None:
    (time,) = dictionary_times(dictionaries).to_dict("records")
    assert time["ratio"] == 0.5 and time["dictionary"] == "32 KiB" and time["data"] == "recorded log lines"


@pytest.fixture
def rivals(tmp_path: Path) -> Runs:
    rows: list[Row] = []
    bytes_of = {"v2": (1_000, 1_000), "columnar": (900, 800), "avro": (2_000, 500)}
    for workload in ("kv-etc", "omb-1kb"):
        for i, batch in enumerate((10, 1_000)):
            at = {"workload": workload, "batch_size": batch, "codec": "zstd", "level": 3, "grid": "rivals-batches"}
            at |= {"cell_id": f"{workload} {batch}", "records": batch, "batches": 1}
            if (workload, batch) == ("omb-1kb", 1_000):
                at["records"] = 500  # the producer does not send so many, so the row does not count
            rows += [
                at | {"kind": "rivals", "format": name, "size_bytes": sizes[i] * at["records"]}
                for name, sizes in bytes_of.items()
            ]
            timed = {("v2", "each"): 1.0, ("avro", "each"): 4.0 if workload == "kv-etc" else 1.0}
            rows += times(timed, **(at | {"kind": "rivals-cpu", "operation": "decode"}))
    for row in rows:
        if row["kind"] == "rivals-cpu":
            row |= {"records": row["batch_size"], "batches": 1}
    return runs_of(tmp_path, rows, "rivals")


def test_rivals_relative_to_v2(rivals: Runs) -> None:
    means = rivals_means(rivals).set_index(["container", "batches"])["ratio"]
    assert means["avro", "10"] == pytest.approx(2.0) and means["avro", "1,000"] == pytest.approx(0.5)
    assert math.isnan(means["avro", "own batches"])
    even = rivals_break_even(rivals).set_index("base").loc["v2"]
    assert even["records"] == 100 and even["never"] == 0  # half of the way from 10 to 1,000 in logarithms


def test_crossing() -> None:
    assert crossing([(1, 0.9), (10, 0.8)]) == 1
    assert crossing([(1, 0.9), (10, 1.1)]) == math.inf
    assert crossing([(1, 2.0), (100, 0.5)]) == pytest.approx(10)


@pytest.mark.parametrize("package", VIEWS.values(), ids=lambda each: each.name)
def test_a_part_of_the_page_names_what_there_is(package: ViewPackage, tmp_path: Path) -> None:
    view = read_view(package.path)
    assert view.page is not None and view.page.name == "research"
    tables = {table.name: table for table in view.tables}
    shown = [name for section in view.sections for name in (*section.tables, *section.more)]
    assert sorted(shown) == sorted(name for name, table in tables.items() if not table.is_hidden)
    assert {table.source for table in view.tables} - {"run"} == package.sources.keys()
    # Without rows there is no table, and no error.
    apart = {"grid": "named", "cell_id": "one", "workload": "user-activity", "codec": "none", "kind": "bytes"}
    runs = runs_of(tmp_path, [apart | {"format": "v2", "size_bytes": 1, "records": 1, "batches": 1}])
    for table in (each for each in view.tables if each.source != "run"):
        assert BuiltTable(table, Source(frame=package.sources[table.source](runs)), view.path.name).table is None
