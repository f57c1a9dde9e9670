"""Compare records that are generated from fingerprints with the original ones, in every format and codec.

    .venv/bin/python -m tools.fingerprint_likeness [NAME...]

It prints the table of docs/fingerprint.md: per topic and codec, the largest difference in any format.
"""

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np

from kfbench import BatchFields, Records, read_log
from kfbench.arrays import Int64, ranges
from kfbench.codecs import CODECS
from kfbench.errors import IllegalCombination
from kfbench.fingerprint.file import to_json
from kfbench.fingerprint.measure import fingerprint
from kfbench.formats import FORMATS
from kfbench.shipped import DATASETS
from kfbench.workloads import WORKLOADS
from kfbench.workloads.fingerprinted.fit import fitted
from kfbench.workloads.fingerprinted.model import models_of

FOLDER: Final = DATASETS / "recorded"
RECORDED: Final = (
    "activity-none.log", "activity-v0-none.log", "service-headers.log", "telemetry.log", "append-time.log",
    "transactions.log", "changelog.log",
)  # fmt: skip
NAMED: Final = tuple(name for name in WORKLOADS if name != "grid")
RECORDS: Final = {"large-payload": 200}
MOST_RECORDS: Final = 4_000


class Topic(NamedTuple):
    records: Records
    bounds: Int64
    fields: BatchFields

    def without_control(self) -> "Topic":
        """Return the records of clients, which a fingerprint's distributions describe."""
        batches = len(self.bounds) - 1
        rows = np.broadcast_to(self.fields.over(batches), batches)
        kept = np.flatnonzero(~rows["is_control"])
        counts = np.diff(self.bounds)[kept]
        records = self.records.take(ranges(self.bounds[kept], counts))
        return Topic(records, np.append(0, np.cumsum(counts)), BatchFields.trusted(rows[kept]))

    def bytes_per_record(self, format_name: str, codec: str) -> float:
        log = FORMATS[format_name].encode(self.records, self.bounds, codec, batch_fields=self.fields, lossy=True)
        return len(log.data) / len(self.records)


class Pair(NamedTuple):
    original: Topic
    generated: Topic


class Difference(NamedTuple):
    """change: bytes per record, generated / original - 1."""

    format: str
    codec: str
    change: float


def pair_of(name: str, folder: Path) -> Pair:
    """Return a topic, and one that is generated from its fingerprint. folder: for the log of a named workload."""
    if name in NAMED:
        sample = WORKLOADS[name].generate(records=RECORDS.get(name, MOST_RECORDS), seed=3)
        given = Topic(sample.records, sample.bounds, sample.batch_fields)
        path = folder / f"{name}-0" / f"{0:020d}.log"
        path.parent.mkdir()
        path.write_bytes(bytes(FORMATS["v2"].encode(given.records, given.bounds, batch_fields=given.fields)))
    else:
        path = FOLDER / name
        log = read_log(path)
        given = Topic(log.source_records, log.bounds, log.batch_fields)
    given = given.without_control()
    (model,) = models_of(to_json(fingerprint(path, seed=0).fingerprint), name)
    made = fitted(model).generate(records=len(given.records), seed=1)
    return Pair(given, Topic(made.records, made.bounds, made.batch_fields))


def differences(pair: Pair) -> Iterator[Difference]:
    """Yield the difference in each format and codec that go together."""
    for name in FORMATS:
        for codec in CODECS:
            try:
                original, generated = (topic.bytes_per_record(name, codec) for topic in pair)
            except IllegalCombination:
                continue
            yield Difference(name, codec, generated / original - 1)


def main(names: list[str]) -> None:
    print("| topic | records |" + "".join(f" {codec} |" for codec in CODECS))
    print("|---|--:|" + "--:|" * len(CODECS))
    with tempfile.TemporaryDirectory() as folder:
        for name in names or [*RECORDED, *NAMED]:
            pair = pair_of(name, Path(folder))
            found = list(differences(pair))
            worst = [
                max((each for each in found if each.codec == codec), key=lambda each: abs(each.change))
                for codec in CODECS
            ]
            cells = "".join(f" {each.change:+.1%} ({each.format}) |" for each in worst)
            print(f"| {name} | {len(pair.original.records):,} |{cells}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
