"""The first table of apache/kafka pull request 23477 (KAFKA-21081), measured again on the same records.

A time lookup in Kafka iterates over whole records. The pull request skips their keys and values. The table has the
bytes that an iteration allocates: v2 batches of 1 to 200 records with 1,000 random bytes each, without a cache of
buffers.
`python -m tools.jmh_published` repeats it.
"""

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Final

import msgspec

from kfbench.report.data.words import percent
from kfbench.shipped import DATASETS
from kfbench.tables import Column, Table, plain_columns

FILE: Final = DATASETS / "second-opinion" / "published.json"
WHOLE, BODILESS = "whole", "withoutBodies"
PUBLISHED: Final[Mapping[tuple[str, str], int]] = {
    ("none", WHOLE): 90_120,
    ("none", BODILESS): 90_120,
    ("gzip", WHOLE): 243_530,
    ("gzip", BODILESS): 32_811,
    ("lz4", WHOLE): 285_592,
    ("lz4", BODILESS): 74_873,
    ("zstd", WHOLE): 359_726,
    ("zstd", BODILESS): 154_769,
}
"""Codec and reading -> allocated bytes per batch, as published."""
_WORDS: Final = {WHOLE: "whole records", BODILESS: "without keys and values"}


class _Row(msgspec.Struct, frozen=True):
    codec: str
    reading: str
    bytes_per_batch: float


class Published(msgspec.Struct, frozen=True):
    """The stored repetition. kafka: its version."""

    kafka: str
    jvm: str
    measured: str
    rows: list[_Row]

    @property
    def largest_difference(self) -> float:
        """The largest relative difference from a published number."""
        return max(abs(row.bytes_per_batch / PUBLISHED[row.codec, row.reading] - 1) for row in self.rows)


@lru_cache(maxsize=1)
def load(path: Path = FILE) -> Published | None:
    """Read the stored repetition; None if there is none."""
    return msgspec.json.decode(path.read_bytes(), type=Published) if path.is_file() else None


def iteration_sentence(found: Published) -> str:
    """Say how near the repetition comes to the published numbers."""
    return (
        f"The first table of Kafka's pull request 23477 comes out within {percent(found.largest_difference)} on Kafka "
        f"{found.kafka}."
    )


def iteration_table(found: Published) -> Table:
    """Return a table with the published and the repeated number of each codec and reading."""
    return Table(
        name="published-iteration",
        caption="Pull request 23477, measured again: bytes that Kafka allocates to iterate over a v2 batch",
        columns=(
            *plain_columns("codec", "reading"),
            *plain_columns("published (bytes)", f"Kafka {found.kafka} (bytes)", digits=0),
            Column(name="ratio", unit="×", digits=3),
        ),
        rows=tuple(
            (
                row.codec,
                _WORDS[row.reading],
                (published := PUBLISHED[row.codec, row.reading]),
                row.bytes_per_batch,
                row.bytes_per_batch / published,
            )
            for row in found.rows
        ),
    )
