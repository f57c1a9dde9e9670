"""A sweep deletes old compiled kernels of other code versions, and keeps recent ones."""

import os
import time
from pathlib import Path

import pytest

from kfbench.sweep.host import prune_cache
from kfbench.sweep.host.packing import code_digest

DAY_S = 86_400.0


def state(folder: Path, days: float) -> Path:
    """Make the cache folder of one code version, last used `days` days ago."""
    (folder / "kernels_1").mkdir(parents=True)
    (folder / "kernels_1" / "scan.nbc").touch()
    then = time.time() - days * DAY_S
    for each in (folder / "kernels_1", folder):
        os.utime(each, (then, then))
    return folder


@pytest.fixture
def ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    ours = state(tmp_path / "kernels-ours", 400)
    monkeypatch.setattr("kfbench.kernels.CACHE_FOLDER", ours)
    return ours


def test_what_nobody_used_for_a_month_is_dropped_but_for_the_newest(ours: Path, tmp_path: Path) -> None:
    old = [state(tmp_path / f"kernels-{days}", days) for days in (40, 50, 60, 70, 80)]
    code = state(tmp_path / "code-90", 90)
    (tmp_path / "other-100").mkdir()
    prune_cache.prune()
    there = sorted(each.name for each in tmp_path.iterdir())
    assert (
        there == sorted([*(each.name for each in old[: prune_cache.NEWEST]), ours.name, "other-100"])
        and not code.exists()
    )


def test_what_was_used_since_stays_however_many(ours: Path, tmp_path: Path) -> None:
    for number in range(3 * prune_cache.NEWEST):
        state(tmp_path / f"kernels-{number}", 20)
    touched = state(tmp_path / "kernels-touched", 400)
    os.utime(touched / "kernels_1")  # as if a kernel had just been compiled into it
    prune_cache.prune()
    assert len(prune_cache.others()) == 3 * prune_cache.NEWEST + 1 and prune_cache.others()[0] == touched


def test_what_executors_unpacked_of_our_own_code_stays_and_counts_as_used(ours: Path, tmp_path: Path) -> None:
    for days in range(31, 31 + prune_cache.NEWEST):
        state(tmp_path / f"kernels-{days}", days)
    code = state(tmp_path / f"code-{code_digest()}", 400)
    prune_cache.prune()
    assert code.is_dir() and code not in prune_cache.others() and time.time() - code.stat().st_mtime < DAY_S


def test_ours_counts_as_used(ours: Path) -> None:
    prune_cache.prune()
    assert time.time() - ours.stat().st_mtime < DAY_S and ours not in prune_cache.others()
