"""The manifest of a run (`manifest.json`).

It has the facts that reports show, and those that a resuming sweep must share.
"""

import json
from collections.abc import Mapping
from datetime import datetime
from itertools import zip_longest
from pathlib import Path
from typing import Any, Final

import msgspec

from kfbench.errors import RunError
from kfbench.measure.schema import SCHEMA_VERSION

MANIFEST: Final = "manifest.json"
RUNNING, COMPLETE = "running", "complete"
# Only the sweep that began a run may resume it: these facts must be equal. `code` is the code of kfbench, not the git
# revision, because a change of documentation changes the revision.
SAME: Final = ("profile_text", "seed", "filter", "cell_budget_s", "kfbench", "code", "libraries", "codecs")


class _Grid(msgspec.Struct):
    name: str
    title: str
    analysis: str


class _Environment(msgspec.Struct):
    packages: dict[str, str] = {}
    git_revision: str | None = None


class _NoiseCheckFacts(msgspec.Struct):
    name: str
    seen: float
    limit: float
    at_least: bool
    passed: bool
    goal: float | None = None  # older runs have neither goal nor met
    met: bool | None = None


class _Noise(msgspec.Struct):
    noisy: bool
    seen: list[str]
    hosts: dict[str, list[_NoiseCheckFacts]]


class _Manifest(msgspec.Struct):
    """The keys of a manifest that reports read, with their types. `read_complete` checks them."""

    started: datetime
    profile: str
    command: str
    environment: _Environment
    grids: list[_Grid]
    rows: int
    analysis: str = ""
    noise: _Noise | None = None


def read_manifest(path: Path) -> dict[str, Any]:
    """Return the manifest of a run in any state.

    Raises RunError if the folder is no run, or has another schema version.
    """
    file = path / MANIFEST
    try:
        manifest = json.loads(file.read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        raise RunError(f"{path}: not a run: it has no {MANIFEST}") from None
    except OSError as error:
        raise RunError(f"{file}: cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise RunError(f"{file}: cannot be read: {error}") from None
    if not isinstance(manifest, dict) or "schema_version" not in manifest:
        raise RunError(f"{file}: schema_version: missing, so this is not a run of kfbench")
    if manifest["schema_version"] != SCHEMA_VERSION:
        raise RunError(
            f"{file}: schema_version: {manifest['schema_version']}, this kfbench reads {SCHEMA_VERSION}; "
            "measure again, or use the kfbench that wrote it"
        )
    return manifest


def read_complete(path: Path) -> dict[str, Any]:
    """Return the manifest of a complete run. Raises RunError for another state, or a key of a wrong type."""
    file, manifest = path / MANIFEST, read_manifest(path)
    if manifest.get("state") != COMPLETE:
        raise RunError(
            f"{file}: state: {manifest.get('state')}; the run was interrupted, and only complete runs can be read"
        )
    try:
        msgspec.convert(manifest, _Manifest)
    except msgspec.ValidationError as error:
        raise RunError(f"{file}: {error}") from None
    return manifest


def check_resumable(path: Path, facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return the manifest of an interrupted run if a sweep with these facts may resume it. Otherwise raise RunError."""
    file, manifest = path / MANIFEST, read_manifest(path)
    if manifest.get("state") != RUNNING:
        raise RunError(f"{file}: state: {manifest.get('state')}; only a run that was interrupted can be resumed")
    for key in SAME:
        if (before := manifest.get(key)) != (now := facts.get(key)):
            raise RunError(f"{file}: {key}: {_difference(before, now)}; only the sweep that began a run can resume it")
    return manifest


def to_json(content: Mapping[str, Any]) -> str:
    return json.dumps(content, indent=2, ensure_ascii=False) + "\n"


def _difference(before: Any, now: Any) -> str:
    """Return both values of a fact in words. Of dictionaries and texts, return only the first entries that differ."""
    if isinstance(before, dict) and isinstance(now, dict):
        keys = [key for key in before | now if before.get(key) != now.get(key)]
        return ", ".join(f"{key} {_difference(before.get(key), now.get(key))}" for key in keys)
    place = ""
    if isinstance(before, str) and isinstance(now, str) and "\n" in before + now:
        lines = enumerate(zip_longest(before.split("\n"), now.split("\n")), 1)
        place, before, now = next((f"line {n}: ", *both) for n, both in lines if both[0] != both[1])
    return f"{place}{_fact_words(before)} then, {_fact_words(now)} now"


def _fact_words(value: object) -> str:
    if isinstance(value, list):
        value = " and ".join(map(str, value)) or None
    return "none" if value is None else str(value)
