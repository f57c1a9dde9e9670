"""`kfbench inspect` and `migrate`, and the rule for damaged segments that is common to inspect, what-if and migrate."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from kfbench.formats import FORMATS
from kfbench.migration import ask as migration
from kfbench.migration.subjects import SampleLimits
from kfbench.records import Records
from tests.cli.command import Run


@pytest.fixture(autouse=True)
def small_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(migration, "SAMPLES", {"none": SampleLimits(size_bytes=2_000, batches=9, rounds=3)})


def test_a_missing_file_does_not_hide_the_others(kfbench: Run, segment: Path) -> None:
    done = kfbench("inspect", segment, segment.parent / "nowhere.log")
    assert done.status == 1 and "nowhere.log" in done.err
    assert "3 batches, 6 records" in done.out


def test_inspect_of_a_folder_has_a_line_per_segment(kfbench: Run, segment: Path) -> None:
    for name in ("orders-0", "orders-1"):
        folder = segment.parent / name
        folder.mkdir()
        (folder / segment.name).write_bytes(segment.read_bytes())
        (folder / "00000000000000000000.index").write_bytes(bytes(8))
    done = kfbench("inspect", segment.parent / "orders-0", segment.parent / "orders-1")
    lines = done.out.splitlines()
    assert done.status == 0 and len(lines) == 2 + 2 + 1
    for line, name in zip(lines[2:4], ("orders-0", "orders-1"), strict=True):
        assert f"{name}/{segment.name}" in line and line.split()[-6:-2] == ["267", "3", "6", "2"]
    assert lines[-1].split() == ["2", "files", "534", "6", "12"]
    documents = json.loads(kfbench("inspect", segment.parent, "--json").out)
    assert [each["batch_count"] for each in documents] == [3, 3, 3]


def test_inspect_shows_batches_and_records(kfbench: Run, segment: Path) -> None:
    plain, full = kfbench("inspect", segment), kfbench("inspect", "--records", segment)
    assert plain.status == full.status == 0
    assert "3 batches, 6 records" in plain.out
    assert "value 5" not in plain.out
    assert "value 5" in full.out


def test_inspect_as_json(kfbench: Run, segment: Path) -> None:
    done = kfbench("inspect", segment, segment, "--records", "--json")
    first, second = json.loads(done.out)
    assert first == second
    assert first["record_count"] == 6
    assert [record["value"] for batch in first["batches"] for record in batch["records"]][-1] == "value 5"


ENDINGS: dict[
    str, tuple[Callable[[bytes], bytes], int, str | None]
] = {  # bytes after three valid batches, exit status, message on stderr
    "sound": (lambda log: log, 0, None),
    "allocated ahead": (lambda log: log + bytes(5_000), 0, None),
    "a few zeros": (lambda log: log + bytes(3), 0, None),
    "being written": (lambda log: log + log[:30], 0, None),
    "a batch behind it": (
        lambda log: log + log[:8] + (1 << 19).to_bytes(4, "big") + log[12:30] + log,
        1,
        "batch at byte {end}: length: the batch would end after the file does",
    ),
    "no length": (lambda log: log + bytes(8) + b"\0\0\0\1" + bytes(40), 1, "batch at byte {end}: length: "),
    "a batch damaged": (lambda log: log[:-1] + bytes([log[-1] ^ 1]), 1, "batch at byte {last}: crc: "),
    "empty": (lambda log: b"", 1, "the file is empty"),
    "all allocated ahead": (lambda log: bytes(5_000), 1, "the file is empty"),
    "no log": (lambda log: b"notes" * 9, 1, "no whole batch in 45 bytes: is this a log segment?"),
}


@pytest.mark.sampled
@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("command", ["inspect", "what-if", "migrate"])
def test_commands_treat_damage_and_ends_of_segments_alike(
    kfbench: Run, segment: Path, command: str, ending: str
) -> None:
    made, status, said = ENDINGS[ending]
    log = segment.read_bytes()
    segment.write_bytes(made(log))
    done = kfbench(command, segment, *(["--codec", "none"] if command != "inspect" else []))
    where = "" if said is None else f"kfbench: {segment}: {said.format(end=len(log), last=len(log) // 3 * 2)}"
    assert done.status == status and done.err.startswith(where) and done.err.count("\n") == status, done.err


@pytest.mark.parametrize("command", ["inspect", "what-if", "migrate"])
def test_a_cut_batch_is_damage_if_another_segment_follows(kfbench: Run, segment: Path, command: str) -> None:
    folder = segment.parent / "orders-0"
    folder.mkdir()
    first, last = (folder / f"{number:020}.log" for number in (0, 900))
    log = segment.read_bytes()
    for path in (first, last):
        path.write_bytes(log + log[:30])
    options = ["--codec", "none"] if command != "inspect" else []
    assert kfbench(command, last, *options).status == 0
    done = kfbench(command, first, *options)
    assert done.status == 1 and done.err.startswith(f"kfbench: {first}: batch at byte {len(log)}: length: ")


@pytest.fixture
def topics(segment: Path) -> Path:
    """Write a folder of topics: a sound one, a damaged one, an empty one, and one with times that a broker refuses."""
    folder = segment.parent / "topics"
    sound = segment.read_bytes()
    old = FORMATS["v2"].encode(Records.from_lists([b"old"] * 3, timestamps_ms=[-9, -8, -7]))
    for name, data in (("sound", sound), ("damaged", sound[:100] + bytes(50)), ("old", bytes(old)), ("empty", b"")):
        (folder / f"{name}-0").mkdir(parents=True)
        (folder / f"{name}-0" / segment.name).write_bytes(data)
    return folder


@pytest.mark.sampled
@pytest.mark.parametrize("is_json", [True, False])
@pytest.mark.parametrize("command", ["inspect", "what-if", "migrate", "fingerprint", "train"])
def test_one_bad_topic_or_path_does_not_hide_the_others(
    kfbench: Run, topics: Path, command: str, is_json: bool
) -> None:
    absent, out = topics / "absent.log", topics.parent / "out.json"
    sources: list[str | Path] = [topics, absent]
    arguments: list[str | Path] = [command, *sources]
    if command == "train":  # it takes one topic
        empty = next((topics / "empty-0").iterdir())
        empty.write_bytes((topics / "sound-0" / empty.name).read_bytes())
        arguments = ["dictionary", "train", topics / "empty-0", absent, "--out", out]
    if command == "fingerprint":
        arguments += ["--out", out]
    if command in ("what-if", "migrate"):
        arguments += ["--codec", "none"]
    if is_json and command != "fingerprint":
        arguments.append("--json")
    done = kfbench(*arguments)
    named = {"damaged-0", "absent.log"} if command != "train" else {"absent.log"}
    named |= {"old"} if command in ("what-if", "migrate", "fingerprint") else set()
    assert done.status == 1 and done.out, done.err
    harmless = "few records", "no topic has", "compiling kernels"
    lines = [line for line in done.err.splitlines() if not any(words in line for words in harmless)]
    assert len(lines) == len(named) and all(any(name in line for line in lines) for name in named), done.err
    if is_json and command != "fingerprint":
        json.loads(done.out)


@pytest.mark.parametrize("command", ["inspect", "what-if", "migrate"])
def test_an_empty_segment_fails_the_command_only_if_it_is_named(
    kfbench: Run, topics: Path, segment: Path, command: str
) -> None:
    empty, options = topics / "empty-0" / segment.name, ["--codec", "none"] if command != "inspect" else []
    for named, status in ((topics / "empty-0", 0), (empty, 1)):
        done = kfbench(command, topics / "sound-0", named, *options)
        assert (done.status, done.err.count(str(empty))) == (status, status), done.err


@pytest.mark.parametrize("command", ["inspect", "what-if", "migrate", "fingerprint", "train"])
def test_names_that_are_not_utf8_are_read_and_shown_escaped(kfbench: Run, segment: Path, command: str) -> None:
    folder = Path(os.fsdecode(os.fsencode(segment.parent) + b"/caf\xe9\x1b[31m-0"))
    try:
        folder.mkdir()
    except OSError:
        pytest.skip("the file system takes no such name")
    data = segment.read_bytes()
    (folder / segment.name).write_bytes(data + data)  # damaged, so that all commands show the name
    (folder / "bad\udcff.log").write_bytes(data[:-1] + b"?")
    out = segment.parent / "out.json"
    arguments: list[str | Path] = ["dictionary", "train"] if command == "train" else [command]
    arguments += [folder / segment.name] + ["--out", out] * (command in ("train", "fingerprint"))
    done = kfbench(*arguments)
    assert done.status == 1
    shown = done.out + done.err
    assert "caf\\xe9\\x1b[31m-0" in shown and all(line.isprintable() for line in shown.split("\n"))
    if command in ("inspect", "what-if", "migrate"):
        done = kfbench(*arguments, "--json")
        assert done.status == 1 and json.loads(done.out) and "\x1b" not in done.out
    assert "bad\\xff.log" in kfbench("inspect", folder).err


def test_migrate_as_text_and_json(kfbench: Run, segment: Path) -> None:
    text = kfbench("migrate", segment, "--plan", "kip31", "--codec", "none", "--old-consumers", "0.5")
    data = kfbench("migrate", segment, "--plan", "kip31", "--codec", "none", "--old-consumers", "0.5", "--json")
    assert (text.status, data.status, text.err, data.err) == (0, 0, "", "")
    found = json.loads(data.out)
    assert found["traffic"]["old_consumers"] == 0.5
    (subject,) = found["subjects"]
    assert subject["name"] == segment.parent.name
    for phase in found["phases"]:
        assert f"{phase['name']} ({phase['source']}): {phase['summary']}" in text.out
