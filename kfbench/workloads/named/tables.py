"""The classes of the tables in a named workload's TOML file (the docstring of `file` explains the keys).

Each class checks its values when the file is read, and raises InvalidConfig.
"""

from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from kfbench.workloads.named.arrivals import Arrival, block_us
from kfbench.workloads.named.batching import Batching, CompactionSurvivors, Linger, Transactions
from kfbench.workloads.named.distributions import Distribution, lengths_table, require
from kfbench.workloads.named.keys import KeyDistribution
from kfbench.workloads.payload.template import Template

Band = tuple[float, float]
Share = Annotated[float, Meta(ge=0, le=1)]
MAX_OTHERS: Final = 32


class _Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    pass


class TimestampRules(_Table, frozen=True, kw_only=True):
    """The table [time]: timestamps that differ from the times at which records reach the producer.

    Args:
        same_in_batch: True if all records of a batch have the time of its first record, as in one database transaction.
        period_ms: the time between two records of a batch, as in a device that collects records before it sends them.
            The last record of a batch has its time of arrival. 0: not used.
        lag_ms: the age of a record at its arrival, drawn per record. So records may be out of order.
        append_time: True if the broker's append time replaces the timestamps. It is 5 ms after the arrival of the last
            record of the batch.
    """

    same_in_batch: bool = False
    period_ms: Annotated[int, Meta(ge=0, lt=2**40)] = 0
    lag_ms: Distribution | None = None
    append_time: bool = False

    def __post_init__(self) -> None:
        require(not (self.same_in_batch and self.period_ms), "period_ms: it contradicts same_in_batch")


class Producer(_Table, frozen=True, kw_only=True):
    idempotent: bool = True


class Part(_Table, frozen=True, kw_only=True):
    """A text template for keys, values or header values, and the distribution of their lengths.

    length: the distribution of lengths in bytes; None: the lengths that the template produces.
    """

    template: str
    length: Distribution | None = None

    def __post_init__(self) -> None:
        if self.length is not None and not self.parsed.elastic:
            is_cut = bool(lengths_table(self.length)[-1] <= self.parsed.least_bytes)
            require(is_cut, "length: no slot of template is elastic")

    @property
    def parsed(self) -> Template:
        return Template.parse(self.template)

    @property
    def same_length(self) -> int | None:
        """The length of all texts in bytes if they are equally long, else None."""
        if self.length is None:
            least, most = self.parsed.least_bytes, self.parsed.most_bytes
        else:
            least, most = lengths_table(self.length)[[0, -1]].tolist()
        return least if least == most else None


class Key(Part, frozen=True, kw_only=True):
    cardinality: int | None = None
    skew: float = 0.0
    in_turn: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        _ = self.distribution

    @property
    def distribution(self) -> KeyDistribution:
        return KeyDistribution(cardinality=self.cardinality, skew=self.skew, in_turn=self.in_turn)


class Value(Part, frozen=True, kw_only=True):
    null_share: Share = 0.0


class Header(Part, frozen=True, kw_only=True):
    name: str


class Other(_Table, frozen=True, kw_only=True):
    share: Share
    key: Key | None = None
    value: Value | None = None
    tombstone: bool = False


class Model(_Table, frozen=True, kw_only=True):
    """All tables of a workload, or of a variant of it."""

    summary: str
    question: str
    class_: str = msgspec.field(name="class", default="")
    story: str
    arrival: Arrival
    batching: Batching
    value: Value
    assumptions: list[str] = []
    sources: dict[str, Any] = {}
    time: TimestampRules = TimestampRules()
    producer: Producer = Producer()
    key: Key | None = None
    bands: dict[str, tuple[Band, Band, Band]] = {}
    header: list[Header] = []
    other: list[Other] = []

    def __post_init__(self) -> None:
        block_us(self.arrival)
        require(len(self.other) <= MAX_OTHERS, f"other: {len(self.other)} kinds, but {MAX_OTHERS} are possible")
        require(sum(each.share for each in self.other) < 1 + 1e-9, "other: the sum of the shares is above 1")
        for each in self.other:
            require(
                not each.tombstone or (each.key is None and self.key is not None),
                "other: a tombstone needs [key] and has no other key",
            )
        if isinstance(self.batching, Transactions):
            require(not self.header, "header: markers have no headers")
            require(not self.has_tombstones, "other: transactions have no tombstones")
        if isinstance(self.batching, CompactionSurvivors):
            require(not self.has_tombstones, "other: compaction removes the record before a tombstone")
            distinct = all(key is None or key.cardinality is None for key, _ in self.parts)
            require(distinct, "key.cardinality: each key survives once, so each survivor has a different key")
        if isinstance(self.batching, Linger):
            require(
                not (self.time.same_in_batch or self.time.period_ms),
                "time: batches depend on timestamps, so timestamps cannot depend on batches",
            )

    @property
    def has_kinds(self) -> bool:
        return bool(self.other) or isinstance(self.batching, Transactions)

    @property
    def has_tombstones(self) -> bool:
        return any(each.tombstone for each in self.other)

    @property
    def parts(self) -> list[tuple[Key | None, Value]]:
        """The key and value tables of each kind of record: plain records first, then those of the [[other]] tables."""
        return [(self.key, self.value), *((each.key or self.key, each.value or self.value) for each in self.other)]
