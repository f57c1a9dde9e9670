"""Find the files with records in a folder and its subfolders, and list the entries that are skipped.

A broker may write to the folder meanwhile. Links to files or folders are not followed: their targets could be listed
twice, or form a cycle.
"""

import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

from kfbench.errors import InvalidConfig, KfbenchError
from kfbench.sources.part import FoundSources, Part, Skipped

GONE: Final = "gone meanwhile: deleted or renamed"
LINK: Final = "a link, which is not followed: name its target instead"
INNER_LINKS: Final = "links to files or folders that are read anyway"
DEAD_LINKS: Final = "links to nothing"
OTHER_FILES: Final = "other files"


class NothingToRead(KfbenchError):
    """A folder, file or topic without any record. Nothing is lost if it is left out."""


class File(NamedTuple):
    path: Path
    size_bytes: int


def walk(
    root: Path, holds_records: Callable[[Path], bool], left_out: Callable[[str], str | None] = lambda _: None
) -> Iterator[File | Skipped]:
    """Yield the files and the skipped entries of a folder and its subfolders, sorted by name in each folder.

    holds_records: a function that returns True for the path of a file with records. left_out: a function that returns
    the reason to skip a folder of this name, or None.
    """

    def below(folder: Path) -> Iterator[File | Skipped]:
        try:
            with os.scandir(folder) as found:
                entries = sorted(found, key=lambda entry: entry.name)
        except OSError as error:
            yield unreadable(folder, error)
            return
        for entry in entries:
            path = Path(entry.path)
            try:
                if entry.is_symlink():
                    yield _link(path, root, holds_records)
                elif not entry.is_dir(follow_symlinks=False):
                    size_bytes = entry.stat(follow_symlinks=False).st_size
                    if entry.is_file(follow_symlinks=False):
                        yield File(path, size_bytes)
                    else:
                        yield Skipped(path=entry.path, size_bytes=size_bytes, reason=OTHER_FILES)
                elif (reason := left_out(entry.name)) is None:
                    yield from below(path)
                else:
                    yield Skipped(path=entry.path, size_bytes=_bytes_below(path), reason=reason)
            except OSError as error:
                yield unreadable(path, error)

    yield from below(root)


def find_parts(
    root: Path,
    holds_records: Callable[[Path], bool],
    parts_of: Callable[[Path], Iterable[Part]],
    why_no_records: Callable[[Path], str] = lambda _: OTHER_FILES,
    left_out: Callable[[str], str | None] = lambda _: None,
) -> FoundSources:
    """Return the parts of all files with records; no parts if there is no such file. A file that fails is skipped.

    why_no_records: a function that returns the reason to skip a file without records. holds_records, left_out: see
    `walk`. Raises InvalidConfig, and the first error about a file or a subfolder if no file has a part.
    """
    parts: list[Part] = []
    skipped: list[Skipped] = []
    errors: list[KfbenchError | OSError] = []
    for each in walk(root, holds_records, left_out):
        if isinstance(each, Skipped):
            skipped.append(each)
        elif not holds_records(each.path):
            reason = why_no_records(each.path)
            skipped.append(Skipped(path=os.fspath(each.path), size_bytes=each.size_bytes, reason=reason))
        else:
            try:
                parts += parts_of(each.path)
            except InvalidConfig:
                raise
            except (KfbenchError, OSError) as error:  # a broker deletes and renames files at any time
                skipped.append(unreadable(each.path, error, each.size_bytes))
                errors += [error] if skipped[-1].is_data else []
    errors += [KfbenchError(f"{each.path}: {each.reason}") for each in skipped if each.is_data]
    if errors and not parts:
        raise errors[0]
    return FoundSources(parts=tuple(parts), skipped=tuple(skipped))


def unread_line(name: str, error: Exception) -> str:
    """Return the line about a part that cannot be read to its end: its name and the reason."""
    return f"{name}: {reason_of(error, name)}"


def reason_of(error: Exception, name: str) -> str:
    """Return why a file cannot be read, without its name."""
    return (getattr(error, "strerror", None) or str(error)).removeprefix(f"{name}: ")


def unreadable(path: Path, error: Exception, size_bytes: int = 0) -> Skipped:
    """Return the skipped entry for a path that cannot be read. If the path no longer exists, no data is missing."""
    if not os.path.lexists(path):
        return Skipped(path=os.fspath(path), size_bytes=0, reason=GONE)
    reason = reason_of(error, str(path))
    return Skipped(path=os.fspath(path), size_bytes=size_bytes, reason=reason, is_data=True)


def _link(path: Path, root: Path, holds_records: Callable[[Path], bool]) -> Skipped:
    target = Path(os.path.realpath(path))
    if not target.exists():
        return Skipped(path=os.fspath(path), size_bytes=0, reason=DEAD_LINKS)
    if not target.is_dir() and not holds_records(path):
        return Skipped(path=os.fspath(path), size_bytes=0, reason=OTHER_FILES)
    if target.is_relative_to(os.path.realpath(root)) and (target.is_dir() or holds_records(target)):
        return Skipped(path=os.fspath(path), size_bytes=0, reason=INNER_LINKS)
    size_bytes = 0 if target.is_dir() else target.stat().st_size
    return Skipped(path=os.fspath(path), size_bytes=size_bytes, reason=LINK, is_data=True)


def _bytes_below(folder: Path) -> int:
    """Return the number of bytes of all files in a folder and its subfolders.

    Files that cannot be accessed do not count.
    """
    size_bytes = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            try:
                size_bytes += Path(parent, name).lstat().st_size
            except OSError:
                continue
    return size_bytes
