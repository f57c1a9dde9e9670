"""`inspect` counts batches whose dictionary is missing apart from damage, and says how to read them."""

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from kfbench import read_log
from kfbench.inspection.output import json_document, summary_lines, text
from kfbench.inspection.segment import Inspection, SegmentReader
from kfbench.log import dictionary_batch
from tests.dictionary_samples import OTHER, RAW, RECORDS, TRAINED, body, segment

every_format = pytest.mark.parametrize("name", ["v2", "v3-full", "columnar"])


def written(folder: Path, data: bytes) -> Path:
    path = folder / "00000000000000000000.log"
    path.write_bytes(data)
    return path


def inspect(path: Path) -> Inspection:
    return SegmentReader(path).read()


def counts(found: Inspection) -> list[tuple[int, int, int, int]]:
    return [(each.number, each.batches, each.size_bytes, each.first_position) for each in found.missing]


@every_format
def test_batches_without_their_dictionary_are_no_damage(tmp_path: Path, name: str) -> None:
    first, second = body(name, TRAINED), body(name, RAW)
    found = inspect(written(tmp_path, first + second + first))
    assert counts(found) == [(1, 12, 2 * len(first), 0), (300, 6, len(second), len(first))]
    assert (found.damage, found.unreadable, found.batch_count) == ((), None, 0)


def test_the_hint_makes_a_log_that_reads(tmp_path: Path) -> None:
    path = written(tmp_path, body("v2"))
    [hint] = [line for line in summary_lines(inspect(path)) if line.startswith("  hint")]
    assert f"cat DICTIONARY {shlex.quote(str(path))} > WHOLE.log" in hint
    whole = written(tmp_path, bytes(dictionary_batch(TRAINED)) + path.read_bytes())
    assert (inspect(whole).missing, inspect(whole).record_count) == ((), len(RECORDS) + 1)


def test_another_dictionary_of_the_same_number_is_named_so(tmp_path: Path) -> None:
    found = inspect(written(tmp_path, bytes(dictionary_batch(OTHER)) + body("v2")))
    assert [each[:2] for each in counts(found)] == [(1, 6)] and found.damage == ()
    [line] = [line for line in summary_lines(found) if "not read" in line]
    assert "it is another one" in line and TRAINED.sha256[:3].hex() in line
    assert not any(line.startswith("  hint") for line in summary_lines(found))


@pytest.mark.compiled_only
def test_a_dictionary_after_its_batches_is_named_so(tmp_path: Path) -> None:
    path = written(tmp_path, body("v2") * 1_500 + bytes(dictionary_batch(TRAINED)))
    found = inspect(path)
    [(number, batches, *_)] = counts(found)
    assert number == 1 and 0 < batches < 9_000
    assert any(line.startswith("  hint") and "read_log" in line for line in summary_lines(found))
    assert len(read_log(path)) == 9_001


def test_damage_next_to_a_missing_dictionary_stays_damage(tmp_path: Path) -> None:
    log = bytearray(body("v2"))
    log[70] ^= 1
    path = written(tmp_path, bytes(log) + segment("columnar", RAW))
    found = inspect(path)
    assert [(each.position, each.field) for each in found.damage] == [(0, "crc")]
    assert [each[:2] for each in counts(found)] == [(1, 5)]
    assert found.record_count == len(RECORDS) + 1
    lines = list(text(SegmentReader(path), with_records=False))
    assert [sum(word in line for line in lines) for word in ("DAMAGED", "NOT READ")] == [1, 5]
    [shown] = json.loads("".join(json_document([SegmentReader(path)], with_records=False)))
    assert [each["position"] for each in shown["damaged"]] == [0]
    missing: Any = shown["missing_dictionaries"]
    assert [(each["number"], each["batches"], each["first_position"]) for each in missing] == [
        (1, 5, found.damage[0].size_bytes)
    ]


def test_a_live_tail_after_them_is_no_damage(tmp_path: Path) -> None:
    log = body("v2")
    found = inspect(written(tmp_path, log + log[:50]))
    assert (found.trailing_bytes, found.damage) == (50, ())
    assert f"damage: none before byte {len(log):,}" in summary_lines(found)
