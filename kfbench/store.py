"""Runs on disk: `measurements/*.parquet` and `manifest.json`, written once and never overwritten.

A run says `running` in its manifest until everything is there; the manifest is replaced in one step at the end. A run
that was interrupted therefore says so, and nothing reports on it.
"""

import json
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from kfbench.errors import RunError
from kfbench.measure.schema import SCHEMA, SCHEMA_VERSION

if TYPE_CHECKING:
    import pandas as pd

MANIFEST: Final = "manifest.json"
MEASUREMENTS: Final = "measurements"
RUNNING, COMPLETE = "running", "complete"
# Rows come back in this order, whatever order they were measured in.
ORDER: Final = ("kind", "grid", "cell_id", "codec", "level", "operation", "to_format", "format", "arm")


class _Grid(msgspec.Struct):
    name: str
    title: str
    analysis: str


class _Environment(msgspec.Struct):
    packages: dict[str, str] = {}
    git_revision: str | None = None


class _Manifest(msgspec.Struct):
    """What a report reads of a manifest; there is more in it."""

    started: datetime
    profile: str
    command: str
    environment: _Environment
    grids: list[_Grid]
    rows: int
    analysis: str = ""


@dataclass(frozen=True, kw_only=True)
class Run:
    """A complete run, or the copy of one in a published report."""

    path: Path
    manifest: Mapping[str, Any]

    @cached_property
    def table(self) -> pa.Table:
        """All rows, kfbench.measure.schema.SCHEMA, in a fixed order."""
        try:
            table = pa.concat_tables([pq.read_table(part, schema=SCHEMA) for part in _parts(self.path)])
        except (OSError, pa.ArrowException) as error:
            raise RunError(f"{self.path}: measurements cannot be read: {error}") from None
        if len(table) != self.manifest["rows"]:
            raise RunError(f"{self.path}: measurements: {len(table)} rows, {MANIFEST} says {self.manifest['rows']}")
        return table.sort_by([(name, "ascending") for name in ORDER])

    def measurements(self) -> "pd.DataFrame":
        """All rows as a pandas frame. level is Int32; other integers that some rows lack are float64 with NaN."""
        frame: pd.DataFrame = self.table.to_pandas()
        return frame.astype({"level": "Int32"})


class RunWriter:
    """A run that is being written; `create_run` makes one, `complete` ends it."""

    def __init__(self, path: Path, manifest: Mapping[str, Any]) -> None:
        self.path = path
        self._manifest: dict[str, Any] = dict(manifest)
        self._parts = self._rows = 0
        self._started = time.monotonic()

    def add(self, rows: pa.Table) -> None:
        """One part of the measurements, in whole or not at all."""
        part = self.path / MEASUREMENTS / f"part-{self._parts:05d}.parquet"
        beside = part.with_suffix(".tmp")
        pq.write_table(rows.cast(SCHEMA), beside, compression="zstd")
        _settle(beside, part)
        self._parts += 1
        self._rows += len(rows)

    def complete(self, facts: Mapping[str, Any]) -> Run:
        """End the run: `facts` join the manifest, which then says complete."""
        facts = {**facts, "rows": self._rows, "duration_s": round(time.monotonic() - self._started, 1)}
        manifest = {**self._manifest, **facts, "state": COMPLETE, "finished": _now()}
        _write_json(self.path / MANIFEST, manifest)
        return Run(path=self.path, manifest=manifest)


def create_run(out: Path, facts: Mapping[str, Any]) -> RunWriter:
    """A new run OUT/runs/<date>.<n>/, the first n that is free; `facts` go into its manifest.

    Raises RunError when the folder cannot be written.
    """
    runs = out / "runs"
    started = _now()
    try:
        runs.mkdir(parents=True, exist_ok=True)
        path = _new_folder(runs, started[:10])
        (path / MEASUREMENTS).mkdir()
        manifest = {"schema_version": SCHEMA_VERSION, "state": RUNNING, "started": started, **facts}
        _write_json(path / MANIFEST, manifest)
    except OSError as error:
        raise RunError(f"{runs}: no run can be written here: {error.strerror}") from None
    return RunWriter(path, manifest)


def open_run(path: str | Path) -> Run:
    """A run, or a published report's copy of one. Raises RunError unless it is complete and of our schema."""
    path = Path(path)
    file = path / MANIFEST
    try:
        manifest = json.loads(file.read_bytes())
    except FileNotFoundError:
        raise RunError(f"{path}: not a run: it has no {MANIFEST}") from None
    except (OSError, ValueError) as error:
        raise RunError(f"{file}: cannot be read: {error}") from None
    if not isinstance(manifest, dict) or "schema_version" not in manifest:
        raise RunError(f"{file}: schema_version: missing, so this is no run of kfbench")
    if manifest["schema_version"] != SCHEMA_VERSION:
        raise RunError(
            f"{file}: schema_version: {manifest['schema_version']}, this kfbench reads {SCHEMA_VERSION}; "
            "measure again, or use the kfbench that wrote it"
        )
    if manifest.get("state") != COMPLETE:
        raise RunError(f"{file}: state: {manifest.get('state')}; the run was interrupted and is not reported on")
    try:
        msgspec.convert(manifest, _Manifest)
    except msgspec.ValidationError as error:
        raise RunError(f"{file}: {error}") from None
    if not _parts(path):
        raise RunError(f"{path}: measurements: missing")
    return Run(path=path, manifest=manifest)


def _parts(path: Path) -> list[Path]:
    """The parts of a run, or the one file of a report."""
    one = path / f"{MEASUREMENTS}.parquet"
    return [one] if one.is_file() else sorted((path / MEASUREMENTS).glob("*.parquet"))


def _new_folder(runs: Path, date: str) -> Path:
    """mkdir decides: two processes that start at once get two runs."""
    n = 1
    while True:
        path = runs / f"{date}.{n}"
        try:
            path.mkdir()
        except FileExistsError:
            n += 1
        else:
            return path


def _write_json(path: Path, content: Mapping[str, Any]) -> None:
    beside = path.with_suffix(".tmp")
    beside.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    _settle(beside, path)


def _settle(beside: Path, path: Path) -> None:
    """Rename what is on disk: after a power cut there is the old file or the new one, never half of it."""
    with beside.open("rb") as file:
        os.fsync(file.fileno())
    beside.replace(path)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
