"""Answer `kfbench what-if` from a fingerprint: the sizes in its log's own batches, as they were measured."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from kfbench.errors import InvalidConfig
from kfbench.fingerprint.file import Fingerprint
from kfbench.migration.bills import Prices, Traffic
from kfbench.present.table import listed
from kfbench.whatif.answer import WhatIf
from kfbench.whatif.ask import legal_arms
from kfbench.whatif.month import rate_of_user
from kfbench.whatif.more import WHATIF_TABLES


def what_if_of(
    given: Fingerprint,
    formats: Sequence[str] | Literal["all"] | None = None,
    *,
    traffic: Traffic | None = None,
    prices: Prices | None = None,
    rate_mb_s: float | None = None,
) -> WhatIf:
    """Return the answer of a fingerprint for some formats. Parameters: see `whatif.what_if`.

    Raises InvalidConfig for wrong names, and for a format that the fingerprint does not have.
    """
    answer = given.answer
    arms, illegal = legal_arms(list(answer.breakdown) if formats == "all" else formats or given.formats, None)
    names = list(dict.fromkeys(name for name, _ in arms))
    if absent := [name for name in names if name not in answer.breakdown]:
        raise InvalidConfig(f"the fingerprint has sizes in {listed([*answer.breakdown])} only, not in {absent[0]}")
    known = {(arm.format, arm.codec): arm for arm in answer.arms}
    crossings = {(each.format, each.other): each for each in answer.break_even}
    return replace(
        answer,
        arms=tuple(known[arm] for arm in arms if arm in known),
        illegal=tuple(illegal),
        breakdown={name: answer.breakdown[name] for name in names},
        losses={name: answer.losses[name] for name in names},
        break_even=tuple(crossings[a, b] for a in names for b in names if (a, b) in crossings),
        overhead={level: {name: row[name] for name in names} for level, row in answer.overhead.items()},
        more={name: WHATIF_TABLES[name].of_formats(each, names) for name, each in answer.more.items()},
        rate=answer.rate if rate_mb_s is None else rate_of_user(rate_mb_s),
        traffic=traffic or Traffic(),
        prices=prices or Prices(),
    )
