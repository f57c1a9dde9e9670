"""A fingerprint's sample comes from several places of a topic's largest file, and has no record twice."""

from pathlib import Path

import numpy as np
import pytest

from kfbench.fingerprint.answer import what_if_of
from kfbench.fingerprint.grid import SAMPLE_BYTES, SAMPLE_PLACES, WHOLE_BYTES, sample_of
from kfbench.fingerprint.measure import fingerprint
from kfbench.formats import FORMATS
from kfbench.records import Records
from kfbench.sources.log import Segment
from kfbench.whatif.ask import what_if
from kfbench.whatif.rebatch import Batching
from kfbench.workloads import WORKLOADS

VALUE_BYTES = 1000
COUNT = 2 * WHOLE_BYTES // VALUE_BYTES


def segment_of(folder: Path, batch_size: int, count: int = COUNT) -> Segment:
    """Write `count` records, each with its number as its time."""
    given = Records.from_lists([b"x" * VALUE_BYTES] * count, timestamps_ms=range(1, count + 1))
    path = folder / "00000000000000000000.log"
    path.write_bytes(bytes(FORMATS["v2"].encode(given, batch_size)))
    return Segment(name=str(path), written_bytes=path.stat().st_size)


def times_of(segment: Segment) -> list[int]:
    found = sample_of(segment)
    assert found is not None
    return [int(time) for time in found.sent.records.timestamps_ms]


def test_a_small_file_is_the_sample(tmp_path: Path) -> None:
    assert times_of(segment_of(tmp_path, 10, 300)) == list(range(1, 301))


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
