"""A source of records as it is stored now: its bytes, batches, records, times and damage."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final, Self

from kfbench.layouts import NO_TIMESTAMP
from kfbench.log.damage import Damage, out_of_order
from kfbench.sources.log import stream_of
from kfbench.text import percent

COUNTED: Final = (
    "sound_bytes", "batches", "records", "payload_bytes", "damaged_places", "damaged_bytes", "trailing_bytes",
    "dictionary_bytes",
)  # fmt: skip
SUMMED: Final = (*COUNTED, "size_bytes", "plain_bytes", "ahead")


@dataclass(frozen=True, kw_only=True)
class Source:
    """A file, a share of a file or a partition as it is stored now.

    Args:
        size_bytes: size of the part.
        sound_bytes: the bytes that could be read. The what-if is about these.
        dictionary_bytes: the part of them that stores zstd dictionaries. These are no batches and records here.
        payload_bytes: bytes of keys, values and headers.
        first_ms, last_ms: the earliest and the latest timestamp of clients' records; -1: there is none.
        kinds: number of batches by format and codec, such as {"v2 lz4": 12}.
        damage: the damaged places, in the part's unit. All sources together list at most MOST_DAMAGE.
        damaged_places, damaged_bytes: counts of all damaged places.
        trailing_bytes: size of an incomplete last batch.
        unit: the unit of positions: "byte", "row", "line" or "offset".
        unreadable: the reason why the rest of the part was not read; None: all was read.
        plain_bytes: size of the records as uncompressed v2 in the batches of the log, or in assumed batches.
        ahead: number of records whose timestamp is too late (see `Rebatcher`).
        files: number of files; more than 1 if the source is a topic's fingerprint.
        first_offset, last_offset: those of a log's batches; None: there is none, or it is unknown.
        first_position: the byte at which the first batch begins.
    """

    path: str
    topic: str
    partition: int | None
    size_bytes: int
    sound_bytes: int
    batches: int
    records: int
    payload_bytes: int
    first_ms: int
    last_ms: int
    kinds: Mapping[str, int]
    damage: tuple[Damage, ...]
    damaged_places: int
    damaged_bytes: int
    trailing_bytes: int
    unit: str = "byte"
    unreadable: str | None = None
    plain_bytes: int = 0
    ahead: int = 0
    dictionary_bytes: int = 0
    files: int = 1
    first_offset: int | None = None
    last_offset: int | None = None
    first_position: int = 0

    def after(self, other: Self) -> Self:
        """Return this segment or share, damaged if its offsets do not rise after those of the previous one."""
        if self.first_offset is None or other.last_offset is None or self.first_offset > other.last_offset:
            return self
        damage = (out_of_order(self.first_position, self.first_offset, other.last_offset), *self.damage)
        return replace(self, damage=damage, damaged_places=self.damaged_places + 1)

    def plus(self, other: Self) -> Self:
        """Return the sums of two shares of one file."""
        sums = {name: getattr(self, name) + getattr(other, name) for name in SUMMED}
        known = [time_ms for time_ms in (self.first_ms, other.first_ms) if time_ms != NO_TIMESTAMP]
        return replace(
            self,
            **sums,
            first_ms=min(known, default=NO_TIMESTAMP),
            last_ms=max(self.last_ms, other.last_ms),
            kinds=dict(sorted((Counter(self.kinds) + Counter(other.kinds)).items())),
            damage=tuple(sorted((*self.damage, *other.damage), key=lambda each: each.position)),
            unreadable=min(filter(None, (self.unreadable, other.unreadable)), default=None),
            first_offset=other.first_offset if self.first_offset is None else self.first_offset,
            last_offset=self.last_offset if other.last_offset is None else other.last_offset,
        )

    @property
    def stream(self) -> str:
        """The topic. Where it is unknown: the folder of a log segment, else the file."""
        return stream_of(self.topic, self.path)

    @property
    def is_assumed(self) -> bool:
        """True if the source has records but no batches, so that batches are assumed."""
        return bool(self.records) and not self.kinds

    @property
    def base_bytes(self) -> int:
        """The number of bytes of which savings are shares: the bytes now, or uncompressed v2 if batches are assumed."""
        return self.plain_bytes if self.is_assumed else self.sound_bytes


def less_or_more(share: float) -> str:
    """Return a saved share in words: "12.5 % less", or "12.5 % more" for a share below 0."""
    return f"{percent(abs(share))} {'less' if share >= 0 else 'more'}"


def saving(size: int, base: int) -> float:
    """Return the saved share of `base`; below 0: `size` is larger than `base`."""
    return 1 - size / base if base else 0.0
