"""Add up the bytes of one part's records in each format, codec and batching. The result is a `Tally`.

A part is a file, a share of a file or a partition. Sizes without a codec are computed for every record. Sizes under a
codec are measured in a sample of stretches. A stretch is a sequence of consecutive batches. A hash of the seed and of
the stretch's number decides if it is in the sample, so all workers draw the same stretches.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import pairwise
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kfbench.arrays import Int64, group_bounds
from kfbench.errors import InvalidConfig, KfbenchError
from kfbench.formats import BASE_FORMAT, FORMATS
from kfbench.layouts import NO_TIMESTAMP
from kfbench.log.damage import Damage
from kfbench.sources import Chunk, Part
from kfbench.whatif.estimate import Drawn, SampleSums
from kfbench.whatif.kept_stretches import STRETCH_BYTES, Stored, StretchKeeper, is_compressed, without_stored
from kfbench.whatif.question import Question
from kfbench.whatif.rebatch import Batches, Batching, Rebatcher, Sent, sent
from kfbench.whatif.record_times import TimeReader, Times
from kfbench.whatif.source import COUNTED, Source
from kfbench.whatif.sums import MOST_DAMAGE, Tally

UNIFORM: Final = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 15, 20, 30, 50, 100, 200, 500, 1000)
# The sample for batches of equal size is this many times larger: computing sizes is faster than compressing.
UNIFORM_TIMES: Final = 2
UNIFORM_RECORDS: Final = 4096  # records of each chunk that are in this sample at least

GROUP_STRETCHES: Final = 16  # one call of a codec compresses so many stretches, about 1 MiB of plain v2
MOST_STARTED: Final = 8  # codecs are started for so many groups of batches before their results are awaited

Run = Callable[[Callable[[Any], Any], Iterable[Any]], Iterable[Any]]


def tally(part: Part, question: Question, run: Run = map, advance: Callable[[int], None] = lambda _: None) -> Tally:
    """Return the sums of one part (a file, a share of a file or a partition).

    Damage is left out and listed. If an error makes the rest of the part unreadable, its text goes to
    `Source.unreadable`. Raises InvalidConfig for a part without batches if the question has no assumed batches.

    Args:
        run: calls the codecs. It works like `map`; the `map` of a thread pool starts at once and keeps several cores
            busy while this thread computes sizes. Results are taken at the end of each chunk.
        advance: called per chunk with the number of bytes read. All calls add up to the part's size.
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


class _Stretch(NamedTuple):
    """Consecutive batches in the sample: the first, and the end. is_certain: drawn whatever the hash says."""

    first: int
    end: int
    is_certain: bool


class _Group(NamedTuple):
    """Stretches that are compressed in one call. first_batches: the first batch of each stretch in `batches`."""

    batches: Batches
    first_batches: Int64
    are_certain: NDArray[np.bool_]


class _Reading:
    """Reads the chunks of one file or partition, and keeps the sums."""

    def __init__(self, part: Part, question: Question, run: Run) -> None:
        self._part, self._question, self._run = part, question, run
        self._found = Tally()
        self._assumed = Rebatcher(question.assumed) if question.assumed else None
        self._rebatchers = [(batching, Rebatcher(batching)) for batching in question.batchings]
        self._clock = self._assumed or next((rebatcher for _, rebatcher in self._rebatchers), None)
        self._keeper = StretchKeeper(part, question)
        self._nothing: Sent | None = None
        self._stretches: Counter[Batching | None] = Counter()
        self._kinds: Counter[str] = Counter()
        self._damage: list[Damage] = []
        self._numbers: Counter[str] = Counter()
        self._offsets: list[int] = []
        self._first_position = 0
        self._first_ms, self._last_ms = [], []  # type: list[int], list[int]
        self._times, self._time_reader = Times(), TimeReader(question.unit_of(part))
        self._started: list[Callable[[], None]] = []  # each takes the results of codecs that `_run` has started

    def add(self, given: Chunk) -> None:
        stored = without_stored(given)
        chunk = stored.chunk
        self._kinds.update(chunk.kinds)
        if chunk.first_offset is not None and chunk.last_offset is not None:
            self._first_position = self._first_position if self._offsets else chunk.start
            self._offsets += chunk.first_offset, chunk.last_offset
        self._damage += chunk.damage[: MOST_DAMAGE - len(self._damage)]
        self._numbers.update(
            sound_bytes=chunk.size_bytes,
            records=len(chunk.records),
            payload_bytes=chunk.records.shapes.payload_bytes,
            damaged_places=len(chunk.damage),
            damaged_bytes=sum(each.size_bytes for each in chunk.damage),
            trailing_bytes=chunk.trailing_bytes,
            dictionary_bytes=stored.size_bytes,
        )
        of_clients = sent(chunk.records, chunk.bounds, chunk.fields, chunk.partitions)
        of_clients = self._time_reader.read(of_clients, chunk.is_ms)
        self._nothing = of_clients.at(np.zeros(0, np.int64))
        times = of_clients.owners["time_ms"]
        if (known := times[times > NO_TIMESTAMP]).size:
            self._first_ms.append(int(known.min()))
            self._last_ms.append(int(known.max()))
        self._times = self._times.plus(Times.of(times))
        if chunk.bounds is not None:
            self._recorded(Batches(chunk.records, chunk.bounds, chunk.fields), stored)
        elif self._assumed is None:
            raise InvalidConfig(f"{self._part.name}: has no batches: linger_ms and batch_size_bytes are wanted")
        else:
            for batches in self._assumed.add(of_clients):
                self._recorded(batches, stored)
        self._numbers["sent"] += len(of_clients.records)
        self._uniform(of_clients)
        self._rebatched(of_clients)
        self._finish()

    def _finish(self) -> None:
        """Wait for the codecs that were started, and add their results to the sums."""
        for take in self._started:
            take()
        self._started.clear()

    def done(self, unreadable: str | None) -> Tally:
        if self._nothing is not None:
            if self._assumed is not None:
                for batches in self._assumed.add(self._nothing, last=True):
                    self._recorded(batches, None)
            self._rebatched(self._nothing, last=True)
            self._finish()
        part = self._part
        source = Source(
            path=part.name,
            topic=part.topic,
            partition=part.partition,
            size_bytes=part.size_bytes,
            **{name: self._numbers[name] for name in COUNTED},
            first_ms=min(self._first_ms, default=NO_TIMESTAMP),
            last_ms=max(self._last_ms, default=NO_TIMESTAMP),
            kinds=dict(sorted(self._kinds.items())),
            damage=tuple(self._damage),
            unit=part.unit,
            unreadable=unreadable,
            plain_bytes=self._found.sizes()[BASE_FORMAT],
            ahead=self._clock.ahead if self._clock else 0,
            first_offset=self._offsets[0] if self._offsets else None,
            last_offset=self._offsets[-1] if self._offsets else None,
            first_position=self._first_position,
        )
        return replace(
            self._found,
            sources=(source,),
            sent_records=self._numbers["sent"],
            times={source.stream: self._times},
            time_units={source.stream: self._time_reader.units},
            by_topic={source.stream: self._found.of_base_format()},
            kept=tuple(self._keeper.stretches),
        )

    def _recorded(self, batches: Batches, stored: Stored | None) -> None:
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
        self._keeper.add(batches, stored)

    def _code(self, batching: Batching | None, batches: Batches, arms: Iterable[tuple[str, str]]) -> None:
        """Compress the stretches that are drawn."""
        question, drawn = self._question, list[_Stretch]()
        if not (arms := list(arms)) or len(batches.bounds) < 2:
            return
        sizes = FORMATS[BASE_FORMAT].size(*batches)
        for first, end in pairwise(group_bounds(sizes, STRETCH_BYTES).tolist()):
            number = self._stretches[batching]
            self._stretches[batching] += 1
            if question.draws(self._part, batching, number, question.share):
                is_certain = question.share < 1 and question.is_certain(self._part, number)
                drawn.append(_Stretch(first, end, is_certain))
        groups = [
            _joined(batches, drawn[start : start + GROUP_STRETCHES]) for start in range(0, len(drawn), GROUP_STRETCHES)
        ]
        jobs = [(group, arm) for group in groups for arm in arms]
        sums: Any = self._found.coded
        results = self._run(_samples, jobs)

        def take() -> None:
            for (_, arm), sample in zip(jobs, results, strict=True):
                key = (batching, *arm)
                sums[key] = sums.get(key, SampleSums()).plus(sample)

        self._started.append(take)

    def _rebatched(self, of_clients: Sent, last: bool = False) -> None:
        recoded = [arm for arm in self._question.coded if arm[0] in self._question.recoded]
        for batching, rebatcher in self._rebatchers:
            for batches in rebatcher.add(of_clients, last):
                self._code(batching, batches, recoded)
                self._found.rebatched_batches[batching] += len(batches.bounds) - 1
                for name in self._question.formats:
                    self._found.rebatched[batching, name] += int(FORMATS[name].size(*batches).sum())
            if len(self._started) >= MOST_STARTED:  # the batches of many batchings would need much memory
                self._finish()

    def _uniform(self, of_clients: Sent) -> None:
        """Compute sizes in batches of equal size, of the first records of a chunk."""
        share = min(self._question.share * UNIFORM_TIMES, 1.0)
        count = min(max(round(len(of_clients.records) * share), UNIFORM_RECORDS), len(of_clients.records))
        for records_per_batch in UNIFORM:
            whole = count // records_per_batch * records_per_batch
            if not whole:
                break
            self._found.uniform_records[records_per_batch] += whole
            bounds = np.arange(0, whole + 1, records_per_batch)
            records = of_clients.records.part(0, whole)
            without = records.shapes.key_bytes + records.shapes.value_bytes
            self._found.uniform_payload[records_per_batch, False] += without
            self._found.uniform_payload[records_per_batch, True] += without + records.shapes.header_bytes
            batches = Sent(records, of_clients.owners[:whole]).batched(bounds)
            for name in self._question.formats:
                self._found.uniform[records_per_batch, name] += int(FORMATS[name].size(*batches).sum())


def _joined(batches: Batches, stretches: list[_Stretch]) -> _Group:
    """Join stretches of these batches for one call of a codec, which is faster than a call per stretch."""
    first_batches = np.cumsum([0, *(each.end - each.first for each in stretches)])[:-1]
    are_certain = np.array([each.is_certain for each in stretches])
    first, end = stretches[0].first, stretches[-1].end
    if end - first == sum(each.end - each.first for each in stretches):
        return _Group(batches.part(first, end), first_batches, are_certain)
    wanted = np.concatenate([np.arange(each.first, each.end) for each in stretches])
    return _Group(batches.take(wanted), first_batches, are_certain)


def _samples(job: tuple[_Group, tuple[str, str]]) -> SampleSums:
    """Compress a group of stretches in a format and codec. Return their sums."""
    (batches, first_batches, are_certain), (name, codec) = job
    plain = FORMATS[name].size(*batches)
    coded = coded_sizes(batches, name, codec, None, plain)
    sums = [np.add.reduceat(sizes, first_batches) for sizes in (plain, coded)]
    return SampleSums(*(Drawn.of(*(each[wanted].tolist() for each in sums)) for wanted in (~are_certain, are_certain)))


def coded_sizes(batches: Batches, name: str, codec: str, level: int | None, plain: Int64) -> Int64:
    """Return the bytes of each batch under a codec, int64[batches]. plain: their bytes without a codec."""
    records, bounds, of_batches = batches
    encoded = FORMATS[name].encode(records, bounds, codec, level, of_batches, lossy=True)
    sizes: Int64 = np.where(is_compressed(batches), np.diff(encoded.positions), plain)
    return sizes
