"""The records that a migration is measured with, called a subject: generated ones, or the first batches of a log.

There are nine generated subjects: three sizes of values times three sizes of batches.
"""

import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import chain, islice, product
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from kfbench.arrays import Int64
from kfbench.batches import NO_FIELDS, BatchFields
from kfbench.errors import KfbenchError
from kfbench.log.damage import Damage, segment_size
from kfbench.log.segment import join_records
from kfbench.log.tail import nothing_in
from kfbench.migration.measure import ROUNDS
from kfbench.records import Records
from kfbench.sources import find
from kfbench.sources.folder import NothingToRead, unread_line
from kfbench.sources.log import Segment, stream_of
from kfbench.text import count_words
from kfbench.workloads.grid import GridPoint

VALUE_BYTES: Final = (10, 100, 1_024)
BATCH_SIZES: Final = (1, 10, 100)
CODEC_CHUNKS: Final = 8  # chunks that tell the codec of a topic
PRODUCER_FIELDS: Final = ("producer_id", "producer_epoch", "base_sequence", "is_transactional")  # brokers set the rest


@dataclass(frozen=True, kw_only=True)
class SampleLimits:
    """The largest amount of records to measure with. size_bytes: bytes of keys and values."""

    size_bytes: int
    batches: int
    records: int = 20_480
    rounds: int = ROUNDS

    def repeats(self, size_bytes: int, batches: int, records: int) -> int:
        """Return how often a log of this size fits into the sample, at least 1."""
        return max(int(min(self.size_bytes / max(size_bytes, 1), self.batches / batches, self.records / records)), 1)


@dataclass(frozen=True, kw_only=True)
class Subject:
    """Records to measure with (a subject), in batches as producers sent them.

    Args:
        about: a description.
        left_out: parts of the log that are not measured, in words.
        damage: parts that cannot be read, by file.
        codec: that of most batches of a log; "" for generated records.
        source: the topic, folder or file of a log.
    """

    name: str
    about: str
    records: Records
    bounds: Int64
    batch_fields: BatchFields
    left_out: tuple[str, ...] = ()
    damage: Mapping[str, tuple[Damage, ...]] = field(default_factory=dict)
    codec: str = ""
    source: str = ""


def generated_subjects(sample: SampleLimits) -> list[Subject]:
    """Generate nine sets of records: every value size in batches of every size.

    Each is at most as large as `sample`.
    """
    subjects = []
    for value_bytes, batch_size in product(VALUE_BYTES, BATCH_SIZES):
        per_batch = f"{count_words(batch_size, 'record')} per batch"
        point = GridPoint(value_bytes=value_bytes, batch_size=batch_size, timestamp_spread_ms=batch_size - 1)
        batches = sample.size_bytes // (batch_size * (point.value_bytes + point.key_bytes))
        batches = min(max(batches, 1), sample.batches, sample.records // batch_size)
        generated = point.generate(records=batch_size * batches, seed=1)
        subject = Subject(
            name=f"{value_bytes} B × {batch_size}",
            about=f"values of {value_bytes} bytes, keys of {point.key_bytes}, {per_batch}",
            records=generated.records,
            bounds=generated.bounds,
            batch_fields=generated.batch_fields,
        )
        subjects.append(subject)
    return subjects


def without_producers(subject: Subject) -> Subject:
    """Return these records without producer ids, as if their producers were not idempotent."""
    count = int((subject.batch_fields.rows["producer_id"] >= 0).sum())
    if not count:
        return subject
    left_out = (
        f"the producer ids of {count_words(count, 'batch')}: idempotent and transactional producers are refused in "
        "phases that write v0 or v1"
    )
    return replace(subject, batch_fields=NO_FIELDS, left_out=(*subject.left_out, left_out))


class Logs(NamedTuple):
    """The segments of each topic, the largest topic first. unread: a line for each file that cannot be read."""

    topics: dict[str, list[Segment]]
    unread: tuple[str, ...]


def find_logs(sources: Iterable[str | os.PathLike[str]]) -> Logs:
    """Return the segments of each topic. A segment without a topic belongs to its folder, or stands for itself.

    Raises KfbenchError if there is no segment.
    """
    topics: dict[str, list[Segment]] = {}
    found = find(sources, is_for_tables=False)
    for part in found.parts:
        assert isinstance(part, Segment)
        topics.setdefault(stream_of(part.topic, part.name), []).append(part)
    ordered = sorted(topics.items(), key=lambda topic: -sum(part.size_bytes for part in topic[1]))
    return Logs(dict(ordered), tuple(f"{each.path}: {each.reason}" for each in found.skipped if each.is_data))


def codec_of(segments: Sequence[Segment]) -> str:
    """Return the codec of most batches of clients, by the first batches of a topic; "none" without such a batch."""
    codecs: Counter[str] = Counter()
    with suppress(KfbenchError, OSError):  # whoever reads the records reports it
        for chunk in islice(chain.from_iterable(segment.chunks() for segment in segments), CODEC_CHUNKS):
            if chunk.log is not None and len(chunk.log):
                is_client = ~chunk.log.batch_rows["is_control"] & (np.diff(chunk.log.bounds) > 0)
                codecs.update(chunk.log.batches["codec"][is_client].tolist())
    return codecs.most_common(1)[0][0] if codecs else "none"


def log_subject(name: str, parts: Sequence[Segment], sample: SampleLimits, codec: str = "none") -> Subject:
    """Read the first batches of a topic's segments as a subject. Raise KfbenchError.

    No more is read than `sample` takes. A short log is repeated. Damage is left out and listed. codec: of the topic.
    """
    first = _first_batches(Path(name).name, parts, sample)
    records, counts = len(first.records), np.diff(first.bounds)
    # A short log is repeated, so that the fixed cost of a call is a small part of the measured time.
    times = sample.repeats(first.records.shapes.payload_bytes, len(counts), records)
    repeated = first.records.take(np.tile(np.arange(records), times))
    about = f"{count_words(records, 'record')} in {count_words(len(counts), 'batch')} of {name}"
    places = [(file, each) for file, damage in first.damage.items() for each in damage if each.size_bytes]
    lost_bytes = sum(each.size_bytes for _, each in places)
    left_out = tuple(
        f"{count_words(lost_bytes, 'byte')} of damage: {each.words()} of {file}" for file, each in places[:1]
    )
    return replace(
        first,
        source=name,
        codec=codec,
        about=f"{about}, repeated {times} times" if times > 1 else about,
        records=repeated.at_offsets(np.arange(len(repeated))),
        bounds=np.append(0, np.cumsum(np.tile(counts, times))),
        batch_fields=BatchFields.trusted(np.tile(first.batch_fields.rows, times)),
        left_out=left_out,
    )


def _first_batches(subject: str, segments: Sequence[Segment], limits: SampleLimits) -> Subject:
    """Read one segment after another until the limits are reached. Return the first batches that clients sent."""
    name = segments[0].name
    parts: list[Records] = []
    counts: list[Int64] = []
    producers: list[Any] = []
    damage: dict[str, tuple[Damage, ...]] = {}
    is_log = False
    try:
        for name, chunk in ((segment.name, chunk) for segment in segments for chunk in segment.chunks()):
            if chunk.damage:
                damage[name] = (*damage.get(name, ()), *chunk.damage)
            of_batches = np.diff(np.zeros(1, np.int64) if chunk.bounds is None else chunk.bounds)
            is_log |= len(of_batches) > 0
            rows = np.broadcast_to(chunk.fields.over(len(of_batches)), len(of_batches))
            is_clients = ~rows["is_control"] & (of_batches > 0)
            parts.append(chunk.records.take(np.flatnonzero(np.repeat(is_clients, of_batches))))
            counts.append(of_batches[is_clients])
            producers.append(rows[list(PRODUCER_FIELDS)][is_clients])
            size_bytes = sum(each.shapes.key_bytes + each.shapes.value_bytes for each in parts)
            batches, records_read = sum(map(len, counts)), sum(map(len, parts))
            if size_bytes >= limits.size_bytes or batches >= limits.batches or records_read >= limits.records:
                break
    except (KfbenchError, OSError) as error:
        raise KfbenchError(unread_line(name, error)) from None
    if not any(map(len, counts)):
        raise _nothing_readable(segments[0], damage.get(segments[0].name, ()), is_log)
    records, bounds = join_records(parts), np.append(0, np.cumsum(np.concatenate(counts)))
    shapes = records.shapes
    record_bytes = np.maximum(shapes.key_lengths, 0, dtype=np.int64) + np.maximum(shapes.value_lengths, 0)
    bytes_before = np.append(0, np.cumsum(record_bytes))[bounds[:-1]]
    has_room = (bytes_before < limits.size_bytes) & (bounds[:-1] < limits.records)
    batches = min(int(has_room.sum()), limits.batches)  # sums rise, so batches with room come first
    columns: dict[str, Any] = {each: np.concatenate(producers)[each][:batches] for each in PRODUCER_FIELDS}
    return Subject(
        name=subject,
        about="",
        records=records.part(0, int(bounds[batches])),
        bounds=bounds[: batches + 1],
        batch_fields=BatchFields(**columns),
        damage=damage,
    )


def _nothing_readable(segment: Segment, damage: Sequence[Damage], is_log: bool) -> KfbenchError:
    if damage:
        return KfbenchError(f"{segment.name}: no batch can be read: {damage[0].words()}")
    if is_log:
        size = count_words(segment_size(segment.name), "byte")
        return NothingToRead(f"{segment.name}: no batch of a client in {size}")
    error = KfbenchError if segment.size_bytes else NothingToRead
    return error(f"{segment.name}: {nothing_in(segment.size_bytes)}")
