"""Header fields of batches, logs as bytes (`EncodedLog`), logs as records (`DecodedLog`), and plans of batches."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kfbench.arrays import Bytes, Int32, Int64, freeze, group_bounds, integers_of
from kfbench.codecs import Dictionary, codec_names
from kfbench.errors import CorruptLog, InvalidRecords
from kfbench.kernels.wire import frames
from kfbench.layouts import (
    NO_PARTITION_LEADER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    TAGGED_BIT,
    UNSET,
)
from kfbench.records import Records
from kfbench.varints import NO_TAGGED_FIELDS, encode_tagged_fields

if TYPE_CHECKING:
    import pandas as pd

CHUNK_BYTES: Final = 8 << 20  # uncompressed bytes that are in memory at a time before they are compressed
CACHED_BATCHES: Final = 1 << 16  # a plan with more batches is not cached; one with this many takes half a megabyte
CREATE_TIME, APPEND_TIME = 0, 1
TIMESTAMP_TYPES: Final = ("create", "append", "none")  # "none": magic 0, which has no timestamps

# The fields that BatchFields takes: type and default. UNSET: the encoder computes the value from the records.
_TYPE_AND_DEFAULT: Final[Mapping[str, tuple[type[np.generic], Any]]] = {
    "base_offset": (np.int64, UNSET),
    "last_offset": (np.int64, UNSET),
    "base_timestamp_ms": (np.int64, UNSET),  # the first record's, or the delete horizon
    "max_timestamp_ms": (np.int64, UNSET),  # the records' maximum, or the append time
    "append_time_ms": (np.int64, NO_TIMESTAMP),
    "delete_horizon_ms": (np.int64, NO_TIMESTAMP),
    "producer_id": (np.int64, NO_PRODUCER_ID),
    "base_sequence": (np.int32, NO_SEQUENCE),
    "partition_leader_epoch": (np.int32, NO_PARTITION_LEADER_EPOCH),
    "producer_epoch": (np.int16, NO_PRODUCER_EPOCH),
    "timestamp_type": (np.int8, CREATE_TIME),
    "is_transactional": (np.bool_, False),
    "is_control": (np.bool_, False),
}
FIELD_DEFAULTS: Final[Mapping[str, Any]] = {name: default for name, (_, default) in _TYPE_AND_DEFAULT.items()}
# A row also says where the tagged fields of its batch are in BatchFields.tags: first byte, bytes, number of fields.
_TAG_COLUMNS: Final = ("tags_start", "tags_bytes", "tags_count")
FIELDS: Final = np.dtype(
    [*((name, np.int64) for name in _TAG_COLUMNS), *((name, kind) for name, (kind, _) in _TYPE_AND_DEFAULT.items())],
    align=True,
)
FIELD_NAMES: Final = frozenset(FIELD_DEFAULTS) | {"tagged_fields"}  # the names that BatchFields takes
_NO_TAGS: Final = np.frombuffer(b"", np.uint8)

# One row per batch that was read. DecodedLog.batches has these columns, but codec and timestamp type as names.
BATCH: Final = np.dtype(
    [
        ("position", np.int64),  # the byte of the log at which the batch begins
        ("size_bytes", np.int64),
        ("magic", np.int8),
        ("crc", np.uint32),
        ("attributes", np.int16),
        ("codec", np.int8),
        ("timestamp_type", np.int8),
        ("base_offset", np.int64),
        ("last_offset", np.int64),
        ("count", np.int64),
        ("base_timestamp_ms", np.int64),
        ("max_timestamp_ms", np.int64),
        ("append_time_ms", np.int64),  # -1: none; under create time it is in a tagged field
        ("partition_leader_epoch", np.int32),
        ("producer_id", np.int64),
        ("producer_epoch", np.int16),
        ("base_sequence", np.int32),
        ("last_sequence", np.int32),
        ("is_transactional", np.bool_),
        ("is_control", np.bool_),
        ("delete_horizon_ms", np.int64),
        ("shared_headers", np.int64),  # number of headers stored once per batch; each record counts them
        ("records_size_bytes", np.int64),
        ("canonical", np.bool_),
        ("mixed_magic", np.bool_),  # a compressed set of v0 has messages of v1, or the reverse (KAFKA-4298)
        ("dictionary", np.int32),  # the number of its zstd dictionary; -1: none
    ]
)


def is_tagged(rows: NDArray[np.void]) -> NDArray[np.bool_]:
    """Return True for each row (dtype BATCH) of a batch with tagged fields (v3, attributes bit 11): bool[rows]."""
    tagged: NDArray[np.bool_] = (rows["magic"] == 3) & (rows["attributes"] & TAGGED_BIT != 0)
    return tagged


def timestamp_types(rows: NDArray[np.void]) -> NDArray[np.object_]:
    """Return the name of the timestamp type of each row (dtype BATCH): object[rows].

    Names are "create", "append", and "none" (Kafka's NO_TIMESTAMP_TYPE).
    """
    numbers = np.where(rows["magic"] == 0, TIMESTAMP_TYPES.index("none"), rows["timestamp_type"])
    return np.array(TIMESTAMP_TYPES, object)[numbers]


class BatchFields:
    """Header fields that a caller may set. Each column is a scalar for all batches, or has one item per batch.

    The encoder computes lengths, deltas and checksums; they cannot be set. It computes base_offset, last_offset,
    base_timestamp_ms and max_timestamp_ms from the records if the caller does not set them. Set them for an empty
    batch. Set them after compaction too, when the header covers more offsets than the records.

    append_time_ms sets log append time: records are written with the producer's timestamps, and readers see the append
    time. It becomes the header's maximum timestamp, unless max_timestamp_ms is set too or the format has tagged fields.
    With timestamp_type=0 readers see create time, and only a tagged field stores the append time.

    tagged_fields: the caller's tagged fields, a mapping from tag to bytes. Pass one mapping for all batches, or one per
    batch. Raises InvalidRecords.
    """

    def __init__(
        self, *, tagged_fields: Mapping[int, bytes] | Sequence[Mapping[int, bytes]] | None = None, **columns: ArrayLike
    ) -> None:
        if unknown := columns.keys() - FIELD_DEFAULTS.keys():
            known = ", ".join([*FIELD_DEFAULTS, "tagged_fields"])
            raise InvalidRecords(f"batch_fields: no field {', '.join(sorted(unknown))}; there are {known}")
        given = {name: _column(name, values) for name, values in columns.items()}
        sizes = {len(values) for values in given.values() if values.ndim}
        if tagged_fields is not None and not isinstance(tagged_fields, Mapping):
            if not isinstance(tagged_fields, Sequence):
                raise InvalidRecords(f"tagged_fields: mappings are wanted, not {type(tagged_fields).__name__}")
            sizes.add(len(tagged_fields))
        if len(sizes) > 1 or any(values.ndim > 1 for values in given.values()):
            raise InvalidRecords("batch_fields: each column needs one item, or one per batch")
        self.rows: NDArray[np.void] = np.zeros(sizes.pop() if sizes else 1, FIELDS)
        for name, default in FIELD_DEFAULTS.items():
            values = given.get(name, np.asarray(default))
            kind = FIELDS[name]
            if kind == np.bool_:
                if values.dtype.kind != "b" and not np.isin(values, (0, 1)).all():
                    raise InvalidRecords(f"{name}: True or False is wanted")
            elif values.size:
                if values.dtype.kind not in "iub":
                    raise InvalidRecords(f"{name}: integers are wanted, not {values.dtype}")
                limits = np.iinfo(kind)
                if values.min() < limits.min or values.max() > limits.max:
                    raise InvalidRecords(f"{name}: a value does not fit {kind}")
            self.rows[name] = values
        self.tags: Bytes = _NO_TAGS
        if tagged_fields is not None:
            per_batch = [tagged_fields] if isinstance(tagged_fields, Mapping) else list(tagged_fields)
            parts = encode_tagged_fields(per_batch)
            self.tags = np.frombuffer(b"".join(parts), np.uint8)
            sizes_bytes = np.array(list(map(len, parts)), np.int64)
            self.rows["tags_start"], self.rows["tags_bytes"] = np.cumsum(sizes_bytes) - sizes_bytes, sizes_bytes
            self.rows["tags_count"] = list(map(len, per_batch))
        if "append_time_ms" in given and "timestamp_type" not in given:
            self.rows["timestamp_type"] = self.rows["append_time_ms"] != NO_TIMESTAMP
        if np.any(self.rows["timestamp_type"] >> 1):
            raise InvalidRecords("timestamp_type: 0 (create) or 1 (append) is wanted")
        base, horizon = self.rows["base_timestamp_ms"], self.rows["delete_horizon_ms"]
        if np.any((horizon >= 0) & (base != UNSET) & (base != horizon)):
            raise InvalidRecords("base_timestamp_ms: a batch with a delete horizon has it there")
        self.rows.flags.writeable = False

    @classmethod
    def trusted(cls, rows: NDArray[np.void], tags: Bytes = _NO_TAGS) -> Self:
        """Return an instance without checks.

        A kernel has read `rows` (dtype FIELDS) and `tags` (encoded tagged fields).
        """
        fields = cls.__new__(cls)
        fields.rows, fields.tags = rows, tags
        fields.rows.flags.writeable = False
        return fields

    def part(self, first: int, end: int) -> Self:
        """Return the fields of the batches first to end - 1."""
        if len(self.rows) == 1 or (first == 0 and end == len(self.rows)):
            return self
        return self._with(self.rows[first:end])

    def take(self, batches: ArrayLike) -> Self:
        """Return the fields of the batches with these indices, in the order of the indices."""
        return self if len(self.rows) == 1 else self._with(self.rows.take(np.asarray(batches, np.int64)))

    def replace(self, **columns: ArrayLike) -> Self:
        """Return a copy with new values for some columns. Tagged fields stay the same. Raises InvalidRecords."""
        sizes = {len(self.rows), *(np.size(values) for values in columns.values())} - {1}
        if len(sizes) > 1:
            raise InvalidRecords("batch_fields: each column needs one item, or one per batch")
        batches = sizes.pop() if sizes else 1
        given = {name: self.rows[name] for name in FIELD_DEFAULTS} | columns
        whole: dict[str, Any] = {name: np.broadcast_to(values, batches) for name, values in given.items()}
        rows = type(self)(**whole).rows
        rows.flags.writeable = True  # nothing else refers to them
        for name in _TAG_COLUMNS:
            rows[name] = self.rows[name]
        return self._with(rows)

    def _with(self, rows: NDArray[np.void]) -> Self:
        other = copy(self)
        other.__dict__.pop("set_fields", None)
        other.rows = rows
        other.rows.flags.writeable = False
        return other

    def over(self, batches: int) -> NDArray[np.void]:
        """Return the rows (dtype FIELDS) for kernels: one row for all batches, or one row per batch.

        batches: the number of batches to write. Raises InvalidRecords for another number of rows.
        """
        if len(self.rows) not in (1, batches):
            raise InvalidRecords(f"batch_fields: {len(self.rows)} items for {batches} batches")
        return self.rows

    @cached_property
    def set_fields(self) -> frozenset[str]:
        """The names of the fields that differ from their default in at least one batch."""
        return frozenset(name for name in FIELD_NAMES if self.set_in(name).any())

    def set_in(self, name: str) -> NDArray[np.bool_]:
        """Return True where the field `name` differs from its default: bool[batches], or bool[1] for all batches."""
        if name == "tagged_fields":
            return self.rows["tags_count"] != 0  # type: ignore[no-any-return]
        return self.rows[name] != FIELD_DEFAULTS[name]  # type: ignore[no-any-return]


def _column(name: str, values: ArrayLike) -> NDArray[Any]:
    try:
        return np.asarray(values)
    except ValueError as error:
        raise InvalidRecords(f"{name}: {error}") from None


NO_FIELDS: Final = BatchFields()


@dataclass(frozen=True, kw_only=True)
class EncodedLog:
    """Encoded batches: batch b is data[positions[b]:positions[b + 1]]. data: uint8. positions: int64[batches + 1].

    In v0 and v1 a batch without a codec is several messages, and each message is an entry of the log.
    `Format.read_times` and `fetch` take the positions of entries, which `Entries.of(data)` returns.
    """

    data: Bytes
    positions: Int64
    losses: Mapping[str, int] = field(default_factory=dict)  # number of items that lossy=True left out, by name

    def __len__(self) -> int:
        return len(self.positions) - 1

    def __bytes__(self) -> bytes:
        return self.data.tobytes()


@dataclass(frozen=True, kw_only=True)
class DecodedLog:
    """A decoded log. Batch b has the records bounds[b] to bounds[b + 1] - 1.

    Keys and values are views of the bytes that were read. `batches` is computed from these bytes on first use. So do
    not change the bytes.

    Attributes:
        records: the records, with the timestamps that a consumer sees.
        bounds: int64[batches + 1], the boundaries of batches among the records.
        create_timestamps_ms: int64[records], the timestamps that producers wrote; they differ under log append time.
        dictionaries: the zstd dictionaries that the reader had, by number.
        errors: one per damaged batch that was left out (on_error="skip").
        trailing_bytes: the size of an incomplete last batch, which is no error in Kafka.
    """

    records: Records
    bounds: Int64
    create_timestamps_ms: Int64
    rows: Callable[[], NDArray[np.void]]  # computes `batch_rows`; called on first use
    tags: Callable[[], Sequence[Mapping[int, bytes]]] | None = None  # reads tagged fields; None: the format has none
    format_name: str | None = None  # None if the magic byte is enough to find the format
    dictionaries: Mapping[int, Dictionary] = field(default_factory=dict)
    errors: Sequence[CorruptLog] = ()
    trailing_bytes: int = 0

    def __post_init__(self) -> None:
        freeze(self.bounds, self.create_timestamps_ms)  # the latter may share memory with the records

    def __len__(self) -> int:
        """The number of batches."""
        return len(self.bounds) - 1

    @cached_property
    def batch_rows(self) -> NDArray[np.void]:
        """The fields of each batch as one row of a structured array (dtype BATCH)."""
        return self.rows()

    @cached_property
    def tagged_fields(self) -> Sequence[Mapping[int, bytes]]:
        """The caller's tagged fields: one mapping from tag to bytes per batch."""
        return self.tags() if self.tags else [NO_TAGGED_FIELDS] * len(self)

    @cached_property
    def batches(self) -> "pd.DataFrame":
        """A table with one row per batch, with Kafka's field names in snake case. Fields that v0 and v1 lack are -1."""
        import pandas as pd

        frame = pd.DataFrame({name: self.batch_rows[name] for name in BATCH.names or ()})
        frame["codec"] = np.array(codec_names(), object)[frame["codec"]]
        frame["timestamp_type"] = timestamp_types(self.batch_rows)
        return frame

    @property
    def batch_fields(self) -> BatchFields:
        """The header fields that were read, in the form that `Format.encode` takes to write the same batches."""
        rows = self.batch_rows
        columns = {name: rows[name] for name in FIELD_DEFAULTS}
        # Under append time the encoder computes the maximum timestamp. It is the append time or, in batches with tagged
        # fields, the largest create time of the records.
        derived, tagged = rows["append_time_ms"], is_tagged(rows)
        if tagged.any():
            derived = np.where(tagged, self._latest_ms, derived)
        is_derived = (rows["timestamp_type"] == APPEND_TIME) & (rows["max_timestamp_ms"] == derived)
        columns["max_timestamp_ms"] = np.where(is_derived, UNSET, rows["max_timestamp_ms"])
        return BatchFields(tagged_fields=self.tagged_fields if self.tags else None, **columns)

    @property
    def _latest_ms(self) -> Int64:
        """The largest create time per batch, int64[batches]; -1 for an empty batch."""
        latest = np.full(len(self), NO_TIMESTAMP, np.int64)
        has_records = self.bounds[:-1] < self.bounds[1:]
        if has_records.any():
            latest[has_records] = np.maximum.reduceat(self.create_timestamps_ms, self.bounds[:-1][has_records])
        return latest

    @property
    def source_records(self) -> Records:
        """The records with the timestamps that producers wrote. Encoding these again writes the same bytes."""
        if self.records.timestamps_ms is self.create_timestamps_ms:
            return self.records
        return self.records.at_times(self.create_timestamps_ms)


@dataclass(frozen=True)
class DecodedTimes:
    """Offsets and timestamps (as a consumer sees them) of the records of some batches.

    bounds: int64[batches + 1]; batch b has the records bounds[b] to bounds[b + 1] - 1.
    """

    timestamps_ms: Int64
    offsets: Int64
    bounds: Int64

    def __len__(self) -> int:
        """The number of batches."""
        return len(self.bounds) - 1


@dataclass(frozen=True, kw_only=True)
class DecodedMetadata:
    """Offsets, timestamps and lengths of the records of a log, without their keys, values and headers.

    Batch b has the records bounds[b] to bounds[b + 1] - 1. bounds: int64[batches + 1]. timestamps_ms: the timestamps
    that a consumer sees. plain_bytes: the number of bytes that had to be read, counted after decompression. Damage that
    is only visible in the payload goes unseen.
    """

    timestamps_ms: Int64
    offsets: Int64
    key_lengths: Int32
    value_lengths: Int32
    header_counts: Int64
    bounds: Int64
    plain_bytes: int
    errors: Sequence[CorruptLog] = ()
    trailing_bytes: int = 0

    def __len__(self) -> int:
        """The number of batches."""
        return len(self.bounds) - 1


def plan(records: int, batch_size: int | ArrayLike) -> Int64:
    """Return the boundaries of batches among `records` records: int64[batches + 1], from 0 to `records`.

    batch_size: the number of records per batch (the last batch may be smaller), or an array of boundaries. Two equal
    neighbouring boundaries are an empty batch. Raises InvalidRecords.
    """
    if isinstance(batch_size, (int, np.integer)):
        size = int(batch_size)
        if size < 1:
            raise InvalidRecords(f"batch_size: {size} is below 1")
        size = min(size, max(records, 1))  # arange would round or overflow with a much larger size
        return _regular(records, size) if records // size < CACHED_BATCHES else _regular.__wrapped__(records, size)
    bounds = integers_of("batch_size", batch_size, np.int64)
    if not frames.are_bounds(bounds, records):
        raise InvalidRecords(f"batch_size: boundaries must rise from 0 to the {records} records")
    return bounds


@lru_cache(maxsize=8)  # a benchmark passes the same numbers in every call
def _regular(records: int, size: int) -> Int64:
    bounds = np.arange(0, records + size if records else 1, size, dtype=np.int64)
    bounds[-1] = records
    bounds.flags.writeable = False
    return bounds


def chunks(sizes: Int64) -> Iterator[tuple[int, int]]:
    """Group neighbouring batches into runs of about CHUNK_BYTES. Yield (first batch, batch after the last) per run.

    sizes: int64[batches], the number of bytes of each batch.
    """
    return pairwise(group_bounds(sizes, CHUNK_BYTES).tolist() if len(sizes) else [])
