"""The two neighbouring levels between which something starts to hold."""

from collections.abc import Sequence
from typing import NamedTuple


class Bracket(NamedTuple):
    """Two neighbouring levels: something does not hold at `after` and holds from `at` on.

    after None: it holds from the smallest level on. at None: it does not hold at the largest level.
    """

    after: int | None
    at: int | None


def bracket(levels: Sequence[int], holds: Sequence[bool]) -> Bracket:
    """Return the levels around the last change from False to True. levels: ascending; holds: one item per level."""
    last_not = max((i for i, each in enumerate(holds) if not each), default=-1)
    return Bracket(
        after=levels[last_not] if last_not >= 0 else None,
        at=levels[last_not + 1] if last_not + 1 < len(levels) else None,
    )
