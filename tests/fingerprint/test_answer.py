"""`what-if` gives the same answer for a fingerprint as for its log."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kfbench import BatchFields, Records
from kfbench.errors import InvalidConfig, UnknownTimeUnit
from kfbench.fingerprint.answer import what_if_of
from kfbench.fingerprint.file import MOST_BYTES, read_file, to_json
from kfbench.fingerprint.measure import fingerprint
from kfbench.formats import FORMATS
from kfbench.whatif.ask import what_if
from kfbench.whatif.rebatch import BATCHINGS
from kfbench.whatif.text import render_text
from kfbench.workloads import WORKLOADS
from tests.dictionary_samples import TRAINED, records, segment
from tests.recorded import FOLDER, NAMES

SAME = (
    "arms", "rebatched", "breakdown", "losses", "illegal", "break_even", "overhead", "sent_records", "uniform_records",
    "now_bytes", "base_bytes", "records", "payload_bytes",
)  # fmt: skip
MINUTE_MS, NOW_MS = 60_000, 1_712_345_678_901


def written(folder: Path, data: object, topic: str = "orders", offset: int = 0) -> Path:
    partition = folder / f"{topic}-0"
    partition.mkdir(exist_ok=True)
    (partition / f"{offset:020d}.log").write_bytes(bytes(data))  # type: ignore[call-overload]
    return partition


def check_same(log: Path, folder: Path, **options: Any) -> None:
    """Compare the answers for a log of at most 2 MiB and for its fingerprint's file."""
    path = folder / "print.json"
    path.write_bytes(to_json(fingerprint(log, seed=0).fingerprint))
    assert path.stat().st_size <= MOST_BYTES
    of_log, of_print = what_if(log, **options), what_if_of(read_file(path), **options)
    for name in SAME:
        assert getattr(of_print, name) == getattr(of_log, name), name
    assert [replace(each, cpu_ms_per_mb=0) for each in of_print.levels] == [
        replace(each, cpu_ms_per_mb=0) for each in of_log.levels
    ]
    (topic,), (own,) = of_print.by_topic, of_log.by_topic
    assert (topic.topic, replace(topic, topic=own.topic)) == ("topic 1", own)
    assert (of_print.dictionary is None) == (of_log.dictionary is None)
    if of_log.dictionary and of_print.dictionary:
        assert of_print.dictionary.savings == of_log.dictionary.savings


@pytest.mark.sampled(6)
@pytest.mark.parametrize("name", NAMES)
def test_a_recorded_log(name: str, tmp_path: Path) -> None:
    check_same(FOLDER / name, tmp_path)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", [name for name in WORKLOADS if name != "grid"])
def test_a_named_workload(name: str, tmp_path: Path) -> None:
    sample = WORKLOADS[name].generate(records=12 if name == "large-payload" else 2000, seed=3)
    check_same(written(tmp_path, FORMATS["v2"].encode(sample.records, sample.bounds, "lz4")), tmp_path)


@pytest.mark.parametrize("options", [{"formats": ["v3"]}, {"codecs": ["none", "lz4"]}, {"batchings": BATCHINGS[1:2]}])
def test_other_questions(options: dict[str, Any], tmp_path: Path) -> None:
    given = {"formats": ["v2", "v3", "columnar"]} | options
    check_same(FOLDER / "service-headers.log", tmp_path, **given)


def test_every_format_without_a_codec(tmp_path: Path) -> None:
    log = FOLDER / "service-headers.log"
    check_same(log, tmp_path, formats="all", codecs=["none"])
    of_print = what_if_of(fingerprint(log).fingerprint, "all", ["none"])
    assert of_print.breakdown.keys() == FORMATS.keys()
    assert all(arm.error_bytes == 0 for arm in of_print.arms)


def test_a_log_with_dictionaries(tmp_path: Path) -> None:
    given = records(5_000, 7_000).at_offsets(np.arange(5_000, 7_000))
    log = written(tmp_path, segment("v2", TRAINED, given), offset=5_000)
    made = fingerprint(log).fingerprint
    of_log, of_print = what_if(log), what_if_of(made)
    assert of_print.arms == of_log.arms
    assert made.topics[0].stored.kinds == {"v2 zstd-dictionary": 200}
    assert of_print.sources[0].dictionary_bytes == of_log.sources[0].dictionary_bytes > 0


def test_a_large_log_has_another_sample_and_the_same_sizes_without_a_codec(tmp_path: Path) -> None:
    sample = WORKLOADS["user-activity"].generate(records=30_000, seed=3)
    log = written(tmp_path, FORMATS["v2"].encode(sample.records, sample.bounds))
    of_log = what_if(log)
    of_print, again = (what_if_of(fingerprint(log, seed=seed).fingerprint) for seed in (5, 0))
    assert of_print.breakdown == of_log.breakdown and again.arms == of_log.arms
    for arm, own in zip(of_print.arms, of_log.arms, strict=True):
        assert arm.size_bytes and own.size_bytes and arm.error_bytes is not None and own.error_bytes is not None
        assert abs(arm.size_bytes - own.size_bytes) <= 5 * (arm.error_bytes + own.error_bytes)


def test_formats_that_no_codec_was_tried_in_are_named() -> None:
    answer = what_if_of(fingerprint(FOLDER / "activity-none.log").fingerprint, ["v3-full"])
    (arm,) = (arm for arm in answer.arms if (arm.format, arm.codec) == ("v3-full", "zstd"))
    assert arm.size_bytes is None
    text = render_text(answer, ["all"])
    assert "No codec was tried in v3-full" in text
    assert "--all" not in text.replace("--table all", "") and "--dictionary" not in text


def test_several_topics_are_numbered_by_their_size() -> None:
    given = fingerprint(FOLDER).fingerprint
    of_log, of_print = what_if(FOLDER), what_if_of(given)
    assert [topic.name for topic in given.topics] == [f"topic {i + 1}" for i in range(len(given.topics))]
    sizes = [topic.stored.sound_bytes for topic in given.topics]
    assert sizes == sorted(sizes, reverse=True)
    assert of_print.arms == of_log.arms and of_print.rebatched == of_log.rebatched
    assert len(of_print.by_topic) == len(of_log.by_topic)


@pytest.mark.parametrize(
    "times_ms",
    [
        range(0, 400 * MINUTE_MS, MINUTE_MS),
        range(0, 20 * 60 * MINUTE_MS, 60 * MINUTE_MS),
        range(0, 9 * MINUTE_MS, MINUTE_MS),
        range(0, 1000, 100),
    ],
)
def test_the_rate_is_that_of_the_log(times_ms: Sequence[int], tmp_path: Path) -> None:
    times = NOW_MS + np.array(times_ms)
    log = written(tmp_path, FORMATS["v2"].encode(Records.from_lists([b"x" * 100] * len(times), timestamps_ms=times), 1))
    of_log, of_print = what_if(log).rate, what_if_of(fingerprint(log).fingerprint).rate
    if of_log is None:
        assert of_print is None and times[-1] - times[0] < MINUTE_MS
    else:
        assert of_print and of_print.bytes_a_day == pytest.approx(of_log.bytes_a_day, rel=0.02)


def test_records_without_times_have_no_rate(tmp_path: Path) -> None:
    log = written(tmp_path, FORMATS["v2"].encode(Records.from_lists([b"x"] * 50), 10))
    made = fingerprint(log).fingerprint
    assert made.topics[0].span is None and what_if_of(made).rate is None


def test_control_batches_are_no_records_of_clients(tmp_path: Path) -> None:
    marker = Records.from_lists([b"\0\0\0\0\0\0"], [b"\0\0\0\1"], timestamps_ms=[NOW_MS])
    fields = BatchFields(producer_id=7, producer_epoch=0, is_transactional=True, is_control=True)
    written(tmp_path, FORMATS["v2"].encode(marker, 1, batch_fields=fields), "markers")
    written(tmp_path, FORMATS["v2"].encode(Records.from_lists([b"x" * 50] * 40), 10))
    made = fingerprint(tmp_path).fingerprint
    assert {topic.stored.sent_records for topic in made.topics} == {0, 40}
    assert what_if_of(made).arms == what_if(tmp_path).arms


def test_a_topic_of_unknown_unit_is_left_out(tmp_path: Path) -> None:
    times = {"counted": range(50), "sound": range(NOW_MS, NOW_MS + 50)}
    logs = {
        topic: written(tmp_path, FORMATS["v2"].encode(Records.from_lists([b"x"] * 50, timestamps_ms=given), 10), topic)
        for topic, given in times.items()
    }
    made = fingerprint(tmp_path)
    assert list(made.left_out) == ["counted"] and list(made.topics.values()) == ["sound"]
    assert what_if_of(made.fingerprint).arms == what_if(logs["sound"]).arms
    assert fingerprint(tmp_path, timestamp_unit="ms").left_out == {}
    with pytest.raises(UnknownTimeUnit, match="counted"):
        fingerprint(logs["counted"])


def test_unknown_formats_are_refused() -> None:
    given = fingerprint(FOLDER / "activity-none.log").fingerprint
    with pytest.raises(InvalidConfig, match="v9"):
        what_if_of(given, ["v9"])
