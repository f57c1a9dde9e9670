"""Write files as a new folder `OUT/<date>.<n>/`, whole or not at all. An existing folder is never changed."""

import shutil
import tempfile
from collections.abc import Mapping
from itertools import count
from pathlib import Path


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
