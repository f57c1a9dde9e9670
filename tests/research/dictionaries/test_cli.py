"""`kfbench dictionary train`, `inspect` of its files and of logs with dictionaries, and `what-if --dictionary`."""

import hashlib
import json
from pathlib import Path

import pytest

from kfbench import Records, read_log
from kfbench.formats import FORMATS
from tests.cli.command import Run
from tests.dictionary_samples import body, records


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Write a segment of a topic with 2,500 records. Return its folder."""
    folder = tmp_path / "orders-0"
    folder.mkdir()
    (folder / "00000000000000000000.log").write_bytes(bytes(FORMATS["v2"].encode(records(0, 2_500), 10, "zstd")))
    return folder


@pytest.mark.parametrize("name", ["v2", "columnar"])
def test_a_trained_file_begins_a_log_that_is_readable_alone(kfbench: Run, log: Path, tmp_path: Path, name: str) -> None:
    out = tmp_path / "dictionary.log"
    done = kfbench(
        "dictionary", "train", log, "--out", out, "--format", name, "--size", "4096", "--number", "7", "--json"
    )
    assert done.status == 0
    values = json.loads(done.out)
    found = read_log(out).dictionaries[7]
    assert values["number"] == 7 and values["size_bytes"] == len(found.data) <= 4_096 and not values["is_raw"]
    assert values["sha256"] == hashlib.sha256(found.data).hexdigest()
    assert values["trained_on"]["records"] == 2_500 and values["trained_on"]["format"] == name
    assert values["file_bytes"] == out.stat().st_size
    batches = FORMATS[name].encode(records(2_500, 2_600), 10, "zstd", dictionary=found)
    segment = tmp_path / "00000000000000000000.log"
    segment.write_bytes(out.read_bytes() + bytes(batches))
    assert read_log(segment).records.values()[1:] == records(2_500, 2_600).values()

    [shown] = json.loads(kfbench("inspect", segment, "--json").out)
    assert shown["codecs"] == {"none": 1, "zstd-dictionary": 10}
    assert shown["dictionaries"] == [{key: values[key] for key in shown["dictionaries"][0]}]
    assert [batch["dictionary"] for batch in shown["batches"]] == [-1] + [7] * 10
    text = kfbench("inspect", segment, "--batches").out
    assert text.count("dictionary 7") == 10 + 1 and values["sha256"] in text


def test_inspect_fails_where_a_dictionary_is_missing(kfbench: Run, tmp_path: Path) -> None:
    segment = tmp_path / "00000000000000000000.log"
    segment.write_bytes(body("v2"))
    done = kfbench("inspect", segment)
    assert done.status == 1
    assert done.err == f"kfbench: {segment}: 6 batches name dictionary 1, which is missing\n"
    damaged = bytearray(body("v2"))
    damaged[70] ^= 1
    segment.write_bytes(damaged)
    done = kfbench("inspect", segment, "--json")
    [damage, missing] = done.err.splitlines()
    assert done.status == 1 and "byte 0: crc" in damage and "5 batches name dictionary 1" in missing
    [shown] = json.loads(done.out)
    assert [each["batches"] for each in shown["missing_dictionaries"]] == [5] and len(shown["damaged"]) == 1


def test_few_bytes_make_a_raw_dictionary(kfbench: Run, segment: Path, tmp_path: Path) -> None:
    out = tmp_path / "raw.log"
    assert kfbench("dictionary", "train", segment, "--out", out).status == 0
    assert read_log(out).dictionaries[1].is_raw
    assert "raw" in kfbench("inspect", out).out


def test_a_file_is_replaced_only_by_force(kfbench: Run, log: Path, tmp_path: Path) -> None:
    out = tmp_path / "d.log"
    out.write_bytes(b"mine")
    assert "--force" in kfbench("dictionary", "train", log, "--out", out).refused()
    assert out.read_bytes() == b"mine"
    assert kfbench("dictionary", "train", log, "--out", out, "--force").status == 0
    assert read_log(out).dictionaries
    [segment] = log.iterdir()
    before = segment.read_bytes()
    kfbench("dictionary", "train", log, "--out", segment, "--force").refused()
    assert segment.read_bytes() == before


def test_bad_input_is_one_line(kfbench: Run, log: Path, tmp_path: Path) -> None:
    out, made = tmp_path / "x.log", tmp_path / "made.log"
    assert "nowhere" in kfbench("dictionary", "train", tmp_path / "nowhere", "--out", out).refused()
    for option, value in (("--format", "v1"), ("--size", "255"), ("--size", "131073"), ("--number", "0")):
        assert option in kfbench("dictionary", "train", log, "--out", out, option, value).refused(2)
    assert "folder" in kfbench("dictionary", "train", log, "--out", tmp_path, "--force").refused()
    rows = tmp_path / "rows.jsonl"
    rows.write_text('{"line": "a line of text", "t": 1}\n' * 50)
    assert kfbench("dictionary", "train", rows, "--out", tmp_path / "rows.log", "--value", "line").status == 0
    assert b'"t"' not in read_log(tmp_path / "rows.log").dictionaries[1].data
    assert "--value-json" in kfbench("dictionary", "train", rows, "--out", out, "--value", "t", "--value-json").refused(
        2
    )
    kfbench("dictionary", "train", log, "--out", made)
    assert "no record" in kfbench("dictionary", "train", made, "--out", out).refused()
    other = tmp_path / "other-0"
    other.mkdir()
    (other / "00000000000000000000.log").write_bytes(bytes(FORMATS["v2"].encode(records(0, 10))))
    assert "2 topics" in kfbench("dictionary", "train", log, other, "--out", out).refused()
    assert not out.exists()


def test_damage_is_left_out_and_reported(kfbench: Run, damaged: tuple[Path, int], tmp_path: Path) -> None:
    path, start = damaged
    out = tmp_path / "d.log"
    done = kfbench("dictionary", "train", path, "--out", out, "--json")
    assert done.status == 1 and f"{start:,}" in done.err
    assert json.loads(done.out)["trained_on"]["records"] == 4


def test_the_newest_records_are_used(kfbench: Run, tmp_path: Path) -> None:
    """Write 6 MiB in two segments. The trainer takes the last 4 MiB."""
    folder = tmp_path / "t-0"
    folder.mkdir()
    for i in range(2):
        values = [b"%d %d " % (i, j) + bytes(1_000) for j in range(3_000)]
        batches = FORMATS["v2"].encode(Records.from_lists(values), 100, "zstd")
        (folder / f"{3_000 * i:020}.log").write_bytes(bytes(batches))
    done = kfbench("dictionary", "train", folder, "--out", tmp_path / "d.log", "--json")
    assert json.loads(done.out)["trained_on"]["records"] == pytest.approx((4 << 20) / 1_006, abs=20)


def test_a_swapped_header_shows_no_origin(kfbench: Run, log: Path, tmp_path: Path) -> None:
    out = tmp_path / "d.log"
    kfbench("dictionary", "train", log, "--out", out, "--format", "v2")
    stored = read_log(out)
    for header in (b"", b"[]", b'{"records": -1}', b"\xff", b"[" * 100_000, b'{"format": 1, "batch_size": 1}'):
        changed = Records.from_lists(stored.records.values(), stored.records.keys(), headers=[[("trained-on", header)]])
        out.write_bytes(bytes(FORMATS["v2"].encode(changed, 1, batch_fields=stored.batch_fields)))
        [shown] = json.loads(kfbench("inspect", out, "--json").out)
        assert [each["trained_on"] for each in shown["dictionaries"]] == [None]


@pytest.mark.thorough
def test_what_if_shows_details(kfbench: Run, log: Path) -> None:
    arguments = ("what-if", log, "--format", "columnar", "--codec", "none", "--codec", "zstd")
    short, full = kfbench(*arguments), kfbench(*arguments, "--dictionary")
    assert short.status == full.status == 0
    [line] = [line for line in short.out.splitlines() if line.startswith("A topic dictionary")]
    assert line in full.out.splitlines()
    assert full.out.count(" records ") >= 6 and "% saved" in full.out
    values = json.loads(kfbench(*arguments, "--dictionary", "--json").out)["dictionary"]
    assert {each["level"] for each in values["details"]} == {1, 3, 6}
    assert {each["format"] for each in values["savings"]} == {"v2", "columnar"}
    assert {each["topic"] for each in values["topics"]} == {"orders"}
