"""Write a golden vector of an empty log, with the sidecar (JSON file next to it) that Kafka's reader gives."""

import hashlib
import json
from pathlib import Path
from typing import Any


def write_vectors(folder: Path, **changed: Any) -> Path:
    """Write a folder of golden vectors that has only an empty log.

    changed: replaced items of the sidecar, to make it wrong.
    """
    folder.mkdir()
    sha256 = hashlib.sha256(b"").hexdigest()
    sidecar: dict[str, Any] = {"sha256": sha256, "error": None, "byteExact": True, "validBytes": 0, "trailingBytes": 0}
    sidecar |= {"batches": []} | changed
    (folder / "index.json").write_text(json.dumps([{"name": "nothing", "category": "empty", "sha256": sha256}]))
    (folder / "nothing.bin").write_bytes(b"")
    (folder / "nothing.json").write_text(json.dumps(sidecar))
    return folder
