"""kfbench reads golden vectors (logs written by Apache Kafka's classes) as Kafka's reader does: datasets/golden.

KFBENCH_GOLDEN may name another folder to test: index.json, NAME.bin and NAME.json.
"""

import hashlib
import json
import os
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import kfbench
from kfbench.measure.golden.checks import check_vector
from tests.common import check_decoded
from tests.reference import log as reference_log
from tests.reference import v01, v23
from tests.reference.model import Batch, RefusedError

OURS = Path(__file__).parents[1] / "datasets" / "golden"
FURTHER = os.environ.get("KFBENCH_GOLDEN", "")
BY_HAND = ("corrupt", "wrapper")  # categories that no Kafka writer writes, so ours need not either
CATEGORIES = {
    *("basic", "compaction", "control", "corrupt", "downconvert", "empty", "headers", "level", "nulls", "offsets"),
    *("producer", "segment", "size", "timestamps", "validate", "varint", "wrapper"),
}
MOST_BYTES = 2_200_000


@cache
def index(folder: Path) -> list[dict[str, Any]]:
    entries: list[dict[str, Any]] = json.loads((folder / "index.json").read_text(encoding="utf-8"))
    assert entries, folder
    return entries


def vectors(refused: bool | None = None) -> list[Any]:
    """Return (folder, name) of golden vectors as test parameters: those that Kafka's reader refuses or not, or all."""
    return [
        pytest.param(folder, entry["name"], id=f"{entry['name']}-further" if number else entry["name"])
        for number, folder in enumerate([OURS, *([Path(FURTHER)] if FURTHER else [])])
        for entry in index(folder)
        if refused in (None, entry["error"] is not None)
    ]


def vector(folder: Path, name: str) -> tuple[bytes, dict[str, Any]]:
    data = (folder / f"{name}.bin").read_bytes()
    sidecar = json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
    assert hashlib.sha256(data).hexdigest() == sidecar["sha256"]
    return data, sidecar


def test_the_folder_is_whole() -> None:
    entries = index(OURS)
    assert {entry["category"] for entry in entries} == CATEGORIES
    assert len(entries) >= 250
    files = {f"{entry['name']}.{kind}" for entry in entries for kind in ("bin", "json")}
    assert {path.name for path in OURS.iterdir()} == {*files, "index.json", "README.md"}
    assert sum(path.stat().st_size for path in OURS.iterdir()) <= MOST_BYTES
    for entry in entries:
        data, sidecar = vector(OURS, entry["name"])
        assert (entry["sha256"], entry["size"]) == (sidecar["sha256"], len(data))


def check(folder: Path, name: str) -> None:
    (entry,) = [entry for entry in index(folder) if entry["name"] == name]
    assert not [outcome.line for outcome in check_vector(folder, entry) if outcome.problem]


@pytest.mark.sampled(150)
@pytest.mark.parametrize(("folder", "name"), vectors(refused=False))
def test_reads_writes_appends_converts_and_compacts_as_kafka_does(folder: Path, name: str) -> None:
    check(folder, name)


@pytest.mark.parametrize(("folder", "name"), vectors(refused=True))
def test_refuses_what_kafka_refuses(folder: Path, name: str) -> None:
    check(folder, name)


@pytest.mark.sampled(60)
@pytest.mark.parametrize(("folder", "name"), vectors())
def test_the_reference_itself(folder: Path, name: str) -> None:
    """The reference codecs read these vectors as kfbench does, and write the bytes that Kafka wrote."""
    data, sidecar = vector(folder, name)
    try:
        batches, trailing = reference_log.decode(data)
    except (RefusedError, EOFError, OSError, ValueError):
        assert sidecar["error"] is not None
        return
    assert sidecar["error"] is None
    assert trailing == sidecar["trailingBytes"]
    check_decoded(kfbench.read_log(data), batches)
    for batch, expected in zip(batches, sidecar["batches"], strict=True):
        assert list(batch.record_sizes) == [record["size"] for record in expected["records"]]
        if batch.codec != "none":
            assert hashlib.sha256(batch.raw).hexdigest() == expected["decompressedSha256"]
        if sidecar["category"] not in BY_HAND:
            raw, whole = rewritten(batch)
            assert raw == batch.raw
            if batch.codec == "none":
                assert whole == data[batch.position : batch.position + batch.size_bytes]


def rewritten(batch: Batch) -> tuple[bytes, bytes]:
    """Return the records section that the reference writes for a batch, and the whole batch."""
    fields = batch.fields()
    if batch.magic > 1:
        section = v23.records_section("v2", batch.messages, fields)
        return section, v23.batch("v2", batch.messages, fields, batch.codec, section)
    if batch.codec == "none":
        entry = v01.plain(batch.magic, batch.messages, fields)
        return entry, entry
    return v01.inner_set(batch.magic, batch.messages, fields), b""
