"""asv's parameters are literal, so that its histories go on; here they are held to what kfbench has."""

import inspect
import tracemalloc
from itertools import product
from math import isnan
from pathlib import Path
from typing import Any

import pytest

from benchmarks import break_even, broker, codecs, formats, reports, workloads
from kfbench.codecs import CODECS
from kfbench.formats import FORMATS
from kfbench.measure.noise import TIMED_KINDS
from kfbench.sweep.grid import load_profile
from kfbench.workloads import BLOCK_RECORDS
from kfbench.workloads.catalogue import WORKLOADS

CLASSES: list[Any] = [
    found
    for module in (formats, break_even, codecs, broker, workloads, reports)
    for name, found in inspect.getmembers(module, inspect.isclass)
    if found.__module__ == module.__name__ and not name.startswith("_")  # which asv passes over
]
PREFIXES = ("time_", "peakmem_", "track_")


def test_every_format_and_codec_is_benchmarked() -> None:
    assert set(formats.FORMAT_NAMES) == set(FORMATS)
    assert set(formats.CODEC_NAMES) == set(CODECS)
    assert set(codecs.FRAMINGS) == set(codecs.BY_FRAMING) == {*CODECS, "lz4-v0"}


def test_every_format_whose_size_depends_on_the_batch_has_its_break_even() -> None:
    def size(name: str, batch: int) -> int:
        sample: Any = formats.sample
        made = sample(batch_size=batch)
        return int(FORMATS[name].size(made.records, made.bounds).sum())

    assert set(break_even.FORMAT_NAMES) == {name for name in FORMATS if size(name, 1) != size(name, 100)}


def test_blocks_that_are_rendered_are_those_of_the_profile() -> None:
    found = {grid.name: grid for grid in load_profile(reports.PROFILE).grids}
    measured = {kind for block in reports.BLOCKS for kind in found[block].measure}
    assert not measured & set(TIMED_KINDS)  # they take longer


def test_every_workload_of_the_catalogue_is_benchmarked() -> None:
    assert set(workloads.NAMES) == set(WORKLOADS)
    assert workloads.RECORDS[1] == BLOCK_RECORDS


def test_the_first_parameters_stay_where_they_are() -> None:
    """Append only: asv finds a history by the position and the value of its parameters."""
    assert formats.FORMAT_NAMES[:6] == ("v0", "v1", "v2", "v3", "v3-attributes-only", "v3-header-only")
    assert formats.BATCH_SIZES[:4] == (1, 10, 100, 1000)
    assert formats.VALUE_BYTES[:3] == (10, 100, 1000)
    assert broker.TARGET_NAMES[:4] == ("v0", "v1", "v2", "v3") and set(broker.TARGET_NAMES) <= set(FORMATS)
    assert workloads.NAMES[:19] == (
        "cdc-debezium", "cloudevents", "cluster-metadata", "compacted-changelog", "connect-internal",
        "consumer-offsets", "iot-telemetry", "kv-etc", "kv-mixgraph", "kv-ycsb", "large-payload", "log-shipping",
        "omb-100b", "omb-1kb", "out-of-order", "producer-perf", "service-events", "transactional", "user-activity",
    )  # fmt: skip
    assert workloads.RECORDS[:2] == (1_000, 65_536)
    assert formats.CODEC_NAMES[:5] == ("none", "gzip", "snappy", "lz4", "zstd")
    assert break_even.FORMAT_NAMES[:10] == (
        "v2", "v3", "v3-attributes-only", "v3-header-only", "v3-unsigned", "v3-headers-first", "v3-tagged",
        "v3-batch-headers", "v3-full", "kip98",
    )  # fmt: skip
    assert break_even.OTHER_NAMES[:3] == ("v0", "v1", "v2")
    assert codecs.FRAMINGS[:6] == ("none", "gzip", "snappy", "lz4", "zstd", "lz4-v0")
    assert reports.BLOCKS[:3] == ("batch-value", "ablation", "workloads")


def test_there_is_something_to_run() -> None:
    assert {each.__name__ for each in CLASSES} == {
        "Encode", "Decode", "DecodeMetadata", "ReadTimes", "Fetch", "Size", "Overhead", "BreakEven", "Compressed",
        "Memory", "Compress", "Decompress", "Append", "Convert", "Compact", "Shapes", "Payload", "Made", "Render",
    }  # fmt: skip


def parameters(benchmark: Any) -> list[tuple[Any, ...]]:
    """All of a format's and a workload's; of a broker's path, which has three methods, those of no codec and of one."""
    every = list(product(*benchmark.params))
    return every if benchmark.__module__ != broker.__name__ else [each for each in every if each[-1] in ("none", "lz4")]


@pytest.mark.parametrize("benchmark", CLASSES, ids=lambda each: str(each.__name__))
def test_a_benchmark_runs_for_every_parameter(benchmark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(formats, "MANY", 2 * formats.RECORDS)
    monkeypatch.chdir(tmp_path)
    methods = [name for name in dir(benchmark) if name.startswith(PREFIXES)]
    assert methods and benchmark.version
    assert len(benchmark.params) == len(benchmark.param_names)
    cached = (benchmark().setup_cache(),) if hasattr(benchmark, "setup_cache") else ()
    ran = 0
    for params in parameters(benchmark):
        each = benchmark()
        try:
            if hasattr(each, "setup"):
                each.setup(*cached, *params)
        except NotImplementedError:  # asv skips these
            continue
        for method in methods:
            found = getattr(each, method)(*cached, *params)
            if method.startswith("track_"):
                assert (found >= 0 or isnan(found)) and (hasattr(benchmark, "unit") or getattr(benchmark, method).unit)
            else:
                assert found is None
                assert not method.startswith("time_") or benchmark.timer.__name__ == "process_time"
        ran += 1
    assert ran == len(reports.BLOCKS) if benchmark is reports.Render else ran >= 14


def test_what_a_path_writes_and_opens_is_tracked() -> None:
    append: Any = broker.Append()
    append.setup("v0", "lz4")
    assert append.track_written_bytes("v0", "lz4") > 20 and append.track_decompressed_bytes("v0", "lz4") == 142
    append.setup("v2", "lz4")
    assert append.track_written_bytes("v2", "lz4") == 12 / 100  # 100 records a batch
    append.setup("v2", "none")
    assert append.track_decompressed_bytes("v2", "none") == 0


def test_what_a_workload_is_made_of_is_tracked() -> None:
    made: Any = workloads.Made()
    assert made.track_records_a_batch("cluster-metadata") == pytest.approx(1.03, rel=0.02)  # as a real one has
    assert made.track_payload_bytes("kv-ycsb") == 23 + 1_000
    payload: Any = workloads.Payload()
    payload.setup("omb-100b")
    assert payload.sample.shapes.payload_bytes == pytest.approx(workloads.PAYLOAD_BYTES, rel=0.13)  # a batch: an eighth


def test_what_a_format_cannot_have_is_passed_over() -> None:
    convert: Any = broker.Convert()
    for given in (("v2", "v1", "zstd"), ("v1", "v2", "zstd")):
        with pytest.raises(NotImplementedError, match="v1 has no zstd"):
            convert.setup(*given)


def test_a_tracked_overhead_is_the_known_one() -> None:
    tracked: Any = formats.Overhead().track_overhead
    assert [tracked("v0", 1), tracked("v1", 100)] == [26, 34]
    assert tracked("v2", 1) - tracked("v3", 1) == 13


def test_a_tracked_break_even_is_the_known_one() -> None:
    tracked: Any = break_even.BreakEven().track_records_a_batch
    assert [tracked("v2", "v0"), tracked("v2", "v1"), tracked("v3", "v2")] == [4, 3, 1]


def test_a_batch_of_one_record_has_nothing_to_share_under_a_codec() -> None:
    made: Any = codecs.Compress()
    ratios = {}
    for framing in codecs.FRAMINGS:
        for batch_size in (1, 100):
            made.setup(framing, batch_size)
            ratios[framing, batch_size] = made.track_ratio()
    assert ratios["none", 1] == ratios["none", 100] == 1
    assert all(ratios[name, 100] < min(ratios[name, 1], 1) for name in codecs.FRAMINGS[1:])
    assert ratios["lz4-v0", 1] == ratios["lz4", 1]  # a checksum of its own, no byte more


def test_memory_is_that_of_many_records() -> None:
    memory, payload_bytes = formats.Memory(), formats.MANY * (16 + 100)

    def peak_bytes(call: Any) -> int:
        tracemalloc.start()
        try:
            call("v2")
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    assert peak_bytes(memory.peakmem_encode) > 2 * payload_bytes  # records and log
    assert payload_bytes < peak_bytes(memory.peakmem_decode) < 3 * payload_bytes
    assert peak_bytes(memory.peakmem_size) < payload_bytes
