"""What the records of a source take, format by format: sums that add up over chunks, parts and workers.

Everything is an integer, so that a sum does not depend on the order of its terms. Sizes are of every record. Bytes
under a codec are of stretches of batches drawn by a hash of the seed and of where the stretch lies, which is the same
whoever reads it; totals follow from them by the ratio to the bytes without a codec (a ratio estimate over clusters:
Cochran, Sampling Techniques, 6.4 and 9A).
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from itertools import pairwise
from math import sqrt
from pathlib import Path
from typing import Any, Final, NamedTuple, Self

import numpy as np

from kfbench.errors import InvalidConfig, KfbenchError
from kfbench.formats import BASE_FORMAT, FORMATS
from kfbench.layouts import NO_TIMESTAMP
from kfbench.log.inspect import Damage
from kfbench.sources import Chunk, Part
from kfbench.whatif.rebatch import Batches, Batching, Rebatcher, Sent, sent
from kfbench.whatif.record_times import Times

STRETCH_BYTES: Final = 512 << 10  # of plain v2: what is drawn, or not, as a whole
UNIFORM: Final = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 15, 20, 30, 50, 100, 200, 500, 1000)
UNIFORM_TIMES: Final = 64  # so many times the codecs' share goes into uniform batches: a size is quicker than a codec
MOST_DAMAGE: Final = 1000  # places that are listed; all are counted

Run = Callable[[Callable[[Any], Any], Iterable[Any]], Iterable[Any]]


@dataclass(frozen=True, kw_only=True)
class Question:
    """What is worked out of each part. Small: it travels with every task.

    arms: pairs of format and codec, as recorded; batchings: other batches for the same records, sized in every format
    and, for `recoded` formats, under every codec. assumed: the batches of sources that have none. share: of the
    stretches that go through the codecs; `always`: the key of the part whose first stretch does in any case.
    """

    arms: tuple[tuple[str, str], ...]
    batchings: tuple[Batching, ...] = ()
    recoded: tuple[str, ...] = ()
    assumed: Batching | None = None
    share: float = 1.0
    seed: int = 0
    always: str = ""

    def __post_init__(self) -> None:
        if not 0 < self.share <= 1:
            raise InvalidConfig(f"share: {self.share} is not above 0 and at most 1")

    @property
    def formats(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for name, _ in self.arms))

    @property
    def coded(self) -> list[tuple[str, str]]:
        """The arms with a codec."""
        return [(name, codec) for name, codec in self.arms if codec != "none"]

    def draws(self, part: Part, stream: object, number: int, times: int = 1) -> bool:
        """Whether that stretch of what is made of the part is drawn, in `times` the share."""
        share = min(self.share * times, 1.0)
        if share == 1 or (not number and part.key == self.always):
            return True
        where = f"{self.seed}/{part.key}/{stream}/{number}".encode()
        return int.from_bytes(blake2b(where, digest_size=8).digest(), "big") < share * 2**64


@dataclass(frozen=True, kw_only=True)
class Source:
    """One part as it is now. sound_bytes: what could be read, which the result is about.

    payload_bytes: keys, values and headers. plain_bytes: plain v2 in these batches, assumed where there are none.
    first_ms, last_ms: the earliest and latest time of a client, -1 without. ahead: see `Rebatcher`.
    damage: places in the part's unit, MOST_DAMAGE of all sources together at most; damaged_bytes: of all of
    them. unreadable: why the rest was not read.
    """

    path: str
    topic: str
    partition: int | None
    size_bytes: int
    sound_bytes: int
    batches: int
    records: int
    payload_bytes: int
    first_ms: int
    last_ms: int
    kinds: Mapping[str, int]  # "v2 lz4" -> batches
    damage: tuple[Damage, ...]
    damaged_places: int
    damaged_bytes: int
    trailing_bytes: int
    unit: str = "byte"
    unreadable: str | None = None
    plain_bytes: int = 0
    ahead: int = 0

    def plus(self, other: Self) -> Self:
        """Two shares of one file."""
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
        )

    @property
    def stream(self) -> str:
        """The topic; where it is not known, the folder of a log's segment, else the file."""
        return _stream(self.topic, self.path)

    @property
    def is_assumed(self) -> bool:
        """Whether it has records and no batches."""
        return bool(self.records) and not self.kinds

    @property
    def base_bytes(self) -> int:
        """What savings are shares of: what it takes now; where its batches are assumed, plain v2."""
        return self.plain_bytes if self.is_assumed else self.sound_bytes


def _stream(topic: str, path: str) -> str:
    file = Path(path)
    of_log = file.suffix == ".log" and len(file.stem) == 20 and file.stem.isdecimal()
    return topic or (str(file.parent) if of_log else path)


def saving(size: int, base: int) -> float:
    """Which share of `base` is saved; below 0: it takes more."""
    return 1 - size / base if base else 0.0


class Drawn(NamedTuple):
    """What the stretches drawn took without (plain) and with a codec: their number, sums, squares and products."""

    stretches: int = 0
    plain: int = 0
    coded: int = 0
    plain_squares: int = 0
    products: int = 0
    coded_squares: int = 0

    @classmethod
    def of(cls, plain: int, coded: int) -> Self:
        return cls(1, plain, coded, plain * plain, plain * coded, coded * coded)

    def plus(self, other: Self) -> Self:
        return type(self)(*(a + b for a, b in zip(self, other, strict=True)))

    def estimate(self, plain_bytes: int) -> tuple[int | None, int | None]:
        """What `plain_bytes` in all take under the codec, None where nothing was drawn, and its standard error: 0 where
        all of it was drawn, None where one stretch alone tells nothing of it."""
        if self.plain == plain_bytes:
            return self.coded, 0
        if not self.plain:
            return None, None
        ratio = self.coded / self.plain
        size_bytes = round(plain_bytes * ratio)
        if self.stretches < 2:
            return size_bytes, None
        squares = self.coded_squares - 2 * ratio * self.products + ratio * ratio * self.plain_squares
        drawn = self.plain / plain_bytes
        variance = squares / (self.stretches - 1) * self.stretches * (1 - drawn) / drawn**2
        return size_bytes, round(sqrt(max(variance, 0.0)))


@dataclass(frozen=True, kw_only=True)
class Tally:
    """Sums over parts; `a + b` is the tally of both. All sizes in bytes.

    breakdown: (format, field) as recorded, without a codec; losses: (format, what it cannot carry); coded: (format,
    codec); control: bytes of control batches by format, which no batching changes. rebatched: (batching, format)
    without control batches, of sent_records; rebatched_batches; recoded: (batching, format, codec). uniform: (records a
    batch, format), whole batches only, of the chunks drawn; uniform_records: how many records those are;
    uniform_payload: (records a batch, whether headers are counted). times: `Source.stream` -> when its records were
    made.
    """

    sources: tuple[Source, ...] = ()
    breakdown: Counter[tuple[str, str]] = field(default_factory=Counter)
    losses: Counter[tuple[str, str]] = field(default_factory=Counter)
    coded: Mapping[tuple[str, str], Drawn] = field(default_factory=dict)
    control: Counter[str] = field(default_factory=Counter)
    sent_records: int = 0
    rebatched: Counter[tuple[Batching, str]] = field(default_factory=Counter)
    rebatched_batches: Counter[Batching] = field(default_factory=Counter)
    recoded: Mapping[tuple[Batching, str, str], Drawn] = field(default_factory=dict)
    uniform: Counter[tuple[int, str]] = field(default_factory=Counter)
    uniform_records: Counter[int] = field(default_factory=Counter)
    uniform_payload: Counter[tuple[int, bool]] = field(default_factory=Counter)
    times: Mapping[str, Times] = field(default_factory=dict)

    def __add__(self, other: Self) -> Self:
        both = type(self)(**{name: _sum(value, getattr(other, name)) for name, value in vars(self).items()})
        is_damaged = any(source.damage for source in other.sources)
        return replace(both, sources=_listed(both.sources)) if is_damaged else both

    def by_file(self) -> Self:
        """Shares of one file as one source, where its first one stands."""
        files: dict[str, Source] = {}
        for source in self.sources:
            files[source.path] = files[source.path].plus(source) if source.path in files else source
        return replace(self, sources=tuple(files.values()))

    def sizes(self) -> Counter[str]:
        """The bytes of each format as recorded, without a codec."""
        sizes: Counter[str] = Counter()
        for (name, _), size_bytes in self.breakdown.items():
            sizes[name] += size_bytes
        return sizes


def _listed(sources: tuple[Source, ...]) -> tuple[Source, ...]:
    """With MOST_DAMAGE places of damage at most: the first of every source, then the second, and so on, so that it does
    not matter in which order sources are added."""
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


def tally(part: Part, question: Question, run: Run = map, advance: Callable[[int], None] = lambda _: None) -> Tally:
    """What one part takes. run: how the codecs are run, as `map`; a thread pool's keeps several cores busy. advance: is
    called with the bytes that were read, chunk by chunk, in all with the part's.

    Damage is left out and listed; what makes the rest of the part unreadable is `Source.unreadable`. Raises
    InvalidConfig for a part without batches when none are assumed.
    """
    reading, chunks, unreadable, left_bytes = _Reading(part, question, run), iter(part.chunks()), None, part.size_bytes
    while True:
        try:
            chunk = next(chunks, None)
        except InvalidConfig:
            raise
        except (KfbenchError, OSError) as error:
            unreadable = (getattr(error, "strerror", None) or str(error)).removeprefix(f"{part.name}: ")
            break
        if chunk is None:
            break
        reading.add(chunk)
        read_bytes = chunk.size_bytes + sum(each.size_bytes for each in chunk.damage)
        advance(read_bytes)
        left_bytes -= read_bytes
    advance(left_bytes)
    return reading.done(unreadable)


class _Reading:
    """The sums of a part while it is read."""

    def __init__(self, part: Part, question: Question, run: Run) -> None:
        self._part, self._question, self._run = part, question, run
        self._found = Tally()
        self._assumed = Rebatcher(question.assumed) if question.assumed else None
        self._rebatchers = [(batching, Rebatcher(batching)) for batching in question.batchings]
        self._clock = self._assumed or next((rebatcher for _, rebatcher in self._rebatchers), None)
        self._nothing: Sent | None = None
        self._stretches: Counter[Batching | None] = Counter()
        self._chunks = 0
        self._kinds: Counter[str] = Counter()
        self._damage: list[Damage] = []
        self._numbers: Counter[str] = Counter()
        self._first_ms, self._last_ms = [], []  # type: list[int], list[int]
        self._times = Times()

    def add(self, chunk: Chunk) -> None:
        self._kinds.update(chunk.kinds)
        self._damage += chunk.damage[: MOST_DAMAGE - len(self._damage)]
        self._numbers.update(
            sound_bytes=chunk.size_bytes,
            records=len(chunk.records),
            payload_bytes=chunk.records.shapes.payload_bytes,
            damaged_places=len(chunk.damage),
            damaged_bytes=sum(each.size_bytes for each in chunk.damage),
            trailing_bytes=chunk.trailing_bytes,
        )
        of_clients = sent(chunk.records, chunk.bounds, chunk.fields, chunk.partitions)
        self._nothing = of_clients.at(np.zeros(0, np.int64))
        times = of_clients.records.timestamps_ms
        if (known := times[times > NO_TIMESTAMP]).size:
            self._first_ms.append(int(known.min()))
            self._last_ms.append(int(known.max()))
        self._times = self._times.plus(Times.of(times))
        if chunk.bounds is not None:
            self._recorded(Batches(chunk.records, chunk.bounds, chunk.fields))
        elif self._assumed is None:
            raise InvalidConfig(f"{self._part.name}: has no batches: linger_ms and batch_size_bytes are wanted")
        else:
            for batches in self._assumed.add(of_clients):
                self._recorded(batches)
        self._numbers["sent"] += len(of_clients.records)
        if self._question.draws(self._part, "uniform", self._chunks, UNIFORM_TIMES):
            self._uniform(of_clients)
        self._chunks += 1
        self._rebatched(of_clients)

    def done(self, unreadable: str | None) -> Tally:
        if self._nothing is not None:
            if self._assumed is not None:
                for batches in self._assumed.add(self._nothing, last=True):
                    self._recorded(batches)
            self._rebatched(self._nothing, last=True)
        part = self._part
        source = Source(
            path=part.name,
            topic=part.topic,
            partition=part.partition,
            size_bytes=part.size_bytes,
            **{name: self._numbers[name] for name in NUMBERS},
            first_ms=min(self._first_ms, default=NO_TIMESTAMP),
            last_ms=max(self._last_ms, default=NO_TIMESTAMP),
            kinds=dict(sorted(self._kinds.items())),
            damage=tuple(self._damage),
            unit=part.unit,
            unreadable=unreadable,
            plain_bytes=self._found.sizes()[BASE_FORMAT],
            ahead=self._clock.ahead if self._clock else 0,
        )
        times = {source.stream: self._times}
        return replace(self._found, sources=(source,), sent_records=self._numbers["sent"], times=times)

    def _recorded(self, batches: Batches) -> None:
        found, question = self._found, self._question
        self._numbers["batches"] += len(batches.bounds) - 1
        control = batches.fields.over(len(batches.bounds) - 1)["is_control"]
        for name in question.formats:
            fmt = FORMATS[name]
            found.breakdown.update({(name, part): size for part, size in fmt.breakdown(*batches).items()})
            found.losses.update({(name, what): number for what, number in fmt.losses(*batches).items()})
            if control.any():
                found.control[name] += int(fmt.size(*batches)[np.broadcast_to(control, len(batches.bounds) - 1)].sum())
        self._code(None, batches, question.coded)

    def _code(self, batching: Batching | None, batches: Batches, arms: Iterable[tuple[str, str]]) -> None:
        """Puts the stretches that are drawn through the codecs."""
        question, jobs = self._question, list[tuple[Batches, tuple[str, str]]]()
        if not (arms := list(arms)) or len(batches.bounds) < 2:
            return
        for first, end in _stretches(batches):
            number = self._stretches[batching]
            self._stretches[batching] += 1
            if question.draws(self._part, batching, number):
                jobs += [(_part_of(batches, first, end), arm) for arm in arms]
        sums: Any = self._found.coded if batching is None else self._found.recoded
        for (_, arm), drawn in zip(jobs, self._run(_drawn, jobs), strict=True):
            key = arm if batching is None else (batching, *arm)
            sums[key] = sums.get(key, Drawn()).plus(drawn)

    def _rebatched(self, of_clients: Sent, last: bool = False) -> None:
        recoded = [arm for arm in self._question.coded if arm[0] in self._question.recoded]
        for batching, rebatcher in self._rebatchers:
            for batches in rebatcher.add(of_clients, last):
                self._code(batching, batches, recoded)
                self._found.rebatched_batches[batching] += len(batches.bounds) - 1
                for name in self._question.formats:
                    self._found.rebatched[batching, name] += int(FORMATS[name].size(*batches).sum())

    def _uniform(self, of_clients: Sent) -> None:
        for records_a_batch in UNIFORM:
            whole = len(of_clients.records) // records_a_batch * records_a_batch
            if not whole:
                break
            self._found.uniform_records[records_a_batch] += whole
            bounds = np.arange(0, whole + 1, records_a_batch)
            records = of_clients.records.part(0, whole)
            without = records.shapes.key_bytes + records.shapes.value_bytes
            self._found.uniform_payload[records_a_batch, False] += without
            self._found.uniform_payload[records_a_batch, True] += without + records.shapes.header_bytes
            batches = Sent(records, of_clients.owners[:whole]).batched(bounds)
            for name in self._question.formats:
                self._found.uniform[records_a_batch, name] += int(FORMATS[name].size(*batches).sum())


NUMBERS: Final = (
    "sound_bytes", "batches", "records", "payload_bytes", "damaged_places", "damaged_bytes", "trailing_bytes"
)  # fmt: skip
SUMMED: Final = (*NUMBERS, "size_bytes", "plain_bytes", "ahead")


def _stretches(batches: Batches) -> Iterator[tuple[int, int]]:
    """Runs of about STRETCH_BYTES, from a batch to before another."""
    ends = np.cumsum(FORMATS[BASE_FORMAT].size(*batches))
    cuts = np.flatnonzero(np.diff((ends - 1) // STRETCH_BYTES)) + 1
    return pairwise([0, *cuts.tolist(), len(ends)])


def _part_of(batches: Batches, first: int, end: int) -> Batches:
    records, bounds, of_batches = batches
    part = records.part(bounds[first], bounds[end])
    return Batches(part, bounds[first : end + 1] - bounds[first], of_batches.part(first, end))


def _drawn(job: tuple[Batches, tuple[str, str]]) -> Drawn:
    (records, bounds, of_batches), (name, codec) = job
    fmt = FORMATS[name]
    plain = fmt.size(records, bounds, of_batches)
    encoded = fmt.encode(records, bounds, codec, batch_fields=of_batches, lossy=True)
    # Kafka compresses neither control batches nor batches without records.
    stay_plain = of_batches.over(len(plain))["is_control"] | (np.diff(bounds) == 0)
    coded = np.where(stay_plain, plain, np.diff(encoded.positions))
    return Drawn.of(int(plain.sum()), int(coded.sum()))
