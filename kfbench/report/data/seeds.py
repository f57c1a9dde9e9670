"""Rows of several blocks and seeds as a report shows them: one row an arm.

A cell that several blocks name has its rows under each of them. One with several seeds was measured on other records of
the same workload each time: its bytes are added up, and its CPU rounds stand one after the other, as many nanoseconds
as the records of all seeds would take. Both are of the same seeds in all arms, so that ratios stay those of the same
records.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any, Final

import numpy as np
import pandas as pd

from kfbench.measure.schema import ARM, IDENTITY, counts_text
from kfbench.report.render.frames import Frame

SUMMED: Final = (
    "records", "batches", "size_bytes", "payload_bytes", "overhead_bytes", "compressed_bytes", "plain_bytes",
    "metadata_bytes", "source_bytes", "batches_untouched", "batches_in_place", "batches_shifted", "batches_rewritten",
    "batches_dropped", "converted_records", "read_bytes", "written_bytes", "decompressed_bytes", "recompressed_bytes",
    "generate_ns",
)  # fmt: skip
LARGEST: Final = ("extra_bytes", "resident_bytes")
COUNTS: Final = ("losses", "field_bytes")
SAMPLES: Final = ("cpu_ns", "wall_ns")


def once(rows: Frame) -> Frame:
    """Every arm once, whichever blocks name its cell; a row that is a number before one that is none."""
    numbers_first = (rows["status"] != "ok").sort_values(kind="stable").index
    return rows.loc[numbers_first].drop_duplicates(list(ARM)).sort_index()


def of_all_seeds(rows: Frame, *, by_block: bool = False) -> Frame:
    """One row an arm (by_block: and block) for its rows of all seeds; `seed` is the first one's.

    rows: each once (`once`; by_block: as stored). Seeds that some arms of a cell lack (a failure) are left out, unless
    most arms have them: then the others are. Rows that are no number stay where their arm has none that is.
    """
    several = rows.groupby("cell_id")["seed"].transform("nunique") > 1
    if not several.any():
        return rows
    names = [name for name in (IDENTITY if by_block else ARM) if name != "seed"]
    apart = rows[several].sort_values("seed", kind="stable")
    is_ok = apart["status"] == "ok"
    merged = _merged(_of_the_same_seeds(apart[is_ok], names), names)
    others = apart[~is_ok].drop_duplicates(names)
    known = set(_keys(merged, names))
    others = others[[key not in known for key in _keys(others, names)]]
    return pd.concat([part for part in (rows[~several], merged, others) if len(part)]).sort_index()


def _keys(rows: Frame, names: list[str]) -> list[tuple[Any, ...]]:
    columns = (rows[name].astype("object").where(rows[name].notna(), None) for name in names)
    return list(zip(*columns, strict=True))


def _of_the_same_seeds(rows: Frame, names: list[str]) -> Frame:
    cell = [name for name in names if name not in ("format", "arm")]
    arms = rows.groupby([*cell, "seed"], dropna=False)["status"].transform("size")
    rows = rows.assign(arms=arms)
    rows = rows[rows["arms"] == rows.groupby(cell, dropna=False)["arms"].transform("max")].drop(columns="arms")
    seeds = rows.groupby(cell, dropna=False)["seed"].transform("nunique")
    return rows[rows.groupby(names, dropna=False)["seed"].transform("nunique") == seeds]


def _merged(rows: Frame, names: list[str]) -> Frame:
    groups = rows.groupby(names, dropna=False, sort=False)
    is_first = groups.cumcount() == 0
    merged = rows[is_first].copy()
    for name in SUMMED:
        merged[name] = groups[name].transform("sum", min_count=1)[is_first]
    for name in LARGEST:
        merged[name] = groups[name].transform("max")[is_first]
    arms = groups.ngroup().to_numpy()
    for name in COUNTS:
        merged[name] = _joined(arms, rows[name], _counts)
    of_all = (groups["records"].transform("sum") / rows["records"] / rows["inner_loops"]).to_numpy()
    for name in SAMPLES:
        samples = [
            None if ns is None else np.asarray(ns, np.float64) * by for ns, by in zip(rows[name], of_all, strict=True)
        ]
        merged[name] = _joined(arms, samples, np.concatenate)
    merged["inner_loops"] = merged["inner_loops"].where(merged["inner_loops"].isna(), 1)
    return merged


def _joined(arms: Iterable[int], values: Iterable[Any], join: Callable[[list[Any]], Any]) -> list[Any]:
    """Of each arm, in the order of their first rows, all that is there; None where nothing is."""
    found: dict[int, list[Any]] = {}
    for arm, value in zip(arms, values, strict=True):
        of_arm = found.setdefault(arm, [])
        if value is not None:
            of_arm.append(value)
    return [join(each) if each else None for each in found.values()]


def _counts(texts: Iterable[str]) -> str:
    found = Counter[str]()
    for text in texts:
        found.update(json.loads(text))
    return counts_text(found)
