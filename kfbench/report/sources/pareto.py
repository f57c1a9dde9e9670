"""CPU time against bytes: the front has the formats that no other format beats in both."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import pandas as pd

from kfbench.formats import BASE_FORMAT
from kfbench.measure.cpu import OPERATIONS
from kfbench.present.arms import lost_of
from kfbench.present.names import GRID, in_order, lacking
from kfbench.present.rows import Rows, Runs, at_reference
from kfbench.present.table import Band, Interval, listed
from kfbench.report.sources.noise import RESIDENT, band_of

BATCH_SIZES: Final = (1, 100)
ON_FRONT, BEATEN, LOSSY = "yes", "no", "not compared"
COLUMNS: Final = (
    "batch_size", "format", "bytes", *(name for each in OPERATIONS for name in (each, f"{each}_front")), "loses",
    "has_no",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Measured:
    """A format in one cell: bytes and CPU time of one operation relative to v2, and the lost fields."""

    format: str
    bytes: float
    cpu: Interval
    lost: tuple[str, ...]


def pareto(runs: Runs) -> pd.DataFrame:
    """Return a row per batch size and format, without a codec, at the grid's defaults.

    bytes, encode, decode: relative to v2. encode_front: whether no other format beats it in bytes and in encode.
    loses: the fields of these records that the format could not carry. has_no: what v2 has and the format has not,
    although these records do not need it.
    """
    own, band = runs.own, band_of(runs.own)
    found = [row for size in BATCH_SIZES for row in _of_batch_size(own, size, band)]
    return pd.DataFrame(found, columns=COLUMNS)


def _of_batch_size(rows: Rows, batch_size: int, band: Band | None) -> Iterator[tuple[Any, ...]]:
    cell = at_reference({"workload": GRID, "codec": "none", "research": False, "batch_size": batch_size}, [])
    of_bytes = {row.format: row for row in rows.arms({**cell, "kind": "bytes"}).itertuples()}
    if BASE_FORMAT not in of_bytes:
        return
    base = of_bytes[BASE_FORMAT].size_bytes / of_bytes[BASE_FORMAT].records
    sizes = {name: float(row.size_bytes / row.records / base) for name, row in of_bytes.items()}
    lost = {name: lost_of(row.losses) for name, row in of_bytes.items()}
    points: dict[str, dict[str, tuple[Interval, str]]] = {}
    for operation in OPERATIONS:
        times = _times(rows, {**cell, **RESIDENT, "operation": operation})
        measured = [
            Measured(format=name, bytes=sizes[name], cpu=cpu, lost=lost[name])
            for name, cpu in times.items()
            if name in sizes
        ]
        for each, place in _placed(measured, band) if len(measured) > 1 else ():
            points.setdefault(each.format, {})[operation] = each.cpu, place
    for name in in_order(points):
        of = [points[name].get(operation, (None, None)) for operation in OPERATIONS]
        no = [what for what in lacking(name, BASE_FORMAT) if what not in lost[name]]
        cells = [part for each in of for part in each]
        yield batch_size, name, sizes[name], *cells, listed(lost[name]) or None, listed(no) or None


def _times(rows: Rows, where: Mapping[str, Any]) -> dict[str, Interval]:
    """Return format -> its CPU time relative to v2."""
    arms = {str(row["format"]): row for _, row in rows.arms(where).iterrows()}
    if BASE_FORMAT not in arms:
        return {}
    base = arms[BASE_FORMAT]
    same = Interval(median=1.0, low=1.0, high=1.0)
    return {name: same if name == BASE_FORMAT else rows.paired(arm, base) for name, arm in arms.items()}


def _placed(measured: list[Measured], band: Band | None) -> Iterator[tuple[Measured, str]]:
    """Yield each format with its place: on the front, beaten, or not compared because it loses something.

    The fewest bytes come first. A format joins the front if it takes less CPU time than all in the front with fewer
    bytes, and not more than those with as many bytes.
    """
    front: list[Measured] = []
    for each in sorted(measured, key=lambda each: (each.bytes, each.cpu.median, each.format)):
        if each.lost:
            yield each, LOSSY
        elif all(
            _is_less(each.cpu, other.cpu, band) if other.bytes < each.bytes else not _is_less(other.cpu, each.cpu, band)
            for other in front
        ):
            front.append(each)
            yield each, ON_FRONT
        else:
            yield each, BEATEN


def _is_less(one: Interval, other: Interval, band: Band | None) -> bool:
    """Return True if the intervals do not overlap, and the ratio of the medians is below the noise (or below 1)."""
    return one.high < other.low and one.median / other.median < (band.low if band else 1.0)
