"""A small run for all tests of comparisons."""

from typing import Any

import pytest

from tests.runs import measured


@pytest.fixture(scope="session")
def rows(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    return measured(tmp_path_factory.mktemp("sweep"))
