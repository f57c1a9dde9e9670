"""What other states of the code have left in the cache: a folder of compiled kernels each, and code that an executor
unpacked (`packing`)."""

import os
import time
from contextlib import suppress
from pathlib import Path
from shutil import rmtree
from typing import Final

from kfbench.sweep.host.packing import code_digest

NEWEST: Final = 4  # of other states: one goes back and forth between branches
UNUSED_S: Final = 30 * 86_400.0


def others() -> list[Path]:
    """Folders of other states than this one, the last used first."""
    from kfbench.kernels import CACHE_FOLDER

    root = CACHE_FOLDER.parent
    # A driver's executors may run beside it from what they unpacked of the same code.
    ours = {CACHE_FOLDER, root / f"code-{code_digest()}", Path(__file__).parents[3]}
    found = {*root.glob("kernels-*"), *root.glob("code-*")} - ours
    return sorted(found, key=_used, reverse=True)


def prune() -> None:
    """Drop all but the NEWEST that were not used for UNUSED_S, and note that ours are.

    Whoever still runs one has its kernels in memory, and compiles again what it never called.
    """
    from kfbench.kernels import CACHE_FOLDER

    for ours in (CACHE_FOLDER, CACHE_FOLDER.parent / f"code-{code_digest()}"):
        with suppress(OSError):
            os.utime(ours)
    for folder in others()[NEWEST:]:
        if time.time() - _used(folder) > UNUSED_S:
            rmtree(folder, ignore_errors=True)


def _used(folder: Path) -> float:
    """When a sweep last began with it, or an executor's Python, or something was compiled into it."""
    times = [0.0]
    with suppress(OSError):  # somebody else prunes
        times += [each.stat().st_mtime for each in (folder, *folder.iterdir())]
    return max(times)
