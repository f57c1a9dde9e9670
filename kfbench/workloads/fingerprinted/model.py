"""A topic of a fingerprint, as far as records can be generated from it."""

from codecs import BOM_UTF8
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec

from kfbench.errors import InvalidConfig
from kfbench.formats import BASE_FORMAT
from kfbench.json_files import JsonLayout
from kfbench.workloads.fingerprinted.parts import Count, Distributions, broken

KIND: Final = "kfbench fingerprint"
SCHEMA: Final = 8
HEAD_BYTES: Final = 1 << 16
NAME_PREFIX: Final = "fingerprint-"
"""The beginning of a workload's name."""


def is_fingerprint(path: Path) -> bool:
    """Return True if a file is JSON that names itself a fingerprint near its beginning."""
    try:
        with path.open("rb") as stream:
            head = stream.read(HEAD_BYTES)
    except OSError:
        return False
    has_kind = f'"{KIND}"'.encode() in head
    has_parts = b'"never_contains"' in head and b'"codec_versions"' in head  # in case that somebody changed the kind
    return head.removeprefix(BOM_UTF8).lstrip().startswith(b"{") and (has_kind or has_parts)


class _Drawn(msgspec.Struct, frozen=True):
    plain: Count
    coded: Count


class _Coded(msgspec.Struct, frozen=True):
    format: str
    codec: str
    drawn: _Drawn
    certain: _Drawn


class _Topic(msgspec.Struct, frozen=True):
    name: str
    coded: list[_Coded]
    distributions: Distributions | None


class _File(msgspec.Struct, frozen=True, tag_field="kind", tag=KIND):
    schema: int
    topics: list[_Topic]


class _Checksum(msgspec.Struct, frozen=True):
    sha256: str


@dataclass(frozen=True, kw_only=True, eq=False)
class TopicModel:
    """A topic to generate. Two are equal if the file, the topic and the last three fields are.

    Args:
        sha256: the checksum of the fingerprint's values, in hexadecimal.
        number: the number of the topic in the file, from 1.
        shares: codec -> bytes with the codec / bytes without it, in the base format and the log's batches.
        freshness, spread, has_long_runs: how the bytes of values vary (`content.profile`).
    """

    sha256: str
    number: int
    is_only: bool
    distributions: Distributions
    shares: tuple[tuple[str, float], ...] = ()
    freshness: float = 1.0
    spread: float = 1.0
    has_long_runs: bool = False

    @property
    def name(self) -> str:
        return f"{NAME_PREFIX}{self.sha256[:12]}" + ("" if self.is_only else f"-{self.number}")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TopicModel) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    @property
    def _key(self) -> tuple[str, int, float, float, bool]:
        return self.sha256, self.number, self.freshness, self.spread, self.has_long_runs


def models_of(data: bytes, where: str) -> list[TopicModel]:
    """Return the topics of a fingerprint's file that have distributions. where: the path, for messages.

    Raises InvalidConfig.
    """
    file = _LAYOUT.parsed(data, f"{where}: ")
    checksum = msgspec.json.decode(data.removeprefix(BOM_UTF8), type=_Checksum).sha256
    found = [
        TopicModel(
            sha256=checksum,
            number=number,
            is_only=len(file.topics) == 1,
            distributions=topic.distributions,
            shares=_shares(topic.coded),
        )
        for number, topic in enumerate(file.topics, 1)
        if topic.distributions
    ]
    if not found:
        raise InvalidConfig(f"{where}: no topic has distributions: each has too few records")
    return found


def _broken(file: _File) -> Iterator[str]:
    for topic in file.topics:
        if topic.distributions:
            yield from (f"{topic.name}: distributions.{problem}" for problem in broken(topic.distributions))


_LAYOUT: Final = JsonLayout(
    struct=_File,
    kind=KIND,
    schema=SCHEMA,
    noun="fingerprint",
    error=InvalidConfig,
    broken=_broken,
    has_checksum=True,
)


def _shares(rows: list[_Coded]) -> tuple[tuple[str, float], ...]:
    found = []
    for row in rows:
        plain, coded = row.drawn.plain + row.certain.plain, row.drawn.coded + row.certain.coded
        if row.format == BASE_FORMAT and plain:
            found.append((row.codec, coded / plain))
    return tuple(found)
