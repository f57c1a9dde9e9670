"""The matrix against the sentences of the KIPs, each quoted above what it says, and the arithmetic on top of it."""

from collections.abc import Mapping
from dataclasses import replace
from math import inf, isclose, nan

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from kfbench import Records, read_log
from kfbench.batches import BatchFields
from kfbench.broker.append import append
from kfbench.broker.fetch import fetch
from kfbench.broker.migrate import (
    GIB,
    ONLY_CPU,
    PLANS,
    Bill,
    Cell,
    Cost,
    Costs,
    Counted,
    Load,
    Operation,
    Phase,
    Plan,
    Prices,
    Row,
    Traffic,
    bill,
    break_even,
    check_codec,
    find,
    load,
    loads,
    lost,
    matrix,
    on_fetch,
    on_produce,
    operations,
    refuses_idempotent,
)
from kfbench.codecs import CODECS
from kfbench.errors import IllegalCombination, InvalidConfig, Refused
from kfbench.formats import FORMATS

KIP31, KIP724, V3 = (PLANS[name] for name in ("kip31", "kip724", "v3"))
PHASES = [(plan, phase) for plan in PLANS.values() for phase in plan.phases]


def produced(plan: Plan, phase: str, producer: str, codec: str = "lz4") -> tuple[str, str | None]:
    cell = on_produce(plan.phase(phase), producer, codec)
    return cell.action, cell.format


def fetched(plan: Plan, phase: str, stored: str, consumer: str, codec: str = "lz4") -> tuple[str, str | None]:
    cell = on_fetch(plan.phase(phase), stored, consumer, codec)
    return cell.action, cell.format


# KIP-31


def test_phase_1_writes_v0() -> None:
    # 6a. "When broker sees a producer request V1 (MessageAndOffset = V0), it will decompress the message, assign
    # offsets using absolute offsets and re-compress the message."
    assert produced(KIP31, "phase 1", "v0") == ("recompress", "v0")
    assert produced(KIP31, "phase 1", "v0", "none") == ("in place", "v0")  # nothing to decompress
    # 6b. "When broker sees a producer request V2 (MessageAndOffset = V1), it will decompress the message, assign
    # offsets using absolute offsets and do re-compression. i.e. down-convert the message format"
    assert produced(KIP31, "phase 1", "v1") == ("down-convert", "v0")
    # 6c. "because the data format on disk is MessageAndOffset V0, it will use the zero-copy transfer to reply with
    # fetch response V1 with MessageAndOffset V0."
    assert fetched(KIP31, "phase 1", "v0", "v0") == ("zero-copy", "v0")
    # 6d. "it will use zero-copy transfer to reply with fetch response V2 with MessageAndOffset V0."
    assert fetched(KIP31, "phase 1", "v0", "v1") == ("zero-copy", "v0")


def test_phase_2_writes_v1() -> None:
    # 2a. "decompress the message, assign offsets using relative offsets and re-compress the message. i.e. up-convert"
    assert produced(KIP31, "phase 2", "v0") == ("up-convert", "v1")
    # 2b. "it will decompress the message, assign offsets using relative offsets and NOT do re-compression."
    assert produced(KIP31, "phase 2", "v1") == ("in place", "v1")
    # 2c. "it will NOT use the zero-copy transfer. Instead the broker will read the message from disk, down-convert
    # them to V0 and reply using fetch response V1 with MessageAndOffset V0."
    assert fetched(KIP31, "phase 2", "v1", "v0") == ("down-convert", "v0")
    # 2d. "it will use zero-copy transfer to reply with fetch response V2 with MessageAndOffset V1."
    assert fetched(KIP31, "phase 2", "v1", "v1") == ("zero-copy", "v1")


def test_a_segment_of_both_is_never_zero_copy_for_an_old_reader() -> None:
    # "At the beginning of phase 2, there will be some time the log segment contains both MessageAndOffset V0 and V1.
    # The broker will always do down conversion for FetchRequest V1 and zero-copy transfer for FetchRequest V2."
    assert set(KIP31.phase("phase 2").stored) == {"v0", "v1"}
    assert fetched(KIP31, "phase 2", "v0", "v0") == ("copy", "v0")  # v0 already, but read to see that
    assert fetched(KIP31, "phase 2", "v0", "v1") == ("zero-copy", "v0")


def test_a_canary_down_converts_for_everyone() -> None:
    # "It will only see ProduceRequest/FetchRequest V1 from other brokers and clients."
    rows = [row for row in matrix(KIP31, "lz4") if row.phase == "canary"]
    assert {(row.producer, row.consumer) for row in rows} == {("v0", "v0")}
    # "at that point the broker needs to do down conversion for all the fetch requests."
    assert not any(row.zero_copy for row in rows)
    assert {row.fetch.action for row in rows if row.stored == "v1"} == {"down-convert"}


def test_before_phase_1_nobody_may_speak_v1() -> None:
    # "The proposed protocol is not backward compatible."
    assert on_produce(KIP31.phase("before"), "v1", "lz4").error == "UNSUPPORTED_VERSION"
    assert on_fetch(KIP31.phase("before"), "v0", "v1", "lz4").error == "UNSUPPORTED_VERSION"


# KIP-724


def test_3_0_writes_v2() -> None:
    # "Once a broker is upgraded to 3.0 [...] message format version v2 will always be used when [...] Persisting
    # produce records on disk"; "Produce and fetch requests with v0 and v1 message formats will be supported via
    # up-conversion and down-conversion."
    assert [produced(KIP724, "3.0", name) for name in KIP724.formats] == [
        ("up-convert", "v2"),
        ("up-convert", "v2"),
        ("in place", "v2"),
    ]
    assert fetched(KIP724, "3.0", "v2", "v0") == ("down-convert", "v0")
    assert fetched(KIP724, "3.0", "v2", "v1") == ("down-convert", "v1")
    assert fetched(KIP724, "3.0", "v2", "v2") == ("zero-copy", "v2")


def test_3_0_does_not_look_at_what_is_on_disk() -> None:
    # "The current heuristics to detect whether a down-conversion is required rely on an additional scan [...] the
    # heuristics are no longer useful and we will always down-convert if the fetch request is v3 or lower."
    assert fetched(KIP724, "before 3.0", "v0", "v0") == ("scan", "v0")
    assert fetched(KIP724, "before 3.0, v2", "v1", "v1") == ("scan", "v1")
    # KafkaApis skips the iteration where the topic's format is none that the reader does not know.
    assert fetched(KIP724, "before 3.0", "v1", "v1") == fetched(KIP724, "before 3.0", "v1", "v2") == ("zero-copy", "v1")
    assert fetched(KIP724, "3.0", "v0", "v0") == ("copy", "v0")
    assert fetched(KIP724, "3.0", "v1", "v1") == ("copy", "v1")


def test_before_3_0_the_setting_decides() -> None:
    assert [produced(KIP724, "before 3.0", name) for name in KIP724.formats] == [
        ("up-convert", "v1"),
        ("in place", "v1"),
        ("down-convert", "v1"),
    ]
    assert fetched(KIP724, "before 3.0", "v1", "v0") == ("down-convert", "v0")
    assert fetched(KIP724, "before 3.0", "v1", "v2") == ("zero-copy", "v1")


@pytest.mark.parametrize(("plan", "phase"), PHASES)
def test_new_readers_get_old_data_as_it_is(plan: Plan, phase: Phase) -> None:
    # "Brokers assume that consumers can read all message format versions and brokers never up-convert records when
    # handling fetch responses."
    for row in (row for row in matrix(plan) if row.phase == phase.name and row.fetch.format):
        assert row.fetch.format == min(row.stored, row.fetch.spoken)
        assert row.zero_copy or row.fetch.spoken < phase.writes


def test_a_forced_upgrade_leaves_nothing_old_on_disk() -> None:
    # "If the value is set to 2, the broker will ensure all segments have records with format v2 after log recovery
    # has completed during start-up."
    forced = KIP724.phase("3.0, forced upgrade")
    assert forced.stored == ("v2",)
    upgrades = {(source, target) for path, source, target in operations(KIP724) if path == "upgrade"}
    assert upgrades == {("v0", "v2"), ("v1", "v2")}


def test_4_0_refuses_old_requests() -> None:
    # "Produce requests won't support v2 or lower and up-conversion from message formats v0 and v1 won't be supported."
    assert [produced(KIP724, "4.0", name)[0] for name in KIP724.formats] == ["refused", "refused", "in place"]
    # "Fetch requests won't support v3 or lower and down-conversion to message formats v0 and v1 won't be supported."
    for stored in ("v0", "v1", "v2"):
        assert [fetched(KIP724, "4.0", stored, name)[0] for name in ("v0", "v1")] == ["refused", "refused"]
        # "However, v0 and v1 records may be returned if they are stored on disk in such message format versions."
        assert fetched(KIP724, "4.0", stored, "v2") == ("zero-copy", stored)


def test_after_4_0_old_data_cannot_be_read() -> None:
    # "In a subsequent major release, we would drop support for reading v0 and v1 records from disk."
    assert [fetched(KIP724, "after 4.0", stored, "v2")[0] for stored in ("v0", "v1", "v2")] == [
        "unreadable",
        "unreadable",
        "zero-copy",
    ]


# KIP-931


def test_v3_goes_through_the_same_phases() -> None:
    # "When old consumer reading the new formatted message, we'll do a downconvert to the older message format like
    # what we did for old consumer accepting message format v1 now."
    assert fetched(V3, "phase 2", "v3", "v2") == ("down-convert", "v2")
    for phase in ("phase 1", "canary", "phase 2"):
        for old, new in (("v0", "v2"), ("v1", "v3")):
            mine, theirs = produced(V3, phase, new), produced(KIP31, phase, old, "none")
            assert mine[0] == theirs[0]
    for phase in ("phase 1", "phase 2"):
        for stored, consumer in (("v0", "v0"), ("v0", "v1"), ("v1", "v0"), ("v1", "v1")):
            if stored in KIP31.phase(phase).stored:
                theirs = fetched(KIP31, phase, stored, consumer)
                mine = fetched(V3, phase, {"v0": "v2", "v1": "v3"}[stored], {"v0": "v2", "v1": "v3"}[consumer])
                assert mine[0] == theirs[0]


def test_a_client_that_asks_speaks_no_newer_format_than_the_broker() -> None:
    before = V3.phase("before")
    assert on_produce(before, "v3", "lz4") == Cell(action="in place", spoken="v2", format="v2")
    assert on_fetch(before, "v2", "v3", "lz4") == Cell(action="zero-copy", spoken="v2", format="v2")


# The whole


def test_every_combination_is_there_once() -> None:
    for plan in PLANS.values():
        keys = [(row.phase, row.stored, row.producer, row.consumer) for row in matrix(plan)]
        assert len(keys) == len(set(keys))
        clients = {phase.name: 1 if phase.only_old else len(plan.formats) ** 2 for phase in plan.phases}
        assert len(keys) == sum(len(phase.stored) * clients[phase.name] for phase in plan.phases)


@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
def test_what_is_refused_has_an_error_and_what_is_not_a_format(plan: Plan) -> None:
    for row in matrix(plan, "gzip"):
        for cell in (row.produce, row.fetch):
            assert (cell.error is not None) == (cell.action == "refused")
            assert (cell.format is None) == (cell.action in ("refused", "unreadable"))
        assert row.to_dict()["zero_copy"] == (row.fetch.action in ("zero-copy", "scan"))


def test_what_a_step_loses() -> None:
    assert lost("v1", "v0")[0] == "timestamps"
    assert "headers" in lost("v2", "v1") and "is_control" in lost("v2", "v1") and "producer_id" in lost("v2", "v1")
    assert lost("v0", "v1") == lost("v1", "v2") == lost("v2", "v3") == lost("v3", "v2") == ()
    assert on_fetch(KIP724.phase("3.0"), "v2", "v1", "lz4").lost == lost("v2", "v1")
    assert on_produce(KIP724.phase("before 3.0"), "v2", "lz4").lost == lost("v2", "v1")


def test_zstd_needs_v2() -> None:
    assert on_fetch(KIP724.phase("3.0"), "v2", "v1", "zstd").error == "UNSUPPORTED_COMPRESSION_TYPE"
    assert on_produce(KIP724.phase("before 3.0"), "v2", "zstd").error == "UNSUPPORTED_COMPRESSION_TYPE"
    for plan in (KIP31, KIP724):
        with pytest.raises(IllegalCombination, match="v0 has no zstd"):
            matrix(plan, "zstd")
    check_codec(V3, "zstd")


def test_names_that_there_are_not() -> None:
    with pytest.raises(InvalidConfig, match=r"no plan 'kip32' \(plans: kip31, kip724, v3\)"):
        find("kip32")
    with pytest.raises(InvalidConfig, match=r"kip31: no phase 'phase 3' \(phases: before, phase 1, canary, phase 2\)"):
        KIP31.phase("phase 3")
    assert find("v3") is V3


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("old_producers", 1.01, "old_producers: 1.01 is not 0 to 1"),
        ("old_consumers", -0.1, "old_consumers: -0.1 is not 0 to 1"),
        ("old_data", nan, "old_data: nan is not 0 to 1"),
        ("canary_leaders", 2, "canary_leaders: 2 is not 0 to 1"),
        ("fan_out", inf, "fan_out: inf is not 0 or more"),
        ("replication", 0, "replication: 0 is not 1 or more"),
        ("retention_days", -1, "retention_days: -1 is not 0 or more"),
    ],
)
def test_traffic_that_cannot_be(name: str, value: float, said: str) -> None:
    with pytest.raises(InvalidConfig) as refusal:
        Traffic(**{name: value})  # type: ignore[arg-type]
    assert str(refusal.value) == said


def test_prices_that_cannot_be() -> None:
    for name in ("cpu_core_hour", "storage_gb_month", "network_gb"):
        with pytest.raises(InvalidConfig, match=f"{name}: -1 is not 0 or more"):
            Prices(**{name: -1})


# What the paths do


RECORDS = Records.from_lists([b"value %d" % i for i in range(12)], timestamps_ms=list(range(1_000, 1_012)))
CELLS = [
    pytest.param(plan, phase, codec, id=f"{plan.name}-{phase.name}-{codec}")
    for plan, phase in PHASES
    for codec in CODECS
    if all(codec in FORMATS[name].capabilities.codecs for name in plan.formats)
]


@pytest.mark.parametrize(("plan", "phase", "codec"), CELLS)
def test_append_does_what_a_cell_says(plan: Plan, phase: Phase, codec: str) -> None:
    for producer in plan.formats:
        cell = on_produce(phase, producer, codec)
        if cell.format is None:
            continue
        log = FORMATS[cell.spoken].encode(RECORDS, 4, codec, lossy=True)
        done = append(log, to=cell.format, base_offset=100, from_zero=False, lossy=True)
        batches = done.work.batches
        assert {row.magic for row in read_log(done.data).batches.itertuples()} == {FORMATS[cell.format].magic}
        assert (done.work.in_place, done.work.rewritten) == (
            (batches, 0) if cell.action == "in place" else (0, batches)
        )
        assert (done.work.recompressed_bytes > 0) == (cell.action != "in place" and codec != "none")
        assert (cell.action == "recompress") == (cell.spoken == cell.format and done.work.rewritten > 0)


@pytest.mark.parametrize(("plan", "phase", "codec"), CELLS)
def test_fetch_does_what_a_cell_says(plan: Plan, phase: Phase, codec: str) -> None:
    for stored in phase.stored:
        log = FORMATS[stored].encode(RECORDS, 4, codec, lossy=True)
        for consumer in plan.formats:
            cell = on_fetch(phase, stored, consumer, codec)
            if cell.format is None:
                continue
            if phase.scans or cell.action == "down-convert":
                done = fetch(log, cell.spoken, lossy=True)
            else:
                done = fetch(log, cell.spoken, fmt=phase.writes, scan="never")
            assert done.zero_copy == (cell.action in ("zero-copy", "scan"))
            assert (done.work.read_bytes > 0) == (cell.action != "zero-copy" or phase.scans)
            assert (done.work.rewritten > 0) == (cell.action == "down-convert")
            assert np.array_equal(done.data, log.data) == (cell.action != "down-convert")
            assert {row.magic for row in read_log(done.data).batches.itertuples()} == {FORMATS[cell.format].magic}


def test_a_codec_that_an_old_reader_does_not_know_is_refused_in_the_same_words() -> None:
    log = FORMATS["v2"].encode(RECORDS, 4, "zstd")
    with pytest.raises(Refused) as refusal:
        fetch(log, "v1", lossy=True)
    assert refusal.value.error == on_fetch(KIP724.phase("3.0"), "v2", "v1", "zstd").error
    with pytest.raises(Refused) as refusal:
        append(log, to="v1", lossy=True)
    assert refusal.value.error == on_produce(KIP724.phase("before 3.0"), "v2", "zstd").error


def test_idempotent_producers_are_refused_where_v1_is_written() -> None:
    log = FORMATS["v2"].encode(RECORDS, 4, batch_fields=BatchFields(producer_id=7, producer_epoch=0, base_sequence=0))
    with pytest.raises(Refused) as refusal:
        append(log, to="v1", from_zero=False, lossy=True)
    assert refusal.value.error == on_produce(KIP724.phase("before 3.0"), "v2", "none").idempotent
    assert on_produce(KIP724.phase("before 3.0"), "v1", "none").idempotent is None
    assert on_produce(KIP724.phase("3.0"), "v2", "none").idempotent is None
    assert [refuses_idempotent(plan) for plan in (KIP31, KIP724, V3)] == [True, True, False]


# Loads


def costs_of(plan: Plan, sizes: Mapping[str, int], cpu_ns: Mapping[str, float], codec: str = "lz4") -> Costs:
    """cpu_ns: by path; "append" alone is what an append in place costs, "convert" any conversion."""
    found = {}
    for operation in operations(plan, codec):
        path, source, target = operation
        converts = source != target and path in ("append", "down-convert", "upgrade")
        found[operation] = Cost(
            source_bytes=sizes[source],
            target_bytes=sizes[source] if path in ("copy", "zero-copy", "scan") else sizes[target],
            cpu_ns=cpu_ns["convert" if converts else path],
        )
    return Costs(codec=codec, size_bytes=sizes, operations=found)


SIZES = {"v0": 900, "v1": 1_000, "v2": 800, "v3": 700}
CPU_NS = {
    "append": 100.0,
    "convert": 900.0,
    "zero-copy": 1.0,
    "scan": 20.0,
    "copy": 50.0,
    "down-convert upgraded": 2_000.0,
}


def test_a_phase_in_numbers() -> None:
    costs = costs_of(V3, SIZES, CPU_NS)
    traffic = Traffic(old_producers=0.25, old_consumers=0.5, fan_out=4, replication=3)
    found = load(V3, V3.phase("phase 2"), costs, traffic)
    unit = GIB / 800
    # A follower takes in what the leader sends it.
    assert isclose(found.in_bytes, unit * (0.25 * 800 + 0.75 * 700) + 2 * unit * 700)
    assert isclose(found.disk_bytes, 3 * unit * 700)
    consumed = unit * 4 * (0.5 * 800 + 0.5 * 700)
    assert isclose(found.out_bytes, 2 * unit * 700 + consumed)
    assert isclose(found.zero_copy_bytes, 2 * unit * 700 + unit * 4 * 0.5 * 700)
    assert isclose(found.append_cpu_s, unit * (0.25 * 900 + 0.75 * 100) / 1e9)
    assert isclose(found.fetch_cpu_s, unit * (2 * 1 + 4 * (0.5 * 900 + 0.5 * 1)) / 1e9)
    assert isclose(found.down_convert_cpu_s, unit * 4 * 0.5 * 900 / 1e9)
    assert found.cpu_s == found.append_cpu_s + found.fetch_cpu_s
    assert found.zero_copy_share == found.zero_copy_bytes / found.out_bytes


def test_a_gib_in_the_old_format_takes_a_gib_before() -> None:
    for plan in PLANS.values():
        costs = costs_of(plan, SIZES, CPU_NS)
        found = load(plan, plan.phase(plan.before), costs, Traffic(replication=3))
        assert found == load(plan, plan.phase(plan.before), costs, Traffic(old_producers=1, old_consumers=1))
        assert (found.refused_produced, found.refused_fetched, found.down_convert_cpu_s) == (0, 0, 0)
        assert isclose(found.in_bytes, 3 * GIB)
        assert isclose(found.disk_bytes, 3 * GIB)
        assert found.zero_copy_share == 1


def test_old_data_costs_old_readers_zero_copy() -> None:
    costs = costs_of(KIP31, SIZES, CPU_NS)
    phase = KIP31.phase("phase 2")
    fresh, mixed = (
        load(KIP31, phase, costs, Traffic(old_consumers=1, replication=1, fan_out=1, old_data=share))
        for share in (0, 1)
    )
    assert fresh.zero_copy_share == mixed.zero_copy_share == 0
    assert mixed.fetch_cpu_s < fresh.fetch_cpu_s  # read, but not converted
    young = load(KIP31, phase, costs, Traffic(old_consumers=0, old_data=0.5))
    assert young.zero_copy_share == 1


def test_a_look_at_every_batch_is_charged_to_who_needs_it() -> None:
    costs = costs_of(KIP724, SIZES, CPU_NS)
    phase = KIP724.phase("before 3.0, v2")
    traffic = Traffic(old_consumers=1, old_data=1, replication=1, fan_out=1)
    found = load(KIP724, phase, costs, traffic)
    assert isclose(found.fetch_cpu_s, GIB / 1_000 * CPU_NS["scan"] / 1e9)
    assert found.zero_copy_share == 1
    new = load(KIP724, phase, costs, replace(traffic, old_consumers=0))
    assert isclose(new.fetch_cpu_s, GIB / 1_000 * CPU_NS["zero-copy"] / 1e9)


def test_upgraded_data_is_read_as_large_as_the_upgrade_left_it() -> None:
    traffic = Traffic(old_consumers=0.5, old_data=1, replication=1, fan_out=1)
    for codec in ("none", "lz4"):
        costs = costs_of(KIP724, SIZES, CPU_NS, codec)
        upgrade = Operation("upgrade", "v1", "v2")
        wide = {**costs.operations, upgrade: replace(costs.of(upgrade), target_bytes=1_600)}
        found = load(KIP724, KIP724.phase("3.0, forced upgrade"), replace(costs, operations=wide), traffic)
        assert isclose(found.zero_copy_bytes, GIB / 1_000 * 0.5 * 1_600)
        assert isclose(found.out_bytes, GIB / 1_000 * 0.5 * (1_600 + 1_000))
        # Batches of one have a cost of their own; compressed sets stay what they were.
        down_ns = {"none": 2_000.0, "lz4": 900.0}[codec]
        assert isclose(found.fetch_cpu_s, GIB / 1_000 * 0.5 * (down_ns + CPU_NS["zero-copy"] * 1_600 / 800) / 1e9)
        assert isclose(found.down_convert_cpu_s, GIB / 1_000 * 0.5 * down_ns / 1e9)


def test_what_is_refused_is_neither_stored_nor_read() -> None:
    costs = costs_of(KIP724, SIZES, CPU_NS)
    traffic = Traffic(old_producers=0.25, old_consumers=0.5, fan_out=1, replication=1)
    found = load(KIP724, KIP724.phase("4.0"), costs, traffic)
    assert (found.refused_produced, found.refused_fetched) == (0.25, 0.5)
    assert isclose(found.disk_bytes, 0.75 * GIB / 1_000 * 800)
    assert isclose(found.out_bytes, 0.5 * 0.75 * GIB / 1_000 * 800)
    nobody = load(KIP724, KIP724.phase("4.0"), costs, Traffic(old_producers=1, old_consumers=1))
    assert nobody.zero_copy_share is None
    assert nobody.disk_bytes == 0
    unreadable = load(KIP724, KIP724.phase("after 4.0"), costs, Traffic(old_consumers=0, old_data=0.5))
    assert unreadable.refused_fetched == 0.5


def test_a_canary_in_numbers() -> None:
    costs = costs_of(KIP31, SIZES, CPU_NS)
    traffic = Traffic(canary_leaders=0.25, replication=3)
    found = loads(KIP31, costs, traffic)
    assert list(found) == ["before", "phase 1", "canary: that broker", "canary: the cluster", "phase 2"]
    own = found["canary: that broker"]
    assert own.zero_copy_bytes == 0
    # Its followers write v0, which is what they asked for.
    assert isclose(own.disk_bytes, GIB / 900 * (1_000 + 2 * 900))
    cluster = own * 0.25 + found["phase 1"] * 0.75
    assert cluster == found["canary: the cluster"]
    assert loads(KIP31, costs, replace(traffic, canary_leaders=0))["canary: the cluster"] == found["phase 1"]


def test_a_cost_in_other_units() -> None:
    cost = Cost(source_bytes=GIB // 2, target_bytes=GIB // 4, cpu_ns=3e9)
    assert cost.cpu_s_per_gib == 6
    assert cost.bytes_ratio == 0.5


def test_a_cost_that_was_not_measured() -> None:
    costs = replace(costs_of(V3, SIZES, CPU_NS), operations={})
    with pytest.raises(InvalidConfig, match="no cost of append v2 to v2"):
        load(V3, V3.phase("before"), costs, Traffic())


def test_a_bill_in_numbers() -> None:
    found = Load(append_cpu_s=1_800, fetch_cpu_s=1_800, in_bytes=1e9, out_bytes=2e9, disk_bytes=3e9)
    asked = Prices(cpu_core_hour=2, storage_gb_month=5, network_gb=7)
    month = Traffic(retention_days=365.25 / 12)
    assert bill(found, month, asked) == Bill(cpu=2, storage=15, network=21)
    assert bill(found, month, asked).total == 38


# Break-even

TRAFFICS = st.builds(
    Traffic,
    old_producers=st.floats(0, 1),
    fan_out=st.floats(0.1, 20),
    replication=st.integers(1, 5),
    retention_days=st.floats(0, 400),
)
PRICES = st.builds(
    Prices,
    cpu_core_hour=st.floats(0, 1),
    storage_gb_month=st.floats(0, 1),
    network_gb=st.floats(0, 1),
)
COSTS = st.builds(
    lambda new, append, convert: costs_of(
        V3, {"v2": 1_000, "v3": new}, {"append": append, "convert": convert, "zero-copy": 1, "copy": 10}
    ),
    st.integers(500, 1_500),
    st.floats(1, 1e5),
    st.floats(1, 1e6),
)


def saved_at(share: float, costs: Costs, traffic: Traffic, prices: Prices, counted: Counted) -> float:
    """Before, when everyone was old, against the goal: worked out anew."""
    then = load(V3, V3.phase("before"), costs, replace(traffic, old_producers=1, old_consumers=1))
    now = load(V3, V3.phase("phase 2"), costs, replace(traffic, old_consumers=share))
    before, after = bill(then, traffic, prices), bill(now, traffic, prices)
    if counted == "everything":
        return before.total - after.total
    converting = now.down_convert_cpu_s / 3600 * prices.cpu_core_hour
    return before.storage + before.network - after.storage - after.network - converting


@given(COSTS, TRAFFICS, PRICES, st.sampled_from(["down-conversion", "everything"]))
def test_at_the_break_even_share_both_cost_the_same(
    costs: Costs, traffic: Traffic, prices: Prices, counted: Counted
) -> None:
    found = break_even(V3, costs, traffic, prices, counted)
    ends = saved_at(0, costs, traffic, prices, counted), saved_at(1, costs, traffic, prices, counted)
    near = 1e-9 * load_total(costs, traffic, prices)
    assert found.saved_without == pytest.approx(ends[0], abs=near)
    assert found.saved_with_all == pytest.approx(ends[1], abs=near)
    ends = found.saved_without, found.saved_with_all
    if found.share is None:
        assert found.pays == ("always" if ends[0] >= 0 else "never")
        assert (ends[0] >= 0) == (ends[1] >= 0)
        return
    assert 0 <= found.share <= 1
    scale = max(map(abs, ends)) + load_total(costs, traffic, prices)
    assert abs(saved_at(found.share, costs, traffic, prices, counted)) <= 1e-9 * scale
    assert found.pays == ("below" if ends[0] >= 0 else "above")


def load_total(costs: Costs, traffic: Traffic, prices: Prices) -> float:
    return bill(load(V3, V3.phase("before"), costs, traffic), traffic, prices).total


def reach(costs: Costs, traffic: Traffic, prices: Prices) -> float:
    """Up to which share of old consumers it pays."""
    found = break_even(V3, costs, traffic, prices)
    assume(found.pays != "above")
    return {"always": 1.0, "never": 0.0}.get(found.pays, found.share or 0.0)


# CPU that conversions take, and sizes in which the new format is the smaller.
DEARER = {"append": 100.0, "convert": 5_000.0, "zero-copy": 1.0, "copy": 10.0}
SMALLER = st.integers(700, 999).map(lambda new: costs_of(V3, {"v2": 1_000, "v3": new}, DEARER))


@given(SMALLER, TRAFFICS, PRICES, st.floats(0, 1))
def test_dearer_storage_lets_a_smaller_format_pay_for_longer(
    costs: Costs, traffic: Traffic, prices: Prices, more: float
) -> None:
    dearer = replace(prices, storage_gb_month=prices.storage_gb_month + more)
    assert reach(costs, traffic, dearer) >= reach(costs, traffic, prices) - 1e-9


@given(SMALLER, TRAFFICS, PRICES, st.floats(0, 1))
def test_dearer_cpu_lets_it_pay_for_less_long(costs: Costs, traffic: Traffic, prices: Prices, more: float) -> None:
    dearer = replace(prices, cpu_core_hour=prices.cpu_core_hour + more)
    assert reach(costs, traffic, dearer) <= reach(costs, traffic, prices) + 1e-9


@given(SMALLER, TRAFFICS, PRICES, st.floats(0, 400))
def test_longer_retention_lets_it_pay_for_longer(costs: Costs, traffic: Traffic, prices: Prices, days: float) -> None:
    longer = replace(traffic, retention_days=traffic.retention_days + days)
    assert reach(costs, longer, prices) >= reach(costs, traffic, prices) - 1e-9


def test_what_old_producers_cost_is_not_down_conversion() -> None:
    cheap = costs_of(V3, {"v2": 1_000, "v3": 900}, DEARER)
    up = Operation("append", "v2", "v3")
    dear = replace(cheap, operations={**cheap.operations, up: replace(cheap.of(up), cpu_ns=1e9)})
    assert break_even(V3, dear, Traffic(), Prices()) == break_even(V3, cheap, Traffic(), Prices())
    whole = [break_even(V3, costs, Traffic(), Prices(), "everything").saved_without for costs in (cheap, dear)]
    assert whole[1] < whole[0]


def test_a_format_that_saves_nothing_never_pays() -> None:
    costs = costs_of(V3, {"v2": 1_000, "v3": 1_001}, DEARER)
    assert break_even(V3, costs, Traffic(), Prices()).pays == "never"


def test_a_format_that_costs_nothing_always_pays() -> None:
    costs = costs_of(V3, {"v2": 1_000, "v3": 900}, dict.fromkeys(DEARER, 0.0))
    found = break_even(V3, costs, Traffic(), Prices())
    assert (found.pays, found.share) == ("always", None)


def test_in_cpu_alone_a_conversion_is_never_free() -> None:
    costs = costs_of(V3, {"v2": 1_000, "v3": 500}, DEARER)
    found = break_even(V3, costs, Traffic(old_producers=0), ONLY_CPU, "everything")
    assert found.saved_with_all < 0


def test_kip31_pays_on_the_append() -> None:
    """v1 takes more bytes than v0: what it saves is the recompression that v0 needs for its offsets."""
    cheap = {"append": 100.0, "convert": 5_000.0, "zero-copy": 1.0, "copy": 10.0}
    costs = costs_of(KIP31, SIZES, cheap)
    operation = Operation("append", "v0", "v0")
    recompressing = {**costs.operations, operation: replace(costs.of(operation), cpu_ns=5_000.0)}
    costs = replace(costs, operations=recompressing)
    found = break_even(KIP31, costs, Traffic(old_producers=0), ONLY_CPU, "everything")
    assert 0 < (found.share or 0) < 1


def test_rows_say_it_in_plain_values() -> None:
    row = matrix(KIP31, "lz4")[0]
    assert isinstance(row, Row)
    assert row.to_dict()["produce"] == {
        "action": "recompress", "spoken": "v0", "format": "v0", "lost": (), "error": None,
        "idempotent": None,
    }  # fmt: skip
    assert set(FORMATS) >= {name for plan in PLANS.values() for name in plan.formats}
    said = costs_of(V3, SIZES, CPU_NS).to_dict()
    assert said["operations"][0]["path"] == "append" and said["operations"][0]["cpu_s_per_gib"] > 0
