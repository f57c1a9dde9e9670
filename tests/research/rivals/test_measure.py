"""Sizes and times of rivals: what is lost, crashes or differs is an error, and a rerun gives the same bytes."""

import errno
import hashlib
import time
from dataclasses import replace
from threading import Thread
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from kfbench.batches import BatchFields
from kfbench.errors import IllegalCombination
from kfbench.formats import FORMATS
from kfbench.measure.encode_input import EncodeInput
from kfbench.records import Records
from kfbench.research.rivals import rivals
from kfbench.research.rivals.arrow_ipc import ArrowIpc
from kfbench.research.rivals.base import SCHEMA, to_table
from kfbench.research.rivals.envelope import ENVELOPE_BYTES, open_sealed
from kfbench.research.rivals.measure import RivalFailed, encode_batch, measure_rival, rival_batches
from kfbench.research.rivals.measure_cpu import RIVAL_OPERATIONS, RivalInput, peak_bytes, time_rivals
from kfbench.workloads.catalogue import WORKLOADS
from tests.research.rivals.test_containers import relative

TIMING = {"rounds": 3, "sample_ns": 20_000}


def a_source(codec: str = "none", batch_size: int = 10, records: int = 50) -> EncodeInput:
    sample = replace(WORKLOADS["user-activity"], batch_size=batch_size).generate(records=records, seed=3)
    level = 3 if codec == "zstd" else None
    return EncodeInput(
        records=sample.records, bounds=sample.bounds, codec=codec, level=level, batch_fields=sample.batch_fields
    )


class PanicException(BaseException):
    """An error as a Rust library raises it: its name is PanicException, and it is no Exception."""


class Panics(ArrowIpc):
    name = "panics"

    def encode(self, prepared: Any, codec: str, level: int | None = None) -> bytes:
        raise PanicException("index out of bounds\nbacktrace")


class PanicsLate(ArrowIpc):
    name = "panics-late"

    def fetch(self, container: bytes, i: int) -> Any:
        raise PanicException("late")


class LosesTimes(ArrowIpc):
    name = "loses-times"

    def prepare_table(self, table: pa.Table) -> pa.RecordBatch:
        return super().prepare_table(table.set_column(1, SCHEMA.field(1), pa.array([0] * len(table))))


class Random(ArrowIpc):
    name = "random"
    calls = 0

    def encode(self, prepared: Any, codec: str, level: int | None = None) -> bytes:
        self.calls += 1
        return super().encode(prepared, "none" if self.calls % 2 else "zstd")


class DiskFull(ArrowIpc):
    def encode(self, prepared: Any, codec: str, level: int | None = None) -> bytes:
        raise OSError(errno.ENOSPC, "No space left on device")


class Unreadable(ArrowIpc):
    """pyarrow raises an OSError without a number for a damaged container."""

    def decode(self, container: bytes) -> Any:
        raise OSError("Corrupt footer")


@pytest.mark.parametrize("codec", ["none", "lz4", "zstd"])
def test_a_rerun_gives_the_same_sizes_with_all_headers_counted(codec: str) -> None:
    source = a_source(codec)
    for rival in rivals().values():
        if codec not in rival.codecs:
            with pytest.raises(IllegalCombination):
                measure_rival(rival, source)
            continue
        row = measure_rival(rival, source)
        assert row == measure_rival(rival, source)
        containers = [
            len(
                rival.encode(
                    rival.prepare_table(to_table(relative(source.between(b, b + 1).records))), codec, source.level
                )
            )
            for b in range(5)
        ]
        assert row["size_bytes"] == sum(containers) + 5 * ENVELOPE_BYTES
        assert (row["records"], row["batches"]) == (50, 5)


def test_deltas_are_those_to_the_header_of_a_compacted_batch() -> None:
    records = Records.from_lists([b"a", b"b"], offsets=[105, 109], timestamps_ms=[7, 9])
    source = EncodeInput(records=records, bounds=np.array([0, 2]), batch_fields=BatchFields(base_offset=[100]))
    (batch,) = rival_batches(source)
    times = ArrowIpc().read_times(open_sealed(encode_batch(ArrowIpc(), batch, "none", None)))
    assert times.offset_deltas.tolist() == [5, 9] and times.timestamp_deltas.tolist() == [0, 2]
    assert measure_rival(ArrowIpc(), source)["records"] == 2


def test_a_batch_without_records_is_a_header() -> None:
    bounds = np.array([0, 0, 2])
    records = Records.from_lists([b"a", b"b"])
    row = measure_rival(ArrowIpc(), EncodeInput(records=records, bounds=bounds))
    alone = measure_rival(ArrowIpc(), EncodeInput(records=records, bounds=bounds[1:]))
    assert row["size_bytes"] == alone["size_bytes"] + ENVELOPE_BYTES


@pytest.mark.parametrize(
    ("rival", "message"),
    [
        (Panics(), "^PanicException: index out of bounds$"),
        (PanicsLate(), "^PanicException: late$"),
        (LosesTimes(), "records: decoded data differ"),
        (Random(), "a second run: decoded data differ"),
        (Unreadable(), "OSError: Corrupt footer"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_fails_is_an_error(rival: ArrowIpc, message: str) -> None:
    with pytest.raises(RivalFailed, match=message):
        measure_rival(rival, a_source())


def test_errors_of_the_host_are_not_those_of_a_library() -> None:
    with pytest.raises(OSError, match="No space left"):
        measure_rival(DiskFull(), a_source())


@pytest.mark.parametrize("codec", ["none", "zstd"])
def test_every_arm_and_operation_is_timed_in_the_same_rounds(codec: str) -> None:
    names = ["parquet", "arrow-ipc", "avro-best"]
    formats = [FORMATS["v2"], FORMATS["columnar"]]
    given = RivalInput(formats, [*(rivals()[name] for name in names), LosesTimes()], a_source(codec))
    assert given.failed.keys() == {"loses-times"}
    for operation in RIVAL_OPERATIONS:
        arms = time_rivals(given, operation, **TIMING)
        found = [(arm.columns["format"], arm.columns["arm"]) for arm in arms]
        kafka = [(fmt.name, way) for fmt in formats for way in ("each", "together")]
        searches = [("avro-best", "search")] if operation == "encode" else []
        assert found == [*kafka, *((name, "each") for name in names), *searches, ("v2", "aa")]
        for arm in arms:
            assert arm.samples is not None and len(arm.samples.cpu_ns) == TIMING["rounds"]
            assert arm.columns["call_bytes"] > 0 and arm.columns["operation"] == operation
        assert len({arm.samples.inner_loops for arm in arms if arm.samples}) == 1


class Threaded(ArrowIpc):
    """A library that hashes 4 MB per call, in a thread of its own."""

    name = "threaded"
    data = bytes(4_000_000)

    def encode(self, prepared: Any, codec: str, level: int | None = None) -> bytes:
        thread = Thread(target=hashlib.sha256, args=(self.data,))
        thread.start()
        thread.join()
        return super().encode(prepared, codec, level)


def test_the_time_of_a_librarys_own_threads_counts() -> None:
    given = RivalInput([FORMATS["v2"]], [Threaded(), ArrowIpc()], a_source(batch_size=50))
    timed = {(arm.columns["format"], arm.columns["arm"]): arm.samples for arm in time_rivals(given, "encode", **TIMING)}
    threaded, plain = timed["threaded", "each"], timed["arrow-ipc", "each"]
    assert threaded and plain
    began = time.thread_time_ns()
    hashlib.sha256(Threaded.data)
    hashed_ns = time.thread_time_ns() - began
    assert np.median(threaded.cpu_ns) / threaded.inner_loops > 0.5 * hashed_ns
    assert np.median(plain.cpu_ns) / plain.inner_loops < 0.5 * hashed_ns


class ForgetsRecords(ArrowIpc):
    """A library that returns another record when it is timed than when it was verified."""

    name = "forgets"
    calls = 0

    def fetch(self, container: bytes, i: int) -> Any:
        self.calls += 1
        return super().fetch(container, i if self.calls <= 15 else 0)  # 15: verified once per batch, 3 records each


def test_a_wrong_result_of_a_timed_call_is_an_error_of_its_arm() -> None:
    given = RivalInput([FORMATS["v2"]], [ForgetsRecords(), ArrowIpc()], a_source())
    arms = {(arm.columns["format"], arm.columns["arm"]): arm for arm in time_rivals(given, "fetch-record", **TIMING)}
    failed = arms["forgets", "each"]
    assert failed.samples is None and isinstance(failed.error, RivalFailed)
    assert arms["arrow-ipc", "each"].samples is not None


def test_the_memory_of_a_call_includes_arrows() -> None:
    def in_arrow() -> object:
        return pa.array(np.zeros(1_000_000, np.int64)).cast(pa.int32())

    assert peak_bytes(in_arrow) >= 8_000_000 + 4_000_000
    assert 5_000_000 <= peak_bytes(lambda: bytes(5_000_000)) < 5_100_000
    assert peak_bytes(lambda: None) < 10_000
