"""Functions that edit stored rows, to make a second run that differs from the first one."""

from collections.abc import Callable
from typing import Any

from kfbench.comparison.compare import Comparison

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
