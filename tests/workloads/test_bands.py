"""Payloads compress as their files say at 1, 10 and 100 records a batch: a codec sees the records of a v2 batch."""

import json
from itertools import product

import pytest

from kfbench.formats import FORMATS
from kfbench.layouts import V2_HEADER
from kfbench.records import Records
from kfbench.workloads import WORKLOADS
from kfbench.workloads.catalogue import NamedWorkload

DEPTHS, CODECS = (1, 10, 100), ("zstd", "lz4", "gzip", "snappy")
NAMED = [each for each in WORKLOADS.values() if isinstance(each, NamedWorkload)]
EVERY = [NamedWorkload(name=each.name, variant=variant) for each in NAMED for variant in each.variants]
REAL_TOPICS = ((0.65, 0.9), (0.2, 0.35), (0.1, 0.25))  # zstd-3 on JSON topics
TUNED = "user-activity service-events cloudevents cdc-debezium out-of-order transactional".split()


def differing() -> list[NamedWorkload]:
    """Variants whose bytes differ: those of a rate or of a batch size alone compress as the first does."""
    found: dict[object, NamedWorkload] = {}
    for each in EVERY:
        model = each.model
        found.setdefault(repr((model.key, model.value, model.other, model.header, model.bands, model.time)), each)
    return [each for each in found.values() if not (each.name == "large-payload" and each.variant != "default")]


def title(workload: NamedWorkload) -> str:
    return f"{workload.name}/{workload.variant}"


def records_bytes(records: Records, depth: int, codec: str) -> int:
    log = FORMATS["v2"].encode(records, batch_size=depth, codec=codec)
    return len(log.data) - V2_HEADER.itemsize * (len(log.positions) - 1)


@pytest.mark.parametrize("workload", differing(), ids=title)
def test_ratios_lie_within_the_bands(workload: NamedWorkload) -> None:
    records = workload.generate(records=12 if workload.name == "large-payload" else 300, seed=3).records
    bands = workload.model.bands
    assert set(bands) == set(CODECS)
    plain = {depth: records_bytes(records, depth, "none") for depth in DEPTHS}
    ratios = {
        (codec, depth): records_bytes(records, depth, codec) / plain[depth] for codec, depth in product(CODECS, DEPTHS)
    }
    outside = {
        (codec, depth): ratio
        for (codec, depth), ratio in ratios.items()
        if not bands[codec][DEPTHS.index(depth)][0] <= ratio <= bands[codec][DEPTHS.index(depth)][1]
    }
    assert not outside


@pytest.mark.parametrize("name", TUNED)
def test_what_is_like_a_real_topic_has_the_bands_of_real_topics(name: str) -> None:
    assert NamedWorkload(name=name).model.bands["zstd"] == REAL_TOPICS


@pytest.mark.parametrize("workload", EVERY, ids=title)
def test_bands_are_shares_and_no_wider_than_they_must_be(workload: NamedWorkload) -> None:
    for bands in workload.model.bands.values():
        assert all(0 < least < most <= 2.2 * least + 0.2 for least, most in bands)


@pytest.mark.parametrize("name", [*TUNED, "connect-internal"])
def test_json_is_whole(name: str) -> None:
    for variant in NamedWorkload(name=name).variants:
        records = NamedWorkload(name=name, variant=variant).generate(records=200, seed=3).records
        values = [value for value in map(records.value, range(200)) if value is not None and value.startswith(b"{")]
        assert len(values) >= 90
        assert all(isinstance(json.loads(value), dict) for value in values)
