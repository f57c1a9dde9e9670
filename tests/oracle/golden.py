"""Write the golden vectors with Apache Kafka's own classes: `make golden`.

A vector is a log (NAME.bin) and a JSON file next to it (NAME.json, its sidecar). The sidecar has the spec of the bytes
and how Kafka reads them.
"""

import json
import sys
from pathlib import Path
from typing import Any

from tests.oracle import hand
from tests.oracle.cases import Vector, expand, vectors
from tests.oracle.client import Kafka, Spec
from tools import jvm

GOLDEN = Path(__file__).parents[2] / "datasets" / "golden"
BROKER_STEPS = ("stamp", "convert", "compact", "validate")
BROKER_CATEGORIES = ("downconvert", "compaction", "validate")
"""Categories whose last step is the broker's. Their sidecars hold its input."""


def written(kafka: Kafka, vector: Vector) -> tuple[bytes, Spec]:
    """Return the bytes of a vector and Kafka's notes. There are no bytes if Kafka's broker refuses."""
    data, notes = kafka.write(*map(_expanded, vector.batches)), dict[str, Any]()
    for step in vector.steps:
        if step["op"] in BROKER_STEPS:
            options = {name: step[name] for name in step if name != "op"}
            if vector.category in BROKER_CATEGORIES:
                notes = {"source": data.hex()}
            data, noted = kafka.change(step["op"], data, **options)
            notes |= noted
        else:
            data = hand.applied(data, step)
    return data, notes


def _expanded(batch: Spec) -> Spec:
    records = [
        record
        | {name: expand(record[name]) for name in ("key", "value")}
        | {"headers": [[name, expand(content)] for name, content in record.get("headers", ())]}
        for record in batch.get("records", ())
    ]
    return batch | {"records": records}


def sidecar(kafka: Kafka, vector: Vector) -> tuple[bytes, Spec]:
    data, notes = written(kafka, vector)
    if notes.get("refused", {}).get("error", "") != vector.declined:
        raise SystemExit(f"{vector.name}: Kafka's broker says {notes.get('refused')}, not {vector.declined}")
    seen = kafka.read(data)
    if (seen["error"] is not None) != vector.refused:
        raise SystemExit(f"{vector.name}: Kafka's reader says {seen['error']}")
    described: Spec = {"name": vector.name, "category": vector.category}
    if vector.note:
        described["note"] = vector.note
    described["byteExact"] = all(batch.get("compression", "none") == "none" for batch in seen["batches"])
    spec = {"batches": vector.batches} | ({"steps": vector.steps} if vector.steps else {})
    return data, described | notes | {"spec": spec} | seen


def text(described: Spec) -> str:
    """Format a sidecar as JSON with one line per batch and per record."""
    lines = [f"{compact(name)}:{compact(described[name])}" for name in described if name != "batches"]
    batches = []
    for batch in described["batches"]:
        row = compact({name: batch[name] for name in batch if name != "records"})
        records = ",\n  ".join(map(compact, batch.get("records", ())))
        batches.append(f'{row[:-1]},"records":[\n  {records}]}}' if records else compact(batch))
    return "{" + ",\n".join(lines) + ',\n"batches":[\n ' + ",\n ".join(batches) + "]}\n"


def compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def write(kafka: Kafka, folder: Path) -> int:
    """Write all vectors and their index to `folder`. Return the number of vectors."""
    for old in [*folder.glob("*.bin"), *folder.glob("*.json")]:
        old.unlink()
    index = []
    for vector in vectors():
        data, described = sidecar(kafka, vector)
        (folder / f"{vector.name}.bin").write_bytes(data)
        (folder / f"{vector.name}.json").write_text(text(described), encoding="utf-8")
        names = ("name", "category", "note", "size", "sha256", "batchCount", "recordCount", "byteExact")
        entry = {name: described[name] for name in names if name in described}
        if "refused" in described:
            entry["refused"] = described["refused"]["error"]
        index.append(entry | {"error": described["error"] and described["error"]["class"]})
    (folder / "index.json").write_text("[\n" + ",\n".join(map(compact, index)) + "\n]\n", encoding="utf-8")
    return len(index)


def main() -> None:
    GOLDEN.mkdir(parents=True, exist_ok=True)
    try:
        kafka = Kafka()
    except jvm.ToolError as error:
        raise SystemExit(f"make golden: {error}") from None
    with kafka:
        count = write(kafka, GOLDEN)
    total = sum(path.stat().st_size for path in GOLDEN.iterdir())
    sys.stderr.write(f"{count} vectors, {total:,} bytes in {GOLDEN}\n")


if __name__ == "__main__":
    main()
