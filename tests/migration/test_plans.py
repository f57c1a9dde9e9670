"""Migration plans follow the sentences of the KIPs, quoted above each check, and the broker paths."""

from typing import NamedTuple

import numpy as np
import pytest

from kfbench import Records, read_log
from kfbench.batches import BatchFields
from kfbench.broker.append import append
from kfbench.broker.fetch import fetch
from kfbench.codecs import CODECS
from kfbench.errors import IllegalCombination, InvalidConfig, Refused
from kfbench.formats import FORMATS
from kfbench.migration.plans import (
    PLANS,
    Cell,
    Phase,
    Plan,
    Row,
    check_codec,
    find,
    lost,
    matrix,
    on_fetch,
    on_produce,
    operations,
    refuses_idempotent,
)

KIP31, KIP724, V3 = (PLANS[name] for name in ("kip31", "kip724", "v3"))
PHASES = [(plan, phase) for plan in PLANS.values() for phase in plan.phases]


class Step(NamedTuple):
    action: str
    format: str | None


def produced(plan: Plan, phase: str, producer: str, codec: str = "lz4") -> Step:
    cell = on_produce(plan.phase(phase), producer, codec)
    return Step(cell.action, cell.format)


def fetched(plan: Plan, phase: str, stored: str, consumer: str, codec: str = "lz4") -> Step:
    cell = on_fetch(plan.phase(phase), stored, consumer, codec)
    return Step(cell.action, cell.format)


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
    assert fetched(KIP31, "phase 2", "v0", "v0") == (
        "copy",
        "v0",
    )  # it has v0 already, which the broker finds by reading it
    assert fetched(KIP31, "phase 2", "v0", "v1") == ("zero-copy", "v0")


def test_a_canary_down_converts_for_everyone() -> None:
    # "It will only see ProduceRequest/FetchRequest V1 from other brokers and clients."
    rows = [row for row in matrix(KIP31, "lz4") if row.phase == "canary"]
    assert {(row.producer, row.consumer) for row in rows} == {("v0", "v0")}
    # "at that point the broker needs to do down conversion for all the fetch requests."
    assert not any(row.zero_copy for row in rows)
    assert {row.fetch.action for row in rows if row.stored == "v1"} == {"down-convert"}


def test_before_phase_1_v1_is_refused() -> None:
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


def test_3_0_does_not_read_the_batches_on_disk() -> None:
    # "The current heuristics to detect whether a down-conversion is required rely on an additional scan [...] the
    # heuristics are no longer useful and we will always down-convert if the fetch request is v3 or lower."
    assert fetched(KIP724, "before 3.0", "v0", "v0") == ("scan", "v0")
    assert fetched(KIP724, "before 3.0, v2", "v1", "v1") == ("scan", "v1")
    # KafkaApis skips the iteration if the reader knows the topic's format.
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


@pytest.mark.compiled_only
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
            assert produced(V3, phase, new).action == produced(KIP31, phase, old, "none").action
    for phase in ("phase 1", "phase 2"):
        for stored, consumer in (("v0", "v0"), ("v0", "v1"), ("v1", "v0"), ("v1", "v1")):
            if stored in KIP31.phase(phase).stored:
                newer = {"v0": "v2", "v1": "v3"}
                found = fetched(V3, phase, newer[stored], newer[consumer])
                assert found.action == fetched(KIP31, phase, stored, consumer).action


def test_a_client_that_asks_speaks_no_newer_format_than_the_broker() -> None:
    before = V3.phase("before")
    assert on_produce(before, "v3", "lz4") == Cell(action="in place", spoken="v2", format="v2")
    assert on_fetch(before, "v2", "v3", "lz4") == Cell(action="zero-copy", spoken="v2", format="v2")


def test_every_combination_is_there_once() -> None:
    for plan in PLANS.values():
        keys = [(row.phase, row.stored, row.producer, row.consumer) for row in matrix(plan)]
        assert len(keys) == len(set(keys))
        clients = {phase.name: 1 if phase.only_old else len(plan.formats) ** 2 for phase in plan.phases}
        assert len(keys) == sum(len(phase.stored) * clients[phase.name] for phase in plan.phases)


@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
def test_a_refused_request_has_an_error_and_any_other_has_a_format(plan: Plan) -> None:
    for row in matrix(plan, "gzip"):
        for cell in (row.produce, row.fetch):
            assert (cell.error is not None) == (cell.action == "refused")
            assert (cell.format is None) == (cell.action in ("refused", "unreadable"))
        assert row.to_dict()["zero_copy"] == (row.fetch.action in ("zero-copy", "scan"))


def test_losses_of_a_step() -> None:
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


def test_unknown_names() -> None:
    with pytest.raises(InvalidConfig, match=r"no plan 'kip32' \(plans: kip31, kip724, v3\)"):
        find("kip32")
    with pytest.raises(InvalidConfig, match=r"kip31: no phase 'phase 3' \(phases: before, phase 1, canary, phase 2\)"):
        KIP31.phase("phase 3")
    assert find("v3") is V3


def test_rows_become_plain_values() -> None:
    row = matrix(KIP31, "lz4")[0]
    assert isinstance(row, Row)
    assert row.to_dict()["produce"] == {
        "action": "recompress", "spoken": "v0", "format": "v0", "lost": (), "error": None,
        "idempotent": None,
    }  # fmt: skip
    assert set(FORMATS) >= {name for plan in PLANS.values() for name in plan.formats}


RECORDS = Records.from_lists([b"value %d" % i for i in range(12)], timestamps_ms=list(range(1_000, 1_012)))
CELLS = [
    pytest.param(plan, phase, codec, id=f"{plan.name}-{phase.name}-{codec}")
    for plan, phase in PHASES
    for codec in CODECS
    if all(codec in FORMATS[name].capabilities.codecs for name in plan.formats)
]


@pytest.mark.sampled
@pytest.mark.parametrize(("plan", "phase", "codec"), CELLS)
def test_append_takes_the_action_of_its_cell(plan: Plan, phase: Phase, codec: str) -> None:
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


@pytest.mark.sampled
@pytest.mark.parametrize(("plan", "phase", "codec"), CELLS)
def test_fetch_takes_the_action_of_its_cell(plan: Plan, phase: Phase, codec: str) -> None:
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


def test_a_codec_that_an_old_reader_does_not_know_is_refused_with_the_same_error() -> None:
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
