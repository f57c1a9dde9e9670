"""Sums of the bytes that a source's records take in each format. They add up over chunks, parts and workers.

All sums are integers, so that a sum does not depend on the order of its terms. `estimate` computes totals from the sums
of a sample.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Self

from kfbench.formats import BASE_FORMAT
from kfbench.log.tail import follow_each_other
from kfbench.sources.time_columns import Unit
from kfbench.whatif.estimate import Drawn, Estimate, SampleSums
from kfbench.whatif.kept_stretches import KeptStretch
from kfbench.whatif.rebatch import Batching
from kfbench.whatif.record_times import Times, TimeUnits, TopicUnit
from kfbench.whatif.source import Source

MOST_DAMAGE: Final = 1000  # the largest number of damaged places that are listed; all are counted


@dataclass(frozen=True, kw_only=True)
class Tally:
    """Sums over some parts of the source (files or partitions); `a + b` is the tally of both. All sizes are in bytes.

    Sums are over the log's own batches. Sums with "batching" in the key are over other batches, which a producer with
    these settings would make; None stands for the log's own. The compressed sample consists of stretches: about 64 KiB
    of consecutive batches each, drawn at random.

    Attributes:
        sources: the files that were read.
        breakdown: bytes by (format, field), without a codec.
        losses: number of items by (format, property that the format cannot carry).
        coded: sums over the sample by (batching, format, codec).
        control: bytes of control batches, by format. They do not depend on the batching.
        sent_records: number of records from clients (all but control records).
        rebatched: bytes by (batching, format), without control batches and without a codec.
        rebatched_batches: number of batches by batching.
        uniform: bytes by (records per batch, format), in batches of equal size. Only full batches of the first records
            of each chunk count.
        uniform_records: number of records in `uniform`, by records per batch.
        uniform_payload: bytes of keys and values in `uniform`, by (records per batch, True: with headers).
        times: a histogram of timestamps, by topic (`Source.stream`).
        time_units: counts of timestamps that tell their unit, by topic (`Source.stream`).
        by_topic: sums of bytes in v2 (see `of_base_format`), by topic (`Source.stream`).
        levels: sums over a sample of v2, by (topic, codec, level). `Drawn.plain` has the bytes at the codec's default
            level.
        level_plain_bytes: bytes of uncompressed v2 in this sample, by topic.
        level_cpu_ns: CPU time by (codec, level). It differs from run to run, so it is not compared.
        kept: the sample for levels and topic dictionaries.
    """

    sources: tuple[Source, ...] = ()
    breakdown: Counter[tuple[str, str]] = field(default_factory=Counter)
    losses: Counter[tuple[str, str]] = field(default_factory=Counter)
    coded: Mapping[tuple[Batching | None, str, str], SampleSums] = field(default_factory=dict)
    control: Counter[str] = field(default_factory=Counter)
    sent_records: int = 0
    rebatched: Counter[tuple[Batching, str]] = field(default_factory=Counter)
    rebatched_batches: Counter[Batching] = field(default_factory=Counter)
    uniform: Counter[tuple[int, str]] = field(default_factory=Counter)
    uniform_records: Counter[int] = field(default_factory=Counter)
    uniform_payload: Counter[tuple[int, bool]] = field(default_factory=Counter)
    times: Mapping[str, Times] = field(default_factory=dict)
    time_units: Mapping[str, TimeUnits] = field(default_factory=dict)
    by_topic: Mapping[str, "Tally"] = field(default_factory=dict)
    levels: Mapping[tuple[str, str, int], Drawn] = field(default_factory=dict)
    level_plain_bytes: Counter[str] = field(default_factory=Counter)
    level_cpu_ns: Counter[tuple[str, int]] = field(default_factory=Counter, compare=False)
    kept: tuple[KeptStretch, ...] = field(default=(), compare=False)

    def __add__(self, other: Self) -> Self:
        both = type(self)(**{name: _sum(value, getattr(other, name)) for name, value in vars(self).items()})
        is_damaged = any(source.damage for source in other.sources)
        return replace(both, sources=_listed(both.sources)) if is_damaged else both

    plus = __add__

    def by_file(self) -> Self:
        """Join all sources that are shares of one file. The joined source takes the place of the first share.

        The offsets of a share or segment must be above those of the previous one.
        """
        files: dict[str, Source] = {}
        for before, source in zip((None, *self.sources), self.sources, strict=False):
            if before and (before.path == source.path or follow_each_other(before.path, source.path)):
                source = source.after(before)
            files[source.path] = files[source.path].plus(source) if source.path in files else source
        return replace(self, sources=tuple(files.values()))

    def topic_units(self, option: Unit | None) -> dict[str, TopicUnit]:
        """Return the unit of the timestamps of each topic. option: the unit that the user gives, if any."""
        return {topic: TopicUnit.of(units, option) for topic, units in self.time_units.items()}

    def unit_doubts(self, option: Unit | None) -> dict[str, str]:
        """Return the topics whose timestamps have an unknown unit, and the reasons. option: see `topic_units`."""
        return {topic: unit.doubt for topic, unit in self.topic_units(option).items() if unit.doubt}

    def misread_units(self) -> dict[str, Unit]:
        """Return the units of topics some of whose parts were read in another unit, by their first numbers."""
        return {
            topic: units.likely
            for topic, units in self.time_units.items()
            if any(units.numbers) and units.doubt is None and units.read_as - {units.likely}
        }

    def sizes(self) -> Counter[str]:
        """Return the bytes of each format, in the batches of the log, without a codec."""
        sizes: Counter[str] = Counter()
        for (name, _), size_bytes in self.breakdown.items():
            sizes[name] += size_bytes
        return sizes

    def size(self, name: str, codec: str, batching: Batching | None = None) -> Estimate:
        """Return the size in a format and codec, with control batches. batching None: in the log's own batches."""
        plain_bytes = self.sizes()[name] if batching is None else self.rebatched[batching, name]
        sample = self.coded.get((batching, name, codec), SampleSums())
        size = Estimate(plain_bytes, 0) if codec == "none" else sample.estimate(plain_bytes)
        if batching is None or size.size_bytes is None:
            return size
        return size._replace(size_bytes=size.size_bytes + self.control[name])

    def of_base_format(self) -> "Tally":
        """Return only the sums from which the size in v2 is computed."""
        return Tally(
            breakdown=Counter({key: n for key, n in self.breakdown.items() if key[0] == BASE_FORMAT}),
            coded={key: sample for key, sample in self.coded.items() if key[1] == BASE_FORMAT},
            control=Counter({BASE_FORMAT: self.control[BASE_FORMAT]}),
            rebatched=Counter({key: n for key, n in self.rebatched.items() if key[1] == BASE_FORMAT}),
        )


def of_format(sums: Mapping[tuple[str, str], int], name: str) -> dict[str, int]:
    """Return the sums of one format from `Tally.breakdown` or `Tally.losses`."""
    return {part: count for (owner, part), count in sums.items() if owner == name}


def _listed(sources: tuple[Source, ...]) -> tuple[Source, ...]:
    """Limit the listed places of damage to MOST_DAMAGE: the first place of every source, then the second, and so on.

    The result does not depend on the order in which sources are added.
    """
    if sum(len(source.damage) for source in sources) <= MOST_DAMAGE:
        return sources
    places = [(i, s.path, s.damage[i].position, at) for at, s in enumerate(sources) for i in range(len(s.damage))]
    kept = Counter(at for *_, at in sorted(places)[:MOST_DAMAGE])
    return tuple(replace(source, damage=source.damage[: kept[at]]) for at, source in enumerate(sources))


def _sum(one: Any, other: Any) -> Any:
    if isinstance(one, tuple | int):
        return one + other
    if isinstance(one, Counter):
        found = Counter(one)
        found.update(other)
        return found
    both = dict(one)
    for key, each in other.items():
        both[key] = both[key].plus(each) if key in both else each
    return both
