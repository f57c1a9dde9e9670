"""A stack belongs to the right part of a broker's CPU time, and a thread's time is divided by its samples."""

import json
from pathlib import Path
from typing import Any

import pytest

from kfbench.formats import FORMATS
from kfbench.workloads.grid import GridPoint
from tools.broker_profile import __main__ as command
from tools.broker_profile.page import FILE, PAGE, Stored, answer, blocks, processors, share_of, validation_share
from tools.broker_profile.parts import (
    CODEC,
    CRC,
    FORMAT,
    GC,
    JFR,
    JIT,
    LOG,
    NETWORK,
    OTHER,
    PARTS,
    REQUESTS,
    TABLE,
    TLS,
    UNKNOWN,
    is_append,
    is_validation,
    part_of,
    part_of_thread,
)
from tools.broker_profile.session import (
    SETTINGS,
    Absent,
    Plan,
    Setting,
    Tools,
    Unsteady,
    check_batches,
    java_version,
    main_version,
)
from tools.broker_profile.stacks import Stack, cpu_time, parse
from tools.broker_profile.threads import Thread

KAFKA = "org.apache.kafka"
RECORD = f"{KAFKA}.common.record.internal"
UTILS = f"{KAFKA}.common.utils.internals"
STORAGE = f"{KAFKA}.storage.internals.log"
VALIDATING = (
    f"{STORAGE}.LogValidator.validateMessagesAndAssignOffsetsCompressed",
    f"{STORAGE}.LogValidator.validateMessagesAndAssignOffsets",
    f"{STORAGE}.UnifiedLog.lambda$append$1",
    f"{STORAGE}.UnifiedLog.append",
    f"{STORAGE}.UnifiedLog.appendAsLeader",
    "kafka.cluster.Partition.$anonfun$appendRecordsToLeader$1",
)
ITERATING = (
    f"{UTILS}.ByteUtils.readUnsignedVarint",
    f"{UTILS}.ByteUtils.readVarint",
    f"{RECORD}.DefaultRecord.readPartiallyFrom",
    f"{RECORD}.DefaultRecordBatch$StreamRecordIterator.readNext",
    *VALIDATING,
)
# Stacks of a recorded Kafka 4.4.0 on JDK 25, the top first.
RECORDED = {
    ITERATING: FORMAT,
    (
        "net.jpountz.lz4.LZ4JNI.LZ4_decompress_safe",
        f"{KAFKA}.common.compress.Lz4BlockInputStream.readBlock",
        f"{UTILS}.ChunkedBytesStream.fill",
        *ITERATING,
    ): CODEC,
    (
        "java.lang.Integer.equals",
        "java.util.HashMap.getNode",
        "java.util.HashMap.get",
        f"{UTILS}.BufferSupplier$DefaultSupplier.get",
        f"{KAFKA}.common.compress.Lz4BlockInputStream.<init>",
        *VALIDATING,
    ): CODEC,
    VALIDATING: FORMAT,
    VALIDATING[2:]: LOG,
    (
        "java.util.zip.CRC32C.update",
        f"{UTILS}.Checksums.update",
        f"{UTILS}.Crc32C.compute",
        f"{RECORD}.DefaultRecordBatch.computeChecksum",
        f"{RECORD}.DefaultRecordBatch.isValid",
        f"{STORAGE}.UnifiedLog.analyzeAndValidateRecords",
    ): CRC,
    (
        "sun.nio.ch.FileDispatcherImpl.transferTo0",
        "sun.nio.ch.FileChannelImpl.transferToDirectInternal",
        "sun.nio.ch.FileChannelImpl.transferTo",
        f"{KAFKA}.common.network.PlaintextTransportLayer.transferFrom",
        f"{RECORD}.FileRecords.writeTo",
    ): NETWORK,
    (
        "sun.nio.ch.UnixFileDispatcherImpl.pread0",
        "sun.nio.ch.IOUtil.read",
        "sun.nio.ch.FileChannelImpl.readInternal",
        f"{KAFKA}.common.network.SslTransportLayer.transferFrom",
        f"{RECORD}.FileRecords.writeTo",
    ): LOG,
    ("sun.nio.ch.IOUtil.write", "sun.nio.ch.FileChannelImpl.implWrite", f"{RECORD}.MemoryRecords.writeFullyTo"): LOG,
    ("sun.nio.ch.SocketDispatcher.read0", "sun.nio.ch.IOUtil.read", "sun.nio.ch.SocketChannelImpl.read"): NETWORK,
    (
        "java.util.concurrent.locks.ReentrantLock.lock",
        "sun.security.ssl.SSLEngineImpl.wrap",
        f"{KAFKA}.common.network.SslTransportLayer.write",
    ): TLS,
    ("java.util.HashMap.get", f"{KAFKA}.common.protocol.ApiKeys.forId", "kafka.network.Processor.run"): REQUESTS,
    ("java.util.concurrent.ThreadPoolExecutor.getTask", "java.lang.Thread.run"): OTHER,
    (): UNKNOWN,
}


@pytest.mark.parametrize("frames", RECORDED, ids=lambda frames: frames[0] if frames else "none")
def test_a_stack_belongs_to_its_topmost_known_frame(frames: tuple[str, ...]) -> None:
    assert part_of(frames) == RECORDED[frames]


def test_validation_and_append_are_found_below_the_part() -> None:
    assert is_validation(ITERATING) and is_append(ITERATING)
    assert not is_validation(VALIDATING[2:]) and is_append(VALIDATING[2:])
    assert not is_append(VALIDATING[5:])


def test_every_row_of_the_table_can_match() -> None:
    assert {part for part, *_ in TABLE} <= {*PARTS}
    assert all(part_of((f"{prefix}X",)) == part for part, prefix, _ in TABLE)


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("C2 CompilerThre", JIT),
        ("G1 Conc#0", GC),
        ("GC Thread#1", GC),
        ("JFR Sampler", JFR),
        ("data-plane-kafk", OTHER),
    ],
)
def test_threads_of_the_jvm_have_their_part(name: str, part: str) -> None:
    assert part_of_thread(name) == part


def test_a_sample_weighs_as_much_as_its_threads_cpu_time() -> None:
    socket = next(frames for frames, part in RECORDED.items() if part == NETWORK)
    stacks = [Stack(3, 1, ITERATING), Stack(1, 1, socket), Stack(1, 2, socket), Stack(9, 3, ITERATING)]
    # Thread 3 ended, thread 4 has no samples.
    threads = {1: Thread("a", 4_000), 2: Thread("b", 500), 4: Thread("c", 70), 5: Thread("GC Thread#0", 6)}
    found = cpu_time(stacks, threads)
    assert found.parts_ns == {FORMAT: 3_000, NETWORK: 1_500, OTHER: 70, GC: 6}
    assert found.validation_ns == {FORMAT: 3_000} and found.append_ns == 3_000


def test_the_readers_lines_are_parsed() -> None:
    found = parse("lost\t2\nbiased\t1\n4\t17\ta.B.c;d.E.f\n1\t-1\t\n")
    assert found == ([Stack(4, 17, ("a.B.c", "d.E.f")), Stack(1, -1, ())], 2, 1)


def test_the_version_of_a_jdk(tmp_path: Path) -> None:
    assert java_version(tmp_path) == "0"
    (tmp_path / "release").write_text('IMPLEMENTOR="X"\nJAVA_VERSION="25.0.3"\n')
    assert java_version(tmp_path) == "25.0.3"
    assert [main_version(version) for version in ("25.0.3", "26-ea", "0")] == [25, 26, 0]


def row(batch_size: int, **parts_ns: int) -> dict[str, Any]:
    parts = {name.replace("_", " "): cpu_ns for name, cpu_ns in parts_ns.items()}
    cell = {"security": "plaintext", "codec": "lz4", "batch_size": batch_size, "cpu": "a processor"}
    counts = {"samples": 1_200, "lost": 30, "biased": 20, "unresolved": 1, "seconds": 10.0, "machine_busy": 0.42}
    return {**cell, **counts, "parts_ns": parts, "validation_ns": {CODEC: 5, LOG: 50}, "append_ns": 110}


def test_shares_leave_out_the_jit_compiler_and_have_a_spread() -> None:
    rows = [row(10, codec=codec, network=100 - codec, JIT_compiler=900, JFR=7) for codec in (10, 40, 20)]
    stored = Stored({"runs": [*rows, row(100, codec=50, CRC=10, network=40)]})
    assert [setting.batch_size for setting in stored.by_setting] == [10, 100]
    small, large = stored.by_setting
    assert str(stored.spread(small, share_of(CODEC))) == "20.0 (10.0–40.0)"
    assert stored.range_of(share_of(CODEC, CRC)) == (20, 60) and stored.highest(share_of(CODEC)) == large
    assert stored.spread(large, validation_share).mid == 5  # the log is not saved
    assert "At this load, **20.0 % to 60.0 %**" in answer(stored)


def test_every_part_of_the_page_is_written_from_the_stored_runs(tmp_path: Path) -> None:
    machine = {"cpu": "a processor", "cores": 2, "system": "Linux"}
    facts = {"measured": "2026-11-26T10:00:00+00:00", "kafka": "4.4.0", "java": "25.0.3", "jvm_options": "-Xmx1g"}
    load = {"workload": "user-activity", "partitions": 4, "rounds_per_s": 250, "environment": machine, "failed": [{}]}
    rows = [row(10, codec=codec, network=100 - codec, JIT_compiler=30) for codec in (10, 40, 20)]
    file = tmp_path / "profile.json"
    file.write_text(json.dumps({**facts, **load, "runs": rows}), encoding="utf-8")
    texts = {block.name: text for block, text in blocks(file)}
    line = (
        "| plaintext, lz4, 10 records per batch | 0.0 (0.0–0.0) | 20.0 (10.0–40.0) | 0.0 (0.0–0.0) | 20.0 (10.0–40.0) "
    )
    assert texts["format, codec and CRC"].splitlines()[2:] == [line + "| 5.0 (5.0–5.0) | 50.0 (50.0–50.0) |"]
    assert "| 0.0 | 20.0 | 0.0 | 80.0 |" in texts["all parts"]
    assert "Runs per setting: 3, 3 in all, 10.0 s each. 1 failed." in texts["run"]
    assert "Of all 3,600, 3 have no stack" in texts["run"]
    assert "it had 30 %" in texts["run"] and "42 % busy" in texts["run"]
    assert "2 cores, Linux\n- a processor\n" in texts["run"]


def test_settings_of_another_processor_are_named() -> None:
    stored = Stored({"runs": [row(1, GC=1), row(10, GC=1), row(100, GC=1) | {"cpu": "another"}]})
    assert processors(stored) == "- a processor\n- For plaintext, lz4, 100 records per batch: another"


def test_the_page_is_up_to_date() -> None:
    page = PAGE.read_text(encoding="utf-8")
    for block, text in blocks():
        assert block.spliced(page, text) == page, f"{block.name} is old: run `python -m tools.broker_profile --page`"


@pytest.mark.skipif(not FILE.is_file(), reason="no profile is stored")
def test_five_runs_of_every_setting_are_stored() -> None:
    found = Stored(json.loads(FILE.read_text(encoding="utf-8"))).by_setting
    assert {setting: len(rows) for setting, rows in found.items()} == dict.fromkeys(SETTINGS, 5)
    assert all(len({row["cpu"] for row in rows}) == 1 for rows in found.values())


@pytest.mark.parametrize("options", [["--runs", "3"], ["--only", "TLS-lz4-10"], ["--rate", "50"], ["--warm-up", "1"]])
def test_other_runs_than_planned_need_a_file_of_their_own(options: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["profile", *options])
    with pytest.raises(SystemExit, match="2"):
        command.main()


def test_a_run_that_fails_is_tried_again_and_then_stored(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def missing(*_: object) -> None:
        raise Unsteady("half of the records")

    monkeypatch.setattr(command, "profile", missing)
    said: list[str] = []
    (found,) = command.measured(
        SETTINGS[:1], Tools(jars=tmp_path, classes=tmp_path, java=tmp_path), Plan(), said.append
    )
    assert found == (SETTINGS[0], "half of the records")
    assert sum("does not count" in line for line in said) == command.ATTEMPTS and "failed" in said[-1]


HEAD: dict[str, Any] = {
    "kafka": "4.4.0",
    "measured": "now",
    "environment": dict.fromkeys(("cpu", *command.SAME_MACHINE), "this") | {"cpu_model": None} | {"load_1_min": 1.0},
}


def test_resuming_measures_only_the_missing_runs(tmp_path: Path) -> None:
    rows = [setting._asdict() | {"cpu": "this"} for setting in (*SETTINGS[:3], *SETTINGS[:1])]
    file = tmp_path / "profile.part"
    file.write_text(command.text(HEAD | {"measured": "then"}, rows, []), encoding="utf-8")
    found = command.stored(file, HEAD)["runs"]
    assert found == rows == command.kept_rows(rows, SETTINGS, 2, "this")
    assert command.missing_runs(SETTINGS[:4], 2, found) == [SETTINGS[3], *SETTINGS[1:4]]
    assert not command.missing_runs(SETTINGS[:1], 2, found)
    assert command.kept_rows(rows, SETTINGS, 2, "other") == [rows[0], rows[3]]  # a setting is of one processor
    assert command.kept_rows(rows, SETTINGS[2:3], 2, "other") == [*rows[:2], rows[3]]


def test_failures_of_an_earlier_session_are_kept_and_do_not_fail_this_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    rows = [setting._asdict() | {"cpu": "this"} for setting in SETTINGS]
    failed = [command.Failed(SETTINGS[0], "half of the records").row()]
    file = tmp_path / "profile.json"
    file.write_text(command.text(HEAD, rows, failed), encoding="utf-8")
    monkeypatch.setattr("tools.broker_profile.session.tools", lambda: None)
    monkeypatch.setattr(command, "facts", lambda *_: HEAD)
    monkeypatch.setattr("sys.argv", ["profile", "--resume", "--runs", "1", "--out", str(file)])
    command.main()
    assert command.stored(file, HEAD)["failed"] == failed


def test_runs_of_another_plan_or_system_are_not_resumed(tmp_path: Path) -> None:
    file = tmp_path / "profile.part"
    file.write_text(command.text(HEAD, [], []), encoding="utf-8")
    with pytest.raises(Absent, match=r"another kafka: 4\.4\.0, not 3\.9\.1"):
        command.stored(file, HEAD | {"kafka": "3.9.1"})
    with pytest.raises(Absent, match="another cores"):
        command.stored(file, HEAD | {"environment": HEAD["environment"] | {"cores": "other"}})
    with pytest.raises(Absent, match="no file to resume"):
        command.stored(tmp_path / "none", HEAD)


def test_batches_of_another_size_or_codec_do_not_count(tmp_path: Path) -> None:
    setting = Setting("plaintext", "lz4", 10)
    records = GridPoint(batch_size=10).generate(records=40, seed=1).records
    segment = tmp_path / "segment.log"
    for codec, batch_size in (("lz4", 10), ("zstd", 10), ("lz4", 5)):
        log = FORMATS["v2"].encode(records, batch_size, codec)
        segment.write_bytes(bytes(log))
        if (codec, batch_size) == ("lz4", 10):
            assert check_batches(segment, setting) == len(log.data) / 4
        else:
            with pytest.raises(Unsteady, match=f"plaintext-lz4-10: a batch has {batch_size} records and codec {codec}"):
                check_batches(segment, setting)
