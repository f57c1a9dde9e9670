"""Add up the bytes of all parts of a source: in threads of this process, or in tasks of a Spark cluster.

A Kafka topic is read by Spark, one task per partition.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from kfbench.errors import KfbenchError
from kfbench.measure.container import cores
from kfbench.progress import reading
from kfbench.sources import Found, Part, Skipped
from kfbench.sources.part import SHARE_BYTES
from kfbench.sources.topic import NO_LEADER, Topic, TopicPartition, by_partition
from kfbench.whatif.compiling import announced
from kfbench.whatif.levels import at_levels
from kfbench.whatif.question import Question
from kfbench.whatif.sums import Tally
from kfbench.whatif.tally import tally

if TYPE_CHECKING:
    from rich.console import Console

MOST_THREADS: Final = 8  # each thread has a chunk in memory
TASK_BYTES: Final = SHARE_BYTES  # small files are joined to tasks of about this size


def tally_all(
    parts: Sequence[Part],
    question: Question,
    master: str | None = None,
    console: "Console | None" = None,
    archive: Path | None = None,
) -> Tally:
    """Return the sums of all parts (files or partitions). The sources of the sums are in the order of the parts.

    The result does not depend on the workers. master: a Spark master; None: threads of this process.
    """
    if master is None:
        sums = _tally_here(parts, question, console)
    else:
        from kfbench.sweep.spark.executors import mapped

        work = partial(_tally_parts, question=question)
        sums = sum(mapped(work, _tasks(parts), "what-if", master, console, archive), Tally())
        sums = at_levels(sums, question)
    order = {part.name: i for i, part in enumerate(parts)}
    sources = tuple(sorted(sums.sources, key=lambda source: order[source.path]))
    return replace(sums, sources=sources).by_file()


def _tally_here(parts: Sequence[Part], question: Question, console: "Console | None") -> Tally:
    """Add up in threads, because codecs and kernels release the GIL.

    A thread takes a whole part (a file or partition). If there are fewer parts than threads, one part is read after
    another, and the threads share its compression.
    """
    workers = min(cores(), MOST_THREADS)
    size_bytes = sum(part.size_bytes for part in parts)
    with ThreadPoolExecutor(workers) as threads, announced(console), reading(size_bytes, "read", console) as advance:
        try:
            if len(parts) < workers:
                sums = sum((tally(part, question, threads.map, advance) for part in parts), Tally())
            else:
                sums = sum(threads.map(partial(tally, question=question, advance=advance), parts), Tally())
            return at_levels(sums, question, threads.map)
        except BaseException:
            threads.shutdown(cancel_futures=True)
            raise


def _tally_parts(parts: Sequence[Part], question: Question) -> Tally:
    return sum((tally(part, question) for part in parts), Tally())


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
) -> tuple[Found, Question, Tally]:
    """Return the partitions that were read, the question, and the sums over all partitions.

    The sources of the sums are sorted by partition.

    question_for: returns the question for partitions of given sizes. Raises InvalidConfig for a partition that the
    topic does not have, MissingTool, SweepFailed.
    """
    from kfbench.sweep.spark.topic import topic_mapped

    skipped: list[Skipped] = []
    asked: list[tuple[tuple[TopicPartition, ...], Question]] = []

    def function_for(sizes: Mapping[int, int]) -> Callable[[Iterable[pa.RecordBatch]], Tally | None]:
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
        return partial(_tallied, topic.name, asked[0][1])

    mapped = topic_mapped(topic, function_for, connector, master, console, archive)
    found = [each for each in mapped if each is not None]
    [(parts, question)] = asked
    read = {source.partition for each in found for source in each.sources}
    empty = [replace(part, size_bytes=0) for part in parts if part.partition not in read]
    sums = at_levels(sum((*found, *(tally(part, question) for part in empty)), Tally()), question)
    sources = tuple(sorted(sums.sources, key=lambda source: source.partition or 0))
    return Found(parts=parts, skipped=tuple(skipped)), question, replace(sums, sources=sources)


def _tallied(topic: str, question: Question, rows: Iterable[pa.RecordBatch]) -> Tally | None:
    part = by_partition(topic, rows)
    return None if part is None else tally(part, question)
