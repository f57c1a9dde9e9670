"""`inspect` shows every valid batch and record, and damage at its place. It accounts for every byte of the file.

Batches whose dictionary is missing are counted apart from damage, with the way to read them.
"""

import base64
import gzip
import json
import random
import shlex
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from kfbench import Records, read_log
from kfbench.errors import KfbenchError
from kfbench.formats import FORMATS
from kfbench.inspection.output import json_document, json_lines, summary_lines, text, utc
from kfbench.inspection.segment import Inspection, SegmentReader
from kfbench.log import dictionary_batch
from kfbench.text import preview
from tests.dictionary_samples import OTHER, RAW, RECORDS, TRAINED, body, segment
from tests.recorded import FOLDER, NAMES, content_hash, facts


def written(folder: Path, data: bytes | bytearray) -> Path:
    path = folder / "00000000000000000000.log"
    path.write_bytes(data)
    return path


def content(value: Any) -> bytes | None:
    """Return the bytes that a value in the JSON output stands for."""
    if value is None:
        return None
    return base64.b64decode(value["base64"]) if isinstance(value, dict) else str(value).encode()


def summary(path: Path) -> list[str]:
    return list(summary_lines(SegmentReader(path).read()))


def batch_lines(path: Path, with_records: bool = False) -> list[str]:
    lines = list(text(SegmentReader(path), with_records))
    return lines[1 : lines.index("")]


def as_json(path: Path, with_records: bool = False) -> Any:
    [found] = json.loads("".join(json_document([SegmentReader(path)], with_records)))
    return found


def inspect(path: Path) -> Inspection:
    return SegmentReader(path).read()


@pytest.mark.sampled(12)
@pytest.mark.parametrize("name", NAMES)
def test_json_has_what_kafka_says(name: str) -> None:
    found = as_json(FOLDER / name, with_records=True)
    wanted = facts(name)
    for column, values in wanted.batches.items():
        assert [batch[column] for batch in found["batches"]] == values
    records = [record for batch in found["batches"] for record in batch["records"]]
    assert [record["offset"] for record in records] == wanted.records["offset"]
    assert [record["timestamp_ms"] for record in records] == wanted.records["timestamp_ms"]
    for field in ("key", "value"):
        hashes = [content_hash(content(record[field])) for record in records]
        assert hashes == wanted.records[f"{field}_sha256_8"]
    headers = [[[key, content_hash(content(value))] for key, value in record["headers"]] for record in records]
    assert headers == wanted.records["headers"]
    assert found["damaged"] == [] and found["trailing_bytes"] == 0


@pytest.mark.sampled(12)
@pytest.mark.parametrize("name", NAMES)
def test_text_has_a_line_per_batch_and_per_record(name: str) -> None:
    wanted = facts(name)
    lines = batch_lines(FOLDER / name)
    assert [int(line.split()[0]) for line in lines] == wanted.positions[:-1]
    with_records = batch_lines(FOLDER / name, with_records=True)
    assert len(with_records) == len(lines) + len(wanted.records["offset"])
    assert [line for line in with_records if line in lines] == lines


def test_control_batches_say_what_they_mark() -> None:
    lines = [line for line in batch_lines(FOLDER / "transactions.log") if "control" in line]
    # Recorder.java: one producer always commits, the other aborts every second transaction.
    assert [line.rsplit(" ", 1)[1] for line in lines] == ["commit", "abort", "commit", "commit"] * 3
    kinds = [line for line in batch_lines(FOLDER / "cluster-metadata-bootstrap.checkpoint") if "control" in line]
    assert [line.split("control: ")[1] for line in kinds] == ["snapshot header", "snapshot footer"]


def test_bytes_that_are_no_log_are_not_called_an_incomplete_batch(tmp_path: Path) -> None:
    notes = written(tmp_path, b"notes, and no log at all")
    assert inspect(notes).unreadable
    assert as_json(notes)["trailing_bytes"] == inspect(notes).size_bytes
    cut = written(tmp_path, (FOLDER / "activity-lz4.log").read_bytes()[:50])
    assert inspect(cut).unreadable
    assert as_json(cut)["trailing_bytes"] == 50 and inspect(cut).damage == ()


def test_damage_is_listed_between_the_sound_batches(tmp_path: Path) -> None:
    positions = facts("activity-gzip.log").positions
    data = bytearray((FOLDER / "activity-gzip.log").read_bytes())
    data[positions[3] + 70] ^= 4
    data[positions[9] + 70] ^= 4
    cut = positions[-1] - 9
    path = written(tmp_path, data[:cut])
    assert [(each.position, each.size_bytes, each.field) for each in inspect(path).damage] == [
        (positions[batch], positions[batch + 1] - positions[batch], "crc") for batch in (3, 9)
    ]
    lines = batch_lines(path)
    assert [int(line.split()[0]) for line in lines] == positions[:-1]
    assert [batch for batch, line in enumerate(lines) if "DAMAGED" in line] == [3, 9]
    found = as_json(path)
    assert [each["position"] for each in found["damaged"]] == [positions[3], positions[9]]
    assert found["trailing_bytes"] == cut - positions[-2]


def test_a_length_that_cannot_be_skipped_ends_the_reading(tmp_path: Path) -> None:
    positions = facts("edges.log").positions
    data = bytearray((FOLDER / "edges.log").read_bytes())
    data[positions[2] + 8 : positions[2] + 12] = bytes(4)
    path = written(tmp_path, data)
    assert [(each.position, each.size_bytes, each.field) for each in inspect(path).damage] == [
        (positions[2], len(data) - positions[2], "length")
    ]
    assert len(batch_lines(path)) == 3


@pytest.mark.sampled(8)
@pytest.mark.parametrize("seed", range(40))
def test_every_byte_is_in_a_batch_or_damaged_or_trailing(tmp_path: Path, seed: int) -> None:
    draw = random.Random(seed)
    data = bytearray((FOLDER / draw.choice(["transactions.log", "telemetry.log", "changelog.log"])).read_bytes())
    for _ in range(draw.randint(1, 8)):
        data[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
    found = as_json(written(tmp_path, data), with_records=True)
    spans = [(each["position"], each["size_bytes"]) for each in found["batches"] + found["damaged"]]
    rest = found["trailing_bytes"] + found["allocated_bytes"]
    spans = [*sorted(spans), (len(data) - rest, rest)]
    assert spans[0][0] == 0
    assert all(start + size == following for (start, size), (following, _) in pairwise(spans))


@pytest.mark.parametrize("name", ["transactions.log", "activity-v1-lz4.log", "edges.log"])
def test_the_answer_does_not_depend_on_the_chunks(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    whole, lines = as_json(FOLDER / name, with_records=True), batch_lines(FOLDER / name, with_records=True)
    monkeypatch.setattr("kfbench.sources.log.FIRST_BYTES", 700)
    monkeypatch.setattr("kfbench.inspection.segment.PIECE_BYTES", 900)
    assert len(list(SegmentReader(FOLDER / name).parts())) > 3
    assert as_json(FOLDER / name, with_records=True) == whole
    assert batch_lines(FOLDER / name, with_records=True) == lines


def test_the_summary_counts_batches_offsets_and_producers() -> None:
    for name in ("changelog.log", "transactions.log", "activity-none.log"):
        found, batches = as_json(FOLDER / name), facts(name).batches
        counts = sorted(batches["count"])
        assert found["records_per_batch"]["p50"] == counts[(len(counts) - 1) // 2]
        assert (found["records_per_batch"]["min"], found["records_per_batch"]["max"]) == (counts[0], counts[-1])
        assert found["bytes_per_batch"]["max"] == max(batches["size_bytes"])
        offsets = facts(name).records["offset"]
        span = batches["last_offset"][-1] - batches["base_offset"][0] + 1
        assert found["missing_offsets"] == span - len(offsets)
        assert bool(found["gaps"]) == (span > len(offsets))
        assert found["producers"] == len({each for each in batches["producer_id"] if each >= 0})
        assert found["control_batches"] == sum(batches["is_control"])


def test_json_lines_have_an_object_each() -> None:
    name = "transactions.log"
    reader = SegmentReader(FOLDER / name)
    lines = [json.loads(line) for line in "".join(json_lines(reader, True, True)).splitlines()]
    whole = as_json(FOLDER / name, with_records=True)
    of_kind = {kind: [each for each in lines if each["kind"] == kind] for kind in ("batch", "record", "file")}
    assert len(lines) == sum(map(len, of_kind.values()))
    records = [record for batch in whole["batches"] for record in batch.pop("records")]
    assert [{"kind": "record", **each} for each in records] == of_kind["record"]
    assert [{"kind": "batch", **each} for each in whole.pop("batches")] == of_kind["batch"]
    assert [{"kind": "file", **whole}] == of_kind["file"]
    alone = list(json_lines(SegmentReader(FOLDER / name), False, False))
    assert [json.loads(line) for line in alone] == of_kind["file"]


def test_mixed_magics(tmp_path: Path) -> None:
    records = Records.from_lists([b"a", None, b"c"], keys=[b"k", b"k", None], timestamps_ms=[1, 2, 3])
    parts = [bytes(FORMATS[name].encode(records, lossy=True)) for name in ("v0", "v1", "v2", "v3", "columnar")]
    path = written(tmp_path, b"".join(parts))
    found = as_json(path, with_records=True)
    assert found["magics"] == {"0": 3, "1": 3, "2": 1, "3": 1, "5": 1}
    assert [record["value"] for batch in found["batches"] for record in batch["records"]] == ["a", None, "c"] * 5
    # v0 has no timestamps, which is shown differently from timestamp 0.
    assert [line.split()[6:] for line in batch_lines(path)[:3]] == [["-", "-", "-"]] * 3


def test_an_empty_segment_has_nothing_to_show(tmp_path: Path) -> None:
    path = written(tmp_path, b"")
    assert as_json(path)["batches"] == []
    unreadable = inspect(path).unreadable
    path = written(tmp_path, bytes(99))
    zeros = inspect(path)
    assert (zeros.damage, zeros.allocated_bytes) == ((), 99) and zeros.unreadable == unreadable


def test_what_is_no_segment_is_named(tmp_path: Path) -> None:
    with pytest.raises(KfbenchError, match=r"^.+absent\.log: No such file or directory$"):
        SegmentReader(tmp_path / "absent.log")
    with pytest.raises(KfbenchError, match=r"^.+: a folder; a segment file in it is wanted"):
        SegmentReader(tmp_path)
    index = tmp_path / "00000000000000000000.timeindex"
    index.write_bytes(bytes(24))
    with pytest.raises(KfbenchError, match=r"timeindex: .*time indexes.*\(\.log\)$"):
        SegmentReader(index)
    packed = written(tmp_path, gzip.compress((FOLDER / "edges.log").read_bytes()))
    assert "gzip" in str(inspect(packed).unreadable) and "gzip" in "\n".join(summary(packed))


@pytest.mark.compiled_only
def test_a_batch_of_more_than_64_mib_is_read(tmp_path: Path) -> None:
    """what-if leaves out a batch of more than 64 MiB; `inspect` shows it."""
    records = Records.from_lists([bytes(66 << 20)])
    path = written(tmp_path, bytes(FORMATS["v2"].encode(records, 1)))
    found = inspect(path)
    assert (found.batch_count, found.record_count, found.damage) == (1, 1, ())


@pytest.mark.parametrize(
    ("data", "wanted"),
    [
        (None, "null"),
        (b"", "0 B"),
        (b"plain", "5 B 'plain'"),
        (b"a\nb", "3 B 'a\\nb'"),
        ("größe".encode(), "7 B 'größe'"),
        (b"\x00\x01", "2 B 0001"),
        (b"\xff\xfe", "2 B fffe"),
    ],
)
def test_bytes_are_preview_on_one_line(data: bytes | None, wanted: str) -> None:
    assert preview(data) == wanted


def test_long_bytes_are_cut_but_counted() -> None:
    assert preview(b"x" * 500).startswith("500 B 'xxx") and len(preview(b"x" * 500)) < 60
    assert preview(b"\xff" * 500).startswith("500 B ffff") and len(preview(b"\xff" * 500)) < 60


@pytest.mark.parametrize(
    ("timestamp_ms", "wanted"),
    [
        (-1, "-"),
        (0, "1970-01-01 00:00:00.000"),
        (-1000, "1969-12-31 23:59:59.000"),
        (1772442000040, "2026-03-02 09:00:00.040"),
        (2**63 - 1, "9223372036854775807 ms"),
        (-(2**63), "-9223372036854775808 ms"),
    ],
)
def test_times(timestamp_ms: int, wanted: str) -> None:
    assert utc(timestamp_ms) == wanted


# Dictionaries that are missing


def counts(found: Inspection) -> list[tuple[int, int, int, int]]:
    return [(each.number, each.batches, each.size_bytes, each.first_position) for each in found.missing]


@pytest.mark.parametrize("name", ["v2", "v3-full", "columnar"])
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
