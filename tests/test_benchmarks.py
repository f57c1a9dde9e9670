"""asv's parameters are literal, so that its histories go on; here they are held to what kfbench has."""

import inspect
import json
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from benchmarks import formats
from kfbench.codecs import CODECS
from kfbench.formats import FORMATS

ROOT = Path(__file__).parents[1]
CLASSES = [found for _, found in inspect.getmembers(formats, inspect.isclass) if found.__module__ == formats.__name__]


def test_every_format_and_codec_is_benchmarked() -> None:
    assert set(formats.FORMAT_NAMES) == set(FORMATS)
    assert set(formats.CODEC_NAMES) == set(CODECS)


def test_the_first_parameters_stay_where_they_are() -> None:
    """Append only: asv finds a history by the position and the value of its parameters."""
    assert formats.FORMAT_NAMES[:6] == ("v0", "v1", "v2", "v3", "v3-attributes-only", "v3-header-only")
    assert formats.BATCH_SIZES[:4] == (1, 10, 100, 1000)
    assert formats.VALUE_BYTES[:3] == (10, 100, 1000)
    assert formats.CODEC_NAMES[:5] == ("none", "gzip", "snappy", "lz4", "zstd")


def test_there_is_something_to_run() -> None:
    assert {each.__name__ for each in CLASSES} == {"Encode", "Decode", "Size", "Overhead", "Compressed"}


@pytest.mark.parametrize("benchmark", CLASSES, ids=lambda each: str(each.__name__))
def test_a_benchmark_runs_for_every_parameter(benchmark: Any) -> None:
    (method,) = [name for name in vars(benchmark) if name.startswith(("time_", "track_"))]
    assert benchmark.version
    assert len(benchmark.params) == len(benchmark.param_names)
    if method.startswith("time_"):
        assert benchmark.timer.__name__ == "process_time"
    else:
        assert benchmark.unit
    ran = 0
    for params in product(*benchmark.params):
        each = benchmark()
        try:
            if hasattr(each, "setup"):
                each.setup(*params)
        except NotImplementedError:  # asv skips these
            continue
        found = getattr(each, method)(*params)
        assert (found is None) if method.startswith("time_") else found > 0
        ran += 1
    assert ran >= 20


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
