"""Find the two neighbouring levels between which a condition becomes true."""

from collections.abc import Sequence
from typing import NamedTuple


class Bracket(NamedTuple):
    """Two neighbouring levels: a condition is false at `after`, and true at `at` and at every larger level.

    after None: the condition is true from the smallest level on. at None: it is false at the largest level.
    """

    after: int | None
    at: int | None


def bracket(levels: Sequence[int], holds: Sequence[bool]) -> Bracket:
    """Return the two levels around the last change from False to True.

    levels: in ascending order. holds: True if the condition is true, one item per level.
    """
    last_not = max((i for i, each in enumerate(holds) if not each), default=-1)
    return Bracket(
        after=levels[last_not] if last_not >= 0 else None,
        at=levels[last_not + 1] if last_not + 1 < len(levels) else None,
    )
