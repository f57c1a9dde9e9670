"""Bytes and CPU times with topic dictionaries, compared with the same batches without one.

Ratios are relative to v2 under zstd 3, unless said otherwise. The stored bytes of a dictionary are charged over a log
of CHARGED_BYTES: that many bytes of the topic in v2 under zstd 3.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import geometric_mean
from typing import Any, Final, NamedTuple

import numpy as np
import pandas as pd

from kfbench.dictionary_sizes import SIZE_BYTES
from kfbench.formats import BASE_FORMAT
from kfbench.report.data.arms import Band, interval_of, middle_95
from kfbench.report.data.joined import DICTIONARY, DICTIONARY_CPU, Joined
from kfbench.report.data.words import batch_words
from kfbench.tables import Interval

COLUMNAR: Final = "columnar"
FORMATS: Final = (BASE_FORMAT, COLUMNAR)
NONE, PLAIN, LEAN, TRAINED, RAW = "none", "plain", "lean", "trained", "raw"
CODEC, LEVEL, SHARE = "zstd", 3, 0.5  # of the tables that do not vary them
CHARGED_BYTES: Final = 10_000_000
OWN: Final = 0  # batch size 0 means: the batches that the workload defines
CHANGE: Final = "dictionary-change"  # the block about changes of schema


class Group(NamedTuple):
    """Topics of one kind. Their names begin with `prefix`."""

    prefix: str
    words: str


LINES, PUBLIC = Group("lines-", "recorded log lines"), Group("public-", "public data")
RECORDED: Final = Group("recorded-", "recorded segments")
NAMED: Final = Group("", "named workloads")
GROUPS: Final = (LINES, PUBLIC, RECORDED, NAMED)  # real data first


class Kind(NamedTuple):
    """A format, without or with a dictionary."""

    label: str
    format: str
    dictionary: str


KINDS: Final = (
    Kind(f"{BASE_FORMAT} + dictionary", BASE_FORMAT, TRAINED),
    Kind(COLUMNAR, COLUMNAR, PLAIN),
    Kind(f"{COLUMNAR} + dictionary", COLUMNAR, TRAINED),
)


class Key(NamedTuple):
    """The key of a size. share: the share of the topic before the split. size_bytes: 0 without a dictionary."""

    workload: str
    batch: int
    format: str
    dictionary: str
    size_bytes: int = 0
    level: int = LEVEL
    share: float = SHARE
    part: int = 1


@dataclass(frozen=True, kw_only=True)
class Size:
    """The bytes of a topic's batches behind the split, and those of the dictionary.

    Args:
        records, batches: the numbers of records and of batches.
        stored_bytes: the control batch that stores the dictionary; 0 without one.
        memory_bytes: the digested dictionary with its context.
        training_s_per_mb: CPU time of training per 10⁶ bytes of samples; None if nothing was trained.
    """

    size_bytes: int
    records: int
    batches: int
    stored_bytes: int
    memory_bytes: int
    training_s_per_mb: float | None

    def charged_ratio(self, base: "Size") -> float:
        """Return the bytes relative to `base`, the same batches in v2 under zstd 3. A dictionary is charged."""
        return self.size_bytes / base.size_bytes + self.stored_bytes / CHARGED_BYTES


class TimeKey(NamedTuple):
    """The key of the paired times of a codec with and without a dictionary."""

    workload: str
    batch: int
    format: str
    operation: str
    size_bytes: int = SIZE_BYTES
    level: int = LEVEL
    live: int = 1


class Pair(NamedTuple):
    """CPU times per call, float64[rounds] each, taken in the same rounds. spread: the spread between arms."""

    ns: Any
    base_ns: Any
    spread: float

    @property
    def interval(self) -> Interval:
        return interval_of(self.ns, self.base_ns, self.spread)

    @property
    def median(self) -> float:
        return float(np.median(self.ns / self.base_ns))


class _Pairs(NamedTuple):
    """Times relative to plain zstd. again: of plain zstd itself (A/A)."""

    trained: dict[TimeKey, Pair]
    lean: dict[TimeKey, Pair]
    again: list[Pair]


class Set(NamedTuple):
    """The batches of a topic in one format: what a dictionary may pay for or not."""

    group: Group
    workload: str
    batch: int
    format: str


@dataclass(frozen=True, kw_only=True)
class Gain:
    """A dictionary on equal footing: compared with the same format, under plain zstd or without a codec.

    Args:
        ratio: charged bytes with the dictionary, relative to the smaller of both without one.
        stored_bytes: the size of the control batch that stores the dictionary.
        pays_from_bytes: the log size, in v2 under zstd 3, from which a dictionary saves bytes; None if it never does.
    """

    set: Set
    ratio: float
    stored_bytes: int
    pays_from_bytes: float | None


class Dictionaries:
    """The rows of a run of the profile `dictionary`. If a cell has several seeds, its first one counts."""

    def __init__(self, joined: Joined) -> None:
        self.origin, self.is_own = joined.origin, joined.is_own
        self.rows = joined.rows[joined.rows["kind"].str.startswith(DICTIONARY)]
        rows = self.rows[self.rows["status"] == "ok"]
        rows = rows.assign(batch=rows["batch_size"].fillna(OWN).astype(int))
        is_change = rows["grid"] == CHANGE
        self._changed = _with_most(rows[is_change & (rows["kind"] == DICTIONARY)], "part")
        rows = rows[~is_change]
        self._bytes = _with_most(rows[rows["kind"] == DICTIONARY], "part")
        self._times = _with_most(rows[rows["kind"] == DICTIONARY_CPU], "live")

    @cached_property
    def sizes(self) -> dict[Key, Size]:
        """The sizes of topics that were measured in one part."""
        return _sizes(self._bytes[(self._bytes["most"] == 1) & (self._bytes["codec"] == CODEC)])

    @cached_property
    def ages(self) -> dict[Key, Size]:
        """The sizes of topics that were measured in several parts."""
        return _sizes(self._bytes[(self._bytes["most"] > 1) & (self._bytes["codec"] == CODEC)])

    @cached_property
    def changes(self) -> dict[Key, Size]:
        """The sizes of the topics whose records change, by part."""
        return _sizes(self._changed[self._changed["most"] > 1])

    @cached_property
    def times(self) -> dict[TimeKey, Pair]:
        """The times with one dictionary in the process."""
        return self._one_live.trained

    @cached_property
    def lean_times(self) -> dict[TimeKey, Pair]:
        """The times of codec 5's frame without a dictionary. Their `size_bytes` is 0."""
        return self._one_live.lean

    @cached_property
    def _one_live(self) -> _Pairs:
        return self._pairs(self._times["most"] == 1)

    @cached_property
    def live_times(self) -> dict[TimeKey, Pair]:
        """The times of cells that were also measured with many dictionaries in the process."""
        return self._pairs(self._times["most"] > 1).trained

    @cached_property
    def again(self) -> list[float]:
        """The median ratios of plain zstd to itself (A/A)."""
        return [pair.median for pair in self._pairs(self._times["most"] >= 1).again]

    @property
    def noise(self) -> Band | None:
        """The middle 95 % of the ratios of plain zstd to itself (A/A)."""
        return middle_95(self.again)

    def _pairs(self, is_wanted: "pd.Series[bool]") -> _Pairs:
        rows = self._times[is_wanted]
        names = ["grid", "cell_id", "codec", "level", "operation", "format", "live"]
        bases: dict[Any, Any] = {}
        found = _Pairs({}, {}, [])
        is_base = (rows["dictionary"] == PLAIN) & (rows["arm"] != "aa")
        for part in (rows[is_base], rows[~is_base]):
            keys = zip(*(part[name] for name in names), strict=True)
            columns = (
                "workload", "batch", "dictionary", "dictionary_size_bytes", "arm", "cpu_ns", "inner_loops", "spread",
            )  # fmt: skip
            for key, row in zip(keys, zip(*(part[name] for name in columns), strict=True), strict=True):
                workload, batch, dictionary, size_bytes, arm, cpu_ns, loops, spread = row
                _, _, codec, level, operation, name, live = key
                ns = np.asarray(cpu_ns, np.float64) / loops
                if dictionary == PLAIN and arm != "aa":
                    bases.setdefault(key, ns)
                elif key in bases and arm == "aa":
                    found.again.append(Pair(ns, bases[key], spread))
                elif key in bases and codec == CODEC:
                    at = TimeKey(workload, batch, name, operation, _whole(size_bytes), int(level), int(live))
                    times = found.lean if dictionary == LEAN else found.trained
                    times.setdefault(at, Pair(ns, bases[key], spread))
        return found

    @cached_property
    def time_groups(self) -> list[Group]:
        """The groups that have times with one dictionary in the process, real data first."""
        present = {group_of(key.workload) for key in self.times}
        return [group for group in GROUPS if group in present]

    def size(
        self, kind: Kind, workload: str, batch: int, size_bytes: int = SIZE_BYTES, level: int = LEVEL
    ) -> Size | None:
        has_dictionary = kind.dictionary in (TRAINED, RAW)
        return self.sizes.get(
            Key(workload, batch, kind.format, kind.dictionary, size_bytes if has_dictionary else 0, level)
        )

    def base(self, workload: str, batch: int) -> Size | None:
        """Return the size in v2 under zstd 3."""
        return self.sizes.get(Key(workload, batch, BASE_FORMAT, PLAIN))

    def ratio(
        self, kind: Kind, workload: str, batch: int, size_bytes: int = SIZE_BYTES, level: int = LEVEL
    ) -> float | None:
        """Return the bytes relative to v2 under zstd 3. A dictionary is charged."""
        found, base = self.size(kind, workload, batch, size_bytes, level), self.base(workload, batch)
        return found.charged_ratio(base) if found and base else None

    def topics(self, group: Group, batch: int) -> list[str]:
        """Return the topics of a group that have all kinds of KINDS in batches of this size."""
        return [
            workload
            for workload in self._workloads
            if group_of(workload) is group and all(self.ratio(kind, workload, batch) for kind in KINDS)
        ]

    @cached_property
    def _workloads(self) -> list[str]:
        return sorted({key.workload for key in self.sizes})

    def batches(self, group: Group) -> list[int]:
        """Return the batch sizes of a group, from the smallest. OWN comes first."""
        return self._batches[group]

    @cached_property
    def _batches(self) -> dict[Group, list[int]]:
        keys = {(group_of(workload), batch) for workload, batch in {(key.workload, key.batch) for key in self.sizes}}
        return {
            group: sorted(batch for each, batch in keys if each is group and self.topics(group, batch))
            for group in GROUPS
        }

    @cached_property
    def groups(self) -> list[Group]:
        """The groups with sizes, real data first."""
        return [group for group in GROUPS if self.batches(group)]

    def mean(
        self, kind: Kind, group: Group, batch: int, size_bytes: int = SIZE_BYTES, level: int = LEVEL
    ) -> float | None:
        """Return the geometric mean of `ratio` over the topics of a group; None if any topic has none."""
        topics = self.topics(group, batch)
        return geometric_mean_of(self.ratio(kind, workload, batch, size_bytes, level) for workload in topics)

    @cached_property
    def gains(self) -> list[Gain]:
        """The dictionaries of 32 KiB at level 3 on equal footing, real data first."""
        found = []
        for group in GROUPS:
            for batch in self.batches(group):
                for workload in self.topics(group, batch):
                    found += [self._gain(Set(group, workload, batch, name)) for name in FORMATS]
        return found

    def _gain(self, each: Set) -> Gain:
        with_it = self.sizes[Key(each.workload, each.batch, each.format, TRAINED, SIZE_BYTES)]
        without = min(
            found.size_bytes
            for dictionary in (PLAIN, NONE)
            if (found := self.sizes.get(Key(each.workload, each.batch, each.format, dictionary)))
        )
        base = self.sizes[Key(each.workload, each.batch, BASE_FORMAT, PLAIN)].size_bytes
        charged = with_it.size_bytes + with_it.stored_bytes * base / CHARGED_BYTES
        saved = without - with_it.size_bytes
        pays_from = with_it.stored_bytes * base / saved if saved > 0 else None
        return Gain(set=each, ratio=charged / without, stored_bytes=with_it.stored_bytes, pays_from_bytes=pays_from)


def _with_most(rows: pd.DataFrame, name: str) -> pd.DataFrame:
    """Add the column `most`: the greatest value of a column in the same block, cell, codec and format."""
    same = ["grid", "cell_id", "codec", "level", "format"]
    if name == "part":
        same.append("trained_share")
    return rows.assign(most=rows.groupby(same, dropna=False)[name].transform("max"))


def _sizes(rows: pd.DataFrame) -> dict[Key, Size]:
    found: dict[Key, Size] = {}
    for row in rows.itertuples():
        key = Key(
            workload=row.workload,
            batch=row.batch,
            format=row.format,
            dictionary=row.dictionary,
            size_bytes=_whole(row.dictionary_size_bytes),
            level=int(row.level),
            share=float(row.trained_share),
            part=int(row.part),
        )
        is_trained = not pd.isna(row.training_ns) and row.trained_bytes
        size = Size(
            size_bytes=int(row.size_bytes),
            records=int(row.records),
            batches=int(row.batches),
            stored_bytes=_whole(row.dictionary_stored_bytes),
            memory_bytes=_whole(row.dictionary_memory_bytes),
            training_s_per_mb=row.training_ns / 1e9 / (row.trained_bytes / 1e6) if is_trained else None,
        )
        found.setdefault(key, size)
    return found


def _whole(value: Any) -> int:
    return 0 if pd.isna(value) else int(value)


def part_ratio(sizes: Mapping[Key, Size], key: Key) -> float | None:
    """Return the bytes of a part relative to plain zstd in the same format. The dictionary is not charged."""
    found, plain = sizes.get(key), sizes.get(key._replace(dictionary=PLAIN, size_bytes=0))
    return found.size_bytes / plain.size_bytes if found and plain else None


def group_of(workload: str) -> Group:
    return next(group for group in GROUPS if workload.startswith(group.prefix))


def geometric_mean_of(ratios: Iterable[float | None]) -> float | None:
    """Return the geometric mean; None without ratios, or if one is missing."""
    found = list(ratios)
    return None if not found or any(ratio is None for ratio in found) else geometric_mean([r for r in found if r])


def mean_time(times: Mapping[TimeKey, Pair], group: Group | None, at: TimeKey) -> float | None:
    """Return the geometric mean of the ratios of times over the topics of a group; None if there are none.

    at: what the times have in common; its workload does not count. group: None means all topics.
    """
    return geometric_mean_of(
        pair.median
        for key, pair in times.items()
        if key._replace(workload=at.workload) == at and (group is None or group_of(key.workload) is group)
    )


def batches_words(batch: int) -> str:
    return batch_words(batch) if batch else "own batches"


def at_words(batch: int) -> str:
    return f"at {batches_words(batch)}" if batch else "in own batches"


def kib(size_bytes: int) -> str:
    return f"{size_bytes // 1024} KiB"


def levels(keys: Iterable[Key | TimeKey]) -> Sequence[int]:
    return sorted({key.level for key in keys})
