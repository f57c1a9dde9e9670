"""The file of a fingerprint: the answer of a what-if as JSON, without names and payload, and histograms.

docs/fingerprint.md explains what the numbers tell.
"""

import hashlib
import re
from codecs import BOM_UTF8
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from shlex import quote
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta, Struct

from kfbench.codecs import CODECS
from kfbench.errors import InvalidConfig, KfbenchError
from kfbench.fingerprint.histograms import Bucket
from kfbench.formats import BASE_FORMAT, FORMATS
from kfbench.money import Prices, Traffic
from kfbench.present.table import listed
from kfbench.sources.tables import FINGERPRINT
from kfbench.whatif.answer import WhatIf, check_further_tables
from kfbench.whatif.ask import legal_arms
from kfbench.whatif.more import WHATIF_TABLES
from kfbench.whatif.rate import rate_of_user

SCHEMA: Final = 10
MOST_BYTES: Final = 64 << 20
LEAST_MEMBERS_RANGE: Final = range(2, 1_000_001)  # the smallest number of members of a bucket may be one of these
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
    least_members: Annotated[int, Meta(ge=LEAST_MEMBERS_RANGE[0], le=LEAST_MEMBERS_RANGE[-1])]
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
    """Read a fingerprint. Raises InvalidFingerprint, with the path."""
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
        again = f"make a new one from the log: kfbench fingerprint LOG --force --out {quote(str(path))}"
        raise InvalidFingerprint(
            f"{path}: has schema {head.schema}, written by kfbench {head.kfbench}; this kfbench reads schema {SCHEMA}: "
            f"{'use a newer kfbench' if head.schema > SCHEMA else again}"
        )
    try:
        found = _decoded(data)
        problem = next(_problems(found, data), None)
    except (msgspec.MsgspecError, InvalidConfig, OverflowError, RecursionError, UnicodeDecodeError) as error:
        raise InvalidFingerprint(f"{path}: {error}") from None
    if problem:
        raise InvalidFingerprint(f"{path}: {problem}")
    return found


def _problems(found: Fingerprint, data: bytes) -> Iterator[str]:
    """Yield what the types allow and `fingerprint` never writes. The checksum alone would not stop who computes it."""
    sizes = {name: sum(fields.values()) for name, fields in found.answer.breakdown.items()}
    plain = {arm.format: arm.size_bytes for arm in found.answer.arms if arm.codec == "none"}
    if BASE_FORMAT not in sizes or plain != sizes:
        yield f"$.answer.arms: {BASE_FORMAT} is missing, or a size is not the sum of the fields in breakdown"
    if sum(source.plain_bytes for source in found.answer.sources) != sizes.get(BASE_FORMAT):
        yield f"$.answer.sources: plain_bytes is not the sum of {BASE_FORMAT}'s fields"
    for topic, histograms in found.histograms.items():
        for name, buckets in histograms.items():
            if any(each.members < found.least_members for each in buckets):
                yield f"$.histograms.{topic}.{name}: fewer than least_members ({found.least_members}) in a bucket"
    if msgspec.json.decode(msgspec.json.encode(found)) != msgspec.json.decode(data):
        yield "has a key that no fingerprint has, or lacks one"
    if found.sha256 != _checksum(found):
        yield "a value was changed: `sha256` is not the checksum of the others"


def _decoded(data: bytes) -> Fingerprint:
    found = msgspec.json.decode(data, type=Fingerprint)
    if unknown := found.answer.more.keys() - WHATIF_TABLES.keys():
        raise InvalidConfig(f"$.answer.more: no package here knows {min(unknown)}")
    sizes = (*found.answer.arms, *(each.best for each in found.answer.by_topic))
    for noun, names, known in (
        ("format", found.answer.breakdown, FORMATS),
        ("codec", [*(each.codec for each in sizes), *(each.codec for each in found.answer.levels)], CODECS),
    ):
        if absent := [name for name in names if name not in known]:
            raise InvalidConfig(f"no {noun} {absent[0]!r} in this kfbench")
    more: dict[str, Any] = {}
    for name, each in found.answer.more.items():
        more[name] = msgspec.convert(each, WHATIF_TABLES[name].answer_type)
    return msgspec.structs.replace(found, answer=replace(found.answer, more=more))


def what_if_of(
    given: Fingerprint,
    formats: Sequence[str] | Literal["all"] | None = None,
    *,
    traffic: Traffic | None = None,
    prices: Prices | None = None,
    rate_mb_s: float | None = None,
) -> WhatIf:
    """Return the answer of a fingerprint for some formats. Parameters: see `whatif.what_if`.

    Raises InvalidConfig for wrong names, and for a format that the fingerprint does not have.
    """
    check_further_tables()
    answer = given.answer
    arms, illegal = legal_arms(list(answer.breakdown) if formats == "all" else formats or given.formats, None)
    names = list(dict.fromkeys(name for name, _ in arms))
    if absent := [name for name in names if name not in answer.breakdown]:
        raise InvalidConfig(f"the fingerprint has sizes in {listed([*answer.breakdown])} only, not in {absent[0]}")
    known = {(arm.format, arm.codec): arm for arm in answer.arms}
    crossings = {(each.format, each.other): each for each in answer.break_even}
    return replace(
        answer,
        arms=tuple(known[arm] for arm in arms if arm in known),
        illegal=tuple(illegal),
        breakdown={name: answer.breakdown[name] for name in names},
        losses={name: answer.losses[name] for name in names},
        break_even=tuple(crossings[a, b] for a in names for b in names if (a, b) in crossings),
        overhead={level: {name: row[name] for name in names} for level, row in answer.overhead.items()},
        more={name: WHATIF_TABLES[name].of_formats(each, names) for name, each in answer.more.items()},
        rate=answer.rate if rate_mb_s is None else rate_of_user(rate_mb_s),
        traffic=traffic or Traffic(),
        prices=prices or Prices(),
    )
