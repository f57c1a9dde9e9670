"""Payloads compress as much as their files state (a band of ratios), with 1, 10 and 100 records per v2 batch."""

import json
from itertools import product

import numpy as np
import pytest

from kfbench.formats import FORMATS
from kfbench.layouts import V2_HEADER
from kfbench.records import Records
from kfbench.workloads import WORKLOADS
from kfbench.workloads.catalogue import NamedWorkload

DEPTHS, CODECS = (1, 10, 100), ("zstd", "lz4", "gzip", "snappy")
SEEDS, RECORDS = (1, 2, 3), 900
NAMED = [each for each in WORKLOADS.values() if isinstance(each, NamedWorkload)]
EVERY = [NamedWorkload(name=each.name, variant=variant) for each in NAMED for variant in each.variants]
REAL_TOPICS = ((0.65, 0.92), (0.2, 0.35), (0.1, 0.25))  # compressed size divided by plain size: zstd-3 on JSON topics
TUNED = "user-activity service-events cloudevents cdc-debezium out-of-order transactional log-shipping".split()
WIDEST = 2.5  # largest ratio of a band's upper bound to its lower bound
MARGIN = 0.05  # least distance of a result to either bound; bands of random bytes are too narrow for it
RANDOM = "producer-perf omb-1kb omb-100b kv-etc kv-mixgraph kv-ycsb compacted-changelog large-payload".split()
RANDOM_RECORDS = 300


def differing() -> list[NamedWorkload]:
    """Return one variant per kind of contents. Variants that differ only in rate or batch size compress equally."""
    found: dict[object, NamedWorkload] = {}
    for each in EVERY:
        model = each.model
        found.setdefault(
            repr((model.key, model.value, model.other, model.header, model.bands, model.time.lag_ms)), each
        )
    return [each for each in found.values() if not (each.name == "large-payload" and each.variant != "default")]


def title(workload: NamedWorkload) -> str:
    return f"{workload.name}/{workload.variant}"


def data_of(workload: NamedWorkload, records: int, seed: int) -> Records:
    """Return the records without transaction markers, because producers do not compress markers."""
    sample = workload.generate(records=records, seed=seed)
    rows, sizes = sample.batch_fields.rows, np.diff(sample.bounds)
    is_marker = np.repeat(rows["is_control"], sizes if len(rows) == len(sizes) else sizes.sum())
    return sample.records.take(np.flatnonzero(~is_marker)) if is_marker.any() else sample.records


def records_bytes(records: Records, depth: int, codec: str) -> int:
    log = FORMATS["v2"].encode(records, batch_size=depth, codec=codec)
    return len(log.data) - V2_HEADER.itemsize * (len(log.positions) - 1)


@pytest.mark.parametrize("workload", differing(), ids=title)
def test_ratios_lie_within_the_bands(workload: NamedWorkload) -> None:
    bands = workload.model.bands
    assert set(bands) == set(CODECS)
    is_random = workload.name in RANDOM
    margin, seeds, count = (0.0, SEEDS[:1], RANDOM_RECORDS) if is_random else (MARGIN, SEEDS, RECORDS)
    outside = {}
    for seed in seeds:
        records = data_of(workload, 12 if workload.name == "large-payload" else count, seed)
        plain = {depth: records_bytes(records, depth, "none") for depth in DEPTHS}
        for codec, (place, depth) in product(CODECS, enumerate(DEPTHS)):
            least, most = bands[codec][place]
            ratio = records_bytes(records, depth, codec) / plain[depth]
            if not least * (1 + margin) <= ratio <= most * (1 - margin):
                outside[seed, codec, depth] = ratio
    assert not outside


@pytest.mark.parametrize("name", TUNED)
def test_what_is_like_a_real_topic_has_the_bands_of_real_topics(name: str) -> None:
    for variant in NamedWorkload(name=name).variants:
        bands = NamedWorkload(name=name, variant=variant).model.bands
        assert bands["zstd"] == REAL_TOPICS or (name, variant) == ("cdc-debezium", "with-schema")


@pytest.mark.parametrize("workload", EVERY, ids=title)
def test_bands_are_shares_and_not_wide(workload: NamedWorkload) -> None:
    for bands in workload.model.bands.values():
        assert all(0 < least < most <= WIDEST * least for least, most in bands)


@pytest.mark.parametrize("name", [*TUNED[:-1], "connect-internal"])
def test_json_is_whole(name: str) -> None:
    for variant in NamedWorkload(name=name).variants:
        records = NamedWorkload(name=name, variant=variant).generate(records=200, seed=3).records
        values = [value for value in map(records.value, range(200)) if value is not None and value.startswith(b"{")]
        assert len(values) >= 90
        assert all(isinstance(json.loads(value), dict) for value in values)
