"""Arms: one row per format, codec and operation of a cell, joined from its rows of all blocks and seeds.

A cell has a copy of its rows in each block that names it. A cell with several seeds was measured on other records of
the
same workload for each seed. Its bytes are added up. Its CPU rounds are concatenated, and each round is scaled to the
records of all seeds. All arms of a cell have the same seeds, so a ratio compares the same records.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, Final, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from kfbench.measure.cpu import paired_ratio
from kfbench.measure.schema import ARM, IDENTITY, WORKLOAD_COLUMNS, counts_text
from kfbench.report.data.capability import in_words
from kfbench.report.data.words import codecs_of
from kfbench.tables import Interval
from kfbench.workloads.catalogue import DEFAULT

CPU_DIGITS: Final = 2  # printed decimals of a ratio of CPU times
COLD: Final = "cold"
SUMMED: Final = (
    "records", "batches", "size_bytes", "payload_bytes", "overhead_bytes", "compressed_bytes", "plain_bytes",
    "metadata_bytes", "source_bytes", "batches_untouched", "batches_in_place", "batches_shifted", "batches_rewritten",
    "batches_dropped", "converted_records", "read_bytes", "written_bytes", "decompressed_bytes", "recompressed_bytes",
    "generate_ns",
)  # fmt: skip
LARGEST: Final = ("extra_bytes", "resident_bytes")
COUNTS: Final = ("losses", "field_bytes")
SAMPLES: Final = ("cpu_ns", "wall_ns")


@dataclass(frozen=True, kw_only=True, eq=False)
class Arm:
    """An arm as a typed row. The fields are columns of kfbench.measure.schema.StoredRow.

    An absent number is NaN, and an absent text is empty. `point` has the axes of the workload, None where absent.
    `cpu_ns` has shape [rounds] and is in ns per `inner_loops` calls.
    """

    kind: str
    status: str
    error: str
    cell_id: str
    workload: str
    variant: str
    format: str
    codec: str
    level: float
    with_codec: str  # codec and level in words
    to_format: str
    operation: str
    arm: str
    host: str
    cache: str
    losses: str
    field_bytes: str
    records: float
    batches: float
    size_bytes: float
    payload_bytes: float
    compressed_bytes: float
    plain_bytes: float
    metadata_bytes: float
    source_bytes: float
    batches_untouched: float
    batches_in_place: float
    batches_shifted: float
    batches_rewritten: float
    batches_dropped: float
    read_bytes: float
    written_bytes: float
    decompressed_bytes: float
    recompressed_bytes: float
    extra_bytes: float
    rotated_bytes: float
    inner_loops: float
    cpu_ns: NDArray[np.float64]
    point: Mapping[str, Any]

    @property
    def is_ok(self) -> bool:
        return self.status == "ok"

    @property
    def is_aa(self) -> bool:
        """True for the A/A arm, which measures the base a second time."""
        return self.arm == "aa"

    @property
    def label(self) -> str:
        """The workload, with its variant if it has one."""
        return self.workload if self.variant == DEFAULT else f"{self.workload}/{self.variant}"

    @cached_property
    def ns_per_call(self) -> NDArray[np.float64]:
        """CPU time per call in each round, in ns."""
        per_call: NDArray[np.float64] = self.cpu_ns / self.inner_loops
        return per_call

    @property
    def ns_per_record(self) -> float:
        """Median CPU time per record, in ns."""
        return float(np.median(self.ns_per_call)) / self.records

    @property
    def lost(self) -> tuple[str, ...]:
        """The fields that the format could not keep, in words."""
        return lost_of(self.losses)


_POINT: Final = tuple(column.name for column in WORKLOAD_COLUMNS)
_TYPES: Final = {each.name: each.type for each in fields(Arm) if each.name != "point"}


def arms_of(rows: pd.DataFrame) -> list[Arm]:
    """Return the rows of `one_per_arm` as typed rows, in their order."""
    columns: dict[str, list[Any]] = {}
    for name, type_ in _TYPES.items():
        if type_ is str:
            columns[name] = rows[name].astype("object").where(rows[name].notna(), "").tolist()
        elif type_ is float:
            columns[name] = rows[name].astype("float64").tolist()
        else:
            columns[name] = [np.asarray(() if ns is None else ns, np.float64) for ns in rows[name]]
    axes = [name for name in _POINT if name in rows]
    values = [rows[axis].astype("object").where(rows[axis].notna(), None).tolist() for axis in axes]
    columns["point"] = [dict(zip(axes, point, strict=True)) for point in zip(*values, strict=True)]
    return [Arm(**dict(zip(columns, row, strict=True))) for row in zip(*columns.values(), strict=True)]


def one_per_arm(rows: pd.DataFrame, *, by_block: bool = False) -> pd.DataFrame:
    """Join the stored rows of each arm. by_block: keep the blocks apart.

    `seed` is the first seed, and `with_codec` is the codec in words. A seed that some arms of a cell lack (because of a
    failure) is left out. If most arms have that seed, the arms without it are left out instead. A failure stays if its
    arm has
    no number.
    """
    rows = rows if by_block else first_of_blocks(rows)
    rows = _join_seeds(rows, [name for name in (IDENTITY if by_block else ARM) if name != "seed"])
    return rows.assign(variant=rows["variant"].fillna(DEFAULT).astype(str), with_codec=codecs_of(rows))


def first_of_blocks(rows: pd.DataFrame) -> pd.DataFrame:
    """Return each arm of each seed once, from any of its blocks. A number is taken before a failure."""
    numbers_first = (rows["status"] != "ok").sort_values(kind="stable").index
    return rows.loc[numbers_first].drop_duplicates(list(ARM)).sort_index()


def _join_seeds(rows: pd.DataFrame, names: list[str]) -> pd.DataFrame:
    has_seeds = rows.groupby("cell_id")["seed"].transform("nunique") > 1
    if not has_seeds.any():
        return rows
    of_seeds = rows[has_seeds].sort_values("seed", kind="stable")
    is_ok = of_seeds["status"] == "ok"
    joined = _joined(_of_the_same_seeds(of_seeds[is_ok], names), names)
    failures = of_seeds[~is_ok].drop_duplicates(names)
    known = set(_keys(joined, names))
    failures = failures[[key not in known for key in _keys(failures, names)]]
    return pd.concat([part for part in (rows[~has_seeds], joined, failures) if len(part)]).sort_index()


def _keys(rows: pd.DataFrame, names: list[str]) -> list[tuple[Any, ...]]:
    columns = (rows[name].astype("object").where(rows[name].notna(), None) for name in names)
    return list(zip(*columns, strict=True))


def _of_the_same_seeds(rows: pd.DataFrame, names: list[str]) -> pd.DataFrame:
    cell = [name for name in names if name not in ("format", "arm")]
    arms = rows.groupby([*cell, "seed"], dropna=False)["status"].transform("size")
    rows = rows.assign(arms=arms)
    rows = rows[rows["arms"] == rows.groupby(cell, dropna=False)["arms"].transform("max")].drop(columns="arms")
    seeds = rows.groupby(cell, dropna=False)["seed"].transform("nunique")
    return rows[rows.groupby(names, dropna=False)["seed"].transform("nunique") == seeds]


def _joined(rows: pd.DataFrame, names: list[str]) -> pd.DataFrame:
    groups = rows.groupby(names, dropna=False, sort=False)
    is_first = groups.cumcount() == 0
    joined = rows[is_first].copy()
    for name in SUMMED:
        joined[name] = groups[name].transform("sum", min_count=1)[is_first]
    for name in LARGEST:
        joined[name] = groups[name].transform("max")[is_first]
    arms = groups.ngroup().to_numpy()
    for name in COUNTS:
        joined[name] = _by_arm(arms, rows[name], _sum_counts)
    factors = (groups["records"].transform("sum") / rows["records"] / rows["inner_loops"]).to_numpy()
    for name in SAMPLES:
        samples = [
            None if ns is None else np.asarray(ns, np.float64) * factor
            for ns, factor in zip(rows[name], factors, strict=True)
        ]
        joined[name] = _by_arm(arms, samples, np.concatenate)
    joined["inner_loops"] = joined["inner_loops"].where(joined["inner_loops"].isna(), 1)
    return joined


def _by_arm(arms: Iterable[int], values: Iterable[Any], join: Callable[[list[Any]], Any]) -> list[Any]:
    """Join the values of each arm, in the order of their first rows; None for an arm without values."""
    of_arms: dict[int, list[Any]] = {}
    for arm, value in zip(arms, values, strict=True):
        of_arm = of_arms.setdefault(arm, [])
        if value is not None:
            of_arm.append(value)
    return [join(of_arm) if of_arm else None for of_arm in of_arms.values()]


def _sum_counts(texts: Iterable[str]) -> str:
    total = Counter[str]()
    for text in texts:
        total.update(json.loads(text))
    return counts_text(total)


def lost_of(losses: str | None) -> tuple[str, ...]:
    """Return the fields of the column `losses` in words."""
    counts: dict[str, int] = json.loads(losses) if isinstance(losses, str) and losses else {}
    return in_words(name for name, count in counts.items() if count)


def interval_of(arm_ns: NDArray[np.float64], base_ns: NDArray[np.float64]) -> Interval:
    """Return the ratio of two arms' times, round by round."""
    median, low, high = paired_ratio(arm_ns, base_ns, seed=0)
    return Interval(median=median, low=low, high=high)


def paired(arm: Arm, base: Arm) -> Interval:
    """Return the ratio of CPU times of two arms of one measurement, round by round."""
    return interval_of(arm.ns_per_call, base.ns_per_call)


class Band(NamedTuple):
    """The ends of a range of ratios."""

    low: float
    high: float


def middle_95(medians: Sequence[float]) -> Band | None:
    """Return the middle 95 % of the ratios of an A/A arm, widened to hold 1; None without a ratio."""
    if not medians:
        return None
    low, high = np.percentile(medians, [2.5, 97.5])
    return Band(float(min(low, 1.0)), float(max(high, 1.0)))


def ties(ratio: Interval, noise: Band | None) -> bool:
    """Return True if a ratio cannot be told from 1: its interval holds 1, or reaches into the noise.

    The comparison uses the printed digits, so that a reader of the numbers gets the same result.
    """
    low, high = (round(end, CPU_DIGITS) for end in noise or (1.0, 1.0))
    return round(ratio.high, CPU_DIGITS) >= low and round(ratio.low, CPU_DIGITS) <= high
