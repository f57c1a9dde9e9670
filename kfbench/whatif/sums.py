"""Sums of the bytes that a source's records take in each format. They add up over chunks, parts and workers.

All sums are integers, so that a sum does not depend on the order of its terms. `estimate` computes totals from the sums
of a sample.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple, Self

from kfbench.formats import BASE_FORMAT
from kfbench.layouts import NO_TIMESTAMP
from kfbench.log.damage import Damage, out_of_order
from kfbench.log.tail import follow_each_other
from kfbench.sources.log import stream_of
from kfbench.sources.time_columns import Unit
from kfbench.whatif.estimate import Estimate, SampleSums
from kfbench.whatif.rebatch import Batching
from kfbench.whatif.record_times import TimeHistogram, TimeUnits, TopicUnit
from kfbench.whatif.stretches import LogStretch

MOST_DAMAGE: Final = 1000  # the largest number of damaged places that are listed; all are counted
SUMMED: Final = (
    "sound_bytes", "batches", "records", "payload_bytes", "damaged_places", "damaged_bytes", "trailing_bytes",
    "dictionary_bytes", "size_bytes", "plain_bytes", "ahead",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class StoredSource:
    """A file, a share of a file or a partition as it is stored now.

    Args:
        size_bytes: size of the part.
        sound_bytes: the bytes that could be read. The what-if is about these.
        dictionary_bytes: the part of them that stores zstd dictionaries. These are no batches and records here.
        payload_bytes: bytes of keys, values and headers.
        first_ms, last_ms: the earliest and the latest timestamp of clients' records; -1: there is none.
        kinds: number of batches by format and codec, such as {"v2 lz4": 12}.
        damage: the damaged places, in the part's unit. All sources together list at most MOST_DAMAGE.
        damaged_places, damaged_bytes: counts of all damaged places.
        trailing_bytes: size of an incomplete last batch.
        unit: the unit of positions: "byte", "row", "line" or "offset".
        unreadable: the reason why the rest of the part was not read; None: all was read.
        plain_bytes: size of the records as uncompressed v2 in the batches of the log, or in assumed batches.
        ahead: number of records whose timestamp is too late (see `Rebatcher`).
        files: number of files; more than 1 if the source is a topic's fingerprint.
        first_offset, last_offset: those of a log's batches; None: there is none, or it is unknown.
        first_position: the byte at which the first batch begins.
    """

    path: str
    topic: str
    partition: int | None
    size_bytes: int = 0
    sound_bytes: int = 0
    batches: int = 0
    records: int = 0
    payload_bytes: int = 0
    first_ms: int = NO_TIMESTAMP
    last_ms: int = NO_TIMESTAMP
    kinds: Mapping[str, int] = field(default_factory=dict)
    damage: tuple[Damage, ...] = ()
    damaged_places: int = 0
    damaged_bytes: int = 0
    trailing_bytes: int = 0
    unit: str = "byte"
    unreadable: str | None = None
    plain_bytes: int = 0
    ahead: int = 0
    dictionary_bytes: int = 0
    files: int = 1
    first_offset: int | None = None
    last_offset: int | None = None
    first_position: int = 0

    def after(self, other: Self) -> Self:
        """Return this segment or share, damaged if its offsets do not rise after those of the previous one."""
        if self.first_offset is None or other.last_offset is None or self.first_offset > other.last_offset:
            return self
        damage = (out_of_order(self.first_position, self.first_offset, other.last_offset), *self.damage)
        return replace(self, damage=damage, damaged_places=self.damaged_places + 1)

    def plus(self, other: Self) -> Self:
        """Return the sums of two consecutive chunks or shares of one file, or of the files of a topic."""
        sums = {name: getattr(self, name) + getattr(other, name) for name in SUMMED}
        known = [time_ms for time_ms in (self.first_ms, other.first_ms) if time_ms != NO_TIMESTAMP]
        return replace(
            self,
            **sums,
            first_ms=min(known, default=NO_TIMESTAMP),
            last_ms=max(self.last_ms, other.last_ms),
            kinds=dict(sorted((Counter(self.kinds) + Counter(other.kinds)).items())),
            damage=tuple(sorted((*self.damage, *other.damage), key=lambda each: each.position)),
            unreadable=min(filter(None, (self.unreadable, other.unreadable)), default=None),
            first_offset=other.first_offset if self.first_offset is None else self.first_offset,
            first_position=other.first_position if self.first_offset is None else self.first_position,
            last_offset=self.last_offset if other.last_offset is None else other.last_offset,
        )

    @property
    def stream(self) -> str:
        """The topic. Where it is unknown: the folder of a log segment, else the file."""
        return stream_of(self.topic, self.path)

    @property
    def is_assumed(self) -> bool:
        """True if the source has records but no batches, so that batches are assumed."""
        return bool(self.records) and not self.kinds

    @property
    def base_bytes(self) -> int:
        """The number of bytes of which savings are shares: the bytes now, or uncompressed v2 if batches are assumed."""
        return self.plain_bytes if self.is_assumed else self.sound_bytes


class SampleKey(NamedTuple):
    """The batches, format and codec of a sample. batching: the settings for other batches; None: the log's own."""

    batching: Batching | None
    format: str
    codec: str


@dataclass(frozen=True, kw_only=True)
class LogSums:
    """Sums over some parts of the source (files or partitions); `a + b` is the tally of both. All sizes are in bytes.

    Sums are over the log's own batches. Sums with "batching" in the key are over other batches, which a producer with
    these settings would make; None stands for the log's own. The compressed sample consists of stretches: about 64 KiB
    of consecutive batches each, drawn at random.

    Attributes:
        sources: the files that were read.
        breakdown: bytes by (format, field), without a codec.
        losses: number of items by (format, property that the format cannot carry).
        compressed: sums over the sample.
        control: bytes of control batches, by format. They do not depend on the batching.
        sent_records: number of records from clients (all but control records).
        rebatched: bytes by (batching, format), without control batches and without a codec.
        rebatched_batches: number of batches by batching.
        overhead: bytes by (records per batch, format), in batches of equal size, without the keys, values and headers
            that the format carries. Only full batches of the first records of each chunk count.
        uniform_records: number of records in `overhead`, by records per batch.
        times: a histogram of timestamps, by topic (`StoredSource.stream`).
        time_units: counts of timestamps that tell their unit, by topic (`StoredSource.stream`).
        by_topic: sums of bytes in v2 (see `of_base_format`), by topic (`StoredSource.stream`).
        stretches: the sample for levels and topic dictionaries.
    """

    sources: tuple[StoredSource, ...] = ()
    breakdown: Counter[tuple[str, str]] = field(default_factory=Counter)
    losses: Counter[tuple[str, str]] = field(default_factory=Counter)
    compressed: Mapping[SampleKey, SampleSums] = field(default_factory=dict)
    control: Counter[str] = field(default_factory=Counter)
    sent_records: int = 0
    rebatched: Counter[tuple[Batching, str]] = field(default_factory=Counter)
    rebatched_batches: Counter[Batching] = field(default_factory=Counter)
    overhead: Counter[tuple[int, str]] = field(default_factory=Counter)
    uniform_records: Counter[int] = field(default_factory=Counter)
    times: Mapping[str, TimeHistogram] = field(default_factory=dict)
    time_units: Mapping[str, TimeUnits] = field(default_factory=dict)
    by_topic: Mapping[str, "LogSums"] = field(default_factory=dict)
    stretches: tuple[LogStretch, ...] = field(default=(), compare=False)

    def __add__(self, other: Self) -> Self:
        both = type(self)(**{name: _sum(value, getattr(other, name)) for name, value in vars(self).items()})
        is_damaged = any(source.damage for source in other.sources)
        return replace(both, sources=_limit_damage(both.sources)) if is_damaged else both

    plus = __add__

    def by_file(self) -> Self:
        """Join all sources that are shares of one file. The joined source takes the place of the first share.

        The offsets of a share or segment must be above those of the previous one.
        """
        files: dict[str, StoredSource] = {}
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
        sample = self.compressed.get(SampleKey(batching, name, codec), SampleSums())
        size = Estimate(plain_bytes, 0) if codec == "none" else sample.estimate(plain_bytes)
        if batching is None or size.size_bytes is None:
            return size
        return size._replace(size_bytes=size.size_bytes + self.control[name])

    def of_base_format(self) -> "LogSums":
        """Return only the sums from which the size in v2 is computed."""
        return LogSums(
            breakdown=Counter({key: n for key, n in self.breakdown.items() if key[0] == BASE_FORMAT}),
            compressed={key: sample for key, sample in self.compressed.items() if key.format == BASE_FORMAT},
            control=Counter({BASE_FORMAT: self.control[BASE_FORMAT]}),
            rebatched=Counter({key: n for key, n in self.rebatched.items() if key[1] == BASE_FORMAT}),
        )


def _limit_damage(sources: tuple[StoredSource, ...]) -> tuple[StoredSource, ...]:
    """Limit the listed places of damage to MOST_DAMAGE: the first place of every source, then the second, and so on.

    The result does not depend on the order in which sources are added.
    """
    if sum(len(source.damage) for source in sources) <= MOST_DAMAGE:
        return sources
    places = [(i, s.path, s.damage[i].position, at) for at, s in enumerate(sources) for i in range(len(s.damage))]
    listed = Counter(at for *_, at in sorted(places)[:MOST_DAMAGE])
    return tuple(replace(source, damage=source.damage[: listed[at]]) for at, source in enumerate(sources))


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
