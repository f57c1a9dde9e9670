"""Mark test cases for the quick suite, for the other stages of continuous integration, and for coverage.

`matrix` marks cases outside the quick suite's sample. `compiled_only` marks cases that cover few further branches.
"""

from collections import defaultdict
from collections.abc import Sequence

import pytest

STAGES = ("browser", "cluster", "faults")  # folders whose tests are a stage of their own
Parameters = frozenset[tuple[str, str]]
SAME_BRANCHES = ("v3-attributes-only", "v3-header-only")  # their kernels take the same branches as v3


def mark_stages(items: Sequence[pytest.Item]) -> None:
    """Mark tests by their folder. A mark that stands elsewhere is an error, because no stage would run its test."""
    for item in items:
        for stage in STAGES:
            if item.path.parent.name == stage:
                item.add_marker(stage)
            elif item.get_closest_marker(stage):
                raise pytest.UsageError(f"{item.nodeid}: marked {stage}, but not in tests/{stage}")


def mark_matrix(items: Sequence[pytest.Item]) -> None:
    """For each test marked `sampled`, mark the cases outside the sample with `matrix`."""
    tests: dict[str, list[pytest.Function]] = defaultdict(list)
    for item in items:
        if isinstance(item, pytest.Function) and item.get_closest_marker("sampled"):
            tests[item.nodeid.partition("[")[0]].append(item)
    for cases in tests.values():
        marker = cases[0].get_closest_marker("sampled")
        assert marker
        count: int | None = marker.args[0] if marker.args else None
        sample = spread(len(cases), count) if count else covering([_parameters(case) for case in cases])
        for i, case in enumerate(cases):
            if i not in sample:
                case.add_marker(pytest.mark.matrix)


def mark_compiled_only(items: Sequence[pytest.Item]) -> None:
    """Mark with `compiled_only` the cases of formats whose kernels take the same branches as v3."""
    for item in items:
        if any(name in item.name for name in SAME_BRANCHES):
            item.add_marker(pytest.mark.compiled_only)


def spread(cases: int, count: int) -> set[int]:
    """Return the indexes of `count` evenly spaced cases. Return all indexes if there are fewer cases."""
    return {i * cases // count for i in range(count)}


def covering(cases: Sequence[Parameters]) -> set[int]:
    """Return the indexes of a few cases that together have every value of every parameter.

    The case with the most new values is chosen first, so that each format is combined with a different codec.
    """
    missing: set[tuple[str, str]] = set().union(*cases)
    chosen: set[int] = set()
    while missing:
        best = max(range(len(cases)), key=lambda i: len(cases[i] & missing))
        chosen.add(best)
        missing -= cases[best]
    return chosen


def _parameters(case: pytest.Function) -> Parameters:
    parameters = case.callspec.params.items() if hasattr(case, "callspec") else ()
    return frozenset((name, repr(value)) for name, value in parameters)
