"""Fixtures of the sweep tests."""

from functools import partial
from pathlib import Path

import pytest

from tests.sweep.profiles import Load, load_in


@pytest.fixture
def load(tmp_path: Path) -> Load:
    return partial(load_in, tmp_path)
