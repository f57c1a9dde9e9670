"""Answer `kfbench what-if` from a fingerprint, as from its log."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Literal

from kfbench.errors import InvalidConfig
from kfbench.fingerprint.between import check_between, estimated
from kfbench.fingerprint.file import Fingerprint, TopicPrint, drawn_of, samples
from kfbench.formats import BASE_FORMAT
from kfbench.layouts import DAY_MS, NO_TIMESTAMP
from kfbench.migration.bills import Prices, Traffic
from kfbench.sources import Found, Skipped
from kfbench.tables import listed
from kfbench.whatif.answer import Arm, WhatIf
from kfbench.whatif.ask import legal_arms, question_of
from kfbench.whatif.build import build_answer
from kfbench.whatif.dictionary_saving import DictionaryAnswer
from kfbench.whatif.month import LEAST_SPAN_MS, Rate, Stream, rate_of_user
from kfbench.whatif.rebatch import BATCHINGS, Batching
from kfbench.whatif.source import SUMMED, Source
from kfbench.whatif.sums import Tally, TopicSizes


def what_if_of(
    given: Fingerprint,
    formats: Sequence[str] | Literal["all"] | None = None,
    codecs: Sequence[str] | None = None,
    *,
    batchings: Sequence[Batching] | None = None,
    traffic: Traffic | None = None,
    prices: Prices | None = None,
    rate_mb_s: float | None = None,
) -> WhatIf:
    """Return the size of a fingerprint's log in other formats, codecs and batches. Parameters: see `whatif.what_if`.

    Raises InvalidConfig for batches and formats that the fingerprint does not have, and for wrong names.
    """
    stored = tuple(each.batching for each in given.topics[0].batchings)
    usual = tuple(each for each in BATCHINGS if each in stored) or stored
    asked = usual if batchings is None else tuple(batchings)
    others = tuple(batching for batching in asked if batching not in stored)
    check_between(others, given)
    measured = given.formats if others else tuple(given.topics[0].formats)
    wanted = list(measured) if formats == "all" else list(formats or given.formats)
    arms, illegal = legal_arms(wanted, codecs)
    if absent := [name for name, _ in arms if name not in measured]:
        raise InvalidConfig(f"the fingerprint has sizes in {listed([*measured])} only, not in {absent[0]}")
    question = question_of(arms, given.formats, codecs, asked, 0)
    question = replace(question, assumed=None, share=given.share)
    sums = sum((tally_of(topic, others) for topic in given.topics), Tally())
    rate = _rate(given.topics) if rate_mb_s is None else rate_of_user(rate_mb_s)
    skipped = [Skipped(path="files", size_bytes=given.skipped_bytes, reason="could not be read", is_data=True)]
    found = Found(parts=(), skipped=tuple(skipped if given.skipped_bytes else ()))
    answer = build_answer(sums, found, question, illegal, rate, traffic or Traffic(), prices or Prices())
    has_zstd = codecs is None or "zstd" in codecs
    return replace(
        answer,
        arms=_with_versions(answer.arms, given),
        rebatched=_without_errors(_with_versions(answer.rebatched, given), others),
        sample=answer.sample and replace(answer.sample, seed=None),
        dictionary=_of_formats(given.dictionary, question.formats) if has_zstd else None,
        is_fingerprint=True,
        interpolated=others,
    )


def _with_versions(arms: Iterable[Arm], given: Fingerprint) -> tuple[Arm, ...]:
    """Name the libraries that compressed the sample in the place of ours."""
    return tuple(replace(arm, codec_version=given.codec_versions.get(arm.codec, "?")) for arm in arms)


def _without_errors(arms: Iterable[Arm], interpolated: Collection[Batching]) -> tuple[Arm, ...]:
    """Remove the standard errors of interpolated sizes. They are not known."""
    return tuple(replace(arm, error_bytes=None) if arm.batching in interpolated else arm for arm in arms)


def _of_formats(found: DictionaryAnswer, formats: Sequence[str]) -> DictionaryAnswer:
    return replace(
        found,
        savings=tuple(each for each in found.savings if each.format in formats),
        topics=tuple(each for each in found.topics if each.format in formats),
    )


def _rate(topics: Sequence[TopicPrint]) -> Rate | None:
    """Return the rate by the spans of the topics, as `rate_of` does by timestamps."""
    streams = sorted(_streams(topics), key=lambda stream: -stream.bytes_a_day)
    if not streams:
        return None
    known = {stream.name for stream in streams}
    return Rate(
        bytes_a_day=sum(stream.bytes_a_day for stream in streams),
        told_by="timestamps",
        is_dated=False,
        untold_bytes=sum(topic.stored.timed_bytes for topic in topics if topic.name not in known),
        streams=tuple(streams),
    )


def _streams(topics: Iterable[TopicPrint]) -> Iterator[Stream]:
    for topic in topics:
        if topic.span and topic.span.span_ms >= LEAST_SPAN_MS:
            size_bytes, span_ms = topic.stored.timed_bytes, topic.span.span_ms
            yield Stream(
                name=topic.name,
                size_bytes=size_bytes,
                first_ms=0,
                last_ms=span_ms,
                bulk_first_ms=0,
                bulk_last_ms=span_ms,
                strange=0,
                bytes_a_day=size_bytes * topic.span.share * DAY_MS / span_ms,
            )


def tally_of(topic: TopicPrint, others: Collection[Batching] = ()) -> Tally:
    """Return a topic's sums, as `tally` computes them of its log. others: settings whose sums are interpolated."""
    batchings = {each.batching: each for each in topic.batchings} | estimated(topic, others)
    coded = samples(topic.coded)
    recoded = {(b, *key): sums for b, each in batchings.items() for key, sums in samples(each.coded).items()}
    return Tally(
        sources=(_source(topic),),
        breakdown=Counter({(n, part): size for n, each in topic.formats.items() for part, size in each.fields.items()}),
        losses=Counter({(n, what): count for n, each in topic.formats.items() for what, count in each.losses.items()}),
        coded=coded,
        control=Counter({name: each.control_bytes for name, each in topic.formats.items()}),
        sent_records=topic.stored.sent_records,
        rebatched=Counter({(b, name): size for b, each in batchings.items() for name, size in each.sizes.items()}),
        rebatched_batches=Counter({b: each.batches for b, each in batchings.items()}),
        recoded=recoded,
        uniform=Counter({(u.records_per_batch, name): size for u in topic.uniform for name, size in u.sizes.items()}),
        uniform_records=Counter({u.records_per_batch: u.records for u in topic.uniform}),
        uniform_payload=Counter(
            {(u.records_per_batch, False): u.payload_bytes for u in topic.uniform}
            | {(u.records_per_batch, True): u.payload_bytes_with_headers for u in topic.uniform}
        ),
        by_topic={
            topic.name: TopicSizes.of(
                {None: topic.stored.plain_bytes} | {b: each.sizes[BASE_FORMAT] for b, each in batchings.items()},
                coded,
                recoded,
                topic.formats[BASE_FORMAT].control_bytes,
            )
        },
        levels={(topic.name, each.codec, each.level): drawn_of(each.sums) for each in topic.levels},
        level_plain_bytes=Counter({topic.name: topic.level_plain_bytes}),
        level_cpu_ns=Counter({(each.codec, each.level): each.cpu_ns for each in topic.levels}),
    )


def _source(topic: TopicPrint) -> Source:
    return Source(
        path=topic.name,
        topic=topic.name,
        partition=None,
        first_ms=NO_TIMESTAMP,
        last_ms=NO_TIMESTAMP,
        kinds=topic.stored.kinds,
        damage=(),
        files=topic.stored.files,
        **{name: getattr(topic.stored, name) for name in SUMMED},
    )
