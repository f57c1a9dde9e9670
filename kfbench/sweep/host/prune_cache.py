"""Delete cache folders of other versions of kfbench: compiled kernels and unpacked code."""

import os
import time
from contextlib import suppress
from pathlib import Path
from shutil import rmtree
from typing import Final

from kfbench.sweep.host.packing import code_digest

NEWEST: Final = 4  # the number of folders that are never deleted, because developers switch between branches
UNUSED_S: Final = 30 * 86_400.0


def others() -> list[Path]:
    """Return the cache folders of other versions of the code, the most recently used first."""
    from kfbench.kernels import CACHE_FOLDER

    root = CACHE_FOLDER.parent
    # Executors on this host may run from an unpacked copy of the same code.
    ours = {CACHE_FOLDER, root / f"code-{code_digest()}", Path(__file__).parents[3]}
    found = {*root.glob("kernels-*"), *root.glob("code-*")} - ours
    return sorted(found, key=_used, reverse=True)


def prune() -> None:
    """Mark the folders of this version as used. Delete folders of other versions that were unused for 30 days.

    The 4 most recently used folders of other versions (NEWEST) always stay. A process that still runs a deleted version
    has its loaded kernels in memory. It compiles other kernels again when it needs them.
    """
    from kfbench.kernels import CACHE_FOLDER

    for ours in (CACHE_FOLDER, CACHE_FOLDER.parent / f"code-{code_digest()}"):
        with suppress(OSError):
            os.utime(ours)
    for folder in others()[NEWEST:]:
        if time.time() - _used(folder) > UNUSED_S:
            rmtree(folder, ignore_errors=True)


def _used(folder: Path) -> float:
    """Return the newest modification time of a cache folder and its entries, in seconds since 1970; 0 if it is gone.

    Starting a sweep, starting an executor and compiling a kernel update this time.
    """
    times = [0.0]
    with suppress(OSError):  # another process may prune at the same time
        times += [each.stat().st_mtime for each in (folder, *folder.iterdir())]
    return max(times)
