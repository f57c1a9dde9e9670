"""Read a named workload's TOML file (in datasets/workloads/). Its tables and keys are:

summary, question, story, assumptions = […]      texts for readers
class            the row in a report's verdict table that includes this workload; without it, the workload has its own
                 row
[sources]        the source of each number. The key is the path of the number or of its table. A text that begins with
                 "assumed: " means that there is no source
[arrival]        the times when records reach the producer (`arrivals`): process = "poisson", rate_per_s = …
[batching]       the records that share a batch (`batching`): model = "linger", linger_ms = …
[time]           timestamps that differ from the time of arrival
[producer]       idempotent = false turns idempotence off (Kafka's default is true since 3.0)
[key]            template (`payload.template`), length (`distributions`; default: the template's own), cardinality,
                 skew, in_turn (`keys`). Without this table, keys are null
[value]          template, length, null_share
[[header]]       name, template, length. Every record has all headers, in this order
[[other]]        records of another kind: their `share` of all records, and a key and value if they differ. With
                 tombstone = true, a record with the same key and a null value follows, as after a delete
[bands]          the expected size of the records after compression by each codec, as a share of their size before:
                 [least, most] for batches of 1, 10 and 100 records. Record headers are included, batch headers are not
[variant.NAME]   tables that replace single keys of the tables above. A table with one of the keys process, model or
                 dist replaces the whole table. `without = ["key"]` removes the table [key]

Each table has a class, which checks its values when the file is read, and raises InvalidConfig.
"""

from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from kfbench.errors import InvalidConfig
from kfbench.workloads.base import Parameter
from kfbench.workloads.named.arrivals import Arrival, block_us
from kfbench.workloads.named.batching import Batching, CompactionSurvivors, Linger, Transactions
from kfbench.workloads.named.distributions import Distribution, KeyDistribution, lengths_table, require
from kfbench.workloads.payload.template import Template

KINDS: Final = ("process", "model", "dist")  # keys that choose the class of a table
WORDS: Final = (*KINDS, "name", "without")  # keys whose values are words, which need no source
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


class ProducerTable(_Table, frozen=True, kw_only=True):
    idempotent: bool = True


class TextTable(_Table, frozen=True, kw_only=True):
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


class KeyTable(TextTable, frozen=True, kw_only=True):
    cardinality: int | None = None
    skew: float = 0.0
    in_turn: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        _ = self.distribution

    @property
    def distribution(self) -> KeyDistribution:
        return KeyDistribution(cardinality=self.cardinality, skew=self.skew, in_turn=self.in_turn)


class ValueTable(TextTable, frozen=True, kw_only=True):
    null_share: Share = 0.0


class HeaderTable(TextTable, frozen=True, kw_only=True):
    name: str


class OtherTable(_Table, frozen=True, kw_only=True):
    share: Share
    key: KeyTable | None = None
    value: ValueTable | None = None
    tombstone: bool = False


class Texts(msgspec.Struct, frozen=True, kw_only=True):
    """The texts of a file for readers."""

    summary: str
    question: str
    story: str
    class_: str = msgspec.field(name="class", default="")
    assumptions: list[str] = []


class WorkloadModel(Texts, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All tables of a workload, or of a variant of it."""

    arrival: Arrival
    batching: Batching
    value: ValueTable
    sources: dict[str, Any] = {}
    time: TimestampRules = TimestampRules()
    producer: ProducerTable = ProducerTable()
    key: KeyTable | None = None
    bands: dict[str, tuple[Band, Band, Band]] = {}
    header: list[HeaderTable] = []
    other: list[OtherTable] = []

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
    def parts(self) -> list[tuple[KeyTable | None, ValueTable]]:
        """The key and value tables of each kind of record: plain records first, then those of the [[other]] tables."""
        return [(self.key, self.value), *((each.key or self.key, each.value or self.value) for each in self.other)]


@lru_cache(maxsize=256)
def load(path: Path, variant: str | None = None) -> WorkloadModel:
    """Read and check the tables of a file, or of one of its variants. Raises InvalidConfig with the file and key."""
    tables = dict(_tables(path))
    found = tables.pop("variant", {})
    if variant is not None:
        if variant not in found:
            known = ", ".join(found) or "none"
            raise InvalidConfig(f"{path}: no variant {variant!r} (variants: {known})")
        over = dict(found[variant])
        for name in over.pop("without", []):
            if name not in tables:
                raise InvalidConfig(f"{path}: variant.{variant}.without: no table {name!r}")
            del tables[name]
        tables = _laid_over(tables, over)
    try:
        return msgspec.convert(tables, WorkloadModel)
    except (msgspec.ValidationError, InvalidConfig) as error:
        raise InvalidConfig(f"{path}: {f'variant.{variant}: ' if variant else ''}{error}") from None


class Prose(Texts, frozen=True, kw_only=True):
    variant: dict[str, Any] = {}


@lru_cache(maxsize=64)
def prose(path: Path) -> Prose:
    """Return the texts of a file and its variants by name, without checking its numbers.

    Raises InvalidConfig for missing texts.
    """
    try:
        return msgspec.convert(_tables(path), Prose)
    except msgspec.ValidationError as error:
        raise InvalidConfig(f"{path}: {error}") from None


@lru_cache(maxsize=64)
def _tables(path: Path) -> Mapping[str, Any]:
    try:
        found: dict[str, Any] = msgspec.toml.decode(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidConfig(f"{path}: cannot be read: {error}") from None
    except msgspec.DecodeError as error:
        raise InvalidConfig(f"{path}: {error}") from None
    laid = found.get("variant", {})
    if not isinstance(laid, dict) or not all(isinstance(each, dict) for each in laid.values()):
        raise InvalidConfig(f"{path}: variant: tables [variant.NAME] are wanted")
    return found


def _laid_over(tables: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    found = dict(tables)
    for name, value in over.items():
        below = found.get(name)
        merged = isinstance(value, dict) and isinstance(below, dict) and not value.keys() & set(KINDS)
        found[name] = _laid_over(below, value) if merged else value  # type: ignore[arg-type]
    return found


def parameters(path: Path) -> list[Parameter]:
    """Return all numbers and words of a file except its texts, in the order of the file, with their sources.

    The source of a variant's number is stored under `variant.NAME.PATH`. If it is missing, the source of the number
    that the variant replaces is used.
    """
    tables = dict(_tables(path))
    sources = dict(_leaves(tables.pop("sources", {}), ""))
    for name in ("summary", "question", "class", "story", "assumptions"):
        tables.pop(name, None)
    found = []
    for where, value in _leaves(tables, ""):
        source = _source(sources, where)
        if source is None and where.startswith("variant."):
            source = _source(sources, where.split(".", 2)[2])
        found.append(Parameter(path=where, value=value, source=source))
    return found


def _source(sources: Mapping[str, Any], where: str) -> str | None:
    """Return the source of a number by its dotted path, or else of the nearest table that contains it, or None."""
    while where:
        if where in sources:
            return str(sources[where])
        where = where.rpartition(".")[0]
    return None


def _leaves(value: Any, where: str) -> Iterator[tuple[str, Any]]:
    """Yield the dotted path and the value of each number, word or list in nested tables.

    A table in a list appears in the path by its key `name`, or by its index if it has no name.
    """
    if isinstance(value, dict):
        for name, each in value.items():
            yield from _leaves(each, f"{where}.{name}" if where else name)
    elif isinstance(value, list) and value and all(isinstance(each, dict) for each in value):
        for i, each in enumerate(value):
            yield from _leaves(each, f"{where}.{each.get('name', i)}")
    else:
        yield where, value
