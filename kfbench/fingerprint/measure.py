"""Make the fingerprint of log segments, partition folders or a data folder."""

from __future__ import annotations

import random
import secrets
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING, Final, NamedTuple

from kfbench import __version__
from kfbench.errors import InvalidConfig
from kfbench.fingerprint.file import CONTAINS, LEAST_MEMBERS_RANGE, NEVER, SCHEMA, Fingerprint
from kfbench.fingerprint.histograms import FIRST_DATE_MS, Counts, count_values, merged_histograms
from kfbench.measure.container import cores
from kfbench.money import Prices, Traffic
from kfbench.progress import reading
from kfbench.sources import Part, Skipped, find
from kfbench.sources.log import stream_of
from kfbench.sources.tables import TableFile
from kfbench.sources.time_columns import Unit
from kfbench.whatif.answer import WhatIf
from kfbench.whatif.ask import SAMPLE_BYTES, Paths, as_paths, default_formats, first_batches, what_if
from kfbench.whatif.more import WHATIF_TABLES
from kfbench.whatif.rate import Rate, TopicRate
from kfbench.whatif.sums import SUMMED, StoredSource

if TYPE_CHECKING:
    from rich.console import Console

DIGITS: Final = 3
UNKNOWN_UNIT: Final = "they tell none"


class MeasuredFingerprint(NamedTuple):
    """A fingerprint, and the what-if of its log, with the names and the damage. topics: topic or file -> number."""

    fingerprint: Fingerprint
    answer: WhatIf
    topics: Mapping[str, str]


def fingerprint(
    paths: Paths,
    *,
    sample_bytes: int | None = SAMPLE_BYTES,
    seed: int | None = None,
    timestamp_unit: Unit | None = None,
    least_members: int = 10,
    console: Console | None = None,
) -> MeasuredFingerprint:
    """Read log segments and folders of them, and return their fingerprint. Damage is left out and counted.

    Args:
        paths: a path, or several.
        sample_bytes: about how many bytes of the source are compressed. None: all.
        seed: decides which batches are compressed. None: a random number. A known seed would let a guess of the topic's
            name be checked, because the draw depends on the name. The file never has it.
        timestamp_unit: see `whatif.what_if`.
        least_members: the smallest number of records or batches that a bucket of a histogram may have.
        console: where a command shows its progress.

    Raises:
        KfbenchError: a path does not exist, or nothing can be read.
        InvalidConfig: a path is a table: it has no batches. Or least_members is out of range.
    """
    if least_members not in LEAST_MEMBERS_RANGE:
        limits = f"{LEAST_MEMBERS_RANGE[0]} to {LEAST_MEMBERS_RANGE[-1]:,}"
        raise InvalidConfig(f"least_members: {least_members} is not {limits}")
    paths = list(as_paths(paths))
    parts = find(paths).parts
    if table := next((part for part in parts if isinstance(part, TableFile)), None):
        raise InvalidConfig(f"{table.path}: is a table; a fingerprint is made of a log")
    seed = secrets.randbits(62) if seed is None else seed
    answer = what_if(
        paths, "all", batchings=(), sample_bytes=sample_bytes, seed=seed, timestamp_unit=timestamp_unit, console=console
    )
    names = number_topics(answer.sources, seed)
    counts = _counts(parts, {each.topic: each.timestamp_unit for each in answer.by_topic}, console)
    made = Fingerprint(
        schema=SCHEMA,
        kfbench=__version__,
        contains=tuple(each.format(k=f"{least_members:,}") for each in CONTAINS),
        never_contains=NEVER,
        formats=default_formats(first_batches(parts)),
        least_members=least_members,
        answer=anonymous(answer, names),
        histograms={name: merged_histograms(counts[topic], least_members) for topic, name in names.items()},
    )
    return MeasuredFingerprint(made, answer, names)


def number_topics(sources: Sequence[StoredSource], seed: int) -> dict[str, str]:
    """Return a number per topic, such as "topic 1" for the largest one. seed: draws the order of equal ones."""
    sizes: Counter[str] = Counter()
    for source in random.Random(seed).sample(sources, len(sources)):  # else equal ones would be in the order of names
        sizes[source.stream] += source.sound_bytes
    return {topic: f"topic {number}" for number, (topic, _) in enumerate(sizes.most_common(), 1)}


def _counts(parts: Sequence[Part], units: Mapping[str, Unit | None], console: Console | None) -> dict[str, Counts]:
    """Return the values of each topic. units: those of the topics' timestamps."""
    found: dict[str, Counts] = defaultdict(Counter)
    topics = [stream_of(part.topic, part.name) for part in parts]
    size_bytes = sum(part.size_bytes for part in parts)
    with ThreadPoolExecutor(cores()) as threads, reading(size_bytes, "count", console) as advance:
        counted = threads.map(count_values, parts, map(units.get, topics))
        for part, topic, counts in zip(parts, topics, counted, strict=True):
            found[topic].update(counts)
            advance(part.size_bytes)
    return found


def anonymous(answer: WhatIf, names: Mapping[str, str]) -> WhatIf:
    """Return the answer without names, dates, places of damage and the seed. names: topic -> number."""
    skipped_bytes = sum(each.size_bytes for each in answer.skipped if each.is_data)
    skipped = Skipped(path="files", size_bytes=skipped_bytes, reason="could not be read", is_data=True)
    renamed = {name: WHATIF_TABLES[name].renamed(each, names) for name, each in answer.more.items()}
    by_name: dict[str, list[StoredSource]] = {name: [] for name in names.values()}
    for source in answer.sources:
        by_name[names[source.stream]].append(source)
    doubts = [UNKNOWN_UNIT if each.timestamp_unit_doubt else None for each in answer.by_topic]
    topics = {
        names[each.topic]: replace(each, topic=names[each.topic], timestamp_unit_doubt=doubt)
        for each, doubt in zip(answer.by_topic, doubts, strict=True)
    }
    return replace(
        answer,
        sources=tuple(_topic_source(name, sources) for name, sources in by_name.items()),
        skipped=(skipped,) if skipped_bytes else (),
        sample=None if answer.sample is None else replace(answer.sample, seed=None),
        rate=None if answer.rate is None else _undated(answer.rate, names),
        traffic=Traffic(),
        prices=Prices(),
        by_topic=tuple(topics[name] for name in names.values() if name in topics),
        more={name: each for name, each in renamed.items() if each is not None},
        is_fingerprint=True,
    )


def _topic_source(name: str, sources: Sequence[StoredSource]) -> StoredSource:
    """Return the sums of the files of a topic, and nothing else about them."""
    total = reduce(StoredSource.plus, sources)
    sums = {each: getattr(total, each) for each in (*SUMMED, "kinds", "unit")}
    return StoredSource(path=name, topic=name, partition=None, files=len(sources), **sums)


def _undated(rate: Rate, names: Mapping[str, str]) -> Rate | None:
    """Return the rate by rounded lengths of time and bytes. A topic with times before FIRST_DATE_MS has none."""
    dated = [each for each in rate.streams if each.bulk_first_ms >= FIRST_DATE_MS]
    streams: dict[str, TopicRate] = {}
    for each in dated:
        span_ms = round_answer(each.bulk_last_ms - each.bulk_first_ms)
        name = names[each.name]
        streams[name] = TopicRate(
            name=name,
            size_bytes=each.size_bytes,
            first_ms=0,
            last_ms=span_ms,
            bulk_first_ms=0,
            bulk_last_ms=span_ms,
            strange=0,
            bytes_a_day=float(round_answer(each.bytes_a_day)),
        )
    if not streams:
        return None
    return Rate(
        bytes_a_day=sum(each.bytes_a_day for each in streams.values()),
        told_by="timestamps",
        is_dated=False,
        untold_bytes=rate.untold_bytes + sum(each.size_bytes for each in rate.streams if each not in dated),
        streams=tuple(streams[name] for name in names.values() if name in streams),
    )


def round_answer(number: float) -> int:
    """Round a number to DIGITS significant digits."""
    return int(float(f"{number:.{DIGITS - 1}e}"))
