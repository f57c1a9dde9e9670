"""Fixtures of the sweep tests."""

from functools import partial
from pathlib import Path

import pytest

from kfbench.measure import host_lock
from tests.sweep.profiles import Load, load_in


@pytest.fixture
def load(tmp_path: Path) -> Load:
    return partial(load_in, tmp_path)


@pytest.fixture(autouse=True)
def own_host_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Time cells of this process without waiting for other measurements of this machine, such as other tests."""
    monkeypatch.setattr(host_lock, "LOCK", tmp_path / "host.lock")
