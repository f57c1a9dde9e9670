"""The asv benchmarks run for every parameter set, import only public names, and report known numbers."""

import ast
import inspect
import os
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from itertools import product
from math import isnan
from pathlib import Path
from typing import Any, Final

import pytest

import kfbench
from benchmarks import broker, codecs, formats, instructions, samples, workloads
from kfbench import FORMATS
from kfbench.errors import IllegalCombination
from kfbench.measure.callgrind import why_not_counted

ROOT: Final = Path(__file__).parents[1]
PREFIXES: Final = ("time_", "peakmem_", "track_")
CLASSES: Final[list[Any]] = [
    found
    for module in (formats, codecs, broker, workloads, instructions)
    for name, found in inspect.getmembers(module, inspect.isclass)
    if found.__module__ == module.__name__
]
V2_HEADER_BYTES: Final = 61
SHARING_MAGIC: Final = ("enriched", "kip98")  # with v0, v1 or v2: no log shows these formats


def methods(benchmark: Any) -> list[str]:
    return [name for name in dir(benchmark) if name.startswith(PREFIXES)]


# --- What is imported


def imported(path: Path) -> Iterator[tuple[str, str]]:
    """Yield (module, name) of each import of kfbench in a file."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "kfbench":
            yield from ((str(node.module), alias.name) for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names if alias.name.partition(".")[0] == "kfbench")


@pytest.mark.parametrize("path", sorted((ROOT / "benchmarks").glob("*.py")), ids=lambda path: path.name)
def test_benchmarks_import_only_public_names(path: Path) -> None:
    """Only public names are stable. So benchmarks also run on commits whose modules have other names."""
    for module, name in imported(path):
        public = module == "kfbench.errors" or (module == "kfbench" and name in kfbench.__all__)
        assert public, f"{module}: {name}"


# --- What is measured


def is_fetchable(name: str) -> bool:
    many: Any = samples.many
    data, positions = many(name)
    try:
        FORMATS[name].fetch(data, positions, positions[1:] * 0)
    except IllegalCombination:
        return False
    return True


def is_measured(benchmark: Any, parameters: tuple[Any, ...]) -> bool:
    """Return False if the benchmark is not applicable, because the format has no such codec, magic or operation."""
    named = dict(zip(benchmark.param_names, parameters, strict=True))
    names = (
        named["conversion"].split(" to ")
        if "conversion" in named
        else [named[key] for key in ("format",) if key in named]
    )
    if not all(named["codec"] in FORMATS[name].capabilities.codecs for name in names if "codec" in named):
        return False
    if benchmark in (broker.Compact, broker.Convert) and not all(FORMATS[name].has_broker_paths for name in names):
        return False
    if benchmark is formats.BreakEven:
        return bool(named["format"] != named["other"])
    if benchmark is formats.Fetch:
        return is_fetchable(named["format"])
    return benchmark is not formats.ReadLog or not named["format"].startswith(SHARING_MAGIC)


@pytest.mark.parametrize(
    "benchmark",
    [pytest.param(each, marks=[pytest.mark.thorough] * hasattr(each, "setup_cache")) for each in CLASSES],
    ids=lambda each: str(each.__name__),
)
def test_a_benchmark_runs_for_every_parameter_set(benchmark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A parameter set is skipped only if the format cannot do it. A defect is not skipped."""
    if benchmark is instructions.Instructions and (reason := why_not_counted()):
        pytest.skip(reason)
    monkeypatch.setattr(samples, "MANY_RECORDS", 2 * samples.RECORDS)
    monkeypatch.setattr(formats, "MANY_RECORDS", 2 * samples.RECORDS)
    assert methods(benchmark) and benchmark.version
    assert len(benchmark.params) == len(benchmark.param_names)
    cached = [benchmark().setup_cache()] if hasattr(benchmark, "setup_cache") else []
    not_applicable = []
    for parameters in product(*benchmark.params):
        prepared = benchmark()
        try:
            prepared.setup(*cached, *parameters)
        except NotImplementedError:
            not_applicable.append(parameters)
            continue
        for method in methods(benchmark):
            found = getattr(prepared, method)(*cached, *parameters)
            if method.startswith("track_"):
                assert (found >= 0 or isnan(found)) and (hasattr(benchmark, "unit") or getattr(benchmark, method).unit)
            elif method.startswith("time_"):
                assert benchmark.timer.__name__ == "process_time"
    assert not_applicable == [each for each in product(*benchmark.params) if not is_measured(benchmark, each)]
    assert len(not_applicable) < len(list(product(*benchmark.params)))


@pytest.mark.thorough
def test_every_benchmark_of_the_full_lists_runs() -> None:
    program = "from tools.asv_plugin import set_names; set_names(); import os, sys; "
    program += "os.execv(sys.executable, sys.argv[1:])"
    tests = [f"{Path(__file__)}::test_a_benchmark_runs_for_every_parameter_set", "-q", "-p", "no:cacheprovider"]
    tests += ["-k", "not Instructions"]  # valgrind takes ten minutes for them
    command = [sys.executable, "-c", program, sys.executable, "-m", "pytest", *tests]
    done = subprocess.run(
        command, cwd=ROOT, env=os.environ | {"KFBENCH_ASV": "full"}, capture_output=True, text=True, timeout=1800
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{len(CLASSES) - 1} passed" in done.stdout


def test_setup_prepares_once_per_process() -> None:
    """asv calls `setup` before every sample, so it must not prepare twice."""
    encode: Any = formats.Encode()
    encode.setup("v2", 1, "none")
    first = encode.out
    encode.setup("v2", 1, "none")
    assert encode.out is first


def test_what_an_older_commit_lacks_is_skipped() -> None:
    """Each of these errors means that an older commit lacks something. The benchmark is skipped there."""
    append: Any = broker.Append()
    with pytest.raises(NotImplementedError, match="no-such-format"):
        append.setup("no-such-format", "none")
    for error in (ImportError, AttributeError, KeyError, TypeError, IllegalCombination):
        with pytest.raises(NotImplementedError, match=f"{error.__name__}: .*lacked"), samples.lacking():
            raise error("lacked")
    with pytest.raises(NotImplementedError, match="no_such_path"), samples.lacking():
        import_module("kfbench.broker.no_such_path")


def test_a_missing_package_fails() -> None:
    with pytest.raises(ModuleNotFoundError, match="no_such_package"), samples.lacking():
        import_module("no_such_package")


# --- What is tracked


@pytest.mark.parametrize(
    ("benchmark", "parameters", "method", "value"),
    [
        (broker.Append, ("v0", "lz4"), "track_decompressed_bytes", 142),
        (broker.Append, ("v2", "none"), "track_decompressed_bytes", 0),
        (broker.Append, ("v2", "lz4"), "track_written_bytes", 12 / 100),  # 100 records per batch
        (broker.Compact, ("v1", "none"), "track_written_bytes", (34 + 16 + 100) / 2),  # half of the records
        (broker.Convert, ("v2 to v1", "none"), "track_written_bytes", 34 + 16 + 100),
        (workloads.Made, ("cluster-metadata",), "track_records_per_batch", pytest.approx(1.03, rel=0.02)),
        (workloads.Made, ("kv-ycsb",), "track_payload_bytes", 23 + 1_000),
        (formats.Overhead, ("v0", 1), "track_overhead", 26),
        (formats.Overhead, ("v1", 100), "track_overhead", 34),
        (formats.Overhead, ("v2", 1), "track_overhead", 70),
        (formats.BreakEven, ("v2", "v0"), "track_records_per_batch", 4),
        (formats.BreakEven, ("v3", "v2"), "track_records_per_batch", 1),
    ],
)
def test_a_tracked_number_is_the_known_one(
    benchmark: Any, parameters: tuple[Any, ...], method: str, value: object
) -> None:
    prepared = benchmark()
    prepared.setup(*parameters)
    assert getattr(prepared, method)(*parameters) == value


def test_compression_is_of_the_records_behind_the_header() -> None:
    codec: Any = codecs.Codec()
    codec.setup("zstd", 100)
    sizes = FORMATS["v2"].size(samples.sample(100).records, samples.sample(100).bounds)
    assert sum(map(len, codec.plain)) == sizes.sum() - V2_HEADER_BYTES * len(sizes)
    assert sum(map(len, codec.packed)) < sum(map(len, codec.plain))
