"""The question that is answered for every part: formats, codecs, other batches, and the shares of samples."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Final

from kfbench.errors import InvalidConfig
from kfbench.sources import Part
from kfbench.sources.log import stream_of
from kfbench.sources.time_columns import Unit
from kfbench.whatif.rebatch import Batching

MOST_TOPICS: Final = 12  # number of topics that have at least one stretch in each sample
OTHER_TOPICS: Final = ""  # stands for all other topics


@dataclass(frozen=True, kw_only=True)
class Question:
    """The settings for the work on each part: a file, a share of a file or a partition.

    They are small, because they are sent with every task. A stretch is about 64 KiB of consecutive batches. Only a
    sample of all stretches is compressed.

    Args:
        arms: pairs of format and codec. Their sizes are computed in the log's own batches.
        batchings: a producer's settings for other batches of the same records. Sizes without a codec are computed for
            all formats.
        compressed_formats: the formats that are compressed in other batches too.
        levels: pairs of codec and level. v2 is compressed at each of them, in the log's own batches.
        assumed: a producer's settings for the batches of sources that have none.
        share: the share of stretches that is compressed, above 0 and at most 1.
        timestamp_unit: the unit of all numbers that are timestamps; None: the numbers tell it.
        units: topic (`StoredSource.stream`) -> the unit that its numbers told when they were read before.
        seed: decides which stretches are in a sample.
        always: keys of parts (`Part.key`). The first stretch of these parts is in every sample.
        stretch_shares: the share of stretches whose records are kept, for levels and dictionaries, by topic
            (`StoredSource.stream`). OTHER_TOPICS: that of all topics without a share of their own.
    """

    arms: tuple[tuple[str, str], ...]
    batchings: tuple[Batching, ...] = ()
    compressed_formats: tuple[str, ...] = ()
    levels: tuple[tuple[str, int], ...] = ()
    assumed: Batching | None = None
    share: float = 1.0
    seed: int = 0
    always: tuple[str, ...] = ()
    timestamp_unit: Unit | None = None
    units: Mapping[str, Unit] = field(default_factory=dict)
    stretch_shares: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not 0 < self.share <= 1:
            raise InvalidConfig(f"share: {self.share} is not above 0 and at most 1")

    @property
    def formats(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for name, _ in self.arms))

    def unit_of(self, part: Part) -> Unit | None:
        """Return the unit of a part's numbers that are timestamps; None: it is not known yet."""
        return self.timestamp_unit or self.units.get(stream_of(part.topic, part.name))

    @property
    def compressed_arms(self) -> list[tuple[str, str]]:
        """The pairs of format and codec without the codec "none"."""
        return [(name, codec) for name, codec in self.arms if codec != "none"]

    def is_certain(self, part: Part, number: int) -> bool:
        """Return True for the stretches that are in every sample, whatever the hash says."""
        return not number and part.key in self.always

    def draws(self, part: Part, stream: object, number: int, share: float) -> bool:
        """Return True if a stretch (consecutive batches) of the part is in a sample.

        Args:
            stream: identifies a way to divide the records into batches.
            number: the number of the stretch, counted in this stream.
            share: the share of stretches that is in the sample.
        """
        return share == 1 or self.is_certain(part, number) or self.hash(part, stream, number) < share * 2**64

    def hash(self, part: Part, stream: object, number: int) -> int:
        """Return a random number of 64 bits for a stretch. All workers have the same."""
        return _hash(self.seed, part.key, stream, number)


def always_sampled(parts: Iterable[Part], seed: int) -> tuple[str, ...]:
    """Return the keys of parts (files or partitions) whose first batches are always in the sample.

    They are one part of each of the MOST_TOPICS largest topics, the largest topic first. An empty part is drawn only if
    the topic has no other.
    """

    def order(part: Part) -> tuple[bool, int, str]:
        return not part.size_bytes, _hash(seed, part.key), part.key

    return tuple(min(each, key=order).key for each in _largest_topics(parts).values())


def stretch_shares(parts: Iterable[Part], size_bytes: int) -> dict[str, float]:
    """Return the share of each of the MOST_TOPICS largest topics, and of all OTHER_TOPICS together, if there are any.

    The largest topics have about `size_bytes` bytes together. The others have as much as one of these.
    """
    parts = tuple(parts)
    largest = _largest_topics(parts)
    most_bytes = size_bytes / max(len(largest), 1)
    sizes = {topic: sum(part.size_bytes for part in each) for topic, each in largest.items()}
    if other_bytes := sum(part.size_bytes for part in parts) - sum(sizes.values()):
        sizes[OTHER_TOPICS] = other_bytes
    return {topic: min(most_bytes / max(of_topic, 1), 1.0) for topic, of_topic in sizes.items()}


def _largest_topics(parts: Iterable[Part]) -> dict[str, list[Part]]:
    topics: dict[str, list[Part]] = {}
    for part in parts:
        topics.setdefault(stream_of(part.topic, part.name), []).append(part)
    return dict(sorted(topics.items(), key=lambda each: -sum(part.size_bytes for part in each[1]))[:MOST_TOPICS])


def _hash(*where: object) -> int:
    text = "/".join(map(str, where)).encode(errors="surrogateescape")
    return int.from_bytes(blake2b(text, digest_size=8).digest(), "big")
