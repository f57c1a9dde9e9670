"""Sizes and times with dictionaries. Training never sees what is measured."""

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from kfbench import FORMATS, Dictionary, train_dictionary
from kfbench.codecs import ZstdDictionary
from kfbench.dictionary_training import samples as all_samples
from kfbench.errors import IllegalCombination, InvalidConfig
from kfbench.log import dictionary_batch
from kfbench.measure.columns import Row
from kfbench.measure.encode_input import EncodeInput
from kfbench.measure.schema import DETERMINISTIC
from kfbench.research.dictionaries import sizes as module
from kfbench.research.dictionaries.cpu import DICTIONARY_OPERATIONS, _copies, measure_codecs
from kfbench.research.dictionaries.kinds import DictionarySettings, topic_of
from kfbench.research.dictionaries.sizes import measure_dictionaries, split_topic
from kfbench.sweep.definition import sweep_file
from kfbench.sweep.definition.profile import cells_of_grid
from kfbench.sweep.definition.sweep_file import Grid
from kfbench.sweep.run.task import measure_cell
from kfbench.workloads.catalogue import WORKLOADS
from kfbench.workloads.recorded import TOPICS
from tests.sweep.cells import dictionary_cell

SETTINGS: Any = {"sizes_bytes": (2_048, 4_096), "shares": (0.25, 0.5), "parts": 3, "training_batch": 10}


def a_topic(workload: str = "user-activity", records: int = 1_200) -> EncodeInput:
    sample = WORKLOADS[workload].generate(records=records, seed=3)
    return EncodeInput(
        records=sample.records, bounds=sample.bounds, codec="zstd", level=3, batch_fields=sample.batch_fields
    )


def rows_of(name: str, source: EncodeInput) -> list[Row]:
    return list(measure_dictionaries(FORMATS[name], source, **SETTINGS))


@pytest.mark.parametrize("parts", [1, 3])
@pytest.mark.parametrize("share", [0.0, 0.01, 0.3, 0.5, 0.9])
def test_parts_follow_what_was_trained_on_without_a_gap(share: float, parts: int) -> None:
    sizes = np.random.default_rng(1).integers(1, 30, 200)
    bounds = np.append(0, np.cumsum(sizes))
    cuts = split_topic(bounds, share, parts)
    assert cuts[-1] == 200 and len(cuts) == parts + 1
    assert (np.diff(cuts) > 0).all() and np.ptp(np.diff(cuts)) <= 1
    assert 0 <= bounds[cuts[0]] - share * bounds[-1] < 30


def test_a_topic_with_too_few_batches_is_refused() -> None:
    with pytest.raises(IllegalCombination, match="2 batches"):
        split_topic(np.array([0, 5, 10]), 0.9, 1)


@pytest.mark.parametrize("name", ["v2", "columnar"])
def test_training_sees_only_records_before_those_that_are_measured(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    source, trained_until, encoded_from = a_topic(), [], []

    def samples(records: Any, *given: Any) -> list[bytes]:
        trained_until.append(int(records.offsets.max()))
        return all_samples(records, *given)

    def verified(_: Any, source: Any, log: Any) -> None:
        if source.dictionaries:
            encoded_from.append(int(source.records.offsets.min()))

    monkeypatch.setattr(module, "samples", samples)
    monkeypatch.setattr(module, "verify_records", verified)
    first_batch = int(split_topic(source.bounds, 0.5, 1)[0])
    module.make_dictionary(source, FORMATS[name], first_batch, 10, module.trainer(4_096))
    list(measure_dictionaries(FORMATS[name], source, **SETTINGS | {"shares": (0.5,)}))
    first = int(source.records.offsets[source.bounds[first_batch]])
    assert trained_until and max(trained_until) < first
    assert len(encoded_from) == 3 and set(encoded_from) == {first}


@pytest.mark.parametrize("name", ["v2", "columnar"])
def test_rows_are_sizes_of_batches_behind_the_split(name: str) -> None:
    source, fmt = a_topic(), FORMATS[name]
    rows = rows_of(name, source)
    cuts = split_topic(source.bounds, 0.5, 3)
    first, end = source.bounds[cuts[:2]].tolist()
    dictionary = train_dictionary(source.records.part(0, first), fmt, size_bytes=4_096)
    part = source.between(int(cuts[0]), int(cuts[1]))
    log = fmt.encode(part.records, part.bounds, "zstd", 3, part.batch_fields, dictionary=dictionary)
    wanted = {"dictionary": "trained", "dictionary_size_bytes": 4_096, "trained_share": 0.5, "part": 1}
    (row,) = [row for row in rows if row.items() >= wanted.items()]
    assert row["size_bytes"] == len(log.data) and row["records"] == end - first
    assert row["dictionary_stored_bytes"] == len(dictionary_batch(dictionary, fmt).data)
    assert row["trained_records"] == first and row["training_ns"] > 0 and row["dictionary_memory_bytes"] > 4_096
    assert dictionary.trained_on is not None and row["trained_bytes"] == dictionary.trained_on.size_bytes


def test_all_arms_of_a_share_measure_the_same_records() -> None:
    rows = rows_of("v2", a_topic())
    arms: dict[Any, list[Any]] = {}
    for row in rows:
        arm = row["trained_share"], row["dictionary"], row.get("dictionary_size_bytes")
        arms.setdefault(arm, []).append((row["part"], row["records"], row["batches"], row["payload_bytes"]))
    for share, wanted in ((0.0, 2), (0.25, 5), (0.5, 5)):
        found = [parts for (other, *_), parts in arms.items() if other == share]
        assert len(found) == wanted and all(parts == found[0] for parts in found)
        assert len(found[0]) == (3 if share else 1)
    assert sum(row["records"] for row in rows if (row["trained_share"], row["dictionary"]) == (0.0, "plain")) == 1_200


def test_rows_are_the_same_each_time_but_for_the_time() -> None:
    one, other = (
        [{k: v for k, v in row.items() if k in DETERMINISTIC} for row in rows_of("columnar", a_topic())]
        for _ in range(2)
    )
    assert one == other


def test_a_topic_that_is_too_small_to_train_on_gets_rows_with_the_reason() -> None:
    rows = rows_of("v2", a_topic("large-payload", 12))
    assert {row["status"] for row in rows} >= {"skipped"}
    assert all(row["error"] for row in rows if row["status"] == "skipped")
    assert any(row["status"] == "ok" and row["dictionary"] == "plain" for row in rows)


def test_codec_times_are_of_plain_zstd_and_of_each_dictionary() -> None:
    arms = list(
        measure_codecs(
            FORMATS["v2"], a_topic(), sizes_bytes=(2_048, 4_096), share=0.5, training_batch=10, live=(1, 3), rounds=5,
            sample_ns=20_000,
        )
    )  # fmt: skip
    found = [
        (arm.columns["live"], arm.columns["operation"], arm.columns["arm"], arm.columns.get("dictionary_size_bytes"))
        for arm in arms
    ]
    each = [("measure", None), ("measure", None), ("measure", 2_048), ("measure", 4_096), ("aa", None)]
    assert found == [(*group, *arm) for group in itertools.product((1, 3), DICTIONARY_OPERATIONS) for arm in each]
    for arm in arms:
        assert len(arm.samples.cpu_ns) == 5 and arm.samples.cpu_ns.min() > 0
    assert [arm.columns["dictionary"] for arm in arms[:5]] == ["plain", "lean", "trained", "trained", "plain"]
    plain, lean, small, large, again = (arm.columns["compressed_bytes"] for arm in arms[:5])
    assert large < small < lean < plain == again


def test_live_dictionaries_differ_and_still_fit_the_topic() -> None:
    source = a_topic()
    made = train_dictionary(source.records, "v2", size_bytes=4_096)
    copies = _copies(made, 16)
    assert len({copy.sha256 for copy in copies}) == 16 and copies[0] is made
    body = FORMATS["v2"].plain_bodies(source.records, source.bounds)[-1]
    sizes = [len(ZstdDictionary.of(copy).compress(body, 3)) for copy in copies]
    assert max(sizes) <= 1.02 * min(sizes) and isinstance(copies[1], Dictionary)


# A topic whose records change: those of another recorded topic come first.

CHANGING = {"trained_share": (0.5, 0.75), "parts": 2, "preceded_by": "lines-jvm-gc"}
NEW = replace(TOPICS["lines-kafka-broker"], batch_size=7)


def test_the_records_change_in_the_middle_at_a_batch_boundary() -> None:
    cell = replace(dictionary_cell(settings=CHANGING, records=1_000), workload=NEW)
    sample = topic_of(cell)
    parts = [replace(TOPICS["lines-jvm-gc"], batch_size=7), NEW]
    old, new = (part.generate(records=1_000, seed=0) for part in parts)
    assert sample.records.values() == old.records.values() + new.records.values()
    assert 1_000 in sample.bounds and sample.bounds[-1] == len(sample.records) == 2_000
    rows = measure_cell(replace(cell, formats=("v2",), grids={"g": ("v2",)}))
    (first, second) = (row for row in rows if row["trained_share"] == 0.5 and row["dictionary"] == "plain")
    assert first["records"] + second["records"] == 1_000
    trained = {row["trained_share"]: row["trained_records"] for row in rows if row["dictionary"] == "trained"}
    assert trained[0.5] == 1_000 and 1_500 <= trained[0.75] < 1_507


@pytest.mark.parametrize(
    ("before", "workloads", "reason"),
    [
        ("lines-none", ["lines-jvm-gc"], "'lines-none'"),
        ("recorded-telemetry", ["lines-jvm-gc"], "'recorded-telemetry'"),
        ("lines-jvm-gc", ["user-activity"], "'user-activity'"),
        ("lines-jvm-gc", ["lines-*"], r"'lines-\*'"),
        ("lines-jvm-gc", ["lines-jvm-gc"], "itself"),
    ],
)
def test_only_other_topics_of_lines_can_follow(before: str, workloads: list[str], reason: str) -> None:
    given: dict[str, Any] = {"workloads": workloads, "dictionary": DictionarySettings(preceded_by=before)}
    grid = Grid(
        name="g", title="", analysis="", measure=["dictionary"], formats=["v2"], codecs={"zstd": [3]}, **given
    )  # fmt: skip
    with pytest.raises(InvalidConfig, match=f"preceded_by.*{reason}"):
        cells_of_grid("here", grid, sweep_file.read("dictionary").file)
