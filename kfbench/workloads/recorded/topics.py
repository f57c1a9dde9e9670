"""Workloads of topics that exist already, so they end and have no seed. One workload per topic, of three kinds:

- lines-NAME: log lines that real software wrote, which a real broker stored (datasets/lines).
- recorded-NAME: segments of real brokers with at least 40 batches, in their own batches (datasets/recorded).
- public-json-NAME, public-table-NAME: rows of public data sets, which `make public` fetches.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, NamedTuple

import numpy as np

from kfbench.arrays import Int64
from kfbench.batches import NO_FIELDS, BatchFields
from kfbench.errors import InvalidConfig
from kfbench.log import read_log
from kfbench.records import Records
from kfbench.shipped import DATASETS
from kfbench.workloads.base.workload import BLOCK_RECORDS, Description, Sample, check_slice
from kfbench.workloads.recorded import public

LINES_FOLDER: Final = DATASETS / "lines"
RECORDED_FOLDER: Final = DATASETS / "recorded"
LINES: Final = "lines-"
RECORDED: Final = "recorded-"
LEAST_BATCHES: Final = 40  # a dictionary is not worth measuring on fewer
_STORIES: Final = {
    LINES: "Log lines of real software. The README of datasets/lines names it.",
    RECORDED: "A log segment of a real broker. The README of datasets/recorded describes it.",
    public.PREFIX: "Rows of a public data set, one per record. The README of datasets/public names its source.",
}


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
        if self.batch_size is None and self.name.startswith(RECORDED):
            return
        if not isinstance(self.batch_size, int) or not 1 <= self.batch_size <= BLOCK_RECORDS:
            raise InvalidConfig(f"batch_size: {self.batch_size!r} is not 1 to {BLOCK_RECORDS}")

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
        return not self.name.startswith(public.PREFIX) or public.set_file(self.name).exists()

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
        else:
            inner = np.arange(-start % self.batch_size or self.batch_size, records, self.batch_size)
        part = topic.records.part(start, end)
        bounds = np.concatenate([[0], inner, [records]]) if records else np.zeros(1, np.int64)
        return Sample(shapes=part.shapes, bounds=bounds, batch_fields=fields, payload=lambda: part)


class _Topic(NamedTuple):
    """The records of a whole topic, and its own batches. bounds: int64[batches + 1]."""

    records: Records
    bounds: Int64
    batch_fields: BatchFields


@lru_cache(maxsize=3)
def _read(name: str) -> _Topic:
    if name.startswith(public.PREFIX):
        records = public.read_set(name)
        return _Topic(records, np.array([0, len(records)]), NO_FIELDS)
    if name.startswith(RECORDED):
        log = read_log(RECORDED_FOLDER / f"{name.removeprefix(RECORDED)}.log")
        return _Topic(log.source_records, log.bounds, log.batch_fields)
    lines = read_log(LINES_FOLDER / f"{name.removeprefix(LINES)}.log")
    return _Topic(lines.records.at_offsets(np.arange(len(lines.records))), lines.bounds, NO_FIELDS)


def _topics() -> Iterator[RecordedTopic]:
    for path in sorted(LINES_FOLDER.glob("*.log")):
        yield RecordedTopic(name=f"{LINES}{path.stem}")
    for index in RECORDED_FOLDER.glob("index.json"):  # a wheel has none
        for entry in json.loads(index.read_text(encoding="utf-8")):
            if entry.get("batches", 0) >= LEAST_BATCHES and entry["file"].endswith(".log"):
                yield RecordedTopic(name=f"{RECORDED}{entry['file'].removesuffix('.log')}", batch_size=None)
    for name in public.set_names():
        yield RecordedTopic(name=name)


TOPICS: Final[Mapping[str, RecordedTopic]] = {topic.name: topic for topic in _topics()}
