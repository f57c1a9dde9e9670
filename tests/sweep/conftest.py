"""Fixtures of the sweep tests."""

from pathlib import Path

import pytest

from kfbench.sweep.definition.profile import Profile, load_profile
from tests.sweep.profiles import HEAD, Load


@pytest.fixture
def load(tmp_path: Path) -> Load:
    def loaded(*blocks: str, head: str = HEAD) -> Profile:
        path = tmp_path / "sweep.toml"
        path.write_text(head + "".join(blocks))
        return load_profile(path)

    return loaded
