"""Prune the cache: delete compiled kernels and unpacked code of other versions of kfbench."""

import os
import time
from contextlib import suppress
from pathlib import Path
from shutil import rmtree
from typing import Final

from kfbench.sweep.host.packing import code_digest

NEWEST: Final = 4  # this number of folders stays at any age, because developers switch between branches
UNUSED_S: Final = 30 * 86_400.0


def others() -> list[Path]:
    """Return the folders of other versions of the code, the most recently used first."""
    from kfbench.kernels import CACHE_FOLDER

    root = CACHE_FOLDER.parent
    # Executors on this host may run from an unpacked copy of the same code.
    ours = {CACHE_FOLDER, root / f"code-{code_digest()}", Path(__file__).parents[3]}
    found = {*root.glob("kernels-*"), *root.glob("code-*")} - ours
    return sorted(found, key=_used, reverse=True)


def prune() -> None:
    """Mark our folders as used. Delete other folders that were not used for UNUSED_S, except for the NEWEST.

    A process that still runs such code has its kernels in memory. It compiles any other kernel again.
    """
    from kfbench.kernels import CACHE_FOLDER

    for ours in (CACHE_FOLDER, CACHE_FOLDER.parent / f"code-{code_digest()}"):
        with suppress(OSError):
            os.utime(ours)
    for folder in others()[NEWEST:]:
        if time.time() - _used(folder) > UNUSED_S:
            rmtree(folder, ignore_errors=True)


def _used(folder: Path) -> float:
    """Return the time of the last use: a start of a sweep or an executor, or the compilation of a kernel."""
    times = [0.0]
    with suppress(OSError):  # another process may prune at the same time
        times += [each.stat().st_mtime for each in (folder, *folder.iterdir())]
    return max(times)
