"""Claims about a broker, conversions, and loads of a migration follow from the rows of broker paths."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from kfbench.migration import bills, plans
from kfbench.present.rows import Runs
from kfbench.present.table import Interval
from kfbench.report.sources.broker import Broker, convert_losses
from kfbench.report.sources.claims import broker_claims, claims
from kfbench.report.sources.migration import (
    ALL_OLD,
    PRICES,
    TRAFFIC,
    break_evens,
    costs_of,
    migration,
    migration_break_even,
)
from tests.present.made import runs_of
from tests.report.broker_rows import SIZES, Row, broker_rows, changed

NO_RECOMPRESSION, ZERO_COPY, MERGED, HEAD, FIXED, SAVED, COSTLY, SCAN, OUTWEIGH = (
    "Since the broker only needs to update the message-set header, there is no need to re-compress",
    "To a consumer that supports the format on disk the broker sends with zero-copy transfer",
    "Merging message sets just needs to remember the starting offset and to change the relative offsets",
    "By an index of times the head of a segment can go that is not old enough as a whole",
    "It is the fixed size that allows it",
    "That is an optimization",
    "Up-conversion and (especially) down-conversion have measurable impact",
    "To see whether a reader is too old takes an additional scan of the batches",
    "The benefits of the space savings outweigh the cost incurred for message conversion",
)


def verdicts(runs: Runs) -> dict[str, str]:
    found = broker_claims(runs)
    return dict(zip(found["claim"], found["holds"], strict=True))


def test_claims_are_judged_by_the_rows(broker: Runs) -> None:
    found = verdicts(broker)
    assert len(found) == 17
    wanted = {NO_RECOMPRESSION: "yes", MERGED: "NO", FIXED: "yes", SAVED: "yes", ZERO_COPY: "yes, by construction"}
    assert {claim: found[claim] for claim in wanted} == wanted
    table = broker_claims(broker).set_index("claim")
    assert "17 bytes per batch" in table["measured"][SCAN]
    assert all(
        (holds.startswith("yes")) == (because == "") for holds, because in table[["holds", "because"]].to_numpy()
    )


def _recompress(row: Row) -> None:
    if row["operation"] == "append" and row["format"] == "v1" and row["batch_size"] == 10:
        row["recompressed_bytes"] = 1


def _merge_without_codec(row: Row) -> None:
    if row["operation"] == "compact-merge":
        row["decompressed_bytes"] = row["recompressed_bytes"] = 0


def _in_place(row: Row) -> None:
    if row["operation"] == "append-time" and row.pop("batches_shifted", 0):
        row["batches_in_place"] = 1


def _same_time(row: Row) -> None:
    if row["operation"] == "append":
        row["cpu_ns"] = [100] * 7


def _touch(row: Row) -> None:
    if row["operation"] == "fetch":
        row["read_bytes"] = row["written_bytes"] = 1


def _free_nothing(row: Row) -> None:
    if row["operation"] == "expire-head":
        row["size_bytes"] = row["source_bytes"]


def _read_nothing(row: Row) -> None:
    if row["operation"] == "fetch-scan":
        row["read_bytes"] = 0


@pytest.mark.parametrize(
    ("change", "claim", "verdict"),
    [
        (_recompress, NO_RECOMPRESSION, "in 1 of 2 cases"),
        (_merge_without_codec, MERGED, "yes"),
        (_in_place, FIXED, "NO"),
        (_same_time, SAVED, "NO"),  # a difference within the noise is no saving
        (_touch, ZERO_COPY, "NO"),
        (_free_nothing, HEAD, "NO"),
        (_read_nothing, SCAN, "NO"),
    ],
)
def test_other_rows_give_another_verdict(change: Callable[[Row], None], claim: str, verdict: str) -> None:
    def where_measured(row: Row) -> None:
        if row["status"] == "ok":
            change(row)

    assert verdicts(changed(where_measured))[claim] == verdict


@pytest.mark.parametrize(("times", "verdict"), [(1.2, "yes"), (1.005, "NO")])
def test_conversions_are_compared_by_the_record_and_beyond_the_noise(times: float, verdict: str) -> None:
    """Per GiB, v2 would seem dearer, because a GiB has more records of v2 than of v1."""

    def to_record(row: Row) -> None:
        if row["operation"] == "convert" and row["status"] == "ok":
            is_down = (row["format"], row["to_format"]) == ("v2", "v1")
            row["cpu_ns"] = [round(100_000 * times) if is_down else 100_000] * 7
            row["source_bytes"] = 1_000 if is_down else 100_000
        if row["arm"] == "aa":
            row["cpu_ns"] = [round(each * 1.01) for each in row["cpu_ns"]]

    assert verdicts(changed(to_record))[COSTLY] == verdict


def test_a_claim_without_a_case_and_times_of_several_hosts_have_no_verdict() -> None:
    def unmerged(row: Row) -> None:
        if row["operation"] == "compact-merge" and row.pop("batches_rewritten", 0):
            row["batches_untouched"] = 100

    def elsewhere(row: Row) -> None:
        if row["operation"] == "fetch":
            row["host"] = "there"

    assert MERGED not in verdicts(changed(unmerged)) and SAVED in verdicts(changed(unmerged))
    apart = changed(elsewhere)
    assert not verdicts(apart) and migration(apart).empty and migration_break_even(apart).empty


def test_published_figures_stand_beside_the_real_bytes(broker: Runs) -> None:
    found = claims(broker)
    assert set(found["document"]) == {"kip31", "kip98", "kip931", "enriched"}
    assert set(found["holds"]) == {"yes", "NO"} and all(found["because"][found["holds"] == "NO"])


def test_what_a_conversion_leaves_out_is_listed_with_its_codecs(broker: Runs) -> None:
    found = convert_losses(broker).set_index(["format", "to_format", "lost"])["codecs"]
    assert found["v2", "v0", "timestamps"] == "none and gzip 6"
    assert found["v2", "v1", "v1 has no zstd"] == "zstd 3" and ("v2", "v3", "") not in found


def costs(runs: Runs, plan: str, codec: str = "none", batch_size: int = 100) -> bills.Costs:
    broker = Broker(runs.own)
    (at,) = [arm for arm in broker.cells() if (arm.with_codec, arm.point["batch_size"]) == (codec, batch_size)]
    return costs_of(broker, plans.find(plan), at)


def test_costs_are_those_of_the_rows(broker: Runs) -> None:
    """v2's append takes one unit of 20 ns per record, and a conversion down five."""
    found = costs(broker, "v3")
    down = found.of(plans.Operation("down-convert", "v3", "v2"))
    assert (down.source_bytes, down.target_bytes) == (SIZES["v3"], SIZES["v2"])
    assert down.cpu_ns == pytest.approx(5 * 20 * 1000, rel=0.02)
    assert found.of(plans.Operation("append", "v2", "v2")).cpu_ns == pytest.approx(20 * 1000, rel=0.02)
    assert found.size_bytes == {"v2": SIZES["v2"], "v3": SIZES["v3"]}


def test_an_append_that_converts_has_rows_of_its_own(broker: Runs) -> None:
    """`append` makes one batch of a request of plain messages, `upgrade` a batch of one record from each."""
    found = costs(broker, "kip724")
    append, upgrade = (found.of(plans.Operation(each, "v1", "v2")) for each in ("append", "upgrade"))
    assert append.target_bytes == SIZES["v2"] and append.cpu_ns == pytest.approx(6 * 20 * 1000, rel=0.02)
    assert upgrade.target_bytes == SIZES["v2"] * 3 // 2 and upgrade.cpu_ns == pytest.approx(4 * 20 * 1000, rel=0.02)


@pytest.mark.parametrize(("missing", "plan"), [("append-convert", "kip724"), ("fetch", "v3")])
def test_a_cost_that_the_run_lacks_is_named_and_no_number_is_made_up(missing: str, plan: str) -> None:
    runs = runs_of(row for row in broker_rows() if row["operation"] != missing)
    found = [each for arm, each in break_evens(Broker(runs.own), plans.find(plan)) if arm.codec != "zstd"]
    assert found and all(isinstance(each, str) and each.endswith("was not measured") for each in found)
    phases = migration(runs)
    phases = phases[(phases["plan"] == plan) & (phases["with_codec"] == "none")]
    assert set(phases["phase"]) == {None} and all(phases["reason"])
    assert OUTWEIGH not in verdicts(runs) or missing != "fetch"


def test_a_codec_that_a_format_lacks_is_named(broker: Runs) -> None:
    found = migration_break_even(broker).set_index(["plan", "batch_size", "with_codec"])
    assert "zstd" in found["pays"]["kip31", 100, "zstd 3"]


def test_zero_copy_costs_its_call_whatever_is_handed_on() -> None:
    runs = runs_of(row for row in broker_rows() if row["operation"] != "fetch" or row["codec"] == "none")
    fetch = plans.Operation("zero-copy", "v3", "v3")
    gzip, none = (costs(runs, "v3", codec, 10).of(fetch) for codec in ("gzip 6", "none"))
    assert gzip.cpu_ns == pytest.approx(none.cpu_ns, rel=0.05)
    assert gzip.source_bytes == gzip.target_bytes == SIZES["v3"]


def test_phases_begin_with_old_clients_alone_and_what_is_refused_is_no_saving(broker: Runs) -> None:
    found = migration(broker)
    found = found[(found["batch_size"] == 100) & (found["with_codec"] == "none")].set_index(["plan", "phase"])
    before = found.loc["kip31", "before"]
    assert list(before[["refused_produced", "refused_fetched", "zero_copy"]]) == [0, 0, 100]
    phases = ["before", "phase 1", "canary: that broker", "canary: the cluster", "phase 2"]
    assert list(found.loc["kip31"].index) == phases
    refused = found.loc["kip724", "4.0"]
    assert refused["refused_produced"] == 10 and refused.isna()["bill"] and found.loc["kip724", "3.0"]["bill"] > 0


def test_at_the_break_even_conversions_cost_what_is_saved() -> None:
    def dear(row: Row) -> None:
        if row["operation"] == "convert" and row["status"] == "ok":
            row["cpu_ns"] = [each * 200 for each in row["cpu_ns"]]

    runs = changed(dear)
    found = migration_break_even(runs).set_index(["plan", "batch_size", "with_codec"]).loc["v3", 100, "none"]
    share = found["share"]
    assert isinstance(share, Interval) and 0 < share.low < share.median < share.high < 100
    assert found["pays"] == f"below {share.median:.{0 if share.median >= 10 else 1}f} %"
    plan, paid = plans.find("v3"), costs(runs, "v3")

    def asked(phase: str, traffic: bills.Traffic) -> float:
        """Return what down-conversion, storage and network cost together."""
        load = bills.load(plan, plan.phase(phase), paid, traffic)
        counted = replace(load, append_cpu_s=0.0, fetch_cpu_s=load.down_convert_cpu_s)
        return float(bills.bill(counted, traffic, PRICES).total)

    at: Any = replace(TRAFFIC, old_consumers=share.median / 100)
    assert asked(plan.goal, at) == pytest.approx(asked(plan.before, ALL_OLD))
    assert verdicts(runs)[OUTWEIGH] != "yes"
