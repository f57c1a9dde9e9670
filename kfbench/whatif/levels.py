"""Compress a sample of v2 at every level of each codec. It is small, so this happens after all parts have been read."""

import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np

from kfbench.arrays import Int64, group_bounds
from kfbench.batches import BatchFields
from kfbench.codecs import CODECS
from kfbench.formats import BASE_FORMAT
from kfbench.log.segment import join_records
from kfbench.log.writing import chained
from kfbench.whatif.estimate import Drawn
from kfbench.whatif.kept_stretches import KeptStretch
from kfbench.whatif.question import OTHER_TOPICS, Question
from kfbench.whatif.rebatch import Batches
from kfbench.whatif.sums import Tally
from kfbench.whatif.tally import Run, coded_sizes

# All sizes are of uncompressed v2.
PIECE_BYTES: Final = 4 << 10  # a larger batch is a piece of its own
LEVEL_BYTES: Final = 256 << 10  # compressed at all levels: about a second of CPU
MOST_BYTES: Final = 1 << 20  # where pieces are so large that LEVEL_BYTES do not have LEAST_PIECES of each topic
LEAST_PIECES: Final = 2  # fewer do not tell an error


def at_levels(sums: Tally, question: Question, run: Run = map) -> Tally:
    """Return the sums with those of a sample of `Tally.kept` at each level of the question.

    run: calls the codecs. It works like `map`.
    """
    pieces = _chosen(sums.kept, question) if question.levels else []
    if not pieces:
        return sums
    batches = _joined([piece.batches for piece in pieces])
    plain = np.concatenate([piece.sizes for piece in pieces])
    firsts = np.cumsum([0, *(len(piece.sizes) for piece in pieces)])[:-1]
    defaults = {codec: (codec, CODECS[codec].default_level or 0) for codec, _ in question.levels}
    slowest_first = sorted({*question.levels, *defaults.values()}, key=lambda pair: -pair[1])  # threads end together
    coded = dict(zip(slowest_first, run(partial(_code, batches, plain, firsts), slowest_first), strict=True))
    places: dict[str, list[int]] = {}
    for place, piece in enumerate(pieces):
        places.setdefault(piece.stream, []).append(place)
    return replace(
        sums,
        levels={
            (topic, *pair): Drawn.of(*(coded[each].sizes[of_topic].tolist() for each in (defaults[pair[0]], pair)))
            for topic, of_topic in places.items()
            for pair in question.levels
        },
        level_plain_bytes=Counter({topic: sum(pieces[i].plain_bytes for i in ofs) for topic, ofs in places.items()}),
        level_cpu_ns=Counter({pair: coded[pair].cpu_ns for pair in question.levels}),
    )


def _chosen(stretches: Iterable[KeptStretch], question: Question) -> list[KeptStretch]:
    """Choose pieces of stretches at random, about the same number of bytes from each topic.

    Topics without a share of their own count as one. Where a topic has fewer bytes, the others have more.
    """
    waiting: dict[str, list[tuple[float, KeptStretch]]] = {}
    for each in stretches:
        bounds = group_bounds(each.sizes, PIECE_BYTES).tolist()
        draws = np.random.default_rng(each.seed).random(len(bounds) - 1).tolist()
        topic = each.stream if each.stream in question.kept_shares else OTHER_TOPICS
        waiting.setdefault(topic, []).extend(
            (draw, each.part(*ends)) for draw, ends in zip(draws, pairwise(bounds), strict=True)
        )
    for pieces in waiting.values():
        pieces.sort(key=lambda piece: -piece[0])
    share = len(waiting) / max(len(question.kept_shares), 1)  # below 1 where topics are read one by one
    chosen: dict[str, list[KeptStretch]] = {topic: [] for topic in sorted(waiting)}
    sizes = dict.fromkeys(chosen, 0)
    while waiting:
        topic = min(waiting, key=lambda topic: (min(len(chosen[topic]), LEAST_PIECES), sizes[topic], topic))
        most_bytes = LEVEL_BYTES if len(chosen[topic]) >= LEAST_PIECES else MOST_BYTES
        if sum(sizes.values()) >= most_bytes * share:
            break
        _, piece = waiting[topic].pop()
        chosen[topic].append(piece)
        sizes[topic] += piece.plain_bytes
        if not waiting[topic]:
            del waiting[topic]
    return [piece for pieces in chosen.values() for piece in pieces]


def _joined(given: Sequence[Batches]) -> Batches:
    """Join batches. Tagged fields are left out, because v2 has none."""
    rows = np.concatenate([np.broadcast_to(each.fields.rows, len(each.bounds) - 1) for each in given])
    rows["tags_count"] = 0
    records, bounds = join_records([each.records for each in given]), chained([each.bounds for each in given])
    joined = Batches(records, bounds, BatchFields.trusted(rows))
    joined.freeze()
    return joined


class _Coded(NamedTuple):
    """The bytes of each piece at a level, int64[pieces], and the CPU time of all."""

    sizes: Int64
    cpu_ns: int


def _code(batches: Batches, plain: Int64, firsts: Int64, pair: tuple[str, int]) -> _Coded:
    """Compress batches at a level of a codec.

    plain: int64[batches], their sizes in uncompressed v2. firsts: int64[pieces], the first batch of each piece.
    """
    # Make the level's context before the time is taken. That of zstd 19 has 90 MiB, and takes longer than a stretch.
    CODECS[pair[0]].compress(b"0", pair[1])
    since_ns = time.thread_time_ns()
    sizes = coded_sizes(batches, BASE_FORMAT, *pair, plain)
    return _Coded(np.add.reduceat(sizes, firsts), time.thread_time_ns() - since_ns)
