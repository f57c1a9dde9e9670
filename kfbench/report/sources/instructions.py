"""Instructions of each call beside its CPU time: counts repeat exactly, times do not."""

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import pandas as pd

from kfbench.formats import BASE_FORMAT
from kfbench.measure.callgrind import estimated_cycles
from kfbench.measure.cpu import Interval
from kfbench.measure.instructions import per_record
from kfbench.measure.kinds.cpu import READINGS
from kfbench.measure.paths import PATHS
from kfbench.present.arms import keys, middle_95, ties
from kfbench.present.names import GRID
from kfbench.present.rows import Rows, Runs
from kfbench.present.table import Band
from kfbench.report.sources.noise import to_base, to_itself

PROFILE: Final = "instructions"
COUNTED: Final = ("kernel_instructions", "library_instructions", "python_instructions")
PLACE: Final = ("cell_id", "with_codec", "operation", "to_format", "format")
COLUMNS: Final = [
    "format", "batch_size", "with_codec", "operation", "instructions", "estimate", "ns", "to_v2", "estimate_to_v2",
    "time_to_v2", "disagrees", "reason",
]  # fmt: skip
SIDE: Final = 0.005  # a ratio of counts within this of 1 is on neither side
MISSES: Final = 0.01  # the simulated misses move an estimate by up to so much between runs
TIMED: Final[Mapping[str, Any]] = {
    "kind": ["cpu", *READINGS, "broker"],
    "workload": GRID,
    "cache": ["resident", "null"],
}


def instructions(runs: Runs) -> pd.DataFrame:
    """Return the counts of each format's call per record on the grid, beside its CPU time; of some paths, per call.

    Columns: instructions, estimate (cycles, as callgrind estimates them), ns; to_v2, estimate_to_v2, time_to_v2: ratios
    to v2; disagrees: instructions and time are on different sides of 1, both beyond their error; reason: a cause.
    """
    rows = runs.joined.get(PROFILE)
    if rows is None or PROFILE not in rows.kinds:
        return pd.DataFrame()
    counted = rows.arms({"kind": PROFILE, "workload": GRID})
    counts = [_counts(row) for _, row in counted.iterrows()]
    timed, noise = _times(rows)
    places = keys(counted, PLACE)
    of_place = dict(zip(places, counts, strict=True))
    found = []
    for (_, row), place, (count, estimate) in zip(counted.iterrows(), places, counts, strict=True):
        ns, time = timed.get(place, (None, None))
        path = f"{row['operation']} to {place[3]}" if place[3] else row["operation"]
        each = {name: row[name] for name in ("format", "batch_size", "with_codec")}
        each |= {"operation": path, "instructions": count, "estimate": estimate, "ns": ns}
        base = of_place.get((*place[:-1], BASE_FORMAT))
        if base and row["format"] != BASE_FORMAT:
            each |= _against(count / base[0], estimate / base[1], time, noise)
        found.append(each)
    return pd.DataFrame(found, columns=COLUMNS)


def _counts(row: pd.Series) -> tuple[float, float]:
    """Return the instructions that a record adds to a call, and the estimated cycles; of some paths, those of a call.

    The difference of both counted calls leaves out what a call takes, whatever its records.
    """
    by_call = row["operation"] in PATHS and PATHS[row["operation"]].is_per_call

    def count(*names: str) -> float:
        half, whole = (sum(row[name][call] for name in names) for call in (0, 1))
        return float(whole) if by_call else per_record([half, whole], row["counted_records"])

    total = count(*COUNTED)
    return total, estimated_cycles(total, count("l1_misses"), count("last_level_misses"))


def _times(rows: Rows) -> tuple[dict[tuple[Any, ...], tuple[float, Interval | None]], Band | None]:
    """Return the CPU time per record and its ratio to v2 of each place, and the noise of a base against itself."""
    arms = rows.arms(TIMED)
    ratios = to_base(rows, TIMED, {"format": BASE_FORMAT})
    to_v2 = dict(zip(keys(ratios, PLACE), ratios["ratio"], strict=True))
    times = zip(keys(arms, PLACE), arms["cpu_ns"], arms["inner_loops"], arms["records"], strict=True)
    found = {place: (float(np.median(ns)) / loops / records, to_v2.get(place)) for place, ns, loops, records in times}
    return found, middle_95([ratio.median for ratio in to_itself(rows, TIMED)["ratio"]])


def _against(count: float, estimate: float, time: Interval | None, noise: Band | None) -> dict[str, Any]:
    found: dict[str, Any] = {"to_v2": count, "estimate_to_v2": estimate, "time_to_v2": time, "disagrees": False}
    if time is not None and abs(count - 1) > SIDE and not ties(time, noise) and (count > 1) != (time.median > 1):
        is_of_caches = (estimate > 1) == (time.median > 1) and abs(estimate - 1) > MISSES
        reason = "misses of caches" if is_of_caches else "branches, stalls, or instructions that run side by side"
        found |= {"disagrees": True, "reason": reason}
    return found
