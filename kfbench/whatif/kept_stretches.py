"""The sample for levels and topic dictionaries: stretches of consecutive batches with their records.

The codec's sample keeps sizes only. Levels are compared after reading, and a dictionary is trained on the records of a
topic's first part and tested on those of the rest. So these records are kept until the whole source is read.
Dictionaries that stand in the log are no records: their control batches are left out, and their bytes counted.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kfbench.arrays import Int64, group_bounds, ranges
from kfbench.codecs import Dictionary, codec_names
from kfbench.formats import BASE_FORMAT, BY_MAGIC, FORMATS
from kfbench.log.dictionaries import dictionary_batches
from kfbench.sources import Chunk, Part
from kfbench.sources.log import stream_of
from kfbench.whatif.question import OTHER_TOPICS, Question
from kfbench.whatif.rebatch import Batches

STRETCH_BYTES: Final = 64 << 10  # size of a stretch in uncompressed v2; it is in a sample as a whole or not at all
SOURCE_BYTES: Final = 4 << 20  # of the source, divided among its largest topics; the others get as much as one of these
MOST_PART_BYTES: Final = 4 << 20  # of uncompressed v2 that one part keeps at most
MOST_BYTES: Final = 4 << 20  # of uncompressed v2 that all topics keep together; half of it trains


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
        kinds[f"{BY_MAGIC[int(rows['magic'][batch])].name} {codec_names()[int(rows['codec'][batch])]}"] -= 1
    rest = replace(
        chunk,
        records=chunk.records.take(ranges(bounds[kept], counts)),
        bounds=np.append(0, np.cumsum(counts)),
        fields=chunk.fields.take(kept),
        kinds=+kinds,
    )
    return Stored(rest, int(rows["size_bytes"][stored].sum()), numbers[kept])


class KeptStretch(NamedTuple):
    """Consecutive batches, with copies of their records.

    Args:
        stream: the topic, or what takes its place (`Source.stream`).
        partition: the partition; None: it is unknown.
        file, start, number: the position of the stretch: a path, the beginning of a share of the file, a count.
        sizes: bytes of each batch in uncompressed v2, int64[batches].
        seed: decides which parts of the stretch are compressed at all levels.
        dictionary: the dictionary that the last client's batch was compressed with; None: it has none.
    """

    stream: str
    partition: int | None
    file: str
    start: int
    number: int
    batches: Batches
    sizes: Int64
    seed: int
    dictionary: Dictionary | None = None

    @property
    def plain_bytes(self) -> int:
        return int(self.sizes.sum())

    def part(self, first: int, end: int) -> "KeptStretch":
        """Return the batches first to end - 1."""
        return self._replace(batches=self.batches.part(first, end), sizes=self.sizes[first:end])

    def of_clients(self) -> "KeptStretch":
        """Return the stretch without control batches and empty ones."""
        wanted = np.flatnonzero(is_compressed(self.batches))
        if len(wanted) == len(self.sizes):
            return self
        return self._replace(batches=self.batches.take(wanted).packed(), sizes=self.sizes[wanted])


def is_compressed(batches: Batches) -> NDArray[np.bool_]:
    """Return True for each batch that Kafka compresses: bool[batches]. Control batches and empty ones stay plain."""
    counts = np.diff(batches.bounds)
    filled: NDArray[np.bool_] = (counts > 0) & ~batches.fields.over(len(counts))["is_control"]
    return filled


class StretchKeeper:
    """Keeps the stretches of one file or partition that a hash draws.

    Where they exceed MOST_PART_BYTES, every second one is dropped, and of those that follow only every second one is
    kept. So the kept ones are spread over the whole part, however much it grows under decompression.
    """

    def __init__(self, part: Part, question: Question) -> None:
        self._part, self._question = part, question
        shares = question.kept_shares
        self._share = shares.get(stream_of(part.topic, part.name), shares.get(OTHER_TOPICS, 0.0))
        self._number = self._drawn = 0
        self._stride = 1
        self.stretches: list[KeptStretch] = []

    def add(self, batches: Batches, stored: Stored | None) -> None:
        """Draw stretches of these batches. They must follow those that were added before.

        stored: has the dictionaries of the batches; None: they have none.
        """
        if not self._share or len(batches.bounds) < 2:
            return
        sizes = FORMATS[BASE_FORMAT].size(*batches)
        of_clients = np.flatnonzero(is_compressed(batches))
        for first, end in pairwise(group_bounds(sizes, STRETCH_BYTES).tolist()):
            number, self._number = self._number, self._number + 1
            if self._question.draws(self._part, "dictionary", number, self._share):
                self._drawn += 1
                if (self._drawn - 1) % self._stride == 0:
                    before = of_clients[(of_clients >= first) & (of_clients < end)]
                    dictionary = stored.dictionary_of(int(before[-1])) if stored and len(before) else None
                    self._keep(number, batches.take(np.arange(first, end)), sizes[first:end], dictionary)

    def _keep(self, number: int, batches: Batches, sizes: Int64, dictionary: Dictionary | None) -> None:
        part: Any = self._part
        span = getattr(part, "span", None)  # tables; segments have `start`
        self.stretches.append(
            KeptStretch(
                stream=stream_of(part.topic, part.name),
                partition=part.partition,
                file=part.name,
                start=span.start if span else getattr(part, "start", 0),
                number=number,
                batches=batches.packed(),
                sizes=sizes,
                seed=self._question.hash(part, "levels", number),
                dictionary=dictionary,
            )
        )
        if len(self.stretches) > 1 and sum(each.plain_bytes for each in self.stretches) > MOST_PART_BYTES:
            self.stretches = self.stretches[::2]
            self._stride *= 2


class Halves(NamedTuple):
    """The stretches of one topic that train a dictionary, and those that test it. The first are older."""

    train: list[KeptStretch]
    test: list[KeptStretch]


def halves_by_topic(stretches: Iterable[KeptStretch]) -> dict[str, Halves]:
    """Divide the stretches of each partition by their bytes: the first half trains, the rest tests.

    Where there are too many stretches, some at equal distances are left out.
    """
    topics: dict[str, dict[Any, list[KeptStretch]]] = {}
    for whole in sorted(stretches, key=lambda each: (each.file, each.start, each.number)):
        each = whole.of_clients()
        if not len(each.sizes):
            continue
        each.batches.freeze()
        key = each.file if each.partition is None and each.stream == each.file else each.partition
        topics.setdefault(each.stream, {}).setdefault(key, []).append(each)
    most_bytes = MOST_BYTES // max(len(topics), 1)
    found: dict[str, Halves] = {}
    for topic, partitions in topics.items():
        halves = found[topic] = Halves([], [])
        topic_bytes = sum(each.plain_bytes for of_one in partitions.values() for each in of_one)
        for of_one in partitions.values():
            wanted = max(round(len(of_one) * min(most_bytes / topic_bytes, 1)), 1)
            thinned = [of_one[i * len(of_one) // wanted] for i in range(wanted)]
            _divide(thinned, halves)
    return found


def _divide(stretches: list[KeptStretch], halves: Halves) -> None:
    left_bytes = sum(each.plain_bytes for each in stretches) // 2
    for each in stretches:
        cut = int(np.searchsorted(np.cumsum(each.sizes), left_bytes, "right")) if left_bytes > 0 else 0
        if cut:
            halves.train.append(each.part(0, cut))
        if cut < len(each.sizes):
            left_bytes = 0  # all batches that follow are newer
            halves.test.append(each.part(cut, len(each.sizes)))
        else:
            left_bytes -= each.plain_bytes
