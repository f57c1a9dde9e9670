"""The policy that chooses dictionaries sees only the past, and never makes a topic much larger."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from kfbench import FORMATS, Dictionary, Records
from kfbench.dictionary_policy import NONE, PLAIN, DictionaryPolicy, PolicyOutcome, _Topic, follow_policy
from kfbench.log import dictionary_batch, read_log
from kfbench.workloads.catalogue import WORKLOADS
from kfbench.workloads.recorded.topics import TOPICS

CASES = [
    ("user-activity", 3_000), ("kv-etc", 3_000), ("kv-ycsb", 800), ("omb-100b", 9_000), ("cluster-metadata", 4_000),
    ("log-shipping", 8_000), ("compacted-changelog", 4_000), ("large-payload", 12), ("consumer-offsets", 3_000),
]  # fmt: skip


def topic(workload: str, records: int) -> Any:
    return WORKLOADS[workload].generate(records=records, seed=7)


def followed(sample: Any, name: str, **policy: Any) -> PolicyOutcome:
    return follow_policy(
        FORMATS[name], sample.records, sample.bounds, 3, sample.batch_fields, DictionaryPolicy(**policy)
    )


@pytest.mark.parametrize("name", ["v2", "columnar"])
@pytest.mark.parametrize(("workload", "records"), CASES)
def test_no_topic_is_more_than_a_hundredth_larger_than_with_plain_zstd(workload: str, records: int, name: str) -> None:
    sample = topic(workload, records)
    found = followed(sample, name)
    plain = FORMATS[name].encode(sample.records, sample.bounds, "zstd", 3, sample.batch_fields, lossy=True)
    assert found.size_bytes + found.stored_bytes <= 1.01 * len(plain.data)


@pytest.mark.parametrize("name", ["v2", "columnar"])
@pytest.mark.parametrize("topic_name", [each for each in TOPICS if each.startswith("recorded-")])
def test_a_short_recorded_segment_does_not_pay_for_a_dictionary_in_vain(topic_name: str, name: str) -> None:
    sample = TOPICS[topic_name].generate(records=TOPICS[topic_name].recorded, seed=0)
    found = followed(sample, name)
    plain = FORMATS[name].encode(sample.records, sample.bounds, "zstd", 3, sample.batch_fields, lossy=True)
    assert found.size_bytes + found.stored_bytes <= 1.01 * len(plain.data)


@pytest.mark.parametrize("workload", ["cdc-debezium", "iot-telemetry"])
def test_a_short_topic_of_large_batches_does_not_pay_for_a_dictionary_in_vain(workload: str) -> None:
    sample = WORKLOADS[workload].generate(records=2_000, seed=4)
    bounds = np.arange(0, 2_001, 100)
    found = follow_policy(FORMATS["columnar"], sample.records, bounds, 3)
    plain = FORMATS["columnar"].encode(sample.records, bounds, "zstd", 3)
    assert found.size_bytes + found.stored_bytes <= 1.01 * len(plain.data)


@pytest.mark.parametrize("name", ["v2", "columnar"])
def test_a_topic_of_like_records_shrinks(name: str) -> None:
    sample = topic("user-activity", 6_000)
    found = followed(sample, name)
    plain = FORMATS[name].encode(sample.records, sample.bounds, "zstd", 3, sample.batch_fields)
    assert found.size_bytes + found.stored_bytes < 0.6 * len(plain.data)
    assert [each.is_raw for each in found.dictionaries] == [True, False]


def test_the_stretches_are_all_batches_in_order_and_read_back() -> None:
    sample = topic("consumer-offsets", 3_000)
    found = followed(sample, "columnar")
    assert found.stretches[0].first == 0 and found.stretches[-1].end == len(sample.bounds) - 1
    assert all(one.end == other.first for one, other in pairwise(found.stretches))
    stored = b"".join(bytes(dictionary_batch(each, "columnar")) for each in found.dictionaries)
    assert found.stored_bytes == len(stored)
    log = read_log(stored + b"".join(bytes(each.log) for each in found.stretches))
    control = len(found.dictionaries)
    assert log.records.part(control, len(log.records)) == sample.records


def test_what_comes_later_changes_nothing_before() -> None:
    sample, other = topic("user-activity", 4_000), topic("user-activity", 2_000)
    assert other.records == sample.records.part(0, 2_000)
    long, short = followed(sample, "v2"), followed(other, "v2")
    for one, two in zip(long.stretches, short.stretches[:-1], strict=False):
        assert bytes(one.log) == bytes(two.log) and one.choice == two.choice


def test_a_topic_where_the_codec_does_not_pay_is_written_without() -> None:
    found = followed(topic("cluster-metadata", 4_000), "columnar")
    assert found.stretches[0].choice == PLAIN and found.stretches[-1].choice == NONE
    assert found.stored_bytes == 0 and found.switches == 1


def test_a_change_of_the_records_brings_a_new_dictionary_at_once() -> None:
    first, second = topic("user-activity", 4_000), topic("service-events", 1_500)
    parts = [sample.records for sample in (first, second)]
    both = Records.from_lists(
        [value for part in parts for value in part.values()],
        [key for part in parts for key in part.keys()],  # noqa: SIM118
        timestamps_ms=np.concatenate([part.timestamps_ms for part in parts]),
    )
    bounds = np.append(np.arange(0, len(both), 5), len(both))
    found = follow_policy(FORMATS["v2"], both, bounds, 3)
    change = int(np.searchsorted(bounds, 4_000))
    made = [each for each in found.stretches if isinstance(each.choice, Dictionary)]
    numbers = {each.choice.number: each.first for each in reversed(made) if isinstance(each.choice, Dictionary)}
    late = [first for first in numbers.values() if first > change]
    assert late
    assert bounds[min(late)] - 4_000 < 500  # before the next doubling


def test_a_decision_is_made_at_100_kb_and_at_each_doubling() -> None:
    sample = topic("kv-etc", 100)
    planned = _Topic(FORMATS["v2"], sample.records, sample.bounds, 3, sample.batch_fields, DictionaryPolicy())
    found = [8 << 10]
    for _ in range(7):
        found.append(planned.next_decision(found[-1]))
    assert found == [8_192, 16_384, 32_768, 65_536, 100_000, 200_000, 400_000, 800_000]
