"""Build the answer of a what-if from the sums of all files or partitions."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from itertools import groupby, product
from math import hypot

from kfbench.arrays import bracket
from kfbench.codecs import CODECS
from kfbench.formats import BASE_FORMAT
from kfbench.layouts import NO_TIMESTAMP
from kfbench.money import Prices, Traffic
from kfbench.sources import FoundSources
from kfbench.whatif.answer import CodecSample, Crossing, Level, LogSize, TopicAnswer, WhatIf, smallest
from kfbench.whatif.estimate import Estimate, SampleSums, Stratum, StretchSums, ratio_of
from kfbench.whatif.question import MOST_TOPICS, Question
from kfbench.whatif.rate import Rate, rate_of
from kfbench.whatif.rebatch import Batching
from kfbench.whatif.record_times import TopicUnit
from kfbench.whatif.stretches import LevelSums
from kfbench.whatif.sums import LogSums, StoredSource
from kfbench.whatif.tally import UNIFORM

SINGLE = ("v0", "v1")  # formats without batches of plain messages: the size does not depend on records per batch


def build_answer(
    sums: LogSums,
    level_sums: LevelSums,
    found: FoundSources,
    question: Question,
    illegal: Sequence[tuple[str, str]],
    rate: Rate | None,
    traffic: Traffic,
    prices: Prices,
) -> WhatIf:
    """Return the answer. rate None: it is computed from the timestamps."""
    names = question.formats
    doubts = sums.unit_doubts(question.timestamp_unit)
    sources = (
        replace(each, first_ms=NO_TIMESTAMP, last_ms=NO_TIMESTAMP, ahead=0) if each.stream in doubts else each
        for each in sums.sources
    )
    sums = replace(sums, sources=tuple(sources))
    uniform = [count for count in UNIFORM if sums.uniform_records[count]]
    return WhatIf(
        sources=sums.sources,
        skipped=found.skipped,
        arms=tuple(_size(sums, *arm) for arm in question.arms),
        rebatched=() if doubts else tuple(_rebatched_sizes(sums, question)),
        breakdown={name: _of_format(sums.breakdown, name) for name in names},
        losses={name: _of_format(sums.losses, name) for name in names},
        illegal=tuple(illegal),
        break_even=tuple(break_evens(sums, names)),
        overhead={
            count: {name: sums.overhead[count, name] / sums.uniform_records[count] for name in names}
            for count in uniform
        },
        sample=_sample(sums, question),
        assumed=question.assumed if any(source.is_assumed for source in sums.sources) else None,
        sent_records=sums.sent_records,
        uniform_records=sums.uniform_records[1],
        levels=tuple(_levels(sums, level_sums, question)),
        by_topic=tuple(_topics(sums, question)),
        rate=rate or rate_of(sums.sources, sums.times),
        traffic=traffic,
        prices=prices,
    )


def _of_format(sums: Mapping[tuple[str, str], int], name: str) -> dict[str, int]:
    """Return the sums of one format from `LogSums.breakdown` or `LogSums.losses`."""
    return {part: count for (owner, part), count in sums.items() if owner == name}


def break_evens(sums: LogSums, formats: tuple[str, ...]) -> Iterator[Crossing]:
    """Compare each format that has batches with v0, v1 and v2, if they are among `formats`.

    Keys, values and headers that a format carries are not counted. So a format that cannot carry headers does not win
    because it leaves them out.
    """
    counts = [count for count in UNIFORM if sums.uniform_records[count]]
    for name in formats:
        for other in formats:
            if not counts or name == other or name in SINGLE or other not in (*SINGLE, BASE_FORMAT):
                continue
            is_smaller = [sums.overhead[count, name] < sums.overhead[count, other] for count in counts]
            yield Crossing(format=name, other=other, **bracket(counts, is_smaller)._asdict())


def _size(sums: LogSums, name: str, codec: str, batching: Batching | None = None) -> LogSize:
    size = sums.size(name, codec, batching)
    return LogSize(
        format=name,
        codec=codec,
        level=CODECS[codec].default_level,
        codec_version=CODECS[codec].version,
        size_bytes=size.size_bytes,
        error_bytes=size.error_bytes,
        batching=batching,
    )


def _rebatched_sizes(sums: LogSums, question: Question) -> Iterator[LogSize]:
    """Yield the sizes in other batches: all formats without a codec, `compressed_formats` with each codec.

    A log whose times are seconds tells nothing of shorter lingers.
    """
    is_log = not any(source.is_assumed for source in sums.sources)
    is_coarse = is_log and any(each.unit == "s" for each in sums.topic_units(question.timestamp_unit).values())
    batchings = [each for each in question.batchings if each.linger_ms >= 1000 or not is_coarse]
    for batching, (name, codec) in product(batchings, question.arms):
        if codec == "none" or name in question.compressed_formats:
            yield replace(_size(sums, name, codec, batching), batches=sums.rebatched_batches[batching])


def _levels(sums: LogSums, level_sums: LevelSums, question: Question) -> Iterator[Level]:
    """Yield the size of v2 at each level of each codec.

    It is the size at the default level, multiplied by a ratio from the sample: bytes at this level / bytes at the
    default level.
    """
    if not level_sums.plain_bytes:
        return
    plain = {topic: size for topic, each in sums.by_topic.items() if (size := each.sizes()[BASE_FORMAT])}
    groups, plain_bytes = _groups(level_sums, plain), sums.sizes()[BASE_FORMAT]
    for codec, pairs in groupby(question.levels, lambda pair: pair[0]):
        default = sums.size(BASE_FORMAT, codec)
        if default.size_bytes is None:
            continue
        sizes = [_group_size(sums, plain, topics, codec, default.size_bytes / plain_bytes) for topics in groups]
        for _, level in pairs:
            ratio, error = ratio_of(
                [_stratum(level_sums, plain, *each, codec, level) for each in zip(groups, sizes, strict=True)]
            )
            is_known = error is not None and default.error_bytes is not None
            yield Level(
                codec=codec,
                level=level,
                is_default=level == CODECS[codec].default_level,
                size_bytes=round(default.size_bytes * ratio),
                error_bytes=round(hypot(default.size_bytes * (error or 0), (default.error_bytes or 0) * ratio))
                if is_known
                else None,
                cpu_ms_per_mb=level_sums.cpu_ns[codec, level] / level_sums.plain_bytes.total(),
            )


def _groups(level_sums: LevelSums, plain: Mapping[str, int]) -> list[list[str]]:
    """Group topics by their sample for levels: each of the largest topics that has one alone, and all others.

    plain: the bytes of topics in plain v2, without those that have none.
    """
    largest = sorted(plain, key=lambda topic: (-plain[topic], topic))[:MOST_TOPICS]
    alone = [topic for topic in largest if level_sums.plain_bytes[topic]]
    others = sorted(plain.keys() - {*alone})
    return [*([topic] for topic in alone), *([others] if others else [])]


def _group_size(sums: LogSums, plain: Mapping[str, int], topics: Sequence[str], codec: str, share: float) -> Estimate:
    """Return the size of topics at the default level. share: of the bytes without a codec, for topics without one."""
    sizes = {topic: sums.by_topic[topic].size(BASE_FORMAT, codec) for topic in topics}
    return Estimate(
        sum(round(plain[each] * share) if size.size_bytes is None else size.size_bytes for each, size in sizes.items()),
        round(hypot(*(size.error_bytes or 0 for size in sizes.values()))),
    )


def _stratum(
    level_sums: LevelSums, plain: Mapping[str, int], topics: Sequence[str], size: Estimate, codec: str, level: int
) -> Stratum:
    """Return the sample of a group of topics at a level."""
    plain_bytes = sum(plain[topic] for topic in topics)
    share = sum(level_sums.plain_bytes[topic] for topic in topics) / plain_bytes
    samples = (level_sums.stretches.get((topic, codec, level), StretchSums()) for topic in topics)
    return Stratum(size, reduce(StretchSums.plus, samples), share)


def _topics(sums: LogSums, question: Question) -> Iterator[TopicAnswer]:
    """Yield the answer for each topic, the largest topic first. Topics without records are left out."""
    sources: dict[str, list[StoredSource]] = {}
    for source in sums.sources:
        sources.setdefault(source.stream, []).append(source)
    codecs = [codec for name, codec in question.arms if name == BASE_FORMAT]
    units = sums.topic_units(question.timestamp_unit)
    for topic, parts in sorted(sources.items(), key=lambda each: -sum(part.base_bytes for part in each[1])):
        if not any(part.records for part in parts):
            continue
        unit = units.get(topic, TopicUnit())
        arms = [
            _size(sums.by_topic[topic], BASE_FORMAT, codec, batching)
            for batching in (None, *(() if unit.doubt else question.batchings))
            for codec in codecs
        ]
        yield TopicAnswer(
            topic=topic,
            base_bytes=sum(part.base_bytes for part in parts),
            records=sum(part.records for part in parts),
            batches=sum(part.batches for part in parts),
            best=smallest(arms),
            timestamp_unit=unit.unit,
            timestamp_unit_from=unit.known_from,
            timestamp_unit_doubt=unit.doubt,
            has_whole_seconds=topic in sums.time_units and sums.time_units[topic].has_whole_seconds,
        )


def _sample(sums: LogSums, question: Question) -> CodecSample | None:
    if not question.compressed_arms:
        return None
    of_base = (each for key, each in sums.compressed.items() if key.batching is None and key.format == BASE_FORMAT)
    sample = next(of_base, SampleSums()).both
    return CodecSample(
        share=question.share,
        seed=question.seed,
        plain_bytes=sample.plain,
        of_bytes=sums.sizes()[BASE_FORMAT],
        stretches=sample.stretches,
    )
