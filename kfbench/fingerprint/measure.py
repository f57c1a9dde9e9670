"""Make the fingerprint of log segments, partition folders or a data folder."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from dataclasses import replace
from functools import partial, reduce
from typing import TYPE_CHECKING, Final, NamedTuple, cast

from kfbench import __version__
from kfbench.codecs import CODECS
from kfbench.errors import InvalidConfig, KfbenchError, UnknownTimeUnit
from kfbench.fingerprint.distributions import FIRST_DATE_MS, Distributions
from kfbench.fingerprint.file import (
    CONTAINS,
    NEVER,
    TOPIC_NAMES,
    BatchingSums,
    CodecSums,
    Fingerprint,
    FormatSums,
    LevelSums,
    Span,
    StoredSums,
    TopicPrint,
    UniformSums,
    stretch_sums,
)
from kfbench.fingerprint.grid import SampleSizes
from kfbench.fingerprint.merging import check_least_members, rounded, stored_distributions
from kfbench.fingerprint.sample_sizes import COUNTED, measured, topic_counts
from kfbench.formats import BASE_FORMAT, FORMATS
from kfbench.measure.container import cores
from kfbench.progress import reading
from kfbench.sources import Skipped, find
from kfbench.sources.log import Segment, stream_of
from kfbench.sources.tables import Table
from kfbench.sources.time_columns import Unit, check_unit
from kfbench.whatif.ask import (
    SAMPLE_BYTES,
    Paths,
    answer_dictionaries,
    as_paths,
    compile_kernels,
    legal_arms,
    question_of,
    sampled,
    why_unreadable,
)
from kfbench.whatif.compiling import announced
from kfbench.whatif.default_formats import default_formats
from kfbench.whatif.dictionary_saving import DictionaryAnswer, TopicDictionary
from kfbench.whatif.estimate import SampleSums
from kfbench.whatif.question import Question
from kfbench.whatif.rebatch import Batching
from kfbench.whatif.record_times import Times, unknown_unit
from kfbench.whatif.source import SUMMED, Source
from kfbench.whatif.sums import Tally, of_format
from kfbench.whatif.tally_all import tally_all
from kfbench.workloads.fingerprinted.model import SCHEMA
from kfbench.workloads.fingerprinted.parts import LEAST_MEMBERS

if TYPE_CHECKING:
    from rich.console import Console


SHOWN_S: Final = 0.25  # seconds between two looks at the progress


class Measured(NamedTuple):
    """A fingerprint, the sources that it was made of, with their damage, and what was not read.

    topics: the topic's or file's own name, by its name in the fingerprint. left_out: the topics whose timestamps have
    an unknown unit, and the reasons.
    """

    fingerprint: Fingerprint
    sources: tuple[Source, ...]
    skipped: tuple[Skipped, ...]
    topics: Mapping[str, str]
    left_out: Mapping[str, str]


def fingerprint(
    paths: Paths,
    *,
    topic_names: bool = False,
    sample_bytes: int | None = SAMPLE_BYTES,
    seed: int | None = None,
    timestamp_unit: Unit | None = None,
    least_members: int = LEAST_MEMBERS,
    console: Console | None = None,
) -> Measured:
    """Read log segments and folders of them, and return their fingerprint. Damage is left out and counted.

    Args:
        paths: a path, or several.
        topic_names: True keeps the topics' names, if they are known. Otherwise topics are numbered, the largest first.
        sample_bytes: about how many bytes of the source are compressed. None: all.
        seed: decides which batches are compressed. None: a random number. A known seed would let a guess of the topic's
            name be checked, because the draw depends on the name. The file never has it.
        timestamp_unit: see `whatif.what_if`.
        least_members: the smallest number of records, batches or keys that a bucket of a distribution may have.
        console: where a command shows its progress.

    Raises:
        KfbenchError: a path does not exist, or nothing can be read.
        InvalidConfig: a path is a table: it has no batches. Or least_members is out of range.
        UnknownTimeUnit: no topic is left, because topics whose timestamps do not tell their unit are left out.
    """
    check_least_members(least_members)
    check_unit(timestamp_unit)
    found = find(as_paths(paths))
    if table := next((part for part in found.parts if isinstance(part, Table)), None):
        raise InvalidConfig(f"{table.path}: is a table; a fingerprint is made of a log")
    compile_kernels(None, found.parts, console)
    with announced(console):
        shown = default_formats(found.parts, None, None)
    compile_kernels(shown, found.parts, console)
    question = replace(_question(shown, secrets.randbits(62) if seed is None else seed), timestamp_unit=timestamp_unit)
    question = sampled(question, sample_bytes, found.parts)
    topics: dict[str, list[Segment]] = {}
    for part in found.parts:
        assert isinstance(part, Segment)
        topics.setdefault(stream_of(part.topic, part.name), []).append(part)
    sums, samples = _read(topics, question, shown, console)
    whole = sum(sums.values(), Tally())
    if timestamp_unit is None and (units := whole.misread_units()):
        sums, samples = _read(topics, replace(question, units=units), shown, console)
        whole = sum(sums.values(), Tally())
    if not any(source.batches for source in whole.sources):
        raise KfbenchError(why_unreadable(whole.sources))
    sources, doubts = whole.sources, whole.unit_doubts(timestamp_unit)
    if doubts:
        sums = {topic: tally for topic, tally in sums.items() if topic not in doubts}
        whole = sum(sums.values(), Tally())
        if not any(source.batches for source in whole.sources):
            raise UnknownTimeUnit(unknown_unit(doubts))
    names = _names(sums, {topic: topics[topic][0].topic if topic_names else "" for topic in sums})
    made = Fingerprint(
        schema=SCHEMA,
        kfbench=__version__,
        contains=(*(each.format(k=f"{least_members:,}") for each in CONTAINS), *[TOPIC_NAMES] * topic_names),
        never_contains=tuple(each for each in NEVER if not (topic_names and each == TOPIC_NAMES)),
        formats=shown,
        codec_versions={name: codec.version for name, codec in CODECS.items()},
        share=question.share,
        level_share=min(whole.level_plain_bytes.total() / max(whole.sizes()[BASE_FORMAT], 1), 1.0) or 1.0,
        skipped_bytes=sum(each.size_bytes for each in found.skipped if each.is_data),
        topics=[_topic(name, sums[topic], samples[topic], question, least_members) for topic, name in names.items()],
        dictionary=_anonymous(answer_dictionaries(whole, question), names),
    )
    own = {name: topics[topic][0].topic or topics[topic][0].name for topic, name in names.items()}
    return Measured(made, sources, found.skipped, own, doubts)


def _read(
    topics: Mapping[str, list[Segment]], question: Question, formats: Sequence[str], console: Console | None
) -> tuple[dict[str, Tally], dict[str, SampleSizes | None]]:
    """Return the sums of each topic, and the sizes of its sample in other batches. They are computed side by side."""
    sizes = {topic: sum(file.size_bytes for file in files) for topic, files in topics.items()}
    shares = dict.fromkeys(topics, 0.0)

    def sizes_of(topic: str) -> SampleSizes | None:
        def advance(share: float) -> None:
            shares[topic] = min(shares[topic] + share, 1.0)

        is_part = question.share < 1
        return measured(
            topics[topic],
            formats,
            threads.map,
            advance,
            topics=len(topics),
            is_part=is_part,
            unit=question.unit_of(topics[topic][0]),
        )

    with ThreadPoolExecutor(1) as one_topic, ThreadPoolExecutor(cores()) as threads:
        try:
            samples = {topic: one_topic.submit(sizes_of, topic) for topic in topics}
            sums = {topic: tally_all(files, question, console=console) for topic, files in topics.items()}
            waiting, shown_bytes = {sample: topic for topic, sample in samples.items()}, 0
            with reading(sum(sizes.values()), "other batches", console) as show:
                while waiting:
                    for sample in wait(waiting, SHOWN_S, FIRST_COMPLETED).done:
                        sample.result()
                        shares[waiting.pop(sample)] = 1.0
                    done_bytes = int(sum(sizes[topic] * share for topic, share in shares.items()))
                    show(done_bytes - shown_bytes)
                    shown_bytes = done_bytes
        except BaseException:
            threads.shutdown(wait=False, cancel_futures=True)
            one_topic.shutdown(cancel_futures=True)
            raise
    return sums, {topic: sample.result() for topic, sample in samples.items()}


def _question(shown: Iterable[str], seed: int) -> Question:
    """Ask for all formats without a codec, and for the shown ones under each codec."""
    shown, (arms, _) = tuple(shown), legal_arms(None, None)
    asked = [(name, codec) for name, codec in arms if codec == "none" or name in shown]
    collector = partial(Distributions, (secrets.randbits(64), secrets.randbits(64)))
    divisions = tuple(Batching(*settings) for settings in COUNTED)
    return replace(question_of(asked, shown, None, None, seed), divisions=divisions, collector=collector)


def _names(sums: Mapping[str, Tally], kept: Mapping[str, str]) -> dict[str, str]:
    """Return a name per topic, the largest topic first. kept: names that are kept; "": the topic gets a number."""
    largest = sorted(sums, key=lambda topic: -sum(source.sound_bytes for source in sums[topic].sources))
    return {topic: kept[topic] or f"topic {number}" for number, topic in enumerate(largest, 1)}


def _anonymous(found: DictionaryAnswer, names: Mapping[str, str]) -> DictionaryAnswer:
    """Replace the topics' names, and the numbers of their dictionaries, which somebody chose."""

    def anonymous(each: TopicDictionary) -> TopicDictionary:
        return replace(each, topic=names[each.topic], current=tuple(range(1, len(each.current) + 1)))

    return replace(found, topics=tuple(map(anonymous, found.topics)))


def _topic(name: str, sums: Tally, sample: SampleSizes | None, question: Question, least_members: int) -> TopicPrint:
    (collected,) = sums.collected.values()
    return TopicPrint(
        name=name,
        stored=_stored(sums),
        formats={name: _in_format(sums, name) for name in FORMATS},
        coded=_coded(sums.coded),
        levels=[
            LevelSums(codec=codec, level=level, sums=stretch_sums(drawn), cpu_ns=sums.level_cpu_ns[codec, level])
            for (_, codec, level), drawn in sums.levels.items()
        ],
        level_plain_bytes=sums.level_plain_bytes.total(),
        batchings=[
            BatchingSums(
                linger_ms=batching.linger_ms,
                batch_size_bytes=batching.batch_size_bytes,
                batches=sums.rebatched_batches[batching],
                sizes={name: sums.rebatched[batching, name] for name in FORMATS},
                coded=_coded({(f, c): each for (b, f, c), each in sums.recoded.items() if b == batching}),
            )
            for batching in question.batchings
        ],
        batches=topic_counts(sums.divided, sums.divided_records),
        sample=sample,
        uniform=[
            UniformSums(
                records_per_batch=size,
                records=records,
                payload_bytes=sums.uniform_payload[size, False],
                payload_bytes_with_headers=sums.uniform_payload[size, True],
                sizes={name: sums.uniform[size, name] for name in FORMATS},
            )
            for size, records in sorted(sums.uniform_records.items())
        ],
        span=_span(*sums.times.values()),
        distributions=stored_distributions(cast(Distributions, collected), least_members),
    )


def _stored(sums: Tally) -> StoredSums:
    joined = reduce(Source.plus, sums.sources)
    return StoredSums(
        files=len(sums.sources),
        partitions=len({source.partition for source in sums.sources}),
        sent_records=sums.sent_records,
        timed_bytes=sum(source.base_bytes for source in sums.sources if source.first_ms >= 0),
        kinds=dict(joined.kinds),
        **{name: getattr(joined, name) for name in SUMMED},
    )


def _in_format(sums: Tally, name: str) -> FormatSums:
    return FormatSums(
        fields=of_format(sums.breakdown, name), losses=of_format(sums.losses, name), control_bytes=sums.control[name]
    )


def _coded(sums: Mapping[tuple[str, str], SampleSums]) -> list[CodecSums]:
    return [
        CodecSums(format=name, codec=codec, drawn=stretch_sums(each.drawn), certain=stretch_sums(each.certain))
        for (name, codec), each in sums.items()
    ]


def _span(times: Times) -> Span | None:
    """Return the rounded time span of most records; None without timestamps."""
    dated = {number: each for number, each in times.bins.items() if each.first_ms >= FIRST_DATE_MS}
    bulk = replace(times, bins=dated).bulk()
    if bulk is None:
        return None
    records = sum(each.records for each in times.bins.values())
    share = bulk.share * sum(each.records for each in dated.values()) / records
    return Span(span_ms=rounded(bulk.last_ms - bulk.first_ms), share=round(share, 2))
