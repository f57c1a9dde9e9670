"""Tables hold what docs/terms.md says: numbers of hand-made rows, computed by hand."""

import re
from typing import Any, Final

import pytest

from kfbench.errors import InvalidConfig
from kfbench.measure.cpu import Interval
from kfbench.present.rows import Rows
from tests.present.made import Row, built, cells, counted, failed, rows_of, timed

V2: Final = {"format": "v2"}
BYTES: Final = {"kind": "bytes"}
SIZES: Final = [
    counted("v1", 1500), counted("v2", 2000), counted("v3", 1900),
    counted("v2", 1200, 10), counted("v3", 2352, 10, records=20), counted("floor", 1020, kind="floor"),
]  # fmt: skip


def metric(name: str, made: Rows | list[Row] = SIZES, /, **view: Any) -> dict[Any, Any]:
    return cells(built(made, **{"metrics": [name], "where": BYTES, "base": V2, **view}).table)


def test_bytes_are_per_record_and_relative_to_the_base() -> None:
    """Ten records of 100 bytes: v2 takes 200 bytes per record alone in a batch, and 120 among ten."""
    assert metric("size") == {1: {"v1": 150, "v2": 200, "v3": 190}, 10: {"v1": None, "v2": 120, "v3": 117.6}}
    assert metric("overhead")[1] == {"v1": 50, "v2": 100, "v3": 90}
    assert metric("ratio")[10] == {"v1": None, "v3": pytest.approx(0.98)}
    assert metric("saving")[1] == {"v1": 0.25, "v2": 0.0, "v3": pytest.approx(0.05)}
    assert metric("records_per_batch")[10]["v2"] == 10


def test_the_floor_is_a_format_of_its_own_and_the_last_one() -> None:
    found = metric("overhead", where={"kind": ["bytes", "floor"]})
    assert list(found[1].items()) == [("v1", 50), ("v2", 100), ("v3", 90), ("floor", 2)]


def test_a_base_may_differ_in_codec_and_batch_size() -> None:
    """Each number is divided by that of v2 alone in its batch without a codec: 200 bytes."""
    rows = [*SIZES, counted("v2", 500, 10, codec="zstd", level=3), counted("v3", 400, 10, codec="zstd", level=3)]
    base = {"format": "v2", "batch_size": 1, "with_codec": "none"}
    found = metric("saving", rows, rows=["batch_size"], columns=["format", "with_codec"], base=base)
    assert found[10] == {
        "v1, none": None, "v2, none": 0.4, "v3, none": pytest.approx(0.412), "v2, zstd 3": 0.75, "v3, zstd 3": 0.8,
    }  # fmt: skip


def test_a_time_ratio_is_the_median_of_the_ratios_of_rounds() -> None:
    """The rounds have the ratios 4, 0.5 and 1. The medians of the times, 300 and 200, have 1.5."""
    rows = [timed("v2", [100, 200, 300]), timed("v3", [400, 100, 300])]
    found = metric("time_ratio", rows, where={})[1]["v3"]
    assert isinstance(found, Interval) and (found.low, found.median, found.high) == (0.5, 1.0, 4.0)
    assert metric("ratio_of_medians", rows, where={})[1]["v3"] == 1.5
    assert metric("ns", rows, where={})[1] == {"v2": 20, "v3": 30}
    twice = [rows[0], timed("v3", [400, 100, 300], inner_loops=2)]
    assert metric("time_ratio", twice, where={})[1]["v3"].median == 0.5


def test_a_conversion_is_in_cpu_seconds_per_gib_that_comes_in() -> None:
    """One KiB in takes 1 µs: a GiB takes a second. What goes out does not count."""
    row = timed("v2", [1000] * 3, kind="broker", operation="convert", to_format="v3", source_bytes=1024, size_bytes=512)
    found = metric("conversion", [row], where={"kind": "broker"}, columns=["to_format"], base={})
    assert found[1]["v3"] == pytest.approx(1000e-9 / 1024 * 2**30)


def test_the_base_itself_has_a_column_only_where_its_number_tells_something() -> None:
    shown = [{"metric": "ratio", "hides_base": False}]
    assert metric("ratio", metrics=shown)[1]["v2"] == 1.0
    assert "v2" not in metric("ratio")[1] and "v2" in metric("saving")[1]


def test_without_the_base_there_is_no_ratio_and_a_ratio_needs_one() -> None:
    lonely = [row for row in SIZES if row["format"] != "v2"]
    assert built(lonely, metrics=["ratio"], where=BYTES, base=V2).table is None
    assert metric("size", lonely)[1] == {"v1": 150, "v3": 190}
    with pytest.raises(InvalidConfig, match=r"made\.toml: table made: ratio needs a base"):
        built(SIZES, metrics=["ratio"], where=BYTES).table  # noqa: B018


def workloads(**ratios: list[float | None]) -> list[Row]:
    """Return sizes of three workloads with these ratios to v2."""
    found = [counted("v2", 1000, workload=f"w{i}") for i in range(3)]
    for name, each in ratios.items():
        found += [counted(name, round(1000 * ratio), workload=f"w{i}") for i, ratio in enumerate(each) if ratio]
    return found


@pytest.mark.parametrize(
    ("how", "expected"),
    [("mean", 0.8), ("least", 0.4), ("most", 1.6), ("median", 0.8), ("count", 3), ("sum", 2.8)],
)
def test_a_number_over_members_is_joined_as_declared(how: str, expected: float) -> None:
    """The geometric mean of 0.4, 0.8 and 1.6 is 0.8; their arithmetic mean is 0.93."""
    rows = workloads(v3=[0.4, 0.8, 1.6])
    found = metric("ratio", rows, over=["workload"], metrics=[{"metric": "ratio", "how": how}])
    assert found[1]["v3"] == pytest.approx(expected)


def test_a_mean_needs_all_members_and_other_joins_take_what_there_is() -> None:
    rows = workloads(v1=[0.5, None, 0.5], v3=[0.4, 0.8, 1.6])
    assert metric("ratio", rows, over=["workload"])[1] == {"v1": None, "v3": pytest.approx(0.8)}
    counts = [{"metric": "ratio", "how": "count"}]
    assert metric("ratio", rows, over=["workload"], metrics=counts)[1] == {"v1": 2, "v3": 3}


def test_two_arms_for_one_cell_are_an_error_that_names_table_and_metric() -> None:
    rows = [*SIZES, counted("v3", 1000, codec="zstd", level=3)]
    with pytest.raises(InvalidConfig, match=r"made\.toml: table made: 2 arms feed one cell of size"):
        metric("size", rows)
    assert metric("size", rows, where={**BYTES, "with_codec": "zstd 3"}) == {1: {"v3": 100}}


def test_a_metric_may_have_columns_arms_and_a_name_of_its_own() -> None:
    metrics = [
        {"metric": "size", "name": "bytes of v2", "columns": [], "of": V2},
        {"metric": "ratio", "name": "{format} again", "of": {"format": ["v1", "v3"]}},
    ]
    assert metric("", metrics=metrics)[1] == {
        "bytes of v2": 200, "v1 again": 0.75, "v3 again": pytest.approx(0.95)
    }  # fmt: skip


def test_rows_and_columns_are_in_the_order_of_the_declaration_or_else_in_their_own() -> None:
    names = ("enriched", "v3", "v0", "v2")
    rows = [counted(name, 1000, batch) for batch in (10, 2, 1) for name in names]
    found = metric("size", rows)
    assert list(found) == [1, 2, 10] and list(found[1]) == ["v0", "v2", "v3", "enriched"]
    found = metric("size", rows, order={"batch_size": [10, 1], "format": ["enriched", "v3"]})
    assert list(found) == [10, 1, 2] and list(found[1]) == ["enriched", "v3", "v0", "v2"]


def test_a_column_with_few_numbers_is_hidden_unless_kafka_or_v3_is_in_it() -> None:
    rows = [counted("v2", 1000, batch) for batch in (1, 2, 5, 10)]
    rows += [counted(name, 1000) for name in ("v0", "kip98")] + [counted("enriched", 1000, batch) for batch in (1, 2)]
    assert set(metric("size", rows, least_share=0.5)[1]) == {"v0", "v2", "enriched"}
    assert set(metric("size", rows)[1]) == {"v0", "v2", "enriched", "kip98"}


def test_at_the_reference_other_axes_have_their_defaults() -> None:
    """Two axes move. A table of one of them has no row of the other, unless the axis is left free."""
    rows = [counted("v2", 1000, batch) for batch in (1, 100)]
    rows += [counted("v2", 2000, 100, key_bytes=64), counted("v2", 3000, 1, key_bytes=64)]
    assert metric("size", rows, at="reference") == {1: {"v2": 100}, 100: {"v2": 100}}
    assert metric("size", rows, at="reference", rows=["key_bytes"]) == {16: {"v2": 100}, 64: {"v2": 200}}
    both = cells(built(rows, where=BYTES, at="reference", rows=["batch_size", "key_bytes"]).table, keys=2)
    assert both[1, 64] == {"v2": 300} and len(both) == 4
    with pytest.raises(InvalidConfig, match="2 arms"):
        metric("size", rows, at="reference", free=["key_bytes"])


def test_conditions_are_values_lists_of_them_and_missing_values() -> None:
    rows = rows_of([*SIZES, counted("v2", 900, None, workload="w")])
    assert len(rows.select({**BYTES, "format": ["v1", "v3"]})) == 3
    assert rows.select({"batch_size": "null"})["workload"].tolist() == ["w"]
    assert len(rows.select({"batch_size": ["null", 10]})) == 3
    assert len(rows.select({"format": "v0"})) == 0 and len(rows.select({"format": "any"})) == 7
    assert set(rows.select({"population": "named"})["label"]) == {"w"}


def test_a_failure_is_no_number_and_its_reason_can_be_shown() -> None:
    rows = [*SIZES[:3], failed(counted("v0", 0), "skipped", "v0 has no room")]
    assert set(metric("size", rows)[1]) == {"v1", "v2", "v3"}
    shown = [{"metric": name, "name": name} for name in ("size", "work", "losses")]
    found = metric("", rows, where={**BYTES, "status": "any"}, rows=["format"], columns=[], metrics=shown)
    assert found["v0"] == {"size": None, "work": "skipped", "losses": "v0 has no room"}


def test_the_second_timing_of_the_base_is_in_no_table() -> None:
    rows = [timed("v2", [100] * 3), timed("v2", [300] * 3, arm="aa"), timed("v3", [200] * 3)]
    assert metric("ns", rows, where={}) == {1: {"v2": 10, "v3": 20}}
    assert metric("time_ratio", rows, where={})[1]["v3"].median == 2.0


def test_times_of_another_host_are_left_out_and_bytes_stay() -> None:
    rows = [timed(name, [100] * 3, batch) for name in ("v2", "v3") for batch in (1, 2, 10)]
    rows[5] = timed("v3", [900] * 3, 10, host="there")
    rows[2] = timed("v2", [900] * 3, 10, host="there")
    found = rows_of([*rows, counted("v2", 2000, 10, host="there")])
    assert list(metric("ns", found, where={"kind": "cpu"})) == [1, 2]
    assert metric("size", found) == {10: {"v2": 200}}
    assert len(found.left_out) == 2 and set(found.left_out["host"]) == {"there"}


def test_a_host_that_only_failed_leaves_nothing_out() -> None:
    rows = [timed("v2", [100] * 3), failed(timed("v3", [100] * 3, host="there"))]
    assert rows_of(rows).left_out.empty


@pytest.mark.parametrize("made", [SIZES, [failed(row) for row in SIZES]], ids=["rows", "no rows"])
@pytest.mark.parametrize(
    ("view", "why"),
    [
        ({"where": {"formt": "v2"}}, "no column formt; did you mean format?"),
        ({"base": {"formt": "v2"}}, "no column formt; did you mean format?"),
        ({"rows": ["batch_sizes"]}, "no column batch_sizes; did you mean batch_size?"),
        ({"over": ["batch_sizes"]}, "no column batch_sizes; did you mean batch_size?"),
        ({"metrics": ["overheads"]}, "no metric overheads; did you mean overhead?"),
        ({"metrics": [{"metric": "size", "of": {"formt": "v2"}}]}, "no column formt; did you mean format?"),
        ({"metrics": [{"metric": "size", "columns": ["formt"]}]}, "size: no column formt; did you mean format?"),
        ({"metrics": [{"metric": "size", "name": "{formt}"}]}, "size: no column formt; did you mean format?"),
        ({"headings": {"formt": "f"}}, "a heading of formt, which is no column of its rows"),
        ({"order": {"formt": ["v2"]}}, "an order of formt, which is no column of it; did you mean format?"),
    ],
)
def test_an_unknown_name_is_an_error_with_the_nearest_word(made: list[Row], view: dict[str, Any], why: str) -> None:
    with pytest.raises(InvalidConfig, match=re.escape(f"made.toml: table made: {why}")):
        metric("size", made, **view)


def test_a_mean_of_negative_numbers_is_an_error() -> None:
    with pytest.raises(InvalidConfig, match=r"table made: saving has numbers below or at 0"):
        metric("saving", workloads(v3=[1.5, 0.5, 0.5]), over=["workload"])


def test_no_rows_are_no_table() -> None:
    assert built(SIZES, where={"kind": "cpu"}).table is None
    assert built(SIZES, where={"kind": "cpu"}).row_keys == []
