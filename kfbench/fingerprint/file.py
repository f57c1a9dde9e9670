"""The file of a fingerprint: the answer of a what-if as JSON, without names and payload, and histograms.

docs/fingerprint.md explains what the numbers tell.
"""

import hashlib
import re
from codecs import BOM_UTF8
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from shlex import quote
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta, Struct

from kfbench.codecs import CODECS
from kfbench.errors import InvalidConfig, KfbenchError
from kfbench.fingerprint.histograms import HISTOGRAMS, Bucket
from kfbench.formats import BASE_FORMAT, FORMATS
from kfbench.sources.tables import FINGERPRINT
from kfbench.whatif.answer import WhatIf
from kfbench.whatif.more import WHATIF_TABLES

SCHEMA: Final = 10
MOST_BYTES: Final = 64 << 20
SMALLEST_LEAST_MEMBERS: Final = 2
MOST_LEAST_MEMBERS: Final = 1_000_000
CONTAINS: Final = (
    "numbers of bytes, batches, records and damaged places, in all and by topic; batches by format and codec",
    "bytes by format, codec, level and field, in the log's batches; what formats cannot carry",
    "bytes by format without a codec in batches of 1 to 1,000 records",
    "what a topic dictionary would save",
    "how many records have about which lengths and time steps, in buckets of {k} or more",
    "bytes per day, and the time that most records of a topic span, rounded to three digits",
    "of your machine: the CPU time of compression, and the versions of kfbench and of its codecs",
)
"""The list of contents in a file. The smallest number of members of a bucket replaces {k}."""
NEVER: Final = (
    "bytes of keys, values or headers, or hashes of them",
    "names of topics, files, folders or hosts",
    "producer ids, offsets or dates",
    "dictionaries, because these have bytes of records",
)
# Numbers that may be below 0. All others are counts, sizes or shares. An overhead is below 0 where a format
# stores a header once for several records.
SIGNED: Final = re.compile(r".*\.(saved_bytes|first_ms|last_ms|least|most)|\$\.answer\.overhead\..*")
_KINDS: Final = re.compile(r"[a-z0-9-]{1,40} [a-z0-9-]{1,40}")
_INNERMOST: Final = re.compile(r"[\[{]\n[^\[\]{}]*[\]}]")
_LINE_CHARACTERS: Final = 160


class InvalidFingerprint(KfbenchError, ValueError):
    """A file is no fingerprint, is damaged, or has a schema that this version of kfbench does not read."""


class Fingerprint(Struct, frozen=True, kw_only=True, tag_field="kind", tag=FINGERPRINT):
    """A fingerprint of one or more topics.

    Args:
        schema: the version of this layout.
        kfbench: the version of kfbench that wrote it.
        formats: the formats that `what-if` shows by default.
        least_members: the smallest number of members of a bucket.
        answer: all formats and codecs in the log's own batches. Topics are numbered, the largest first.
        histograms: topic -> name of a histogram -> buckets in ascending order.
        sha256: the checksum of all other values.
    """

    schema: int
    kfbench: str
    contains: tuple[str, ...]
    never_contains: tuple[str, ...]
    formats: Annotated[tuple[str, ...], Meta(min_length=1)]
    least_members: Annotated[int, Meta(ge=SMALLEST_LEAST_MEMBERS, le=MOST_LEAST_MEMBERS)]
    answer: WhatIf
    histograms: dict[str, dict[str, tuple[Bucket, ...]]]
    sha256: str = ""


class _Head(Struct):
    kind: str
    schema: int
    kfbench: str = "?"


def to_json(found: Fingerprint) -> bytes:
    """Return the text of the file. Lists and objects of numbers take one line if they are short."""
    found = _decoded(msgspec.json.encode(found))  # as a reader will have it
    found = msgspec.structs.replace(found, sha256=_checksum(found))
    text = msgspec.json.format(msgspec.json.encode(found).decode(), indent=1)
    return (_INNERMOST.sub(_on_one_line, text) + "\n").encode()


def _on_one_line(part: re.Match[str]) -> str:
    line = re.sub(r"\n\s*", " ", part[0])
    return line if len(line) <= _LINE_CHARACTERS else part[0]


def _checksum(found: Fingerprint) -> str:
    """Return the SHA-256 of a fingerprint's values as JSON with sorted names and without white space."""
    values = msgspec.to_builtins(msgspec.structs.replace(found, sha256=""), str_keys=True)
    return hashlib.sha256(msgspec.json.encode(values, order="sorted")).hexdigest()


def read_file(path: Path) -> Fingerprint:
    """Read a fingerprint. Raises InvalidFingerprint, with the path and the place of what is wrong."""
    try:
        if path.stat().st_size > MOST_BYTES:
            raise InvalidFingerprint(f"{path}: larger than {MOST_BYTES:,} bytes")
        data = path.read_bytes().removeprefix(BOM_UTF8)
    except OSError as error:
        raise InvalidFingerprint(f"{path}: {error.strerror}") from None
    try:
        head = msgspec.json.decode(data, type=_Head)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        raise InvalidFingerprint(f"{path}: no fingerprint of kfbench: {error}") from None
    if head.kind != FINGERPRINT:
        raise InvalidFingerprint(f"{path}: no fingerprint of kfbench: its kind is {head.kind!r}")
    if head.schema != SCHEMA:
        raise InvalidFingerprint(f"{path}: {_other_schema(head, path)}")
    try:
        found = _decoded(data)
        problem = next(_broken(found, msgspec.json.decode(data)), None)
    except (msgspec.MsgspecError, InvalidConfig, RecursionError, UnicodeDecodeError) as error:
        raise InvalidFingerprint(f"{path}: {error}") from None
    if problem:
        raise InvalidFingerprint(f"{path}: {problem}")
    return found


def _decoded(data: bytes) -> Fingerprint:
    found = msgspec.json.decode(data, type=Fingerprint)
    if unknown := found.answer.more.keys() - WHATIF_TABLES.keys():
        raise InvalidConfig(f"$.answer.more: no package here knows {min(unknown)}")
    more: dict[str, Any] = {}
    for name, each in found.answer.more.items():
        more[name] = msgspec.convert(each, WHATIF_TABLES[name].answer_type)
    return msgspec.structs.replace(found, answer=replace(found.answer, more=more))


def _other_schema(head: _Head, path: Path) -> str:
    words = f"has schema {head.schema}, written by kfbench {head.kfbench}; this kfbench reads schema {SCHEMA}"
    if head.schema > SCHEMA:
        return f"{words}: use a newer kfbench"
    return f"{words}: make a new one from the log: kfbench fingerprint LOG --force --out {quote(str(path))}"


def _broken(found: Fingerprint, values: Any) -> Iterator[str]:
    """Yield what the types allow and `fingerprint` never writes. values: the file's JSON, with all its names."""
    given = list(_places(values))
    known = {keys for keys, _ in _places(msgspec.to_builtins(found, str_keys=True))}
    yield from (f"{_words(keys)}: no fingerprint has this" for keys, _ in given if keys not in known)
    for keys, value in given:
        place = _words(keys)
        if isinstance(value, int | float) and (abs(value) >= 1 << 63 or (value < 0 and not SIGNED.fullmatch(place))):
            yield f"{place}: {value} is out of range"
    yield from (f"$.answer.{problem}" for problem in _broken_answer(found.answer))
    yield from (f"$.formats: {name} has no sizes" for name in found.formats if name not in found.answer.breakdown)
    names = set(found.answer.topics)
    if found.histograms.keys() != names:
        yield "$.histograms: not one set for each topic"
    for topic, histograms in found.histograms.items():
        if histograms.keys() != {*HISTOGRAMS}:
            yield f"$.histograms: {topic!r} has other histograms"
        for name, buckets in histograms.items():
            yield from (f"$.histograms.{topic}.{name}{each}" for each in _broken_buckets(buckets, found.least_members))
    if found.sha256 != _checksum(found):
        yield "a value was changed: `sha256` is not the checksum of the others"


def _places(value: Any, keys: tuple[str | int, ...] = ()) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    """Yield all values in a JSON value, with the keys that lead to them."""
    yield keys, value
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list | tuple) else ()
    for key, each in inner:
        yield from _places(each, (*keys, key))


def _words(keys: Iterable[str | int]) -> str:
    return "$" + "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in keys)


def _broken_answer(answer: WhatIf) -> Iterator[str]:
    sizes = {name: sum(fields.values()) for name, fields in answer.breakdown.items()}
    names, topics = {source.path for source in answer.sources}, {each.topic for each in answer.by_topic}
    if answer.rebatched or answer.assumed or answer.columns or not answer.is_fingerprint:
        yield "rebatched, assumed, columns, is_fingerprint: not those of a fingerprint"
    if BASE_FORMAT not in sizes or answer.losses.keys() != sizes.keys():
        yield f"breakdown, losses: {BASE_FORMAT} is missing, or their formats differ"
    if any(row.keys() != sizes.keys() for row in answer.overhead.values()):
        yield "overhead: other formats than in breakdown"
    yield from (f"breakdown: no format {name!r} in this kfbench" for name in sizes if name not in FORMATS)
    if len({(arm.format, arm.codec) for arm in answer.arms}) < len(answer.arms):
        yield "arms: a format and codec appears twice"
    best = (each.best for each in answer.by_topic)
    for codec in (*(each.codec for each in (*answer.arms, *best)), *(each.codec for each in answer.levels)):
        if codec not in CODECS:
            yield f"arms, levels, by_topic: no codec {codec!r} in this kfbench"
    for i, arm in enumerate(answer.arms):
        if arm.format not in sizes or (arm.codec == "none" and arm.size_bytes != sizes[arm.format]):
            yield f"arms[{i}]: not the sum of a format's fields in breakdown"
    missing = {(name, "none") for name in sizes} - {(arm.format, arm.codec) for arm in answer.arms}
    yield from (f"arms: no size of {name} without a codec" for name, _ in missing)
    if len(names) < len(answer.sources) or any(source.topic != source.path for source in answer.sources):
        yield "sources: not one for each topic"
    if not topics or len(topics) < len(answer.by_topic) or not topics <= names:
        yield "by_topic: not topics of sources"
    for name, each in answer.more.items():
        if not WHATIF_TABLES[name].topics(each) <= names:
            yield f"more.{name}.topics: not topics of sources"
    for i, source in enumerate(answer.sources):
        if source.records and not (source.sound_bytes and source.plain_bytes and source.batches and source.kinds):
            yield f"sources[{i}]: has records and no batches or bytes"
        if wrong := [kind for kind in source.kinds if not _KINDS.fullmatch(kind)]:
            yield f"sources[{i}].kinds: {wrong[0]!r} is no format and codec"
    if sum(source.plain_bytes for source in answer.sources) != sizes.get(BASE_FORMAT):
        yield f"sources: plain_bytes is not the sum of {BASE_FORMAT}'s fields"
    if not answer.base_bytes or not all(each.base_bytes for each in answer.by_topic):
        yield "base_bytes: 0"


def _broken_buckets(buckets: tuple[Bucket, ...], k: int) -> Iterator[str]:
    for i, each in enumerate(buckets):
        if each.members < k:
            yield f"[{i}]: {each.members} members, fewer than least_members ({k})"
        if each.least > each.most or (i and each.least <= buckets[i - 1].most):
            yield f"[{i}]: its range is not after the one before"


def check_least_members(k: int) -> int:
    """Return k. Raises InvalidConfig if it is out of range."""
    if not SMALLEST_LEAST_MEMBERS <= k <= MOST_LEAST_MEMBERS:
        raise InvalidConfig(f"least_members: {k} is not {SMALLEST_LEAST_MEMBERS} to {MOST_LEAST_MEMBERS:,}")
    return k
