"""Bytes and CPU times of rivals (Parquet, Arrow IPC, …), compared with v2 and columnar on the same batches."""

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from itertools import groupby
from typing import Any, Final, NamedTuple

import numpy as np
import pandas as pd

from kfbench.formats import BASE_FORMAT, FORMATS
from kfbench.report.data.arms import Band, middle_95
from kfbench.report.data.dictionaries import OWN, Pair, geometric_mean_of
from kfbench.report.data.joined import RIVALS, Joined

COLUMNAR: Final = "columnar"
CODEC: Final = "zstd"  # of the tables that do not vary it
OPAQUE, METADATA, JSON, STREAM, CPU = RIVALS, "rivals-metadata", "rivals-json", "rivals-stream", "rivals-cpu"
EACH, TOGETHER, AGAIN = "each", "together", "aa"  # calls: one per batch, one for all batches; v2 timed twice
SEARCH: Final = "search"  # one per batch, which tries all settings of a tuned arm
BEST: Final = "best"
FULL: Final = 0.9  # of the wanted records per batch
QUOTED_BATCH: Final = 1_000  # records per batch of the CPU times in sentences


class Key(NamedTuple):
    """The key of a size. arm: the settings of a rival, empty for Kafka's formats."""

    kind: str
    workload: str
    batch: int
    codec: str
    format: str
    arm: str = ""


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


class Won(NamedTuple):
    """Sets of batches (a workload and a batch size each). smaller: those in which a rival is smaller than columnar."""

    smaller: int
    compared: int


class Rivals:
    """The rows of a run of the profile `rivals`. Sizes are bytes per record.

    Batches that are much smaller than wanted are left out: a workload's producers may not send so many records.
    `full` has the other rows without an error. Its columns `batch` and `arm` have no nulls.
    """

    def __init__(self, joined: Joined) -> None:
        self.origin, self.is_own = joined.origin, joined.is_own
        self.rows = joined.rows[joined.rows["kind"].str.startswith(RIVALS)]
        rows = self.rows[self.rows["status"] == "ok"]
        rows = rows[~(rows["records"] / rows["batches"] < FULL * rows["batch_size"])]  # false without batch_size
        self.full = rows.assign(batch=rows["batch_size"].fillna(OWN).astype(int), arm=rows["arm"].fillna(""))

    @cached_property
    def sizes(self) -> dict[Key, float]:
        names = ["kind", "workload", "batch", "codec", "format", "arm", "size_bytes", "records"]
        rows = self.full[self.full["size_bytes"].notna() & (self.full["kind"] != CPU)]
        found: dict[Key, float] = {}
        for *key, size_bytes, records in zip(*(rows[name] for name in names), strict=True):
            found.setdefault(Key(*key), float(size_bytes) / float(records))
        return found

    @cached_property
    def batch_counts(self) -> dict[Key, int]:
        """The number of batches behind a size."""
        rows = self.full[self.full["size_bytes"].notna() & (self.full["kind"] != CPU)]
        names = ["kind", "workload", "batch", "codec", "format", "arm"]
        return {
            Key(*key): int(count) for *key, count in zip(*(rows[name] for name in [*names, "batches"]), strict=True)
        }

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
        """The rivals of opaque payload, in the order of the sweep."""
        names = self.full.loc[self.full["kind"] == OPAQUE, "format"].unique()
        return [name for name in names if name not in FORMATS]

    @cached_property
    def best(self) -> list[str]:
        """The arm of each container that was tuned to be small."""
        settings = {key.format: key.arm for key in self.sizes if key.kind == OPAQUE}
        return [name for name in self.arms if settings[name] == BEST]

    def batches(self, kind: str = OPAQUE) -> list[int]:
        """Return the batch sizes of a kind, without OWN."""
        return self._batches.get(kind, [])

    @cached_property
    def _batches(self) -> dict[str, list[int]]:
        pairs = sorted({(key.kind, key.batch) for key in self.sizes if key.batch != OWN})
        return {kind: [batch for _, batch in same] for kind, same in groupby(pairs, key=lambda pair: pair[0])}

    def size(self, kind: str, workload: str, batch: int, name: str, codec: str = CODEC, arm: str = "") -> float | None:
        """Return the bytes per record; without `arm`, those without settings, or of the only settings of `name`."""
        if (size := self.sizes.get(Key(kind, workload, batch, codec, name, arm))) or arm:
            return size
        found = self._by_name.get((kind, workload, batch, codec, name), ())
        return found[0] if len(found) == 1 else None

    @cached_property
    def _by_name(self) -> Mapping[tuple[Any, ...], Sequence[float]]:
        found: dict[tuple[Any, ...], list[float]] = {}
        for key, size in self.sizes.items():
            found.setdefault(key[:-1], []).append(size)
        return found

    def workloads(self, kind: str, codec: str = CODEC) -> list[str]:
        """Return the workloads in which a rival was measured."""
        return self._workloads.get((kind, codec), [])

    @cached_property
    def _workloads(self) -> dict[tuple[str, str], list[str]]:
        found = sorted({(key.kind, key.codec, key.workload) for key in self.sizes if key.format not in FORMATS})
        return {pair: [each[2] for each in same] for pair, same in groupby(found, key=lambda each: each[:2])}

    def ratio(
        self, kind: str, workload: str, batch: int, name: str, base: str, codec: str = CODEC, arm: str = ""
    ) -> float | None:
        size = self.size(kind, workload, batch, name, codec, arm)
        of_base = self.sizes.get(Key(kind, workload, batch, codec, base, arm))  # the middle batches of a stream
        of_base = of_base or self.size(kind, workload, batch, base, codec)
        return size / of_base if size and of_base else None

    def mean(
        self, kind: str, batch: int, name: str, base: str = BASE_FORMAT, codec: str = CODEC, arm: str = ""
    ) -> float | None:
        """Return the geometric mean of `ratio` over the workloads with batches of this size; None if there are none."""
        ratios = [self.ratio(kind, each, batch, name, base, codec, arm) for each in self.workloads(kind, codec)]
        return geometric_mean_of(ratio for ratio in ratios if ratio is not None) if any(ratios) else None

    def break_even(self, name: str, base: str, kind: str = OPAQUE, arm: str = "") -> BreakEven | None:
        """Return from which batch size on `name` takes no more bytes than `base`.

        Workloads that were not measured in the largest batches are left out.
        """
        found, largest = [], self.batches(kind)[-1]
        for workload in self.workloads(kind):
            ratios = [(batch, self.ratio(kind, workload, batch, name, base, arm=arm)) for batch in self.batches(kind)]
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
        for workload in self.workloads(OPAQUE, codec):
            for batch in (OWN, *self.batches()):
                ratios = {name: self.ratio(OPAQUE, workload, batch, name, COLUMNAR, codec) for name in self.arms}
                measured = {name: ratio for name, ratio in ratios.items() if ratio is not None}
                if measured and measured[smallest := min(measured, key=lambda name: measured[name])] < 1:
                    found.append(Loss(workload, batch, smallest, measured[smallest]))
        return found

    @cached_property
    def compared(self) -> int:
        """The number of workloads and batch sizes in which a rival was compared with columnar."""
        keys = {(key.workload, key.batch) for key in self.sizes if (key.kind, key.codec) == (OPAQUE, CODEC)}
        return sum(self.size(OPAQUE, *key, COLUMNAR) is not None for key in keys)

    def won(self, name: str) -> Won:
        """Count the sets of batches in which `name` takes fewer bytes than columnar, under zstd 3."""
        cells = [(workload, batch) for workload in self.workloads(OPAQUE) for batch in (OWN, *self.batches())]
        ratios = [ratio for cell in cells if (ratio := self.ratio(OPAQUE, *cell, name, COLUMNAR)) is not None]
        return Won(sum(ratio < 1 for ratio in ratios), len(ratios))

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
