"""Compute what a zstd dictionary per topic would save: trained on the first part of each topic, tested on the rest.

The bytes that store the dictionaries are charged. A topic where a dictionary does not pay keeps plain zstd.
"""

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from typing import Final

import numpy as np

from kfbench.arrays import Int64
from kfbench.codecs import CODECS, Dictionary
from kfbench.codecs.dictionary import MOST_BYTES as MOST_DICTIONARY_BYTES
from kfbench.dictionary_training import samples, trained_or_tail
from kfbench.formats import BASE_FORMAT, FORMATS, Format
from kfbench.limits import SIZE_BYTES
from kfbench.log import dictionary_batch
from kfbench.log.segment import join_records
from kfbench.whatif.more import TopicBytes
from kfbench.whatif.rebatch import Batches, sent_records
from kfbench.whatif.stretches import Halves, LogStretch, halves_by_topic

LEVEL: Final = CODECS["zstd"].default_level or 0
FORMATS_WITH: Final = (BASE_FORMAT, "columnar")
SMALL_SIZE_BYTES: Final = 4_096  # of a dictionary, where a larger one would cost more than it saves
LARGE_TOPIC_BYTES: Final = 500_000  # under zstd, per file; from here on dictionaries have SIZE_BYTES
LEAST_TEST_BYTES: Final = 8_192  # of uncompressed v2 in each half; with fewer there is no answer
SAMPLE_RECORDS: Final = 10  # records per sample of the trainer
WORKERS: Final = 4

# The rows of the table of details.
DETAIL_SIZES: Final = (SMALL_SIZE_BYTES, SIZE_BYTES, 2 * SIZE_BYTES)
DETAIL_LEVELS: Final = (1, 3, 6)
DETAIL_RECORDS: Final = (None, 1, 10, 100)  # records per batch; None: the log's own batches
DETAIL_TEST_BYTES: Final = 1 << 20  # of uncompressed v2 that tests the details, in all topics


@dataclass(frozen=True, kw_only=True)
class DictionarySaving:
    """The bytes of all sampled topics under zstd in one format, without and with topic dictionaries.

    Args:
        records_per_batch: None: the batches of the log.
        dictionary_size_bytes: the largest size of a trained dictionary; None: chosen by the topic's size.
        zstd_bytes: without dictionaries.
        dictionary_bytes: with dictionaries where they save bytes. It includes `stored_bytes`.
        stored_bytes: of the control batches that store these dictionaries.
        topics: the number of topics where a dictionary saves bytes.
        current_bytes: with the dictionaries that the topics have now, which it includes; None: no topic has one.
    """

    format: str
    level: int
    records_per_batch: int | None = None
    dictionary_size_bytes: int | None = None
    zstd_bytes: int = 0
    dictionary_bytes: int = 0
    stored_bytes: int = 0
    topics: int = 0
    current_bytes: int | None = None

    @property
    def saved_bytes(self) -> int:
        return self.zstd_bytes - self.dictionary_bytes

    @property
    def saving_against_zstd(self) -> float:
        return 1 - self.dictionary_bytes / self.zstd_bytes if self.zstd_bytes else 0.0

    @property
    def current_saving(self) -> float | None:
        """The share of `zstd_bytes` that the topics' dictionaries save now; None: they have none."""
        return None if self.current_bytes is None or not self.zstd_bytes else 1 - self.current_bytes / self.zstd_bytes


@dataclass(frozen=True, kw_only=True)
class TopicDictionary:
    """The dictionary of one topic in one format, and its test on the records that follow those it was trained on.

    Args:
        kind: "trained", "raw" (the newest bytes of the first part) or "too few bytes" (no dictionary was made).
        size_bytes: of the dictionary.
        train_bytes, test_bytes: of uncompressed v2 in the sample.
        zstd_test_bytes, dictionary_test_bytes: the tested batches under zstd, without and with the dictionary.
        zstd_bytes: the whole topic under zstd, estimated from the tested batches.
        stored_bytes: of the control batches that store the dictionary, one per file.
        saved_bytes: of the whole topic, after `stored_bytes`; below 0: it would take more.
        current: the numbers of the dictionaries that the tested batches have now.
        current_bytes: the whole topic with these, estimated from the tested batches, with the bytes that store them.
            None: they have none.
    """

    topic: str
    format: str
    kind: str
    size_bytes: int = 0
    train_bytes: int = 0
    test_bytes: int = 0
    zstd_test_bytes: int = 0
    dictionary_test_bytes: int = 0
    zstd_bytes: int = 0
    stored_bytes: int = 0
    saved_bytes: int = 0
    current: tuple[int, ...] = ()
    current_bytes: int | None = None


@dataclass(frozen=True, kw_only=True)
class DictionaryAnswer:
    """The bytes that topic dictionaries would save.

    Args:
        savings: a row per format, at zstd's default level and in the log's own batches.
        topics: a row per topic and format.
        details: rows by format, batches, size of the dictionary and level; empty unless they were asked for.
        sampled_topics, all_topics: numbers of topics. The largest are sampled.
    """

    savings: tuple[DictionarySaving, ...]
    topics: tuple[TopicDictionary, ...]
    sampled_topics: int
    all_topics: int
    details: tuple[DictionarySaving, ...] = ()

    @property
    def has_answer(self) -> bool:
        """False: no topic has enough bytes to make and test a dictionary."""
        return any(each.size_bytes for each in self.topics)


def dictionary_answer(
    stretches: Iterable[LogStretch],
    topics: Mapping[str, TopicBytes],
    formats: Sequence[str],
    with_details: bool = False,
) -> DictionaryAnswer:
    """Train and test a dictionary for each sampled topic, in each format of `formats` that v2 and columnar are in."""
    names = [name for name in FORMATS_WITH if name in formats]
    halves = halves_by_topic(stretches)
    with ThreadPoolExecutor(WORKERS) as threads:
        work = partial(_of_topic, halves, topics)
        tested = tuple(threads.map(work, product(halves, names)))
        details: list[DictionarySaving] = []
        if with_details:
            jobs = product(names, DETAIL_RECORDS, DETAIL_SIZES)
            detail = partial(_details, halves, topics)
            details = [each for rows in threads.map(detail, jobs) for each in rows]
    return DictionaryAnswer(
        savings=tuple(_sum([each for each in tested if each.format == name], name) for name in names),
        topics=tested,
        sampled_topics=len(halves),
        all_topics=len(topics),
        details=tuple(details),
    )


def _of_topic(halves: Mapping[str, Halves], topics: Mapping[str, TopicBytes], job: tuple[str, str]) -> TopicDictionary:
    topic, name = job
    train, test = halves[topic]
    fmt, whole = FORMATS[name], topics[topic]
    given = TopicDictionary(
        topic=topic,
        format=name,
        kind="too few bytes",
        train_bytes=sum(each.plain_bytes for each in train),
        test_bytes=sum(each.plain_bytes for each in test),
    )
    if min(given.train_bytes, given.test_bytes) < LEAST_TEST_BYTES:
        return given
    times = whole.plain_bytes / given.test_bytes
    batches = [each.batches for each in test]
    zstd_test_bytes = _encoded_bytes(fmt, batches, LEVEL)
    zstd_bytes = round(zstd_test_bytes * times)
    is_large = zstd_bytes >= LARGE_TOPIC_BYTES * whole.files
    dictionary = _train(fmt, train, SIZE_BYTES if is_large else SMALL_SIZE_BYTES)
    encoded_bytes = _encoded_bytes(fmt, batches, LEVEL, dictionary)
    stored_bytes = len(dictionary_batch(dictionary, fmt).data) * whole.files
    current, current_bytes = tuple(sorted({each.dictionary.number for each in test if each.dictionary})), None
    if current:
        now_bytes = sum(_encoded_bytes(fmt, [each.batches], LEVEL, each.dictionary) for each in test)
        current_bytes = round(now_bytes * times) + whole.dictionary_bytes
    return replace(
        given,
        kind="raw" if dictionary.is_raw else "trained",
        size_bytes=len(dictionary.data),
        zstd_test_bytes=zstd_test_bytes,
        dictionary_test_bytes=encoded_bytes,
        zstd_bytes=zstd_bytes,
        stored_bytes=stored_bytes,
        saved_bytes=round((zstd_test_bytes - encoded_bytes) * times) - stored_bytes,
        current=current,
        current_bytes=current_bytes,
    )


def _sum(topics: Sequence[TopicDictionary], name: str) -> DictionarySaving:
    paying = [each for each in topics if each.saved_bytes > 0]
    zstd_bytes = sum(each.zstd_bytes for each in topics)
    return DictionarySaving(
        format=name,
        level=LEVEL,
        zstd_bytes=zstd_bytes,
        dictionary_bytes=zstd_bytes - sum(each.saved_bytes for each in paying),
        stored_bytes=sum(each.stored_bytes for each in paying),
        topics=len(paying),
        current_bytes=sum(each.zstd_bytes if each.current_bytes is None else each.current_bytes for each in topics)
        if any(each.current for each in topics)
        else None,
    )


def _train(fmt: Format, train: Sequence[LogStretch], size_bytes: int) -> Dictionary:
    bodies = [body for each in train for body in samples(each.batches.records, fmt, SAMPLE_RECORDS)]
    return trained_or_tail(bodies, min(size_bytes, MOST_DICTIONARY_BYTES))


def _details(
    halves: Mapping[str, Halves], topics: Mapping[str, TopicBytes], job: tuple[str, int | None, int]
) -> list[DictionarySaving]:
    """Return a row per level, for one format, one batching and one size of the dictionary."""
    name, records_per_batch, size_bytes = job
    fmt = FORMATS[name]
    rows = {
        level: DictionarySaving(
            format=name, level=level, records_per_batch=records_per_batch, dictionary_size_bytes=size_bytes
        )
        for level in DETAIL_LEVELS
    }
    for topic, (train, test) in halves.items():
        if min(sum(each.plain_bytes for each in half) for half in (train, test)) < LEAST_TEST_BYTES:
            continue
        ends = np.cumsum([each.plain_bytes for each in test])
        tested = test[: int(np.searchsorted(ends, DETAIL_TEST_BYTES // len(halves), "right")) or 1]
        times = topics[topic].plain_bytes / sum(each.plain_bytes for each in tested)
        batches = [each.batches for each in tested]
        if records_per_batch is not None:
            batches = [_uniform(batches, records_per_batch)]
        dictionary = _train(fmt, train, size_bytes)
        stored_bytes = len(dictionary_batch(dictionary, fmt).data) * topics[topic].files
        current = next((each.dictionary for each in reversed(test) if each.dictionary), None)
        for level, row in rows.items():
            zstd_bytes = round(_encoded_bytes(fmt, batches, level) * times)
            with_bytes = round(_encoded_bytes(fmt, batches, level, dictionary) * times) + stored_bytes
            pays = with_bytes < zstd_bytes
            current_bytes = zstd_bytes
            if current is not None:
                encoded_bytes = _encoded_bytes(fmt, batches, level, current)
                current_bytes = round(encoded_bytes * times) + topics[topic].dictionary_bytes
            rows[level] = replace(
                row,
                zstd_bytes=row.zstd_bytes + zstd_bytes,
                dictionary_bytes=row.dictionary_bytes + (with_bytes if pays else zstd_bytes),
                stored_bytes=row.stored_bytes + stored_bytes * pays,
                topics=row.topics + pays,
                current_bytes=(row.current_bytes or 0) + current_bytes,
            )
    has_current = any(each.dictionary for _, test in halves.values() for each in test)
    return [row if has_current else replace(row, current_bytes=None) for row in rows.values()]


def _uniform(batches: Sequence[Batches], records_per_batch: int) -> Batches:
    """Put all records into batches of so many records; the last one may have fewer."""
    given = [sent_records(each.records, each.bounds, each.fields) for each in batches]
    records = join_records([each.records for each in given])
    owners = np.concatenate([each.owners for each in given])
    bounds: Int64 = np.append(np.arange(0, len(records), records_per_batch), len(records)).astype(np.int64)
    return type(given[0])(records, owners).batched(bounds)


def _encoded_bytes(fmt: Format, batches: Iterable[Batches], level: int, dictionary: Dictionary | None = None) -> int:
    return sum(
        len(fmt.encode(*each[:2], "zstd", level, each.fields, lossy=True, dictionary=dictionary).data)
        for each in batches
    )
