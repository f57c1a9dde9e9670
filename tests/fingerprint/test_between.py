"""Sizes in batches that a fingerprint does not have are close to those of the log's own what-if."""

import shutil
from pathlib import Path
from random import Random

import numpy as np
import pytest

from kfbench.errors import InvalidConfig
from kfbench.fingerprint.answer import what_if_of
from kfbench.fingerprint.measure import fingerprint
from kfbench.formats import FORMATS
from kfbench.shipped import DATASETS
from kfbench.whatif.ask import SAMPLE_BYTES, what_if
from kfbench.whatif.rebatch import Batching
from kfbench.whatif.text import render_text
from kfbench.workloads import WORKLOADS
from tests.recorded import FOLDER, INDEX

MOST_OFF = 0.03  # the largest error
MOST_OFF_OF_SNAPPY = 0.04
MOST_OFF_OF_FEW = 0.07  # of logs that have fewer records than LEAST_RECORDS
LEAST_RECORDS = 100
MOST_OFF_OF_MANY_FEW = 0.17  # of 12 such topics
MOST_OFF_OF_PARTS = 0.08  # the sample is a part of the topic
MOST_OFF_OF_RATES = 0.15  # the same, and the partitions of the topic have different rates
# The first records have the broker's time, the others have the producers', which are months earlier.
MOST_OFF_OF_MIXED_TIMES = {"older-producer-append-time-v1.log": 0.14}
MOST_BATCHES_OFF = 0.2
LINES = [
    pytest.param(log, id=log.stem, marks=[pytest.mark.thorough] * (log.stem != "jvm-gc"))
    for log in sorted((DATASETS / "lines").glob("*.log"))
]
draw = Random(20261127)
ASKED = [Batching(0.0, 16_384), Batching(1.0, 65_536), Batching(10.0, 16_384), Batching(200.0, 524_288)]
ASKED += [Batching(round(501 ** draw.random() - 1, 1), int(4096 * 256 ** draw.random())) for _ in range(12)]


def check(log: Path, most_off: float = MOST_OFF, *, is_part: bool = False) -> None:
    given = fingerprint(log, seed=0).fingerprint
    for topic in given.topics:
        assert topic.sample and (topic.sample.counts.records < topic.stored.sent_records) == is_part
    of_log, of_print = what_if(log, given.formats, batchings=ASKED), what_if_of(given, batchings=ASKED)
    assert len(of_print.rebatched) == len(of_log.rebatched) >= len(ASKED) * 10
    arms = [(arm.format, arm.codec, arm.batching) for arm in of_log.rebatched]
    assert arms == [(arm.format, arm.codec, arm.batching) for arm in of_print.rebatched]
    pairs = zip(of_print.rebatched, of_log.rebatched, strict=True)
    errors = [
        (abs(arm.size_bytes / own.size_bytes - 1), own.format, own.codec, own.batching)
        for arm, own in pairs
        if arm.size_bytes and own.size_bytes
    ]
    assert len(errors) == len(arms)
    over = [each for each in errors if each[0] > max(most_off, MOST_OFF_OF_SNAPPY * (each[2] == "snappy"))]
    assert not over, max(over)
    for arm, own in zip(of_print.rebatched, of_log.rebatched, strict=True):
        assert arm.batches == pytest.approx(own.batches, rel=MOST_BATCHES_OFF, abs=1), own.batching


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", [name for name in WORKLOADS if name != "grid"])
def test_other_batches_of_a_named_workload(name: str, tmp_path: Path) -> None:
    sample = WORKLOADS[name].generate(records=12 if name == "large-payload" else 4000, seed=3)
    log = tmp_path / "00000000000000000000.log"
    log.write_bytes(bytes(FORMATS["v2"].encode(sample.records, sample.bounds, "lz4")))
    check(log, is_part=log.stat().st_size > SAMPLE_BYTES)


@pytest.mark.thorough
@pytest.mark.parametrize(("name", "records"), [("user-activity", 120_000), ("omb-100b", 200_000)])
def test_other_batches_of_a_log_that_is_compressed_in_part(name: str, records: int, tmp_path: Path) -> None:
    sample = WORKLOADS[name].generate(records=records, seed=1)
    log = tmp_path / "00000000000000000000.log"
    log.write_bytes(bytes(FORMATS["v2"].encode(sample.records, sample.bounds, "lz4")))
    assert log.stat().st_size > 5 * SAMPLE_BYTES
    check(log, MOST_OFF_OF_PARTS, is_part=True)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", [name for name, entry in INDEX.items() if entry["records"]])
def test_other_batches_of_a_recorded_log(name: str) -> None:
    most_off = MOST_OFF if INDEX[name]["records"] >= LEAST_RECORDS else MOST_OFF_OF_FEW
    check(FOLDER / name, MOST_OFF_OF_MIXED_TIMES.get(name, most_off))


@pytest.mark.parametrize("log", LINES)
def test_other_batches_of_recorded_lines(log: Path) -> None:
    check(log)


@pytest.mark.parametrize(
    ("counts", "most_off"),
    [((4000, 1500), MOST_OFF), pytest.param((12_000, 5000), MOST_OFF_OF_RATES, marks=pytest.mark.thorough)],
)
def test_other_batches_of_two_partitions_of_different_rates(
    counts: tuple[int, int], most_off: float, tmp_path: Path
) -> None:
    """The sample of the larger topic comes from one partition, whose rate of records is not that of the topic."""
    for partition, count in enumerate(counts):
        sample = WORKLOADS["user-activity"].generate(records=count, seed=partition)
        times = sample.records.timestamps_ms
        slower = sample.records.at_times(times[0] + (times - times[0]) * 20**partition)
        (tmp_path / f"topic-{partition}").mkdir()
        log = tmp_path / f"topic-{partition}" / "00000000000000000000.log"
        log.write_bytes(bytes(FORMATS["v2"].encode(slower, sample.bounds, "lz4")))
    check(tmp_path, most_off, is_part=most_off > MOST_OFF)


@pytest.mark.thorough
def test_other_batches_of_twelve_topics_of_few_records(tmp_path: Path) -> None:
    """They share the further settings."""
    for number in range(12):
        (tmp_path / f"t{number}-0").mkdir()
        shutil.copy(FOLDER / "edges-v1.log", tmp_path / f"t{number}-0" / "00000000000000000000.log")
    check(tmp_path, MOST_OFF_OF_MANY_FEW)


def test_one_record_changes_much_under_snappy() -> None:
    """Why sizes under snappy cannot be within 3 %: they change by more if all batches begin one record later."""
    records = WORKLOADS["service-events"].generate(records=4000, seed=3).records

    def sizes(codec: str) -> list[int]:
        bounds = [np.array([0, *range(95 + shift, 4000, 95), 4000]) for shift in range(24)]
        return [len(bytes(FORMATS["columnar"].encode(records, each, codec))) for each in bounds]

    def largest_step(codec: str) -> float:
        return float(np.abs(np.diff(np.log(sizes(codec)))).max())

    assert largest_step("snappy") > 2 * MOST_OFF
    assert max(map(largest_step, ("gzip", "lz4", "zstd"))) < MOST_OFF / 5


def test_settings_outside_of_the_grid_are_refused() -> None:
    given = fingerprint(FOLDER / "activity-none.log").fingerprint
    for batching in (Batching(501.0, 16_384), Batching(5.0, 1 << 21), Batching(5.0, 100)):
        with pytest.raises(InvalidConfig, match=r"linger 0 to 500 ms and batch\.size 4,096 to 1,048,576"):
            what_if_of(given, batchings=[batching])


def test_interpolated_batches_are_named() -> None:
    given = fingerprint(FOLDER / "activity-none.log").fingerprint
    answer = what_if_of(given, batchings=[Batching(7.0, 20_000), Batching(5.0, 16 << 10)])
    assert {arm.batching for arm in answer.rebatched if arm.error_bytes is None} == {Batching(7.0, 20_000)}
    assert "linger 7 ms and batch.size 20,000" in render_text(answer, ["all"])
    assert answer.to_dict()["interpolated"] == [{"linger_ms": 7.0, "batch_size_bytes": 20_000}]
    with pytest.raises(InvalidConfig, match="not in v0"):
        what_if_of(given, ["v0"], batchings=[Batching(7.0, 20_000)])


def test_a_topic_without_records_of_clients_adds_nothing(tmp_path: Path) -> None:
    for topic, data in (("a-0", (FOLDER / "activity-none.log").read_bytes()), ("empty-0", b"")):
        (tmp_path / topic).mkdir()
        (tmp_path / topic / "00000000000000000000.log").write_bytes(data)
    batching = Batching(7.0, 20_000)
    both, one = (
        what_if_of(fingerprint(path, seed=0).fingerprint, batchings=[batching]) for path in (tmp_path, tmp_path / "a-0")
    )
    assert [arm.size_bytes for arm in both.rebatched] == [arm.size_bytes for arm in one.rebatched]
