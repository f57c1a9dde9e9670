"""Write a report as a folder `OUT/<date>.<n>/` that can be read, mailed or committed.

A report that is not for publishing goes to `OUT/unpublished/<date>.<n>/`, which git ignores (docs/publish.md).

Laws (tests/report/test_publish.py):
1. The same run gives the same bytes on every machine with the same versions of the code and of its libraries. A report
  depends on no clock, host or path of the machine. Some contents belong to the version of the code, not to the run:
  times of other implementations, numbers computed from the formats (claims, holes), definitions of classes, and assumed
  traffic and prices. A joined run (`report/data/joined.py`) is the newest one that is shipped or lies next to the run.
2. An existing report is never changed. A new report goes to a new `<n>`, unless a report with the same bytes exists.
3. A half-written report has another name. It is written next to its final place and renamed when it is complete.
4. Unfinished runs and runs of another schema are refused (kfbench.store.open_run).
"""

import json
import shutil
import tempfile
from collections.abc import Mapping
from itertools import count
from pathlib import Path

from kfbench.errors import RunError
from kfbench.report.files import files_of, is_for_publishing, run_date
from kfbench.store import open_run

UNPUBLISHED = "unpublished"


def publish(run: Path, out: Path) -> Path:
    """Write the report of a finished run to a folder under `out`, and return that folder.

    Raises RunError if the run is missing, unfinished or of another schema.
    """
    opened = open_run(run)
    return place(dict(files_of(opened)), out, run_date(opened.manifest))


def place(files: Mapping[str, bytes], out: Path, date: str) -> Path:
    """Write the files to a new folder OUT/<date>.<n>, and return it.

    If an existing folder has exactly these files, return that folder and write nothing. files: path in the folder ->
    bytes.
    """
    out.mkdir(parents=True, exist_ok=True)
    for existing in sorted(out.glob(f"{date}.*"), key=_serial):
        if existing.is_dir() and _same(existing, files):
            return existing
    staging = Path(tempfile.mkdtemp(prefix=f".{date}.", dir=out))
    try:
        for name, data in files.items():
            path = staging / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        staging.chmod(0o755)  # mkdtemp creates it with 0700
        return _claim(staging, out, date)
    except BaseException:
        shutil.rmtree(staging, ignore_errors=True)
        raise


def place_of(run: Path, reports: Path) -> Path:
    """Return the folder in which a finished run's report is written if the user gives no `--out`.

    Raises RunError if the run is missing, unfinished or of another schema.
    """
    return reports if is_for_publishing(open_run(run).manifest) else reports / UNPUBLISHED


def newest(reports: Path) -> Path:
    """Return the folder of the newest report that is for publishing. Raises RunError if there is none."""
    found = []
    for page in reports.glob("[0-9]*.*/index.html"):
        file = page.with_name("manifest.json")
        manifest = json.loads(file.read_bytes()) if file.is_file() else {}
        if is_for_publishing(manifest):
            found.append(page.parent)
    if not found:
        raise RunError(f"{reports}: there is no published report; make one with: make report")
    return max(found, key=order)


def _claim(staging: Path, out: Path, date: str) -> Path:
    """Rename the folder to the next free `<date>.<n>`. Other processes may take numbers at the same time."""
    for n in count(1 + max(map(_serial, out.glob(f"{date}.*")), default=0)):
        target = out / f"{date}.{n}"
        if target.exists():
            continue
        try:
            staging.rename(target)
        except OSError:
            if target.exists():
                continue
            raise
        return target
    raise AssertionError("count() does not end")


def order(path: Path) -> tuple[str, int]:
    """Return the key that sorts reports by age: the day and the number of the folder's name, <date>.<n>."""
    return path.name.rpartition(".")[0], _serial(path)


def _serial(path: Path) -> int:
    tail = path.name.rpartition(".")[2]
    return int(tail) if tail.isdigit() else 0


def _same(directory: Path, files: Mapping[str, bytes]) -> bool:
    found = {path.relative_to(directory).as_posix() for path in directory.rglob("*") if path.is_file()}
    return found == set(files) and all((directory / name).read_bytes() == data for name, data in files.items())
