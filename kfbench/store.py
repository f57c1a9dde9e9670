"""Runs on disk: `measurements/*.parquet` and `manifest.json`, written once and never overwritten.

A run says `running` in its manifest until everything is there; the manifest is replaced in one step at the end. A run
that was interrupted therefore says so, and nothing reports on it; `resume_run` continues it. Each part of the
measurements is there in whole or not at all. The checksums of its pages tell what became of its values since; what
became of its footer, its schema does.

    part-00007.parquet       rows
    passing-00008.parquet    rows of errors that another try may not have: `resume_run` drops them
    part-00009.damaged       a part that `resume_run` could not read
"""

import errno
import fcntl
import json
import os
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from kfbench.errors import RunError
from kfbench.measure.schema import IDENTITY, SCHEMA, SCHEMA_VERSION

if TYPE_CHECKING:
    import pandas as pd

MANIFEST: Final = "manifest.json"
MEASUREMENTS: Final = "measurements"
LOCK: Final = "lock"  # held by the process that writes the run; the kernel lets it go when that process dies
RUNNING, COMPLETE = "running", "complete"
PART, PASSING = "part-", "passing-"
# A run is continued by the sweep that began it: what must be the same of its facts, and how a user calls it.
SAME: Final = {
    "profile_text": "the text of the profile",
    "seed": "the seed",
    "filter": "the filter",
    "cell_budget_s": "the time budget of a cell",
    "kfbench": "kfbench",
    "code": "the code of kfbench",  # and not its revision: that of a page of documentation is another one, too
    "libraries": "the libraries",
    "codecs": "the codecs' libraries",
}


class _Grid(msgspec.Struct):
    name: str
    title: str
    analysis: str


class _Environment(msgspec.Struct):
    packages: dict[str, str] = {}
    git_revision: str | None = None


class _Check(msgspec.Struct):
    name: str
    seen: float
    limit: float
    at_least: bool
    passed: bool
    goal: float | None = None
    met: bool | None = None


class _Noise(msgspec.Struct):
    noisy: bool
    seen: list[str]
    hosts: dict[str, list[_Check]]


class _Manifest(msgspec.Struct):
    """What a report reads of a manifest; there is more in it."""

    started: datetime
    profile: str
    command: str
    environment: _Environment
    grids: list[_Grid]
    rows: int
    analysis: str = ""
    noise: _Noise | None = None


@dataclass(frozen=True, kw_only=True)
class Run:
    """A complete run, or the copy of one in a published report."""

    path: Path
    manifest: Mapping[str, Any]

    @cached_property
    def table(self) -> pa.Table:
        """All rows, kfbench.measure.schema.SCHEMA, in a fixed order."""
        parts = _parts(self.path)
        schemas = [_schema(part) for part in parts]
        for part, schema in zip(parts, schemas, strict=True):
            if schema.names != schemas[0].names:
                raise RunError(f"{part}: its columns are not those of {parts[0].name}")
        table = pa.concat_tables([_read(part) for part in parts])
        if len(table) != self.manifest["rows"]:
            raise RunError(f"{self.path}: measurements: {len(table)} rows, {MANIFEST} says {self.manifest['rows']}")
        return table.sort_by([(name, "ascending") for name in IDENTITY])

    @cached_property
    def columns(self) -> frozenset[str]:
        """What its files hold; the other columns of the table are younger than the run, and null."""
        return frozenset(_schema(_parts(self.path)[0]).names)

    def measurements(self) -> "pd.DataFrame":
        """All rows as a pandas frame. level is Int32; other integers that some rows lack are float64 with NaN."""
        frame: pd.DataFrame = self.table.to_pandas()
        return frame.astype({"level": "Int32"})


class RunWriter:
    """A run that is being written; `create_run` or `resume_run` makes one, `complete` ends it.

    A context manager: at its end another process may write the run. found: the rows that were there when it was
    resumed; damaged: the parts that could not be read, as they are called now; counts: rows by status.
    """

    def __init__(
        self, path: Path, manifest: Mapping[str, Any], lock: int, found: pa.Table, damaged: list[Path]
    ) -> None:
        self.path = path
        self.found = found
        self.damaged = damaged
        self.counts: Counter[str] = Counter()
        self.hosts: set[str] = set()
        self._manifest: dict[str, Any] = dict(manifest)
        self._lock: int | None = lock
        self._keys: set[int] = set()
        names = [part.stem.rpartition("-")[2] for part in (path / MEASUREMENTS).iterdir()]
        self._parts = 1 + max((int(name) for name in names if name.isdecimal()), default=-1)
        self._started = time.monotonic()
        self._count(found, path)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    @property
    def manifest(self) -> Mapping[str, Any]:
        """As it is on disk while the run is being written."""
        return self._manifest

    def note(self, facts: Mapping[str, Any]) -> None:
        """`facts` join the manifest of the unfinished run: a session that dies has said them. Raises RunError where it
        cannot be written."""
        self._manifest |= facts
        with self._writing(self.path / MANIFEST) as beside:
            beside.write_text(_json(self._manifest), encoding="utf-8")

    def add(self, rows: pa.Table, *, passing: bool = False) -> None:
        """One part of the measurements, in whole or not at all; none where there are no rows. passing: errors of a busy
        moment, which are no rows of a run that is resumed. Raises RunError for a row that the run has already, and
        where it cannot be written."""
        if not rows.num_rows:
            return
        part = self.path / MEASUREMENTS / f"{PASSING if passing else PART}{self._parts:05d}.parquet"
        rows = rows.cast(SCHEMA)
        self._count(rows, part)
        with self._writing(part) as beside:
            pq.write_table(rows, beside, compression="zstd", write_page_checksum=True)
        self._parts += 1

    def complete(self, facts: Mapping[str, Any]) -> Run:
        """End the run: `facts` join the manifest, which then says complete. Raises RunError where it cannot be
        written."""
        facts = {**facts, "rows": self.counts.total(), "duration_s": round(time.monotonic() - self._started, 1)}
        manifest = {**self._manifest, **facts, "state": COMPLETE, "finished": _now()}
        with self._writing(self.path / MANIFEST) as beside:
            beside.write_text(_json(manifest), encoding="utf-8")
        with suppress(OSError):
            (self.path / LOCK).unlink()
        self.__exit__()
        return Run(path=self.path, manifest=manifest)

    def _count(self, rows: pa.Table, part: Path) -> None:
        keys = [hash(repr(key)) for key in zip(*(rows[name].to_pylist() for name in IDENTITY), strict=True)]
        if len(set(keys)) < len(keys) or not self._keys.isdisjoint(keys):
            raise RunError(f"{part}: a row is there already: the run would have it twice")
        self._keys.update(keys)
        self.counts.update(rows["status"].to_pylist())
        self.hosts.update(host for host in rows["host"].to_pylist() if host is not None)

    @contextmanager
    def _writing(self, path: Path) -> Iterator[Path]:
        """A file beside the one that is wanted, which takes its place."""
        beside = path.with_suffix(".tmp")
        try:
            yield beside
            _settle(beside, path)
        except OSError as error:
            with suppress(OSError):
                beside.unlink()
            why = os.strerror(error.errno) if error.errno else error
            raise RunError(f"{path}: cannot be written: {why}; --resume {self.path} continues the run") from None


def check_place(out: Path) -> None:
    """Raises RunError where it is plain that no run can be written under `out`; nothing is touched. `create_run` finds
    out the rest, when everything else is there."""
    place = runs = out / "runs"
    while not place.exists() and place != place.parent:
        place = place.parent
    if not place.is_dir():
        why = errno.ENOTDIR
    elif os.statvfs(place).f_flag & os.ST_RDONLY:
        why = errno.EROFS
    elif not os.access(place, os.W_OK | os.X_OK):
        why = errno.EACCES
    else:
        return
    raise RunError(f"{runs}: no run can be written here: {os.strerror(why)}")


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
        lock = os.open(path / LOCK, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666)
        fcntl.flock(lock, fcntl.LOCK_EX)
        own = {"schema_version": SCHEMA_VERSION, "state": RUNNING, "started": started}
        manifest = {**own, **facts, **own}  # first, and whatever the facts say: they may be those of another run
        _write_json(path / MANIFEST, manifest)
    except OSError as error:
        raise RunError(f"{runs}: no run can be written here: {error.strerror}") from None
    return RunWriter(path, manifest, lock, SCHEMA.empty_table(), [])


def resume_run(path: str | Path, facts: Mapping[str, Any], again: Mapping[str, Any]) -> RunWriter:
    """A run that was interrupted, to be continued by a sweep of the same facts.

    again: what its manifest says of this continuation, one item more of `resumed`. Parts that cannot be read are set
    aside; files that were half written go, and so do errors of a busy moment. Raises RunError, and touches nothing, for
    a run that is complete, of another schema, of another sweep (see SAME), or still being written.
    """
    path = Path(path)
    check_resumable(path, facts)
    try:
        lock = os.open(path / LOCK, os.O_RDWR)
    except OSError as error:
        raise RunError(f"{path / LOCK}: cannot be opened: {error.strerror}") from None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        manifest = check_resumable(path, facts)  # it may have been completed since
        found, damaged = _set_aside(path)
        manifest["resumed"] = [*manifest.get("resumed", []), {"at": _now(), **again}]
        _write_json(path / MANIFEST, manifest)
        return RunWriter(path, manifest, lock, found, damaged)
    except BaseException as error:
        os.close(lock)
        if isinstance(error, BlockingIOError):
            raise RunError(f"{path}: another process is writing this run") from None
        if isinstance(error, OSError):
            raise RunError(f"{error.filename or path}: cannot be written: {error.strerror}") from None
        raise


def check_resumable(path: Path, facts: Mapping[str, Any]) -> dict[str, Any]:
    """The manifest of a run that a sweep of these facts may continue. Raises RunError for any other."""
    file = path / MANIFEST
    manifest = _read_manifest(path)
    if manifest.get("state") != RUNNING:
        raise RunError(f"{file}: state: {manifest.get('state')}; only a run that was interrupted can be resumed")
    for key, name in SAME.items():
        if told := _differing(name, manifest.get(key), facts.get(key)):
            raise RunError(f"{file}: {key}: {told}; a run is resumed by the sweep that began it")
    return manifest


def _differing(name: str, before: Any, now: Any) -> str:
    """What is not the same, in words; empty where all is."""
    if before == now:
        return ""
    if isinstance(before, dict) and isinstance(now, dict):
        each = {key: (before.get(key), now.get(key)) for key in before | now if before.get(key) != now.get(key)}
        return f"{name} are not the same: {', '.join(f'{key} {_then_now(*pair)}' for key, pair in each.items())}"
    if isinstance(before, str) and isinstance(now, str) and "\n" in before + now:
        lines = zip_longest(before.splitlines(), now.splitlines())
        for number, (old, new) in enumerate(lines, 1):
            if old != new:
                return f"{name} is not the same: line {number}: {_then_now(old, new)}"
    return f"{name} is not the same: {_then_now(before, now)}"


def _then_now(before: Any, now: Any) -> str:
    return f"{_shown(before)} then, {_shown(now)} now"


def sound_rows(path: Path) -> pa.Table:
    """The rows of an unfinished run that `resume_run` would find; nothing is touched."""
    return _sound(path)[0]


def _sound(path: Path) -> tuple[pa.Table, list[Path]]:
    """Rows of the parts that can be read, and the parts that cannot."""
    tables, damaged = [SCHEMA.empty_table()], []
    for part in sorted((path / MEASUREMENTS).glob(f"{PART}*.parquet")):
        try:
            if _schema(part).names == SCHEMA.names:  # it is of our code
                tables.append(_read(part))
            else:
                damaged.append(part)
        except RunError:
            damaged.append(part)
    return pa.concat_tables(tables), damaged


def _set_aside(path: Path) -> tuple[pa.Table, list[Path]]:
    found, parts = _sound(path)
    damaged = [part.rename(part.with_suffix(".damaged")) for part in parts]
    measurements = path / MEASUREMENTS
    for each in (*path.glob("*.tmp"), *measurements.glob("*.tmp"), *measurements.glob(f"{PASSING}*.parquet")):
        each.unlink()
    return found, damaged


def open_run(path: str | Path) -> Run:
    """A run, or a published report's copy of one. Raises RunError unless it is complete and of our schema."""
    path = Path(path)
    file = path / MANIFEST
    manifest = _read_manifest(path)
    if manifest.get("state") != COMPLETE:
        raise RunError(f"{file}: state: {manifest.get('state')}; the run was interrupted and is not reported on")
    try:
        msgspec.convert(manifest, _Manifest)
    except msgspec.ValidationError as error:
        raise RunError(f"{file}: {error}") from None
    if not _parts(path):
        raise RunError(f"{path}: measurements: missing")
    return Run(path=path, manifest=manifest)


def _read_manifest(path: Path) -> dict[str, Any]:
    """Of a run of our schema, in whatever state. Raises RunError for anything else."""
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
        raise RunError(f"{file}: schema_version: missing, so this is no run of kfbench")
    if manifest["schema_version"] != SCHEMA_VERSION:
        raise RunError(
            f"{file}: schema_version: {manifest['schema_version']}, this kfbench reads {SCHEMA_VERSION}; "
            "measure again, or use the kfbench that wrote it"
        )
    return manifest


def _schema(part: Path) -> pa.Schema:
    """Raises RunError for a part whose columns are not ours; columns that are younger than a run may be missing."""
    try:
        there = pq.read_schema(part)
    except (OSError, ValueError, pa.ArrowException) as error:  # ValueError: a name that is no text any more
        raise RunError(f"{part}: cannot be read: {_one_line(error)}") from None
    for field in there:
        at = SCHEMA.get_field_index(field.name)
        if at < 0 or not field.equals(SCHEMA.field(at)):
            raise RunError(f"{part}: column {field.name}: not of schema {SCHEMA_VERSION}")
    if missing := [field.name for field in SCHEMA if not field.nullable and field.name not in there.names]:
        raise RunError(f"{part}: no column {', '.join(missing)}")
    return there


def _read(part: Path) -> pa.Table:
    """Raises RunError for a part whose values are not as they were written; its columns are for _schema to check."""
    try:
        return pq.read_table(part, schema=SCHEMA, page_checksum_verification=True)
    except (OSError, ValueError, pa.ArrowException) as error:
        raise RunError(f"{part}: cannot be read: {_one_line(error)}") from None


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())


def _shown(value: object) -> str:
    if isinstance(value, list):
        value = " and ".join(map(str, value)) or None
    return "none" if value is None else str(value)


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
    beside.write_text(_json(content), encoding="utf-8")
    _settle(beside, path)


def _json(content: Mapping[str, Any]) -> str:
    return json.dumps(content, indent=2, ensure_ascii=False) + "\n"


def _settle(beside: Path, path: Path) -> None:
    """Rename what is on disk: after a power cut there is the old file or the new one, never half of it."""
    with beside.open("rb") as file:
        os.fsync(file.fileno())
    beside.replace(path)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
