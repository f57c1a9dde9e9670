"""The rows of a run for tables: selected by a declaration, joined to arms, divided by a base.

An arm has one row: copies of several blocks of the sweep count once, and seeds are joined (`kfbench.present.arms`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np
import pandas as pd

from kfbench.formats import RESEARCH
from kfbench.measure.cpu import Interval, paired_ratio
from kfbench.measure.kinds import REMOVED_KINDS
from kfbench.measure.kinds.floor import FLOOR
from kfbench.measure.schema import ARM, WORKLOAD_COLUMNS
from kfbench.present.arms import StoredArm, arms_of, keys, one_per_arm
from kfbench.present.names import GRID, REFERENCE, codecs_of
from kfbench.present.table import Cell
from kfbench.workloads.catalogue import DEFAULT

Where = Mapping[str, Any]
AA: Final = "aa"  # the value of `arm` for the second timing of the base
NULL: Final = "null"  # in a declaration: the rows that have no value
_AXES: Final = {column.name: None for column in WORKLOAD_COLUMNS}.keys()


class UnknownColumn(KeyError):
    """A declaration names a column that rows do not have."""


OWN: Final = "run"  # the report's own run among the manifests


@dataclass(frozen=True, kw_only=True)
class Runs:
    """The runs of a report: its own, and those of other profiles that it joins.

    Args:
        own: the rows of the report's run.
        joined: profile -> the rows of its newest run; the report's own if it has the profile's kind.
        manifests: profile -> the manifest of that run; OWN for the report's own.
    """

    own: "Rows"
    joined: Mapping[str, "Rows"]
    manifests: Mapping[str, Mapping[str, Any]]


class Rows:
    """The stored rows of one run, with the columns that declarations need. Rows of removed kinds are left out.

    Added columns: `label` (the workload with its variant), `population` ("grid" or "named"), `research` (True for
    formats of `kfbench.research`), and `variant` without nulls. The rows of kind floor have the format "floor".

    Args:
        every: all stored rows.
        rows: those rows without CPU times of other hosts than the one that timed most cells.
        left_out: the CPU times of other hosts.
    """

    def __init__(self, measurements: pd.DataFrame) -> None:
        measurements = measurements[~measurements["kind"].isin(list(REMOVED_KINDS))]
        self.every = measurements
        elsewhere = is_elsewhere(measurements)
        self.left_out = measurements[elsewhere]
        rows = measurements[~elsewhere]
        variant = rows["variant"].fillna(DEFAULT).astype(str)
        workload = rows["workload"].astype(str)
        self.rows = rows.assign(
            variant=variant,
            label=workload.where(variant == DEFAULT, workload + "/" + variant),
            population=np.where(workload == GRID, GRID, "named"),
            research=rows["format"].isin(RESEARCH),
            format=rows["format"].where(rows["kind"] != FLOOR, FLOOR),
            with_codec=codecs_of(rows),
        )
        self._ratios: dict[tuple[Any, ...], Interval] = {}

    @cached_property
    def kinds(self) -> set[str]:
        return set(self.rows["kind"])

    def select(self, where: Where) -> pd.DataFrame:
        """Return the stored rows with these values. A list means one of its items, NULL a missing value.

        Second timings of a base (A/A) are left out unless `where` has `arm`, failures unless it has `status`.
        """
        rows = self.rows
        for name, wanted in {"status": "ok", **where}.items():
            if name not in rows:
                raise UnknownColumn(name)
            if wanted == "any":
                continue
            rows = rows[matches(rows[name], wanted)]
        return rows if "arm" in where else rows[rows["arm"].fillna("") != AA]

    def arms(self, where: Where) -> pd.DataFrame:
        """Return the selected rows, one per arm."""
        rows = self.select(where)
        return one_per_arm(rows) if len(rows) else rows

    def typed(self, where: Where) -> list[StoredArm]:
        """Return the selected arms as typed rows."""
        return arms_of(self.arms(where))

    def bases(self, arms: pd.DataFrame, where: Where, base: Where) -> list[int | None]:
        """Return, for each arm, the position in `based(where, base)` of the arm that it is divided by.

        Both differ in the columns of `base` only. With an axis among them, such as the batch size, cells differ, too.
        """
        names = [name for name in ARM if name not in ("seed", "arm", "codec", "level")]
        if base.keys() & _AXES:
            names = [name for name in (*names, *_AXES, "workload", "variant") if name != "cell_id"]
        same = [name for name in (*names, "with_codec") if name not in base]
        places = {key: place for place, key in enumerate(keys(self.based(where, base), same))}
        return [places.get(key) for key in keys(arms, same)]

    def based(self, where: Where, base: Where) -> pd.DataFrame:
        """Return the arms of a base: those of `where`, with the values of `base` in its columns."""
        return self.arms({**{name: value for name, value in where.items() if name != "arm"}, **base})

    def time_ratio(self, arm: pd.Series, base: pd.Series) -> Interval:
        """Return the CPU time of an arm divided by that of its base, round by round, with its interval."""
        key = tuple(str(each[name]) for each in (arm, base) for name in ARM)
        if key not in self._ratios:
            ns, base_ns = (np.asarray(each["cpu_ns"], np.float64) / each["inner_loops"] for each in (arm, base))
            self._ratios[key] = paired_ratio(ns, base_ns).widened(arm["spread"])
        return self._ratios[key]


def is_elsewhere(rows: pd.DataFrame) -> pd.Series:
    """Return a mask: True for CPU times of other hosts than the one that timed most workload settings (cells).

    Times of two machines must not be compared, and their noise says nothing about each other. Sizes and the counters of
    broker paths are the same on all hosts, so their rows stay. Failures stay, too.
    """
    timed = rows["cpu_ns"].notna() & (rows["kind"] != "broker") & rows["host"].notna() & (rows["status"] == "ok")
    cells = rows[timed].groupby("host")["cell_id"].nunique().sort_index()
    return timed & (rows["host"] != cells.idxmax()) if len(cells) > 1 else timed & False


def matches(column: "pd.Series[Any]", wanted: Any) -> "pd.Series[bool]":
    """Return a mask: True for rows with a wanted value. A list means one of its items, NULL a missing value."""
    values = wanted if isinstance(wanted, list) else [wanted]
    return column.isin(values) | (column.isna() & (NULL in values))


def at_reference(where: Where, free: Sequence[str]) -> Where:
    """Add the grid's default of each axis that is neither in `where` nor in `free`."""
    return {**{axis: value for axis, value in REFERENCE.items() if axis not in free}, **where}


def as_cell(value: Any) -> Cell:
    """Convert a value of a data frame to a cell of a table. NaN becomes None; an Interval is not changed."""
    if isinstance(value, str | bool | Interval):
        return value
    if value is None or pd.isna(value):
        return None
    return float(value)


def run_date(manifest: Mapping[str, Any]) -> str:
    """Return the day on which a run's measurements started (YYYY-MM-DD)."""
    return str(manifest["started"])[:10]


def run_words(manifest: Mapping[str, Any]) -> str:
    """Return when and on which machine a run was measured, and its noise."""
    machine = machine_words(manifest["environment"])
    return f"Measured {run_date(manifest)} on {machine}. {noise_state(manifest)}."


def machine_words(environment: Mapping[str, Any]) -> str:
    """Return the processor with its model, such as "AMD EPYC (family 26, model 2)": many models have one name."""
    name, model = environment.get("cpu") or environment.get("machine"), environment.get("cpu_model")
    return f"{name} ({model})" if model else str(name)


def noise_state(manifest: Mapping[str, Any]) -> str:
    """Return the state of a run, such as "Quiet run: 7 of 7 noise checks passed"; without checks, what was seen."""
    facts = manifest.get("noise")
    if not facts:
        return "Noise not checked"
    passed = [check["passed"] for checks in facts["hosts"].values() for check in checks]
    state = "Noisy run" if facts["noisy"] else "Quiet run"
    words = [f"{sum(passed)} of {len(passed)} noise checks passed"] if passed else facts["seen"]
    return ": ".join([state, *words])


def failed_checks(manifest: Mapping[str, Any]) -> Sequence[str]:
    """Return the failed noise checks of a run as sentences."""
    facts = manifest.get("noise") or {}
    return facts["seen"] if facts.get("noisy") else []
