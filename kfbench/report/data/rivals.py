"""Bytes and CPU times of rivals (Parquet, Arrow IPC, …), compared with v2 and columnar on the same batches."""

import math
from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import groupby
from operator import itemgetter
from typing import Any, Final, NamedTuple

import numpy as np
import pandas as pd

from kfbench.formats import BASE_FORMAT, FORMATS
from kfbench.report.data.arms import Band, middle_95
from kfbench.report.data.dictionaries import OWN, Pair, geometric_mean_of
from kfbench.report.data.joined import RIVALS, Joined

COLUMNAR: Final = "columnar"
CODEC: Final = "zstd"  # of the tables that do not vary it
CPU: Final = "rivals-cpu"  # the kind of the CPU times
EACH, TOGETHER, AGAIN = "each", "together", "aa"  # calls: one per batch, one for all batches; v2 timed twice
SEARCH: Final = "search"  # one per batch, which tries all settings of a tuned arm
BEST: Final = "best"
FULL: Final = 0.9  # of the wanted records per batch
QUOTED_BATCH: Final = 1_000  # records per batch of the CPU times in sentences


class Key(NamedTuple):
    """The key of a size."""

    workload: str
    batch: int
    codec: str
    format: str


class TimeKey(NamedTuple):
    """The key of the CPU times of an arm. They are paired with v2's, called once per batch."""

    workload: str
    batch: int
    codec: str
    format: str
    arm: str
    operation: str


class BreakEven(NamedTuple):
    """The batch sizes from which a rival is as small as another format, over all workloads.

    records: the median; inf if no measured size is large enough in most workloads. low, high: the quartiles. never: the
    workloads in which no measured size is large enough.
    """

    records: float
    low: float
    high: float
    workloads: int
    never: int


class Loss(NamedTuple):
    """A set of batches that a rival makes smaller than columnar. ratio: its bytes relative to columnar's."""

    workload: str
    batch: int
    rival: str
    ratio: float


class Rivals:
    """The rows of a run of the profile `rivals`. Sizes are bytes per record.

    Batches that are much smaller than wanted are left out: a workload's producers may not send so many records.
    `full` has the other rows without an error. Its columns `batch` and `arm` have no nulls.
    """

    def __init__(self, joined: Joined) -> None:
        self.origin, self.is_own = joined.origin, joined.is_own
        self.rows = joined.rows[joined.rows["kind"].isin([RIVALS, CPU])]
        rows = self.rows[self.rows["status"] == "ok"]
        rows = rows[~(rows["records"] / rows["batches"] < FULL * rows["batch_size"])]  # false without batch_size
        self.full = rows.assign(batch=rows["batch_size"].fillna(OWN).astype(int), arm=rows["arm"].fillna(""))

    @cached_property
    def sizes(self) -> dict[Key, float]:
        names = ["workload", "batch", "codec", "format", "size_bytes", "records"]
        rows = self.full[self.full["size_bytes"].notna() & (self.full["kind"] == RIVALS)]
        found: dict[Key, float] = {}
        for *key, size_bytes, records in zip(*(rows[name] for name in names), strict=True):
            found.setdefault(Key(*key), float(size_bytes) / float(records))
        return found

    @cached_property
    def times(self) -> dict[TimeKey, Pair]:
        names = ["workload", "batch", "codec", "format", "arm", "operation"]
        rows = self.full[self.full["kind"] == CPU]
        ns: dict[TimeKey, Any] = {}
        spread = float(rows["spread"].max()) if len(rows) else 0.0  # they are of one kind
        for *key, cpu_ns, loops in zip(
            *(rows[name] for name in names), rows["cpu_ns"], rows["inner_loops"], strict=True
        ):
            ns.setdefault(TimeKey(*key), np.asarray(cpu_ns, np.float64) / loops)
        bases = {key: ns.get(key._replace(format=BASE_FORMAT, arm=EACH)) for key in ns}
        return {key: Pair(found, bases[key], spread) for key, found in ns.items() if bases[key] is not None}

    @property
    def quoted_batch(self) -> int:
        """The batch size whose CPU times sentences quote: QUOTED_BATCH, or the largest if that was not timed."""
        timed = {key.batch for key in self.times}
        return QUOTED_BATCH if QUOTED_BATCH in timed else max(timed)

    def timed_workloads(self, batch: int, codec: str = CODEC) -> list[str]:
        """Return the workloads with CPU times at a batch size."""
        return sorted(self._medians.get((batch, codec, BASE_FORMAT, AGAIN, "encode"), {}))

    @property
    def noise(self) -> Band | None:
        """The middle 95 % of the ratios of v2 to itself (A/A)."""
        return middle_95([pair.median for key, pair in self.times.items() if key.arm == AGAIN])

    @cached_property
    def arms(self) -> list[str]:
        """The rivals, in the order of the sweep."""
        names = self.full.loc[self.full["kind"] == RIVALS, "format"].unique()
        return [name for name in names if name not in FORMATS]

    @cached_property
    def best(self) -> list[str]:
        """The arm of each container that was tuned to be small."""
        rows = self.full[self.full["kind"] == RIVALS]
        tuned = set(rows.loc[rows["arm"] == BEST, "format"])
        return [name for name in self.arms if name in tuned]

    @cached_property
    def batches(self) -> list[int]:
        """The batch sizes, without OWN."""
        return sorted({key.batch for key in self.sizes} - {OWN})

    def size(self, workload: str, batch: int, name: str, codec: str = CODEC) -> float | None:
        """Return the bytes per record."""
        return self.sizes.get(Key(workload, batch, codec, name))

    def workloads(self, codec: str = CODEC) -> list[str]:
        """Return the workloads in which a rival was measured."""
        return self._workloads.get(codec, [])

    @cached_property
    def _workloads(self) -> dict[str, list[str]]:
        found = sorted({(key.codec, key.workload) for key in self.sizes if key.format not in FORMATS})
        return {codec: [workload for _, workload in same] for codec, same in groupby(found, key=itemgetter(0))}

    def ratio(self, workload: str, batch: int, name: str, base: str, codec: str = CODEC) -> float | None:
        size, of_base = (self.size(workload, batch, each, codec) for each in (name, base))
        return size / of_base if size and of_base else None

    def mean(self, batch: int, name: str, base: str = BASE_FORMAT, codec: str = CODEC) -> float | None:
        """Return the geometric mean of `ratio` over the workloads with batches of this size; None if there are none."""
        ratios = [self.ratio(each, batch, name, base, codec) for each in self.workloads(codec)]
        return geometric_mean_of(ratio for ratio in ratios if ratio is not None) if any(ratios) else None

    def break_even(self, name: str, base: str) -> BreakEven | None:
        """Return from which batch size on `name` takes no more bytes than `base`.

        Workloads that were not measured in the largest batches are left out.
        """
        found, largest = [], self.batches[-1]
        for workload in self.workloads():
            ratios = [(batch, self.ratio(workload, batch, name, base)) for batch in self.batches]
            measured = [(batch, ratio) for batch, ratio in ratios if ratio is not None]
            if measured and measured[-1][0] == largest:
                found.append(crossing(measured))
        if not found:
            return None
        low, middle, high = (quantile(found, share) for share in (0.25, 0.5, 0.75))
        return BreakEven(middle, low, high, len(found), sum(map(math.isinf, found)))

    def losses(self, codec: str = CODEC) -> list[Loss]:
        """Return the batches that a rival makes smaller than columnar under the same codec: the smallest rival each."""
        found = []
        for workload in self.workloads(codec):
            for batch in (OWN, *self.batches):
                ratios = {name: self.ratio(workload, batch, name, COLUMNAR, codec) for name in self.arms}
                measured = {name: ratio for name, ratio in ratios.items() if ratio is not None}
                if measured and measured[smallest := min(measured, key=lambda name: measured[name])] < 1:
                    found.append(Loss(workload, batch, smallest, measured[smallest]))
        return found

    @cached_property
    def compared(self) -> int:
        """The number of workloads and batch sizes in which a rival was compared with columnar."""
        keys = {(key.workload, key.batch) for key in self.sizes if key.codec == CODEC}
        return sum(self.size(*key, COLUMNAR) is not None for key in keys)

    def mean_time(self, batch: int, codec: str, name: str, arm: str, operation: str) -> float | None:
        """Return the geometric mean over workloads of CPU time relative to v2's, called once per batch."""
        found = self._medians.get((batch, codec, name, arm, operation), {})
        return geometric_mean_of(found.values())

    @cached_property
    def _medians(self) -> dict[tuple[Any, ...], dict[str, float]]:
        """The median of each pair of times, by its key without the workload, and by workload."""
        found: dict[tuple[Any, ...], dict[str, float]] = {}
        for key, pair in self.times.items():
            found.setdefault(key[1:], {})[key.workload] = pair.median
        return found

    @cached_property
    def failed(self) -> pd.DataFrame:
        """The rows with an error: a library that raised or lost something."""
        return self.rows[self.rows["status"] == "error"]

    @cached_property
    def unmeasured(self) -> dict[str, str]:
        """The arms without any number, such as those of a library that was not installed: the reason of each."""
        named = self.rows[self.rows["format"].notna()]
        without = named[~named["format"].isin(named.loc[named["status"] == "ok", "format"])]
        first = without[without["status"] == "skipped"].drop_duplicates("format")
        return dict(zip(first["format"], first["error"].fillna("no reason stored").astype(str), strict=True))


def crossing(ratios: Iterable[tuple[int, float]]) -> float:
    """Return the batch size from which the ratio stays at 1 or below; inf if it never does.

    Between two sizes it lies where the straight line through both points crosses 1, in logarithms.
    """
    points = list(ratios)
    above = [i for i, (_, ratio) in enumerate(points) if ratio > 1]
    if not above:
        return float(points[0][0])
    if above[-1] == len(points) - 1:
        return math.inf
    (small, high), (large, low) = points[above[-1]], points[above[-1] + 1]
    share = math.log(high) / (math.log(high) - math.log(low))
    return float(small * (large / small) ** share)


def quantile(values: Sequence[float], share: float) -> float:
    """Return the value below which this share of the values lies. It is one of them, because inf has no mean."""
    return sorted(values)[min(int(share * len(values)), len(values) - 1)]
