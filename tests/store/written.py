"""Small runs on disk: complete ones, and one interrupted after two part files."""

import json
from pathlib import Path
from typing import Any

from kfbench.measure.schema import table
from kfbench.store import create_run

FACTS = {
    "profile": "tiny", "command": "kfbench sweep tiny", "seed": 0, "environment": {"packages": {"kfbench": "0"}},
    "grids": [{"name": "g", "title": "t", "analysis": "a"}], "profile_text": "t", "git_revision": "r", "filter": [],
    "codecs": {"zstd": "1", "gzip": "1"}, "cell_budget_s": 120.0, "kfbench": "0.1.0", "code": "c0de",
    "libraries": {"python": "3.12", "numpy": "2.1", "numba": "0.60"},
}  # fmt: skip


def row(**columns: Any) -> dict[str, Any]:
    common = {"kind": "bytes", "cell_id": "c", "status": "ok", "grid": "g", "workload": "grid", "seed": 1}
    return common | {"format": "v2", "codec": "none"} | columns


def finished(out: Path) -> Path:
    writer = create_run(out, FACTS)
    writer.add(table([row(format="v3", size_bytes=2), row(codec="zstd", level=9, size_bytes=5)]))
    writer.add(table([row(size_bytes=1), row(codec="zstd", level=3, size_bytes=4)]))
    return writer.complete({"counts": {"rows": 4}}).path


def interrupted(out: Path) -> Path:
    """Return the path of a run with two part files, whose process has ended before the run was complete."""
    with create_run(out, FACTS) as writer:
        writer.add(table([row(format="v3", size_bytes=2), row(codec="zstd", level=9, size_bytes=5)]))
        writer.add(table([row(size_bytes=1)]))
    return writer.path


def files(path: Path) -> dict[str, bytes]:
    return {each.relative_to(path).as_posix(): each.read_bytes() for each in path.rglob("*") if each.is_file()}


def rewrite(path: Path, **changes: Any) -> None:
    file = path / "manifest.json"
    manifest = json.loads(file.read_text()) | changes
    file.write_text(json.dumps({key: value for key, value in manifest.items() if value is not None}))
