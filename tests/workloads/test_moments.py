"""Workloads of the catalogue have the moments and quantiles that their sources publish, within 2 %."""

from collections.abc import Callable
from functools import partial
from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from kfbench.formats import FORMATS
from kfbench.layouts import DAY_MS
from kfbench.workloads import BLOCK_RECORDS, Sample
from kfbench.workloads.catalogue import WORKLOADS, NamedWorkload
from kfbench.workloads.named.arrivals import block_us, times_us
from kfbench.workloads.named.batching import CompactionSurvivors

MAX_MESSAGE_BYTES = 1_048_588  # Kafka's default of max.message.bytes


def drawn(name: str, variant: str = "default", blocks: int = 1) -> Sample:
    return NamedWorkload(name=name, variant=variant).generate(records=blocks * BLOCK_RECORDS, seed=11)


def within(wanted: float, share: float = 0.02) -> Any:
    return pytest.approx(wanted, rel=share)


def values(sample: Sample) -> NDArray[np.int32]:
    """Return the lengths of values that are neither null nor a marker's."""
    lengths, is_control = sample.shapes.value_lengths, sample.batch_fields.rows["is_control"]
    is_marker = np.repeat(is_control, sizes(sample)) if is_control.any() else np.zeros(len(lengths), np.bool_)
    return lengths[(lengths >= 0) & ~is_marker]


def sizes(sample: Sample) -> NDArray[np.int64]:
    return np.diff(sample.bounds)


def gaps_us(name: str, blocks: int = 1) -> NDArray[np.int64]:
    arrival = NamedWorkload(name=name).model.arrival
    return np.concatenate([np.diff(times_us(arrival, 11, block)) for block in range(blocks)])


MEASURES: dict[str, Callable[[Sample], NDArray[Any]]] = {
    "records per batch": sizes,
    "key bytes": lambda sample: sample.shapes.key_lengths,
    "value bytes": values,
    "null values": lambda sample: sample.shapes.value_lengths < 0,
}
STATISTICS: dict[str, Callable[[Any], Any]] = {
    "mean": np.mean,
    "min": np.min,
    "max": np.max,
    **{f"p{percent}": partial(np.percentile, q=percent) for percent in (5, 50, 90, 95, 99)},
}
Moments = dict[str, dict[str, float | tuple[float, float]]]
BY_RATE = {"rate-10": 1.05, "rate-100": 1.5, "default": 6.0, "rate-10000": 51.0}
ETC_KEYS: Moments = {"key bytes": {"mean": 36.2, "p50": 33.8, "p90": 51.0, "p99": 76.3}}
MOMENTS: dict[tuple[str, str, int], Moments] = {  # by workload, variant and number of blocks
    **{(name, variant, 1): {"records per batch": {"mean": mean}}
       for name in ("user-activity", "cloudevents") for variant, mean in BY_RATE.items()},
    ("user-activity", "", 1): {"value bytes": {"mean": 212}},
    ("transactional", "", 1): {"value bytes": {"mean": 212}},
    ("service-events", "", 1): {"value bytes": {"mean": 645}},
    ("consumer-offsets", "", 1): {
        "records per batch": {"mean": (1.024, 0.005), "max": 12},
        "key bytes": {"p5": 19, "p50": 39, "p95": 80},
        "value bytes": {"p5": 24, "p50": 32, "p95": 467},
    },
    ("consumer-offsets", "", 2): {"null values": {"mean": 0.155}},
    ("connect-internal", "", 1): {
        "records per batch": {"mean": (1.094, 0.005), "max": 2},
        "key bytes": {"p5": 12, "p50": 22, "p95": 32},
        "value bytes": {"p5": 11, "p50": 84, "p95": 1344},
    },
    ("connect-internal", "", 2): {"null values": {"mean": 0.183}},
    ("log-shipping", "", 1): {
        "key bytes": {"min": -1, "max": -1},
        "value bytes": {"p5": 140, "p50": 231, "p95": 334},
    },
    ("log-shipping", "", 4): {"records per batch": {"mean": (1_050, 0.1)}},
    ("compacted-changelog", "", 2): {"null values": {"mean": 0.15}},
    ("compacted-changelog", "tombstones", 1): {"null values": {"mean": 0.33}},
    ("compacted-changelog", "", 4): ETC_KEYS,
    ("kv-etc", "", 8): {"value bytes": {"mean": 194, "p50": 39, "p90": 519, "p99": 1887}},
    ("kv-mixgraph", "", 4): {  # lengths are rounded up
        "value bytes": {"min": 1, "mean": (34.5 + 0.5, 0.01), "p50": (20, 0), "p90": 80.4, "p99": 228},
    },
    ("kv-ycsb", "", 1): {"value bytes": {"min": 1000, "max": 1000}},
    ("kv-ycsb", "rate-10000", 1): {"records per batch": {"max": 15}},
    ("cluster-metadata", "", 4): {"records per batch": {"mean": 1.028, "max": 56}},
    ("iot-telemetry", "", 24): {"null values": {"mean": 0.01}},
    ("cdc-debezium", "", 3): {"null values": {"mean": 0.1 / 1.1}},
}  # fmt: skip
KEY_BYTES = {
    "kv-mixgraph": 48, "kv-ycsb": 23, "cdc-debezium": 11, "iot-telemetry": 16, "cloudevents": 16, "service-events": 36,
    "large-payload": 36, "omb-1kb": -1, "producer-perf": -1,
}  # fmt: skip


@pytest.mark.parametrize(("name", "variant", "blocks"), MOMENTS)
def test_published_moments(name: str, variant: str, blocks: int) -> None:
    """A mean is within 2 %, a quantile of whole lengths within 2 % or one byte, unless the table says otherwise."""
    sample = drawn(name, variant or "default", blocks)
    for measure, wanted in MOMENTS[name, variant, blocks].items():
        found = MEASURES[measure](sample)
        for statistic, each in wanted.items():
            number, share = each if isinstance(each, tuple) else (each, 0 if statistic in ("min", "max") else 0.02)
            close = pytest.approx(number, rel=share, abs=1 if share and statistic[0] == "p" else 0)
            assert STATISTICS[statistic](found) == close, (measure, statistic)


@pytest.mark.parametrize("name", KEY_BYTES)
def test_keys_of_one_length(name: str) -> None:
    sample = NamedWorkload(name=name).generate(records=500, seed=11)
    assert set(sample.shapes.key_lengths.tolist()) == {KEY_BYTES[name]}


def test_facebooks_etc() -> None:
    etc = drawn("kv-etc", blocks=8)
    key = NamedWorkload(name="kv-etc").model.key
    assert key is not None
    ids, first = np.unique(key.distribution.ids(11, 0, len(etc.shapes)), return_index=True)
    distinct = etc.shapes.key_lengths[first]  # one length per key; over records, a few frequent keys would dominate
    assert len(ids) > 100_000
    for statistic, wanted in ETC_KEYS["key bytes"].items():
        assert STATISTICS[statistic](distinct) == pytest.approx(wanted, rel=0.02, abs=1)
    assert np.mean(values(etc) < 15) == within(0.44155)
    gaps = gaps_us("kv-etc", blocks=4)
    assert gaps.mean() == within(18.99)
    assert np.percentile(gaps, 99) == within(108)


def test_keys_of_mixgraph() -> None:
    records = NamedWorkload(name="kv-mixgraph").generate(records=2_000, seed=11).records
    keys = [records.key(i) or b"" for i in range(2_000)]
    assert {(key[:5], key[8:]) for key in keys} == {(bytes(5), b"0" * 40)}


def test_the_controllers_log() -> None:
    sample = drawn("cluster-metadata", blocks=4)
    assert np.sum(sizes(sample) == 1) / len(sample.shapes) == within(0.97, 0.005)
    bytes_per_record = FORMATS["v2"].size(sample.shapes, sample.bounds).sum() / len(sample.shapes)
    assert bytes_per_record == within(71.3)
    assert 1 - values(sample).mean() / bytes_per_record == within(0.93, 0.01)
    assert np.median(np.diff(sample.shapes.timestamps_ms[sample.bounds[:-1]])) == within(500)


@pytest.mark.parametrize(("variant", "schema_bytes"), [("default", 0), ("with-schema", 2109)])
def test_debeziums_changes(variant: str, schema_bytes: int) -> None:
    sample = NamedWorkload(name="cdc-debezium", variant=variant).generate(records=1_000, seed=11)
    records, lengths = sample.records, sample.shapes.value_lengths
    operations: dict[bytes, list[int]] = {b"c": [], b"u": [], b"d": []}
    deletes = 0
    for i in range(1_000):
        value = records.value(i)
        if value is None:
            before = records.value(i - 1)
            assert before is not None and b'"op":"d"' in before and records.key(i) == records.key(i - 1)
            continue
        operation = value[value.index(b'"op":"') + 6 :][:1]
        operations[operation].append(len(value))
        deletes += operation == b"d" and i + 1 < 1_000
    assert deletes == np.sum(lengths < 0) > 0
    for operation, plain_bytes in ((b"c", 427), (b"u", 507), (b"d", 427)):
        assert set(operations[operation]) == {plain_bytes + schema_bytes}
    whole_block = drawn("cdc-debezium", variant)
    assert sizes(whole_block).min() == 1
    taken = FORMATS["v2"].size(whole_block.shapes, whole_block.bounds)
    assert 14_000 <= taken.max() <= 16_384 and np.median(sizes(whole_block)) <= 8


def test_a_transactions_rows_take_as_many_batches_as_they_fill() -> None:
    sample = drawn("cdc-debezium")
    transactions = np.unique(times_us(NamedWorkload(name="cdc-debezium").model.arrival, 11, 0), return_counts=True)[1]
    assert transactions.max() >= 400 and 1 <= np.median(transactions) <= 6
    batch = np.repeat(np.arange(len(sizes(sample))), sizes(sample))
    batches = [len(np.unique(each)) for each in np.split(batch, np.cumsum(transactions)[:-1])]
    assert max(batches) >= 400 // 40 and np.mean(batches) < 2
    assert max(np.ptp(sample.shapes.timestamps_ms[a:b]) for a, b in pairwise(sample.bounds.tolist())) <= 5
    assert len(sample.shapes) / np.ptp(sample.shapes.timestamps_ms) == within(0.5, 0.05)


def test_headers() -> None:
    cloudevents, services = (
        NamedWorkload(name=name).generate(records=200, seed=11).records for name in ("cloudevents", "service-events")
    )
    assert len(services.headers(0)) == 3 and len(cloudevents.headers(0)) == 7
    taken = [sum(len(name) + len(value or b"") for name, value in cloudevents.headers(i)) for i in range(200)]
    assert np.mean(taken) == within(250)
    assert len(dict(services.headers(0))["traceparent"] or b"") == 55


def test_service_events_come_in_waves_of_one_to_twenty() -> None:
    batches = sizes(drawn("service-events", blocks=2))
    assert batches.min() == 1 and 18 <= batches.max() <= 27
    assert np.percentile(batches, 10) < 6 and np.percentile(batches, 90) > 14


def test_lines_of_a_log_come_in_bursts() -> None:
    gaps_ms = gaps_us("log-shipping", blocks=4) / 1_000
    assert np.median(gaps_ms) == 0 and np.percentile(gaps_ms, 95) == within(7, 0.05)
    assert sizes(drawn("log-shipping", blocks=4)).max() <= 2_000


def test_a_step_back_in_half_of_the_records() -> None:
    sample = drawn("out-of-order", blocks=2)
    times_ms = sample.shapes.timestamps_ms
    assert np.mean(np.diff(times_ms) < 0) == within(0.49)
    assert values(sample).min() >= 231 and values(sample).max() <= 327
    spread_ms = [np.ptp(times_ms[a:b]) for a, b in pairwise(sample.bounds.tolist()) if b - a >= 100]
    assert 0.95 * DAY_MS < np.mean(spread_ms) < DAY_MS * 1.01
    appended = drawn("out-of-order", "append-time")
    assert set(appended.batch_fields.rows["timestamp_type"].tolist()) == {1}


def test_devices_report_every_ten_seconds_and_gateways_an_hour_at_once() -> None:
    records = NamedWorkload(name="iot-telemetry").generate(records=3_000, seed=11).records
    assert len({records.key(i) for i in range(3_000)}) == 1_000
    assert records.key(7) == records.key(1_007) == records.key(2_007)
    assert records.shapes.timestamps_ms[1_007] - records.shapes.timestamps_ms[7] == 10_000
    upload = drawn("iot-telemetry", "upload", blocks=2)
    times_ms, bounds = upload.shapes.timestamps_ms, upload.bounds
    assert (times_ms[bounds[1:] - 1] - times_ms[bounds[:-1]]).mean() == within(3_600_000, 0.05)
    records = NamedWorkload(name="iot-telemetry", variant="upload").generate(records=3_000, seed=11).records
    devices = [{records.key(i) for i in range(a, b)} for a, b in pairwise(upload.bounds[upload.bounds <= 3_000])]
    assert max(map(len, devices)) <= 4 and len(set().union(*devices)) >= 8
    assert np.sum(sizes(upload) < 100) <= 2 and sizes(upload).max() <= 1_000  # the last batch of a block may be smaller


@pytest.mark.parametrize(
    ("variant", "survival"), [("default", 0.5), ("survival-2", 0.02), ("survival-10", 0.1), ("survival-90", 0.9)]
)
def test_survivors(variant: str, survival: float) -> None:
    sample = drawn("compacted-changelog", variant)
    offsets = sample.shapes.offsets
    assert (len(offsets) - 1) / (offsets[-1] - offsets[0]) == within(survival)
    batches = sizes(sample)
    assert batches.max() <= 100
    assert batches.mean() == within(100 * survival / (1 - (1 - survival) ** 100))


@pytest.mark.parametrize("variant", NamedWorkload(name="compacted-changelog").variants)
def test_a_billion_survivors_are_of_a_few_years(variant: str) -> None:
    model = NamedWorkload(name="compacted-changelog", variant=variant).model
    assert isinstance(model.batching, CompactionSurvivors)
    years = 10**9 / BLOCK_RECORDS * block_us(model.arrival) / (365 * 1_000 * DAY_MS)
    assert years < 2
    written_per_s = BLOCK_RECORDS / block_us(model.arrival) * 1e6 / model.batching.survival
    assert written_per_s == within(1_000)


@pytest.mark.parametrize(("name", "variant"), list(product(("omb-1kb", "omb-100b"), ("default", "1mib", "keyed"))))
def test_full_batches(name: str, variant: str) -> None:
    sample = drawn(name, variant)
    taken = FORMATS["v2"].size(sample.shapes, sample.bounds)
    limit = 1_048_576 if variant == "1mib" else 131_072
    assert taken.max() <= limit and taken[:-1].min() > limit - 1_100


def test_no_batch_is_larger_than_a_broker_takes() -> None:
    for name, workload in WORKLOADS.items():
        for variant in workload.variants:
            sample = NamedWorkload(name=name, variant=variant).generate(records=12_000, seed=11)
            assert FORMATS["v2"].size(sample.shapes, sample.bounds).max() <= MAX_MESSAGE_BYTES, (name, variant)
