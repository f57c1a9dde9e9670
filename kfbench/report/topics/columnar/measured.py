"""The measurements of columnar, this project's research format, compared with v2, v3 and headers-first.

Only the section about columnar shows these rows. The other sections are about formats of Kafka and of its proposals.
"""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from statistics import geometric_mean
from typing import Any, Final, NamedTuple

import pandas as pd

from kfbench.formats import BASE_FORMAT
from kfbench.measure.cpu import OPERATIONS
from kfbench.measure.floor import FLOOR
from kfbench.measure.kinds.cpu import READINGS
from kfbench.report.data.arms import COLD, Arm, Band, arms_of, middle_95, one_per_arm, paired, ties
from kfbench.report.data.axes import AXES, GRID, level
from kfbench.report.data.named import BEST_KNOWN, NONE
from kfbench.report.data.results import Results
from kfbench.report.data.shown_formats import HEADERS_FIRST, NEW, in_order
from kfbench.report.data.words import batch_words
from kfbench.tables import Interval, number

NAME: Final = "columnar"
RIVALS: Final = (BASE_FORMAT, NEW, HEADERS_FIRST)
COMPARED: Final = (NAME, NEW, HEADERS_FIRST)  # the formats in tables, relative to BASE_FORMAT
TIMED: Final = (*OPERATIONS, *READINGS.values())
OWN: Final = 0  # batch size 0 means: the batches that the workload defines
HEADER_PARTS: Final = (
    "batch_header"  # the batch header's part of a breakdown; names of its fields begin with it and a dot
)
PAYLOAD: Final = ("key", "value", "header_key", "header_value")  # parts of a breakdown that are not metadata


class At(NamedTuple):
    """The conditions of a measurement: a workload, a batch size and a codec.

    Args:
        label: the workload in words.
        place: the position of the workload in tables.
        batch: records per batch; OWN: the batches that the workload defines.
        with_codec: codec and level in words.
    """

    label: str
    place: int
    batch: int
    with_codec: str

    @property
    def codec_order(self) -> str:
        """A text to sort by codec. No codec comes first."""
        return "" if self.with_codec == NONE else self.with_codec


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """The bytes per record of each format on one workload under one codec.

    Args:
        of: format -> all bytes per record.
        metadata: format -> bytes per record without keys, values and headers. It also has the metadata floor (a lower
            limit). Empty under a codec.
        columns: the part of `metadata` outside the batch header.
    """

    at: At
    records_per_batch: float
    of: Mapping[str, float]
    metadata: Mapping[str, float]
    columns: Mapping[str, float]

    def ratio(self, name: str, base: str = BASE_FORMAT) -> float | None:
        return self.of[name] / self.of[base] if {name, base} <= self.of.keys() else None

    def metadata_ratio(self, name: str) -> float | None:
        return self.metadata[name] / self.metadata[BASE_FORMAT] if name in self.metadata else None


@dataclass(frozen=True, kw_only=True)
class Times:
    """CPU time ratios of one operation or broker path on one workload, each with an interval.

    of: format -> its ratio to v2. against: other format -> columnar's ratio to it. again: v2's ratio to itself (A/A).
    """

    at: At
    operation: str
    of: Mapping[str, Interval]
    against: Mapping[str, Interval]
    again: Interval | None


@dataclass(frozen=True, kw_only=True)
class Loss:
    """A measurement in which columnar takes more bytes or more CPU time than another format (the rival).

    A tie in CPU time is no loss. what: "bytes" or the operation. ratio: columnar relative to the rival.
    """

    what: str
    at: At
    rival: str
    ratio: float | Interval


class Mean(NamedTuple):
    """The geometric mean of columnar's bytes relative to v2, over workloads, under a codec at one batch size."""

    ratio: float
    labels: frozenset[str]
    codec: str
    batch: int


class Columnar:
    """The rows of one run on all workload settings (cells) for which columnar was measured.

    own_rows: the rows of columnar on named workloads. They select the explanations that the section prints: their
    blocks of the sweep are about columnar. Blocks of the grid are about other formats, too.
    """

    def __init__(self, results: Results) -> None:
        rows = one_per_arm(results.research[results.research["status"] == "ok"])
        rows = rows[rows["cell_id"].isin(rows.loc[rows["format"] == NAME, "cell_id"])]
        self._axes = [axis for axis in results.axes if axis != "batch_size"]
        self.own_rows = rows[(rows["format"] == NAME) & (rows["workload"] != GRID)]
        rows = rows.assign(label=self._labels(rows))
        points = rows.sort_values(["workload", *self._axes, "label"], na_position="first", kind="stable")
        self.places = {str(label): place for place, label in enumerate(points["label"].unique())}
        self._labeled = list(zip(rows["label"].astype(str), arms_of(rows), strict=True))

    def _labels(self, rows: pd.DataFrame) -> pd.Series:
        """Return the name of each row's workload, with its variant.

        For synthetic workloads (the grid), it has the values of the axes that vary, without the batch size.
        """
        is_default = rows["variant"] == "default"
        labels = rows["workload"].where(is_default, rows["workload"] + "/" + rows["variant"]).astype(str)
        on_grid = rows["workload"] == GRID
        grid = rows[on_grid]
        varied = [axis for axis in self._axes if grid[axis].nunique(dropna=False) > 1]
        if varied:
            points = zip(*(grid[axis] for axis in varied), strict=True)
            labels[on_grid] = [f"{GRID}: {_point_words(varied, point)}" for point in points]
        return labels.where(rows["cache"].fillna("") != COLD, labels + ", cold")

    def _at(self, label: str, arm: Arm) -> At:
        return At(label, self.places[label], int(arm.point["batch_size"] or OWN), arm.with_codec)

    @cached_property
    def sizes(self) -> list[Sizes]:
        """The sizes, sorted by batch size, codec and workload. OWN and no codec come first."""
        floors = {arm.cell_id: arm for _, arm in self._labeled if arm.kind == FLOOR}
        cells: dict[At, dict[str, Arm]] = {}
        for label, arm in self._labeled:
            if arm.kind == "bytes":
                cells.setdefault(self._at(label, arm), {})[arm.format] = arm
        found = []
        for at, by in cells.items():
            if not {NAME, BASE_FORMAT} <= by.keys():
                continue
            base, plain = by[BASE_FORMAT], dict(by) if at.with_codec == NONE else {}
            if plain and base.cell_id in floors:
                plain[FLOOR] = floors[base.cell_id]
            metadata = {name: _metadata(arm) for name, arm in plain.items()}
            found.append(
                Sizes(
                    at=at,
                    records_per_batch=base.records / base.batches,
                    of={name: by[name].size_bytes / by[name].records for name in in_order(by)},
                    metadata={name: sum(parts.values()) for name, parts in metadata.items()},
                    columns={name: _columns_bytes(parts) for name, parts in metadata.items()},
                )
            )
        return sorted(found, key=lambda sizes: (sizes.at.batch, sizes.at.codec_order, sizes.at.place))

    @cached_property
    def times(self) -> list[Times]:
        """The CPU times, sorted by operation, codec, workload and batch size.

        Only the host with the most rows counts.
        """
        timed = [
            (label, arm)
            for label, arm in self._labeled
            if arm.kind == "broker" or (arm.kind in ("cpu", *READINGS) and arm.operation in TIMED)
        ]
        hosts = Counter(arm.host for _, arm in timed if arm.host)
        host = min(hosts, key=lambda name: (-hosts[name], name), default="")
        cells: dict[tuple[At, str], dict[tuple[str, str], Arm]] = {}
        for label, arm in timed:
            if arm.host == host:
                cells.setdefault((self._at(label, arm), arm.operation), {})[arm.format, arm.arm] = arm
        found = []
        for (at, operation), arms in cells.items():
            of = {name: arm for (name, which), arm in arms.items() if which == "measure"}
            if not {NAME, BASE_FORMAT} <= of.keys():
                continue
            again = arms.get((BASE_FORMAT, "aa"))
            found.append(
                Times(
                    at=at,
                    operation=operation,
                    of={name: paired(of[name], of[BASE_FORMAT]) for name in in_order(of) if name != BASE_FORMAT},
                    against={name: paired(of[NAME], of[name]) for name in RIVALS if name in of},
                    again=paired(again, of[BASE_FORMAT]) if again is not None else None,
                )
            )
        place = {str(operation): i for i, operation in enumerate(TIMED)}
        return sorted(
            found,
            key=lambda times: (
                place.get(times.operation, len(place)), times.operation, times.at.codec_order, times.at.place,
                times.at.batch,
            ),
        )  # fmt: skip

    @cached_property
    def noise(self) -> Mapping[str, Band]:
        """operation -> the middle 95 % of the ratios of v2 to itself (A/A)."""
        medians = {
            operation: [times.again.median for times in group if times.again is not None]
            for operation, group in groupby(self.times, lambda times: times.operation)
        }
        return {operation: zone for operation, found in medians.items() if (zone := middle_95(found))}

    @cached_property
    def codecs(self) -> list[str]:
        return [codec or NONE for codec in sorted({sizes.at.codec_order for sizes in self.sizes})]

    @cached_property
    def batches(self) -> list[int]:
        """The batch sizes: first OWN, which all workloads have, then the others from the largest down."""
        return sorted({sizes.at.batch for sizes in self.sizes}, key=lambda batch: (batch != OWN, -batch))

    @cached_property
    def pictured_batch(self) -> int:
        """The largest batch size at which every timed operation was timed without a codec.

        If there is none, it is OWN: the batches that the workloads define.
        """
        plain = [times for times in self.times if times.at.with_codec == NONE]
        batches = [{times.at.batch for times in plain if times.operation == operation} for operation in TIMED]
        timed = [each for each in batches if each]
        return max(set.intersection(*timed), default=OWN) if timed else OWN

    def under(self, codec: str, batch: int) -> list[Sizes]:
        return [sizes for sizes in self.sizes if (sizes.at.with_codec, sizes.at.batch) == (codec, batch)]

    @cached_property
    def headline(self) -> Mean | None:
        """The mean under the best known codec, at the batch size of the figures."""
        codec = next((codec for codec in self.codecs if codec.startswith(BEST_KNOWN)), NONE)
        sizes = self.under(codec, self.pictured_batch)
        ratio = mean_ratio(sizes, NAME) if sizes else None
        return (
            None
            if ratio is None
            else Mean(ratio, frozenset(each.at.label for each in sizes), codec, self.pictured_batch)
        )

    def timed(self, operation: str, codec: str) -> list[Times]:
        """Return the times of an operation under a codec, at the batch size of the figures."""
        wanted = operation, codec, self.pictured_batch
        return [times for times in self.times if (times.operation, times.at.with_codec, times.at.batch) == wanted]

    def compared(self, rival: str) -> dict[str, int]:
        """Return the number of measurements in which columnar is compared with another format (the rival).

        The keys are "bytes" and operations.
        """
        counts = Counter({"bytes": sum(sizes.ratio(NAME, rival) is not None for sizes in self.sizes)})
        counts.update(times.operation for times in self.times if rival in times.against)
        return {what: count for what, count in counts.items() if count}

    @cached_property
    def losses(self) -> list[Loss]:
        """The measurements in which columnar takes more bytes or CPU time than another format, first those of bytes.

        A CPU ratio that cannot be distinguished from 1 (`arms.ties`) is not a loss.
        """
        ratios = [(sizes, rival, sizes.ratio(NAME, rival)) for sizes in self.sizes for rival in RIVALS]
        of_bytes = [
            Loss(what="bytes", at=sizes.at, rival=rival, ratio=ratio)
            for sizes, rival, ratio in ratios
            if ratio is not None and ratio > 1
        ]
        of_times = [
            Loss(what=times.operation, at=times.at, rival=rival, ratio=ratio)
            for times in self.times
            for rival, ratio in times.against.items()
            if ratio.median > 1 and not ties(ratio, self.noise.get(times.operation))
        ]
        return [*of_bytes, *of_times]


def _metadata(arm: Arm) -> dict[str, float]:
    """Return the metadata in bytes per record for each part of the breakdown."""
    parts: dict[str, int] = json.loads(arm.field_bytes)
    return {name: size / int(arm.records) for name, size in parts.items() if name not in PAYLOAD}


def _columns_bytes(metadata: Mapping[str, float]) -> float:
    return sum(size for name, size in metadata.items() if not name.startswith(HEADER_PARTS))


def _point_words(axes: Sequence[str], values: Sequence[Any]) -> str:
    """Return values of axes as text, for example: value 100 bytes, timestamp spread 0 ms."""
    words = []
    for axis, value in zip(axes, values, strict=True):
        shown = level(axis, value)
        words.append(f"{AXES[axis].name} {number(shown)} {'' if isinstance(shown, str) else AXES[axis].unit}".strip())
    return ", ".join(words)


def batches_words(batch: int) -> str:
    return batch_words(batch) if batch else "own batches"


def is_pictured(codec: str) -> bool:
    return codec.partition(" ")[0] in (NONE, BEST_KNOWN)


def mean_ratio(sizes: Sequence[Sizes], name: str) -> float | None:
    """Return the geometric mean over workloads of bytes relative to v2; None if any workload has no ratio."""
    ratios = [ratio for each in sizes if (ratio := each.ratio(name)) is not None]
    return geometric_mean(ratios) if len(ratios) == len(sizes) else None


def extreme_ratios(sizes: Sequence[Sizes]) -> Band:
    """Return the least and the greatest ratio of columnar's bytes to v2's."""
    ratios = [ratio for each in sizes if (ratio := each.ratio(NAME)) is not None]
    return Band(min(ratios), max(ratios))


def extremes_words(ends: Band, digits: int) -> str:
    return f"{ends.low:.{digits}f}–{ends.high:.{digits}f}"
