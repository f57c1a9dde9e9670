"""A damaged or foreign file is refused with its place, and so is one of another schema."""

import hashlib
import json
import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kfbench.fingerprint.file import InvalidFingerprint, read_file, to_json
from kfbench.fingerprint.measure import fingerprint
from kfbench.json_files import with_checksum
from kfbench.workloads.fingerprinted.model import SCHEMA, is_fingerprint
from tests.recorded import FOLDER

DIGEST = "5a74132a3a79472b1cb7051d6d221341a52000530ea789b24a01d0d64f239255"
Change = Callable[[dict[str, Any]], object]


@pytest.fixture(scope="module")
def text() -> bytes:
    return to_json(fingerprint(FOLDER / "activity-none.log").fingerprint)


def changed(text: bytes, change: Change) -> bytes:
    value = json.loads(text)
    change(value)
    return json.dumps(value).encode()


def test_the_checksum_is_that_of_sorted_json_without_white_space() -> None:
    """The digest is that of coreutils' sha256sum."""
    values = {"é": [1.0, 1e-7, -0.25, 1e22, None], "a": {"c": "\n", "b": True}}
    plain = rb"""{"a":{"b":true,"c":"\n"},"\u00e9":[1,1e-07,-0.25,10000000000000000000000,null]}"""
    assert hashlib.sha256(plain).hexdigest() == DIGEST
    assert json.loads(with_checksum(json.dumps(values).encode())) == {**values, "sha256": DIGEST}


def first(value: dict[str, Any]) -> dict[str, Any]:
    topic: dict[str, Any] = value["topics"][0]
    return topic


def longer(table: dict[str, Any]) -> None:
    """Add a row behind the last one."""
    table["linger_ms"].append(501)
    table["batches"].append(table["batches"][-1])


def swapped(values: list[int]) -> None:
    values[1], values[2] = values[2], values[1]


def few(histogram: dict[str, Any]) -> None:
    histogram["buckets"][0]["members"] = 9


CHANGES: dict[str, tuple[Change, str]] = {
    "schema": (lambda v: v.update(schema=SCHEMA - 1), rf"has schema {SCHEMA - 1}, .*reads schema {SCHEMA}"),
    "no schema": (lambda v: v.pop("schema"), "schema"),
    "kind": (lambda v: v.update(kind="other"), "kind"),
    "negative": (lambda v: first(v)["stored"].update(records=-1), r"topics\[0\]\.stored\.records"),
    "huge": (lambda v: first(v)["stored"].update(records=1 << 63), r"topics\[0\]\.stored\.records"),
    "negative sum": (lambda v: first(v)["coded"][0]["drawn"].update(coded=-5), r"coded\[0\]\.drawn\.coded"),
    "text": (lambda v: first(v)["formats"]["v2"]["fields"].update(key="x"), r"topics\[0\]\.formats"),
    "missing": (lambda v: first(v).pop("span"), "span"),
    "unknown": (lambda v: first(v).update(secret=1), "secret"),
    "share": (lambda v: v.update(share=0), r"\$\.share"),
    "no topic": (lambda v: v.update(topics=[]), "topics"),
    "two topics": (lambda v: v["topics"].append(first(v)), "two topics have one name"),
    "format": (lambda v: first(v)["formats"].pop("v2"), r"topic 1: batchings\[0\]\.sizes"),
    "sizes": (lambda v: first(v)["batchings"][0]["sizes"].pop("v3"), r"topic 1: batchings\[0\]\.sizes"),
    "fields": (lambda v: first(v)["formats"]["v2"].update(fields={}), r"topic 1: stored\.plain_bytes"),
    "shown": (lambda v: v.update(formats=["v2", "v9"]), "no format 'v9'"),
    "codec": (lambda v: v["codec_versions"].update(xz="1"), "no codec 'xz'"),
    "batches": (lambda v: first(v)["batchings"][0].update(linger_ms=-1), "linger_ms: -1"),
    "batches twice": (lambda v: first(v)["batchings"].append(first(v)["batchings"][0]), "batchings"),
    "count row": (lambda v: first(v)["sample"]["counts"]["batches"].pop(), "topic 1: sample"),
    "grid size": (lambda v: first(v)["sample"]["slow"]["arms"][0]["size_bytes"].pop(), "topic 1: sample"),
    "grid cell": (lambda v: first(v)["sample"]["slow"]["divisions"][2].pop(), "topic 1: sample"),
    "division": (lambda v: first(v)["sample"]["fast"]["divisions"][0].__setitem__(0, 10**6), "topic 1: sample"),
    "grid axis": (lambda v: first(v)["sample"]["fast"]["linger_ms"].reverse(), "topic 1: sample"),
    "grid order": (lambda v: swapped(first(v)["sample"]["fast"]["linger_ms"]), "topic 1: sample"),
    "grid sizes": (lambda v: swapped(first(v)["sample"]["slow"]["batch_size_bytes"]), "topic 1: sample"),
    "count order": (lambda v: swapped(first(v)["sample"]["counts"]["linger_ms"]), "topic 1: sample"),
    "count end": (lambda v: longer(first(v)["sample"]["counts"]), "topic 1: sample: .* end at different settings"),
    "batches row": (lambda v: first(v)["batches"]["batches"].pop(), "topic 1: batches: not a number"),
    "batches end": (lambda v: first(v)["batches"]["linger_ms"].__setitem__(-1, 400), "sample: batches: end before"),
    "no batches": (
        lambda v: first(v)["batchings"][1].update(batches=0),
        r"topic 1: batchings\[1\]: 0 batches or bytes",
    ),
    "much coded": (
        lambda v: first(v)["batchings"][0]["coded"][0]["certain"].update(plain=10**9),
        r"topic 1: batchings\[0\].coded: more bytes",
    ),
    "far batchings": (lambda v: first(v)["batchings"][2].update(linger_ms=600), "topic 1: sample: batchings"),
    "v0": (lambda v: v.update(formats=[*v["formats"], "v0"]), "topic 1: sample: formats: v0 has no zstd"),
    "other codec": (lambda v: first(v)["coded"][0].update(codec="rot13"), "topic 1: coded: no codec 'rot13'"),
    "grid arm": (lambda v: first(v)["sample"]["fast"]["arms"].pop(), "topic 1: sample"),
    "grid codec": (lambda v: first(v)["sample"]["slow"]["arms"][0].update(codec="none"), "topic 1: sample"),
    "no batchings": (lambda v: first(v).update(batchings=[]), "batchings"),
    "nothing stored": (lambda v: first(v)["stored"].update(sound_bytes=0), "topic 1: stored"),
    "kinds": (lambda v: first(v)["stored"].update(kinds={"my secret text": 3}), r"stored\.kinds"),
    "few records": (
        lambda v: first(v)["distributions"].update(least_members=1000),
        r"topic 1: distributions\.classes\[0\]: \d+ records, fewer than least_members \(1000\)",
    ),
    "few members": (
        lambda v: few(first(v)["distributions"]["time_steps_ms"]),
        r"distributions\.time_steps_ms: buckets\[0\]: 9 members, fewer than least_members",
    ),
    "least members": (lambda v: first(v)["distributions"].update(least_members=1), r"distributions\.least_members"),
    "entropy": (lambda v: first(v)["distributions"]["values"][0].update(entropy_bits=9), "entropy_bits"),
    "dictionary": (lambda v: v["dictionary"]["topics"][0].update(topic="x"), "dictionary: no topic 'x'"),
    "no checksum": (lambda v: v.pop("sha256"), "sha256"),
    "checksum": (lambda v: v.update(sha256="0" * 64), "a value was changed"),
    "contents": (lambda v: v.update(contains=[]), "a value was changed"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_changed_file_is_refused(name: str, text: bytes, tmp_path: Path) -> None:
    change, words = CHANGES[name]
    path = tmp_path / "print.json"
    path.write_bytes(changed(text, change))
    with pytest.raises(InvalidFingerprint, match=rf"print\.json: .*{words}"):
        read_file(path)


def test_a_changed_digit_is_refused(text: bytes, tmp_path: Path) -> None:
    """Any digit: in tables of sizes, sums of squares, shares and totals."""
    path, by_checksum = tmp_path / "print.json", 0
    digits = [at for at, character in enumerate(text) if character in b"0123456789"]
    for at in random.Random(1).sample(digits, 300):
        other = b"1" if text[at : at + 1] != b"1" else b"2"
        path.write_bytes(text[:at] + other + text[at + 1 :])
        with pytest.raises(InvalidFingerprint, match=r"print\.json: ") as found:
            read_file(path)
        by_checksum += "a value was changed" in str(found.value)
    assert by_checksum > 200


def test_other_ways_to_write_a_number_are_read(text: bytes, tmp_path: Path) -> None:
    """Programs that write the file again may write 5.0 as 5, 10 as 10.0, and .25 as 2.5e-1."""

    def number(literal: str) -> float:
        return int(float(literal)) if float(literal).is_integer() else float(literal)

    path = tmp_path / "print.json"
    again = json.dumps(json.loads(text, parse_float=number))
    again = again.replace('"least_members": 10,', '"least_members": 10.0,')
    path.write_text(re.sub(r"(?<=: )0\.(\d)(\d+)", r"\1.\2e-1", again), encoding="utf-8")
    assert b"e-1" in path.read_bytes() and b".0," in text and path.read_bytes().count(b".0,") == 1
    assert to_json(read_file(path)) == text


def test_a_file_that_is_cut_short_is_refused(text: bytes, tmp_path: Path) -> None:
    path = tmp_path / "print.json"
    for size in [*range(0, 200, 7), len(text) // 2, len(text) - 3]:
        path.write_bytes(text[:size])
        with pytest.raises(InvalidFingerprint, match=r"print\.json: "):
            read_file(path)


def test_other_files_are_not_taken_for_fingerprints(text: bytes, tmp_path: Path) -> None:
    path = tmp_path / "rows.json"
    for other in (b"", b"{}", b'{"kind": "order"}\n', b"\xff\xfe", (FOLDER / "activity-none.log").read_bytes()):
        path.write_bytes(other)
        assert not is_fingerprint(path)
    path.write_bytes(text)
    assert is_fingerprint(path)
    path.write_bytes(json.dumps(json.loads(text)).encode())  # another layout of the same JSON
    assert is_fingerprint(path)
    path.write_bytes(json.dumps(json.loads(text), sort_keys=True, indent=4).encode())  # as jq writes it
    assert is_fingerprint(path) and read_file(path).kfbench == json.loads(text)["kfbench"]
    path.write_bytes(b"\xef\xbb\xbf" + text)  # as some editors save it
    assert is_fingerprint(path) and read_file(path).kfbench == json.loads(text)["kfbench"]
    path.write_bytes(changed(text, lambda value: value.update(kind="other")))
    assert is_fingerprint(path)
    assert not is_fingerprint(tmp_path) and not is_fingerprint(tmp_path / "absent")


def test_deep_nesting_is_refused(text: bytes, tmp_path: Path) -> None:
    path = tmp_path / "print.json"
    path.write_bytes(text.replace(b'"schema"', b'"deep": ' + b"[" * 200_000 + b"]" * 200_000 + b', "schema"', 1))
    with pytest.raises(InvalidFingerprint):
        read_file(path)
