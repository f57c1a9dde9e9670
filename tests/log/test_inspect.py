"""`inspect`: every sound batch and record, damage in its place, and every byte of the file accounted for."""

import base64
import json
import random
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from kfbench import Records
from kfbench.errors import KfbenchError
from kfbench.formats import FORMATS
from kfbench.log.inspect import Inspection, inspect, preview, utc
from tests.recorded import FOLDER, NAMES, content_hash, facts


def written(folder: Path, data: bytes | bytearray) -> Path:
    path = folder / "00000000000000000000.log"
    path.write_bytes(data)
    return path


def content(value: Any) -> bytes | None:
    """Return the bytes of a JSON value."""
    if value is None:
        return None
    return base64.b64decode(value["base64"]) if isinstance(value, dict) else str(value).encode()


def batch_lines(found: Inspection) -> list[str]:
    lines = found.to_text().splitlines()
    return lines[lines.index("") + 2 :]


@pytest.mark.sampled(12)
@pytest.mark.parametrize("name", NAMES)
def test_json_equals_kafkas_facts(name: str) -> None:
    found = json.loads(json.dumps(inspect(FOLDER / name, records=True).to_dict()))
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
    lines = batch_lines(inspect(FOLDER / name))
    assert [int(line.split()[0]) for line in lines] == wanted.positions[:-1]
    with_records = batch_lines(inspect(FOLDER / name, records=True))
    assert len(with_records) == len(lines) + len(wanted.records["offset"])
    assert [line for line in with_records if line in lines] == lines


def test_control_batches_name_their_type() -> None:
    lines = [line for line in batch_lines(inspect(FOLDER / "transactions.log")) if "control" in line]
    # Recorder.java: one producer always commits, the other aborts in every other round.
    assert [line.rsplit(" ", 1)[1] for line in lines] == ["commit", "abort", "commit", "commit"] * 3
    kinds = [
        line for line in batch_lines(inspect(FOLDER / "cluster-metadata-bootstrap.checkpoint")) if "control" in line
    ]
    assert [line.split("control: ")[1] for line in kinds] == ["snapshot header", "snapshot footer"]


def test_bytes_that_are_no_log_are_not_called_an_incomplete_batch(tmp_path: Path) -> None:
    notes = inspect(written(tmp_path, b"notes, and no log at all"))
    assert notes.unreadable and "incomplete" not in notes.to_text()
    cut = inspect(written(tmp_path, (FOLDER / "activity-lz4.log").read_bytes()[:50]))
    assert cut.unreadable and "50 bytes of an incomplete batch" in cut.to_text()
    for found in (notes, cut):
        assert found.to_dict()["trailing_bytes"] == found.size_bytes and found.damage == ()


def test_damage_is_listed_between_the_sound_batches(tmp_path: Path) -> None:
    positions = facts("activity-gzip.log").positions
    data = bytearray((FOLDER / "activity-gzip.log").read_bytes())
    data[positions[3] + 70] ^= 4
    data[positions[9] + 70] ^= 4
    cut = positions[-1] - 9
    found = inspect(written(tmp_path, data[:cut]))
    assert [(each.position, each.size_bytes, each.field) for each in found.damage] == [
        (positions[batch], positions[batch + 1] - positions[batch], "crc") for batch in (3, 9)
    ]
    lines = batch_lines(found)
    assert [int(line.split()[0]) for line in lines] == positions[:-1]
    assert [batch for batch, line in enumerate(lines) if "DAMAGED" in line] == [3, 9]
    assert f"{cut - positions[-2]:,} bytes of an incomplete batch" in lines[-1]
    as_json = found.to_dict()
    assert [each["position"] for each in as_json["damaged"]] == [positions[3], positions[9]]
    assert as_json["trailing_bytes"] == cut - positions[-2]


def test_a_length_that_cannot_be_skipped_ends_the_reading(tmp_path: Path) -> None:
    positions = facts("edges.log").positions
    data = bytearray((FOLDER / "edges.log").read_bytes())
    data[positions[2] + 8 : positions[2] + 12] = bytes(4)
    found = inspect(written(tmp_path, data))
    assert [(each.position, each.size_bytes, each.field) for each in found.damage] == [
        (positions[2], len(data) - positions[2], "length")
    ]
    assert len(batch_lines(found)) == 3


@pytest.mark.sampled(8)
@pytest.mark.parametrize("seed", range(40))
def test_every_byte_is_in_a_batch_or_damaged_or_trailing(tmp_path: Path, seed: int) -> None:
    draw = random.Random(seed)
    data = bytearray((FOLDER / draw.choice(["transactions.log", "telemetry.log", "changelog.log"])).read_bytes())
    for _ in range(draw.randint(1, 8)):
        data[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
    found = inspect(written(tmp_path, data), records=True).to_dict()
    spans = [(each["position"], each["size_bytes"]) for each in found["batches"] + found["damaged"]]
    rest = found["trailing_bytes"] + found["allocated_bytes"]
    spans = [*sorted(spans), (len(data) - rest, rest)]
    assert spans[0][0] == 0
    assert all(start + size == following for (start, size), (following, _) in pairwise(spans))


def test_mixed_magics(tmp_path: Path) -> None:
    records = Records.from_lists([b"a", None, b"c"], keys=[b"k", b"k", None], timestamps_ms=[1, 2, 3])
    parts = [bytes(FORMATS[name].encode(records, lossy=True)) for name in ("v0", "v1", "v2", "v3", "columnar")]
    found = inspect(written(tmp_path, b"".join(parts)), records=True)
    as_json = found.to_dict()
    assert as_json["magics"] == {"0": 3, "1": 3, "2": 1, "3": 1, "4": 1}
    assert [record["value"] for batch in as_json["batches"] for record in batch["records"]] == [
        "a",
        None,
        "c",
    ] * 5
    assert "magic 0 (3), magic 1 (3), magic 2 (1), magic 3 (1), magic 4 (1)" in found.to_text()
    # v0 has no timestamps: absent is not zero.
    assert [line.split()[6:] for line in batch_lines(inspect(found.path))[:3]] == [["-", "-", "-"]] * 3


def test_an_empty_segment_has_nothing_to_show(tmp_path: Path) -> None:
    found = inspect(written(tmp_path, b""))
    assert found.to_text().splitlines() == [f"{found.path}: 0 bytes, 0 batches, 0 records", "damage: none"]
    assert found.to_dict()["batches"] == []
    zeros = inspect(written(tmp_path, bytes(99)))
    assert zeros.to_text().splitlines()[1:3] == ["damage: none", "at the end: 99 bytes of zeros, allocated ahead"]
    assert (zeros.damage, zeros.allocated_bytes) == ((), 99) and found.unreadable == zeros.unreadable


def test_a_cut_file_is_sound_before_the_cut(tmp_path: Path) -> None:
    data, positions = (FOLDER / "activity-lz4.log").read_bytes(), facts("activity-lz4.log").positions
    copy = tmp_path / "copy.log"
    copy.write_bytes(data[: positions[4] + 100])
    assert f"damage: none before byte {positions[4]:,}" in inspect(copy).to_text().splitlines()
    copy.write_bytes(data[: positions[4]])
    assert "damage: none" in inspect(copy).to_text().splitlines()
    copy.write_text("a plain text of 25 bytes\n")
    found = inspect(copy)
    assert found.unreadable and f"damage: {found.unreadable}" in found.to_text().splitlines()


def test_a_path_that_is_no_segment_file_is_refused_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(KfbenchError, match=r"^.+absent\.log: No such file or directory$"):
        inspect(tmp_path / "absent.log")
    with pytest.raises(KfbenchError, match=r"^.+: a folder; a segment file in it is wanted"):
        inspect(tmp_path)


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
