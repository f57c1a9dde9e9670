"""The answer of a what-if as typed values: the size of a log now, and in other formats, codecs and batches."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import inf
from typing import TYPE_CHECKING, Any, Final, Literal

import msgspec

from kfbench.formats import BASE_FORMAT, PROPOSED, SHIPPED
from kfbench.money import Month, Prices, Traffic, month
from kfbench.plugins import PluginClash
from kfbench.sources import Columns, Skipped
from kfbench.sources.time_columns import Unit
from kfbench.whatif.more import WHATIF_TABLES
from kfbench.whatif.rate import Rate
from kfbench.whatif.rebatch import Batching
from kfbench.whatif.sums import StoredSource

if TYPE_CHECKING:
    import pandas as pd

# Names of the groups of formats in the headline, in the order in which they are shown.
TODAY: Final = "today"
PROPOSALS: Final = "proposed"
OWN: Final = "own"
AS_RECORDED: Final = "as recorded"  # the log's own batches

# The keys of --json. Those of WHATIF_TABLES stand between them.
FIRST_KEYS: Final = (
    "sources", "skipped", "now_bytes", "base_bytes", "lost_bytes", "lost_share", "records", "sent_records",
    "uniform_records", "payload_bytes", "topics", "assumed_batching", "assumed_of", "base_words", "timestamp_unit",
    "timestamp_unit_from", "columns", "rows_as_records", "sample", "headline", "best", "levels", "by_topic",
)  # fmt: skip
LAST_KEYS: Final = (
    "sizes", "rebatched", "illegal", "losses", "breakdown", "payload_left_out", "break_even", "overhead_a_record",
    "rate", "traffic", "prices", "month_now",
)  # fmt: skip


def check_further_tables() -> None:
    """Raise PluginClash if a package registers a what-if table with the name of a key of --json."""
    if taken := WHATIF_TABLES.keys() & {*FIRST_KEYS, *LAST_KEYS}:
        name = min(taken)
        raise PluginClash(f"{name}: {WHATIF_TABLES.package(name)} registers it, but kfbench's --json has this key")


@dataclass(frozen=True, kw_only=True)
class LogSize:
    """The size of all undamaged batches in one combination of format, codec and batches.

    Args:
        level: the codec's level; None: it has no levels.
        size_bytes: None: no batches were compressed as a sample, so there is no estimate.
        error_bytes: the standard error of an estimate. 0: the size is exact. None: the sample is a single stretch of
            consecutive batches.
        batching: the producer's settings for other batches; None: the log's own batches.
        batches: the number of other batches.
    """

    format: str
    codec: str
    level: int | None
    codec_version: str
    size_bytes: int | None
    error_bytes: int | None = 0
    batching: Batching | None = None
    batches: int | None = None

    @property
    def is_estimate(self) -> bool:
        return self.error_bytes != 0


@dataclass(frozen=True, kw_only=True)
class Level:
    """The size of v2 at one level of a codec, in the log's own batches.

    Args:
        is_default: this is the codec's default level.
        size_bytes, error_bytes: see `LogSize`.
        cpu_ms_per_mb: CPU time in ms to encode and compress 10**6 bytes of uncompressed v2, by one thread of this
            machine.
    """

    codec: str
    level: int
    is_default: bool
    size_bytes: int | None
    error_bytes: int | None
    cpu_ms_per_mb: float = field(compare=False)


@dataclass(frozen=True, kw_only=True)
class Crossing:
    """The result that `format` takes fewer bytes than `other` from `at` records per batch on; None: it never does.

    after: the largest tested number of records per batch at which it does not; None: it does at each.
    """

    format: str
    other: str
    after: int | None
    at: int | None

    @property
    def words(self) -> str:
        """The result in words. Examples: "5", "11-12" (at one of these numbers), "always", "never"."""
        if self.at is None:
            return "never"
        if self.after is None:
            return "always" if self.at == 1 else f"{self.at:,} or before"
        return f"{self.at:,}" if self.at == self.after + 1 else f"{self.after + 1:,}-{self.at:,}"


@dataclass(frozen=True, kw_only=True)
class TopicAnswer:
    """The size of one topic now, and the smallest way to store it in v2.

    If the topic is unknown, a file or folder takes its place.

    Args:
        best: see `WhatIf.best`.
        timestamp_unit, timestamp_unit_from: see `TopicUnit`.
        timestamp_unit_doubt: the reason why the unit is unknown. There are no other batches then.
        has_whole_seconds: True if nearly all timestamps are whole seconds.
    """

    topic: str
    base_bytes: int
    records: int
    batches: int
    best: LogSize
    timestamp_unit: Unit | None = None
    timestamp_unit_from: Literal["values", "option"] | None = None
    timestamp_unit_doubt: str | None = None
    has_whole_seconds: bool = False

    @property
    def saving(self) -> float | None:
        return None if self.best.size_bytes is None else saving(self.best.size_bytes, self.base_bytes)

    @property
    def least_bytes(self) -> int | None:
        """The bytes of `best`, or those now if they are fewer. None: there is no estimate."""
        return None if self.best.size_bytes is None else min(self.best.size_bytes, self.base_bytes)


@dataclass(frozen=True, kw_only=True)
class CodecSample:
    """The size of the sample that was compressed.

    Args:
        share: the wanted share of all bytes, 0 to 1.
        seed: the seed that chose the sample. None: unknown, in the answer of a fingerprint.
        plain_bytes: bytes of uncompressed v2 in the sample.
        of_bytes: bytes of uncompressed v2 in the whole source.
        stretches: number of stretches in the sample. A stretch is about 64 KiB of consecutive batches.
    """

    share: float
    seed: int | None
    plain_bytes: int
    of_bytes: int
    stretches: int

    @property
    def is_partial(self) -> bool:
        return self.plain_bytes < self.of_bytes


@dataclass(frozen=True, kw_only=True)
class WhatIf:
    """The size of a log now, and in every format and codec.

    Args:
        sources: the files or partitions that were read.
        skipped: the files or partitions that were not read.
        arms: a size per format and codec, in the log's own batches (assumed ones if it has none).
        rebatched: sizes of the same records in other batches; empty if a topic's timestamps have an unknown unit.
        breakdown: format -> {field: bytes}, without a codec, in the batches of `arms`.
        losses: format -> {property that it cannot carry: number of items}.
        illegal: the requested pairs of format and codec that no Kafka version has.
        break_even: the batch sizes from which one format takes fewer bytes than another.
        overhead: records per batch -> {format: bytes per record without keys, values and headers}.
        assumed: the producer's settings for assumed batches; None: all sources have batches.
        rate: None: neither the log nor the user gives a rate.
        sent_records: number of records, without control records.
        uniform_records: number of records in `break_even` and `overhead`.
        columns: the columns of tables that make a record; None: there is no table.
        levels: the sizes of v2 at other levels.
        more: the answers of further questions (WHATIF_TABLES), by name.
        is_fingerprint: True if the source is a fingerprint of a log.
    """

    sources: tuple[StoredSource, ...]
    skipped: tuple[Skipped, ...]
    arms: tuple[LogSize, ...]
    rebatched: tuple[LogSize, ...]
    breakdown: Mapping[str, Mapping[str, int]]
    losses: Mapping[str, Mapping[str, int]]
    illegal: tuple[tuple[str, str], ...]
    break_even: tuple[Crossing, ...]
    overhead: Mapping[int, Mapping[str, float]]
    sample: CodecSample | None
    assumed: Batching | None
    rate: Rate | None
    traffic: Traffic
    prices: Prices
    sent_records: int
    uniform_records: int
    columns: Columns | None = None
    levels: tuple[Level, ...] = ()
    by_topic: tuple[TopicAnswer, ...] = ()
    more: Mapping[str, Any] = field(default_factory=dict)
    is_fingerprint: bool = False

    @property
    def timestamp_unit(self) -> Unit | None:
        """The unit in which the timestamps of all topics were read; None: there is none, or more than one."""
        units = {each.timestamp_unit for each in self.by_topic}
        return units.pop() if len(units) == 1 else None

    @property
    def unit_doubts(self) -> dict[str, str]:
        """The topics whose timestamps have an unknown unit, and the reasons."""
        return {each.topic: each.timestamp_unit_doubt for each in self.by_topic if each.timestamp_unit_doubt}

    @property
    def best(self) -> LogSize:
        """The size of v2 with the fewest bytes, of all codecs at default levels, and of all batches."""
        return smallest(arm for arm in (*self.arms, *self.rebatched) if arm.format == BASE_FORMAT)

    @property
    def compressed_formats(self) -> tuple[str, ...]:
        """The formats that were compressed in other batches; without any codec but "none", all formats."""
        with_codec = tuple(dict.fromkeys(arm.format for arm in self.rebatched if arm.codec != "none"))
        return with_codec or tuple(dict.fromkeys(arm.format for arm in self.rebatched))

    @property
    def headline(self) -> dict[str, tuple[LogSize, ...]]:
        """The sizes with the fewest bytes per group of formats: first in the log's own batches, then in other batches.

        In other batches only `compressed_formats` compete. Any other format has no compressed size there. A format that
        loses something does not compete, unless it is v2.
        """
        others = [
            arm for arm in self.rebatched if arm.format in self.compressed_formats and arm.batching != self.assumed
        ]
        groups = {TODAY: {BASE_FORMAT}, PROPOSALS: PROPOSED, OWN: self.breakdown.keys() - SHIPPED - PROPOSED}
        found: dict[str, tuple[LogSize, ...]] = {}
        for group, formats in groups.items():
            lossless = {name for name in formats if name == BASE_FORMAT or not self.losses.get(name)}
            competing = [
                [arm for arm in arms if arm.size_bytes is not None and arm.format in lossless]
                for arms in (self.arms, others)
            ]
            found[group] = tuple(smallest(arms) for arms in competing if arms)
        return found

    @property
    def now_bytes(self) -> int:
        """The number of bytes that could be read, as they are stored."""
        return sum(source.sound_bytes for source in self.sources)

    @property
    def base_bytes(self) -> int:
        """The number of bytes of which savings are shares.

        It is the size now. A source without batches counts as uncompressed v2 in the assumed batches.
        """
        return sum(source.base_bytes for source in self.sources)

    @property
    def base_words(self) -> str:
        """A description of `base_bytes`, to follow "the 1,000 bytes"."""
        if self.assumed is None:
            return "now"
        if all(source.is_assumed for source in self.sources if source.records):
            return f"of plain {BASE_FORMAT}"
        return f"now, of plain {BASE_FORMAT} where there are no batches"

    @property
    def codecs_now(self) -> set[str]:
        """The codecs of the log's batches; empty if no source has batches."""
        return {kind.rpartition(" ")[2] for source in self.sources for kind in source.kinds}

    @property
    def batches_words(self) -> str:
        """A description of the batches in which the sizes in `arms` are."""
        return "batches as recorded" if self.assumed is None else self.assumed.words

    @property
    def assumed_of(self) -> tuple[str, ...]:
        """The paths of the sources whose batches are assumed."""
        return tuple(source.path for source in self.sources if source.is_assumed)

    @property
    def records(self) -> int:
        return sum(source.records for source in self.sources)

    @property
    def payload_bytes(self) -> int:
        return sum(source.payload_bytes for source in self.sources)

    @property
    def data_bytes(self) -> int:
        """The number of all bytes of the sources, read or not."""
        return sum(max(source.size_bytes, source.sound_bytes) for source in self.sources) + sum(
            each.size_bytes for each in self.skipped if each.is_data
        )

    @property
    def lost_bytes(self) -> int:
        """The part of `data_bytes` that is damaged, cut off or unreadable."""
        return self.data_bytes - self.now_bytes

    @property
    def topics(self) -> tuple[str, ...]:
        """The names of all topics; of the file or folder if the topic is unknown (`StoredSource.stream`)."""
        return tuple(dict.fromkeys(source.stream for source in self.sources))

    def size(self, format_name: str, codec: str) -> int | None:
        """Return the size in bytes with this format and codec in the log's own batches.

        None: the format has no such codec, or there is no estimate.
        """
        return next((arm.size_bytes for arm in self.arms if (arm.format, arm.codec) == (format_name, codec)), None)

    def to_pandas(self) -> "pd.DataFrame":
        """Return a row per combination of format, codec and batches.

        Columns: format, codec, level, linger_ms, batch_size_bytes, batches, size_bytes, error_bytes, saving (share of
        `base_bytes`), saving_against_v2, is_best.
        """
        import pandas as pd

        return pd.DataFrame(
            {
                "format": arm.format,
                "codec": arm.codec,
                "level": arm.level,
                "linger_ms": None if arm.batching is None else arm.batching.linger_ms,
                "batch_size_bytes": None if arm.batching is None else arm.batching.batch_size_bytes,
                "batches": arm.batches,
                "size_bytes": arm.size_bytes,
                "error_bytes": arm.error_bytes,
                "saving": self.saving(arm),
                "saving_against_v2": self.saving_against_v2(arm),
                "is_best": arm == self.best,
            }
            for arm in (*self.arms, *self.rebatched)
        )

    def _repr_html_(self) -> str:
        """Show the rows of `to_pandas` in a notebook, smallest first."""
        html: str = self.to_pandas().sort_values("size_bytes").to_html(index=False, na_rep="–")
        return html

    @property
    def without_headers(self) -> list[str]:
        """The formats that cannot carry the headers of these records."""
        return [name for name in self.breakdown if "headers" in self.losses[name]]

    def saving(self, arm: LogSize) -> float | None:
        """Return the share of `base_bytes` that this size saves; below 0: it takes more."""
        return None if arm.size_bytes is None else saving(arm.size_bytes, self.base_bytes)

    def saving_against_v2(self, arm: LogSize) -> float | None:
        """Return the share that this size saves of v2's bytes with the same codec in the same batches."""
        place = (BASE_FORMAT, arm.codec, arm.batching)
        arms = self.rebatched if arm.batching else self.arms
        base = next((each.size_bytes for each in arms if (each.format, each.codec, each.batching) == place), None)
        return None if arm.size_bytes is None or base is None else saving(arm.size_bytes, base)

    def month(self, size_bytes: int | None = None) -> Month | None:
        """Return the cost of a month if the whole log took size_bytes (None: `base_bytes`).

        Without a rate, return None.
        """
        if self.rate is None:
            return None
        share = 1.0 if size_bytes is None else size_bytes / self.base_bytes
        return month(self.rate.bytes_a_day * share, self.traffic, self.prices)

    def month_of_topic(self, topic: TopicAnswer, size_bytes: int) -> Month | None:
        """Return the cost of a month if this topic took size_bytes. Without a rate of the topic, return None."""
        if self.rate is None:
            return None
        if self.rate.told_by == "user":
            bytes_a_day = self.rate.bytes_a_day * topic.base_bytes / self.base_bytes
        else:
            bytes_a_day = next((each.bytes_a_day for each in self.rate.streams if each.name == topic.topic), 0.0)
        if not bytes_a_day:
            return None
        return month(bytes_a_day * size_bytes / topic.base_bytes, self.traffic, self.prices)

    def month_of(self, arm: LogSize) -> Month | None:
        return None if arm.size_bytes is None else self.month(arm.size_bytes)

    def dollars_saved(self, arm: LogSize) -> float | None:
        """Return the US$ per month that this size saves; below 0: it costs more."""
        of_arm, now = self.month_of(arm), self.month()
        return None if of_arm is None or now is None else now.total - of_arm.total

    def to_dict(self) -> dict[str, Any]:
        """Return values for --json.

        Savings are shares of the bytes now, and of v2's bytes with the same codec.
        """
        has_unit, columns = self.timestamp_unit is not None, self.columns
        values: dict[str, Any] = {
            "lost_share": self.lost_bytes / self.data_bytes if self.data_bytes else 0.0,
            "assumed_batching": _plain(self.assumed),
            "timestamp_unit_from": self.by_topic[0].timestamp_unit_from if has_unit else None,
            "rows_as_records": None if columns is None else columns.words,
            "headline": {group: [self._size(arm) for arm in arms] for group, arms in self.headline.items()},
            "best": self._size(self.best),
            "by_topic": [
                _plain(each) | {"best": self._size(each.best, each), "saving": each.saving} for each in self.by_topic
            ],
            "sizes": [self._size(arm) for arm in self.arms],
            "rebatched": [self._size(arm) for arm in self.rebatched],
            "illegal": [{"format": name, "codec": codec} for name, codec in self.illegal],
            "payload_left_out": self.without_headers,
            "overhead_a_record": _plain(self.overhead),
            "traffic": {name: getattr(self.traffic, name) for name in ("fan_out", "replication", "retention_days")},
            "prices": {name: getattr(self.prices, name) for name in ("storage_gb_month", "network_gb")},
            "month_now": _month(self.month()),
        } | {name: each.to_dict(self) if name in self.more else None for name, each in WHATIF_TABLES.items()}
        names = (*FIRST_KEYS, *WHATIF_TABLES, *LAST_KEYS)
        return {name: values[name] if name in values else _plain(getattr(self, name)) for name in names}

    def _size(self, arm: LogSize, topic: TopicAnswer | None = None) -> dict[str, Any]:
        """Return values for JSON. topic: savings and months are of this topic's bytes, not of all."""
        if topic is None:
            saving, then, now = self.saving(arm), self.month_of(arm), self.month()
        else:
            saving, now = topic.saving, self.month_of_topic(topic, topic.base_bytes)
            then = None if arm.size_bytes is None else self.month_of_topic(topic, arm.size_bytes)
        values: dict[str, Any] = _plain(arm)
        return values | {
            "is_estimate": arm.is_estimate,
            "saving": saving,
            "saving_against_v2": None if topic else self.saving_against_v2(arm),
            "month": _month(then),
            "saving_a_month": None if then is None or now is None else now.total - then.total,
        }


def saving(size: int, base: int) -> float:
    """Return the saved share of `base`; below 0: `size` is larger than `base`."""
    return 1 - size / base if base else 0.0


def smallest(arms: Iterable[LogSize]) -> LogSize:
    """Return the size with the fewest bytes; of equal ones, the first. Sizes without an estimate come last."""
    return min(arms, key=lambda arm: inf if arm.size_bytes is None else arm.size_bytes)


def _month(found: Month | None) -> dict[str, float] | None:
    return None if found is None else _plain(found) | {"total": found.total}


def _plain(value: Any) -> Any:
    """Return dataclasses as dictionaries, whose keys are texts."""
    return msgspec.to_builtins(value, str_keys=True)
