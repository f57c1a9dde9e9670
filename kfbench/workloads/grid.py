"""The workload `grid`: every property of its records is an axis, a parameter that a sweep can vary.

A sweep can vary one axis and fix the others. `GridPoint.describe` lists the assumptions. Keys, values and headers are
patterns: constant text with slots (gaps) for random characters. A table maps random bytes to the characters or words
that fill a slot.

The payload `template` compresses like real topics, because field names repeat from record to record, but values do not.
So it compresses better with more records per batch. Random and half-random payloads do not. The fields of the template
and the skew of its words are assumptions. They are tuned to real JSON topics under zstd-3, where the size of a batch
after compression is this share of its size before: 0.65-0.9 at 1 record per batch, 0.2-0.35 at 10, 0.1-0.25 at 100.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import lru_cache
from typing import Any, ClassVar, Final, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from kfbench.arrays import Bytes
from kfbench.batches import BatchFields
from kfbench.errors import InvalidConfig
from kfbench.layouts import NULL_LENGTH
from kfbench.records import Records, Shapes
from kfbench.workloads.base import (
    Description,
    NoSuchPoint,
    Parameter,
    Sample,
    TextColumn,
    check_slice,
    draw_words,
    regular_bounds,
)

Payload = Literal["random", "half", "template", "ones"]
PAYLOADS: Final[tuple[str, ...]] = get_args(Payload)

# Numbers of separate streams of random draws, so that changing one axis does not change draws for another.
TIMESTAMPS, NULLS, KEYS, VALUES, HEADERS = range(5)
START_OF_2026_MS: Final = 1_767_225_600_000
APPEND_DELAY_MS: Final = 5
PRODUCER_ID: Final = 4_711
MAX_OFFSET_DELTA: Final = 2**31 - 1  # an int32 in the batch header and in each record
MAX_TIMESTAMP_MS: Final = 2**63 - 1


@dataclass(frozen=True, kw_only=True)
class PatternSlot:
    """The bytes from index `start` to `stop` (exclusive) of a text, which are replaced by random characters or words.

    table: uint8[256] maps a random byte to a character. uint8[256, width] maps a random byte to a word. With None, the
    random bytes themselves fill the slot.
    """

    start: int
    stop: int
    table: Bytes | None

    @property
    def draws(self) -> int:
        return 1 if self.table is not None and self.table.ndim == 2 else self.stop - self.start


@dataclass(frozen=True, kw_only=True)
class Pattern:
    """A text with slots for random bytes. It is repeated and then cut to `length` bytes.

    Args:
        length: the length of each key, value or header value, in bytes.
        unit: uint8[any], the text that is repeated. Slots overwrite parts of it.
        slots: the slots in the unit, in ascending order.
    """

    length: int
    unit: Bytes
    slots: tuple[PatternSlot, ...]

    @property
    def _unit_draws(self) -> int:
        return sum(slot.draws for slot in self.slots)

    def make(self, seed: int, purpose: int, *, start: int, records: int) -> Bytes:
        """Return the bytes of the records from number `start` on: uint8[records, length].

        purpose: the number of a stream of random draws, so that keys, values and headers differ.
        """
        units, rest = divmod(self.length, len(self.unit))
        words = -(-((units + (rest > 0)) * self._unit_draws) // 8)
        drawn = draw_words(seed, purpose, start=start, records=records, words=words).view(np.uint8)
        out = np.empty((records, self.length), np.uint8)
        whole, whole_draws = units * len(self.unit), units * self._unit_draws
        self._fill(
            out[:, :whole].reshape(records, units, len(self.unit)),
            drawn[:, :whole_draws].reshape(records, units, self._unit_draws),
        )
        self._fill(out[:, None, whole:], drawn[:, None, whole_draws:])
        return out

    def _fill(self, out: NDArray[np.uint8], drawn: NDArray[np.uint8]) -> None:
        """Fill `out` with repetitions of the unit, and their slots with random characters.

        Args:
            out: uint8[records, units, bytes], with at most `len(self.unit)` bytes.
            drawn: uint8[records, units, draws], the random bytes.
        """
        width = out.shape[2]
        if not out.size:
            return
        out[:] = self.unit[:width]
        used = 0
        for slot in self.slots:
            if slot.start >= width:
                break
            stop = min(slot.stop, width)
            if slot.draws == 1 and slot.table is not None and slot.table.ndim == 2:
                out[:, :, slot.start : stop] = slot.table[drawn[:, :, used], : stop - slot.start]
            else:
                raw = drawn[:, :, used : used + stop - slot.start]
                out[:, :, slot.start : stop] = raw if slot.table is None else slot.table[raw]
            used += slot.draws


def _characters(alphabet: bytes) -> Bytes:
    return np.resize(np.frombuffer(alphabet, np.uint8), 256)


def _words(words: Sequence[str]) -> Bytes:
    """Return a table that maps a random byte to a word: uint8[256, width].

    The k-th word is about 1/k as likely as the first word. All words must have `width` bytes.
    """
    share = 1 / np.arange(1, len(words) + 1)
    until = np.rint(np.cumsum(share) / share.sum() * 256).astype(int)
    row = np.searchsorted(until, np.arange(256), side="right")
    return np.array([list(word.encode()) for word in words], np.uint8)[row]


_DIGITS: Final = _characters(b"0123456789")
_HEX: Final = _characters(b"0123456789abcdef")

# An event as services write it to a topic. <5d>: digits, <8x>: hex digits, <a|b>: one of these words.
_EVENT: Final = (
    '{"id":"<8x>","time":"2026-01-01T0<1d>:<0|1|2|3|4|5><1d>:<0|1|2|3|4|5><1d>.<3d>Z","type":"'
    '<page_view|item_list|add_to_ca|check_out|signed_in|searching>","user":<5d>,"status":<200|304|404|201|500>,'
    '"duration_ms":<2d>.<1d>,"method":"<GET |POST|PUT >","host":"www-<1d>.eu-central.example.com",'
    '"path":"/api/v1/<products|accounts|sessions|invoices|messages|settings>/<4d>","session":"<8x>",'
    '"bytes_sent":<4d>,"region":"<eu-central-1|us-east-1-az|ap-south-1-b>",'
    '"device":{"family":"<Android 15|iPhone 17 |Windows 11|macOS 26  |Linux x86 >",'
    '"screen_width":<1080|1170|1920|2560|1440>,"language":"<en-US|de-DE|fr-FR|es-ES|pt-BR|ja-JP>",'
    '"connection":"<wifi|4g  |5g  >"},"referrer":"https://www.<search|social|direct>.example.org/",'
    '"campaign":"<none      |spring26  |newsletter|retarget-a>",'
    '"experiment":{"name":"checkout-flow","bucket":"<control|test-a |test-b >","assigned":true},'
    '"cart":{"items":<1d>,"total_cents":<4d>,"currency":"<EUR|USD|GBP>","discount":null},'
    '"geo":{"country":"<DE|US|FR|GB|ES|JP>","city":"<Berlin  |New York|Paris   |London  |Madrid  |Tokyo   >",'
    '"lat":4<1d>.<3d>,"lon":1<1d>.<3d>},"feature_flags":["new-header","fast-search","dark-mode"],'
    '"app_version":"26.1.<1d>","sdk":{"name":"events-js","version":"4.12.0","transport":"beacon"},'
    '"retries":0,"sampled":true,"schema":"event-v3"}\n'
)


@lru_cache(maxsize=1)
def _event() -> tuple[Bytes, tuple[PatternSlot, ...]]:
    text, slots = b"", []
    for i, part in enumerate(re.split("<(.+?)>", _EVENT)):
        if i % 2 == 0:
            text += part.encode()
            continue
        if "|" in part:
            table = _words(part.split("|"))
            width = table.shape[1]
        else:
            table, width = {"d": _DIGITS, "x": _HEX}[part[-1]], int(part[:-1])
        slots.append(PatternSlot(start=len(text), stop=len(text) + width, table=table))
        text += bytes(width)
    return np.frombuffer(text, np.uint8), tuple(slots)


def _numbered_pattern(prefix: str, length: int, digits: int, characters: Bytes) -> Pattern:
    """Return a pattern of `length` bytes: a prefix, then zeros (the character "0"), then `digits` random characters."""
    constant = max(length - digits, 0)
    unit = np.frombuffer(prefix.encode()[:constant].ljust(length, b"0"), np.uint8)
    return Pattern(length=length, unit=unit, slots=(PatternSlot(start=constant, stop=length, table=characters),))


Part = Literal["key", "value", "header"]


@lru_cache(maxsize=64)
def pattern(part: Part, payload: str, length: int) -> Pattern:
    """Return the pattern of a key, value or header value of `length` bytes, at least 1. payload: one of PAYLOADS."""
    if payload == "template":
        if part == "key":
            return _numbered_pattern("user-", length, 5, _DIGITS)  # 100,000 users
        if part == "header":
            return _numbered_pattern("trace-", length, 8, _HEX)
        unit, slots = _event()
        return Pattern(length=length, unit=unit, slots=slots)
    unit = np.full(length, payload == "ones", np.uint8)
    random = {"random": length, "half": -(-length // 2), "ones": 0}[payload]
    slots = (PatternSlot(start=0, stop=random, table=None),) if random else ()
    return Pattern(length=length, unit=unit, slots=slots)


def names(prefix: str, length: int, count: int) -> Sequence[bytes]:
    """Return `count` header names of `length` bytes each. They end in a number of two digits, cut to `length`."""
    stem = (prefix + "0" * length)[: max(length - 2, 0)].encode()
    return [stem + f"{i:02d}".encode()[:length] for i in range(count)]


def _axis(default: object, meaning: str, *, unit: str = "", low: float = 0, high: float = 2**31 - 1) -> Any:
    return field(default=default, metadata={"meaning": meaning, "unit": unit, "low": low, "high": high})


@dataclass(frozen=True, kw_only=True)
class GridPoint:
    """The workload `grid` with one value for each axis. Each field is an axis.

    Raises InvalidConfig for an invalid value, and its child NoSuchPoint for values that are valid alone, but not
    together. The message begins with the name of the axis.
    """

    name: ClassVar[str] = "grid"
    summary: ClassVar[str] = "an axis per property: batch size, key, value, timestamp spread, headers, payload, nulls"

    batch_size: int = _axis(100, "records per batch", unit="records", low=1)
    key_bytes: int = _axis(16, "length of every key; null (-1) for no key", unit="bytes", low=NULL_LENGTH)
    value_bytes: int = _axis(100, "length of every value; null (-1) for tombstones", unit="bytes", low=NULL_LENGTH)
    timestamp_spread_ms: int = _axis(0, "last timestamp of a batch minus its first", unit="ms", high=2**62)
    headers: int = _axis(0, "headers per record", unit="headers", high=1_000)
    payload: str = _axis("template", "the content of keys and values: " + ", ".join(PAYLOADS))
    null_share: float = _axis(0.0, "share of the records whose value is null", high=1.0)
    header_key_bytes: int = _axis(12, "length of every header key", unit="bytes", low=0)
    header_value_bytes: int = _axis(20, "length of every header value; -1 for null", unit="bytes", low=NULL_LENGTH)
    offset_stride: int = _axis(1, "step between offsets; above 1: holes, as after compaction", low=1)
    base_timestamp_ms: int = _axis(
        START_OF_2026_MS, "first timestamp of each batch; -1 for none", unit="ms", low=-1, high=2**62
    )
    producer: bool = _axis(False, "idempotent producer: producer id, epoch and base sequence are set")
    append_time: bool = _axis(False, "log append time, 5 ms after the batch's last record")

    def __post_init__(self) -> None:
        for axis in fields(self):
            value, wanted = getattr(self, axis.name), type(axis.default)
            if wanted is float and type(value) is int:
                object.__setattr__(self, axis.name, float(value))
            elif type(value) is not wanted:
                raise InvalidConfig(f"{axis.name}: {wanted.__name__} is wanted, not {value!r}")
            if wanted in (int, float) and not axis.metadata["low"] <= value <= axis.metadata["high"]:
                raise InvalidConfig(
                    f"{axis.name}: {value} is not within {axis.metadata['low']} to {axis.metadata['high']}"
                )
        if self.payload not in PAYLOADS:
            raise InvalidConfig(f"payload: {self.payload!r} is not one of {', '.join(PAYLOADS)}")
        if (self.batch_size - 1) * self.offset_stride > MAX_OFFSET_DELTA:
            raise InvalidConfig(
                f"offset_stride: {self.offset_stride} at batch_size {self.batch_size} is a step of more than "
                f"{MAX_OFFSET_DELTA} from the first to the last offset of a batch"
            )
        if self.base_timestamp_ms + self.timestamp_spread_ms > MAX_TIMESTAMP_MS - APPEND_DELAY_MS:
            raise InvalidConfig(
                f"timestamp_spread_ms: {self.timestamp_spread_ms} after base_timestamp_ms {self.base_timestamp_ms} "
                "is beyond int64"
            )
        if self.batch_size == 1 and self.timestamp_spread_ms:
            raise NoSuchPoint(
                f"timestamp_spread_ms: one record per batch has no spread, not {self.timestamp_spread_ms}"
            )
        if self.value_bytes == NULL_LENGTH and self.null_share:
            raise NoSuchPoint("null_share: every value is null already (value_bytes is null)")

    @property
    def axes(self) -> Mapping[str, int | float | str | bool]:
        return {axis.name: getattr(self, axis.name) for axis in fields(self)}

    def describe(self) -> Description:
        return Description(
            question="What does one property change while all others stay the same?",
            story="A sweep varies its axes: their product, or one axis while the others keep their default.",
            variants=(),
            assumptions=(
                "All batches have the same base time, so the bytes of a batch depend only on its own records.",
                "Timestamps rise within a batch from its base, evenly with jitter.",
                "Null values are drawn independently.",
            ),
            parameters=tuple(
                Parameter(path=axis.name, value=axis.default, meaning=axis.metadata["meaning"]) for axis in fields(self)
            ),
        )

    def generate(self, *, records: int, seed: int, start: int = 0) -> Sample:
        """Return the records with the numbers start to start + records - 1. They may begin and end inside a batch."""
        check_slice(records, seed, start)
        number = np.arange(start, start + records)
        value_lengths = np.full(records, self.value_bytes, np.int32)
        if self.null_share:
            value_lengths[_uniform(seed, NULLS, start, records) < self.null_share] = NULL_LENGTH
        shapes = Shapes(
            timestamps_ms=self.base_timestamp_ms + self._spread(number, seed, start),
            offsets=number * self.offset_stride,
            key_lengths=np.full(records, self.key_bytes, np.int32),
            value_lengths=value_lengths,
            header_bounds=np.arange(records + 1) * self.headers,
            header_key_lengths=np.full(records * self.headers, self.header_key_bytes, np.int32),
            header_value_lengths=np.full(records * self.headers, self.header_value_bytes, np.int32),
        )
        bounds = regular_bounds(self.batch_size, records, start)
        return Sample(
            shapes=shapes,
            bounds=bounds,
            batch_fields=self._batch_fields(number[bounds[:-1]], shapes, bounds),
            payload=lambda: self._records(shapes, seed, start),
        )

    def _spread(self, number: NDArray[np.int64], seed: int, start: int) -> NDArray[np.int64]:
        """Return the time of each record after the base timestamp of its batch, in ms: int64[records].

        It is 0 for the first record of a batch, and `timestamp_spread_ms` for the last one.
        """
        if not self.timestamp_spread_ms:
            return np.zeros(len(number), np.int64)
        k, last = number % self.batch_size, self.batch_size - 1
        jitter = np.where((k == 0) | (k == last), 0.0, _uniform(seed, TIMESTAMPS, start, len(number)))
        spread = np.floor((k + jitter) / last * self.timestamp_spread_ms).astype(np.int64)
        return np.where(k == last, self.timestamp_spread_ms, spread)

    def _batch_fields(self, first: NDArray[np.int64], shapes: Shapes, bounds: NDArray[np.int64]) -> BatchFields:
        columns: dict[str, Any] = {}
        if self.producer:
            columns |= {"producer_id": PRODUCER_ID, "producer_epoch": 0, "base_sequence": first % 2**31}
        if self.append_time:
            last = shapes.timestamps_ms[bounds[1:] - 1]
            columns |= {"timestamp_type": 1, "append_time_ms": last + APPEND_DELAY_MS}
        return BatchFields(**columns)

    def _records(self, shapes: Shapes, seed: int, start: int) -> Records:
        records = len(shapes)

        def column(part: Part, purpose: int, length: int, per_record: int = 1) -> TextColumn:
            count = records * per_record
            if length <= 0 or not count:
                return TextColumn(np.zeros(0, np.uint8), np.zeros(count, np.int64))
            made = pattern(part, self.payload, length).make(seed, purpose, start=start * per_record, records=count)
            return TextColumn(made.reshape(-1), np.arange(count) * length)

        keys = column("key", KEYS, self.key_bytes)
        # Null values leave gaps in the buffer, so a record's bytes do not depend on the nulls of other records.
        values = column("value", VALUES, 0 if self.null_share == 1 else self.value_bytes)
        headers = column("header", HEADERS, self.header_value_bytes, self.headers)
        header_names = names("x-header-", self.header_key_bytes, self.headers)
        return Records(
            shapes=shapes,
            key_data=keys.data,
            key_starts=keys.starts,
            value_data=values.data,
            value_starts=values.starts,
            header_key_data=np.frombuffer(b"".join(header_names), np.uint8),
            header_key_starts=np.tile(np.arange(self.headers) * self.header_key_bytes, records),
            header_value_data=headers.data,
            header_value_starts=headers.starts,
        )


def _uniform(seed: int, purpose: int, start: int, records: int) -> NDArray[np.float64]:
    """Return uniform random numbers from 0 (inclusive) to 1 (exclusive): float64[records]."""
    drawn = draw_words(seed, purpose, start=start, records=records, words=1)[:, 0]
    return (drawn >> np.uint64(11)).astype(np.float64) * 2.0**-53


WORKLOADS: Final = {"grid": GridPoint()}
