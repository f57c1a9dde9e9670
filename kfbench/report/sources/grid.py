"""Bytes on the grid: the smallest formats, the batch sizes from which formats are smaller, and groups of fields."""

import json
from collections.abc import Iterator
from typing import Any, Final

import pandas as pd

from kfbench.arrays import Bracket, bracket
from kfbench.formats import BASE_FORMAT
from kfbench.present.arms import lost_of
from kfbench.present.look import GROUPS, group_of
from kfbench.present.names import GRID, MAIN, in_order, level
from kfbench.present.rows import Runs, at_reference
from kfbench.present.table import Ranked, number
from kfbench.report.sources.verdict import smallest

DOWN, ACROSS = "batch_size", "value_bytes"
OLD: Final = MAIN[: MAIN.index(BASE_FORMAT)]
ALL: Final = "all overhead"  # the sum of all groups of fields


def winners(runs: Runs) -> pd.DataFrame:
    """Return a row per codec, batch size and value size, with all other axes at the grid's defaults.

    Only v0 to v3 are compared, and of them those that lose nothing of the records.
    words: the smallest format that loses nothing, and the share of v2's bytes that it saves; or "tie", if v2 and
    another format are the smallest. They are sorted by the saving, the greatest first.
    """
    where = at_reference({"kind": "bytes", "workload": GRID, "format": list(MAIN)}, [DOWN, ACROSS])
    arms = runs.own.arms(where)
    found = [
        (codec, *row)
        for codec, part in (arms.groupby("with_codec", sort=True) if len(arms) else ())
        for row in _winners_of(part)
    ]
    return pd.DataFrame(found, columns=["with_codec", DOWN, "value", "words"])


def _winners_of(arms: pd.DataFrame) -> Iterator[tuple[Any, ...]]:
    """Yield the cells of one codec. A format that loses something in any cell is compared in none."""
    lossy = {name for name, losses in zip(arms["format"], arms["losses"], strict=True) if lost_of(losses)}
    for (value_bytes, batch_size), part in arms.groupby([ACROSS, DOWN], sort=True):
        by_format = dict(zip(part["format"], part["size_bytes"] / part["records"], strict=True))
        sizes = {name: float(by_format[name]) for name in in_order(by_format)}
        if names := smallest(sizes, lossy):
            saving = 1 - sizes[names[0]] / sizes[BASE_FORMAT]
            is_tie = BASE_FORMAT in names and len(names) > 1
            share = "" if names[0] == BASE_FORMAT else f" −{100 * saving:.{0 if saving >= 0.1 else 1}f} %"
            words = Ranked("tie", 0.0) if is_tie else Ranked(names[0] + share, -saving)
            yield int(batch_size), number(level(ACROSS, value_bytes)), words


def break_even(runs: Runs) -> pd.DataFrame:
    """Return a row per pair of formats, without a codec, with all other axes at the grid's defaults.

    format: v2 and every later format. smaller_than: v0, v1 and v2.
    start: the smallest measured batch size from which the first is smaller at every larger measured one. "4–5": not at
    3, yes at 5, and 4 was not measured.
    """
    where = {"kind": "bytes", "workload": GRID, "codec": "none", "research": False}
    arms = runs.own.arms(at_reference(where, [DOWN]))
    found = []
    if len(arms):
        sizes = arms.assign(size=arms["size_bytes"] / arms["records"]).pivot(
            index=DOWN, columns="format", values="size"
        )
        names = in_order(sizes.columns)
        pairs = [(one, other) for one in names for other in (*OLD, BASE_FORMAT) if other in names]
        for one, other in pairs:
            if one not in (*OLD, other):
                known = sizes[[one, other]].sort_index().dropna()
                is_smaller = (known[one] < known[other]).tolist()
                found.append((one, other, bracket_words(bracket([int(size) for size in known.index], is_smaller))))
    return pd.DataFrame(found, columns=["format", "smaller_than", "start"])


def bracket_words(smaller: Bracket) -> Ranked:
    """Return the two batch sizes around a change as text, for example "4–5". Tables sort it by the second number."""
    after, at = smaller
    if at is None:
        return Ranked("never", None)
    if after is None:
        return Ranked(f"{number(at)} (always)" if at == 1 else f"≤ {number(at)}", at)
    return Ranked(number(at) if at == after + 1 else f"{number(after + 1)}–{number(at)}", at)


def field_groups(runs: Runs) -> pd.DataFrame:
    """Return a row per batch size, format and group of fields, without a codec, at the grid's defaults.

    bytes: per record. The groups are those of the page's legend, and ALL.
    """
    where = {"kind": "bytes", "workload": GRID, "codec": "none", "research": False, "batch_size": [1, 100]}
    arms = runs.own.arms(at_reference(where, []))
    found = []
    for arm in arms[arms["field_bytes"].notna()].itertuples():
        groups = dict.fromkeys((*GROUPS, ALL), 0.0)
        for name, count in json.loads(arm.field_bytes).items():
            if (group := group_of(name)) is not None:
                groups[group] += count / arm.records
                groups[ALL] += count / arm.records
        found += [(f"batch of {int(arm.batch_size)}", arm.format, *each) for each in groups.items()]
    return pd.DataFrame(found, columns=["batches", "format", "group", "bytes"])
