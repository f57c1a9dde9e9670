"""The file of a fingerprint: one JSON document, with a plain list of what it contains.

All numbers are sums over many records, except in a topic that has few. No field has a byte of a key, value or header, a
file's name, an offset, a producer id or a date. docs/fingerprint.md explains what the sums tell.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from textwrap import fill
from typing import Annotated, Final

import msgspec
from msgspec import Meta

from kfbench.codecs import CODECS
from kfbench.errors import InvalidConfig, KfbenchError
from kfbench.fingerprint.grid import REFERENCE, Counts, SampleSizes, arms_of
from kfbench.formats import BASE_FORMAT, FORMATS
from kfbench.json_files import JsonLayout, with_checksum
from kfbench.whatif.dictionary_saving import DictionaryAnswer
from kfbench.whatif.estimate import Drawn, SampleSums
from kfbench.whatif.rebatch import Batching
from kfbench.workloads.fingerprinted.model import KIND, SCHEMA
from kfbench.workloads.fingerprinted.parts import Count, Distributions, Part, Share, broken

MOST_BYTES: Final = 1 << 20
"""The largest size of a fingerprint per topic."""
MOST_TOPICS: Final = 10_000
CONTAINS: Final = (
    "per topic: numbers of bytes, batches, records, files, partitions and damaged places; batches by format and codec",
    "per format and field: bytes without a codec, in the log's batches, and how many items the format cannot carry",
    "per format: bytes without a codec in batches of other sizes (some of a sample of the records)",
    "per format and codec: bytes of up to 32 MiB of records in the batches of many other producers' settings",
    "which of these settings make the same batches, and how many batches: a change tells of single records",
    "per codec and level: bytes before and after compression of a sample, with sums of squares",
    "per topic: what a dictionary would save",
    "per topic: how many records have about which lengths, times, offsets, producers, keys, in buckets of {k} or more",
    "per topic: the entropy of the bytes at each position of keys and values, and how often they repeat",
    "per topic: the time that most of its records span, rounded to three digits",
    "of your machine: the CPU time of compression, and the versions of kfbench and of its codecs",
    "a checksum of all of this, which confirms a guess of a value that you remove",
)
"""The list of contents in a file. The smallest number of members of a bucket replaces {k}."""
TOPIC_NAMES: Final = "names of topics"
NEVER: Final = (
    "bytes of keys, values or headers, or hashes of them",
    TOPIC_NAMES,
    "names of files, folders or hosts",
    "producer ids, offsets or dates",
    "dictionaries, because these have bytes of records",
)
LINE_CHARACTERS: Final = 160
_INNERMOST: Final = re.compile(r"[\[{]\n[^\[\]{}]*[\]}]")
_KINDS: Final = re.compile(r"[a-z0-9-]{1,40} [a-z0-9-]{1,40}")


class InvalidFingerprint(KfbenchError, ValueError):
    """A file is no fingerprint, is damaged, or has a schema that this version of kfbench does not read."""


class StoredSums(Part, frozen=True, kw_only=True):
    """A topic as it is stored.

    kinds: number of batches by format and codec. timed_bytes: bytes of files that have timestamps. The others: see
    `whatif.source.Source`.
    """

    files: Count
    partitions: Count
    size_bytes: Count
    sound_bytes: Count
    batches: Count
    records: Count
    sent_records: Count
    payload_bytes: Count
    plain_bytes: Count
    dictionary_bytes: Count
    damaged_places: Count
    damaged_bytes: Count
    trailing_bytes: Count
    ahead: Count
    timed_bytes: Count
    kinds: dict[str, Count]


class FormatSums(Part, frozen=True, kw_only=True):
    """The log's batches in one format, without a codec.

    fields: field -> bytes. losses: property that the format cannot carry -> number of items. control_bytes: bytes of
    control batches.
    """

    fields: dict[str, Count]
    losses: dict[str, Count]
    control_bytes: Count


class StretchSums(Part, frozen=True, kw_only=True):
    """Sums over stretches of batches that were compressed, as in `whatif.estimate.Drawn`."""

    stretches: Count
    plain: Count
    coded: Count
    plain_squares: Count
    products: Count
    coded_squares: Count


class CodecSums(Part, frozen=True, kw_only=True):
    """A sample in one format and codec. drawn: stretches drawn at random. certain: those that are always drawn."""

    format: str
    codec: str
    drawn: StretchSums
    certain: StretchSums


class LevelSums(Part, frozen=True, kw_only=True):
    """A sample of v2 at a level of a codec. sums: `plain` has the bytes at the default level. cpu_ns: CPU time."""

    codec: str
    level: int
    sums: StretchSums
    cpu_ns: Count


class BatchingSums(Part, frozen=True, kw_only=True):
    """All clients' records in the batches of a producer with these settings. sizes: format -> bytes without a codec."""

    linger_ms: float
    batch_size_bytes: Count
    batches: Count
    sizes: dict[str, Count]
    coded: list[CodecSums]

    @property
    def batching(self) -> Batching:
        """The settings. Raises InvalidConfig for values out of range."""
        return Batching(self.linger_ms, self.batch_size_bytes)


class UniformSums(Part, frozen=True, kw_only=True):
    """A sample of records in batches of equal size. sizes: format -> bytes without a codec."""

    records_per_batch: Count
    records: Count
    payload_bytes: Count
    payload_bytes_with_headers: Count
    sizes: dict[str, Count]


class Span(Part, frozen=True, kw_only=True):
    """The time that most records of a topic span. share: of the records in it, rounded to two digits."""

    span_ms: Count
    share: Share


class TopicPrint(Part, frozen=True, kw_only=True):
    """The fingerprint of one topic.

    Args:
        name: "topic 1" for the largest one, unless names were asked for.
        batches: numbers of batches that producers with many settings would make of the records, or of a sample of them.
    """

    name: Annotated[str, Meta(min_length=1, max_length=300)]
    stored: StoredSums
    formats: dict[str, FormatSums]
    coded: list[CodecSums]
    levels: list[LevelSums]
    level_plain_bytes: Count
    batchings: Annotated[list[BatchingSums], Meta(min_length=1)]
    batches: Counts | None
    sample: SampleSizes | None
    uniform: list[UniformSums]
    span: Span | None
    distributions: Distributions | None


class Fingerprint(Part, frozen=True, kw_only=True, tag_field="kind", tag=KIND):
    """A fingerprint of one or more topics.

    Args:
        schema: the version of this layout.
        kfbench: the version of kfbench that wrote it.
        formats: the formats that `what-if` shows by default. These have sizes under codecs, the others do not.
        codec_versions: codec -> library and version.
        share, level_share: the shares of all bytes that were compressed as samples.
        skipped_bytes: bytes of files and folders that were not read.
        dictionary: what topic dictionaries would save.
    """

    schema: int
    kfbench: str
    contains: tuple[str, ...]
    never_contains: tuple[str, ...]
    formats: Annotated[tuple[str, ...], Meta(min_length=1)]
    codec_versions: dict[str, str]
    share: Annotated[float, Meta(gt=0, le=1)]
    level_share: Annotated[float, Meta(gt=0, le=1)]
    skipped_bytes: Count
    topics: Annotated[list[TopicPrint], Meta(min_length=1, max_length=MOST_TOPICS)]
    dictionary: DictionaryAnswer


def to_json(found: Fingerprint) -> bytes:
    """Return the text of the file. Lists and objects of numbers take one line if they are short, else few."""
    text = msgspec.json.format(with_checksum(msgspec.json.encode(found)).decode(), indent=1)
    return (_INNERMOST.sub(_on_one_line, text) + "\n").encode()


def _on_one_line(part: re.Match[str]) -> str:
    line = re.sub(r"\n\s*", " ", part[0])
    if len(line) <= LINE_CHARACTERS:
        return line
    return part[0] if '"' in line else fill(line, LINE_CHARACTERS, break_on_hyphens=False)


def read_file(path: Path) -> Fingerprint:
    """Read a fingerprint. Raises InvalidFingerprint, with the place of what is wrong."""
    return LAYOUT.read(path, MOST_BYTES * MOST_TOPICS)


def _broken(found: Fingerprint) -> Iterator[str]:
    """Yield what the types allow and `fingerprint` never writes."""
    names = [topic.name for topic in found.topics]
    if len(set(names)) < len(names):
        yield "two topics have one name"
    if unknown := {each.topic for each in found.dictionary.topics} - set(names):
        yield f"dictionary: no topic {min(unknown)!r}"
    for known, given, noun in ((FORMATS, found.formats, "format"), (CODECS, found.codec_versions, "codec")):
        yield from (f"no {noun} {name!r} in this kfbench" for name in given if name not in known)
    for topic in found.topics:
        yield from (f"{topic.name}: {broken}" for broken in _broken_in(topic, found))


def _broken_in(topic: TopicPrint, found: Fingerprint) -> Iterator[str]:
    stored, settings = topic.stored, _settings(topic)
    if settings != _settings(found.topics[0]) or len(set(settings)) < len(settings):
        yield "batchings: settings appear twice, or differ from those of the first topic"
    for linger_ms, batch_size_bytes in settings:
        try:
            Batching(linger_ms, batch_size_bytes)
        except InvalidConfig as error:
            yield f"batchings: {error}"
    for rows in (topic.coded, *(batching.coded for batching in topic.batchings)):
        yield from (f"coded: no codec {row.codec!r} in this kfbench" for row in rows if row.codec not in CODECS)
    for i, each in enumerate(topic.batchings):
        if stored.sent_records and not (each.batches and all(each.sizes.values())):
            yield f"batchings[{i}]: 0 batches or bytes, but the topic has records"
    if topic.batches and not topic.batches.is_complete:
        yield "batches: not a number for each pair of settings"
    yield from (f"sample: {problem}" for problem in _broken_sample(topic, found))
    measured = set(found.topics[0].formats)
    tables = {"formats": set(topic.formats)}
    tables |= {f"batchings[{i}].sizes": set(each.sizes) for i, each in enumerate(topic.batchings)}
    tables |= {f"uniform[{i}].sizes": set(each.sizes) for i, each in enumerate(topic.uniform)}
    yield from (
        f"{place}: other formats than in formats of the first topic"
        for place, names in tables.items()
        if names != measured
    )
    if topic.distributions:
        yield from (f"distributions.{problem}" for problem in broken(topic.distributions))
    yield from (f"formats: {name} is missing" for name in (BASE_FORMAT, *found.formats) if name not in measured)
    if BASE_FORMAT in topic.formats and sum(topic.formats[BASE_FORMAT].fields.values()) != stored.plain_bytes:
        yield f"stored.plain_bytes: {stored.plain_bytes:,} is not the sum of {BASE_FORMAT}'s fields"
    if stored.records and not (stored.plain_bytes and stored.sound_bytes and stored.batches and stored.kinds):
        yield "stored: has records and no batches or bytes"
    if wrong := [kind for kind in stored.kinds if not _KINDS.fullmatch(kind)]:
        yield f"stored.kinds: {wrong[0]!r} is no format and codec"
    totals = {name: sum(each.fields.values()) for name, each in topic.formats.items()}
    yield from _too_many("coded", topic.coded, totals)
    for i, each in enumerate(topic.batchings):
        yield from _too_many(f"batchings[{i}].coded", each.coded, each.sizes)


def _too_many(where: str, rows: Iterable[CodecSums], sizes: Mapping[str, int]) -> Iterator[str]:
    """Yield a text for each sample that has more bytes than all batches. sizes: those of the formats."""
    for row in rows:
        if row.drawn.plain + row.certain.plain > sizes.get(row.format, 0):
            yield f"{where}: more bytes of {row.format} than the topic has"


def _broken_sample(topic: TopicPrint, found: Fingerprint) -> Iterator[str]:
    sample = topic.sample
    if sample is None:
        return
    if not sample.is_complete:
        yield "a table has not a number for each pair of settings, or tables end at different settings"
    elif not all(sample.counts.has(*settings) for settings in _settings(topic)):
        yield "batchings: are outside of its settings"
    elif topic.batches and not all(topic.batches.has(*settings) for settings in sample.counts.ends):
        yield "batches: end before its settings"
    if lacking := [name for name in found.formats if REFERENCE not in FORMATS[name].capabilities.codecs]:
        yield f"formats: {lacking[0]} has no {REFERENCE}"
    for grid, arms in zip(sample.grids, arms_of(found.formats), strict=True):
        if {(arm.format, arm.codec) for arm in grid.arms} != {*arms}:
            yield "other formats or codecs than in formats"


def _settings(topic: TopicPrint) -> list[tuple[float, int]]:
    return [(each.linger_ms, each.batch_size_bytes) for each in topic.batchings]


LAYOUT: Final = JsonLayout(
    struct=Fingerprint,
    kind=KIND,
    schema=SCHEMA,
    noun="fingerprint",
    error=InvalidFingerprint,
    broken=_broken,
    has_checksum=True,
)


def stretch_sums(drawn: Drawn) -> StretchSums:
    """Return the sums of a `Drawn` with names."""
    return StretchSums(**drawn._asdict())


def drawn_of(sums: StretchSums) -> Drawn:
    return Drawn(*(getattr(sums, name) for name in Drawn._fields))


def samples(rows: Iterable[CodecSums]) -> dict[tuple[str, str], SampleSums]:
    """Return the sums of samples by format and codec."""
    return {(row.format, row.codec): SampleSums(drawn_of(row.drawn), drawn_of(row.certain)) for row in rows}
