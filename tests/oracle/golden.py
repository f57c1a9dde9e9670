"""Write the golden vectors with Apache Kafka's own classes: `make golden`.

A vector is a log (NAME.bin) and a JSON file next to it (NAME.json, its sidecar). The sidecar has the spec of the bytes
and how Kafka reads them. To add a vector, write a sidecar with only its name, its `spec` and perhaps a `note`. If Kafka
must refuse it, add `"error": true` (the reader) or `"refused": true` (the broker).

`spec.batches` are what Kafka's writer takes (`Writer.java`). A key or value is a text, {"hex": ...}, {"repeat": text,
"times": n}, {"json": bytes, "seed": n} or null. `spec.steps` then change the bytes. They are a broker's (BROKER_STEPS)
or done by hand (`hand.py`).
"""

import json
import random
import sys
from pathlib import Path
from typing import Any

from tests.oracle import hand
from tests.oracle.client import Kafka, Spec
from tools import jvm

GOLDEN = Path(__file__).parents[2] / "datasets" / "golden"
BROKER_STEPS = ("stamp", "convert", "compact", "validate")
BROKER_CATEGORIES = ("downconvert", "compaction", "validate")
"""Categories whose last step is the broker's. Their sidecars hold its input."""


def vectors() -> list[Spec]:
    """Return the committed sidecars in the order of the index, then new ones."""
    index = json.loads((GOLDEN / "index.json").read_text(encoding="utf-8"))
    names = [entry["name"] for entry in index]
    names += sorted({path.stem for path in GOLDEN.glob("*.json")} - {"index", *names})
    return [json.loads((GOLDEN / f"{name}.json").read_text(encoding="utf-8")) for name in names]


def category_of(vector: Spec) -> str:
    return str(vector["name"]).partition("_")[0]


def written(kafka: Kafka, vector: Spec) -> tuple[bytes, Spec]:
    """Return the bytes of a vector and Kafka's notes. There are no bytes if Kafka's broker refuses."""
    spec = vector["spec"]
    data, notes = kafka.write(*map(_expanded, spec["batches"])), dict[str, Any]()
    for step in spec.get("steps", ()):
        if step["op"] in BROKER_STEPS:
            options = {name: step[name] for name in step if name != "op"}
            if category_of(vector) in BROKER_CATEGORIES:
                notes = {"source": data.hex()}
            data, noted = kafka.change(step["op"], data, **options)
            notes |= noted
        else:
            data = hand.applied(data, step)
    return data, notes


def _expanded(batch: Spec) -> Spec:
    records = [
        record
        | {name: _content(record[name]) for name in ("key", "value")}
        | {"headers": [[name, _content(content)] for name, content in record.get("headers", ())]}
        for record in batch.get("records", ())
    ]
    return batch | {"records": records}


def _content(content: Any) -> str | None:
    """Return a key or value as the hexadecimal that Kafka's side takes."""
    match content:
        case None:
            return None
        case str():
            return content.encode().hex()
        case {"hex": str(digits)}:
            return digits
        case {"repeat": str(text), "times": int(times)}:
            return (text.encode() * times).hex()
        case {"json": int(size), "seed": int(seed)}:  # compresses like a log of events
            draw, text = random.Random(seed), ""
            while len(text) < size:
                event = {"user": f"u-{draw.randrange(10**5):06}", "event": draw.choice(["click", "view", "cart"])}
                text += json.dumps(event | {"ms": draw.randrange(10**4)}) + "\n"
            return text.encode()[:size].hex()
    raise ValueError(content)


def sidecar(kafka: Kafka, vector: Spec) -> tuple[bytes, Spec]:
    data, notes = written(kafka, vector)
    seen = kafka.read(data)
    for name, outcome in (("refused", notes.get("refused")), ("error", seen["error"])):
        if bool(outcome) != bool(vector.get(name)):
            raise SystemExit(f"{vector['name']}: Kafka says {name} {outcome}, the sidecar {vector.get(name)}")
    described = {"name": vector["name"], "category": category_of(vector)}
    described |= {name: vector[name] for name in ("note",) if name in vector}
    described["byteExact"] = all(batch.get("compression", "none") == "none" for batch in seen["batches"])
    return data, described | notes | {"spec": vector["spec"]} | seen


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
    """Write all vectors and their index to `folder`, which may be their own. Return the number of vectors."""
    index = []
    for data, described in [sidecar(kafka, vector) for vector in vectors()]:
        (folder / f"{described['name']}.bin").write_bytes(data)
        (folder / f"{described['name']}.json").write_text(text(described), encoding="utf-8")
        names = ("name", "category", "note", "size", "sha256", "batchCount", "recordCount", "byteExact")
        entry = {name: described[name] for name in names if name in described}
        if "refused" in described:
            entry["refused"] = described["refused"]["error"]
        index.append(entry | {"error": described["error"] and described["error"]["class"]})
    (folder / "index.json").write_text("[\n" + ",\n".join(map(compact, index)) + "\n]\n", encoding="utf-8")
    return len(index)


def main() -> None:
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
