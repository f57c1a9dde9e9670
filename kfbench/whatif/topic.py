"""Compute the sums of a topic in Spark tasks, one task per partition."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from kfbench.errors import KfbenchError
from kfbench.sources import Found, Part, Skipped
from kfbench.sources.topic import NO_LEADER, Topic, TopicPartition, by_partition
from kfbench.whatif.levels import at_levels
from kfbench.whatif.question import Question
from kfbench.whatif.sums import Tally
from kfbench.whatif.tally import tally

if TYPE_CHECKING:
    from rich.console import Console


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
    sums = at_levels(sum((*found, *(tally(part, question) for part in empty)), Tally()), question.levels)
    sources = tuple(sorted(sums.sources, key=lambda source: source.partition or 0))
    return Found(parts=parts, skipped=tuple(skipped)), question, replace(sums, sources=sources)


def _tallied(topic: str, question: Question, rows: Iterable[pa.RecordBatch]) -> Tally | None:
    part = by_partition(topic, rows)
    return None if part is None else tally(part, question)
