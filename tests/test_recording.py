"""Kafka's readers still find the recorded facts in the committed segments. A new recording gives similar segments."""

import importlib.util
import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.recorded import FOLDER, NAMES

STAMPED_BY_THE_BROKER = {
    *("consumer-offsets.log", "consumer-offsets-upgraded.log"),
    *("transaction-state.log", "cluster-metadata.log"),
}
SEEDED = sorted(name for name in NAMES if name.endswith(".log") and name not in STAMPED_BY_THE_BROKER)


@pytest.fixture
def recorder(fetched: Callable[[Path], Path], monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    for pom in ("pom.xml", "pom-2.8.xml", "pom-0.10.xml"):
        fetched(FOLDER / pom)
    spec = importlib.util.spec_from_file_location("record", FOLDER / "record.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, module)  # dataclasses look up the module by this name
    spec.loader.exec_module(module)
    return module


@pytest.mark.oracle
@pytest.mark.slow
def test_kafkas_readers_confirm_the_committed_facts(recorder: ModuleType, tmp_path: Path) -> None:
    for name in NAMES:
        shutil.copyfile(FOLDER / name, tmp_path / name)
    recorder.write_facts(tmp_path)
    for name in ["index.json", *(f"{name}.json" for name in NAMES)]:
        assert (tmp_path / name).read_text(encoding="utf-8") == (FOLDER / name).read_text(encoding="utf-8")


@pytest.mark.broker
@pytest.mark.thorough
def test_a_new_recording_has_the_same_batches_and_records(recorder: ModuleType, tmp_path: Path) -> None:
    recorder.record(tmp_path, recorder.RECORDINGS)
    assert sorted(entry["file"] for entry in json.loads((tmp_path / "index.json").read_text())) == NAMES
    for name in SEEDED:
        assert _seeded(tmp_path / f"{name}.json") == _seeded(FOLDER / f"{name}.json"), name


def _seeded(path: Path) -> list[Any]:
    """Return the facts that are equal in every recording: batches, records and transaction markers.

    Markers are sorted by content. If two transactions end together, the coordinator chooses the order of their markers.
    """
    tables = json.loads(path.read_text(encoding="utf-8"))

    def columns(kind: str, *names: str) -> list[list[Any]]:
        places = [tables[kind]["columns"].index(name) for name in names]
        return [[row[place] for place in places] for row in tables[kind]["rows"]]

    batches = columns("batches", "base_offset", "last_offset", "count", "is_control", "magic", "codec")
    markers = {offset for first, last, _, is_control, *_ in batches if is_control for offset in range(first, last + 1)}
    records = columns("records", "offset", "key_sha256_8", "value_sha256_8")
    plain = [record for record in records if record[0] not in markers]
    return [batches, plain, sorted(contents for offset, *contents in records if offset in markers)]
