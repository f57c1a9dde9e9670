"""asv's parameters are literal, so that its histories go on; here they are held to what kfbench has."""

import inspect
import json
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from benchmarks import broker, formats, workloads
from kfbench.codecs import CODECS
from kfbench.formats import FORMATS
from kfbench.workloads import BLOCK_RECORDS
from kfbench.workloads.catalogue import WORKLOADS

ROOT = Path(__file__).parents[1]
CLASSES = [
    found
    for module in (formats, broker, workloads)
    for name, found in inspect.getmembers(module, inspect.isclass)
    if found.__module__ == module.__name__ and not name.startswith("_")  # which asv passes over
]
PREFIXES = ("time_", "track_")


def test_every_format_and_codec_is_benchmarked() -> None:
    assert set(formats.FORMAT_NAMES) == set(FORMATS)
    assert set(formats.CODEC_NAMES) == set(CODECS)


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


def test_there_is_something_to_run() -> None:
    assert {each.__name__ for each in CLASSES} == {
        "Encode", "Decode", "Size", "Overhead", "Compressed", "Append", "Convert", "Compact",
        "Shapes", "Payload", "Made",
    }  # fmt: skip


def parameters(benchmark: Any) -> list[tuple[Any, ...]]:
    """All of a format's and a workload's; of a broker's path, which has three methods, those of no codec and of one."""
    every = list(product(*benchmark.params))
    return every if benchmark.__module__ != broker.__name__ else [each for each in every if each[-1] in ("none", "lz4")]


@pytest.mark.parametrize("benchmark", CLASSES, ids=lambda each: str(each.__name__))
def test_a_benchmark_runs_for_every_parameter(benchmark: Any) -> None:
    methods = [name for name in dir(benchmark) if name.startswith(PREFIXES)]
    assert methods and benchmark.version
    assert len(benchmark.params) == len(benchmark.param_names)
    ran = 0
    for params in parameters(benchmark):
        each = benchmark()
        try:
            if hasattr(each, "setup"):
                each.setup(*params)
        except NotImplementedError:  # asv skips these
            continue
        for method in methods:
            found = getattr(each, method)(*params)
            if method.startswith("time_"):
                assert found is None and benchmark.timer.__name__ == "process_time"
            else:
                assert found >= 0 and (hasattr(benchmark, "unit") or getattr(benchmark, method).unit)
        ran += 1
    assert ran >= 19


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


def test_asv_installs_what_is_locked() -> None:
    conf = json.loads((ROOT / "asv.conf.json").read_text())
    assert any("requirements.lock" in command for command in conf["install_command"])
    assert (ROOT / conf["benchmark_dir"] / "__init__.py").is_file()
    for plugin in conf["plugins"]:
        assert (ROOT / (plugin.lstrip(".").replace(".", "/") + ".py")).is_file()


def test_asv_knows_this_machine_without_asking(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from asv.machine import Machine, MachineCollection  # type: ignore[import-untyped]

    from tools import asv_machine

    monkeypatch.setenv("HOME", str(tmp_path))
    asv_machine.setup()
    written = (tmp_path / ".asv-machine.json").read_text()
    assert MachineCollection.load(Machine.get_unique_machine_name())["num_cpu"]
    asv_machine.setup()
    assert (tmp_path / ".asv-machine.json").read_text() == written
