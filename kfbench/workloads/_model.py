"""What a named workload is made of (a file's tables, `_file.py`), and the records that follow from it.

Everything is drawn by record number (`kernels/draws.py`). What runs along records, times and batches, is worked out for
a block of 65,536 and then cut: the laws of `_workload`.
"""

from dataclasses import dataclass, field
from functools import lru_cache
from typing import Annotated, Any, Final, Literal

import msgspec
import numpy as np
from msgspec import Meta
from numpy.typing import NDArray

from kfbench.arrays import Bytes, Int32, Int64
from kfbench.batches import NO_FIELDS, BatchFields
from kfbench.kernels.workload import draws
from kfbench.kernels.workload.kinds import DRAWN, has_null, pairs, places, settle
from kfbench.kernels.workload.waits import milliseconds
from kfbench.layouts import (
    CONTROL_ABORT,
    CONTROL_COMMIT,
    CONTROL_KEY,
    END_TRANSACTION_MARKER,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    NULL_LENGTH,
)
from kfbench.records import Records, Shapes
from kfbench.workloads._arrivals import MAX_US, Arrival, block_us, times_us
from kfbench.workloads._batching import (
    LAST_SEQUENCE,
    Batching,
    Linger,
    Plan,
    Survivors,
    Transactions,
    lingering,
    plan,
)
from kfbench.workloads._distributions import QUANTILES, Distribution, draw_lengths, lengths_table, require
from kfbench.workloads._keys import Keys
from kfbench.workloads._templates import Template
from kfbench.workloads._workload import BLOCK_RECORDS, Sample, block_slices, check_slice
from kfbench.workloads.grid import APPEND_DELAY_MS, PRODUCER_ID, START_OF_2026_MS

Band = tuple[float, float]
Share = Annotated[float, Meta(ge=0, le=1)]
Columns = dict[str, NDArray[Any]]
Kinds = NDArray[np.uint8]  # one a record: 0, the number of its [[other]] from 1 on, or one of the last two
PLAIN, TOMBSTONE, MARKER = 0, 254, 255
MAX_OTHERS: Final = 32

# Streams of draws. Keys have those from 0 on, one a kind of record; values and headers follow. Each needs two.
LAGS, KINDS, NULLS, ABORTS = range(10, 14)
STREAMS: Final = 1_000
Column = Literal[0, 1]
KEY: Final = 0
VALUE: Final = 1
HEADERS: Final = 2 * STREAMS
LENGTHS, FILLED = 10_000, 20_000

MAX_EPOCH: Final = 2**15 - 2  # producers are given no larger one
MARKER_LAYOUTS: Final = (CONTROL_KEY, END_TRANSACTION_MARKER)
MARKERS: Final = (  # what a marker's key may be, and its value: version 0, of the coordinator's first epoch
    np.array([(0, CONTROL_COMMIT), (0, CONTROL_ABORT)], CONTROL_KEY).tobytes(),
    np.array([(0, 0)], END_TRANSACTION_MARKER).tobytes(),
)
ROWS: Final = 2_048
NO_BYTES: Final = np.zeros(0, np.uint8)
NUMBERS: Final = np.arange(BLOCK_RECORDS)
ALL_PLAIN: Final = np.zeros(BLOCK_RECORDS, np.uint8)
ALL_CHANCES: Final = np.arange(QUANTILES, dtype=np.int32)
NO_CHANCES: Final = np.zeros(BLOCK_RECORDS, np.int32)  # for who has a null share of 0


class _Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    pass


class Time(_Table, frozen=True, kw_only=True):
    """same_in_batch: all records of a batch have its first one's time, as changes of one transaction have.
    period_ms: a batch is what a device has collected: its last record is of now, each one before so much older.
    lag_ms: how long before that a record's timestamp is, drawn record by record: out of order where it is more than
    what lies between records. append_time: the broker's clock, 5 ms after the batch's last record, takes its place.
    """

    same_in_batch: bool = False
    period_ms: Annotated[int, Meta(ge=0, lt=2**40)] = 0
    lag_ms: Distribution | None = None
    append_time: bool = False

    def __post_init__(self) -> None:
        require(not (self.same_in_batch and self.period_ms), "period_ms: same_in_batch leaves no room for it")


class Producer(_Table, frozen=True, kw_only=True):
    idempotent: bool = True


class Part(_Table, frozen=True, kw_only=True):
    """length: None for the template's own."""

    template: str
    length: Distribution | None = None

    def __post_init__(self) -> None:
        require(self.length is None or self.parsed.elastic or self._is_cut(), "length: no slot of template is elastic")

    def _is_cut(self) -> bool:
        assert self.length is not None
        return bool(lengths_table(self.length)[-1] <= self.parsed.least_bytes)

    @property
    def parsed(self) -> Template:
        return Template.parse(self.template)

    @property
    def same_length(self) -> int | None:
        """That of all, if they are equally long."""
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
        _ = self.keys

    @property
    def keys(self) -> Keys:
        return Keys(cardinality=self.cardinality, skew=self.skew, in_turn=self.in_turn)


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
    """A workload or a variant of it."""

    summary: str
    question: str
    class_: str = msgspec.field(name="class", default="")
    story: str
    arrival: Arrival
    batching: Batching
    value: Value
    assumptions: list[str] = []
    sources: dict[str, Any] = {}
    time: Time = Time()
    producer: Producer = Producer()
    key: Key | None = None
    bands: dict[str, tuple[Band, Band, Band]] = {}
    header: list[Header] = []
    other: list[Other] = []

    def __post_init__(self) -> None:
        block_us(self.arrival)
        require(len(self.other) <= MAX_OTHERS, f"other: {len(self.other)} kinds, and {MAX_OTHERS} can be had")
        require(sum(each.share for each in self.other) < 1 + 1e-9, "other: their shares are more than 1")
        for each in self.other:
            require(
                not each.tombstone or (each.key is None and self.key is not None), "other: a tombstone has [key]'s key"
            )
        if isinstance(self.batching, Transactions):
            require(not self.header, "header: markers have none")
            require(not self._has_tombstones, "other: no tombstones among transactions")
        if isinstance(self.batching, Survivors):
            require(not self._has_tombstones, "other: a tombstone outlives what it deletes")
            distinct = all(key is None or key.cardinality is None for key, _ in self._parts)
            require(distinct, "key.cardinality: each key survives once, so survivors have keys of their own")
        if isinstance(self.batching, Linger):
            require(
                not (self.time.same_in_batch or self.time.period_ms), "time: batches follow from it, not it from them"
            )

    def sample(self, *, records: int, seed: int, start: int = 0) -> Sample:
        """The records start ... start + records - 1; a slice may begin and end inside a batch. Raises InvalidConfig."""
        check_slice(records, seed, start)
        self._check_reach(records, start)
        _keep_freed_memory()
        columns = self._columns(records)
        bounds, fields, done = [np.zeros(1, np.int64)], [], 0
        for block, first, count in block_slices(start, records):
            # A whole block is written where it belongs: arrays that come and go cost as much as what is put into them.
            part = {name: column[done : done + count] for name, column in columns.items()}
            whole = part if count == BLOCK_RECORDS else self._columns(BLOCK_RECORDS)
            batches = self._fill_block(seed, block, whole)
            if whole is not part:
                for name, column in whole.items():
                    part[name][:] = column[first : first + count]
            cut, batch_fields = batches.cut(first, count)
            bounds.append(cut[1:] + done)
            fields.append(batch_fields)
            done += count
        shapes, kinds = self._shapes(columns), columns.get("kinds")
        names = fields[0] if fields else ()
        return Sample(
            shapes=shapes,
            bounds=np.concatenate(bounds),
            batch_fields=self._batch_fields({name: _joined([each[name] for each in fields]) for name in names}),
            payload=lambda: self._records(shapes, kinds, seed, start),
        )

    def _check_reach(self, records: int, start: int) -> None:
        """Raises InvalidConfig where times or offsets would not fit."""
        blocks = -(-(start + records) // BLOCK_RECORDS)
        lapse_us = blocks * block_us(self.arrival)
        each = self.batching.block_offsets if isinstance(self.batching, Survivors) else BLOCK_RECORDS
        for what, reached in (("microseconds", lapse_us), ("offsets", blocks * each)):
            require(
                reached <= MAX_US,
                f"records {records} from start {start} on take {reached:.3g} {what}, and {MAX_US:.3g} can be had",
            )

    @property
    def _has_kinds(self) -> bool:
        return bool(self.other) or isinstance(self.batching, Transactions)

    @property
    def _has_tombstones(self) -> bool:
        return any(each.tombstone for each in self.other)

    @property
    def _parts(self) -> list[tuple[Key | None, Value]]:
        """Key and value of each kind of record, those of [[other]] after the first."""
        return [(self.key, self.value), *((each.key or self.key, each.value or self.value) for each in self.other)]

    def _is_main(self, kind: int, column: Column) -> bool:
        """Whether this kind's keys or values are drawn and filled as the first kind's are."""
        mine, main = self._parts[kind], self._parts[0]
        return mine[KEY] is main[KEY] and mine[column] is main[column]

    def _stream(self, kind: int, column: Column) -> int:
        return column * STREAMS + (0 if self._parts[kind][column] is self._parts[0][column] else kind)

    def _columns(self, records: int) -> Columns:
        found: Columns = {name: np.empty(records, np.int64) for name in ("timestamps_ms", "offsets")}
        found |= {name: np.empty(records, np.int32) for name in ("key_lengths", "value_lengths")}
        if self.header:
            found["contents"] = np.empty((records, len(self.header)), np.int32)
        if self._has_kinds:
            found["kinds"] = np.zeros(records, np.uint8)
        return found

    def _shapes(self, columns: Columns) -> Shapes:
        """Of these columns, and of what headers are alike in every record."""
        records, headers = len(columns["offsets"]), len(self.header)
        bounds, names = _headers(tuple(len(each.name.encode()) for each in self.header), records)
        return Shapes.trusted(
            timestamps_ms=columns["timestamps_ms"],
            offsets=columns["offsets"],
            key_lengths=columns["key_lengths"],
            value_lengths=columns["value_lengths"],
            header_bounds=bounds,
            header_key_lengths=names,
            header_value_lengths=columns["contents"].reshape(-1) if headers else np.zeros(0, np.int32),
        )

    def _fill_block(self, seed: int, block: int, columns: Columns) -> "_Batches":
        """Fills the columns of a whole block."""
        first = block * BLOCK_RECORDS
        kinds, starts = columns.get("kinds"), None
        if kinds is not None:
            starts = self._fill_kinds(seed, first, kinds)
        planned = plan(self.batching, seed, block, starts)
        if kinds is not None and isinstance(self.batching, Transactions):
            assert planned is not None
            kinds[planned.bounds[2::2] - 1] = MARKER
        arrived_us = times_us(self.arrival, seed, block)
        self._fill_timestamps(seed, first, arrived_us, planned, columns["timestamps_ms"])
        ids = _Ids(seed, first)
        self._fill_lengths(KEY, ids, kinds, columns["key_lengths"])
        self._fill_lengths(VALUE, ids, kinds, columns["value_lengths"])
        if self.header:
            self._fill_contents(ids, columns["contents"])
        if planned is None:
            assert isinstance(self.batching, Linger)
            views = {name: column.view() for name, column in columns.items()}  # `Shapes` keeps others from writing
            planned = lingering(self.batching, arrived_us, self._shapes(views))
        if planned.offsets is None:
            np.add(NUMBERS, first, out=columns["offsets"])
        else:
            columns["offsets"][:] = planned.offsets
        return _Batches(planned.bounds, self._fields(block, planned, arrived_us, columns))

    def _fill_kinds(self, seed: int, first: int, kinds: Kinds) -> Int64 | None:
        """Fills the kind of each record; gives where those begin that are no tombstones, if there are any."""
        if not self.other:
            kinds[:] = PLAIN
            return None
        shares = tuple(each.share for each in self.other)
        if not self._has_tombstones:
            _pick(shares, seed, KINDS, first, kinds)
            return None
        followed = np.zeros(256, np.bool_)
        followed[1 : len(self.other) + 1] = [each.tombstone for each in self.other]
        drawn, starts = np.empty(BLOCK_RECORDS, np.uint8), np.empty(BLOCK_RECORDS, np.int64)
        _pick(shares, seed, KINDS, first, drawn)
        return starts[: pairs(drawn, followed, TOMBSTONE, PLAIN, kinds, starts)]

    def _fill_timestamps(self, seed: int, first: int, arrived_us: Int64, planned: Plan | None, out: Int64) -> None:
        milliseconds(arrived_us, START_OF_2026_MS, out)
        time = self.time
        if planned is not None and time.same_in_batch:
            out[:] = np.repeat(out[planned.bounds[:-1]], np.diff(planned.bounds))
        elif planned is not None and time.period_ms:
            last = planned.bounds[1:] - 1
            out[:] = np.repeat(out[last] - last * time.period_ms, np.diff(planned.bounds))
            out += NUMBERS * time.period_ms
        if time.lag_ms is not None:
            out -= draw_lengths(time.lag_ms, seed, LAGS, first, BLOCK_RECORDS)

    def _fill_lengths(self, column: Column, ids: "_Ids", kinds: Kinds | None, out: Int32) -> None:
        """Of a block's keys or values, nulls included."""
        same, null_shares = np.full(256, DRAWN, np.int32), np.zeros(256, np.int32)
        for k, (key, value) in enumerate(self._parts):
            part = key if column == KEY else value
            mine = self._of_kind(k, column)
            if k and self._is_main(k, column):
                continue
            if part is None:
                same[mine] = NULL_LENGTH
            elif (length := part.same_length) is not None:
                same[mine] = length
            elif kinds is None or (k == 0 and part.length is not None):  # most are of the first kind: draw it for all
                _draw_lengths(part, self._stream(k, column), key, ids, None, out)
            else:
                at = np.empty(BLOCK_RECORDS + 1, np.int64)
                at = at[: places(kinds, mine, at)]
                lengths = np.empty(len(at), np.int32)
                _draw_lengths(part, self._stream(k, column), key, ids, at, lengths)
                out[at] = lengths
            if isinstance(part, Value):
                null_shares[mine] = round(part.null_share * QUANTILES)
        if self._has_tombstones and column == VALUE:
            same[TOMBSTONE] = NULL_LENGTH
        if isinstance(self.batching, Transactions):
            same[MARKER] = MARKER_LAYOUTS[column].itemsize
        if kinds is None and not null_shares[PLAIN]:
            if same[PLAIN] != DRAWN:
                out[:] = same[PLAIN]
            return
        chances = NO_CHANCES
        if null_shares.any():
            chances = np.empty(BLOCK_RECORDS, np.int32)
            draws.pick(ids.seed, NULLS, ids.first, ALL_CHANCES, chances)
        if null_shares.any() or (same != DRAWN).any():
            settle(ALL_PLAIN if kinds is None else kinds, same, null_shares, chances, out)
        if kinds is not None and self._has_tombstones and column == KEY and same[TOMBSTONE] == DRAWN:
            after = np.flatnonzero(kinds == TOMBSTONE)
            out[after] = out[after - 1]

    def _fill_contents(self, ids: "_Ids", out: Int32) -> None:
        """Lengths of the headers' values, int32[65_536, headers]."""
        known = [each.same_length for each in self.header]
        _repeat(np.array([each or 0 for each in known], np.int32), out.reshape(-1))
        lengths = np.empty(BLOCK_RECORDS, np.int32)
        for h, header in enumerate(self.header):
            if known[h] is None:
                _draw_lengths(header, HEADERS + h, self.key, ids, None, lengths)
                out[:, h] = lengths

    def _fields(self, block: int, planned: Plan, arrived_us: Int64, columns: Columns) -> Columns:
        """Header fields that differ from batch to batch, one item each."""
        bounds, found = planned.bounds, {}
        batches = len(bounds) - 1
        first = block * BLOCK_RECORDS + bounds[:-1]
        if isinstance(self.batching, Survivors):
            of_records = self.batching.of_records
            first = columns["offsets"][bounds[:-1]] // of_records * of_records
            found = {"base_offset": first, "last_offset": first + (of_records - 1)}
            if self.batching.delete_retention_ms is not None:
                tombstones = np.empty(batches, np.bool_)
                has_null(columns["value_lengths"], bounds, tombstones)
                last_ms = columns["timestamps_ms"][bounds[1:] - 1]
                after_ms = self.batching.cleaned_after_ms + self.batching.delete_retention_ms
                found["delete_horizon_ms"] = np.where(tombstones, last_ms + after_ms, NO_TIMESTAMP)
        if isinstance(self.batching, Transactions):
            transaction = np.arange(batches) >> 1
            marker = np.arange(batches) & 1
            ids_a_block = BLOCK_RECORDS // MAX_EPOCH + 1
            found["producer_id"] = PRODUCER_ID + block * ids_a_block + transaction // MAX_EPOCH
            found["producer_epoch"] = transaction % MAX_EPOCH + marker  # the marker ends one, and begins the next
            found["base_sequence"] = np.where(marker, NO_SEQUENCE, 0)
            found["is_control"] = marker.astype(np.bool_)
        elif self.producer.idempotent:
            found["base_sequence"] = first & LAST_SEQUENCE
        if self.time.append_time:
            found["append_time_ms"] = arrived_us[bounds[1:] - 1] // 1000 + (START_OF_2026_MS + APPEND_DELAY_MS)
        return found

    def _batch_fields(self, found: Columns) -> BatchFields:
        if not found:
            return NO_FIELDS
        row = NO_FIELDS.rows.copy()
        if self.producer.idempotent:
            row["producer_id"], row["producer_epoch"] = PRODUCER_ID, 0
        row["is_transactional"] = isinstance(self.batching, Transactions)
        row["timestamp_type"] = self.time.append_time
        rows = np.empty(len(next(iter(found.values()))), row.dtype)
        alike = np.empty(min(len(rows), ROWS), row.dtype)
        _repeat(row, alike)
        for first in range(0, len(rows), ROWS):  # as many as stay in a cache until all columns are written
            part = rows[first : first + ROWS]
            part.view(np.uint8)[:] = alike.view(np.uint8)[: part.nbytes]
            for name, column in found.items():
                part[name] = column[first : first + ROWS]
        return BatchFields.trusted(rows)

    def _ids(self, key: Key | None, seed: int, numbers: Int64, kinds: Kinds | None) -> Int64:
        """The keys of records that follow one another, by id; a tombstone's is that of the record before it."""
        if not len(numbers):
            return numbers
        keys, first = Keys() if key is None else key.keys, int(numbers[0])
        ids = keys.ids(seed, first, len(numbers))
        if kinds is not None and self._has_tombstones:
            after = np.flatnonzero(kinds == TOMBSTONE)
            if len(after):
                before = ids[after - 1]
                if after[0] == 0:
                    before[0] = keys.ids(seed, first - 1, 1)[0]
                ids[after] = before
        return ids

    def _records(self, shapes: Shapes, kinds: Kinds | None, seed: int, start: int) -> Records:
        numbers = np.arange(start, start + len(shapes))
        ids = self._ids(self.key, seed, numbers, kinds)
        key_data, key_starts = self._filled(KEY, seed, shapes, kinds, numbers, ids)
        value_data, value_starts = self._filled(VALUE, seed, shapes, kinds, numbers, ids)
        names = [each.name.encode() for each in self.header]
        name_ends = np.cumsum([len(name) for name in names], dtype=np.int64)
        contents, content_starts = [NO_BYTES], np.empty((len(shapes), len(names)), np.int64)
        lengths = shapes.header_value_lengths.reshape(content_starts.shape)
        size = 0
        for h, header in enumerate(self.header):
            data, starts = header.parsed.fill(
                seed, FILLED + HEADERS + h, numbers, lengths[:, h], keys=ids, timestamps_ms=shapes.timestamps_ms
            )
            content_starts[:, h] = starts + size
            contents.append(data)
            size += len(data)
        return Records(
            shapes=shapes,
            key_data=key_data,
            key_starts=key_starts,
            value_data=value_data,
            value_starts=value_starts,
            header_key_data=np.frombuffer(b"".join(names), np.uint8),
            header_key_starts=np.tile(name_ends - [len(name) for name in names], len(shapes)).astype(np.int64),
            header_value_data=np.concatenate(contents),
            header_value_starts=content_starts.reshape(-1),
        )

    def _filled(
        self, column: Column, seed: int, shapes: Shapes, kinds: Kinds | None, numbers: Int64, ids: Int64
    ) -> tuple[Bytes, Int64]:
        """Data and starts of all keys or values, kind by kind."""
        lengths = shapes.key_lengths if column == KEY else shapes.value_lengths
        pieces, starts, size = [NO_BYTES], np.zeros(len(shapes), np.int64), 0
        for k, (key, value) in enumerate(self._parts):
            part = key if column == KEY else value
            if part is None or (k and self._is_main(k, column)):
                continue
            own_ids = ids if key is self.key else self._ids(key, seed, numbers, None)
            mine = None if kinds is None else self._of_kind(k, column)[kinds]
            data, found = part.parsed.fill(
                seed, FILLED + self._stream(k, column), own_ids if column == KEY else numbers,
                lengths if mine is None else np.where(mine, lengths, np.int32(NULL_LENGTH)), keys=own_ids,
                timestamps_ms=None if column == KEY else shapes.timestamps_ms,
            )  # fmt: skip
            if mine is None:
                return data, found
            np.copyto(starts, found + size, where=mine)
            pieces.append(data)
            size += len(data)
        if isinstance(self.batching, Transactions) and kinds is not None:
            marker = np.flatnonzero(kinds == MARKER)
            layout = MARKER_LAYOUTS[column]
            abort = np.zeros(len(marker), np.int64)
            if column == KEY and len(numbers):
                drawn = np.empty(len(numbers), np.uint8)
                _pick((self.batching.abort_share,), seed, ABORTS, int(numbers[0]), drawn)
                abort = drawn[marker].astype(np.int64)
            starts[marker] = size + abort * layout.itemsize
            pieces.append(np.frombuffer(MARKERS[column], np.uint8))
        return np.concatenate(pieces), starts

    def _of_kind(self, kind: int, column: Column) -> NDArray[np.bool_]:
        """bool[256]: which kinds of records have their keys or values made as this one."""
        found = np.zeros(256, np.bool_)
        found[kind] = True
        if kind == PLAIN:
            found[1 : len(self._parts)] = [self._is_main(k, column) for k in range(1, len(self._parts))]
            found[TOMBSTONE] = column == KEY
        return found


@lru_cache(maxsize=1)
def _keep_freed_memory() -> None:
    """A block takes arrays of half a megabyte, which glibc gives back to the system one by one: the page faults of the
    next ones are a third of the whole time. Once it has seen a larger one freed it keeps what is freed, up to twice
    that (mallopt(3), M_MMAP_THRESHOLD)."""
    np.empty((32 << 20) - 8_192, np.uint8)


@dataclass(frozen=True)
class _Ids:
    """The keys of a block's records by id, worked out once for each [key]."""

    seed: int
    first: int
    known: dict[Keys, Int64] = field(default_factory=dict)

    def of(self, key: Key | None) -> Int64:
        keys = Keys() if key is None else key.keys
        if keys not in self.known:
            self.known[keys] = keys.ids(self.seed, self.first, BLOCK_RECORDS)
        return self.known[keys]


def _draw_lengths(part: Part, stream: int, key: Key | None, ids: _Ids, mine: Int64 | None, out: Int32) -> None:
    """Of a block's keys, values or contents of a header, or of `mine` among its records: drawn, or as the template has
    them."""
    if part.length is not None and mine is None and not isinstance(part, Key):
        draws.pick(ids.seed, LENGTHS + stream, ids.first, lengths_table(part.length), out)
        return
    numbers = (NUMBERS if mine is None else mine) + ids.first
    own_ids = ids.of(key) if mine is None else ids.of(key)[mine]
    by = own_ids if isinstance(part, Key) else numbers
    if part.length is not None:
        draws.pick_at(ids.seed, LENGTHS + stream, by, lengths_table(part.length), out)
    else:
        out[:] = part.parsed.natural(ids.seed, FILLED + stream, by, keys=own_ids)


@dataclass(frozen=True)
class _Batches:
    """Of a block: bounds int64[batches + 1], fields one item a batch."""

    bounds: Int64
    fields: Columns

    def cut(self, first: int, records: int) -> tuple[Int64, Columns]:
        """Bounds and fields of the batches of so many records from `first` on, counted from there."""
        if records == BLOCK_RECORDS:
            return self.bounds, self.fields
        begin = int(np.searchsorted(self.bounds, first, side="right")) - 1
        end = int(np.searchsorted(self.bounds, first + records, side="left"))
        fields = {name: column[begin:end] for name, column in self.fields.items()}
        if "base_sequence" in fields and "base_offset" not in fields:  # what compaction cuts keeps its sequence
            fields["base_sequence"] = fields["base_sequence"].copy()
            fields["base_sequence"][0] += first - self.bounds[begin]
        return np.clip(self.bounds[begin : end + 1] - first, 0, records), fields


def _joined(pieces: list[NDArray[Any]]) -> NDArray[Any]:
    return pieces[0] if len(pieces) == 1 else np.concatenate(pieces)


def _repeat(unit: NDArray[Any], out: NDArray[Any]) -> None:
    """Fills out with copies of the unit. NumPy copies one at a time, 50 ns each: bytes that double are far faster."""
    data, done = out.view(np.uint8), unit.nbytes
    data[:done] = unit.view(np.uint8)[: len(data)]
    while done < len(data):
        data[done : 2 * done] = data[: min(done, len(data) - done)]
        done *= 2


def _headers(name_bytes: tuple[int, ...], records: int) -> tuple[Int64, Int32]:
    """header_bounds and header_key_lengths of records that have the same headers."""
    if records == BLOCK_RECORDS:
        return _block_headers(name_bytes)
    headers = len(name_bytes)
    bounds = np.arange(0, (records + 1) * headers, headers) if headers else np.zeros(records + 1, np.int64)
    names = np.empty(records * headers, np.int32)
    if headers:
        _repeat(np.array(name_bytes, np.int32), names)
    return bounds, names


@lru_cache(maxsize=16)
def _block_headers(name_bytes: tuple[int, ...]) -> tuple[Int64, Int32]:
    bounds, names = _headers(name_bytes, BLOCK_RECORDS + 1)
    bounds, names = bounds[:-1].copy(), names[: BLOCK_RECORDS * len(name_bytes)].copy()
    bounds.flags.writeable = names.flags.writeable = False
    return bounds, names


@lru_cache(maxsize=64)
def _kinds_table(shares: tuple[float, ...]) -> Kinds:
    """uint8[65_536]: 1 for the first share, and so on; 0 for what is left."""
    ends = np.rint(np.cumsum(shares) * QUANTILES).astype(np.int64)
    table = np.zeros(QUANTILES, np.uint8)
    for k, (first, end) in enumerate(zip([0, *ends[:-1]], ends, strict=True), start=1):
        table[first:end] = k
    table.flags.writeable = False
    return table


def _pick(shares: tuple[float, ...], seed: int, purpose: int, first: int, out: Kinds) -> None:
    """Fills out with the number of the share that each record falls into, 0 for none."""
    draws.pick(seed, purpose, first, _kinds_table(shares), out)
