"""Compute the answer of `kfbench what-if`: the size of your log in other formats, codecs and batches.

Compressed bytes are made by our codecs at their default levels. A log does not show the level and library of its
producer. So v2 with the codec of a segment may differ from the bytes now. Therefore formats are also compared with v2
under the same codec.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from kfbench.codecs import CODECS
from kfbench.errors import IllegalCombination, InvalidConfig, KfbenchError, UnknownTimeUnit
from kfbench.formats import BASE_FORMAT, FORMATS, RESEARCH
from kfbench.log.damage import WithoutDictionary
from kfbench.log.tail import nothing_in
from kfbench.measure.container import cores
from kfbench.money import Prices, Traffic
from kfbench.sources import Columns, FoundSources, Part, find
from kfbench.sources.tables import TableFile
from kfbench.sources.time_columns import Unit, check_unit
from kfbench.sources.topic import Topic
from kfbench.text import count_words
from kfbench.whatif.answer import WhatIf, check_further_tables
from kfbench.whatif.build import build_answer
from kfbench.whatif.compiling import Wait, announce_compiling, compiling_behind
from kfbench.whatif.more import WHATIF_TABLES, RecordSample, TopicBytes
from kfbench.whatif.question import Question, always_sampled, stretch_shares
from kfbench.whatif.rate import rate_of_user
from kfbench.whatif.rebatch import BATCHINGS, Batches, Batching, Rebatcher, sent_records
from kfbench.whatif.record_times import TimeReader, unknown_unit
from kfbench.whatif.stretches import SOURCE_BYTES, LevelSums, at_levels
from kfbench.whatif.sums import LogSums, StoredSource
from kfbench.whatif.tally import MOST_THREADS, tally_all, tally_topic

if TYPE_CHECKING:
    from rich.console import Console

MAIN_FORMATS: Final = ("v2", "v3", *sorted(RESEARCH))
OTHER_FORMAT: Final = "v3-headers-first"  # used if the first batches cannot be read: a topic, a damaged file
SAMPLE_BYTES: Final = 2 << 20  # of the source, compressed in all formats and codecs
FIRST_BYTES: Final = 16 << 20  # a larger source is read once: compiling is a small part of its time
WAITING_BYTES: Final = 256 << 10  # for a larger source, compiled kernels are waited for: plain Python takes longer
LEVELS: Final = MappingProxyType({"gzip": range(1, 10), "lz4": range(1, 18), "zstd": range(1, 20)})

Paths: TypeAlias = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]
Pairs: TypeAlias = list[tuple[str, str]]


def what_if(
    paths: Paths | Topic,
    formats: Sequence[str] | Literal["all"] | None = None,
    codecs: Sequence[str] | None = None,
    *,
    columns: Columns | None = None,
    connector: str | None = None,
    batchings: Sequence[Batching] | None = None,
    sample_bytes: int | None = SAMPLE_BYTES,
    seed: int = 0,
    timestamp_unit: Unit | None = None,
    traffic: Traffic | None = None,
    prices: Prices | None = None,
    rate_mb_s: float | None = None,
    master: str | None = None,
    console: Console | None = None,
    archive: Path | None = None,
    details: Collection[str] = (),
    show_first: Callable[[WhatIf], None] | None = None,
    show: Callable[[WhatIf], None] | None = None,
) -> WhatIf:
    """Read segments, tables and folders of them, or a topic; return their size in other formats, codecs and batches.

    Damage and paths that cannot be read are left out and listed. v2 is always among the formats, as the base.

    Args:
        paths: a path, several, or a topic.
        formats: names, or "all". None: see `default_formats`.
        codecs: names. None: all.
        columns: the columns of tables that make a record.
        connector: source of Spark's Kafka connector (see `topic_mapped`).
        batchings: a producer's settings for other batches of the same records. Tables and topics have no batches, so
            the first setting is assumed for them.
        sample_bytes: about how many bytes of the source are compressed. None: all.
        seed: decides which batches are compressed.
        timestamp_unit: "s", "ms", "us" or "ns": the unit of timestamps that are numbers, as those of a log are. None:
            it is told from their size, by topic. If that is in doubt, a log's answer has no other batches.
        rate_mb_s: the log's rate in 10**6 bytes per second, as stored now. If the source has no batches: as
            uncompressed v2. None: it is computed from the timestamps.
        traffic, prices: assumptions for a month's cost. None: the documented defaults.
        master: a Spark master. None: threads of this process.
        console: where a command shows its progress.
        archive: the environment of a cluster's executors (see packing).
        details: names of further questions (`whatif.more`) whose details are wanted, such as "dictionary".
        show_first: called with an answer about v2 alone, if there is a console and kernels for the others are missing.
        show: called with the answer, before kernels for the next call are compiled.

    Raises:
        KfbenchError: nothing can be read.
        InvalidConfig, IllegalCombination: a wrong argument.
        UnknownTimeUnit: the timestamps of a source without batches do not tell their unit.
        MissingTool, MissingExtra, SweepFailed: from Spark.
    """
    rate = None if rate_mb_s is None else rate_of_user(rate_mb_s)
    check_unit(timestamp_unit)
    if sample_bytes is not None and sample_bytes < 1:
        raise InvalidConfig(f"sample_bytes: {sample_bytes} is below 1")
    check_further_tables()
    is_all = formats == "all"
    chosen = None if formats == "all" else formats
    assumed = batchings[0] if batchings else None
    legal_arms(chosen, codecs)  # refuses wrong names before anything is read
    _known(list(details), WHATIF_TABLES, "further question")
    found = FoundSources(parts=())
    if isinstance(paths, Topic):
        _check_batchings(paths, batchings)
    else:
        found = _find(paths, columns, batchings)
    of_sample: LevelSums | None = None  # the sizes and times at each level, of the first answer

    def ask(names: Sequence[str] | None, is_whole: bool = True) -> WhatIf:
        nonlocal of_sample
        arms, illegal = legal_arms(names, codecs)
        asked = Question(
            arms=tuple(arms),
            batchings=tuple(BATCHINGS if batchings is None else batchings),
            compressed_formats=tuple(dict.fromkeys((*(names or MAIN_FORMATS), BASE_FORMAT))),
            levels=tuple((codec, level) for codec in codecs or CODECS for level in LEVELS.get(codec, ())),
            assumed=assumed,
            seed=seed,
            timestamp_unit=timestamp_unit,
        )

        def read(units: Mapping[str, Unit]) -> tuple[FoundSources, Question, LogSums]:
            question_for = partial(sampled, replace(asked, units=units), sample_bytes)
            if isinstance(paths, Topic):
                return tally_topic(paths, question_for, connector, master, console, archive)
            of_parts = question_for(found.parts)
            return found, of_parts, tally_all(found.parts, of_parts, master, console, archive)

        with announce_compiling(console if master is None else None):
            sources, question, sums = read({})
            if timestamp_unit is None and (units := sums.misread_units()):
                sources, question, sums = read(units)
            if of_sample is None:
                with ThreadPoolExecutor(min(cores(), MOST_THREADS)) as threads:
                    of_sample = at_levels(sums.stretches, question, threads.map)
        if not sums.breakdown or not any(source.batches for source in sums.sources):
            raise KfbenchError(why_unreadable(sums.sources))
        doubts = sums.unit_doubts(timestamp_unit)
        if unknown := {s.path: doubts[s.stream] for s in sums.sources if s.is_assumed and s.stream in doubts}:
            raise UnknownTimeUnit(unknown_unit(unknown))  # batches would be assumed by times of unknown unit
        answer = build_answer(
            sums, of_sample, sources, question, illegal, rate, traffic or Traffic(), prices or Prices()
        )
        if is_whole and all(part.size_bytes >= 0 for part in sources.parts):
            answer = replace(answer, more=_further_answers(sums, question, details))
        has_tables = any(isinstance(part, TableFile) for part in sources.parts)
        return replace(answer, columns=columns or Columns()) if has_tables else answer

    size_bytes = sum(part.size_bytes for part in found.parts)
    is_large = size_bytes > WAITING_BYTES
    wanted = tuple(FORMATS) if is_all else (BASE_FORMAT, *(chosen or (*MAIN_FORMATS, OTHER_FORMAT)))
    first = first_batches(found.parts, assumed) if chosen is None or console is not None else None

    def compiling(formats: Sequence[str], sized: Sequence[str] = ()) -> AbstractContextManager[Wait | None]:
        # A caller from Python has no console, and may not expect processes. Spark has its own.
        if console is None or master is not None or size_bytes <= 0:
            return nullcontext()
        has_headers = first is not None and bool(first.records.shapes.header_bounds[-1])
        return compiling_behind(formats, console, sized, has_headers, nice=5 if is_large else 10)

    with compiling(wanted, tuple(FORMATS) if chosen is None else ()) as wait:
        if wait is not None and show_first is not None and size_bytes <= FIRST_BYTES:
            if is_large:
                wait(True)
            show_first(ask((BASE_FORMAT,), is_whole=False))
        if wait is not None and is_large:
            wait(False)
        if is_all:
            names = None
        elif chosen is None and isinstance(paths, Topic):
            names = (*MAIN_FORMATS, OTHER_FORMAT)
        else:
            names = tuple(chosen or default_formats(first, codecs))
        # The fourth of the default formats depends on the log.
        with compiling([name for name in names or () if name not in wanted]) as wait:
            if wait is not None and is_large:
                wait(False)
            answer = ask(names)
            if show is not None:
                show(answer)
    return answer


def _further_answers(sums: LogSums, question: Question, details: Collection[str]) -> dict[str, Any]:
    """Answer further questions about the topics that have a share of their own in the sample."""
    topics: dict[str, TopicBytes] = {}
    for source in sums.sources:
        if source.records:
            size_bytes, files, stored_bytes = topics.get(source.stream, (0, 0, 0))
            size_bytes, stored_bytes = size_bytes + source.plain_bytes, stored_bytes + source.dictionary_bytes
            topics[source.stream] = TopicBytes(size_bytes, files + 1, stored_bytes)
    stretches = [each for each in sums.stretches if each.stream in question.stretch_shares]
    sample = RecordSample(stretches, topics, question.formats, question.arms)
    answers = {name: each.answer(sample, name in details) for name, each in WHATIF_TABLES.items()}
    return {name: answer for name, answer in answers.items() if answer is not None}


def default_formats(first: Batches | None, codecs: Collection[str] | None = None) -> tuple[str, ...]:
    """Return v2, v3, the research formats, and the smallest other lossless format for the first batches.

    Args:
        first: those of `first_batches`.
        codecs: a format must have all of them to be chosen besides MAIN_FORMATS; None: all codecs.
    """
    wanted = set(CODECS if codecs is None else codecs)
    others = [name for name in FORMATS if name not in MAIN_FORMATS and wanted <= set(FORMATS[name].capabilities.codecs)]
    if first is None:
        return *MAIN_FORMATS, OTHER_FORMAT
    lossless = [name for name in others if not FORMATS[name].losses(*first)]
    smallest = min(lossless, key=lambda name: int(FORMATS[name].size(*first).sum()), default=OTHER_FORMAT)
    return *MAIN_FORMATS, smallest


def first_batches(parts: Sequence[Part], assumed: Batching | None = None) -> Batches | None:
    """Return the first batches of the largest file or partition, or None if there are none to read.

    assumed: the producer's settings for sources that have no batches.
    """
    largest = max(parts, key=lambda part: part.size_bytes, default=None)
    try:
        chunk = None if largest is None else next((each for each in largest.chunks() if len(each.records)), None)
    except InvalidConfig:
        raise
    except (KfbenchError, OSError):  # the error is reported later, when all records are read
        return None
    if chunk is None:
        return None
    if chunk.bounds is not None:
        return Batches(chunk.records, chunk.bounds, chunk.fields)
    if assumed is None:
        return None
    of_clients = sent_records(chunk.records, chunk.bounds, chunk.fields, chunk.partitions)
    return next(Rebatcher(assumed).add(TimeReader().read(of_clients, chunk.is_ms), last=True), None)


def legal_arms(formats: Sequence[str] | None, codecs: Sequence[str] | None) -> tuple[Pairs, Pairs]:
    """Return two lists of pairs of format and codec: the pairs that Kafka allows, then the others.

    The base format is always among the formats. Raises InvalidConfig for an unknown name and IllegalCombination for a
    format that has none of the codecs.
    """
    format_names, codec_names = _known(formats, FORMATS, "format"), _known(codecs, CODECS, "codec")
    legal = {name: FORMATS[name].capabilities.codecs for name in dict.fromkeys([*format_names, BASE_FORMAT])}
    for name in formats or ():
        if not set(codec_names) & set(legal[name]):
            raise IllegalCombination(f"{name} has no {' or '.join(codec_names)} (codecs: {', '.join(legal[name])})")
    pairs = list(product(legal, codec_names))
    return [(n, c) for n, c in pairs if c in legal[n]], [(n, c) for n, c in pairs if c not in legal[n]]


def _known(names: Sequence[str] | None, known: Mapping[str, object], noun: str) -> list[str]:
    if unknown := [name for name in names or () if name not in known]:
        raise InvalidConfig(f"no {noun} {unknown[0]!r} ({noun}s: {', '.join(known)})")
    return list(dict.fromkeys(known if names is None else names))


def sampled(question: Question, sample_bytes: int | None, parts: Sequence[Part]) -> Question:
    """Return the question with the share of these files or partitions that makes a sample of about `sample_bytes`."""
    if sample_bytes is not None and any(part.size_bytes < 0 for part in parts):
        raise InvalidConfig(f"{parts[0].topic}: the broker does not tell its size: a sample is impossible, ask for all")
    size_bytes = max(sum(part.size_bytes for part in parts), 1)
    return replace(
        question,
        share=1.0 if sample_bytes is None else min(sample_bytes / size_bytes, 1.0),
        always=always_sampled(parts, question.seed),
        stretch_shares=stretch_shares(parts, SOURCE_BYTES) if question.levels else {},
    )


def _find(paths: Paths, columns: Columns | None, batchings: Sequence[Batching] | None) -> FoundSources:
    """Find the segments and tables in the given files and folders.

    Raise InvalidConfig if a table has no `batchings` (settings of a producer), or if columns are named and there is no
    table.
    """
    found = find(as_paths(paths), columns)
    tables = [part for part in found.parts if isinstance(part, TableFile)]
    if tables:
        _check_batchings(tables[0], batchings)
    elif columns and columns.names:
        raise InvalidConfig(f"column `{columns.names[0]}`: no source is a table")
    return found


def as_paths(paths: Paths) -> Iterable[str | os.PathLike[str]]:
    return [paths] if isinstance(paths, str | os.PathLike) else paths


def _check_batchings(source: Topic | TableFile, batchings: Sequence[Batching] | None) -> None:
    if not batchings:
        is_json = isinstance(source, TableFile) and source.name.lower().endswith(".json")
        as_what = " (it is read as a table, not as a fingerprint)" if is_json else ""
        raise InvalidConfig(
            f"{source.name}: has no batches{as_what}: "
            "give those of a producer, by --linger-ms and --batch-size, or `batchings`"
        )


def why_unreadable(sources: Sequence[StoredSource]) -> str:
    """Return the reason why no record of the first source could be read."""
    first = sources[0]
    if first.unreadable:
        why = first.unreadable
    elif first.damage:
        noun = "batch" if first.unit == "byte" else "row"
        hint = "; kfbench inspect shows how to join it" if isinstance(first.damage[0], WithoutDictionary) else ""
        why = f"no {noun} can be read: {first.damage[0].words(first.unit)}{hint}"
    elif first.dictionary_bytes:
        why = "it has dictionaries only, no record"
    elif first.unit == "offset":
        why = "no record between these offsets"
    elif first.unit != "byte":
        why = "no row in it"
    else:
        why = nothing_in(first.size_bytes)
    others = f" (and nothing in {count_words(len(sources) - 1, 'other file')})" if len(sources) > 1 else ""
    return f"{first.path}: {why}{others}"
