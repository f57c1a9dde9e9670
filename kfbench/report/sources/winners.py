"""The smallest of v0 to v3 for each batch size and value size, and the batch size from which a format is smaller.

Only formats that lose nothing of the records are compared.
"""

from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final

import pandas as pd

from kfbench.bracket import Bracket, bracket
from kfbench.formats import BASE_FORMAT
from kfbench.present.arms import lost_of
from kfbench.present.names import GRID, MAIN, OLD, in_order, level
from kfbench.present.rows import Runs, at_reference
from kfbench.present.table import Ranked, listed, number

DOWN, ACROSS = "batch_size", "value_bytes"
COLUMNS: Final = (
    "with_codec", DOWN, ACROSS, "value", "format", "saving", "words", "winners",
)  # fmt: skip
TIE: Final = 0.01  # sizes within one percent of each other are a tie


def smallest(sizes: Mapping[str, float], lossy: Collection[str]) -> list[str]:
    """Return the smallest format that loses nothing, then the formats that lose nothing and are at most TIE larger.

    Empty unless v2 and another format lose nothing, because otherwise nothing can be compared.

    Args:
        sizes: format -> bytes per record.
        lossy: the formats that lose a field of these records.
    """
    whole = {name: size for name, size in sizes.items() if name not in lossy}
    if BASE_FORMAT not in whole or len(whole) < 2:
        return []
    least = min(whole, key=lambda name: whole[name])
    return [least, *(name for name, size in whole.items() if name != least and size <= whole[least] * (1 + TIE))]


def winners(runs: Runs) -> pd.DataFrame:
    """Return a row per codec, batch size and value size, with all other axes at the grid's defaults.

    format: the smallest format that loses nothing; empty if v2 and another format are the smallest (a tie).
    saving: the bytes that the smallest format saves, as a share of v2's.
    words: both as text. It is sorted by the saving, the greatest first.
    winners: the formats that share the place.
    """
    where = at_reference({"kind": "bytes", "workload": GRID, "format": list(MAIN)}, [DOWN, ACROSS])
    arms = runs.own.arms(where)
    found = [
        row
        for codec, part in (arms.groupby("with_codec", sort=True) if len(arms) else ())
        for row in _map(str(codec), part)
    ]
    return pd.DataFrame(found, columns=COLUMNS)


def _map(codec: str, arms: pd.DataFrame) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of one codec. A format that loses something in any cell is compared in none."""
    lossy = {name for name, losses in zip(arms["format"], arms["losses"], strict=True) if lost_of(losses)}
    for (value_bytes, batch_size), part in arms.groupby([ACROSS, DOWN], sort=True):
        by_format = dict(zip(part["format"], part["size_bytes"] / part["records"], strict=True))
        sizes = {name: float(by_format[name]) for name in in_order(by_format)}
        names = smallest(sizes, lossy)
        if not names:
            continue
        saving = 1 - sizes[names[0]] / sizes[BASE_FORMAT]
        is_tie = BASE_FORMAT in names and len(names) > 1
        yield (
            codec,
            int(batch_size),
            int(value_bytes),
            number(level(ACROSS, value_bytes)),
            "" if is_tie else names[0],
            saving,
            Ranked(_words(names[0], saving), -saving) if not is_tie else Ranked("tie", 0.0),
            listed(names),
        )


def _words(name: str, saving: float) -> str:
    if name == BASE_FORMAT:
        return name
    return f"{name} −{100 * saving:.{0 if saving >= 0.1 else 1}f} %"


def break_even(runs: Runs) -> pd.DataFrame:
    """Return a row per pair of formats, without a codec, with all other axes at the grid's defaults.

    format: v2 and every later format. smaller_than: v0, v1 and v2.
    start: the smallest measured batch size from which the first is smaller at every larger measured one. "4–5": not at
    3, yes at 5, and 4 was not measured.
    last_larger, first_smaller: the two measured batch sizes around the change; None if there is none.
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
                smaller = first_smaller(sizes.sort_index(), one, other)
                found.append((one, other, bracket_words(smaller), smaller.after, smaller.at))
    return pd.DataFrame(found, columns=["format", "smaller_than", "start", "last_larger", "first_smaller"])


def first_smaller(sizes: pd.DataFrame, name: str, other: str) -> Bracket:
    """Find the batch size from which `name` is always smaller than `other`.

    sizes: bytes per record with a row per batch size, ascending, and a column per format.
    """
    known = sizes[[name, other]].dropna()
    return bracket([int(size) for size in known.index], (known[name] < known[other]).tolist())


def bracket_words(smaller: Bracket) -> Ranked:
    """Return the result of `first_smaller` as text, for example "4–5". Tables sort it by the second number."""
    after, at = smaller
    if at is None:
        return Ranked("never", None)
    if after is None:
        return Ranked(f"{number(at)} (always)" if at == 1 else f"≤ {number(at)}", at)
    return Ranked(number(at) if at == after + 1 else f"{number(after + 1)}–{number(at)}", at)
