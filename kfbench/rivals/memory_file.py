"""Temporary files in memory, for libraries that read or write paths only."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

_IN_MEMORY: Final = Path("/dev/shm")


@contextmanager
def memory_file(name: str) -> Iterator[Path]:
    """Yield the path of a file that does not exist yet, and delete it at the end.

    Linux has a folder in memory. Elsewhere the file is in the folder for temporary files. name: the file's name.
    """
    with TemporaryDirectory(dir=_IN_MEMORY if _IN_MEMORY.is_dir() else None) as folder:
        yield Path(folder, name)
