"""`what-if` gives the same answer for a fingerprint as for its log, in the log's own batches."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kfbench import BatchFields, Records
from kfbench.errors import InvalidConfig
from kfbench.fingerprint.file import read_file, to_json, what_if_of
from kfbench.fingerprint.measure import fingerprint
from kfbench.formats import FORMATS
from kfbench.whatif.answer import WhatIf
from kfbench.whatif.ask import what_if
from kfbench.whatif.tables import render_text
from kfbench.workloads import WORKLOADS
from tests.dictionary_samples import TRAINED, records, segment
from tests.recorded import FOLDER, NAMES

MINUTE_MS, NOW_MS = 60_000, 1_712_345_678_901


def written(folder: Path, data: object, topic: str = "orders", offset: int = 0) -> Path:
    partition = folder / f"{topic}-0"
    partition.mkdir(exist_ok=True)
    (partition / f"{offset:020d}.log").write_bytes(bytes(data))  # type: ignore[call-overload]
    return partition


def numbers_of(answer: WhatIf) -> dict[str, Any]:
    """Return all of --json that a fingerprint has as its log has it: without names, dates, months and CPU time."""

    def without(value: Any) -> Any:
        if isinstance(value, dict):
            left_out = ("topic", "month", "saving_a_month", "cpu_ms_per_mb", "seed", "current")
            return {name: without(each) for name, each in value.items() if name not in left_out}
        return [without(each) for each in value] if isinstance(value, list) else value

    given = json.loads(json.dumps(answer.to_dict()))
    if given["dictionary"]:  # a fingerprint's topics are in another order
        given["dictionary"]["topics"].sort(key=lambda each: (each["train_bytes"], each["format"], each["kind"]))
    del given["sources"], given["skipped"], given["topics"], given["rate"], given["month_now"]
    return {name: without(each) for name, each in given.items()}


def check_same(log: Path, folder: Path, formats: Any = None) -> WhatIf:
    """Compare the answers for a log and for its fingerprint's file. Return the latter."""
    path = folder / "print.json"
    path.write_bytes(to_json(fingerprint(log, seed=0).fingerprint))
    of_log, of_print = what_if(log, formats, batchings=()), what_if_of(read_file(path), formats)
    assert numbers_of(of_print) == numbers_of(of_log)
    assert list(of_print.breakdown) == list(of_log.breakdown)
    return of_print


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", NAMES)
def test_a_recorded_log(name: str, tmp_path: Path) -> None:
    check_same(FOLDER / name, tmp_path)


@pytest.mark.parametrize("formats", [["v3"], ["v2", "v0"], pytest.param("all", marks=pytest.mark.slow)])
def test_other_formats(formats: Any, tmp_path: Path) -> None:
    check_same(FOLDER / "service-headers.log", tmp_path, formats)


def test_a_log_with_dictionaries(tmp_path: Path) -> None:
    given = records(5_000, 7_000).at_offsets(np.arange(5_000, 7_000))
    of_print = check_same(written(tmp_path, segment("v2", TRAINED, given), offset=5_000), tmp_path)
    assert of_print.sources[0].kinds == {"v2 zstd-dictionary": 200} and of_print.sources[0].dictionary_bytes > 0


@pytest.mark.slow
def test_a_large_log_has_another_sample_and_the_same_sizes_without_a_codec(tmp_path: Path) -> None:
    sample = WORKLOADS["user-activity"].generate(records=30_000, seed=3)
    log = written(tmp_path, FORMATS["v2"].encode(sample.records, sample.bounds))
    of_log = what_if(log, batchings=())
    of_print, again = (what_if_of(fingerprint(log, seed=seed).fingerprint) for seed in (5, 0))
    assert of_print.breakdown == of_log.breakdown and again.arms == of_log.arms
    for arm, own in zip(of_print.arms, of_log.arms, strict=True):
        assert arm.size_bytes and own.size_bytes and arm.error_bytes is not None and own.error_bytes is not None
        assert abs(arm.size_bytes - own.size_bytes) <= 5 * (arm.error_bytes + own.error_bytes)


def test_the_text_has_the_tables_of_the_log_and_names_no_option_that_is_refused() -> None:
    log = FOLDER / "service-headers.log"
    of_log = render_text(what_if(log, batchings=()), ["all"])
    of_print = render_text(what_if_of(fingerprint(log, seed=0).fingerprint), ["all"])
    tables = [[line for line in text.split("\n") if line.startswith("v3 ")] for text in (of_log, of_print)]
    assert tables[0] == tables[1] and len(tables[0]) > 5
    assert "--all" not in of_print.replace("--table all", "") and "--dictionary" not in of_print


def test_several_topics_are_numbered_by_their_size(tmp_path: Path) -> None:
    of_print = check_same(FOLDER, tmp_path)
    assert [source.path for source in of_print.sources] == [f"topic {i + 1}" for i in range(len(of_print.sources))]
    sizes = [source.sound_bytes for source in of_print.sources]
    assert sizes == sorted(sizes, reverse=True)


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
    of_log, of_print = what_if(log, batchings=()), what_if_of(fingerprint(log).fingerprint)
    if of_log.rate is None:
        assert of_print.rate is None and times[-1] - times[0] < MINUTE_MS
    else:
        assert of_print.rate and of_print.rate.bytes_a_day == pytest.approx(of_log.rate.bytes_a_day, rel=0.006)
        now, then = of_log.month(), of_print.month()
        assert now and then and then.total == pytest.approx(now.total, rel=0.006)


def test_the_user_may_give_a_rate() -> None:
    given = fingerprint(FOLDER / "activity-none.log").fingerprint
    of_log = what_if(FOLDER / "activity-none.log", batchings=(), rate_mb_s=2)
    assert what_if_of(given, rate_mb_s=2).month() == of_log.month()


def test_control_batches_are_no_records_of_clients(tmp_path: Path) -> None:
    marker = Records.from_lists([b"\0\0\0\0\0\0"], [b"\0\0\0\1"], timestamps_ms=[NOW_MS])
    fields = BatchFields(producer_id=7, producer_epoch=0, is_transactional=True, is_control=True)
    log = FORMATS["v2"].encode(Records.from_lists([b"x" * 50] * 40), 10)
    written(tmp_path, FORMATS["v2"].encode(marker, 1, batch_fields=fields), "markers")
    written(tmp_path, log)
    check_same(tmp_path, tmp_path)
    histograms = fingerprint(tmp_path).fingerprint.histograms
    assert [each.members for each in histograms["topic 1"]["value_bytes"]] == [40]
    assert not any(histograms["topic 2"].values())


def test_a_topic_of_unknown_unit_has_no_rate(tmp_path: Path) -> None:
    times = {"counted": range(50), "sound": range(NOW_MS, NOW_MS + 50 * MINUTE_MS, MINUTE_MS)}
    for topic, given in times.items():
        data = FORMATS["v2"].encode(Records.from_lists([b"x"] * 50, timestamps_ms=given), 10)
        written(tmp_path, data, topic)
    of_print = what_if_of(fingerprint(tmp_path).fingerprint)
    assert list(of_print.unit_doubts.values()) == ["they tell none"]
    assert of_print.rate and len(of_print.rate.streams) == 1
    assert not what_if_of(fingerprint(tmp_path, timestamp_unit="ms").fingerprint).unit_doubts


def test_unknown_formats_are_refused() -> None:
    given = fingerprint(FOLDER / "activity-none.log").fingerprint
    with pytest.raises(InvalidConfig, match="v9"):
        what_if_of(given, ["v9"])
