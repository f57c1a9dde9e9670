"""Pruning of the cache: folders of compiled kernels and of unpacked code that other versions of the code left there."""

import os
import time
from contextlib import suppress
from pathlib import Path
from shutil import rmtree
from typing import Final

from kfbench.sweep.host.packing import code_digest

NEWEST: Final = 4  # folders that stay at any age: developers switch between branches
UNUSED_S: Final = 30 * 86_400.0


def others() -> list[Path]:
    """Return the folders of other versions of the code, the last used first."""
    from kfbench.kernels import CACHE_FOLDER

    root = CACHE_FOLDER.parent
    # Executors on this host may run from an unpacked copy of the same code.
    ours = {CACHE_FOLDER, root / f"code-{code_digest()}", Path(__file__).parents[3]}
    found = {*root.glob("kernels-*"), *root.glob("code-*")} - ours
    return sorted(found, key=_used, reverse=True)


def prune() -> None:
    """Delete folders that were not used for UNUSED_S, except for the NEWEST, and mark ours as used.

    A process that still runs such code has its kernels in memory, and compiles others again.
    """
    from kfbench.kernels import CACHE_FOLDER

    for ours in (CACHE_FOLDER, CACHE_FOLDER.parent / f"code-{code_digest()}"):
        with suppress(OSError):
            os.utime(ours)
    for folder in others()[NEWEST:]:
        if time.time() - _used(folder) > UNUSED_S:
            rmtree(folder, ignore_errors=True)


def _used(folder: Path) -> float:
    """Return the time of last use: a sweep or an executor started with it, or a kernel was compiled into it."""
    times = [0.0]
    with suppress(OSError):  # another process prunes, too
        times += [each.stat().st_mtime for each in (folder, *folder.iterdir())]
    return max(times)
