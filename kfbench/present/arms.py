"""Join stored rows to arms. An arm is the measurement of one format, codec and operation in one cell.

A cell is a workload with one value for each axis. The run stores a copy of its rows for each block of the sweep that
names the cell. A cell with several seeds has rows for each seed, measured on different records. Numbers of bytes are
added over the seeds. CPU rounds of the seeds are concatenated, and each round is scaled to the records of all seeds.
All arms of a cell have the same seeds, so a ratio compares the same records.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from kfbench.measure.columns import counts_text
from kfbench.measure.cpu import Interval, paired_ratio
from kfbench.measure.schema import ARM, WORKLOAD_COLUMNS
from kfbench.present.names import codecs_of, in_words
from kfbench.present.table import Band
from kfbench.workloads.catalogue import DEFAULT

CPU_DIGITS: Final = 2  # printed decimals of a ratio of CPU times
SUMMED: Final = (
    "records", "batches", "size_bytes", "payload_bytes", "overhead_bytes", "compressed_bytes", "plain_bytes",
    "metadata_bytes", "source_bytes", "batches_untouched", "batches_in_place", "batches_shifted", "batches_rewritten",
    "batches_dropped", "converted_records", "read_bytes", "written_bytes", "decompressed_bytes", "recompressed_bytes",
    "generate_ns",
)  # fmt: skip
LARGEST: Final = ("extra_bytes", "resident_bytes")
COUNTS: Final = ("losses", "field_bytes")
SAMPLES: Final = ("cpu_ns", "wall_ns")
# Column with a number of batches -> its word in reports. The words are those of kfbench.broker.work.
WORK: Final = {
    "batches_untouched": "untouched",
    "batches_in_place": "in place",
    "batches_shifted": "shifted",
    "batches_rewritten": "rewritten",
    "batches_dropped": "dropped",
}
ZERO_COPY: Final = "zero-copy"


@dataclass(frozen=True, kw_only=True, eq=False)
class StoredArm:
    """One measurement as a typed row: a format, codec and operation on one workload setting.

    The fields are columns of `kfbench.measure.schema.StoredRow`. A missing number is NaN, and a missing text is empty.

    Args:
        cpu_ns: float64[rounds], the CPU time of `inner_loops` calls in ns.
        spread: the spread between arms, which widens the intervals of its ratios.
        point: axis of the workload -> its value, None if it has none.
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
    inner_loops: float
    spread: float
    cpu_ns: NDArray[np.float64]
    point: Mapping[str, Any]

    @property
    def is_ok(self) -> bool:
        return self.status == "ok"

    @property
    def is_aa(self) -> bool:
        """True if this is the second timing of the base (A/A), which only shows the noise."""
        return self.arm == "aa"

    @property
    def label(self) -> str:
        """The name of the workload, followed by its variant if it is not the default variant."""
        return self.workload if self.variant == DEFAULT else f"{self.workload}/{self.variant}"

    @cached_property
    def ns_per_call(self) -> NDArray[np.float64]:
        """The CPU time per call in ns, float64[rounds]."""
        per_call: NDArray[np.float64] = self.cpu_ns / self.inner_loops
        return per_call

    @property
    def ns_per_record(self) -> float:
        """The median CPU time per record in ns."""
        return float(np.median(self.ns_per_call)) / self.records

    @property
    def lost(self) -> tuple[str, ...]:
        """The fields that the format could not carry, in words."""
        return lost_of(self.losses)


_POINT: Final = tuple(column.name for column in WORKLOAD_COLUMNS)
_TYPES: Final = {each.name: each.type for each in fields(StoredArm) if each.name != "point"}


def arms_of(rows: pd.DataFrame) -> list[StoredArm]:
    """Convert a frame of `one_per_arm` to typed rows, in the same order."""
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
    return [StoredArm(**dict(zip(columns, row, strict=True))) for row in zip(*columns.values(), strict=True)]


def one_per_arm(rows: pd.DataFrame) -> pd.DataFrame:
    """Join the stored rows of each arm to one row, over all blocks of the sweep and all seeds.

    The result has two special columns: `seed` is the first seed, and `with_codec` is codec and level in words. If some
    measurements failed for some seeds, only the seeds with the most arms are joined. An arm that lacks one of these
    seeds is left out. The row of a failure stays if its arm has no number.
    """
    # Of the copies in several blocks one counts, a number rather than a failure.
    numbers_first = (rows["status"] != "ok").sort_values(kind="stable").index
    rows = rows.loc[numbers_first].drop_duplicates(list(ARM)).sort_index()
    rows = _join_seeds(rows, [name for name in ARM if name != "seed"])
    return rows.assign(variant=rows["variant"].fillna(DEFAULT).astype(str), with_codec=codecs_of(rows))


def _join_seeds(rows: pd.DataFrame, names: list[str]) -> pd.DataFrame:
    has_seeds = rows.groupby("cell_id")["seed"].transform("nunique") > 1
    if not has_seeds.any():
        return rows
    of_seeds = rows[has_seeds].sort_values("seed", kind="stable")
    is_ok = of_seeds["status"] == "ok"
    joined = _join_rows(_of_the_same_seeds(of_seeds[is_ok], names), names)
    failures = of_seeds[~is_ok].drop_duplicates(names)
    known = set(keys(joined, names))
    failures = failures[[key not in known for key in keys(failures, names)]]
    return pd.concat([part for part in (rows[~has_seeds], joined, failures) if len(part)]).sort_index()


def keys(rows: pd.DataFrame, names: Iterable[str]) -> list[tuple[Any, ...]]:
    """Return the values of some columns as a tuple per row. All missing values are equal."""
    columns = [rows[name].astype("object").where(rows[name].notna(), None) for name in names]
    return list(zip(*columns, strict=True)) if columns else [()] * len(rows)


def _of_the_same_seeds(rows: pd.DataFrame, names: list[str]) -> pd.DataFrame:
    cell = [name for name in names if name not in ("format", "arm")]
    arms = rows.groupby([*cell, "seed"], dropna=False)["status"].transform("size")
    rows = rows.assign(arms=arms)
    rows = rows[rows["arms"] == rows.groupby(cell, dropna=False)["arms"].transform("max")].drop(columns="arms")
    seeds = rows.groupby(cell, dropna=False)["seed"].transform("nunique")
    return rows[rows.groupby(names, dropna=False)["seed"].transform("nunique") == seeds]


def _join_rows(rows: pd.DataFrame, names: list[str]) -> pd.DataFrame:
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
    """Join all values of an arm to one value. The result has one item per arm; None for an arm without values.

    arms: the number of the arm that each value belongs to. Arms are ordered by their first values.
    """
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
    """Return the names of the lost fields in words. losses: a value of the column `losses` (JSON)."""
    counts: dict[str, int] = json.loads(losses) if isinstance(losses, str) and losses else {}
    return in_words(name for name, count in counts.items() if count)


def time_ratio(arm: StoredArm, base: StoredArm) -> Interval:
    """Divide the CPU times of two arms in each round. Return the median ratio and its interval.

    Both must be from the same measurement, so that round i of both ran at the same time.
    """
    return paired_ratio(arm.ns_per_call, base.ns_per_call).widened(arm.spread)


def middle_95(medians: Sequence[float]) -> Band | None:
    """Return the range that contains the middle 95 % of the ratios; None if there are none.

    The ratios are those of the second timing of a base (A/A) to the first. If the range does not contain 1, it is
    extended to 1.
    """
    if not medians:
        return None
    low, high = np.percentile(medians, [2.5, 97.5])
    return Band(float(min(low, 1.0)), float(max(high, 1.0)))


def ties(ratio: Interval, noise: Band | None) -> bool:
    """Return True if a ratio cannot be distinguished from 1.

    That is so if its interval contains 1 or overlaps the noise (the range of the ratios of a base to itself). All
    numbers are rounded as they are printed. So a reader who compares the printed numbers gets the same result.
    """
    low, high = (round(end, CPU_DIGITS) for end in noise or (1.0, 1.0))
    return round(ratio.high, CPU_DIGITS) >= low and round(ratio.low, CPU_DIGITS) <= high


def work_words(arm: StoredArm) -> str:
    """Describe the batches of a path in words: untouched, in place, shifted, rewritten or dropped.

    If batches differ, each word has a percentage. A fetch that changes no batch is "zero-copy". A failed measurement
    gives its status.
    """
    if not arm.is_ok:
        return arm.status
    counts = {word: int(count) for name, word in WORK.items() if (count := getattr(arm, name)) > 0}
    if not counts.keys() - {WORK["batches_untouched"]} and arm.operation.startswith("fetch"):
        return ZERO_COPY  # its batches are only checked, or not read at all
    if len(counts) < 2:
        return next(iter(counts), "nothing")
    total = sum(counts.values())
    return ", ".join(f"{word} {100 * count / total:.0f} %" for word, count in counts.items())
