"""The sample for levels and topic dictionaries: stretches of consecutive batches with their records.

The codec's sample keeps sizes only. Levels are compared after reading, and a dictionary is trained on the records of a
topic's first part and tested on those of the rest. So these records are kept until the whole source is read.
Dictionaries that stand in the log are no records: their control batches are left out, and their bytes counted.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kfbench.arrays import Int64, group_bounds, ranges
from kfbench.batches import BatchFields
from kfbench.codecs import CODECS, Dictionary, codec_names
from kfbench.formats import BASE_FORMAT, BY_MAGIC, FORMATS
from kfbench.kernels.jit import compiled_only
from kfbench.log.dictionaries import dictionary_batches
from kfbench.log.segment import join_records
from kfbench.log.writing import chained
from kfbench.sources import Chunk, Part
from kfbench.sources.log import stream_of
from kfbench.whatif.estimate import StretchSums
from kfbench.whatif.question import OTHER_TOPICS, Question
from kfbench.whatif.rebatch import Batches

STRETCH_BYTES: Final = 64 << 10  # size of a stretch in uncompressed v2; it is in a sample as a whole or not at all
SOURCE_BYTES: Final = 4 << 20  # of the source, divided among its largest topics; the others get as much as one of these
MOST_PART_BYTES: Final = 4 << 20  # of uncompressed v2 that one part keeps at most
MOST_BYTES: Final = 4 << 20  # of uncompressed v2 that all topics keep together; half of it trains

# The sample for levels, in bytes of uncompressed v2.
PIECE_BYTES: Final = 4 << 10  # a larger batch is a piece of its own
LEVEL_BYTES: Final = 256 << 10  # compressed at all levels: about a second of CPU
MOST_LEVEL_BYTES: Final = 1 << 20  # where pieces are so large that LEVEL_BYTES do not have LEAST_PIECES of each topic
LEAST_PIECES: Final = 2  # fewer do not tell an error

Mapper = Callable[[Callable[[Any], Any], Iterable[Any]], Iterable[Any]]


class PlainChunk(NamedTuple):
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


def without_dictionaries(chunk: Chunk) -> PlainChunk:
    """Take the control batches that store dictionaries out of a chunk. Its `size_bytes` still includes them."""
    log = chunk.log
    if log is None or chunk.bounds is None:
        return PlainChunk(chunk, 0, np.zeros(0, np.int64))
    rows, bounds = log.batch_rows, chunk.bounds
    of_dictionaries = dictionary_batches(log)
    numbers = rows["dictionary"].astype(np.int64)
    if not of_dictionaries:
        return PlainChunk(chunk, 0, numbers)
    others = np.setdiff1d(np.arange(len(log)), of_dictionaries)
    counts = np.diff(bounds)[others]
    kinds = Counter(chunk.kinds)
    for batch in of_dictionaries:
        kinds[f"{BY_MAGIC[int(rows['magic'][batch])].name} {codec_names()[int(rows['codec'][batch])]}"] -= 1
    rest = replace(
        chunk,
        records=chunk.records.take(ranges(bounds[others], counts)),
        bounds=np.append(0, np.cumsum(counts)),
        fields=chunk.fields.take(others),
        kinds=+kinds,
    )
    return PlainChunk(rest, int(rows["size_bytes"][of_dictionaries].sum()), numbers[others])


class LogStretch(NamedTuple):
    """Consecutive batches, with copies of their records.

    Args:
        stream: the topic, or what takes its place (`StoredSource.stream`).
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

    def part(self, first: int, end: int) -> "LogStretch":
        """Return the batches first to end - 1."""
        return self._replace(batches=self.batches.part(first, end), sizes=self.sizes[first:end])

    def of_clients(self) -> "LogStretch":
        """Return the stretch without control batches and empty ones."""
        wanted = np.flatnonzero(is_compressed(self.batches))
        if len(wanted) == len(self.sizes):
            return self
        return self._replace(batches=self.batches.take(wanted).pack(), sizes=self.sizes[wanted])


def is_compressed(batches: Batches) -> NDArray[np.bool_]:
    """Return True for each batch that Kafka compresses: bool[batches]. Control batches and empty ones stay plain."""
    counts = np.diff(batches.bounds)
    filled: NDArray[np.bool_] = (counts > 0) & ~batches.fields.over(len(counts))["is_control"]
    return filled


def compressed_sizes(batches: Batches, name: str, codec: str, level: int | None, plain: Int64) -> Int64:
    """Return the bytes of each batch under a codec, int64[batches]. plain: their bytes without a codec."""
    records, bounds, of_batches = batches
    encoded = FORMATS[name].encode(records, bounds, codec, level, of_batches, lossy=True)
    sizes: Int64 = np.where(is_compressed(batches), np.diff(encoded.positions), plain)
    return sizes


class PartStretches:
    """Keeps the stretches of one file or partition that a hash draws.

    Where they exceed MOST_PART_BYTES, every second one is dropped, and of those that follow only every second one is
    kept. So the kept ones are spread over the whole part, however much it grows under decompression.
    """

    def __init__(self, part: Part, question: Question) -> None:
        self._part, self._question = part, question
        shares = question.stretch_shares
        self._share = shares.get(stream_of(part.topic, part.name), shares.get(OTHER_TOPICS, 0.0))
        self._number = self._sampled = 0
        self._stride = 1
        self.stretches: list[LogStretch] = []

    def add(self, batches: Batches, given: PlainChunk | None) -> None:
        """Draw stretches of these batches. They must follow those that were added before.

        given: has the dictionaries of the batches; None: they have none.
        """
        if not self._share or len(batches.bounds) < 2:
            return
        sizes = FORMATS[BASE_FORMAT].size(*batches)
        of_clients = np.flatnonzero(is_compressed(batches))
        for first, end in pairwise(group_bounds(sizes, STRETCH_BYTES).tolist()):
            number, self._number = self._number, self._number + 1
            if self._question.draws(self._part, "dictionary", number, self._share):
                self._sampled += 1
                if (self._sampled - 1) % self._stride == 0:
                    before = of_clients[(of_clients >= first) & (of_clients < end)]
                    dictionary = given.dictionary_of(int(before[-1])) if given and len(before) else None
                    self._add_stretch(number, batches.take(np.arange(first, end)), sizes[first:end], dictionary)

    def _add_stretch(self, number: int, batches: Batches, sizes: Int64, dictionary: Dictionary | None) -> None:
        part: Any = self._part
        span = getattr(part, "span", None)  # tables; segments have `start`
        self.stretches.append(
            LogStretch(
                stream=stream_of(part.topic, part.name),
                partition=part.partition,
                file=part.name,
                start=span.start if span else getattr(part, "start", 0),
                number=number,
                batches=batches.pack(),
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

    train: list[LogStretch]
    test: list[LogStretch]


def halves_by_topic(stretches: Iterable[LogStretch]) -> dict[str, Halves]:
    """Divide the stretches of each partition by their bytes: the first half trains, the rest tests.

    Where there are too many stretches, some at equal distances are left out.
    """
    topics: dict[str, dict[Any, list[LogStretch]]] = {}
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


def _divide(stretches: list[LogStretch], halves: Halves) -> None:
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


@dataclass(frozen=True)
class LevelSums:
    """Sums over the sample for levels, of v2.

    Args:
        stretches: by (topic, codec, level). `StretchSums.plain` has the bytes at the codec's default level.
        plain_bytes: bytes of uncompressed v2, by topic.
        cpu_ns: CPU time by (codec, level).
    """

    stretches: Mapping[tuple[str, str, int], StretchSums] = field(default_factory=dict)
    plain_bytes: Counter[str] = field(default_factory=Counter)
    cpu_ns: Counter[tuple[str, int]] = field(default_factory=Counter, compare=False)


def at_levels(stretches: Iterable[LogStretch], question: Question, run: Mapper = map) -> LevelSums:
    """Compress pieces of the stretches at each level of the question. run: calls the codecs. It works like `map`."""
    pieces = _choose_pieces(stretches, question) if question.levels else []
    if not pieces:
        return LevelSums()
    batches = _join([piece.batches for piece in pieces])
    plain = np.concatenate([piece.sizes for piece in pieces])
    firsts = np.cumsum([0, *(len(piece.sizes) for piece in pieces)])[:-1]
    defaults = {codec: (codec, CODECS[codec].default_level or 0) for codec, _ in question.levels}
    slowest_first = sorted({*question.levels, *defaults.values()}, key=lambda pair: -pair[1])  # threads end together
    with compiled_only():
        _at_level(batches.part(0, 1), plain[:1], firsts[:1], slowest_first[-1])  # compiles before a time is taken
        found = dict(zip(slowest_first, run(partial(_at_level, batches, plain, firsts), slowest_first), strict=True))
    places: dict[str, list[int]] = {}
    for place, piece in enumerate(pieces):
        places.setdefault(piece.stream, []).append(place)
    return LevelSums(
        {
            (topic, *pair): StretchSums.of(
                *(found[each].sizes[of_topic].tolist() for each in (defaults[pair[0]], pair))
            )
            for topic, of_topic in places.items()
            for pair in question.levels
        },
        Counter({topic: sum(pieces[i].plain_bytes for i in of_topic) for topic, of_topic in places.items()}),
        Counter({pair: found[pair].cpu_ns for pair in question.levels}),
    )


def _choose_pieces(stretches: Iterable[LogStretch], question: Question) -> list[LogStretch]:
    """Choose pieces of stretches at random, about the same number of bytes from each topic.

    Topics without a share of their own count as one. Where a topic has fewer bytes, the others have more.
    """
    waiting: dict[str, list[tuple[float, LogStretch]]] = {}
    for each in stretches:
        bounds = group_bounds(each.sizes, PIECE_BYTES).tolist()
        draws = np.random.default_rng(each.seed).random(len(bounds) - 1).tolist()
        topic = each.stream if each.stream in question.stretch_shares else OTHER_TOPICS
        waiting.setdefault(topic, []).extend(
            (draw, each.part(*ends)) for draw, ends in zip(draws, pairwise(bounds), strict=True)
        )
    for pieces in waiting.values():
        pieces.sort(key=lambda piece: -piece[0])
    share = len(waiting) / max(len(question.stretch_shares), 1)  # below 1 where topics are read one by one
    chosen: dict[str, list[LogStretch]] = {topic: [] for topic in sorted(waiting)}
    sizes = dict.fromkeys(chosen, 0)
    while waiting:
        topic = min(waiting, key=lambda topic: (min(len(chosen[topic]), LEAST_PIECES), sizes[topic], topic))
        most_bytes = LEVEL_BYTES if len(chosen[topic]) >= LEAST_PIECES else MOST_LEVEL_BYTES
        if sum(sizes.values()) >= most_bytes * share:
            break
        _, piece = waiting[topic].pop()
        chosen[topic].append(piece)
        sizes[topic] += piece.plain_bytes
        if not waiting[topic]:
            del waiting[topic]
    return [piece for pieces in chosen.values() for piece in pieces]


def _join(given: Sequence[Batches]) -> Batches:
    """Join batches. Tagged fields are left out, because v2 has none."""
    rows = np.concatenate([np.broadcast_to(each.fields.rows, len(each.bounds) - 1) for each in given])
    rows["tags_count"] = 0
    records, bounds = join_records([each.records for each in given]), chained([each.bounds for each in given])
    whole = Batches(records, bounds, BatchFields.trusted(rows))
    whole.freeze()
    return whole


class _LevelBytes(NamedTuple):
    """The bytes of each piece at a level, int64[pieces], and the CPU time of all."""

    sizes: Int64
    cpu_ns: int


def _at_level(batches: Batches, plain: Int64, firsts: Int64, pair: tuple[str, int]) -> _LevelBytes:
    """Compress batches at a level of a codec.

    plain: int64[batches], their sizes in uncompressed v2. firsts: int64[pieces], the first batch of each piece.
    """
    # Make the level's context before the time is taken. That of zstd 19 has 90 MiB, and takes longer than a stretch.
    CODECS[pair[0]].compress(b"0", pair[1])
    since_ns = time.thread_time_ns()
    sizes = compressed_sizes(batches, BASE_FORMAT, *pair, plain)
    return _LevelBytes(np.add.reduceat(sizes, firsts), time.thread_time_ns() - since_ns)
