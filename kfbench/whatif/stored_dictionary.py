"""Dictionaries that stand in a log: what-if leaves their control batches out of the records, and counts their bytes."""

from collections import Counter
from dataclasses import replace
from typing import Final, NamedTuple

import numpy as np

from kfbench.arrays import Int64, ranges
from kfbench.codecs import CODEC_NAMES, Dictionary
from kfbench.formats import BY_MAGIC
from kfbench.log.dictionaries import dictionary_batches
from kfbench.records import Records
from kfbench.sources import Chunk


class Stored(NamedTuple):
    """A chunk without the control batches that store dictionaries. size_bytes: the bytes of these batches.

    numbers: the number of the dictionary that each of the other batches names, int64[batches]; -1: none.
    """

    chunk: Chunk
    size_bytes: int
    numbers: Int64

    def dictionary_of(self, batch: int) -> Dictionary | None:
        """Return the dictionary of a batch, or None if it has none or the chunk is not of a log."""
        if self.chunk.log is None or batch >= len(self.numbers):
            return None
        return self.chunk.log.dictionaries.get(int(self.numbers[batch]))


NOTHING_STORED: Final = Stored(Chunk(records=Records.from_lists([]), size_bytes=0), 0, np.zeros(0, np.int64))


def without_stored(chunk: Chunk) -> Stored:
    """Take the control batches that store dictionaries out of a chunk. Its `size_bytes` still includes them."""
    log = chunk.log
    if log is None or chunk.bounds is None:
        return Stored(chunk, 0, np.zeros(0, np.int64))
    rows, bounds = log.batch_rows, chunk.bounds
    stored = dictionary_batches(log)
    numbers = rows["dictionary"].astype(np.int64)
    if not stored:
        return Stored(chunk, 0, numbers)
    kept = np.setdiff1d(np.arange(len(log)), stored)
    counts = np.diff(bounds)[kept]
    kinds = Counter(chunk.kinds)
    for batch in stored:
        kinds[f"{BY_MAGIC[int(rows['magic'][batch])].name} {CODEC_NAMES[int(rows['codec'][batch])]}"] -= 1
    rest = replace(
        chunk,
        records=chunk.records.take(ranges(bounds[kept], counts)),
        bounds=np.append(0, np.cumsum(counts)),
        fields=chunk.fields.take(kept),
        kinds=+kinds,
    )
    return Stored(rest, int(rows["size_bytes"][stored].sum()), numbers[kept])
