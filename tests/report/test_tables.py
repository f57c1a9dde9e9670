"""Tables and their sentences are computed from the rows: other rows, other words."""

import dataclasses
import json
from typing import Any

import pandas as pd
import pytest

from kfbench.records import PAYLOAD
from kfbench.report import tables
from kfbench.report.render import Interval, Table
from kfbench.report.results import BASE, Results, in_order


def column(table: Table, name: str) -> list[Any]:
    at = [c.name for c in table.columns].index(name)
    return [row[at] for row in table.rows]


def test_the_overhead_table_is_the_slice(results: Results) -> None:
    part = results.along(results.uncompressed, "batch_size")
    assert part is not None
    table = tables.axis_table(part, "overhead_per_record", name="o", caption="Overhead")
    assert column(table, "records a batch") == [1, 2, 3, 5, 10, 100]
    assert column(table, "v1") == [34.0] * 6
    ratios = tables.ratio_table(part, name="r", caption="Ratio")
    assert BASE not in [c.name for c in ratios.columns]
    sizes = part.pivot("size_per_record")
    assert column(ratios, "v3") == pytest.approx((sizes["v3"] / sizes["v2"]).tolist())


def test_the_verdict_has_every_format_and_its_cpu(results: Results) -> None:
    table = tables.verdict(results)
    assert table is not None
    formats = in_order(results.uncompressed["format"])
    assert column(table, "format") == formats
    assert column(table, "batch of 1")[:2] == [26.0, 34.0]
    for name in ("encode CPU", "decode CPU"):
        ratios = dict(zip(formats, column(table, name), strict=True))
        assert ratios.pop(BASE) == 1.0
        assert all(isinstance(ratio, Interval) for ratio in ratios.values())


def test_the_verdict_follows_the_rows(results: Results) -> None:
    """A world in which v3 is dearer: the sentence must not praise it."""
    rows = results.all.copy()
    dearer = (rows["format"] == "v3") & (rows["kind"] == "bytes")
    rows.loc[dearer, ["size_bytes", "overhead_bytes"]] += 50_000
    said, other = tables.verdict_sentence(results), tables.verdict_sentence(Results(rows))
    assert said != other
    assert "saves −" in other
    assert "saves −" not in said


def test_a_ratio_inside_the_noise_is_called_a_tie() -> None:
    far = Interval(median=1.2, low=1.15, high=1.25)
    assert not tables.ties(far, (0.99, 1.01))
    assert tables.ties(far, (0.9, 1.16))
    assert tables.ties(Interval(median=1.01, low=0.99, high=1.03), None)
    assert "tie" not in tables._against(far, None)


@pytest.mark.parametrize(
    ("smaller_from", "bracket", "words"),
    [(1, (None, 1), "1 (always)"), (3, (2, 3), "3"), (5, (3, 5), "4–5"), (99, (10, None), "never")],
)
def test_break_even_is_the_first_size_from_which_a_format_is_always_smaller(
    smaller_from: int, bracket: tuple[int | None, int | None], words: str
) -> None:
    sizes = pd.DataFrame({"v2": 10.0, "v0": [9.0 if n < smaller_from else 11.0 for n in (1, 2, 3, 5, 10)]})
    sizes.index = pd.Index([1, 2, 3, 5, 10])
    found = tables.first_smaller(sizes, "v2", "v0")
    assert found == bracket
    assert tables._between(found) == words


def test_a_tie_is_not_smaller_and_a_relapse_counts() -> None:
    sizes = pd.DataFrame({"v2": [5.0, 10.0, 5.0], "v0": [6.0, 10.0, 6.0]}, index=[1, 2, 3])
    assert tables.first_smaller(sizes, "v2", "v0") == (2, 3)


def test_the_break_even_table_is_of_this_run(results: Results) -> None:
    table = tables.break_even(results)
    assert table is not None
    found = {(row[0], row[1]): row[2] for row in table.rows}
    assert found["v2", "v0"] == "4–5"
    assert found["v2", "v1"] == "3"
    assert found["v3", "v2"] == "1 (always)"
    assert ("v2", "v2") not in found


def test_a_single_record_has_no_spread_and_counts_in_every_setting(results: Results) -> None:
    """With timestamps apart a slice starts at two records; what one record costs is stored at spread 0."""
    parts = results.slices(results.uncompressed, "batch_size")
    apart = [
        dataclasses.replace(
            part,
            rows=part.rows[part.rows["batch_size"] > 1],
            fixed={**part.fixed, "timestamp_spread_ms": 64},
        )
        for part in parts[:1]
    ]
    single, spread = tables._with_single_records([parts[0], *apart])
    assert spread.loc[1].to_dict() == single.loc[1].to_dict()
    assert list(spread.index) == list(single.index)
    (alone,) = tables._with_single_records(apart)
    assert alone.index[0] == 2


def test_a_breakdown_adds_up_to_the_overhead(results: Results) -> None:
    frame = tables.breakdown(results, 100)
    assert frame is not None
    part = results.along(results.uncompressed, "batch_size")
    assert part is not None
    overhead = part.pivot("overhead_per_record").loc[100]
    assert frame.sum().to_dict() == pytest.approx(overhead[frame.columns].to_dict())
    assert not set(PAYLOAD) & set(frame.index)
    table = tables.breakdown_table(frame, 100)
    assert table.rows[-1][0] == "all overhead"
    assert tables.breakdown(results, 77) is None


def test_the_step_sentence_names_who_moves_and_who_does_not(results: Results) -> None:
    part = results.along(results.uncompressed, "timestamp_spread_ms")
    assert part is not None
    said = tables.step_sentence(part)
    assert "v0 and v1 do not depend on it" in said
    frame = part.pivot("overhead_per_record")
    assert f"v2 from {frame['v2'].min():.2f} to {frame['v2'].max():.2f}" in said


def test_a_format_that_was_not_swept_is_not_said_to_stand_still(results: Results) -> None:
    part = results.along(results.uncompressed, "headers")
    assert part is not None
    assert "v1" not in tables.step_sentence(part).replace("v1,", "")


def test_codecs_stand_beside_uncompressed_bytes(results: Results) -> None:
    shown = tables.compressed_slice(results)
    table = tables.compressed_table(shown, "size_per_record", name="c", caption="c", digits=2)
    assert [row[:2] for row in table.rows] == [
        (1, "none"), (1, "gzip 6"), (1, "zstd 3"), (10, "none"), (10, "gzip 6"), (10, "zstd 3"),
    ]  # fmt: skip
    v1 = dict(zip([row[:2] for row in table.rows], column(table, "v1"), strict=True))
    assert v1[10, "zstd 3"] is None
    assert v1[10, "gzip 6"] is not None
    ratios = tables.compressed_table(shown, "to_base", name="c", caption="c", digits=4)
    assert BASE not in [c.name for c in ratios.columns]


def test_a_small_block_is_one_table_and_a_large_one_a_table_an_axis(
    results: Results, monkeypatch: pytest.MonkeyPatch
) -> None:
    ((small, rows),) = tables.blocks(results, "codecs")
    assert [c.name for c in small.columns][:2] == ["records a batch", "codec"]
    assert [row[:2] for row in small.rows] == [(1, "gzip 6"), (1, "zstd 3"), (10, "gzip 6"), (10, "zstd 3")]
    assert dict(zip([row[:2] for row in small.rows], column(small, "v1"), strict=True))[1, "zstd 3"] is None
    v3 = list(rows[rows["format"] == "v3"]["shown"])
    assert f"{min(v3):.3f} to {max(v3):.3f}" in tables.block_sentence([(small, rows)])
    monkeypatch.setattr(tables, "SMALL_BLOCK_ROWS", 3)
    spread = tables.blocks(results, "spread")
    assert [table.name for table, _ in spread] == ["spread-bytes-timestamp_spread_ms"]
    batch = [table.name for table, _ in tables.blocks(results, "batch")]
    assert sorted(batch) == ["batch-bytes-batch_size", "batch-decode-batch_size", "batch-encode-batch_size"]


def test_a_block_of_cpu_rows_shows_ratios_without_v2(results: Results) -> None:
    for table, _ in tables.blocks(results, "large"):
        assert [c.name for c in table.columns] == ["value", "v0", "v1", "v3"]
        assert [row[0] for row in table.rows] == [100, 20_000]
        assert all(isinstance(cell, Interval) for row in table.rows for cell in row[1:])


def test_the_control_names_the_checksum_and_flags_what_differs(results: Results) -> None:
    table = tables.control(results)
    assert table is not None
    assert "20,000 byte values" in table.caption
    assert {(row[0], row[2]) for row in table.rows} == {
        ("v0", "CRC-32"), ("v1", "CRC-32"), ("v2 (A/A)", "CRC-32C"), ("v3", "CRC-32C"),
    }  # fmt: skip
    broken = dataclasses.replace(
        table, rows=tuple((*row[:4], "differs" if row[0] == "v3" else row[4]) for row in table.rows)
    )
    assert "v3 encode and v3 decode do not tie" in tables.control_sentence(broken)
    ties = dataclasses.replace(table, rows=tuple((*row[:4], "ties") for row in table.rows))
    assert tables.control_sentence(ties).startswith("All 2 arms")


def test_times_of_two_hosts_share_no_table(results: Results) -> None:
    part = tables.cpu_slice(results, "batch_size")
    assert part is not None
    assert [table.name for table in tables.cpu_tables(part, "encode", "cpu")] == ["cpu-encode", "cpu-encode-ns"]
    assert tables.hosts_sentence(results) == ""
    rows = results.all.copy()
    rows.loc[rows["batch_size"] == 1, "host"] = "elsewhere"
    mixed = Results(rows)
    cells = rows.loc[rows["kind"].isin(["cpu", "prefix"]) & (rows["host"] == "elsewhere"), "cell_id"].nunique()
    assert f": {cells} cells of elsewhere are left out" in tables.hosts_sentence(mixed)
    assert set(mixed.cpu["host"]) == {results.cpu["host"].iloc[0]}
    rest = tables.cpu_slice(mixed, "batch_size")
    assert rest is not None
    for table in tables.cpu_tables(rest, "encode", "cpu"):
        assert 1 not in column(table, "records a batch") and 10 in column(table, "records a batch")
    assert len(mixed.grid_bytes) == len(results.grid_bytes)  # bytes are the same everywhere


def test_the_aa_statement_counts_its_arms(results: Results) -> None:
    said, table = tables.aa_sentence(results), tables.aa_table(results)
    assert table is not None
    arms = sum(column(table, "cells"))
    assert f"{arms} times" in said
    held = sum(ratio.holds(1.0) for ratio in results.aa["ratio"])
    assert f"held 1.0 in {held} of them" in said
    assert "no A/A arm" in tables.aa_sentence(Results(results.all[results.all["arm"] != "aa"]))


def test_a_prefix_is_told_in_shares_of_the_whole(rows: list[dict[str, Any]], results: Results) -> None:
    (table,) = tables.prefix_tables(results)
    assert table.name == "prefix-v3-full"
    assert column(table, "records a batch") == [10, 10, 100, 100]
    assert column(table, "codec") == ["gzip 6", "zstd 3"] * 2
    shares: list[Any] = [row[5] for row in table.rows]
    assert shares[1] == 1.0 and max(shares[0], shares[2]) < 0.05  # 10 KB are one block in zstd; gzip has none
    gzipped = [row for row in rows if row["kind"] == "prefix" and (row["batch_size"], row["codec"]) == (100, "gzip")]
    by = {row["operation"]: row for row in gzipped}
    whole, prefix = by["decode"], by["decode-metadata"]
    found = table.rows[2]
    assert found[2] == whole["plain_bytes"] / whole["batches"] and found[4] == prefix["plain_bytes"] / prefix["batches"]
    ratios = pd.Series(prefix["cpu_ns"]) / pd.Series(whole["cpu_ns"])
    assert isinstance(found[-1], Interval) and found[-1].median == pytest.approx(ratios.median())


def test_what_a_prefix_costs_where_all_is_decompressed_is_said(results: Results) -> None:
    said = tables.prefix_sentence(results)
    less = (results.prefixes["made_bytes"] < results.prefixes["plain_bytes"]).sum()
    assert f"In {less} of 4 cases less than the whole is decompressed" in said
    assert f"In {4 - less} of 4 (zstd, batches of up to" in said
    one_block = results.all.copy()
    prefix = one_block["operation"] == "decompress-prefix"
    one_block.loc[prefix, "plain_bytes"] = 1_000_000
    plain = one_block["operation"] == "decompress"
    one_block.loc[plain, "plain_bytes"] = 1_000_000
    one_block.loc[prefix, "cpu_ns"] = one_block.loc[prefix, "cpu_ns"].map(lambda ns: ns * 1_000)
    worse = tables.prefix_sentence(Results(one_block))
    assert "less than the whole" not in worse and "In 4 of 4 (gzip and zstd" in worse
    assert "its interval above 1, in 4 cases for the codec" in worse


def test_failures_are_listed_by_reason_errors_first(rows: list[dict[str, Any]], results: Results) -> None:
    table = tables.failures(results)
    assert table is not None
    assert sum(column(table, "rows")) == sum(row["status"] != "ok" for row in rows)
    assert set(column(table, "reason")) == {"v1 has no headers", "v1 has no zstd"}
    broken = results.all.copy()
    first = broken.index[broken["status"] == "ok"][0]
    broken.loc[first, ["status", "error"]] = ["error", "it broke"]
    failed = tables.failures(Results(broken))
    assert failed is not None
    assert failed.rows[0][0] == "error"
    assert failed.rows[0][-1] == "it broke"
    assert " 1 failed" in tables.failures_sentence(Results(broken))


def test_a_run_without_cpu_or_codecs_still_has_tables(results: Results) -> None:
    bare = Results(results.all[(results.all["kind"] == "bytes") & (results.all["codec"] == "none")])
    assert tables.control(bare) is None
    assert tables.compressed_slice(bare).empty
    verdict = tables.verdict(bare)
    assert verdict is not None
    assert set(column(verdict, "encode CPU")) == {None}


def test_fields_are_stored_as_json_that_adds_up(results: Results) -> None:
    row = results.uncompressed.iloc[0]
    assert sum(json.loads(row["field_bytes"]).values()) == row["size_bytes"]
