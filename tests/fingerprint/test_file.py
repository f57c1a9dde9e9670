"""A damaged or foreign file is refused with its place, and one of an older version with the command for a new one."""

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kfbench.fingerprint.file import SCHEMA, Fingerprint, InvalidFingerprint, read_file, to_json
from kfbench.fingerprint.measure import fingerprint
from kfbench.sources.tables import is_fingerprint
from tests.recorded import FOLDER

Change = Callable[[dict[str, Any]], object]


@pytest.fixture(scope="module")
def text() -> bytes:
    return to_json(fingerprint(FOLDER / "activity-none.log").fingerprint)


def changed(text: bytes, change: Change) -> bytes:
    value = json.loads(text)
    change(value)
    return json.dumps(value).encode()


def steps(value: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = value["histograms"]["topic 1"]["time_steps_ms"]
    return found


def answer(value: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = value["answer"]
    return found


CHANGES: dict[str, tuple[Change, str]] = {
    "newer": (lambda v: v.update(schema=SCHEMA + 1), rf"has schema {SCHEMA + 1}, .*use a newer kfbench"),
    "no schema": (lambda v: v.pop("schema"), "schema"),
    "kind": (lambda v: v.update(kind="other"), "its kind is 'other'"),
    "negative": (lambda v: answer(v)["sources"][0].update(records=-1), r"\$\.answer\.sources\[0\]\.records: -1 is out"),
    "huge": (lambda v: answer(v)["arms"][1].update(size_bytes=1 << 63), r"answer\.arms\[1\]\.size_bytes"),
    "text": (lambda v: answer(v)["breakdown"]["v2"].update(keys="x"), r"answer\.breakdown"),
    "missing": (lambda v: answer(v).pop("losses"), "losses"),
    "key like a place": (lambda v: v.update({"answer.skipped": "alice"}), r"\$\.answer\.skipped: no fingerprint"),
    "key like a list": (lambda v: answer(v).update({"sources[0]": {}}), r"\$\.answer\.sources\[0\]: no fingerprint"),
    "no default": (lambda v: answer(v)["sources"][0].update(secret=1), r"\$\.answer\.sources\[0\]\.secret: no"),
    "unknown": (lambda v: v.update(secret=1), r"\$\.secret: no fingerprint has this"),
    "other batches": (lambda v: answer(v)["rebatched"].append(answer(v)["arms"][0]), r"answer\.rebatched"),
    "no base": (lambda v: answer(v)["breakdown"].pop("v2"), "v2 is missing"),
    "losses": (lambda v: answer(v)["losses"].pop("v3"), "formats differ"),
    "format": (lambda v: v.update(formats=["v2", "v9"]), r"\$\.formats: v9 has no sizes"),
    "overhead": (lambda v: answer(v)["overhead"]["1"].pop("v3"), r"answer\.overhead"),
    "codec": (lambda v: answer(v)["levels"][0].update(codec="xz"), "no codec 'xz'"),
    "fields": (lambda v: answer(v)["breakdown"].update(v3={}), r"answer\.arms\[\d+\]: not the sum"),
    "arm twice": (lambda v: answer(v)["arms"].append(answer(v)["arms"][0]), "a format and codec appears twice"),
    "no arm": (lambda v: answer(v)["arms"].pop(0), "without a codec"),
    "topics": (lambda v: answer(v)["by_topic"][0].update(topic="x"), r"answer\.by_topic: not topics"),
    "source twice": (lambda v: answer(v)["sources"].append(answer(v)["sources"][0]), "sources: not one for each"),
    "plain": (lambda v: answer(v)["sources"][0].update(plain_bytes=7), "plain_bytes is not the sum of v2's fields"),
    "nothing stored": (lambda v: answer(v)["sources"][0].update(sound_bytes=0), r"sources\[0\]: has records and no"),
    "kinds": (lambda v: answer(v)["sources"][0].update(kinds={"my secret text": 3}), r"sources\[0\]\.kinds"),
    "dictionary": (lambda v: answer(v)["more"]["dictionary"]["topics"][0].update(topic="x"), "dictionary.topics"),
    "few members": (lambda v: steps(v)[0].update(members=9), r"topic 1\.time_steps_ms\[0\]: 9 members, fewer than"),
    "order": (lambda v: steps(v)[0].update(most=1 << 40), r"topic 1\.time_steps_ms\[1\]: its range is not after"),
    "least members": (lambda v: v.update(least_members=1), "least_members"),
    "histogram": (lambda v: v["histograms"]["topic 1"].pop("headers"), "has other histograms"),
    "no topic": (lambda v: v["histograms"].update(x=v["histograms"]["topic 1"]), "not one set for each topic"),
    "no checksum": (lambda v: v.pop("sha256"), "a value was changed"),
    "checksum": (lambda v: v.update(sha256="0" * 64), "a value was changed"),
    "contents": (lambda v: v.update(contains=[]), "a value was changed"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_changed_file_is_refused(name: str, text: bytes, tmp_path: Path) -> None:
    change, words = CHANGES[name]
    path = tmp_path / "print.json"
    path.write_bytes(changed(text, change))
    with pytest.raises(InvalidFingerprint, match=rf"print\.json: .*{words}") as found:
        read_file(path)
    assert "\n" not in str(found.value)


def test_an_older_version_is_refused_with_the_command_for_a_new_one(tmp_path: Path) -> None:
    path = tmp_path / "my print.json"
    path.write_text('{"kind": "kfbench fingerprint", "schema": 8, "kfbench": "0.9", "topics": []}')
    with pytest.raises(InvalidFingerprint) as found:
        read_file(path)
    assert str(found.value) == (
        f"{path}: has schema 8, written by kfbench 0.9; this kfbench reads schema {SCHEMA}: make a new one from the "
        f"log: kfbench fingerprint LOG --force --out '{path}'"
    )


def test_a_changed_digit_is_refused(text: bytes, tmp_path: Path) -> None:
    path = tmp_path / "print.json"
    digits = [at for at, character in enumerate(text) if character in b"0123456789"]
    for at in random.Random(1).sample(digits, 100):
        other = b"1" if text[at : at + 1] != b"1" else b"2"
        damaged = text[:at] + other + text[at + 1 :]
        if json.loads(damaged) == json.loads(text):
            continue  # the 17th digit of a float need not change it
        path.write_bytes(damaged)
        with pytest.raises(InvalidFingerprint, match=r"print\.json: "):
            read_file(path)


def test_a_file_that_is_cut_short_or_nested_deeply_is_refused(text: bytes, tmp_path: Path) -> None:
    path = tmp_path / "print.json"
    deep = text.replace(b'"schema"', b'"deep": ' + b"[" * 200_000 + b"]" * 200_000 + b', "schema"', 1)
    for data in (*(text[:size] for size in (*range(0, 200, 7), len(text) // 2, len(text) - 3)), deep):
        path.write_bytes(data)
        with pytest.raises(InvalidFingerprint, match=r"print\.json: "):
            read_file(path)


def test_other_files_are_not_taken_for_fingerprints(text: bytes, tmp_path: Path) -> None:
    path = tmp_path / "rows.json"
    for other in (b"", b"{}", b'{"kind": "order"}\n', b"\xff\xfe", (FOLDER / "activity-none.log").read_bytes()):
        path.write_bytes(other)
        assert not is_fingerprint(path)
    path.write_bytes(text)
    found = read_file(path)
    as_jq_writes_it = json.dumps(json.loads(text), sort_keys=True, indent=4).encode()
    for same in (text, json.dumps(json.loads(text)).encode(), as_jq_writes_it, b"\xef\xbb\xbf" + text):
        path.write_bytes(same)
        assert is_fingerprint(path) and read_file(path) == found
    assert not is_fingerprint(tmp_path) and not is_fingerprint(tmp_path / "absent")


def test_the_file_is_small(text: bytes) -> None:
    assert len(text) < 128 << 10 and msgspec.json.decode(text, type=Fingerprint).schema == SCHEMA
