"""Change one value of a golden vector's index, sidecar (the JSON file next to it) or bytes. One failure names it."""

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from kfbench.errors import InvalidConfig
from kfbench.measure.golden.checks import CHECKS, check_vector
from kfbench.measure.golden.steps import ON_PURPOSE, REMADE
from kfbench.measure.golden.vectors import GOLDEN, read_vector, vectors
from kfbench.measure.verify import CheckOutcome
from tests.vectors import write_vectors

Sidecar = dict[str, Any]


class Stored(NamedTuple):
    """A vector of the folder: its entry in the index, its sidecar and its bytes."""

    entry: dict[str, Any]
    sidecar: Sidecar
    data: bytes


def first(wanted: Callable[[Mapping[str, Any]], Any]) -> Stored:
    """Return the first vector for whose sidecar `wanted` returns true."""
    for entry in vectors():
        data, sidecar = read_vector(GOLDEN, entry["name"])
        if wanted(sidecar):
            return Stored(entry, dict(sidecar), data)
    raise LookupError


def is_written(sidecar: Mapping[str, Any]) -> bool:
    """Return True if the vector has several plain batches of v2, with records and byte-exact."""
    batches = sidecar["batches"]
    written = sidecar["error"] is None and sidecar["byteExact"] and len(batches) > 1 and "source" not in sidecar
    return written and all(batch["magic"] == 2 and batch["records"] for batch in batches)


def is_compressed(sidecar: Mapping[str, Any]) -> bool:
    is_basic = sidecar["error"] is None and sidecar["category"] == "basic"
    return is_basic and any(batch["compression"] == "gzip" for batch in sidecar["batches"])


def is_by_hand(sidecar: Mapping[str, Any]) -> bool:
    """Return True if a log that Kafka would not write holds the same records when it is written anew."""
    entry = {name: sidecar[name] for name in ("name", "sha256", "category")}
    is_corrupt = entry["category"] == "corrupt"
    return is_corrupt and "same records" in {outcome.check for outcome in check_vector(GOLDEN, entry)}


PLAIN, COMPRESSED = first(is_written), first(is_compressed)
REFUSED = first(lambda sidecar: sidecar["error"] and sidecar["error"]["batch"] > 0)
REFUSED_BATCH = REFUSED.sidecar["error"]["batch"]
BY_HAND = first(is_by_hand)
BATCHES = PLAIN.sidecar["batches"]
RECORDS = len(BATCHES[0]["records"])
SIZE = PLAIN.entry["size"]


def changed(given: Any, path: tuple[Any, ...], value: Any) -> Any:
    """Return a copy with another value at a path of keys."""
    copy = json.loads(json.dumps(given))
    at = copy
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = value
    return copy


def failures(folder: Path, stored: Stored) -> list[CheckOutcome]:
    """Write the vector to a folder, check it, and return the checks that failed."""
    (folder / f"{stored.entry['name']}.bin").write_bytes(stored.data)
    (folder / f"{stored.entry['name']}.json").write_text(json.dumps(stored.sidecar), encoding="utf-8")
    return [outcome for outcome in check_vector(folder, stored.entry) if outcome.problem]


def with_sidecar(stored: Stored, **values: Any) -> Stored:
    return stored._replace(sidecar=stored.sidecar | values)


def with_value(stored: Stored, value: Any, *path: Any) -> Stored:
    return stored._replace(sidecar=changed(stored.sidecar, path, value))


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


def test_every_vector_holds() -> None:
    found = [outcome for entry in vectors() for outcome in check_vector(GOLDEN, entry)]
    assert not [outcome.line for outcome in found if outcome.problem]
    assert {outcome.check for outcome in found} >= CHECKS.keys()
    assert {"v0", "v1", "v2"} <= {outcome.format for outcome in found}


@pytest.mark.parametrize("stored", [PLAIN, COMPRESSED], ids=["plain", "compressed"])
def test_any_lie_about_a_batch_or_a_record_is_named(stored: Stored, tmp_path: Path) -> None:
    for path, value in lies(stored.sidecar["batches"], ("batches",)):
        of_record = "records" in path
        if path[-1] in {"isValid", "decompressedSha256"} or (of_record and path[-1] in ("size", "crc", "magic")):
            continue  # not compared
        failure = failures(tmp_path, with_value(stored, value, *path))[0]
        assert failure.check == "fields", path
        assert f"batch {path[1]} at byte" in failure.problem, path
        assert not of_record or f"record {path[3]}" in failure.problem, path
        assert f"{path[4 if of_record else 2]}: Kafka reads" in failure.problem, path


# A changed vector -> the check that fails, and its problem.
WRONG: dict[str, tuple[Stored, str, str]] = {
    "records twice": (
        with_value(PLAIN, BATCHES[0]["records"] * 2, "batches", 0, "records"),
        "fields", f"Kafka reads {2 * RECORDS} records, kfbench {RECORDS}",
    ),
    "no records": (
        with_value(PLAIN, [], "batches", 0, "records"), "fields", f"Kafka reads 0 records, kfbench {RECORDS}"
    ),
    "a batch less": (
        with_sidecar(PLAIN, batches=BATCHES[:-1]),
        "fields", f"Kafka reads {len(BATCHES) - 1} batches, kfbench {len(BATCHES)}",
    ),
    "a batch more": (
        with_sidecar(PLAIN, batches=[*BATCHES, BATCHES[-1]]),
        "fields", f"Kafka reads {len(BATCHES) + 1} batches, kfbench {len(BATCHES)}",
    ),
    "bytes left over": (with_sidecar(PLAIN, trailingBytes=3), "fields", "Kafka leaves 3 bytes over, kfbench 0"),
    "an unknown field of a batch": (
        with_value(PLAIN, "red", "batches", 0, "colour"),
        "fields", "colour: Kafka reads red, kfbench has no such field",
    ),
    "an unknown field of a record": (
        with_value(PLAIN, "red", "batches", 0, "records", 0, "colour"),
        "fields", "colour: Kafka reads red, kfbench has no such field",
    ),
    "another index": (PLAIN._replace(entry=PLAIN.entry | {"sha256": "0" * 64}), "sha256", "not 0000000000000000…"),
    "fewer bytes": (with_sidecar(PLAIN, validBytes=SIZE - 1), "same bytes", f"byte {SIZE - 1} differs"),
    "other plain bytes": (
        with_value(COMPRESSED, "0" * 64, "batches", 0, "decompressedSha256"), "decompressed", "batch 0 at byte 0"
    ),
    "bytes that kfbench calls uncommon": (
        BY_HAND._replace(entry=BY_HAND.entry | {"category": "basic"}), "same bytes", "not canonical"
    ),
    "a refusal of another batch": (
        with_value(REFUSED, REFUSED_BATCH - 1, "error", "batch"),
        "refused", f"kfbench another: batch at byte {REFUSED.sidecar['batches'][REFUSED_BATCH]['position']}",
    ),
    "a refusal of none": (
        with_sidecar(PLAIN, error={"batch": 0, "message": "no", "stage": "iterate"}), "refused", "kfbench reads it"
    ),
    "a refusal that Kafka does not know": (
        with_sidecar(REFUSED, error=None, batches=REFUSED.sidecar["batches"][:REFUSED_BATCH]),
        "fields", "Kafka reads it, kfbench refuses it",
    ),
    "a lie before the refusal": (
        with_value(REFUSED, 99, "batches", 0, "lastOffset"),
        "refused", "batch 0 at byte 0: lastOffset: Kafka reads 99",
    ),
}  # fmt: skip


def refused_by_broker(error: str) -> Stored:
    return first(lambda sidecar: sidecar.get("refused", {}).get("error") == error)


def of_category(category: str) -> Stored:
    return first(lambda sidecar: sidecar["category"] == category and sidecar["byteExact"])


for category, (check, _) in REMADE.items():
    made = of_category(category)
    step = {"baseOffset": 7, "toMagic": 2, "firstOffset": 0, "retain": [], "timestampType": "CREATE_TIME"}
    other = with_value(made, made.sidecar["spec"]["steps"][-1] | step, "spec", "steps", -1)
    refusal = {"error": "INVALID_RECORD", "message": "no"}
    WRONG[f"{category} by another step"] = other, check, "Kafka "
    WRONG[f"{category} that Kafka refuses"] = (
        with_sidecar(made, refused=refusal), check, "Kafka's broker says INVALID_RECORD: no, kfbench takes it"
    )  # fmt: skip
for error in ("INVALID_TIMESTAMP", "CORRUPT_MESSAGE"):
    of_error = refused_by_broker(error)
    takes = of_error._replace(sidecar={key: value for key, value in of_error.sidecar.items() if key != "refused"})
    WRONG[f"{error} that Kafka takes"] = takes, "appended", "takes it, kfbench refuses it: batch at byte"
    WRONG[f"{error} for another reason"] = (
        with_value(of_error, "UNSUPPORTED_VERSION", "refused", "error"),
        "appended", "Kafka's broker says UNSUPPORTED_VERSION",
    )  # fmt: skip
appended = first(lambda sidecar: sidecar["category"] == "validate" and not sidecar.get("refused"))
purpose = {"name": next(iter(ON_PURPOSE))}
WRONG["a difference that is gone"] = (
    Stored(appended.entry | purpose, appended.sidecar | purpose, appended.data), "differs on purpose", "no longer"
)  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_what_differs_is_one_failure_that_names_it(case: str, tmp_path: Path) -> None:
    stored, check, said = WRONG[case]
    (failure,) = failures(tmp_path, stored)
    assert failure.check == check and said in failure.problem


def test_another_file_under_the_name(tmp_path: Path) -> None:
    found = failures(tmp_path, PLAIN._replace(data=PLAIN.data + b"\0"))
    assert [failure.check for failure in found] == ["sha256", "fields"]
    (tmp_path / f"{PLAIN.entry['name']}.bin").unlink()
    (failure,) = check_vector(tmp_path, PLAIN.entry)
    assert f"{PLAIN.entry['name']}.bin" in failure.line


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
        ("{", "line 1"),
        ("[]", "array"),
        ("{}", "sha256"),
        ('{"error": {}}', "$.error"),
        ('{"batches": [{}]}', "$.batches[0]"),
        ('{"batches": [{"position": 0, "size": 1, "magic": 2}]}', "compression"),
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
