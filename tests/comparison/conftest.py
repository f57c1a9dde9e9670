"""Fixtures: a small run, and a function that compares it with an edited copy."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kfbench.comparison.compare import Comparison, compare
from tests.comparison.edits import Against, Edit, Row
from tests.runs import measured, stored


@pytest.fixture(scope="session")
def rows(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    return measured(tmp_path_factory.mktemp("sweep"))


@pytest.fixture(scope="module")
def quiet(rows: list[Row]) -> list[Row]:
    """Return the rows with simulated CPU times of an idle machine. The standard deviation between rounds is 0.3 %."""
    random, found = np.random.default_rng(5), [dict(row) for row in rows]
    for row in found:
        if row.get("cpu_ns"):
            row["cpu_ns"] = random.normal(100_000, 300, len(row["cpu_ns"])).round().astype(int).tolist()
    return found


@pytest.fixture
def against(quiet: list[Row], tmp_path: Path) -> Against:
    """Return a function that compares the run with an edited copy of itself.

    An edit that returns False drops the row.
    """

    def found(
        *edits: Edit,
        more: tuple[Row, ...] = (),
        first: tuple[Edit, ...] = (),
        first_more: tuple[Row, ...] = (),
        first_facts: Mapping[str, Any] | None = None,
        **facts: Any,
    ) -> Comparison:
        runs = []
        for changes, added, other in ((first, first_more, first_facts or {}), (edits, more, facts)):
            kept = [row for row in map(dict, quiet) if all(edit(row) is not False for edit in changes)]
            runs.append(stored(tmp_path, [*kept, *added], **{"profile_text": "asked", **other}).path)
        before, after = runs
        return compare(before, after, threshold=0.03)

    return found
