"""The timed broker paths of one run (such as append or compact): their arms, ratios and work.

All formats of one path were timed in the same interleaved rounds. So their ratios are computed per round and have an
interval. Two different paths were timed in different rounds. So only their medians are compared, and only on one host.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, Final, NamedTuple

import pandas as pd

from kfbench.formats import BASE_FORMAT
from kfbench.measure.paths import PATHS, Path
from kfbench.report.data.arms import Arm, Band, arms_of, middle_95, one_per_arm, paired
from kfbench.report.data.axes import AXES, GRID, level, setting
from kfbench.report.data.results import Results
from kfbench.report.data.shown_formats import in_order
from kfbench.tables import Cell, Column, Interval, listed

GIB: Final = 1 << 30
APPEND: Final = "append"
CONVERSION: Final = "convert"
APPEND_CONVERSION: Final = "append-convert"
# Column with a number of batches -> its word in reports. The words are those of kfbench.broker.work.
WORK: Final = {
    "batches_untouched": "untouched",
    "batches_in_place": "in place",
    "batches_shifted": "shifted",
    "batches_rewritten": "rewritten",
    "batches_dropped": "dropped",
}
ZERO_COPY: Final = "zero-copy"


class Key(NamedTuple):
    """The key of a measurement of a broker path. The base and its second timing (A/A) have the same key."""

    cell_id: str
    with_codec: str
    operation: str
    format: str
    to_format: str


class Paths:
    """The measurements of broker paths in one run.

    Args:
        arms: all measurements, sorted by workload, codec, target format and format. Failures and skipped combinations
            are included, second timings of a base (A/A) are not.
        again: the second timings of the bases (A/A).
        stored: the stored rows.
        axes: the axes for which any workload has a value.
        one_host: True if all times were measured on the same host.
    """

    def __init__(self, results: Results) -> None:
        self.stored = results.all[results.all["kind"] == "broker"]
        is_timed = (self.stored["status"] == "ok") & (self.stored["arm"] != "aa")
        self.one_host = bool(self.stored.loc[is_timed, "host"].nunique() == 1)
        self.axes = [axis for axis in results.axes if self.stored[axis].notna().any()]
        rows = one_per_arm(self.stored)
        arms = arms_of(self._sorted(rows))
        self.arms = [arm for arm in arms if not arm.is_aa]
        self.again = [arm for arm in arms if arm.is_aa and arm.is_ok]
        self._by_key = {self._key(arm): arm for arm in self.arms if arm.is_ok}
        self._rows = rows[(rows["arm"] != "aa") & (rows["status"] == "ok") & (rows["workload"] == GRID)]
        self._results = results
        self._ratios: dict[tuple[Arm, Arm], Interval] = {}
        self._references: dict[str, str] = {}

    def _sorted(self, rows: pd.DataFrame) -> pd.DataFrame:
        targets = rows["to_format"].fillna("").astype(str)
        formats = {name: i for i, name in enumerate(in_order([*rows["format"], *targets]))}
        order = pd.DataFrame(
            {
                **{axis: rows[axis].astype(str) if axis == "payload" else rows[axis] for axis in self.axes},
                "packed": rows["codec"] != "none",
                "codec": rows["with_codec"],
                "to": targets.map(formats),
                "format": rows["format"].map(formats),
            }
        )
        return rows.loc[order.sort_values(list(order.columns), kind="stable").index]

    @staticmethod
    def _key(arm: Arm) -> Key:
        return Key(arm.cell_id, arm.with_codec, arm.operation, arm.format, arm.to_format)

    def of(self, *operations: str) -> list[Arm]:
        """Return the measurements of these paths, in the order of `arms`."""
        return [arm for arm in self.arms if arm.operation in operations]

    def shown(self, *operations: str) -> list[Arm]:
        """Return the measurements of these paths on the workload setting that the report shows.

        It is the setting nearest to the grid's defaults.
        """
        return [arm for arm in self.of(*operations) if arm.cell_id == self.reference(arm.operation)]

    def reference(self, operation: str) -> str:
        """Return the cell_id of the measured workload setting of this path that is nearest to the grid's defaults."""
        if operation not in self._references:
            on_grid = self._results.nearest(self._rows[self._rows["operation"] == operation])
            arms = self.of(operation)
            measured = [arm for arm in arms if arm.is_ok] or arms
            self._references[operation] = on_grid["cell_id"].iloc[0] if len(on_grid) else measured[0].cell_id
        return self._references[operation]

    @cached_property
    def operations(self) -> list[str]:
        """The names of the broker paths of this run. Known paths (PATHS) come first, in their order."""
        names = sorted({arm.operation for arm in self.arms} - {""})
        return [name for name in PATHS if name in names] + [name for name in names if name not in PATHS]

    @cached_property
    def formats(self) -> list[str]:
        return in_order(arm.format for arm in self.arms)

    def within(self, section: str) -> list[str]:
        """Return the names of the broker paths in one section of the report."""
        return [name for name in self.operations if path_of(name).section == section]

    def setting(self, operation: str) -> str:
        """Return a description of the workload that the report shows for this path."""
        arm = self.shown(operation)[0]
        return arm.workload if arm.workload != GRID else setting({axis: arm.point[axis] for axis in self.axes})

    @cached_property
    def noise(self) -> Band | None:
        """The middle 95 % of the ratios of a base to itself (A/A)."""
        pairs = ((arm, self._by_key.get(self._key(arm))) for arm in self.again)
        return middle_95([self.paired(arm, base).median for arm, base in pairs if base is not None])

    def paired(self, arm: Arm, base: Arm) -> Interval:
        """Divide the CPU times of two measurements in each round. Return the median ratio and its interval."""
        if (arm, base) not in self._ratios:
            self._ratios[arm, base] = paired(arm, base)
        return self._ratios[arm, base]

    def ratio(self, arm: Arm) -> Interval | None:
        """Return the CPU time of a measurement relative to v2 on the same path, with its interval; None without v2."""
        base = self.find(arm.cell_id, arm.with_codec, arm.operation, BASE_FORMAT, arm.to_format)
        if base is None or not arm.is_ok:
            return None
        return Interval(median=1.0, low=1.0, high=1.0) if arm.format == BASE_FORMAT else self.paired(arm, base)

    def to_append(self, arm: Arm) -> float | None:
        """Return the median CPU time per record relative to v2's append.

        Return None if that append was not measured, or if the run has times of several hosts.
        """
        base = self.find(arm.cell_id, arm.with_codec, APPEND, BASE_FORMAT)
        if base is None or not arm.is_ok or not self.one_host:
            return None
        return arm.ns_per_record / base.ns_per_record

    def find(self, cell_id: str, with_codec: str, operation: str, name: str, to_format: str = "") -> Arm | None:
        """Return the successful measurement with this key; None if there is none."""
        return self._by_key.get(Key(cell_id, with_codec, operation, name, to_format))

    def against(self, name: str, base: str, operation: str = APPEND) -> Iterator[tuple[Arm, Arm]]:
        """Yield pairs of measurements: format `name` and format `base` on the same workload setting and codec.

        Measurements that convert to another format are left out.
        """
        for arm in self.of(operation):
            if arm.format == name and not arm.to_format and arm.is_ok:
                other = self.find(arm.cell_id, arm.with_codec, operation, base)
                if other is not None:
                    yield arm, other

    def axes_of(self, arms: Sequence[Arm]) -> list[str]:
        """Return the axes that have different values in these measurements.

        The first item is "workload" if the workloads differ.
        """
        varied = [axis for axis in self.axes if len({arm.point[axis] for arm in arms} - {None}) > 1]
        return ["workload", *varied] if len({arm.workload for arm in arms}) > 1 else varied


def path_of(operation: str) -> Path:
    """Return the broker path with this name. For an unknown name, return a path that has the name as its title.

    The section of an unknown path is that of the path named by its first word, or else that of compact.
    """
    if operation in PATHS:
        return PATHS[operation]
    kin = PATHS.get(operation.partition("-")[0], PATHS["compact"])
    return replace(kin, title=operation.replace("-", " ").capitalize())


def key_columns(axes: Sequence[str]) -> tuple[Column, ...]:
    """Return the table columns that identify a workload setting and its codec."""
    return (*(AXES.get(axis) or Column(name=axis) for axis in axes), Column(name="codec"))


def key_cells(axes: Sequence[str], arm: Arm) -> tuple[Cell, ...]:
    values: list[Any] = [arm.workload if axis == "workload" else arm.point[axis] for axis in axes]
    return (
        *(None if value is None else level(axis, value) for axis, value in zip(axes, values, strict=True)),
        arm.with_codec,
    )


def s_per_gib(arm: Arm) -> float:
    """Return the CPU seconds per GiB of the input log."""
    return arm.ns_per_record * arm.records / 1e9 / arm.source_bytes * GIB


def growth(arm: Arm) -> float:
    """Return the size of the output relative to the input, in bytes."""
    return arm.size_bytes / arm.source_bytes


def work_words(arm: Arm) -> str:
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


def works_words(arms: Sequence[Arm]) -> str:
    return listed(list(dict.fromkeys(map(work_words, arms))))


def written_per_batch(arm: Arm) -> float:
    batches = sum(count for name in WORK if (count := getattr(arm, name)) > 0)
    return arm.written_bytes / batches if batches else 0.0
