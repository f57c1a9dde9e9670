"""A small run, functions that edit its rows, and a function that compares it with an edited copy."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kfbench.comparison.compare import Comparison, compare
from tests.runs import measured, stored

Row = dict[str, Any]
Edit = Callable[[Row], object]  # changes a row in place; returns False to drop it
Against = Callable[..., Comparison]


def of(**wanted: Any) -> Callable[[Row], bool]:
    return lambda row: all(row.get(name) == value for name, value in wanted.items())


def each(matches: Callable[[Row], bool], **changes: Any) -> Edit:
    """Return an edit that changes the rows for which `matches` is True.

    changes: new value per column, or a function of the old value.
    """

    def edit(row: Row) -> None:
        if matches(row):
            row |= {name: value(row.get(name)) if callable(value) else value for name, value in changes.items()}

    return edit


def without(matches: Callable[[Row], bool]) -> Edit:
    return lambda row: not matches(row)


def times(factor: float) -> Callable[[list[int]], list[int]]:
    return lambda samples: [round(sample * factor) for sample in samples]


ONE = of(kind="bytes", grid="batch", batch_size=5, format="v3")
V3 = of(kind="cpu", format="v3", arm="measure", operation="encode")


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
