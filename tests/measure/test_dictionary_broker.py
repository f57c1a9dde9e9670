"""Broker paths of batches with a dictionary: every path gives the expected records, with the expected work."""

from collections import defaultdict
from dataclasses import replace
from typing import Any

import pytest

from kfbench import FORMATS, train_dictionary
from kfbench.errors import InvalidDictionary, MissingDictionary
from kfbench.measure.dictionary_broker import DICTIONARY_PATHS, measure_dictionary_paths
from kfbench.measure.path_arms import PathArm
from kfbench.measure.path_tasks import PathInput
from tests.measure.test_dictionary import a_topic

SETTINGS: Any = {"size_bytes": 4_096, "training_batch": 10, "rounds": 3, "sample_ns": 1_000, "seed": 0}


@pytest.fixture(scope="module")
def arms() -> dict[str, list[PathArm]]:
    found = defaultdict(list)
    formats = [FORMATS["v2"], FORMATS["columnar"]]
    for path, arm in measure_dictionary_paths(formats, a_topic(), share=0.5, **SETTINGS):
        found[path].append(arm)
    return found


def test_each_path_has_four_arms_and_the_base_again(arms: dict[str, list[PathArm]]) -> None:
    assert arms.keys() == DICTIONARY_PATHS.keys()
    for found in arms.values():
        kinds = [(arm.format, arm.dictionary is not None, arm.arm) for arm in found]
        plain = [("v2", False, "measure"), ("columnar", False, "measure")]
        assert kinds == [*plain, ("v2", True, "measure"), ("columnar", True, "measure"), ("v2", False, "aa")]
        assert all(arm.error is None and arm.samples is not None and 500 < arm.records < 700 for arm in found)


def test_only_the_paths_that_must_open_payloads(arms: dict[str, list[PathArm]]) -> None:
    opened = {path: [arm.columns["decompressed_bytes"] > 0 for arm in found[:4]] for path, found in arms.items()}
    everywhere, nowhere = [True] * 4, [False] * 4
    assert opened == {
        "append": [True, False, True, False], "seek-time": [True, False, True, False], "compact": everywhere,
        "mirror": everywhere, "mirror-renumber": nowhere, "down-convert": [False, False, True, True],
    }  # fmt: skip
    assert arms["mirror-renumber"][2].columns["size_bytes"] < arms["mirror-renumber"][0].columns["size_bytes"]


def test_a_topic_that_is_too_small_is_refused() -> None:
    with pytest.raises(InvalidDictionary, match="samples"):
        list(measure_dictionary_paths([FORMATS["v2"]], a_topic(records=10), share=0.01, **SETTINGS))


@pytest.mark.parametrize("name", ["v2", "columnar"])
def test_an_append_refuses_batches_of_a_dictionary_that_the_leader_does_not_have(name: str) -> None:
    fmt, source = FORMATS[name], a_topic()
    made, other = (train_dictionary(source.records, fmt, size_bytes=size) for size in (4_096, 2_048))
    log = replace(source, dictionary=made).encode(fmt)
    leader = PathInput(fmt=fmt, to=None, log=log, source=replace(source, dictionary=other))
    with pytest.raises(MissingDictionary, match="number 1 with check"):
        DICTIONARY_PATHS["append"].task(leader).call()
