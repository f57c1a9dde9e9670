"""CPU time against bytes: the front has the formats that no other format beats in both."""

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

import pandas as pd

from kfbench.formats import BASE_FORMAT
from kfbench.measure.cpu import OPERATIONS, Interval
from kfbench.present.names import GRID, in_order, lacking
from kfbench.present.rows import Rows, Runs, at_reference
from kfbench.present.table import Band, listed
from kfbench.report.sources.noise import RESIDENT, band_of

BATCH_SIZES: Final = (1, 100)
COLUMNS: Final = (
    "batch_size", "format", "bytes", *(name for each in OPERATIONS for name in (each, f"{each}_front")), "loses",
    "has_no",
)  # fmt: skip


class FrontCandidate(NamedTuple):
    """The bytes per record of a format that loses nothing, and its CPU time relative to v2."""

    bytes: float
    time: Interval
    format: str


def pareto(runs: Runs) -> pd.DataFrame:
    """Return a row per batch size and format, without a codec, at the grid's defaults.

    bytes, encode, decode: relative to v2. encode_front: whether no other format beats it in bytes and in encode.
    loses: the fields of these records that the format could not carry. has_no: what v2 has and the format has not,
    although these records do not need it.
    """
    rows, noise = runs.own, band_of(runs.own)
    found: list[dict[str, Any]] = []
    for batch_size in BATCH_SIZES:
        cell = at_reference({"workload": GRID, "codec": "none", "research": False, "batch_size": batch_size}, [])
        arms = {arm.format: arm for arm in rows.typed({**cell, "kind": "bytes"})}
        sizes = {name: arm.size_bytes / arm.records for name, arm in arms.items()}
        timed: dict[str, dict[str, Any]] = {}
        for operation in OPERATIONS if BASE_FORMAT in arms else ():
            times = {
                name: time
                for name, time in _times(rows, {**cell, **RESIDENT, "operation": operation}).items()
                if name in arms
            }
            whole = (FrontCandidate(sizes[name], time, name) for name, time in times.items() if not arms[name].lost)
            front = _front(whole, noise)
            for name, time in times.items() if len(times) > 1 else ():
                place = "not compared" if arms[name].lost else "yes" if name in front else "no"
                timed.setdefault(name, {}).update({operation: time, f"{operation}_front": place})
        for name in in_order(timed):
            row = {"batch_size": batch_size, "format": name, "bytes": sizes[name] / sizes[BASE_FORMAT], **timed[name]}
            no = [what for what in lacking(name, BASE_FORMAT) if what not in arms[name].lost]
            found.append(row | {"loses": listed(arms[name].lost) or None, "has_no": listed(no) or None})
    return pd.DataFrame(found, columns=COLUMNS)


def _times(rows: Rows, where: Mapping[str, Any]) -> dict[str, Interval]:
    """Return format -> its CPU time relative to v2."""
    arms = {str(row["format"]): row for _, row in rows.arms(where).iterrows()}
    if BASE_FORMAT not in arms:
        return {}
    base = arms[BASE_FORMAT]
    same = Interval(median=1.0, low=1.0, high=1.0)
    return {name: same if name == BASE_FORMAT else rows.time_ratio(arm, base) for name, arm in arms.items()}


def _front(candidates: Iterable[FrontCandidate], noise: Band | None) -> set[str]:
    """Return the formats on the front. The fewest bytes come first.

    A format joins the front if it takes less CPU time than all in the front with fewer bytes, and not more than those
    with as many bytes.
    """
    front: list[FrontCandidate] = []
    for each in sorted(candidates, key=lambda each: (each.bytes, each.time.median, each.format)):
        if all(
            _is_less(each.time, other.time, noise)
            if other.bytes < each.bytes
            else not _is_less(other.time, each.time, noise)
            for other in front
        ):
            front.append(each)
    return {each.format for each in front}


def _is_less(one: Interval, other: Interval, noise: Band | None) -> bool:
    """Return True if the intervals do not overlap, and the ratio of the medians is below the noise (or below 1)."""
    return one.high < other.low and one.median / other.median < (noise.low if noise else 1.0)
