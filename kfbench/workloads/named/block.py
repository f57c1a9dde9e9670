"""Generate the kinds, lengths, times, offsets and batches of a block of 65,536 records of a named workload.

Times and batches depend on earlier records of the block, so they are generated for a whole block. The module `sampling`
cuts slices from it, and generates their payload.

The kind of a record is a number. 0 is a plain record, which the tables [key] and [value] of the workload's file
describe. 1, 2, … are the records of the [[other]] tables. TOMBSTONE is the record with a null value after a delete.
MARKER is the marker of a transaction.
"""

from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from kfbench.arrays import Int32, Int64, read_only
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
from kfbench.records import Shapes
from kfbench.workloads.base import BLOCK_RECORDS
from kfbench.workloads.grid import APPEND_DELAY_MS, PRODUCER_ID, START_OF_2026_MS
from kfbench.workloads.named.arrivals import times_us
from kfbench.workloads.named.batching import (
    LAST_SEQUENCE,
    CompactionSurvivors,
    Linger,
    Transactions,
    linger_batches,
    plan_batches,
)
from kfbench.workloads.named.distributions import QUANTILES, KeyDistribution, draw, lengths_table
from kfbench.workloads.named.file import KeyTable, TextTable, ValueTable, WorkloadModel

Kinds = NDArray[np.uint8]  # one per record
PLAIN: Final = 0
TOMBSTONE: Final = 254
MARKER: Final = 255

Column = Literal[0, 1]
KEY: Final = 0
VALUE: Final = 1

# Numbers of streams of random draws. Keys have the numbers from 0 on, one per kind of record. Values have the numbers
# from STREAMS on, headers from HEADERS on. LENGTHS or FILLED is added for draws of lengths or of payload.
LAGS, KINDS, NULLS, ABORTS = range(10, 14)
STREAMS: Final = 1_000
HEADERS: Final = 2 * STREAMS
LENGTHS, FILLED = 10_000, 20_000

# The layouts of a marker's key and value. The key is a commit or an abort; the value has the coordinator's epoch 0.
MARKER_LAYOUTS: Final = (CONTROL_KEY, END_TRANSACTION_MARKER)
MARKERS: Final = (
    np.array([(0, CONTROL_COMMIT), (0, CONTROL_ABORT)], CONTROL_KEY).tobytes(),
    np.array([(0, 0)], END_TRANSACTION_MARKER).tobytes(),
)

MAX_EPOCH: Final = 2**15 - 2  # the largest epoch of a producer
NUMBERS: Final = np.arange(BLOCK_RECORDS)
ALL_PLAIN: Final = np.zeros(BLOCK_RECORDS, np.uint8)
ALL_CHANCES: Final = np.arange(QUANTILES, dtype=np.int32)
NO_CHANCES: Final = np.zeros(BLOCK_RECORDS, np.int32)  # used instead of draws if no value can be null

HeaderFields = dict[str, NDArray[Any]]  # columns of `BatchFields` by name, one item per batch


class Generator(NamedTuple):
    """Kinds of records whose keys, or values, are generated from the same tables.

    Args:
        key: the [key] table of these records, for parts that depend on the key; None: the key is null.
        part: their [key] or [value] table; None: null.
        stream: the number of the stream of random draws. It is that of plain records for the table of plain records.
        kinds: bool[256], True for these kinds.
    """

    key: KeyTable | None
    part: TextTable | None
    stream: int
    kinds: NDArray[np.bool_]


def generators(model: WorkloadModel, column: Column) -> list[Generator]:
    """Return the generators of one column, keys or values: first that of plain records, then those of other kinds.

    A value depends on its record's key. So two kinds share a generator only if they have the same table of keys and the
    same table of this column.
    """
    main, found = model.parts[PLAIN], list[Generator]()
    for kind, pair in enumerate(model.parts):
        is_main_part = pair[column] is main[column]
        if kind and is_main_part and pair[KEY] is main[KEY]:
            found[0].kinds[kind] = True
        else:
            stream = column * STREAMS + (0 if is_main_part else kind)
            found.append(Generator(pair[KEY], pair[column], stream, np.arange(256) == kind))
    found[0].kinds[TOMBSTONE] = column == KEY
    return found


def pick_shares(shares: tuple[float, ...], seed: int, purpose: int, first: int, out: Kinds) -> None:
    """Draw a number for each record: k with the probability shares[k - 1], or 0 with the rest. Fill `out` with them.

    Args:
        purpose: the number of a stream of random draws.
        first: the number of the first record in the workload.
    """
    draws.pick(seed, purpose, first, _shares_table(shares), out)


@lru_cache(maxsize=64)
def _shares_table(shares: tuple[float, ...]) -> Kinds:
    """Return a table of 65,536 equally likely entries: uint8[65_536].

    The number k fills the share shares[k - 1] of the table. The rest is 0.
    """
    ends = np.rint(np.cumsum(shares) * QUANTILES).astype(np.int64)
    table = np.zeros(QUANTILES, np.uint8)
    for k, (first, end) in enumerate(zip([0, *ends[:-1]], ends, strict=True), start=1):
        table[first:end] = k
    return read_only(table)


@dataclass(frozen=True, kw_only=True)
class BlockColumns:
    """Times, offsets, lengths and kinds of records, as columns with one item per record. There is no payload yet."""

    timestamps_ms: Int64
    offsets: Int64
    key_lengths: Int32
    value_lengths: Int32
    contents: Int32  # [records, headers]: lengths of header values
    kinds: Kinds | None  # the kind of each record; None if all records are plain

    @classmethod
    def empty(cls, model: WorkloadModel, records: int) -> Self:
        return cls(
            timestamps_ms=np.empty(records, np.int64),
            offsets=np.empty(records, np.int64),
            key_lengths=np.empty(records, np.int32),
            value_lengths=np.empty(records, np.int32),
            contents=np.empty((records, len(model.header)), np.int32),
            kinds=np.zeros(records, np.uint8) if model.has_kinds else None,
        )

    def cut(self, first: int, records: int) -> Self:
        """Return views of the columns for the records first to first + records - 1."""
        part = slice(first, first + records)
        columns: dict[str, Any] = {name: None if each is None else each[part] for name, each in vars(self).items()}
        return type(self)(**columns)

    def put(self, other: Self) -> None:
        """Copy all columns of `other` into these columns. Both must have the same number of records."""
        for name, column in vars(other).items():
            if column is not None:
                getattr(self, name)[:] = column

    def shapes(self, model: WorkloadModel) -> Shapes:
        """Return the records' shapes as read-only views of these columns, which stay writable."""
        records, headers = self.contents.shape
        names = np.empty(records * headers, np.int32)
        if headers:
            repeat(np.array([len(each.name.encode()) for each in model.header], np.int32), names)
        return Shapes.trusted(
            timestamps_ms=read_only(self.timestamps_ms),
            offsets=read_only(self.offsets),
            key_lengths=read_only(self.key_lengths),
            value_lengths=read_only(self.value_lengths),
            header_bounds=read_only(np.arange(records + 1) * headers),
            header_key_lengths=read_only(names),
            header_value_lengths=read_only(self.contents.reshape(-1)),
        )


@dataclass(frozen=True)
class BlockBatches:
    """The batches of a block of 65,536 records, or of a part of a block.

    Args:
        bounds: int64[batches + 1], the index of the first record of each batch, then the number of records.
        fields: header fields that differ between batches, by name, with one item per batch.
    """

    bounds: Int64
    fields: HeaderFields

    def cut(self, first: int, records: int) -> "BlockBatches":
        """Return the batches that have records first to first + records - 1, cut to these records.

        The bounds of the result count from `first`.
        """
        if records == BLOCK_RECORDS:
            return self
        begin = int(np.searchsorted(self.bounds, first, side="right")) - 1
        end = int(np.searchsorted(self.bounds, first + records, side="left"))
        fields = {name: column[begin:end] for name, column in self.fields.items()}
        if "base_sequence" in fields and "base_offset" not in fields:  # a compacted batch keeps its sequence
            fields["base_sequence"] = fields["base_sequence"].copy()
            fields["base_sequence"][0] += first - self.bounds[begin]
        return BlockBatches(np.clip(self.bounds[begin : end + 1] - first, 0, records), fields)


@dataclass(frozen=True)
class RecordBlock:
    model: WorkloadModel
    seed: int
    number: int
    _known_ids: dict[KeyDistribution, Int64] = field(default_factory=dict, repr=False)

    @property
    def first(self) -> int:
        return self.number * BLOCK_RECORDS

    def fill(self, columns: BlockColumns) -> BlockBatches:
        """Fill the columns of all 65,536 records of the block. Return the block's batches."""
        kinds, starts, batching = columns.kinds, None, self.model.batching
        if kinds is not None:
            starts = self._fill_kinds(kinds)
        if isinstance(batching, CompactionSurvivors):
            columns.offsets[:] = batching.offsets(self.seed, self.number)
        else:
            np.add(NUMBERS, self.first, out=columns.offsets)
        bounds = plan_batches(batching, self.seed, self.number, starts, columns.offsets)
        if kinds is not None and isinstance(batching, Transactions):
            assert bounds is not None
            kinds[bounds[2::2] - 1] = MARKER
        arrived_us = times_us(self.model.arrival, self.seed, self.number)
        self._fill_timestamps(arrived_us, bounds, columns.timestamps_ms)
        self._fill_lengths(KEY, kinds, columns.key_lengths)
        self._fill_lengths(VALUE, kinds, columns.value_lengths)
        if self.model.header:
            self._fill_contents(columns.contents)
        if bounds is None:
            assert isinstance(batching, Linger)
            bounds = linger_batches(batching, arrived_us, columns.shapes(self.model))
        return BlockBatches(bounds, self._header_fields(bounds, arrived_us, columns))

    def _fill_kinds(self, kinds: Kinds) -> Int64 | None:
        """Draw the kind of each record. Return the indexes of records that are not tombstones: int64[any].

        Return None if the workload has no tombstones.
        """
        others = self.model.other
        if not others:
            kinds[:] = PLAIN
            return None
        shares = tuple(each.share for each in others)
        if not self.model.has_tombstones:
            pick_shares(shares, self.seed, KINDS, self.first, kinds)
            return None
        followed = np.zeros(256, np.bool_)
        followed[1 : len(others) + 1] = [each.tombstone for each in others]
        drawn, starts = np.empty(BLOCK_RECORDS, np.uint8), np.empty(BLOCK_RECORDS, np.int64)
        pick_shares(shares, self.seed, KINDS, self.first, drawn)
        return starts[: pairs(drawn, followed, TOMBSTONE, PLAIN, kinds, starts)]

    def _fill_timestamps(self, arrived_us: Int64, bounds: Int64 | None, out: Int64) -> None:
        milliseconds(arrived_us, START_OF_2026_MS, out)
        time = self.model.time
        if bounds is not None and time.same_in_batch:
            out[:] = np.repeat(out[bounds[:-1]], np.diff(bounds))
        elif bounds is not None and time.period_ms:
            last = bounds[1:] - 1
            out[:] = np.repeat(out[last] - last * time.period_ms, np.diff(bounds))
            out += NUMBERS * time.period_ms
        if time.lag_ms is not None:
            out -= draw(lengths_table(time.lag_ms), self.seed, LAGS, self.first, BLOCK_RECORDS)

    def _fill_lengths(self, column: Column, kinds: Kinds | None, out: Int32) -> None:
        """Fill `out`, int32[65_536], with the lengths of the block's keys or values; -1 for null.

        Varying lengths are drawn first. Lengths that are the same for a kind of record, and nulls, overwrite them.

        column: KEY or VALUE.
        """
        same, null_shares = np.full(256, DRAWN, np.int32), np.zeros(256, np.int32)
        self._draw_kinds(column, kinds, out, same, null_shares)
        if self.model.has_tombstones and column == VALUE:
            same[TOMBSTONE] = NULL_LENGTH
        if isinstance(self.model.batching, Transactions):
            same[MARKER] = MARKER_LAYOUTS[column].itemsize
        if kinds is None and not null_shares[PLAIN]:
            if same[PLAIN] != DRAWN:
                out[:] = same[PLAIN]
            return
        chances = NO_CHANCES
        if null_shares.any():
            chances = draw(ALL_CHANCES, self.seed, NULLS, self.first, BLOCK_RECORDS)
        if null_shares.any() or (same != DRAWN).any():
            settle(ALL_PLAIN if kinds is None else kinds, same, null_shares, chances, out)
        if kinds is not None and self.model.has_tombstones and column == KEY and same[TOMBSTONE] == DRAWN:
            after = np.flatnonzero(kinds == TOMBSTONE)
            out[after] = out[after - 1]

    def _draw_kinds(self, column: Column, kinds: Kinds | None, out: Int32, same: Int32, null_shares: Int32) -> None:
        """Draw the lengths that vary into `out`, and fill two tables by kind of record, int32[256].

        Args:
            same: the length that all records of a kind have; DRAWN if lengths vary.
            null_shares: the share of nulls, multiplied by 65,536.
        """
        for key, part, stream, mine in generators(self.model, column):
            if part is None:
                same[mine] = NULL_LENGTH
            elif (length := part.same_length) is not None:
                same[mine] = length
            elif kinds is None or (mine[PLAIN] and part.length is not None):  # for all records: most are plain
                self._draw_lengths(part, stream, key, None, out)
            else:
                at = np.empty(BLOCK_RECORDS + 1, np.int64)
                at = at[: places(kinds, mine, at)]
                lengths = np.empty(len(at), np.int32)
                self._draw_lengths(part, stream, key, at, lengths)
                out[at] = lengths
            if isinstance(part, ValueTable):
                null_shares[mine] = round(part.null_share * QUANTILES)

    def _fill_contents(self, out: Int32) -> None:
        """Fill `out`, int32[65_536, headers], with the lengths of header values."""
        known = [each.same_length for each in self.model.header]
        repeat(np.array([each or 0 for each in known], np.int32), out.reshape(-1))
        lengths = np.empty(BLOCK_RECORDS, np.int32)
        for h, header in enumerate(self.model.header):
            if known[h] is None:
                self._draw_lengths(header, HEADERS + h, self.model.key, None, lengths)
                out[:, h] = lengths

    def _draw_lengths(self, part: TextTable, stream: int, key: KeyTable | None, mine: Int64 | None, out: Int32) -> None:
        """Fill `out` with lengths of keys, values or header values.

        Lengths are drawn from the distribution `part.length`. Without it, they are the lengths that the template
        produces by itself.

        Args:
            stream: the number of the stream of random draws.
            key: the [key] table of these records, for parts that depend on the key.
            mine: int64[n], the indexes of the records in the block of 65,536 records; None: all records.
        """
        if part.length is not None and mine is None and not isinstance(part, KeyTable):
            draws.pick(self.seed, LENGTHS + stream, self.first, lengths_table(part.length), out)
            return
        numbers = (NUMBERS if mine is None else mine) + self.first
        own_ids = self._ids(key) if mine is None else self._ids(key)[mine]
        by = own_ids if isinstance(part, KeyTable) else numbers
        if part.length is not None:
            draws.pick_at(self.seed, LENGTHS + stream, by, lengths_table(part.length), out)
        else:
            out[:] = part.parsed.natural(self.seed, FILLED + stream, by, keys=own_ids)

    def _ids(self, key: KeyTable | None) -> Int64:
        """Return the key ids of all records of the block: int64[65_536]. They are cached per key distribution."""
        distribution = KeyDistribution() if key is None else key.distribution
        if distribution not in self._known_ids:
            self._known_ids[distribution] = distribution.ids(self.seed, self.first, BLOCK_RECORDS)
        return self._known_ids[distribution]

    def _header_fields(self, bounds: Int64, arrived_us: Int64, columns: BlockColumns) -> HeaderFields:
        """Return the batch header fields that can differ between batches, by name."""
        model, found = self.model, {}
        batches = len(bounds) - 1
        first = self.first + bounds[:-1]
        if isinstance(model.batching, CompactionSurvivors):
            of_records = model.batching.of_records
            first = columns.offsets[bounds[:-1]] // of_records * of_records
            found = {"base_offset": first, "last_offset": first + (of_records - 1)}
            if model.batching.delete_retention_ms is not None:
                tombstones = np.empty(batches, np.bool_)
                has_null(columns.value_lengths, bounds, tombstones)
                last_ms = columns.timestamps_ms[bounds[1:] - 1]
                after_ms = model.batching.cleaned_after_ms + model.batching.delete_retention_ms
                found["delete_horizon_ms"] = np.where(tombstones, last_ms + after_ms, NO_TIMESTAMP)
        if isinstance(model.batching, Transactions):
            transaction = np.arange(batches) >> 1
            marker = np.arange(batches) & 1
            ids_per_block = BLOCK_RECORDS // MAX_EPOCH + 1
            found["producer_id"] = PRODUCER_ID + self.number * ids_per_block + transaction // MAX_EPOCH
            found["producer_epoch"] = transaction % MAX_EPOCH + marker  # a marker has the next epoch
            found["base_sequence"] = np.where(marker, NO_SEQUENCE, 0)
            found["is_control"] = marker.astype(np.bool_)
        elif model.producer.idempotent:
            found["base_sequence"] = first & LAST_SEQUENCE
        if model.time.append_time:
            found["append_time_ms"] = arrived_us[bounds[1:] - 1] // 1000 + (START_OF_2026_MS + APPEND_DELAY_MS)
        return found


def repeat(unit: NDArray[Any], out: NDArray[Any]) -> None:
    """Fill the array `out` with copies of the array `unit`. The last copy may be cut.

    The filled part is doubled until `out` is full. NumPy would copy one unit at a time, which takes 50 ns each.
    """
    data, done = out.view(np.uint8), unit.nbytes
    data[:done] = unit.view(np.uint8)[: len(data)]
    while done < len(data):
        data[done : 2 * done] = data[: min(done, len(data) - done)]
        done *= 2
