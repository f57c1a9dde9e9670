"""Segments that real brokers wrote, and what Kafka's readers found in them (datasets/recorded)."""

import hashlib
import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[1] / "datasets" / "recorded"
INDEX: dict[str, dict[str, Any]] = {
    entry["file"]: entry for entry in json.loads((FOLDER / "index.json").read_text(encoding="utf-8"))
}
NAMES = sorted(INDEX)


@dataclass(frozen=True, kw_only=True)
class Facts:
    """The recorded facts about a segment: columns by name, one item per batch or per record."""

    batches: dict[str, list[Any]]
    records: dict[str, list[Any]]

    @property
    def positions(self) -> list[int]:
        """Return the byte position of each batch, and the end of the last one."""
        return [*self.batches["position"], self.batches["position"][-1] + self.batches["size_bytes"][-1]]


@cache
def facts(name: str) -> Facts:
    tables = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    batches, records = (_columns(tables[kind]) for kind in ("batches", "records"))
    return Facts(batches=batches, records=records)


def _columns(table: dict[str, Any]) -> dict[str, list[Any]]:
    return {name: [row[i] for row in table["rows"]] for i, name in enumerate(table["columns"])}


def content_hash(data: bytes | None) -> str | None:
    """Return the first 8 bytes of SHA-256 in hexadecimal, as Recorder.java writes them."""
    return None if data is None else hashlib.sha256(data).hexdigest()[:16]
