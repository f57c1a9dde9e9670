"""Golden vectors: logs written by Apache Kafka's own classes, with the values that Kafka's reader found in them.

A folder of vectors has index.json ([{name, category, sha256}, ...]). For each name it has NAME.bin, a log segment, and
NAME.json, called its sidecar. tests/oracle writes these folders. A sidecar has:

- every field of every batch and record, under Kafka's names;
- the batch at which Kafka refuses the log and Kafka's message, if Kafka refuses it;
- `byteExact`: true if encoding the log again must give the same bytes. Under a codec it is false: only the decompressed
  bytes must be the same.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from kfbench.errors import InvalidConfig
from kfbench.shipped import DATASETS

GOLDEN: Final = DATASETS / "golden"
Sidecar = Mapping[str, Any]  # JSON under Kafka's names

# The keys that every vector's JSON file must have. Other fields of a batch or record are compared if they are there.
_SIDECAR: Final = {
    "sha256": str, "error": object, "byteExact": bool, "validBytes": int, "trailingBytes": int, "batches": list
}  # fmt: skip
_ERROR: Final = {"batch": int, "message": object}
_BATCH_PLACE: Final = {"position": int, "size": int, "magic": int}
_BATCH_READ: Final = {"compression": str, "records": list}


class Vector(NamedTuple):
    """A golden vector: the bytes of a log, and the JSON file next to it with the values that Kafka read."""

    data: bytes
    sidecar: Sidecar


def vectors(folder: Path = GOLDEN) -> list[dict[str, Any]]:
    """Return the entries of the folder's index.json. Raises InvalidConfig if the file is missing or malformed."""
    index = folder / "index.json"
    try:
        entries = json.loads(index.read_text(encoding="utf-8"))
        if not entries or not all({"name", "category", "sha256"} <= entry.keys() for entry in entries):
            raise InvalidConfig(f"{index}: a list of name, category and sha256 is wanted")
    except OSError as error:
        raise InvalidConfig(f"{index}: {error.strerror}: is this a folder of golden vectors?") from None
    except (ValueError, AttributeError, TypeError) as error:
        raise InvalidConfig(f"{index}: {error}") from None
    return list(entries)


def read_vector(folder: Path, name: str) -> Vector:
    """Read the log NAME.bin and its JSON file NAME.json.

    Raises InvalidConfig if one of them cannot be read, or if the JSON file lacks a needed value.
    """
    file = f"{name}.bin"
    try:
        data = (folder / file).read_bytes()
        file = f"{name}.json"
        sidecar = json.loads((folder / file).read_text(encoding="utf-8"))
    except OSError as error:
        raise InvalidConfig(f"{file}: {error.strerror}") from None
    except ValueError as error:
        raise InvalidConfig(f"{file}: {error}") from None
    if problem := next(_sidecar_problems(sidecar), None):
        raise InvalidConfig(f"{file}: {problem}")
    return Vector(data, sidecar)


def _sidecar_problems(sidecar: Any) -> Iterator[str]:
    """Yield the reasons why a vector's JSON file cannot be compared with its log.

    Only keys and types are checked here. The values are compared later.
    """
    yield from _unlike(sidecar, _SIDECAR, "")
    batches, error = sidecar["batches"], sidecar["error"]
    if error is not None:
        yield from _unlike(error, _ERROR, "error: ")
    for i, batch in enumerate(batches):
        yield from _unlike(batch, _BATCH_PLACE, f"batch {i}: ")
        if error is not None and i >= error["batch"]:  # Kafka read no further
            continue
        yield from _unlike(batch, _BATCH_READ, f"batch {i}: ")
        for k, record in enumerate(batch["records"]):
            yield from _unlike(record, {}, f"batch {i}: record {k}: ")
            headers = record.get("headers", [])
            if not isinstance(headers, list) or not all(isinstance(pair, list) and len(pair) == 2 for pair in headers):
                yield f"batch {i}: record {k}: headers: a list of pairs is wanted"


def _unlike(given: Any, wanted: Mapping[str, type], where: str) -> Iterator[str]:
    if not isinstance(given, dict):
        yield f"{where}an object is wanted, not {type(given).__name__}"
    elif missing := [name for name in wanted if name not in given]:
        yield f"{where}{', '.join(missing)}: missing"
    else:
        for name, kind in wanted.items():
            if not isinstance(given[name], kind):
                yield f"{where}{name}: {kind.__name__} is wanted, not {type(given[name]).__name__}"
