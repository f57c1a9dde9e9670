"""Workloads of topics that exist already, so they end and have no seed. One workload per topic, of three kinds:

- lines-NAME: log lines that real software wrote, which a real broker stored (datasets/lines).
- recorded-NAME: segments of real brokers with at least 40 batches, in their own batches (datasets/recorded).
- public-json-NAME, public-table-NAME: rows of public data sets, which `make public` fetches into a cache folder as JSON
  lines, one record per line.
"""

import json
import os
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Final

import numpy as np

from kfbench.batches import NO_FIELDS, BatchFields
from kfbench.errors import InvalidConfig
from kfbench.log import read_log
from kfbench.records import Records
from kfbench.shipped import DATASETS
from kfbench.workloads.base import (
    BLOCK_RECORDS,
    Description,
    Sample,
    check_batch_size,
    check_slice,
    regular_bounds,
)

LINES_FOLDER: Final = DATASETS / "lines"
RECORDED_FOLDER: Final = DATASETS / "recorded"
LINES: Final = "lines-"
RECORDED: Final = "recorded-"
LEAST_BATCHES: Final = 40  # a dictionary is not worth measuring on fewer
PUBLIC_PREFIX: Final = "public-"
RECIPES: Final = DATASETS / "public"
PUBLIC: Final = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "kfbench" / "public"
MEAN_GAP_MS: Final = 20  # the rows have no time of their own
_STORIES: Final = {
    LINES: "Log lines of real software. The README of datasets/lines names it.",
    RECORDED: "A log segment of a real broker. The README of datasets/recorded describes it.",
    PUBLIC_PREFIX: "Rows of a public data set, one per record. The README of datasets/public names its source.",
}


class NotFetched(InvalidConfig):
    """A public data set that is not in the cache folder."""


@dataclass(frozen=True, kw_only=True)
class RecordedTopic:
    """One topic, with its records in their order and with their times. The seed changes nothing.

    Args:
        batch_size: records per batch; None: the topic's own batches, only for "recorded-".

    Raises InvalidConfig.
    """

    name: str
    batch_size: int | None = 10

    def __post_init__(self) -> None:
        if self.batch_size is not None or not self.name.startswith(RECORDED):
            check_batch_size(self.batch_size)

    @property
    def summary(self) -> str:
        return _STORIES[f"{self.name.partition('-')[0]}-"]

    @property
    def recorded(self) -> int:
        """The number of records. Raises NotFetched for a public data set that is not there."""
        return len(_read(self.name).records)

    @property
    def is_fetched(self) -> bool:
        """True unless this is a public data set that is not in the cache folder."""
        return not self.name.startswith(PUBLIC_PREFIX) or _public_file(self.name).exists()

    def describe(self) -> Description:
        return Description(
            question="How do formats and codecs do on real data?",
            story=self.summary,
            variants=("default",),
            assumptions=() if self.batch_size is None else ("batches have equal sizes",),
            parameters=(),
        )

    def generate(self, *, records: int, seed: int, start: int = 0) -> Sample:
        """Return the records with the numbers start to start + records - 1.

        Raises InvalidConfig if there are fewer, and NotFetched.
        """
        check_slice(records, seed, start)
        topic, end = _read(self.name), start + records
        if end > len(topic.records):
            raise InvalidConfig(f"{self.name}: {end} records are wanted, {len(topic.records)} were recorded")
        fields = BatchFields()
        if self.batch_size is None:
            first = int(np.searchsorted(topic.bounds, start, side="right")) - 1
            last = int(np.searchsorted(topic.bounds, end))
            inner, fields = topic.bounds[first + 1 : last] - start, topic.batch_fields.part(first, last)
            bounds = np.concatenate([[0], inner, [records]]) if records else np.zeros(1, np.int64)
        else:
            bounds = regular_bounds(self.batch_size, records, start)
        part = topic.records.part(start, end)
        return Sample(shapes=part.shapes, bounds=bounds, batch_fields=fields, payload=lambda: part)


@lru_cache(maxsize=3)
def _read(name: str) -> Sample:
    """Return all records of a topic, in its own batches."""
    fields = NO_FIELDS
    if name.startswith(PUBLIC_PREFIX):
        records = _read_public(name)
        bounds = np.array([0, len(records)])
    elif name.startswith(RECORDED):
        log = read_log(RECORDED_FOLDER / f"{name.removeprefix(RECORDED)}.log")
        records, bounds, fields = log.source_records, log.bounds, log.batch_fields
    else:
        log = read_log(LINES_FOLDER / f"{name.removeprefix(LINES)}.log")
        records, bounds = log.records.at_offsets(np.arange(len(log.records))), log.bounds
    return Sample(shapes=records.shapes, bounds=bounds, batch_fields=fields, payload=lambda: records)


def _public_file(name: str) -> Path:
    return PUBLIC / f"{name.removeprefix(PUBLIC_PREFIX).partition('-')[2]}.jsonl"


def _read_public(name: str) -> Records:
    """Return the first rows of a public set, as many as a block has, as records without keys.

    Their times have exponential gaps of MEAN_GAP_MS on average, and are always the same. Raises NotFetched.
    """
    path = _public_file(name)
    try:
        with path.open("rb") as file:
            values = [line.rstrip(b"\n") for line in islice(file, BLOCK_RECORDS)]
    except FileNotFoundError:
        raise NotFetched(f"{name}: {path.name} is not in the cache folder: run `make public`") from None
    gaps_ms = np.random.default_rng(0).exponential(MEAN_GAP_MS, len(values))
    return Records.from_lists(values, timestamps_ms=np.cumsum(gaps_ms).astype(np.int64))


def _topics() -> Iterator[RecordedTopic]:
    for path in sorted(LINES_FOLDER.glob("*.log")):
        yield RecordedTopic(name=f"{LINES}{path.stem}")
    for index in RECORDED_FOLDER.glob("index.json"):  # a wheel has none
        for entry in json.loads(index.read_text(encoding="utf-8")):
            if entry.get("batches", 0) >= LEAST_BATCHES and entry["file"].endswith(".log"):
                yield RecordedTopic(name=f"{RECORDED}{entry['file'].removesuffix('.log')}", batch_size=None)
    for recipe in sorted(RECIPES.glob("*.toml")):
        for name, entry in tomllib.loads(recipe.read_text(encoding="utf-8"))["sets"].items():
            kind = "json" if entry["path"].endswith(".json") else "table"
            yield RecordedTopic(name=f"{PUBLIC_PREFIX}{kind}-{name}")


TOPICS: Final[Mapping[str, RecordedTopic]] = {topic.name: topic for topic in _topics()}
