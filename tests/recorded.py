"""The segments that real brokers wrote, and what Kafka's own readers say of them (datasets/recorded)."""

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
    """Columns by name, one item a batch or a record."""

    batches: dict[str, list[Any]]
    records: dict[str, list[Any]]

    @property
    def positions(self) -> list[int]:
        """Where each batch begins, and the end."""
        return [*self.batches["position"], self.batches["position"][-1] + self.batches["size_bytes"][-1]]


@cache
def facts(name: str) -> Facts:
    tables = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    batches, records = (_columns(tables[kind]) for kind in ("batches", "records"))
    return Facts(batches=batches, records=records)


def _columns(table: dict[str, Any]) -> dict[str, list[Any]]:
    return {name: [row[i] for row in table["rows"]] for i, name in enumerate(table["columns"])}


def content_hash(data: bytes | None) -> str | None:
    """As Recorder.java writes it: the first 8 bytes of SHA-256 in hexadecimal."""
    return None if data is None else hashlib.sha256(data).hexdigest()[:16]
