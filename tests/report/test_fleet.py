"""The section of a fleet's bytes agrees with the rows of the size model."""

from pathlib import Path
from typing import Any

import pytest

from kfbench.report.data.results import Results
from kfbench.report.topics.fleet import ALL, Fleet, cost_table, day_table, fleet_sentence, saved_table
from tests.common import numbers_in
from tests.report.columns import column, row_of
from tests.report.workload_rows import size_bytes, workload_rows
from tests.runs import stored

V2 = {"user-activity": 200, "cluster-metadata": 100}  # bytes per record
V3 = {"user-activity": 190, "cluster-metadata": 80}
ENDS = (1_000_000, 2_000_000, 4_000_000)
NS_A_RECORD = 50


def model_rows(host: str = "here") -> list[dict[str, Any]]:
    rows = []
    for workload, base in V2.items():
        for start, end in zip((0, *ENDS), ENDS, strict=False):
            common = {
                "kind": "model", "cell_id": workload, "grid": "fleet", "workload": workload, "variant": "default",
                "seed": 1, "codec": "none", "codec_version": "none", "host": host if start else "here", "start": start,
                "records": end - start, "generate_ns": (end - start) * 40, "resident_bytes": 300 << 20,
                "inner_loops": 1, "losses": "{}", "batches": (end - start) // 5,
            }  # fmt: skip
            for name, each in (("v2", base), ("v3", V3[workload])):
                sizes = {"size_bytes": each * (end - start), "payload_bytes": 10 * (end - start)}
                cost = {"cpu_ns": [5 * (end - start)], "wall_ns": [5 * (end - start)]}
                rows.append(common | sizes | cost | {"status": "ok", "format": name})
            rows.append(common | {"status": "skipped", "error": "v0 has no headers", "format": "v0"})
    return rows


def fleet(tmp_path: Path, rows: list[dict[str, Any]]) -> Fleet:
    return Fleet(Results(stored(tmp_path, rows).measurements()))


def test_bytes_a_day_stand_by_workload_and_format(tmp_path: Path) -> None:
    table = day_table(fleet(tmp_path, model_rows()))
    assert column(table, "workload") == ["cluster-metadata", "user-activity"]
    row = row_of(table, workload="user-activity")
    assert row["records modelled"] == 4_000_000 and row["records per batch"] == 5
    assert row["v2 (TB a day)"] == 200 and row["v3 (TB a day)"] == 190
    assert "v0 (TB a day)" not in row


def test_what_v3_saves_is_stated_for_each_workload_and_for_equal_shares(tmp_path: Path) -> None:
    table = saved_table(fleet(tmp_path, model_rows()))
    assert table is not None
    metadata, equal = row_of(table, workload="cluster-metadata"), row_of(table, workload=ALL)
    assert metadata["saved, no codec (%)"] == pytest.approx(20)
    assert metadata["saved, no codec, 3 copies (TB a day)"] == pytest.approx(60)
    assert equal["v2, one copy (TB a day)"] == 150 and equal["saved, no codec (%)"] == pytest.approx(10)


def test_codecs_are_those_that_the_run_has_bytes_under(tmp_path: Path) -> None:
    table = saved_table(fleet(tmp_path, [*workload_rows(), *model_rows()]))
    assert table is not None
    row = row_of(table, workload="user-activity")
    base, new = (size_bytes(name, 5, "zstd") for name in ("v2", "v3"))
    assert row["saved, zstd 3, at most (%)"] == pytest.approx(100 * (base - new) / base)
    assert row_of(table, workload=ALL)["saved, zstd 3, at most (%)"] is not None
    assert "saved, no codec (%)" in row


def test_cost_and_memory_are_stated(tmp_path: Path) -> None:
    found = fleet(tmp_path, model_rows())
    row = row_of(cost_table(found), workload="user-activity")
    assert row["first cell (ns per record)"] == row["last cell (ns per record)"] == NS_A_RECORD
    assert row["CPU (s)"] == pytest.approx(ENDS[-1] * NS_A_RECORD / 1e9) and row["largest worker (MiB)"] == 300
    assert row["exponent of records"] == pytest.approx(1)
    assert found.growth["user-activity"].tolist() == [end * NS_A_RECORD / 1e9 for end in ENDS]


def test_the_sentence_has_the_least_and_most_saved_and_the_cost(tmp_path: Path) -> None:
    saved = {name: V2[name] - V3[name] for name in ("user-activity", "cluster-metadata")}
    shares = [100 * each / V2[name] for name, each in saved.items()]
    terabytes, records = [1e12 * each / 1e12 for each in saved.values()], len(V2) * ENDS[-1]
    said = numbers_in(fleet_sentence(fleet(tmp_path, model_rows())))
    assert said == [*shares, 1e12, *terabytes, records, len(V2), 1, 300]
    there = numbers_in(fleet_sentence(fleet(tmp_path / "there", model_rows(host="there"))))
    assert there == [*shares, 1e12, *terabytes, records, len(V2), 300]  # no exponent, because hosts differ


def test_times_of_several_hosts_are_not_added(tmp_path: Path) -> None:
    found = fleet(tmp_path, model_rows(host="there"))
    assert found.growth.empty
    row = row_of(cost_table(found), workload="user-activity")
    assert row["CPU (s)"] is None and row["largest worker (MiB)"] == 300
    assert row_of(day_table(found), workload="user-activity")["v2 (TB a day)"] == 200  # bytes are added
