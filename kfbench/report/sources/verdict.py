"""The classes of workloads: mean bytes and CPU time of each format, and the smallest formats.

A class is a group of workloads of the catalogue, such as "Small batches". Its numbers are geometric means over the
default variants of its workloads, each with the same weight. A format has a number only if all workloads of the class
have one. A format that loses a field of the records has numbers, but cannot win.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import geometric_mean
from typing import Any, Final

import numpy as np
import pandas as pd

from kfbench.formats import BASE_FORMAT
from kfbench.measure.cpu import OPERATIONS, Interval
from kfbench.present.arms import StoredArm, time_ratio
from kfbench.present.names import HEADERS_FIRST, MAIN, in_order, lacking
from kfbench.present.rows import NULL, Rows, Runs
from kfbench.present.table import listed
from kfbench.report.sources.noise import RESIDENT
from kfbench.workloads.catalogue import DEFAULT
from kfbench.workloads.catalogue import WORKLOADS as CATALOGUE

# The order of the classes. Other classes come after them. The TOML file of a workload names its class.
CLASS_ORDER: Final = (
    "One record per batch", "Small batches", "Large batches", "Record headers", "Transactions", "After compaction",
    "Values of 1 KB", "Values of 64 KB",
)  # fmt: skip
NONE, APPEND = "none", "append"
TIMED: Final = (*OPERATIONS, APPEND)
TIE: Final = 0.01  # sizes within one percent of each other are a tie
LIMITED: Final = "†"  # marks a winner that cannot carry everything that v2 can
PLAIN: Final[Mapping[str, Any]] = {
    "population": "named", "variant": DEFAULT, "batch_size": NULL, "research": False,
}  # fmt: skip
COLUMNS: Final = (
    "workload_class", "with_codec", "format", "main", "winner", "bytes", "ratio", "saving", *TIMED,
)  # fmt: skip
Ratios = Mapping[tuple[str, str, str], Interval]  # (workload, operation, format) -> CPU time relative to v2


@dataclass(frozen=True, kw_only=True)
class WorkloadSizes:
    """The bytes of each format on one workload. of: format -> bytes per record. lost: those that lose a field."""

    of: Mapping[str, float]
    lost: frozenset[str]


def verdict(runs: Runs) -> pd.DataFrame:
    """Return a row per class of workloads, codec (none and zstd) and format.

    main: v0, v1, v3 and v3-headers-first.
    winner: the smallest formats that lose nothing, or "tie with v2".
    bytes: per record. ratio: relative to v2. saving: 1 less that.
    encode, decode, append: CPU time relative to v2, without a codec.
    """
    sizes, ratios = _sizes(runs.own), _ratios(runs.own)
    classes: dict[str, list[str]] = {name: [] for name in CLASS_ORDER}
    for workload in dict.fromkeys(name for of in sizes.values() for name in of):
        name = CATALOGUE[workload].workload_class if workload in CATALOGUE else workload
        classes.setdefault(name, []).append(workload)
    found: list[dict[str, Any]] = []
    for name, workloads in classes.items():
        for codec, of in sizes.items():
            if workloads and all(each in of for each in workloads):
                of_class = {each: of[each] for each in workloads}
                rows = _rows(of_class, ratios if codec == NONE else {})
                found += ({"workload_class": name, "with_codec": codec, **row} for row in rows)
    return pd.DataFrame(found, columns=COLUMNS)


def _sizes(rows: Rows) -> dict[str, dict[str, WorkloadSizes]]:
    """Return codec -> workload -> its sizes. No codec comes first, workloads are sorted by name."""
    cells: dict[tuple[bool, str, str], dict[str, StoredArm]] = {}
    for arm in rows.typed({**PLAIN, "kind": "bytes", "codec": [NONE, "zstd"]}):
        cells.setdefault((arm.with_codec != NONE, arm.with_codec, arm.workload), {})[arm.format] = arm
    found: dict[str, dict[str, WorkloadSizes]] = {}
    for (_, codec, workload), by in sorted(cells.items()):
        found.setdefault(codec, {})[workload] = WorkloadSizes(
            of={name: by[name].size_bytes / by[name].records for name in in_order(by)},
            lost=frozenset(name for name, arm in by.items() if arm.lost),
        )
    return found


def _ratios(rows: Rows) -> Ratios:
    """Return all CPU times relative to v2, without a codec.

    Both must have the same number of rounds. Appends count only if all were timed on one host.
    """
    plain = {**PLAIN, "codec": NONE}
    arms = rows.typed({**plain, **RESIDENT})
    if rows.select({"kind": "broker", "research": False})["host"].nunique() == 1:
        arms += rows.typed({**plain, "kind": "broker", "operation": APPEND})
    bases = {(arm.cell_id, arm.operation): arm for arm in arms if arm.format == BASE_FORMAT}
    found = {}
    for arm in arms:
        base = bases.get((arm.cell_id, arm.operation))
        if base is not None and len(arm.cpu_ns) == len(base.cpu_ns):
            found[arm.workload, arm.operation, arm.format] = time_ratio(arm, base)
    return found


def _rows(of: Mapping[str, WorkloadSizes], ratios: Ratios) -> Iterator[dict[str, Any]]:
    """Yield the row of each format of a class under a codec. of: workload -> its sizes."""
    members = list(of.values())
    formats = [name for name in members[0].of if all(name in each.of for each in members)]
    sizes = {name: geometric_mean([each.of[name] for each in members]) for name in formats}
    names = in_order(smallest(sizes, frozenset[str]().union(*(each.lost for each in members))))
    is_tie = BASE_FORMAT in names and len(names) > 1
    words = listed([f"{name} {LIMITED}" if lacking(name, BASE_FORMAT) else name for name in names])
    for name in formats:
        row: dict[str, Any] = {
            "format": name,
            "main": name in (*MAIN, HEADERS_FIRST) and name != BASE_FORMAT,
            "winner": f"tie with {BASE_FORMAT}" if is_tie else words or None,
            "bytes": sizes[name],
            "ratio": sizes[name] / sizes[BASE_FORMAT] if BASE_FORMAT in sizes else None,
        }
        row["saving"] = None if row["ratio"] is None else 1 - row["ratio"]
        for operation in TIMED:
            times = [ratios.get((workload, operation, name)) for workload in of]
            known = [time for time in times if time is not None]
            mean = mean_ratio(known) if known and len(known) == len(times) else None
            row[operation] = 1.0 if name == BASE_FORMAT and mean else mean
        yield row


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


def mean_ratio(ratios: Sequence[Interval]) -> Interval:
    """Return the geometric mean of the workloads' ratios, with its interval.

    On a log scale, the half-widths of each side are added in quadrature and divided by their number. A bootstrap is
    not possible, because rounds of two workloads are no pairs. The interval holds for these workloads only.
    """
    medians, lows, highs = np.log([(ratio.median, ratio.low, ratio.high) for ratio in ratios]).T
    mean = medians.mean()
    below, above = (np.sqrt(np.sum((medians - ends) ** 2)) / len(ratios) for ends in (lows, highs))
    return Interval(*np.exp([mean, mean - below, mean + above]).tolist())
