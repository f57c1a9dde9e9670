"""The recording itself: Kafka's readers still say the same of the committed bytes, and a new recording is alike."""

import importlib.util
import json
import shutil
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.recorded import FOLDER, NAMES

STAMPED_BY_THE_BROKER = {"consumer-offsets.log", "transaction-state.log", "cluster-metadata.log"}
SEEDED = sorted(name for name in NAMES if name.endswith(".log") and name not in STAMPED_BY_THE_BROKER)


@pytest.fixture
def recorder() -> ModuleType:
    spec = importlib.util.spec_from_file_location("record", FOLDER / "record.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.fetch_jars()
    return module


@pytest.mark.oracle
@pytest.mark.slow
def test_kafka_says_the_same_of_the_committed_bytes(recorder: ModuleType, tmp_path: Path) -> None:
    for name in NAMES:
        shutil.copyfile(FOLDER / name, tmp_path / name)
    recorder.write_facts(tmp_path)
    for name in ["index.json", *(f"{name}.json" for name in NAMES)]:
        assert (tmp_path / name).read_text(encoding="utf-8") == (FOLDER / name).read_text(encoding="utf-8")


@pytest.mark.broker
@pytest.mark.slow
def test_a_new_recording_has_the_same_batches_and_records(recorder: ModuleType, tmp_path: Path) -> None:
    recorder.record(tmp_path)
    assert sorted(entry["file"] for entry in json.loads((tmp_path / "index.json").read_text())) == NAMES
    for name in SEEDED:
        assert _seeded(tmp_path / f"{name}.json") == _seeded(FOLDER / f"{name}.json"), name


def _seeded(path: Path) -> list[Any]:
    """What does not depend on when it was recorded: the batches' ranges and the records' contents."""
    tables = json.loads(path.read_text(encoding="utf-8"))
    wanted = {
        "batches": ["base_offset", "last_offset", "count", "codec", "is_control"],
        "records": ["offset", "key_sha256_8", "value_sha256_8"],
    }
    return [
        [row[tables[kind]["columns"].index(column)] for column in columns]
        for kind, columns in wanted.items()
        for row in tables[kind]["rows"]
    ]
