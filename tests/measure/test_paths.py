"""Timed broker paths are verified before and after, and their work is counted. Wrong work gives an error."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from kfbench.arrays import Bytes
from kfbench.broker import Work
from kfbench.broker.expire import expire
from kfbench.broker.mirror import mirror
from kfbench.formats import FORMATS
from kfbench.measure import path_arms, paths
from kfbench.measure.encode_input import EncodeInput
from kfbench.measure.path_arms import PathArm, measure_path
from kfbench.measure.paths import PATHS, BrokerPath, PathTask
from kfbench.measure.schema import SCHEMA
from kfbench.workloads.grid import GridPoint

FORMAT_NAMES = ("v0", "v1", "enriched", "kip98", "v2", "v3", "v3-headers-first", "v3-tagged")
ROUNDS = 3
POINT = GridPoint(batch_size=10, timestamp_spread_ms=500)


def measured(
    path: str, *formats: str, to: str | None = None, codec: str = "none", point: GridPoint = POINT, records: int = 60
) -> list[PathArm]:
    sample = point.generate(records=records, seed=5)
    possible = [
        FORMATS[name]
        for name in formats or FORMAT_NAMES
        if name != to and codec in FORMATS[name].capabilities.codecs
        if PATHS[path].missing(FORMATS[name], sample.shapes) is None
    ]
    source = EncodeInput(records=sample.records, bounds=sample.bounds, codec=codec, batch_fields=sample.batch_fields)
    target = FORMATS[to] if to else None
    return measure_path(path, possible, target, source, rounds=ROUNDS, sample_ns=1_000, seed=5)


def columns_of(found: list[PathArm]) -> dict[str, dict[str, Any]]:
    for each in found:
        assert each.error is None
    return {each.format: each.columns for each in found if each.arm == "measure"}


@pytest.mark.sampled
@pytest.mark.parametrize("codec", ["none", "zstd", "lz4"])
@pytest.mark.parametrize("path", PATHS)
def test_every_path_runs_in_every_format_that_has_it(path: str, codec: str) -> None:
    for to in ("v0", "v2", "v3") if PATHS[path].converts else (None,):
        if codec == "zstd" and to == "v0":
            continue
        found = measured(path, to=to, codec=codec)
        columns = columns_of(found)
        assert len(columns) >= 3
        for each in found:
            assert each.samples is not None and len(each.samples.cpu_ns) == ROUNDS and each.samples.cpu_ns.min() > 0
            assert each.samples.inner_loops == 1 or not PATHS[path].changes_input
            assert set(each.columns) < set(SCHEMA.names)
            batches = sum(each.columns[name] for name in SCHEMA.names if name in each.columns and "batches_" in name)
            assert each.columns["batches"] == batches
        base = "v2" if to != "v2" else found[0].format
        assert [each.format for each in found if each.arm == "aa"] == [base]


def test_a_fetch_of_the_same_version_reads_nothing() -> None:
    for name, columns in columns_of(measured("fetch")).items():
        assert columns["read_bytes"] == columns["written_bytes"] == 0, name
        assert columns["batches_untouched"] == columns["batches"]
        assert columns["size_bytes"] == columns["source_bytes"]


def test_reasons_why_a_format_lacks_a_path() -> None:
    shapes = POINT.generate(records=10, seed=0).shapes
    assert PATHS["seek-time"].missing(FORMATS["v0"], shapes) == "v0 has no timestamps"
    assert PATHS["append-time"].missing(FORMATS["enriched"], shapes) == "enriched has no log append time"
    keyless = replace(POINT, key_bytes=-1).generate(records=10, seed=0).shapes
    assert PATHS["compact"].missing(FORMATS["v2"], keyless) == "records without a key are not compacted"
    timeless = replace(POINT, base_timestamp_ms=-1, timestamp_spread_ms=0).generate(records=10, seed=0).shapes
    assert PATHS["seek-time"].missing(FORMATS["v2"], timeless) == "records without a timestamp have no place in time"


class Outcome:
    def __init__(self, data: Bytes, work: Work) -> None:
        self.data, self.work = data, work


def a_path(monkeypatch: pytest.MonkeyPatch, call: Callable[[Any], Any], **options: Any) -> Any:
    """Time a made-up path that runs `call` on its input, and return its arms. The first result counts as correct."""
    path = BrokerPath(
        name="made-up",
        title="Made up",
        section="keep",
        task=lambda given: PathTask(call=lambda: Outcome(call(given), Work(untouched=6)), check=lambda _: None),
        **options,
    )
    monkeypatch.setattr(path_arms, "PATHS", {"made-up": path})
    sample = POINT.generate(records=60, seed=5)
    source = EncodeInput(records=sample.records, bounds=sample.bounds, batch_fields=sample.batch_fields)
    formats = [FORMATS["v1"], FORMATS["v2"]]
    return measure_path("made-up", formats, None, source, rounds=ROUNDS, sample_ns=1_000, seed=5)


def test_a_path_that_gives_something_else_the_next_time_has_no_number(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = iter(range(10_000))
    for each in a_path(monkeypatch, lambda _: np.full(8, next(calls) % 251, np.uint8)):
        assert each.samples is None and "another call gave other bytes" in str(each.error)


def test_a_path_that_fails_while_it_is_timed_has_no_number(monkeypatch: pytest.MonkeyPatch) -> None:
    """The call for v1 gives other bytes after the warm-up, so v1 has an error. v2 is still measured."""
    calls = iter(range(10_000))

    def call(given: Any) -> Any:
        late = given.fmt.name == "v1" and next(calls) > 5
        return np.full(8, late, np.uint8)

    v1, v2, aa = a_path(monkeypatch, call, changes_input=True)
    assert v1.samples is None and "another call gave other bytes" in str(v1.error)
    assert v2.samples is not None and aa.samples is not None and aa.format == "v2"


def test_a_path_that_changes_what_it_reads_has_to_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def call(given: Any) -> Any:
        given.log.data[0] ^= 1
        return given.log.data

    for each in a_path(monkeypatch, call):
        assert each.samples is None and "changed the bytes that it reads" in str(each.error)
    for each in a_path(monkeypatch, call, changes_input=True):
        assert each.samples is not None and each.samples.inner_loops == 1


def test_a_format_that_fails_is_left_out_and_the_others_are_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    def call(given: Any) -> Any:
        if given.fmt.name == "v2":
            raise RuntimeError("out of ideas")
        return given.log.data

    v1, v2, aa = a_path(monkeypatch, call)
    assert str(v2.error) == "out of ideas" and v2.samples is None
    assert v1.samples is not None and (aa.format, aa.arm) == ("v1", "aa")


def test_a_log_that_does_not_read_back_is_not_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise RuntimeError("not the same")

    monkeypatch.setattr(path_arms, "verify_records", refuse)
    found = measured("append", "v1", "v2")
    assert [(each.format, str(each.error)) for each in found] == [("v1", "not the same"), ("v2", "not the same")]


def test_extra_memory_is_what_a_call_holds_beyond_its_input_and_output(monkeypatch: pytest.MonkeyPatch) -> None:
    def call(given: Any) -> Any:
        scratch = np.ones(1_000_000, np.uint8)
        return np.repeat(scratch[:1], 3_000_000)

    for each in a_path(monkeypatch, call):
        assert 1_000_000 <= each.columns["extra_bytes"] < 1_100_000
    for each in a_path(monkeypatch, lambda given: given.log.data):
        assert each.columns["extra_bytes"] < 10_000


@pytest.mark.parametrize("path", ["expire", "expire-head"])
def test_an_expiry_that_lets_nothing_go_has_no_number(monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    monkeypatch.setattr(paths, "expire", lambda segments, _, by, **more: expire(segments, -1, by, **more))
    for each in measured(path, "v1", "v2", records=600):
        assert each.samples is None and "segments were deleted, not" in str(each.error)


def test_a_mirror_that_leaves_offsets_as_they_were_has_no_number(monkeypatch: pytest.MonkeyPatch) -> None:
    def unchanged(log: Any, fmt: Any, **more: Any) -> Any:
        return replace(mirror(log, fmt, **more), data=log.data.copy())

    monkeypatch.setattr(paths, "mirror", unchanged)
    for each in measured("mirror-through", "v1", "v2", codec="gzip"):
        assert each.samples is None and "offsets" in str(each.error)
