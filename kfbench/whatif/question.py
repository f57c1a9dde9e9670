"""The question that is answered for every part: formats, codecs, other batches, and the share that is compressed.

A part is a file, a share of a file or a partition. A stretch is a sequence of consecutive batches; only a sample of the
stretches is compressed.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Final

from kfbench.errors import InvalidConfig
from kfbench.sources import Part
from kfbench.sources.log import stream_of
from kfbench.sources.time_columns import Unit
from kfbench.whatif.collector import Collector
from kfbench.whatif.rebatch import Batching

MOST_TOPICS: Final = 12  # number of topics that have at least one stretch in the sample


@dataclass(frozen=True, kw_only=True)
class Question:
    """The settings for the work on each part: a file, a share of a file or a partition.

    They are small, because they are sent with every task. A stretch is about 64 KiB of consecutive batches. Only a
    sample of all stretches is compressed.

    Args:
        arms: pairs of format and codec. Their sizes are computed in the log's own batches.
        batchings: a producer's settings for other batches of the same records. Sizes without a codec are computed for
            all formats.
        divisions: more such settings. For these, the batches of a sample of chunks are counted.
        recoded: the formats that are compressed in other batches too.
        levels: pairs of codec and level. v2 is compressed at each of them, in the log's own batches.
        assumed: a producer's settings for the batches of sources that have none.
        share: the share of stretches that is compressed, above 0 and at most 1.
        level_share: the share of stretches that is compressed at every level, above 0 and at most 1.
        seed: decides which stretches are compressed.
        always: keys of parts (`Part.key`). The first stretch of these parts is compressed in any case; at every level,
            only the first stretch of the first key is.
        dictionary_shares: topic (`Source.stream`) -> the share of its stretches that trains and tests a dictionary.
        timestamp_unit: the unit of all numbers that are timestamps; None: the numbers tell it.
        units: topic (`Source.stream`) -> the unit that its numbers told when they were read before.
        collector: makes an object that is given all records of a part, for other sums than those of what-if.
    """

    arms: tuple[tuple[str, str], ...]
    batchings: tuple[Batching, ...] = ()
    divisions: tuple[Batching, ...] = ()
    recoded: tuple[str, ...] = ()
    levels: tuple[tuple[str, int], ...] = ()
    assumed: Batching | None = None
    share: float = 1.0
    level_share: float = 1.0
    seed: int = 0
    always: tuple[str, ...] = ()
    dictionary_shares: Mapping[str, float] = field(default_factory=dict)
    timestamp_unit: Unit | None = None
    units: Mapping[str, Unit] = field(default_factory=dict)
    collector: Callable[[], Collector] | None = None

    def __post_init__(self) -> None:
        for name in ("share", "level_share"):
            if not 0 < getattr(self, name) <= 1:
                raise InvalidConfig(f"{name}: {getattr(self, name)} is not above 0 and at most 1")

    @property
    def formats(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for name, _ in self.arms))

    def unit_of(self, part: Part) -> Unit | None:
        """Return the unit of a part's numbers that are timestamps; None: it is not known yet."""
        return self.timestamp_unit or self.units.get(stream_of(part.topic, part.name))

    @property
    def coded(self) -> list[tuple[str, str]]:
        """The pairs of format and codec without the codec "none"."""
        return [(name, codec) for name, codec in self.arms if codec != "none"]

    def is_certain(self, part: Part, number: int) -> bool:
        """Return True for a stretch that is drawn whatever the hash says, although others are not."""
        return self.share < 1 and not number and part.key in self.always

    def draws(self, part: Part, stream: object, number: int, times: int = 1) -> bool:
        """Return True if a stretch (consecutive batches) of the part is in the sample.

        Args:
            stream: identifies a way to divide the records into batches, or the chunks ("divisions").
            number: the number of the stretch, counted in this stream.
            times: multiplies the share of stretches in the sample.
        """
        return self._draws(part, stream, number, min(self.share * times, 1.0), self.always)

    def draws_levels(self, part: Part, number: int) -> bool:
        """Return True if a stretch of the log's own batches is compressed at every level.

        number: the number of the stretch in the part.
        """
        return bool(self.levels) and self._draws(part, "levels", number, self.level_share, self.always[:1])

    def draws_dictionary(self, part: Part, number: int) -> bool:
        """Return True if a stretch of the log's own batches trains or tests a dictionary."""
        share = self.dictionary_shares.get(stream_of(part.topic, part.name), 0.0)
        return share > 0 and self._draws(part, "dictionary", number, share, self.always)

    def _draws(self, part: Part, stream: object, number: int, share: float, always: tuple[str, ...]) -> bool:
        if share == 1 or (not number and part.key in always):
            return True
        where = f"{self.seed}/{part.key}/{stream}/{number}".encode(errors="surrogateescape")
        return int.from_bytes(blake2b(where, digest_size=8).digest(), "big") < share * 2**64


def always_drawn(parts: Iterable[Part], seed: int) -> tuple[str, ...]:
    """Return the keys of parts (files or partitions) whose first batches are always in the sample.

    They are one part of each of the MOST_TOPICS largest topics, the largest topic first.
    """
    return tuple(min(each, key=lambda part: _draw_order(part, seed)).key for each in _largest_topics(parts).values())


def dictionary_shares(parts: Iterable[Part], size_bytes: int) -> dict[str, float]:
    """Return the share of each of the MOST_TOPICS largest topics. The shares have about `size_bytes` bytes together."""
    largest = _largest_topics(parts)
    most_bytes = size_bytes / max(len(largest), 1)
    sizes = {topic: sum(part.size_bytes for part in each) for topic, each in largest.items()}
    return {topic: min(most_bytes / max(of_topic, 1), 1.0) for topic, of_topic in sizes.items()}


def _largest_topics(parts: Iterable[Part]) -> dict[str, list[Part]]:
    topics: dict[str, list[Part]] = {}
    for part in parts:
        topics.setdefault(stream_of(part.topic, part.name), []).append(part)
    return dict(sorted(topics.items(), key=lambda each: -sum(part.size_bytes for part in each[1]))[:MOST_TOPICS])


def _draw_order(part: Part, seed: int) -> tuple[bool, bytes, str]:
    """Return a sort key that orders files or partitions by a hash. Empty ones come last."""
    return (
        not part.size_bytes,
        blake2b(f"{seed}/{part.key}".encode(errors="surrogateescape"), digest_size=8).digest(),
        part.key,
    )
