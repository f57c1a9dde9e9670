"""Add up the bytes of a source's records in each format, codec and batching. The result is a `LogSums`.

Parts are read in threads of this process, or in tasks of a Spark cluster. Spark reads a Kafka topic, one task per
partition. A part is a file, a share of a file or a partition.

Sizes without a codec are computed for every record. Sizes under a codec are measured in a sample of stretches. A
stretch is a sequence of consecutive batches. A hash of the seed and of the stretch's number decides if it is in the
sample, so all workers draw the same stretches.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kfbench.arrays import Int64, group_bounds
from kfbench.errors import InvalidConfig, KfbenchError
from kfbench.formats import BASE_FORMAT, FORMATS
from kfbench.layouts import NO_TIMESTAMP
from kfbench.measure.container import cores
from kfbench.progress import reading
from kfbench.sources import Chunk, FoundSources, Part, Skipped
from kfbench.sources.folder import reason_of
from kfbench.sources.part import SHARE_BYTES
from kfbench.sources.topic import NO_LEADER, Topic, TopicPartition, by_partition
from kfbench.whatif.estimate import SampleSums, StretchSums
from kfbench.whatif.question import Question
from kfbench.whatif.rebatch import Batches, Batching, Rebatcher, SentRecords, sent_records
from kfbench.whatif.record_times import TimeHistogram, TimeReader
from kfbench.whatif.stretches import (
    STRETCH_BYTES,
    Mapper,
    PartStretches,
    PlainChunk,
    compressed_sizes,
    without_dictionaries,
)
from kfbench.whatif.sums import MOST_DAMAGE, LogSums, SampleKey, StoredSource

if TYPE_CHECKING:
    from rich.console import Console

UNIFORM: Final = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 15, 20, 30, 50, 100, 200, 500, 1000)
# The sample for batches of equal size is this many times larger: computing sizes is faster than compressing.
UNIFORM_TIMES: Final = 2
UNIFORM_RECORDS: Final = 4096  # records of each chunk that are in this sample at least

GROUP_STRETCHES: Final = 16  # one call of a codec compresses so many stretches, about 1 MiB of plain v2
MOST_STARTED: Final = 8  # codecs are started for so many groups of batches before their results are awaited
MOST_THREADS: Final = 8  # each thread has a chunk in memory
TASK_BYTES: Final = SHARE_BYTES  # small files are joined to tasks of about this size


def tally(
    part: Part, question: Question, run: Mapper = map, advance: Callable[[int], None] = lambda _: None
) -> LogSums:
    """Return the sums of one part (a file, a share of a file or a partition).

    Damage is left out and listed. If an error makes the rest of the part unreadable, its text goes to
    `StoredSource.unreadable`. Raises InvalidConfig for a part without batches if the question has no assumed batches.

    Args:
        run: calls the codecs. It works like `map`; the `map` of a thread pool starts at once and keeps several cores
            busy while this thread computes sizes. Results are taken at the end of each chunk.
        advance: called per chunk with the number of bytes read. All calls add up to the part's size.
    """
    sums, chunks = _PartSums(part, question, run), iter(part.chunks())
    unreadable, left_bytes = None, part.size_bytes
    while True:
        try:
            chunk = next(chunks, None)
        except InvalidConfig:
            raise
        except (KfbenchError, OSError) as error:
            unreadable = reason_of(error, part.name)
            break
        if chunk is None:
            break
        sums.add(chunk)
        read_bytes = chunk.size_bytes + sum(each.size_bytes for each in chunk.damage)
        advance(read_bytes)
        left_bytes -= read_bytes
    advance(left_bytes)
    return sums.done(unreadable)


class _Span(NamedTuple):
    """A stretch of the sample: its first batch, and the end. is_certain: it is in every sample."""

    first: int
    end: int
    is_certain: bool


class _Group(NamedTuple):
    """Stretches that are compressed in one call. first_batches: the first batch of each stretch in `batches`."""

    batches: Batches
    first_batches: Int64
    are_certain: NDArray[np.bool_]


class _PartSums:
    """Reads the chunks of one file or partition, and keeps the sums."""

    def __init__(self, part: Part, question: Question, run: Mapper) -> None:
        self._part, self._question, self._run = part, question, run
        self._sums = LogSums()
        self._source = StoredSource(
            path=part.name, topic=part.topic, partition=part.partition, size_bytes=part.size_bytes, unit=part.unit
        )
        self._batches = self._sent_records = 0
        self._assumed = Rebatcher(question.assumed) if question.assumed else None
        self._rebatchers = [(batching, Rebatcher(batching)) for batching in question.batchings]
        self._clock = self._assumed or next((rebatcher for _, rebatcher in self._rebatchers), None)
        self._sample = PartStretches(part, question)
        self._nothing: SentRecords | None = None
        self._stretches: Counter[Batching | None] = Counter()
        self._times, self._time_reader = TimeHistogram(), TimeReader(question.unit_of(part))
        self._started: list[Callable[[], None]] = []  # each adds the results of codecs that `_run` has started

    def add(self, given: Chunk) -> None:
        plain = without_dictionaries(given)
        chunk = plain.chunk
        of_clients = sent_records(chunk.records, chunk.bounds, chunk.fields, chunk.partitions)
        of_clients = self._time_reader.read(of_clients, chunk.is_ms)
        times = of_clients.owners["time_ms"]
        self._nothing = of_clients.at(np.zeros(0, np.int64))
        self._sent_records += len(of_clients.records)
        self._source = self._source.plus(self._source_of(plain, times[times > NO_TIMESTAMP]))
        self._times = self._times.plus(TimeHistogram.of(times))
        if chunk.bounds is not None:
            self._add_batches(Batches(chunk.records, chunk.bounds, chunk.fields), plain)
        elif self._assumed is None:
            raise InvalidConfig(f"{self._part.name}: has no batches: linger_ms and batch_size_bytes are wanted")
        else:
            for batches in self._assumed.add(of_clients):
                self._add_batches(batches, plain)
        self._size_uniform(of_clients)
        self._rebatch(of_clients)
        self._finish()

    def _source_of(self, plain: PlainChunk, times_ms: Int64) -> StoredSource:
        """Return a chunk as a source. times_ms: the known timestamps of clients' records."""
        chunk = plain.chunk
        return StoredSource(
            path=self._part.name,
            topic=self._part.topic,
            partition=self._part.partition,
            sound_bytes=chunk.size_bytes,
            records=len(chunk.records),
            payload_bytes=chunk.records.shapes.payload_bytes,
            first_ms=int(times_ms.min()) if len(times_ms) else NO_TIMESTAMP,
            last_ms=int(times_ms.max()) if len(times_ms) else NO_TIMESTAMP,
            kinds=chunk.kinds,
            damage=chunk.damage[: MOST_DAMAGE - len(self._source.damage)],
            damaged_places=len(chunk.damage),
            damaged_bytes=sum(each.size_bytes for each in chunk.damage),
            trailing_bytes=chunk.trailing_bytes,
            dictionary_bytes=plain.size_bytes,
            first_offset=chunk.first_offset,
            last_offset=chunk.last_offset,
            first_position=0 if chunk.first_offset is None else chunk.start,
        )

    def _finish(self) -> None:
        """Wait for the codecs that were started, and add their results to the sums."""
        for add_results in self._started:
            add_results()
        self._started.clear()

    def done(self, unreadable: str | None) -> LogSums:
        if self._nothing is not None:
            if self._assumed is not None:
                for batches in self._assumed.add(self._nothing, last=True):
                    self._add_batches(batches, None)
            self._rebatch(self._nothing, last=True)
            self._finish()
        source = replace(
            self._source,
            batches=self._batches,
            plain_bytes=self._sums.sizes()[BASE_FORMAT],
            ahead=self._clock.ahead if self._clock else 0,
            unreadable=unreadable,
        )
        return replace(
            self._sums,
            sources=(source,),
            sent_records=self._sent_records,
            times={source.stream: self._times},
            time_units={source.stream: self._time_reader.units},
            by_topic={source.stream: self._sums.of_base_format()},
            stretches=tuple(self._sample.stretches),
        )

    def _add_batches(self, batches: Batches, plain: PlainChunk | None) -> None:
        """Add the log's own or assumed batches. plain: the chunk that they come from, if it is known."""
        found, question = self._sums, self._question
        self._batches += len(batches.bounds) - 1
        control = batches.fields.over(len(batches.bounds) - 1)["is_control"]
        for name in question.formats:
            fmt = FORMATS[name]
            found.breakdown.update({(name, part): size for part, size in fmt.breakdown(*batches).items()})
            found.losses.update({(name, what): number for what, number in fmt.losses(*batches).items()})
            if control.any():
                found.control[name] += int(fmt.size(*batches)[np.broadcast_to(control, len(batches.bounds) - 1)].sum())
        self._compress_sample(None, batches, question.compressed_arms)
        self._sample.add(batches, plain)

    def _compress_sample(self, batching: Batching | None, batches: Batches, arms: Sequence[tuple[str, str]]) -> None:
        """Start to compress the stretches that are in the sample."""
        question, spans = self._question, list[_Span]()
        if not arms or len(batches.bounds) < 2:
            return
        sizes = FORMATS[BASE_FORMAT].size(*batches)
        for first, end in pairwise(group_bounds(sizes, STRETCH_BYTES).tolist()):
            number = self._stretches[batching]
            self._stretches[batching] += 1
            if question.draws(self._part, batching, number, question.share):
                is_certain = question.share < 1 and question.is_certain(self._part, number)
                spans.append(_Span(first, end, is_certain))
        starts = range(0, len(spans), GROUP_STRETCHES)
        groups = [_group(batches, spans[start : start + GROUP_STRETCHES]) for start in starts]
        jobs = [(group, arm) for group in groups for arm in arms]
        sums: Any = self._sums.compressed
        results = self._run(_compress_group, jobs)

        def add_results() -> None:
            for (_, arm), sample in zip(jobs, results, strict=True):
                key = SampleKey(batching, *arm)
                sums[key] = sums.get(key, SampleSums()).plus(sample)

        self._started.append(add_results)

    def _rebatch(self, of_clients: SentRecords, last: bool = False) -> None:
        """Add other batches of these records, and compress their sample."""
        question = self._question
        arms = [arm for arm in question.compressed_arms if arm[0] in question.compressed_formats]
        for batching, rebatcher in self._rebatchers:
            for batches in rebatcher.add(of_clients, last):
                self._compress_sample(batching, batches, arms)
                self._sums.rebatched_batches[batching] += len(batches.bounds) - 1
                for name in question.formats:
                    self._sums.rebatched[batching, name] += int(FORMATS[name].size(*batches).sum())
            if len(self._started) >= MOST_STARTED:  # the batches of many batchings would need much memory
                self._finish()

    def _size_uniform(self, of_clients: SentRecords) -> None:
        """Compute the overhead in batches of equal size, of the first records of a chunk."""
        share = min(self._question.share * UNIFORM_TIMES, 1.0)
        count = min(max(round(len(of_clients.records) * share), UNIFORM_RECORDS), len(of_clients.records))
        for records_per_batch in UNIFORM:
            whole = count // records_per_batch * records_per_batch
            if not whole:
                break
            self._sums.uniform_records[records_per_batch] += whole
            bounds = np.arange(0, whole + 1, records_per_batch)
            records = of_clients.records.part(0, whole)
            without_headers = records.shapes.key_bytes + records.shapes.value_bytes
            batches = SentRecords(records, of_clients.owners[:whole]).batched(bounds)
            for name in self._question.formats:
                fmt = FORMATS[name]
                carried = without_headers + (records.shapes.header_bytes if fmt.capabilities.headers else 0)
                self._sums.overhead[records_per_batch, name] += int(fmt.size(*batches).sum()) - carried


def _group(batches: Batches, spans: Sequence[_Span]) -> _Group:
    """Join stretches of these batches for one call of a codec, which is faster than a call per stretch."""
    counts = [each.end - each.first for each in spans]
    first, end = spans[0].first, spans[-1].end
    if end - first == sum(counts):
        joined = batches.part(first, end)
    else:
        joined = batches.take(np.concatenate([np.arange(each.first, each.end) for each in spans]))
    return _Group(joined, np.cumsum([0, *counts])[:-1], np.array([each.is_certain for each in spans]))


def _compress_group(job: tuple[_Group, tuple[str, str]]) -> SampleSums:
    """Compress a group of stretches in a format and codec. Return their sums."""
    group, (name, codec) = job
    plain = FORMATS[name].size(*group.batches)
    sizes = plain, compressed_sizes(group.batches, name, codec, None, plain)
    sums = [np.add.reduceat(each, group.first_batches) for each in sizes]
    random, certain = ~group.are_certain, group.are_certain
    return SampleSums(*(StretchSums.of(*(each[wanted].tolist() for each in sums)) for wanted in (random, certain)))


def tally_all(
    parts: Sequence[Part],
    question: Question,
    master: str | None = None,
    console: "Console | None" = None,
    archive: Path | None = None,
) -> LogSums:
    """Return the sums of all parts (files or partitions). The sources of the sums are in the order of the parts.

    The result does not depend on the workers. master: a Spark master; None: threads of this process.
    """
    if master is None:
        sums = _tally_here(parts, question, console)
    else:
        from kfbench.sweep.spark.executors import map_tasks

        work = partial(_tally_parts, question=question)
        sums = sum(map_tasks(work, _tasks(parts), "what-if", master, console, archive), LogSums())
    order = {part.name: i for i, part in enumerate(parts)}
    sources = tuple(sorted(sums.sources, key=lambda source: order[source.path]))
    return replace(sums, sources=sources).by_file()


def _tally_here(parts: Sequence[Part], question: Question, console: "Console | None") -> LogSums:
    """Add up in threads, because codecs and kernels release the GIL.

    A thread takes a whole part (a file or partition). If there are fewer parts than threads, one part is read after
    another, and the threads share its compression.
    """
    workers = min(cores(), MOST_THREADS)
    size_bytes = sum(part.size_bytes for part in parts)
    with ThreadPoolExecutor(workers) as threads, reading(size_bytes, "read", console) as advance:
        try:
            if len(parts) < workers:
                return sum((tally(part, question, threads.map, advance) for part in parts), LogSums())
            return sum(threads.map(partial(tally, question=question, advance=advance), parts), LogSums())
        except BaseException:
            threads.shutdown(cancel_futures=True)
            raise


def _tally_parts(parts: Sequence[Part], question: Question) -> LogSums:
    return sum((tally(part, question) for part in parts), LogSums())


def _tasks(parts: Sequence[Part]) -> list[list[Part]]:
    """Group files into tasks of about TASK_BYTES, the largest first."""
    tasks: list[list[Part]] = []
    task_bytes = TASK_BYTES
    for part in sorted(parts, key=lambda part: part.size_bytes, reverse=True):
        if task_bytes >= TASK_BYTES:
            tasks.append([])
            task_bytes = 0
        tasks[-1].append(part)
        task_bytes += part.size_bytes
    return tasks


def tally_topic(
    topic: Topic,
    question_for: Callable[[tuple[Part, ...]], Question],
    connector: str | None = None,
    master: str | None = None,
    console: "Console | None" = None,
    archive: Path | None = None,
) -> tuple[FoundSources, Question, LogSums]:
    """Return the partitions that were read, the question, and the sums over all partitions.

    The sources of the sums are sorted by partition.

    question_for: returns the question for partitions of given sizes. Raises InvalidConfig for a partition that the
    topic does not have, MissingTool, SweepFailed.
    """
    from kfbench.sweep.spark.topic import topic_mapped

    skipped: list[Skipped] = []
    asked: list[tuple[tuple[TopicPartition, ...], Question]] = []

    def function_for(sizes: Mapping[int, int]) -> Callable[[Iterable[pa.RecordBatch]], LogSums | None]:
        skipped.extend(
            Skipped(path=f"{topic.name}-{i}", size_bytes=0, reason="it has no leader", is_data=True)
            for i, size in sizes.items()
            if size == NO_LEADER
        )
        parts = tuple(
            TopicPartition(topic=topic.name, partition=i, size_bytes=size)
            for i, size in sizes.items()
            if size != NO_LEADER
        )
        if not parts:
            raise KfbenchError(f"{topic.name}: no partition has a leader")
        asked.append((parts, question_for(parts)))
        return partial(_tally_partition, topic.name, asked[0][1])

    mapped = topic_mapped(topic, function_for, connector, master, console, archive)
    found = [each for each in mapped if each is not None]
    [(parts, question)] = asked
    read = {source.partition for each in found for source in each.sources}
    empty = [replace(part, size_bytes=0) for part in parts if part.partition not in read]
    sums = sum((*found, *(tally(part, question) for part in empty)), LogSums())
    sources = tuple(sorted(sums.sources, key=lambda source: source.partition or 0))
    return FoundSources(parts=parts, skipped=tuple(skipped)), question, replace(sums, sources=sources)


def _tally_partition(topic: str, question: Question, rows: Iterable[pa.RecordBatch]) -> LogSums | None:
    part = by_partition(topic, rows)
    return None if part is None else tally(part, question)
