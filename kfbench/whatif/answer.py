"""The answer of a what-if as typed values: the bytes of a log now and in other formats, codecs and batches."""

from collections.abc import Container, Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from kfbench.formats import BASE_FORMAT, PROPOSED, SHIPPED
from kfbench.migration.bills import Prices, Traffic
from kfbench.records import PAYLOAD
from kfbench.sources import Columns, Skipped
from kfbench.whatif.break_even import Crossing
from kfbench.whatif.month import Month, Rate, month
from kfbench.whatif.rebatch import Batching
from kfbench.whatif.source import Source, saving


@dataclass(frozen=True, kw_only=True)
class Arm:
    """The bytes of all sound batches in one format under one codec; batching None: as recorded.

    size_bytes None: nothing was drawn that tells. error_bytes: the standard error of an estimate from a sample; 0:
    exact; None: the sample is too small to tell.
    """

    format: str
    codec: str
    level: int | None
    codec_version: str
    size_bytes: int | None
    error_bytes: int | None = 0
    batching: Batching | None = None
    batches: int | None = None


@dataclass(frozen=True, kw_only=True)
class Sample:
    """What went through the codecs: plain bytes in v2, of how many; `share` was asked for."""

    share: float
    seed: int
    plain_bytes: int
    of_bytes: int
    stretches: int


@dataclass(frozen=True, kw_only=True)
class WhatIf:
    """The bytes now and in every format and codec.

    breakdown: format -> {field: bytes}, uncompressed, batches as recorded; losses: format -> {what it cannot carry: how
    many}; illegal: the pairs of format and codec that were asked for and that no Kafka version has. rebatched: the same
    records in other batches. overhead: records a batch -> {format: bytes a record beside the payload}. rate None: the
    log does not say, and nobody did.
    """

    sources: tuple[Source, ...]
    skipped: tuple[Skipped, ...]
    arms: tuple[Arm, ...]
    rebatched: tuple[Arm, ...]
    breakdown: Mapping[str, Mapping[str, int]]
    losses: Mapping[str, Mapping[str, int]]
    illegal: tuple[tuple[str, str], ...]
    break_even: tuple[Crossing, ...]
    overhead: Mapping[int, Mapping[str, float]]
    sample: Sample | None
    assumed: Batching | None
    rate: Rate | None
    traffic: Traffic
    prices: Prices
    sent_records: int  # by clients: all but control records
    uniform_records: int  # of these, what break_even and overhead are of
    columns: Columns | None = None  # of tables

    def smallest(self, arms: Iterable[Arm], formats: Container[str]) -> Arm | None:
        """Of these formats, as far as they lose nothing."""
        of = [
            arm
            for arm in arms
            if arm.size_bytes is not None
            and arm.format in formats
            and (arm.format == BASE_FORMAT or not self.losses[arm.format])
        ]
        return min(of, key=lambda arm: arm.size_bytes or 0, default=None)

    @property
    def recoded(self) -> tuple[str, ...]:
        """The formats that were tried with codecs in other batches, too; all, where no codec was."""
        formats = dict.fromkeys(arm.format for arm in self.rebatched)
        return tuple(dict.fromkeys(arm.format for arm in self.rebatched if arm.codec != "none") or formats)

    @property
    def headline(self) -> dict[str, tuple[Arm, ...]]:
        """today, proposed, own -> what takes the fewest bytes: batches as recorded, then others.

        In other batches of the formats that were tried with codecs there: without one, a format would be held against
        others with theirs.
        """
        others = [arm for arm in self.rebatched if arm.format in self.recoded and arm.batching != self.assumed]
        formats = {arm.format for arm in self.arms}
        groups = {"today": {BASE_FORMAT}, "proposed": PROPOSED, "own": formats - SHIPPED - PROPOSED}
        found = {name: [self.smallest(arms, of) for arms in (self.arms, others)] for name, of in groups.items()}
        return {name: tuple(arm for arm in each if arm is not None) for name, each in found.items()}

    @property
    def now_bytes(self) -> int:
        """What could be read, as it lies there."""
        return sum(source.sound_bytes for source in self.sources)

    @property
    def base_bytes(self) -> int:
        """What savings are shares of: the bytes now. Of sources that are no log: plain v2's, in the batches assumed."""
        return sum(source.base_bytes for source in self.sources)

    @property
    def base_words(self) -> str:
        """What base_bytes are of."""
        if self.assumed is None:
            return "now"
        if all(source.is_assumed for source in self.sources if source.records):
            return f"of plain {BASE_FORMAT}"
        return f"now, of plain {BASE_FORMAT} where there are no batches"

    @property
    def assumed_of(self) -> tuple[str, ...]:
        """The sources whose batches are assumed."""
        return tuple(source.path for source in self.sources if source.is_assumed)

    @property
    def records(self) -> int:
        return sum(source.records for source in self.sources)

    @property
    def payload_bytes(self) -> int:
        return sum(source.payload_bytes for source in self.sources)

    @property
    def data_bytes(self) -> int:
        """All bytes of the parts, read or not."""
        return sum(max(source.size_bytes, source.sound_bytes) for source in self.sources) + sum(
            each.size_bytes for each in self.skipped if each.is_data
        )

    @property
    def lost_bytes(self) -> int:
        """Of data_bytes: damaged, cut off, unreadable."""
        return self.data_bytes - self.now_bytes

    @property
    def topics(self) -> tuple[str, ...]:
        """By `Source.stream`."""
        return tuple(dict.fromkeys(source.stream for source in self.sources))

    def size(self, format_name: str, codec: str) -> int | None:
        """The bytes of one arm as recorded; None where the format has no such codec."""
        return next((arm.size_bytes for arm in self.arms if (arm.format, arm.codec) == (format_name, codec)), None)

    def payload_of(self, name: str) -> int:
        """The payload that a format carries."""
        return sum(self.breakdown[name].get(part, 0) for part in PAYLOAD)

    def leaves_out(self, name: str) -> bool:
        """Whether the format cannot carry a part of the payload that is there."""
        return "headers" in self.losses[name]

    def month(self, size_bytes: int | None = None) -> Month | None:
        """A month of the log, if all of it took size_bytes; None: as base_bytes are."""
        if self.rate is None:
            return None
        share = 1.0 if size_bytes is None else size_bytes / self.base_bytes
        return month(self.rate.bytes_a_day * share, self.traffic, self.prices)

    def to_dict(self) -> dict[str, Any]:
        """Savings are shares of the bytes now, and of v2's under the same codec; below 0: it takes more."""
        return {
            "sources": [
                asdict(source) | {"damage": [asdict(each) for each in source.damage]} for source in self.sources
            ],
            "skipped": [asdict(each) for each in self.skipped],
            "now_bytes": self.now_bytes,
            "base_bytes": self.base_bytes,
            "lost_bytes": self.lost_bytes,
            "lost_share": self.lost_bytes / self.data_bytes if self.data_bytes else 0.0,
            "records": self.records,
            "sent_records": self.sent_records,
            "uniform_records": self.uniform_records,
            "payload_bytes": self.payload_bytes,
            "topics": list(self.topics),
            "assumed_batching": None if self.assumed is None else asdict(self.assumed),
            "assumed_of": list(self.assumed_of),
            "base_words": self.base_words,
            "columns": None if self.columns is None else asdict(self.columns),
            "rows_as_records": None if self.columns is None else self.columns.words,
            "sample": None if self.sample is None else asdict(self.sample),
            "headline": {
                name: [self._arm(arm, self.rebatched if arm.batching else self.arms) for arm in each]
                for name, each in self.headline.items()
            },
            "sizes": [self._arm(arm, self.arms) for arm in self.arms],
            "rebatched": [self._arm(arm, self.rebatched) for arm in self.rebatched],
            "illegal": [{"format": name, "codec": codec} for name, codec in self.illegal],
            "losses": {name: dict(losses) for name, losses in self.losses.items()},
            "breakdown": {name: dict(parts) for name, parts in self.breakdown.items()},
            "payload_left_out": [name for name in self.breakdown if self.leaves_out(name)],
            "break_even": [asdict(each) for each in self.break_even],
            "overhead_a_record": {str(level): dict(each) for level, each in self.overhead.items()},
            "rate": None if self.rate is None else _rate(self.rate),
            "traffic": {name: getattr(self.traffic, name) for name in ("fan_out", "replication", "retention_days")},
            "prices": {name: getattr(self.prices, name) for name in ("storage_gb_month", "network_gb")},
            "month_now": _month(self.month()),
        }

    def _arm(self, arm: Arm, others: Iterable[Arm]) -> dict[str, Any]:
        base = next(
            (o for o in others if (o.format, o.codec, o.batching) == (BASE_FORMAT, arm.codec, arm.batching)), None
        )
        size, against = arm.size_bytes, None if base is None else base.size_bytes
        of_month, now = None if size is None else self.month(size), self.month()
        return asdict(arm) | {
            "saving": None if size is None else saving(size, self.base_bytes),
            "saving_against_v2": None if size is None or against is None else saving(size, against),
            "month": _month(of_month),
            "saving_a_month": None if of_month is None or now is None else now.total - of_month.total,
        }


def _rate(rate: Rate) -> dict[str, Any]:
    return asdict(rate) | {"streams": [asdict(each) for each in rate.streams]}


def _month(found: Month | None) -> dict[str, float] | None:
    return None if found is None else asdict(found) | {"total": found.total}
