"""Rows for the page about topic dictionaries: bytes, what they save, and the codec's CPU time.

Ratios of bytes are relative to v2 under zstd 3. The stored bytes of a dictionary are charged over CHARGED_BYTES of the
topic in v2 under zstd 3. If a cell has several seeds, its first one counts.
"""

from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import pandas as pd

from kfbench.formats import BASE_FORMAT
from kfbench.limits import SIZE_BYTES
from kfbench.present.names import batch_words
from kfbench.present.rows import AA, Runs
from kfbench.report.view_packages import ViewPackage

PROFILE: Final = "dictionary"  # also the kind of its sizes
CPU: Final = "dictionary-cpu"
COLUMNAR: Final = "columnar"
NONE, PLAIN, LEAN, TRAINED = "none", "plain", "lean", "trained"
CHARGED_BYTES: Final = 10_000_000
LITTLE: Final = 0.01  # a dictionary that saves less than this share does not pay
CHANGE: Final = "dictionary-change"  # the block about changes of schema
OWN: Final = 0  # batch size 0 means: the batches that the workload defines
GROUPS: Final = {"lines-": "recorded log lines", "public-": "public data", "recorded-": "recorded segments"}
NAMED: Final = "named workloads"
KINDS: Final = {
    f"{BASE_FORMAT} + dictionary": (BASE_FORMAT, TRAINED),
    COLUMNAR: (COLUMNAR, PLAIN),
    f"{COLUMNAR} + dictionary": (COLUMNAR, TRAINED),
}
_SET: Final = ["workload", "batch", "format"]


class Size(NamedTuple):
    """The bytes of a topic's batches behind the split. stored_bytes: of its dictionary; 0 without one."""

    size_bytes: float
    stored_bytes: float


class TopicSizes(NamedTuple):
    """The sizes of a topic in batches of one size, by format and dictionary: of 32 KiB, at level 3."""

    data: str
    batch: int
    workload: str
    sizes: dict[tuple[str, str], Size]

    @property
    def base(self) -> Size:
        return self.sizes[BASE_FORMAT, PLAIN]

    @property
    def words(self) -> tuple[str, str, str]:
        return self.data, _batches(self.batch), self.workload


def dictionary_bytes(runs: Runs) -> pd.DataFrame:
    """Return bytes relative to v2 under zstd 3, by data, batches, topic and format. A dictionary is charged."""
    found = [
        (*topic.words, kind, size.size_bytes / topic.base.size_bytes + size.stored_bytes / CHARGED_BYTES)
        for topic in _topics(runs)
        for kind, key in KINDS.items()
        if (size := topic.sizes[key])
    ]
    return pd.DataFrame(found, columns=["data", "batches", "topic", "kind", "ratio"])


def dictionary_gains(runs: Runs) -> pd.DataFrame:
    """Return what dictionaries save against the same format without one: under zstd, or without a codec if smaller.

    pays_from_kb: the size of a log, in v2 under zstd 3, from which a dictionary saves bytes; NaN if it never does.
    """
    found = [(*topic.words, name, *_gain(topic, name)) for topic in _topics(runs) for name in (BASE_FORMAT, COLUMNAR)]
    names = ["data", "batches", "topic", "format", "ratio", "stored_bytes", "pays_from_kb"]
    frame = pd.DataFrame(found, columns=names)
    return frame.assign(
        pays_from_mb=frame["pays_from_kb"] / 1000,
        never=frame["pays_from_kb"].isna().astype(int),
        pays=frame["ratio"] <= 1 - LITTLE,
    )


def _gain(topic: TopicSizes, name: str) -> tuple[float, float, float]:
    """Return the charged bytes relative to those without a dictionary, the stored bytes, and the least log in KB."""
    size, base = topic.sizes[name, TRAINED], topic.base.size_bytes
    without = min(topic.sizes[name, each].size_bytes for each in (PLAIN, NONE) if (name, each) in topic.sizes)
    charged = size.size_bytes + size.stored_bytes * base / CHARGED_BYTES
    saved = without - size.size_bytes
    return charged / without, size.stored_bytes, size.stored_bytes * base / saved / 1000 if saved > 0 else np.nan


def dictionary_times(runs: Runs) -> pd.DataFrame:
    """Return the codec's CPU time relative to plain zstd 3 on the same batches, by data, format, batches and topic.

    The dictionary of 32 KiB is the only one in the process. The lean frame is its frame without a dictionary.
    """
    rows = _rows(runs, CPU)
    rows = rows[(_most(rows, "live") == 1) & (rows["codec"] == "zstd") & (rows["level"] == 3)]
    is_base = (rows["dictionary"] == PLAIN) & (rows["arm"] != AA)
    same = ["grid", "cell_id", "operation", "format"]
    times = rows["cpu_ns"].map(np.asarray) / rows["inner_loops"]
    bases = rows[same].assign(base=times)[is_base].drop_duplicates(same)
    arms = rows.assign(ns=times)[~is_base].merge(bases, on=same)
    arms = arms[(arms["dictionary"] == LEAN) | ((arms["dictionary"] == TRAINED) & (arms["size"] == SIZE_BYTES))]
    arms = arms.drop_duplicates([*_SET, "operation", "dictionary"]).sort_values(
        ["size", "batch"], ascending=[False, True]
    )
    words = {TRAINED: f"{SIZE_BYTES // 1024} KiB", LEAN: "none, lean frame"}
    return pd.DataFrame(
        {
            "data": arms["workload"].map(_data),
            "format": arms["format"],
            "dictionary": arms["dictionary"].map(words),
            "batches": arms["batch"].map(_batches),
            "topic": arms["workload"],
            "operation": arms["operation"],
            "ratio": [float(np.median(ns / base)) for ns, base in zip(arms["ns"], arms["base"], strict=True)],
        }
    ).sort_values("data", key=_place, kind="stable")


def _topics(runs: Runs) -> list[TopicSizes]:
    """Return the topics and batches that have all of KINDS and v2 under zstd 3, real data first."""
    rows = _rows(runs, PROFILE)
    rows = rows[(_most(rows, "part") == 1) & (rows["grid"] != CHANGE) & (rows["codec"] == "zstd") & (rows["part"] == 1)]
    rows = rows[(rows["level"] == 3) & (rows["trained_share"] == 0.5) & rows["size"].isin([0, SIZE_BYTES])]
    rows = rows.drop_duplicates([*_SET, "dictionary"])
    found: dict[tuple[str, int], dict[tuple[str, str], Size]] = {}
    names = [*_SET, "dictionary", "size_bytes", "dictionary_stored_bytes"]
    for workload, batch, *key, size_bytes, stored in zip(*(rows[name] for name in names), strict=True):
        size = Size(float(size_bytes), 0.0 if pd.isna(stored) else float(stored))
        found.setdefault((workload, batch), {})[key[0], key[1]] = size
    needed = {(BASE_FORMAT, PLAIN), *KINDS.values()}
    topics = [TopicSizes(_data(at[0]), at[1], at[0], sizes) for at, sizes in found.items() if needed <= sizes.keys()]
    order = list(_order())
    return sorted(topics, key=lambda topic: (order.index(topic.data), *topic[1:3]))


def _rows(runs: Runs, kind: str) -> pd.DataFrame:
    """Return the rows of a kind, without failures. batch: 0 for own batches. size: 0 without a dictionary."""
    rows = runs.joined.get(PROFILE, runs.own).rows
    rows = rows[(rows["kind"] == kind) & (rows["status"] == "ok")]
    size = rows["dictionary_size_bytes"].fillna(0).astype(int)
    return rows.assign(batch=rows["batch_size"].fillna(OWN).astype(int), size=size)


def _most(rows: pd.DataFrame, name: str) -> "pd.Series[Any]":
    """Return the greatest value of a column in the same block, cell, codec, format and share."""
    same = ["grid", "cell_id", "codec", "level", "format", *(["trained_share"] if name == "part" else [])]
    return rows.groupby(same, dropna=False)[name].transform("max")


def _data(workload: str) -> str:
    return next((words for prefix, words in GROUPS.items() if workload.startswith(prefix)), NAMED)


def _order() -> tuple[str, ...]:
    """Return the kinds of data: real data first."""
    return (*GROUPS.values(), NAMED)


def _place(data: "pd.Series[Any]") -> "pd.Series[Any]":
    return data.map(list(_order()).index)


def _batches(batch: int) -> str:
    return batch_words(batch) if batch else "own batches"


_SOURCES: Final = (dictionary_bytes, dictionary_gains, dictionary_times)
VIEWS: Final = (
    ViewPackage(
        name="dictionaries",
        path=Path(__file__).with_name("view.toml"),
        sources={each.__name__: each for each in _SOURCES},
    ),
)
