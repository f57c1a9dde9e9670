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


def answer(value: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = value["answer"]
    return found


def steps(value: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = value["histograms"]["topic 1"]["time_steps_ms"]
    return found


CHANGED = "a value was changed"
CHANGES: dict[str, tuple[Change, str]] = {
    "newer": (lambda v: v.update(schema=SCHEMA + 1), rf"has schema {SCHEMA + 1}, .*use a newer kfbench"),
    "no schema": (lambda v: v.pop("schema"), "schema"),
    "kind": (lambda v: v.update(kind="other"), "its kind is 'other'"),
    "text": (lambda v: answer(v)["breakdown"]["v2"].update(keys="x"), r"answer\.breakdown"),
    "missing": (lambda v: answer(v).pop("losses"), "losses"),
    "least members": (lambda v: v.update(least_members=1), "least_members"),
    "codec": (lambda v: answer(v)["levels"][0].update(codec="xz"), "no codec 'xz'"),
    "format": (lambda v: answer(v)["breakdown"].update(v9={}), "no format 'v9'"),
    "package": (lambda v: answer(v)["more"].update(other={}), "no package here knows other"),
    "negative": (lambda v: answer(v)["sources"][0].update(records=-1), CHANGED),
    "huge": (lambda v: answer(v)["arms"][1].update(size_bytes=1 << 63), CHANGED),
    "larger": (lambda v: answer(v)["arms"][1].update(size_bytes=1 << 64), ""),
    "unknown key": (lambda v: v.update(secret=1), "has a key that no fingerprint has"),
    "unknown key of a source": (lambda v: answer(v)["sources"][0].update(secret=1), "has a key that no"),
    "without a default": (lambda v: answer(v)["sources"][0].pop("files"), CHANGED),
    "no base": (lambda v: answer(v)["breakdown"].pop("v2"), "v2 is missing"),
    "fields": (lambda v: answer(v)["breakdown"]["v3"].update(keys=7), "not the sum of the fields in breakdown"),
    "plain": (lambda v: answer(v)["sources"][0].update(plain_bytes=7), "plain_bytes is not the sum of v2's fields"),
    "few members": (lambda v: steps(v)[0].update(members=9), r"topic 1\.time_steps_ms: fewer than least_members"),
    "one twice": (lambda v: answer(v)["arms"].append(answer(v)["arms"][0]), CHANGED),
    "one left out": (lambda v: v["histograms"]["topic 1"].pop("headers"), CHANGED),
    "no checksum": (lambda v: v.pop("sha256"), "or lacks one"),
    "contents": (lambda v: v.update(contains=[]), CHANGED),
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
