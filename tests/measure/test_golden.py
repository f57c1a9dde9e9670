"""Change one value of a golden vector's index, sidecar (the JSON file next to it) or bytes.

Exactly one failure names it.
"""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kfbench.errors import InvalidConfig
from kfbench.measure.golden.checks import CHECKS, check_vector
from kfbench.measure.golden.steps import ON_PURPOSE, REMADE
from kfbench.measure.golden.vectors import GOLDEN, vectors
from kfbench.measure.verify import Outcome
from tests.vectors import write_vectors

Sidecar = dict[str, Any]


def sidecar_of(name: str, folder: Path = GOLDEN) -> Sidecar:
    found: Sidecar = json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
    return found


def first(wanted: Callable[[Sidecar], Any]) -> tuple[dict[str, Any], Sidecar]:
    """Return the index entry and sidecar of the first vector for which `wanted` returns true."""
    for entry in vectors(GOLDEN):
        sidecar = sidecar_of(entry["name"])
        if wanted(sidecar):
            return entry, sidecar
    raise LookupError


def plain(sidecar: Sidecar) -> bool:
    """Return True if the vector has several plain batches of v2, with records and byte-exact."""
    batches = sidecar["batches"]
    written = sidecar["error"] is None and sidecar["byteExact"] and len(batches) > 1 and "source" not in sidecar
    return written and all(batch["magic"] == 2 and batch["records"] for batch in batches)


def compressed(sidecar: Sidecar) -> bool:
    written = sidecar["error"] is None and sidecar["category"] == "basic"
    return written and any(batch["compression"] == "gzip" for batch in sidecar["batches"])


def refused(sidecar: Sidecar) -> bool:
    error = sidecar["error"]
    return error is not None and error["batch"] > 0


def outcomes(folder: Path, entry: dict[str, Any], sidecar: Sidecar, data: bytes | None = None) -> list[Outcome]:
    """Check the vector after replacing its sidecar, or also its bytes."""
    name = entry["name"]
    (folder / f"{name}.bin").write_bytes((GOLDEN / f"{name}.bin").read_bytes() if data is None else data)
    (folder / f"{name}.json").write_text(json.dumps(sidecar), encoding="utf-8")
    return list(check_vector(folder, entry))


def lies(given: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Yield for each value in the sidecar its path and a wrong replacement."""
    if isinstance(given, dict | list):
        for key, value in given.items() if isinstance(given, dict) else enumerate(given):
            yield from lies(value, (*path, key))
    elif isinstance(given, bool):
        yield path, not given
    elif isinstance(given, int):
        yield path, given + 1
    elif given in ("CREATE_TIME", "LOG_APPEND_TIME"):
        yield path, "LOG_APPEND_TIME" if given == "CREATE_TIME" else "CREATE_TIME"
    else:
        yield path, "00" if given is None else given + "00"


def changed(given: Any, path: tuple[Any, ...], value: Any) -> Any:
    copy = json.loads(json.dumps(given))
    at = copy
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = value
    return copy


def failures(found: list[Outcome]) -> list[Outcome]:
    return [outcome for outcome in found if outcome.problem]


def test_every_vector_holds() -> None:
    found = [outcome for entry in vectors() for outcome in check_vector(GOLDEN, entry)]
    assert not [outcome.line for outcome in failures(found)]
    assert {outcome.check for outcome in found} >= CHECKS.keys()
    assert {"v0", "v1", "v2"} <= {outcome.format for outcome in found}


@pytest.mark.parametrize("kind", [plain, compressed])
def test_any_lie_about_a_batch_or_a_record_is_named(kind: Callable[[Sidecar], bool], tmp_path: Path) -> None:
    entry, sidecar = first(kind)
    unread = {"isValid", "decompressedSha256"}
    for path, value in lies(sidecar["batches"], ("batches",)):
        of_record = "records" in path
        if path[-1] in unread or (of_record and path[-1] in ("size", "crc", "magic")):
            continue
        (failure,) = failures(outcomes(tmp_path, entry, changed(sidecar, path, value)))[:1]
        assert failure.check == "fields", path
        assert f"batch {path[1]} at byte" in failure.problem, path
        assert not of_record or f"record {path[3]}" in failure.problem, path
        assert f"{path[4 if of_record else 2]}: Kafka reads" in failure.problem, path


def test_a_record_or_a_batch_too_many_or_too_few(tmp_path: Path) -> None:
    entry, sidecar = first(plain)
    batches = sidecar["batches"]
    number = len(batches[0]["records"])
    for records, said in ((batches[0]["records"] * 2, 2 * number), ([], 0)):
        (failure,) = failures(outcomes(tmp_path, entry, changed(sidecar, ("batches", 0, "records"), records)))
        assert f"Kafka reads {said} records, kfbench {number}" in failure.line
    for some in (batches[:-1], [*batches, batches[-1]]):
        (failure,) = failures(outcomes(tmp_path, entry, sidecar | {"batches": some}))
        assert f"Kafka reads {len(some)} batches, kfbench {len(batches)}" in failure.line
    (failure,) = failures(outcomes(tmp_path, entry, sidecar | {"trailingBytes": 3}))
    assert "Kafka leaves 3 bytes over, kfbench 0" in failure.line


def test_a_field_that_is_unknown_here_is_not_passed_over(tmp_path: Path) -> None:
    entry, sidecar = first(plain)
    for path in (("batches", 0, "colour"), ("batches", 0, "records", 0, "colour")):
        (failure,) = failures(outcomes(tmp_path, entry, changed(sidecar, path, "red")))
        assert "colour: Kafka reads red, kfbench has no such field" in failure.line


def test_another_file_under_the_name(tmp_path: Path) -> None:
    entry, sidecar = first(plain)
    data = (GOLDEN / f"{entry['name']}.bin").read_bytes()
    found = failures(outcomes(tmp_path, entry, sidecar, data + b"\0"))
    assert [failure.check for failure in found] == ["sha256", "fields"]
    (failure,) = failures(outcomes(tmp_path, entry | {"sha256": "0" * 64}, sidecar))
    assert failure.check == "sha256"
    (tmp_path / f"{entry['name']}.bin").unlink()
    (failure,) = check_vector(tmp_path, entry)
    assert f"{entry['name']}.bin" in failure.line


def test_other_bytes_than_kafka_writes(tmp_path: Path) -> None:
    entry, sidecar = first(plain)
    (failure,) = failures(outcomes(tmp_path, entry, sidecar | {"validBytes": entry["size"] - 1}))
    assert failure.check == "same bytes"
    assert f"byte {entry['size'] - 1} differs" in failure.problem
    entry, sidecar = first(compressed)
    (failure,) = failures(outcomes(tmp_path, entry, changed(sidecar, ("batches", 0, "decompressedSha256"), "0" * 64)))
    assert (failure.check, failure.problem[:17]) == ("decompressed", "batch 0 at byte 0")


def test_bytes_that_kafka_writes_and_kfbench_calls_uncommon(tmp_path: Path) -> None:
    hand = next(
        entry
        for entry in vectors(GOLDEN)
        if entry["category"] == "corrupt"
        and {outcome.check for outcome in check_vector(GOLDEN, entry)} >= {"same records"}
    )
    found = failures(outcomes(tmp_path, hand | {"category": "basic"}, sidecar_of(hand["name"])))
    assert [failure.check for failure in found] == ["same bytes"]
    assert "not canonical" in found[0].problem


def test_a_refusal_at_another_batch_or_none_at_all(tmp_path: Path) -> None:
    entry, sidecar = first(refused)
    at = sidecar["error"]["batch"]
    (failure,) = failures(outcomes(tmp_path, entry, changed(sidecar, ("error", "batch"), at - 1)))
    assert failure.check == "refused"
    assert f"Kafka refuses batch {at - 1} at byte 0" in failure.problem
    assert f"kfbench another: batch at byte {sidecar['batches'][at]['position']}" in failure.problem
    sound, of_sound = first(plain)
    error = {"batch": 0, "message": "no", "stage": "iterate"}
    (failure,) = failures(outcomes(tmp_path, sound, of_sound | {"error": error}))
    assert failure.problem.endswith("kfbench reads it")
    read = {"error": None, "batches": sidecar["batches"][:at]}
    (failure,) = failures(outcomes(tmp_path, entry, sidecar | read))
    assert "Kafka reads it, kfbench refuses it" in failure.line


def test_what_comes_before_a_refusal_is_checked_too(tmp_path: Path) -> None:
    entry, sidecar = first(refused)
    (failure,) = failures(outcomes(tmp_path, entry, changed(sidecar, ("batches", 0, "lastOffset"), 99)))
    assert "batch 0 at byte 0: lastOffset: Kafka reads 99" in failure.line


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "golden vectors"),
        ("{", "index.json"),
        ("[]", "is wanted"),
        ('[{"name": "a"}]', "is wanted"),
        ("[1]", "json"),
    ],
)
def test_a_folder_that_is_none_of_vectors(tmp_path: Path, text: str | None, said: str) -> None:
    if text is not None:
        (tmp_path / "index.json").write_text(text)
    with pytest.raises(InvalidConfig, match=said):
        vectors(tmp_path)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "No such file"),
        ("{", "Expecting property name"),
        ("[]", "an object is wanted, not list"),
        ("{}", "sha256, error, byteExact, validBytes, trailingBytes, batches: missing"),
        ('{"error": {}}', "error: batch, message: missing"),
        ('{"batches": 3}', "batches: list is wanted, not int"),
        ('{"batches": [3]}', "batch 0: an object is wanted, not int"),
        ('{"batches": [{}]}', "batch 0: position, size, magic: missing"),
        ('{"batches": [{"position": 0, "size": 1, "magic": 2}]}', "batch 0: compression, records: missing"),
    ],
)
def test_a_sidecar_that_is_none_is_named_and_the_rest_is_checked(text: str | None, said: str, tmp_path: Path) -> None:
    folder = write_vectors(tmp_path / "golden")
    entries = json.loads((folder / "index.json").read_text())
    for kind in ("bin", "json"):
        (folder / f"sound.{kind}").write_bytes((folder / f"nothing.{kind}").read_bytes())
    (folder / "index.json").write_text(json.dumps([*entries, entries[0] | {"name": "sound"}]))
    sidecar = folder / "nothing.json"
    if text is None:
        sidecar.unlink()
    else:
        given, whole = json.loads(text) if text != "{" else None, json.loads(sidecar.read_text())
        sidecar.write_text(json.dumps(whole | given) if given else text)
    (failure,), *others = ([*check_vector(folder, entry)] for entry in vectors(folder))
    assert failure.line.startswith("nothing: –: sha256: nothing.json: ")
    assert said in failure.line
    assert [[outcome.problem for outcome in found] for found in others] == [[""] * 4]


@pytest.mark.parametrize("category", REMADE)
def test_a_broker_that_makes_something_else_is_named(category: str, tmp_path: Path) -> None:
    check, _ = REMADE[category]
    entry, sidecar = first(lambda sidecar: sidecar["category"] == category and sidecar["byteExact"])
    step = {"baseOffset": 7, "toMagic": 2, "firstOffset": 0, "retain": [], "timestampType": "CREATE_TIME"}
    other = sidecar["spec"]["steps"][-1] | step
    (failure,) = failures(outcomes(tmp_path, entry, changed(sidecar, ("spec", "steps", -1), other)))
    assert failure.check == check
    assert "differs: Kafka writes" in failure.problem or "Kafka counts" in failure.problem
    refused = {"error": "INVALID_RECORD", "message": "no"}
    (failure,) = failures(outcomes(tmp_path, entry, sidecar | {"refused": refused}))
    assert failure.problem == "Kafka's broker says INVALID_RECORD: no, kfbench takes it"


def test_another_refusal_than_kafkas_is_named(tmp_path: Path) -> None:
    for error in ("INVALID_TIMESTAMP", "CORRUPT_MESSAGE"):

        def said(sidecar: Sidecar, error: str = error) -> bool:
            return bool(sidecar.get("refused", {}).get("error") == error)

        entry, sidecar = first(said)
        wrong = changed(sidecar, ("refused", "error"), "UNSUPPORTED_VERSION")
        (failure,) = failures(outcomes(tmp_path, entry, wrong))
        assert "Kafka's broker says UNSUPPORTED_VERSION" in failure.problem
        (failure,) = failures(outcomes(tmp_path, entry, {key: sidecar[key] for key in sidecar.keys() - {"refused"}}))
        assert "takes it, kfbench refuses it: batch at byte" in failure.problem


def test_a_difference_that_is_gone_is_named(tmp_path: Path) -> None:
    entry, sidecar = first(lambda sidecar: sidecar["category"] == "validate" and not sidecar.get("refused"))
    name = next(iter(ON_PURPOSE))
    renamed = entry | {"name": name}
    (tmp_path / f"{name}.bin").write_bytes((GOLDEN / f"{entry['name']}.bin").read_bytes())
    (tmp_path / f"{name}.json").write_text(json.dumps(sidecar | {"name": name}))
    (failure,) = failures(list(check_vector(tmp_path, renamed)))
    assert (failure.check, failure.problem) == ("differs on purpose", "no longer")
