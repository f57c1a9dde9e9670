"""Measure the costs of all operations of a migration on the same records. Every timed operation is verified."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import chain, repeat
from typing import Any

import numpy as np
import pytest

from kfbench import Records
from kfbench.batches import NO_FIELDS, EncodedLog
from kfbench.broker.append import append
from kfbench.broker.convert import ConvertResult, convert
from kfbench.broker.fetch import FetchResult, fetch
from kfbench.broker.work import Work
from kfbench.errors import IllegalCombination
from kfbench.formats import FORMATS
from kfbench.measure.verify import Unverified
from kfbench.migration import measure
from kfbench.migration.bills import loads
from kfbench.migration.measure import FETCH_BYTES, measure_costs
from kfbench.migration.plans import PLANS, Operation, operations
from kfbench.money import Traffic
from kfbench.workloads.grid import GridPoint

SAMPLE = GridPoint(batch_size=10, value_bytes=50).generate(records=60, seed=3)
quick = partial(measure_costs, rounds=2)


@pytest.mark.parametrize(("name", "codec"), [("kip31", "none"), ("kip31", "lz4"), ("kip724", "gzip"), ("v3", "zstd")])
def test_every_operation_has_its_cost(name: str, codec: str) -> None:
    migration_plan = PLANS[name]
    costs = quick(migration_plan, SAMPLE.records, SAMPLE.bounds, codec)
    assert list(costs.operations) == list(operations(migration_plan, codec))
    logs = {
        each: FORMATS[each].encode(SAMPLE.records, SAMPLE.bounds, codec, lossy=True) for each in migration_plan.formats
    }
    assert costs.size_bytes == {each: len(log.data) for each, log in logs.items()}
    for operation, cost in costs.operations.items():
        assert cost.source_bytes == costs.size_bytes[operation.source]
        assert cost.cpu_ns > 0
        assert cost.ratio is not None and cost.ratio[1] <= cost.ratio[0] <= cost.ratio[2]
        if operation.path in ("zero-copy", "scan", "copy"):
            assert cost.target_bytes == cost.source_bytes
    assert costs.operations[operations(migration_plan, codec)[0]].ratio == (1.0, 1.0, 1.0)
    assert costs.control is not None and costs.control[0] > 0
    assert set(loads(migration_plan, costs, Traffic())) >= {migration_plan.before, migration_plan.goal}


def test_conversions_without_a_codec_equal_an_encoders_bytes() -> None:
    costs = quick(PLANS["v3"], SAMPLE.records, SAMPLE.bounds)
    for operation, cost in costs.operations.items():
        assert cost.target_bytes == costs.size_bytes[operation.target]


def test_plain_messages_become_batches_of_one_when_stored_data_is_upgraded() -> None:
    costs = quick(PLANS["kip724"], SAMPLE.records, SAMPLE.bounds)
    single = len(FORMATS["v2"].encode(SAMPLE.records, 1).data)
    assert costs.of(Operation("upgrade", "v1", "v2")).target_bytes == single
    assert costs.of(Operation("append", "v1", "v2")).target_bytes == costs.size_bytes["v2"]  # one batch per request
    reread = costs.of(Operation("down-convert upgraded", "v1", "v1"))
    assert (reread.source_bytes, reread.target_bytes) == (single, costs.size_bytes["v1"])


def test_an_append_is_timed_once_for_each_buffer_it_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def watched(log: EncodedLog, fmt: str, **options: Any) -> object:
        seen.append((fmt, bytes(log.data)))
        return append(log, fmt, **options)

    monkeypatch.setattr(measure, "append", watched)
    measure_costs(PLANS["v3"], SAMPLE.records, SAMPLE.bounds)
    sent = {name: FORMATS[name].encode(SAMPLE.records, SAMPLE.bounds).data.tobytes() for name in ("v2", "v3")}
    assert seen and all(data == sent[fmt] for fmt, data in seen)


def test_a_fetch_without_conversion_is_as_large_as_a_consumers() -> None:
    large = Records.from_lists([b"x" * 700_000] * 3)
    logs = FORMATS["v2"].encode(SAMPLE.records, SAMPLE.bounds), FORMATS["v2"].encode(large, 1)
    for path, log in ((path, log) for path in measure.UNTOUCHED for log in logs):
        given = measure._source(Operation(path, "v2", "v2"), {"v2": log}, "v3")
        assert FETCH_BYTES <= len(given.data) < FETCH_BYTES + np.diff(log.positions).max()
        assert given.positions[-1] == len(given.data)
        both = min(len(log.data), len(given.data))
        assert np.array_equal(given.data[:both], log.data[:both])


def other_offset(*given: Any, base_offset: int, **options: Any) -> object:
    return append(*given, base_offset=base_offset + 1, **options)


def upgraded_to(records: Records) -> Callable[..., ConvertResult]:
    made = FORMATS["v3"].encode(records, 10)
    wrong = ConvertResult(data=made.data, positions=made.positions, converted_records=60, work=Work(rewritten=6))
    return lambda *_: wrong


def changing() -> Callable[..., ConvertResult]:
    """Return a conversion whose bytes differ from the second call on."""
    reversals = chain([1], repeat(-1))

    def convert_once(*given: Any) -> ConvertResult:
        done = convert(*given)
        return replace(done, data=done.data[:: next(reversals)])

    return convert_once


def fetch_with(**changes: Any) -> Callable[..., FetchResult]:
    return lambda *given, **options: replace(fetch(*given, **options), **changes)


OTHERS = Records.from_lists([b"other"] * 60, timestamps_ms=SAMPLE.shapes.timestamps_ms)


@pytest.mark.parametrize(
    ("path", "wrong", "message"),
    [
        ("append", other_offset, "append v2 to v2: offsets differ: item 0 was 1000000, 1000001 was read"),
        ("convert", upgraded_to(OTHERS), "upgrade v2 to v3: keys, values or headers differ"),
        ("convert", upgraded_to(SAMPLE.records.part(0, 50)), "upgrade v2 to v3: 50 records came out, not 60"),
        ("convert", changing(), "upgrade v2 to v3: another call returned other bytes than the verified ones"),
        ("fetch", fetch_with(zero_copy=False), "zero-copy v2 to v2: the fetch was not zero-copy"),
        ("fetch", fetch_with(zero_copy=True), "copy v2 to v2: the fetch was zero-copy"),
        ("fetch", fetch_with(work=Work(rewritten=7)), "zero-copy v2 to v2: 7 of 7 batches were touched"),
    ],
)
def test_an_operation_with_a_wrong_result_is_not_timed(
    path: str, wrong: Callable[..., Any], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(measure, path, wrong)
    with pytest.raises(Unverified, match=message):
        quick(PLANS["v3"], SAMPLE.records, SAMPLE.bounds)


def test_a_codec_that_a_format_does_not_have() -> None:
    with pytest.raises(IllegalCombination, match="v0 has no zstd"):
        quick(PLANS["kip31"], SAMPLE.records, SAMPLE.bounds, "zstd", NO_FIELDS)
