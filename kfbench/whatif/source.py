"""A source of records as it is now: its bytes, batches, records, times and damage."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final, Self

from kfbench.layouts import NO_TIMESTAMP
from kfbench.log.damage import Damage
from kfbench.sources.log import stream_of

COUNTED: Final = (
    "sound_bytes", "batches", "records", "payload_bytes", "damaged_places", "damaged_bytes", "trailing_bytes"
)  # fmt: skip
SUMMED: Final = (*COUNTED, "size_bytes", "plain_bytes", "ahead")


@dataclass(frozen=True, kw_only=True)
class Source:
    """A part as it is now. The result is about sound_bytes, the bytes that could be read.

    payload_bytes: keys, values and headers. plain_bytes: plain v2 in these batches, or in assumed ones. first_ms,
    last_ms: earliest and latest time of a client, -1 without. kinds: "v2 lz4" -> batches. damage: places in the part's
    unit, at most MOST_DAMAGE over all sources; damaged_places, damaged_bytes: of all places. unreadable: why the rest
    was not read. ahead: see `Rebatcher`.
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

    def plus(self, other: Self) -> Self:
        """Add another share of the same file."""
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
        )

    @property
    def stream(self) -> str:
        """The topic. Where it is unknown: the folder of a log segment, else the file."""
        return stream_of(self.topic, self.path)

    @property
    def is_assumed(self) -> bool:
        """Return True where the source has records but no batches."""
        return bool(self.records) and not self.kinds

    @property
    def base_bytes(self) -> int:
        """The bytes that savings are shares of: those now, or plain v2 where batches are assumed."""
        return self.plain_bytes if self.is_assumed else self.sound_bytes


def saving(size: int, base: int) -> float:
    """Return the saved share of `base`; below 0: `size` is larger."""
    return 1 - size / base if base else 0.0
