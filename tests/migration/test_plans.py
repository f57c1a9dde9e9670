"""Migration plans follow the sentences of the KIPs, quoted above each check, and the broker paths."""

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
    Phase,
    Plan,
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


# (plan, phase, producer or "stored to consumer", codec, action and format), by the sentences of the KIPs. A sentence
# that names no codec has lz4.
STEPS = [
    # KIP-31, phase 1
    # 6a. "When broker sees a producer request V1 (MessageAndOffset = V0), it will decompress the message, assign
    # offsets using absolute offsets and re-compress the message."
    (KIP31, "phase 1", "v0", "lz4", "recompress v0"),
    (KIP31, "phase 1", "v0", "none", "in place v0"),  # nothing to decompress
    # 6b. "When broker sees a producer request V2 (MessageAndOffset = V1), it will decompress the message, assign
    # offsets using absolute offsets and do re-compression. i.e. down-convert the message format"
    (KIP31, "phase 1", "v1", "lz4", "down-convert v0"),
    # 6c. "because the data format on disk is MessageAndOffset V0, it will use the zero-copy transfer to reply with
    # fetch response V1 with MessageAndOffset V0."
    (KIP31, "phase 1", "v0 to v0", "lz4", "zero-copy v0"),
    # 6d. "it will use zero-copy transfer to reply with fetch response V2 with MessageAndOffset V0."
    (KIP31, "phase 1", "v0 to v1", "lz4", "zero-copy v0"),
    # KIP-31, phase 2
    # 2a. "decompress the message, assign offsets using relative offsets and re-compress the message. i.e. up-convert"
    (KIP31, "phase 2", "v0", "lz4", "up-convert v1"),
    # 2b. "it will decompress the message, assign offsets using relative offsets and NOT do re-compression."
    (KIP31, "phase 2", "v1", "lz4", "in place v1"),
    # 2c. "it will NOT use the zero-copy transfer. Instead the broker will read the message from disk, down-convert
    # them to V0 and reply using fetch response V1 with MessageAndOffset V0."
    (KIP31, "phase 2", "v1 to v0", "lz4", "down-convert v0"),
    # 2d. "it will use zero-copy transfer to reply with fetch response V2 with MessageAndOffset V1."
    (KIP31, "phase 2", "v1 to v1", "lz4", "zero-copy v1"),
    # "At the beginning of phase 2, there will be some time the log segment contains both MessageAndOffset V0 and V1.
    # The broker will always do down conversion for FetchRequest V1 and zero-copy transfer for FetchRequest V2."
    (KIP31, "phase 2", "v0 to v0", "lz4", "copy v0"),  # it has v0 already, which the broker finds by reading it
    (KIP31, "phase 2", "v0 to v1", "lz4", "zero-copy v0"),
    # KIP-724, before 3.0: the setting decides. "The current heuristics to detect whether a down-conversion is required
    # rely on an additional scan". KafkaApis skips the scan if the reader knows the topic's format.
    (KIP724, "before 3.0", "v0", "lz4", "up-convert v1"),
    (KIP724, "before 3.0", "v1", "lz4", "in place v1"),
    (KIP724, "before 3.0", "v2", "lz4", "down-convert v1"),
    (KIP724, "before 3.0", "v1 to v0", "lz4", "down-convert v0"),
    (KIP724, "before 3.0", "v1 to v1", "lz4", "zero-copy v1"),
    (KIP724, "before 3.0", "v1 to v2", "lz4", "zero-copy v1"),
    (KIP724, "before 3.0", "v0 to v0", "lz4", "scan v0"),
    (KIP724, "before 3.0, v2", "v1 to v1", "lz4", "scan v1"),
    # KIP-724, 3.0. "Once a broker is upgraded to 3.0 [...] message format version v2 will always be used when [...]
    # Persisting produce records on disk"; "Produce and fetch requests with v0 and v1 message formats will be supported
    # via up-conversion and down-conversion."; "the heuristics are no longer useful and we will always down-convert if
    # the fetch request is v3 or lower."
    (KIP724, "3.0", "v0", "lz4", "up-convert v2"),
    (KIP724, "3.0", "v1", "lz4", "up-convert v2"),
    (KIP724, "3.0", "v2", "lz4", "in place v2"),
    (KIP724, "3.0", "v2 to v0", "lz4", "down-convert v0"),
    (KIP724, "3.0", "v2 to v1", "lz4", "down-convert v1"),
    (KIP724, "3.0", "v2 to v2", "lz4", "zero-copy v2"),
    (KIP724, "3.0", "v0 to v0", "lz4", "copy v0"),
    (KIP724, "3.0", "v1 to v1", "lz4", "copy v1"),
    # KIP-724, 4.0. "Produce requests won't support v2 or lower and up-conversion from message formats v0 and v1 won't
    # be supported."; "Fetch requests won't support v3 or lower and down-conversion to message formats v0 and v1 won't
    # be supported."; "However, v0 and v1 records may be returned if they are stored on disk".
    *((KIP724, "4.0", name, "lz4", "refused UNSUPPORTED_VERSION") for name in ("v0", "v1")),
    (KIP724, "4.0", "v2", "lz4", "in place v2"),
    *((KIP724, "4.0", f"{stored} to {name}", "lz4", "refused UNSUPPORTED_VERSION")
      for stored in ("v0", "v1", "v2") for name in ("v0", "v1")),
    *((KIP724, "4.0", f"{stored} to v2", "lz4", f"zero-copy {stored}") for stored in ("v0", "v1", "v2")),
    # "In a subsequent major release, we would drop support for reading v0 and v1 records from disk."
    (KIP724, "after 4.0", "v0 to v2", "lz4", "unreadable"),
    (KIP724, "after 4.0", "v1 to v2", "lz4", "unreadable"),
    (KIP724, "after 4.0", "v2 to v2", "lz4", "zero-copy v2"),
    # KIP-31: "The proposed protocol is not backward compatible."
    (KIP31, "before", "v1", "lz4", "refused UNSUPPORTED_VERSION"),
    (KIP31, "before", "v0 to v1", "lz4", "refused UNSUPPORTED_VERSION"),
    # Codecs: zstd needs v2 (KIP-110).
    (KIP724, "3.0", "v2 to v1", "zstd", "refused UNSUPPORTED_COMPRESSION_TYPE"),
    (KIP724, "before 3.0", "v2", "zstd", "refused UNSUPPORTED_COMPRESSION_TYPE"),
    # KIP-931. "When old consumer reading the new formatted message, we'll do a downconvert to the older message format
    # like what we did for old consumer accepting message format v1 now." A client that asks speaks no newer format than
    # the broker.
    (V3, "phase 2", "v3 to v2", "lz4", "down-convert v2"),
    (V3, "before", "v3", "lz4", "in place v2"),
    (V3, "before", "v2 to v3", "lz4", "zero-copy v2"),
]  # fmt: skip


@pytest.mark.parametrize(("plan", "phase", "request_", "codec", "wanted"), STEPS)
def test_a_broker_does_what_the_kip_says(plan: Plan, phase: str, request_: str, codec: str, wanted: str) -> None:
    stored, _, consumer = request_.partition(" to ")
    at = plan.phase(phase)
    assert not consumer or stored in at.stored
    done = on_fetch(at, stored, consumer, codec) if consumer else on_produce(at, stored, codec)
    assert " ".join(filter(None, (done.action, done.format, done.error))) == wanted


def test_a_canary_down_converts_for_everyone() -> None:
    # "It will only see ProduceRequest/FetchRequest V1 from other brokers and clients."
    rows = [row for row in matrix(KIP31, "lz4") if row.phase == "canary"]
    assert {(row.producer, row.consumer) for row in rows} == {("v0", "v0")}
    # "at that point the broker needs to do down conversion for all the fetch requests."
    assert not any(row.zero_copy for row in rows)
    assert {row.fetch.action for row in rows if row.stored == "v1"} == {"down-convert"}


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


def test_v3_goes_through_the_phases_of_kip_31() -> None:
    newer = {"v0": "v2", "v1": "v3"}
    for phase in ("phase 1", "canary", "phase 2"):
        at, in_v3 = KIP31.phase(phase), V3.phase(phase)
        for client in newer:
            assert on_produce(in_v3, newer[client], "lz4").action == on_produce(at, client, "none").action
            for stored in at.stored:
                found = on_fetch(in_v3, newer[stored], newer[client], "lz4")
                assert found.action == on_fetch(at, stored, client, "lz4").action


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


def test_wrong_names_and_codecs() -> None:
    for plan in (KIP31, KIP724):
        with pytest.raises(IllegalCombination, match="v0 has no zstd"):
            matrix(plan, "zstd")
    check_codec(V3, "zstd")
    with pytest.raises(InvalidConfig, match=r"no plan 'kip32' \(plans: kip31, kip724, v3\)"):
        find("kip32")
    with pytest.raises(InvalidConfig, match=r"kip31: no phase 'phase 3' \(phases: before, phase 1, canary, phase 2\)"):
        KIP31.phase("phase 3")
    assert find("v3") is V3


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
