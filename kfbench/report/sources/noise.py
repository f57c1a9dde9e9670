"""The error of a run's CPU ratios where the truth is known, and the checks that its manifest has.

v2 against itself (A/A) is 1. So is each format with v2's checksum on records that consist almost only of payload.
"""

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import pandas as pd

from kfbench.formats import BASE_FORMAT, FORMATS
from kfbench.measure.noise import ROUNDING
from kfbench.present.arms import middle_95, ties
from kfbench.present.names import GRID
from kfbench.present.rows import AA, Rows, Runs
from kfbench.present.table import Band
from kfbench.text import percent

RESIDENT: Final[Mapping[str, Any]] = {"kind": "cpu", "cache": "resident", "research": False}
TIMED: Final[Mapping[str, Any]] = {**RESIDENT, "workload": GRID}
LARGE_VALUE_BYTES: Final = 10_000  # least size of the values in the negative control
CONTROL_LIMIT: Final = 0.02  # the negative control passes if its ratios are this near to 1
IN_PERCENT: Final = ("intervals", "half-width", "spread", "swing", "waited", "first rounds")  # words of such checks


def to_itself(rows: Rows, where: Mapping[str, Any]) -> pd.DataFrame:
    """Return the second timings of bases (A/A), with the column `ratio`: to the first timing, with its interval."""
    return to_base(rows, {**where, "arm": AA}, {})


def to_base(rows: Rows, where: Mapping[str, Any], base: Mapping[str, Any]) -> pd.DataFrame:
    """Return the selected arms that have a base, with the column `ratio`: CPU time relative to it."""
    arms, bases = rows.arms(where), rows.based(where, base)
    if arms.empty or bases.empty:
        return arms.assign(ratio=None).iloc[:0]
    places = rows.bases(arms, where, base)
    ratios = [
        None if place is None else rows.time_ratio(arm, bases.iloc[place])
        for (_, arm), place in zip(arms.iterrows(), places, strict=True)
    ]
    return arms.assign(ratio=pd.Series(ratios, index=arms.index, dtype=object))[[each is not None for each in ratios]]


def band_of(rows: Rows) -> Band | None:
    """Return the middle 95 % of v2's second timings (A/A) on the grid, relative to the first ones; None without any."""
    return middle_95([ratio.median for ratio in to_itself(rows, {**TIMED, "format": BASE_FORMAT})["ratio"]])


def aa(runs: Runs) -> pd.DataFrame:
    """Return one row per operation: how often the interval of v2 against itself holds 1, and its quantiles."""
    found = []
    again = to_itself(runs.own, TIMED)
    for operation, rows in again.groupby("operation", sort=False):
        medians = [ratio.median for ratio in rows["ratio"]]
        quantiles = np.percentile(medians, [50, 2.5, 97.5, 0, 100])
        held = sum(ratio.holds(1.0, within=ROUNDING) for ratio in rows["ratio"])
        found.append((operation, float(len(rows)), float(held), *map(float, quantiles)))
    return pd.DataFrame(found, columns=["operation", "cells", "held", "median", "low", "high", "least", "most"])


def control(runs: Runs) -> pd.DataFrame:
    """Return the CPU time of each format relative to v2 on large values, where it must be nearly 1.

    It must be so for formats with v2's checksum, because the payload takes nearly all time.
    """
    where = {**TIMED, "codec": "none"}
    rows = runs.own.arms(where)
    cells = rows.loc[rows["value_bytes"] >= LARGE_VALUE_BYTES, "cell_id"].unique().tolist()
    against = to_base(runs.own, {**where, "cell_id": cells}, {"format": BASE_FORMAT})
    again = to_itself(runs.own, {**where, "cell_id": cells})
    noise = band_of(runs.own)
    found = []
    for row in pd.concat([against[against["format"] != BASE_FORMAT], again]).itertuples():
        checksum = checksum_of(str(row.format))
        name = f"{row.format} (A/A)" if row.arm == AA else row.format
        ratio: Any = row.ratio
        verdict = "ties" if ties(ratio, noise) else f"differs, pays {checksum}"
        if checksum == checksum_of(BASE_FORMAT) and verdict != "ties":
            is_within = ratio.low >= 1 - CONTROL_LIMIT and ratio.high <= 1 + CONTROL_LIMIT
            verdict = f"within {percent(CONTROL_LIMIT, 1)}" if is_within else "differs"
        found.append((row.value_bytes, row.batch_size, name, row.operation, checksum, ratio, verdict))
    columns = ["value_bytes", "batch_size", "format", "operation", "checksum", "ratio", "verdict"]
    return pd.DataFrame(found, columns=columns)


def checksum_of(name: str) -> str:
    """Return the checksum of a format in words. CRC-32 is slower than CRC-32C."""
    fmt = FORMATS.get(name)
    return fmt.checksum.algorithm if fmt and fmt.checksum else "no known checksum"


def checks(runs: Runs) -> pd.DataFrame:
    """Return the noise checks of the manifest, with their limits and verdicts. Manifests of older runs have none."""
    hosts = (runs.manifests["run"].get("noise") or {}).get("hosts", {})
    found = []
    for host, of_host in hosts.items():
        for check in of_host:
            name = check["name"]
            verdict = "passed" if check["passed"] else "NO"
            if (goal := check.get("goal")) is not None:
                verdict += f"; {_amount(name, goal)} {'met' if check['met'] else 'not met'}"
            limit = f"{'≥' if check['at_least'] else '≤'} {_amount(name, check['limit'])}"
            found.append((host, name, _amount(name, check["seen"]), limit, verdict))
    return pd.DataFrame(found, columns=["host", "check", "seen", "limit", "verdict"])


def _amount(name: str, value: float) -> str:
    return percent(value, 1) if any(word in name for word in IN_PERCENT) else f"{value:.3f}"
