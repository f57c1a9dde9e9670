"""A fingerprint's sample is a small topic, or comes from several places of its largest file. It has no record twice."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from kfbench.fingerprint.answer import what_if_of
from kfbench.fingerprint.measure import fingerprint
from kfbench.fingerprint.sample import SAMPLE_BYTES, SAMPLE_PLACES, sample_of
from kfbench.fingerprint.sample_sizes import WHOLE_BYTES_OF_PART, measured
from kfbench.formats import FORMATS
from kfbench.records import Records
from kfbench.sources.log import Segment
from kfbench.whatif.ask import what_if
from kfbench.whatif.rebatch import Batching
from kfbench.workloads import WORKLOADS
from tests.recorded import FOLDER as RECORDED
from tests.strategies import NOW_MS

VALUE_BYTES = 1000
COUNT = 2 * WHOLE_BYTES_OF_PART // VALUE_BYTES


def segment_of(folder: Path, batch_size: int, count: int = COUNT) -> Segment:
    """Write `count` records, 1 ms apart."""
    given = Records.from_lists([b"x" * VALUE_BYTES] * count, timestamps_ms=range(NOW_MS, NOW_MS + count))
    path = folder / "00000000000000000000.log"
    path.write_bytes(bytes(FORMATS["v2"].encode(given, batch_size)))
    return Segment(name=str(path), written_bytes=path.stat().st_size)


def times_of(segment: Segment) -> list[int]:
    found = sample_of([segment], WHOLE_BYTES_OF_PART)
    assert found is not None
    return [int(time) - NOW_MS for time in found.sent.records.timestamps_ms]


def test_a_small_topic_is_the_sample(tmp_path: Path) -> None:
    assert times_of(segment_of(tmp_path, 10, 300)) == list(range(300))


def test_the_sample_of_two_small_files_has_both(tmp_path: Path) -> None:
    """No batch has records of both: what-if reads a file after the other."""
    for base in (0, 1):
        shutil.copy(RECORDED / "activity-none.log", tmp_path / f"{base:020}.log")
    given = fingerprint(tmp_path, seed=0).fingerprint
    (topic,) = given.topics
    assert topic.sample and topic.sample.counts.records == topic.stored.sent_records
    asked = [Batching(0.0, 16 << 10), Batching(500.0, 1 << 20)]
    of_log, of_print = what_if(tmp_path, given.formats, batchings=asked), what_if_of(given, batchings=asked)
    for own, arm in zip(of_log.rebatched, of_print.rebatched, strict=True):
        assert arm.batches == own.batches and arm.size_bytes == pytest.approx(own.size_bytes, rel=0.01)


def test_two_settings_have_one_division_if_their_batches_are_the_same(tmp_path: Path) -> None:
    """Records come 1 ms apart. From 16 KiB on, no batch is full before 10 ms have passed."""
    topic = fingerprint(segment_of(tmp_path, 10, 100).name, seed=0).fingerprint.topics[0]
    assert topic.sample
    grid = topic.sample.fast
    row = grid.divisions[grid.linger_ms.index(10)]
    large = [grid.batch_size_bytes.index(size << 10) for size in (16, 64, 1024)]
    assert len({row[i] for i in large}) == 1 != len({*row})
    assert all(len(arm.size_bytes) == max(map(max, grid.divisions)) for arm in grid.arms)


def test_a_large_file_is_sampled_in_several_places(tmp_path: Path) -> None:
    times = times_of(segment_of(tmp_path, 10))
    assert len(times) == len(set(times)) and 0.9 < len(times) * VALUE_BYTES / SAMPLE_BYTES <= 1
    quarters = np.bincount(np.array(times) * SAMPLE_PLACES // (COUNT + 1), minlength=SAMPLE_PLACES)
    assert quarters.min() > 0.9 * quarters.max()


@pytest.mark.parametrize("batch_size", [COUNT, COUNT * 2 // 3, COUNT * 2 // 5])
def test_no_record_of_a_large_batch_is_there_twice(batch_size: int, tmp_path: Path) -> None:
    times = times_of(segment_of(tmp_path, batch_size))
    assert len(times) == len(set(times)) and 0.9 < len(times) * VALUE_BYTES / SAMPLE_BYTES <= 1


def test_topics_that_were_not_drawn_are_estimated_by_the_others(tmp_path: Path) -> None:
    for number in range(16):
        sample = WORKLOADS["user-activity"].generate(records=300, seed=number)
        (tmp_path / f"topic{number}-0").mkdir()
        path = tmp_path / f"topic{number}-0" / "00000000000000000000.log"
        path.write_bytes(bytes(FORMATS["v2"].encode(sample.records, sample.bounds)))
    given = fingerprint(tmp_path, seed=0, sample_bytes=20_000).fingerprint
    assert not all(each.coded for each in given.topics)  # of some topics, nothing was compressed
    asked = [Batching(7.0, 20_000)]
    of_log, of_print = what_if(tmp_path, batchings=asked, sample_bytes=None), what_if_of(given, batchings=asked)
    for own, arm in zip(of_log.rebatched, of_print.rebatched, strict=True):
        assert own.size_bytes and arm.size_bytes == pytest.approx(own.size_bytes, rel=0.1)


def test_a_file_that_cannot_be_read_does_not_take_the_sample(tmp_path: Path) -> None:
    (tmp_path / "a-0").mkdir()
    good = segment_of(tmp_path / "a-0", 10)
    bad = tmp_path / "bad.log"
    bad.write_bytes(bytes(good.written_bytes * 2))
    found = sample_of([Segment(name=str(bad), written_bytes=bad.stat().st_size), good], WHOLE_BYTES_OF_PART)
    assert found is not None and len(found.sent.records) > 900


@pytest.mark.parametrize("is_part", [False, True])
def test_the_shares_of_the_work_are_at_most_the_whole(is_part: bool, tmp_path: Path) -> None:
    shares: list[float] = []
    measured([segment_of(tmp_path, 10)], ["v2"], map, shares.append, topics=1, is_part=is_part)
    assert 0.1 < sum(shares) <= 1.0000001
