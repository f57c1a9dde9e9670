"""Golden vectors: logs written by Apache Kafka's own classes, with the values that Kafka's reader found in them.

A folder of vectors has index.json ([{name, category, sha256}, ...]). For each name it has NAME.bin, a log segment, and
NAME.json, called its sidecar. tests/oracle writes these folders. A sidecar has:

- every field of every batch and record, under Kafka's names;
- the batch at which Kafka refuses the log and Kafka's message, if Kafka refuses it;
- `byteExact`: true if encoding the log again must give the same bytes. Under a codec it is false: only the decompressed
  bytes must be the same.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from kfbench.errors import InvalidConfig
from kfbench.shipped import DATASETS

GOLDEN: Final = DATASETS / "golden"
Sidecar = Mapping[str, Any]  # JSON under Kafka's names


# What a sidecar must have. Other fields of a batch or record are compared if they are there.
class _Refusal(msgspec.Struct):
    batch: int
    message: Any


class _BatchPlace(msgspec.Struct):
    position: int
    size: int
    magic: int


class _Record(msgspec.Struct):
    headers: list[tuple[Any, Any]] = []


class _BatchRead(_BatchPlace):
    compression: str
    records: list[_Record]


class _Sidecar(msgspec.Struct):
    sha256: str
    error: _Refusal | None
    byteExact: bool  # noqa: N815 - Kafka's name
    validBytes: int  # noqa: N815
    trailingBytes: int  # noqa: N815
    batches: list[_BatchPlace]


class GoldenVector(NamedTuple):
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


def read_vector(folder: Path, name: str) -> GoldenVector:
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
    try:
        refusal = msgspec.convert(sidecar, _Sidecar).error
        msgspec.convert(sidecar["batches"][: refusal.batch if refusal else None], list[_BatchRead])  # Kafka read these
    except msgspec.ValidationError as error:
        raise InvalidConfig(f"{file}: {error}") from None
    return GoldenVector(data, sidecar)
