"""The committed fingerprints are those of the recorded logs and the named workloads."""

import json
from typing import Any

import pytest

from kfbench.fingerprint.answer import what_if_of
from kfbench.fingerprint.file import MOST_BYTES, read_file, to_json
from tools.fingerprints import FOLDER, NAMES, fingerprint_of, path_of


def test_each_log_and_workload_has_a_fingerprint() -> None:
    assert sorted(FOLDER.rglob("*.json")) == sorted(map(path_of, NAMES))


@pytest.mark.parametrize("name", NAMES)
def test_a_committed_fingerprint_answers(name: str) -> None:
    path = path_of(name)
    assert path.stat().st_size <= MOST_BYTES
    given = read_file(path)
    assert what_if_of(given).best.size_bytes
    assert to_json(given) == path.read_bytes()


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", NAMES)
def test_a_committed_fingerprint_is_that_of_its_log(name: str) -> None:
    """All but the CPU times, versions and counts of keys by random hashes: `python -m tools.fingerprints` writes it."""
    assert without_chance(to_json(fingerprint_of(name))) == without_chance(path_of(name).read_bytes())


def without_chance(data: bytes) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(data)
    for topic in value["topics"]:
        for level in topic["levels"]:
            del level["cpu_ns"]
    del value["kfbench"], value["codec_versions"], value["sha256"]
    return value
