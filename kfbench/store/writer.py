"""Write a benchmark run: create or resume it, add rows, complete it."""

import errno
import os
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, Self

import pyarrow as pa
import pyarrow.parquet as pq
from filelock import BaseFileLock, FileLock, Timeout

from kfbench.errors import RunError
from kfbench.measure.schema import IDENTITY, SCHEMA, SCHEMA_VERSION
from kfbench.store.manifest import COMPLETE, MANIFEST, RUNNING, check_resumable, to_json
from kfbench.store.run import MEASUREMENTS, PART, PASSING, Run, set_damaged_aside

LOCK: Final = "lock"  # the lock file of the writing process; the operating system unlocks it if the process dies


class RunWriter:
    """The writer of one run. `create_run` or `resume_run` returns it, and `complete` ends the run.

    It is a context manager. On exit it releases the lock, so that another process may write the run.

    Args:
        lock: the lock of the run, which this process holds.
        found: the rows that a resumed run already has.
        damaged: the files that could not be read, under their new names.
    """

    def __init__(
        self, path: Path, manifest: Mapping[str, Any], lock: BaseFileLock, found: pa.Table, damaged: list[Path]
    ) -> None:
        self.path = path
        self.found = found
        self.damaged = damaged
        self.counts: Counter[str] = Counter()  # rows by status
        self.hosts: set[str] = set()
        self._manifest: dict[str, Any] = dict(manifest)
        self._lock = lock
        self._keys: set[int] = set()
        numbers = [part.stem.rpartition("-")[2] for part in (path / MEASUREMENTS).iterdir()]
        self._next_part = 1 + max((int(number) for number in numbers if number.isdecimal()), default=-1)
        self._started = time.monotonic()
        self._count(found, path)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._lock.release()

    @property
    def manifest(self) -> Mapping[str, Any]:
        return self._manifest

    def note(self, facts: Mapping[str, Any]) -> None:
        """Add facts to the manifest on disk at once, so that they survive if this process dies. Raises RunError."""
        self._manifest |= facts
        with self._write_errors(self.path / MANIFEST):
            _write_manifest(self.path, self._manifest)

    def add(self, rows: pa.Table, *, passing: bool = False) -> None:
        """Write rows as one new Parquet file, atomically. If there are no rows, write nothing.

        passing: True if the rows are errors of a busy host, which `resume_run` deletes. Raises RunError for a row that
        the run already has, and if the file cannot be written.
        """
        if not rows.num_rows:
            return
        part = self.path / MEASUREMENTS / f"{PASSING if passing else PART}{self._next_part:05d}.parquet"
        rows = rows.cast(SCHEMA)
        self._count(rows, part)
        with self._write_errors(part):
            unfinished = part.with_suffix(".tmp")
            pq.write_table(rows, unfinished, compression="zstd", write_page_checksum=True)
            _sync_and_rename(unfinished, part)
        self._next_part += 1

    def complete(self, facts: Mapping[str, Any]) -> Run:
        """Add `facts` to the manifest, set its state to complete, and release the lock. Raises RunError."""
        facts = {**facts, "rows": self.counts.total(), "duration_s": round(time.monotonic() - self._started, 1)}
        manifest = {**self._manifest, **facts, "state": COMPLETE, "finished": _now()}
        with self._write_errors(self.path / MANIFEST):
            _write_manifest(self.path, manifest)
        with suppress(OSError):
            (self.path / LOCK).unlink()
        self.__exit__()
        return Run(path=self.path, manifest=manifest)

    def _count(self, rows: pa.Table, part: Path) -> None:
        keys = [hash(repr(key)) for key in zip(*(rows[name].to_pylist() for name in IDENTITY), strict=True)]
        if len(set(keys)) < len(keys) or not self._keys.isdisjoint(keys):
            raise RunError(f"{part}: the run already has one of its rows")
        self._keys.update(keys)
        self.counts.update(rows["status"].to_pylist())
        self.hosts.update(host for host in rows["host"].to_pylist() if host is not None)

    @contextmanager
    def _write_errors(self, path: Path) -> Iterator[None]:
        """Turn an error of writing `path` into a RunError, and delete the temporary file."""
        try:
            yield
        except OSError as error:
            with suppress(OSError):
                path.with_suffix(".tmp").unlink()
            why = os.strerror(error.errno) if error.errno else error
            raise RunError(f"{path}: cannot be written: {why}; --resume {self.path} continues the run") from None


def check_place(out: Path) -> None:
    """Raise RunError if no run can be written in the folder `out`. Nothing is created.

    This early check does not find every problem: `create_run` may still fail.
    """
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
    """Create a run in the folder OUT/runs/<date>.<n>/, with the first free n. Write `facts` into its manifest.

    Raises RunError if the folder cannot be written.
    """
    runs = out / "runs"
    started = _now()
    try:
        runs.mkdir(parents=True, exist_ok=True)
        path = _new_folder(runs, started[:10])
        (path / MEASUREMENTS).mkdir()
        lock = FileLock(path / LOCK, blocking=False, thread_local=False, fallback_to_soft=False)
        lock.acquire()
        own = {"schema_version": SCHEMA_VERSION, "state": RUNNING, "started": started}
        manifest = {**own, **facts, **own}  # `own` comes first in the file, and `facts` may be those of another run
        _write_manifest(path, manifest)
    except OSError as error:
        raise RunError(f"{runs}: no run can be written here: {error.strerror}") from None
    return RunWriter(path, manifest, lock, SCHEMA.empty_table(), [])


def resume_run(path: str | Path, facts: Mapping[str, Any], again: Mapping[str, Any]) -> RunWriter:
    """Continue an interrupted run of the same sweep.

    Damaged files are renamed. Half-written files and errors of a busy host are deleted.

    Raises RunError, without any change, for a run that is complete, has another schema version, or is being written.
    Raises it too for a run of another sweep (see SAME in `store.manifest`).

    again: facts about this session. They are appended to the list `resumed` in the manifest.
    """
    path = Path(path)
    check_resumable(path, facts)
    lock = FileLock(path / LOCK, blocking=False, thread_local=False, fallback_to_soft=False)
    try:
        lock.acquire()
    except Timeout:
        raise RunError(f"{path}: another process is writing this run") from None
    except OSError as error:
        raise RunError(f"{path / LOCK}: cannot be opened: {error.strerror}") from None
    try:
        manifest = check_resumable(path, facts)  # another process may have completed the run meanwhile
        rows, damaged = set_damaged_aside(path)
        manifest["resumed"] = [*manifest.get("resumed", []), {"at": _now(), **again}]
        _write_manifest(path, manifest)
        return RunWriter(path, manifest, lock, rows, damaged)
    except BaseException as error:
        lock.release()
        if isinstance(error, OSError):
            raise RunError(f"{error.filename or path}: cannot be written: {error.strerror}") from None
        raise


def _new_folder(runs: Path, date: str) -> Path:
    """Create the first folder <date>.<n> that does not exist yet.

    mkdir is atomic, so two processes that start at the same time get two folders.
    """
    n = 1
    while True:
        path = runs / f"{date}.{n}"
        try:
            path.mkdir()
        except FileExistsError:
            n += 1
        else:
            return path


def _write_manifest(run: Path, manifest: Mapping[str, Any]) -> None:
    path = run / MANIFEST
    unfinished = path.with_suffix(".tmp")
    unfinished.write_text(to_json(manifest), encoding="utf-8")
    _sync_and_rename(unfinished, path)


def _sync_and_rename(unfinished: Path, path: Path) -> None:
    """Flush a file to disk, then rename it to `path`. A power cut leaves the old file or the whole new one."""
    with unfinished.open("rb") as file:
        os.fsync(file.fileno())
    unfinished.replace(path)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
