"""Claims about a broker, conversions, and loads of a migration follow from the published rows of broker paths."""

from dataclasses import replace
from typing import Any, Final

import numpy as np
import pytest

from kfbench.measure.cpu import Interval
from kfbench.migration import bills, plans
from kfbench.money import Traffic
from kfbench.present.rows import Runs
from kfbench.report.sources.broker import BrokerArms, convert_losses
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
from tests.present.made import Row, runs_of
from tests.report.conftest import broker_rows

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


def changed(where: Row, change: Row) -> Runs:
    """Return a run of broker paths in which the rows with numbers and these values have others."""
    where = where | {"status": "ok"}
    return runs_of(row | change if where.items() <= row.items() else row for row in broker_rows())


def verdicts(runs: Runs) -> dict[str, str]:
    found = broker_claims(runs)
    return dict(zip(found["claim"], found["holds"], strict=True))


def test_claims_are_judged_by_the_rows(broker: Runs) -> None:
    found = broker_claims(broker).set_index("claim")
    assert len(found) == 17 and "17 bytes per batch" in found["measured"][SCAN]
    wanted = {NO_RECOMPRESSION: "yes", MERGED: "NO", HEAD: "yes", ZERO_COPY: "yes, by construction"}
    assert {claim: found["holds"][claim] for claim in wanted} == wanted
    assert all(
        (holds.startswith("yes")) == (because == "") for holds, because in found[["holds", "because"]].to_numpy()
    )


CHANGES: Final[list[tuple[Row, Row, str, str]]] = [
    ({"operation": "append", "format": "v1", "codec": "gzip"}, {"recompressed_bytes": 1}, NO_RECOMPRESSION, "in "),
    ({"operation": "compact-merge"}, {"decompressed_bytes": 0, "recompressed_bytes": 0}, MERGED, "yes"),
    ({"operation": "append-time"}, {"batches_shifted": 0, "batches_in_place": 1}, FIXED, "NO"),
    ({"operation": "append"}, {"cpu_ns": [100] * 19}, SAVED, "NO"),  # a difference within the noise is no saving
    ({"operation": "fetch"}, {"read_bytes": 1, "written_bytes": 1}, ZERO_COPY, "NO"),
    ({"operation": "expire-head"}, {"size_bytes": 1 << 40}, HEAD, "NO"),  # nothing is freed
    ({"operation": "fetch-scan"}, {"read_bytes": 0}, SCAN, "NO"),
]


@pytest.mark.parametrize(("where", "change", "claim", "verdict"), CHANGES)
def test_other_rows_give_another_verdict(where: Row, change: Row, claim: str, verdict: str) -> None:
    assert verdicts(changed(where, change))[claim].startswith(verdict)


@pytest.mark.parametrize(("times", "verdict"), [(2.0, "yes"), (1.005, "NO")])
def test_conversions_are_compared_by_the_record_and_beyond_the_noise(times: float, verdict: str) -> None:
    """Per GiB, v2 would seem dearer, because a GiB has more records of v2 than of v1."""

    def converted(row: Row) -> Row:
        if (row["operation"], row["status"]) != ("convert", "ok"):
            return row
        is_down = (row["format"], row["to_format"]) == ("v2", "v1")
        numbers = {"records": 1_000, "inner_loops": 1, "source_bytes": 1_000 if is_down else 100_000}
        return row | numbers | {"cpu_ns": [round(100_000 * (times if is_down else 1))] * 7}

    assert verdicts(runs_of(map(converted, broker_rows())))[COSTLY] == verdict


def test_a_claim_without_a_case_and_times_of_several_hosts_have_no_verdict() -> None:
    found = verdicts(changed({"operation": "compact-merge"}, {"batches_rewritten": 0, "batches_untouched": 100}))
    assert MERGED not in found and SAVED in found
    apart = changed({"operation": "fetch"}, {"host": "there"})
    assert not verdicts(apart) and migration(apart).empty and migration_break_even(apart).empty


def test_published_figures_stand_beside_the_real_bytes(broker: Runs) -> None:
    found = claims(broker)
    assert set(found["document"]) == {"kip31", "kip98", "kip931", "enriched"}
    assert set(found["holds"]) == {"yes", "NO"} and all(found["because"][found["holds"] == "NO"])


def test_what_a_conversion_leaves_out_is_listed_with_its_codecs(broker: Runs) -> None:
    found = convert_losses(broker).set_index(["format", "to_format", "lost"])["codecs"]
    assert found["v2", "v0", "timestamps"] == "none and lz4 9"
    assert found["v2", "v1", "v1 has no zstd"] == "zstd 3" and ("v2", "v3", "") not in found


def costs(runs: Runs, plan: str, codec: str = "none") -> bills.Costs:
    broker = BrokerArms(runs.own)
    (at,) = [arm for arm in broker.cells() if (arm.with_codec, arm.point["batch_size"]) == (codec, 100)]
    return costs_of(broker, plans.find(plan), at)


@pytest.mark.parametrize(
    ("plan", "operation", "path"),
    [
        ("v3", plans.Operation("down-convert", "v3", "v2"), "convert"),
        ("v3", plans.Operation("append", "v2", "v2"), "append"),
        # `append` makes one batch of a request of plain messages, `upgrade` a batch of one record from each.
        ("kip724", plans.Operation("append", "v1", "v2"), "append-convert"),
        ("kip724", plans.Operation("upgrade", "v1", "v2"), "convert"),
    ],
)
def test_costs_are_those_of_the_rows(plan: str, operation: plans.Operation, path: str, broker: Runs) -> None:
    _, name, to = operation
    at = {"operation": path, "format": name, "to_format": None if name == to else to, "codec": "none", "arm": "measure",
          "batch_size": 100, "value_bytes": 100, "timestamp_spread_ms": 0}  # fmt: skip
    (row,) = (row for row in broker_rows() if at.items() <= row.items())
    found = costs(broker, plan).of(operation)
    assert (found.source_bytes, found.target_bytes) == (row["source_bytes"], row["size_bytes"])
    assert found.cpu_ns == pytest.approx(np.median(row["cpu_ns"]) / row["inner_loops"])


@pytest.mark.parametrize(("missing", "plan"), [("append-convert", "kip724"), ("fetch", "v3")])
def test_a_cost_that_the_run_lacks_is_named_and_no_number_is_made_up(missing: str, plan: str) -> None:
    runs = runs_of(row for row in broker_rows() if row["operation"] != missing)
    found = [each for arm, each in break_evens(BrokerArms(runs.own), plans.find(plan)) if arm.codec != "zstd"]
    assert found and all(isinstance(each, str) and each.endswith("was not measured") for each in found)
    phases = migration(runs)
    phases = phases[(phases["plan"] == plan) & (phases["with_codec"] == "none")]
    assert set(phases["phase"]) == {None} and all(phases["reason"])
    assert OUTWEIGH not in verdicts(runs) or missing != "fetch"


def test_a_codec_that_a_format_lacks_is_named(broker: Runs) -> None:
    found = migration_break_even(broker).set_index(["plan", "batch_size", "with_codec"])
    assert "zstd" in found["pays"]["kip31", 100, "zstd 3"]


def test_zero_copy_costs_its_call_whatever_is_handed_on(broker: Runs) -> None:
    """Fetches were measured without a codec only."""
    fetch = plans.Operation("zero-copy", "v3", "v3")
    lz4, none = (costs(broker, "v3", codec).of(fetch) for codec in ("lz4 9", "none"))
    assert lz4.cpu_ns == pytest.approx(none.cpu_ns, rel=0.05) and lz4.source_bytes == lz4.target_bytes
    assert lz4.source_bytes == costs(broker, "v3", "lz4 9").size_bytes["v3"] < none.source_bytes


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
    runs = runs_of(
        row | {"cpu_ns": [200 * ns for ns in row["cpu_ns"]]} if (row["operation"], row["status"]) == ("convert", "ok")
        else row for row in broker_rows()
    )  # fmt: skip
    found = migration_break_even(runs).set_index(["plan", "batch_size", "with_codec"]).loc["v3", 100, "none"]
    share = found["share"]
    assert isinstance(share, Interval) and 0 < share.low < share.median < share.high < 100
    assert found["pays"] == f"below {share.median:.{0 if share.median >= 10 else 1}f} %"
    plan, paid = plans.find("v3"), costs(runs, "v3")

    def asked(phase: str, traffic: Traffic) -> float:
        """Return what down-conversion, storage and network cost together."""
        load = bills.load(plan, plan.phase(phase), paid, traffic)
        counted = replace(load, append_cpu_s=0.0, fetch_cpu_s=load.down_convert_cpu_s)
        return float(counted.bill(traffic, PRICES).total)

    at: Any = replace(TRAFFIC, old_consumers=share.median / 100)
    assert asked(plan.goal, at) == pytest.approx(asked(plan.before, ALL_OLD))
    assert verdicts(runs)[OUTWEIGH] != "yes"
