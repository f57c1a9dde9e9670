"""The kind "floor", the metadata floor: a lower limit for the bytes of metadata, as a yardstick for formats.

It is the size of a small batch header plus the entropy of the lengths, timestamps and offsets. Metadata is everything
except keys, values, header keys and header values. The floor has two parts.

1. The header of each batch, as small as we can make it: 29 bytes (base offset 8, length 4, leader epoch 4, magic 1, CRC
  4, attributes 2, latest timestamp 6). Other fields are counted only where they are needed:

    producer id, epoch, sequence    14 bytes together, if any of them is set
    record count                    a uvarint, always
    last offset delta               a uvarint, if the offsets have holes
    append time, delete horizon     6 bytes each
    base timestamp                  6 bytes, if it is set and is not the first record's
    maximum timestamp               6 bytes, if it is set and is not the latest of the records
    tagged fields of the caller     their own bytes

2. The zero-order entropy of each column: the sum of -log2(share of the symbol in its column) over all symbols. The
  shares are those of the whole sample, so there is one model per column for all batches. The model does not look at
  neighbouring records. Only a symbol may depend on them, such as a difference to the record before:

    timestamp_delta       the cheapest of four:
                          ages: latest - timestamp, one per record;
                          deltas to the batch's base timestamp, as in v2 and v3. A first record that is the base needs
                          no symbol;
                          deltas to the record before. The first record of each batch needs no symbol;
                          distances from the line through the first and last record of a batch, one for each record
                          between them; and last - first, one per batch.
                          Each of the four gives the timestamps back, because the header has the latest timestamp. If
                          the header has no base, the base is the latest timestamp minus the largest delta, or minus 0.
    offset_delta          number of offsets skipped since the record before, or since the base offset
    key_length            null is a symbol
    value_length          null is a symbol
    header_count          one symbol per record
    header_key_length     one model for the first header of a record, one for the second, and so on
    header_value_length   one model for the first header of a record, one for the second, and so on

By Gibbs' inequality, a code with a fixed length for each symbol of a column cannot be shorter than this entropy. So no
column of v2 or v3 is shorter. Their offset deltas are other symbols than the skipped offsets, but are not shorter.

Two things are not counted:

- The model itself is free.
- The shares come from the sample, so a smaller sample has a lower floor. The floor of the sample's source is higher, by
  about (symbols - 1) / (2 ln 2) bits per column if there are few symbols and many records (Miller and Madow 1955). With
  this correction, the floor would be an estimate for the source, and no limit for the sample.

A format may be below the floor for three reasons:

- Its codes use more than one symbol: better symbols, a model per batch, columns coded together, or headers that records
  share and that are stored once.
- It leaves something out, as v0 does with timestamps.
- Its batch header is smaller: our header is a choice, not an entropy.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from kfbench.arrays import Int64
from kfbench.batches import NO_FIELDS, BatchFields
from kfbench.layouts import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, NO_SEQUENCE, NO_TIMESTAMP, UNSET
from kfbench.measure.cell import Cell
from kfbench.measure.columns import Row, counts_text
from kfbench.measure.kinds.base import GridBlock, GridPlan, Kernels, Kind, sample_of
from kfbench.measure.kinds.bytes import BytesSettings
from kfbench.records import Shapes

FLOOR: Final = "floor"  # in the column `format`
HEADER_BYTES: Final = 29
PRODUCER_BYTES: Final = 14
TIME_BYTES: Final = 6
_NO_DOUBT_BITS: Final = 1e-6  # added before rounding down, so that whole bytes are the same on every host
_UVARINT_STEPS: Final = np.array([1 << bits for bits in range(7, 64, 7)], np.uint64)
_DENSE: Final = 4  # count in an array if the symbols' range is below this multiple of their number, else sort


@dataclass(frozen=True, kw_only=True)
class Floor:
    """A lower limit for the metadata bytes of some records in batches. The module explains how it is computed.

    Args:
        records: the number of records.
        batches: the number of batches.
        header_bytes: the size in bytes of all batch headers together.
        bits: the entropy in bits of each column of metadata, by the column's name.
        payload: the size in bytes of all keys, values, header keys and header values, by name.
    """

    records: int
    batches: int
    header_bytes: int
    bits: Mapping[str, float]
    payload: Mapping[str, int]

    @cached_property
    def field_bytes(self) -> dict[str, int]:
        """The lower limit in bytes for the batch headers, each metadata column and each payload field, by name.

        The entropy of a column is rounded down to bytes, because it is a lower limit.
        """
        columns = {name: int((bits + _NO_DOUBT_BITS) // 8) for name, bits in self.bits.items()}
        return {"batch_header": self.header_bytes, **columns, **self.payload}

    @property
    def payload_bytes(self) -> int:
        return sum(self.payload.values())

    @property
    def overhead_bytes(self) -> int:
        return sum(self.field_bytes.values()) - self.payload_bytes

    @property
    def columns(self) -> dict[str, Any]:
        """The lower limit as columns of one row of the result table."""
        return {
            "records": self.records,
            "batches": self.batches,
            "size_bytes": self.overhead_bytes + self.payload_bytes,
            "payload_bytes": self.payload_bytes,
            "overhead_bytes": self.overhead_bytes,
            "field_bytes": counts_text(self.field_bytes),
        }


def floor(shapes: Shapes, bounds: Int64, batch_fields: BatchFields = NO_FIELDS) -> Floor:
    """Compute the metadata floor: a lower limit for the bytes of metadata of these records in these batches.

    This needs memory for about ten columns. bounds: int64[batches + 1], the index of the first record of each batch,
    then the number of records.
    """
    fields = batch_fields.over(len(bounds) - 1)
    sizes = np.diff(bounds)
    held = sizes > 0
    first = bounds[:-1][held]
    latest_ms = np.maximum.reduceat(shapes.timestamps_ms, first) if len(first) else first
    horizon_ms, first_ms = fields["delete_horizon_ms"], _of_held(shapes.timestamps_ms[first], held)
    base_ms = _set_or(fields["base_timestamp_ms"], np.where(horizon_ms >= 0, horizon_ms, first_ms))[held]
    base_offsets = _set_or(fields["base_offset"], _of_held(shapes.offsets[first], held))
    gaps = np.diff(shapes.offsets, prepend=shapes.offsets[:1]) - 1
    gaps[first] = shapes.offsets[first] - base_offsets[held]
    header_counts = np.diff(shapes.header_bounds)
    positions = np.arange(shapes.header_count) - np.repeat(shapes.header_bounds[:-1], header_counts)
    header_key_bytes = int(shapes.header_key_lengths.sum(dtype=np.int64))
    return Floor(
        records=len(shapes),
        batches=len(sizes),
        header_bytes=int(
            HEADER_BYTES * len(sizes)
            + np.broadcast_to(_fields_bytes(shapes, fields, held, first, latest_ms), len(sizes)).sum()
            + _uvarint_bytes(sizes).sum()
            + _last_offset_bytes(shapes, bounds, fields, base_offsets, gaps).sum()
        ),
        bits={
            "timestamp_delta": _time_bits(shapes.timestamps_ms, latest_ms, base_ms, first, sizes[held]),
            "offset_delta": _bits(gaps),
            "key_length": _bits(shapes.key_lengths),
            "value_length": _bits(shapes.value_lengths),
            "header_count": _bits(header_counts),
            "header_key_length": _bits_by_position(shapes.header_key_lengths, positions),
            "header_value_length": _bits_by_position(shapes.header_value_lengths, positions),
        },
        payload={
            "key": shapes.key_bytes,
            "value": shapes.value_bytes,
            "header_key": header_key_bytes,
            "header_value": shapes.header_bytes - header_key_bytes,
        },
    )


def _of_held(values: Int64, held: NDArray[np.bool_], otherwise: Int64 | int = 0) -> Int64:
    """Return int64[batches]: the next item of `values` for each batch with records, `otherwise` for empty batches.

    held: bool[batches], True for batches with records. values: one item per batch with records.
    """
    found = np.broadcast_to(np.asarray(otherwise, np.int64), len(held)).copy()
    found[held] = values
    return found


def _set_or(given: Int64, derived: Int64) -> Int64:
    return np.where(given == UNSET, derived, given)


def _fields_bytes(
    shapes: Shapes, fields: NDArray[np.void], held: NDArray[np.bool_], first: Int64, latest_ms: Int64
) -> Int64:
    """Return the size in bytes of the optional header fields per batch, without the last offset delta.

    The result is int64[batches], or one item if all batches have the same size. held: bool[batches], True for batches
    with records. first, latest_ms: one item per batch with records.
    """
    base_ms, max_ms, horizon_ms = (
        fields[f"{name}_ms"] for name in ("base_timestamp", "max_timestamp", "delete_horizon")
    )
    has_base = (base_ms != UNSET) & (horizon_ms < 0)
    has_producer = (
        (fields["producer_id"] != NO_PRODUCER_ID)
        | (fields["producer_epoch"] != NO_PRODUCER_EPOCH)
        | (fields["base_sequence"] != NO_SEQUENCE)
    )
    times = (fields["append_time_ms"] != NO_TIMESTAMP).astype(np.int64) + (horizon_ms >= 0)
    if has_base.any():
        times = times + (held & has_base & (base_ms != _of_held(shapes.timestamps_ms[first], held)))
    if (max_ms != UNSET).any():
        times = times + (held & (max_ms != UNSET) & (max_ms != _of_held(latest_ms, held)))
    found: Int64 = PRODUCER_BYTES * has_producer + TIME_BYTES * times + fields["tags_bytes"]
    return found


def _last_offset_bytes(
    shapes: Shapes, bounds: Int64, fields: NDArray[np.void], base_offsets: Int64, gaps: Int64
) -> Int64:
    """Return the size in bytes of the last offset delta per batch, int64[batches].

    It is 0 for a batch without holes in its offsets.
    """
    sizes, ends = np.diff(bounds), bounds[1:]
    held = sizes > 0
    last_offsets = _set_or(fields["last_offset"], _of_held(shapes.offsets[ends[held] - 1], held, base_offsets))
    deltas = last_offsets - base_offsets
    holes = np.concatenate([[0], np.cumsum(gaps != 0)])
    is_dense = (holes[ends] == holes[bounds[:-1]]) & (deltas == sizes - 1)
    return np.where(is_dense, 0, _uvarint_bytes(deltas))


def _uvarint_bytes(values: Int64) -> Int64:
    return 1 + np.searchsorted(_UVARINT_STEPS, values.astype(np.uint64), side="right")


def _time_bits(timestamps_ms: Int64, latest_ms: Int64, base_ms: Int64, first: Int64, sizes: Int64) -> float:
    """Return the entropy of the timestamps in bits: the smallest of four ways to code them.

    Differences beyond int64 wrap around; adding them wraps back. timestamps_ms: int64[records]. The other arrays have
    one item per batch with records.
    """
    by_age = _bits(np.repeat(latest_ms, sizes) - timestamps_ms)
    number = np.arange(len(timestamps_ms)) - np.repeat(first, sizes)
    to_base = timestamps_ms - np.repeat(base_ms, sizes)
    by_base = _bits(to_base[(number > 0) | (to_base != 0)])
    by_step = _bits(np.diff(timestamps_ms)[number[1:] > 0])
    first_ms = timestamps_ms[first]
    spreads = timestamps_ms[first + sizes - 1] - first_ms
    steps = np.maximum(sizes - 1, 1)
    inner = (number > 0) & (number < np.repeat(steps, sizes))
    line = np.repeat(first_ms, sizes) + np.repeat(spreads, sizes) * number // np.repeat(steps, sizes)
    by_line = _bits(spreads[sizes > 1]) + _bits((timestamps_ms - line)[inner])
    return min(by_age, by_base, by_step, by_line)


def _bits_by_position(lengths: NDArray[np.int32], positions: Int64) -> float:
    """Return the entropy of header lengths in bits, with one model for the first header of a record, and so on.

    positions: the index of each header in its record. The result is the entropy of the pairs (position, length) minus
    that of the positions. The positions cost nothing, because they follow from the header counts.
    """
    if not len(lengths):
        return 0.0
    both = positions * (int(lengths.max()) + 2) + (lengths + np.int64(1))
    return max(_bits(both) - _bits(positions), 0.0)


def _bits(symbols: NDArray[Any]) -> float:
    """Return the zero-order entropy of the symbols in bits, summed over all symbols."""
    counts = _counts(symbols)
    return float(np.sum(counts * np.log2(len(symbols) / counts)))


def _counts(symbols: NDArray[Any]) -> Int64:
    """Return the number of occurrences of each distinct symbol."""
    if not len(symbols):
        return np.zeros(0, np.int64)
    least = symbols.min()
    if int(symbols.max()) - int(least) < _DENSE * len(symbols):
        counts = np.bincount(symbols - least)
        return counts[counts > 0]
    return np.unique_counts(symbols).counts


_CELL_S: Final = 4e-4
_RECORD_NS: Final = 150  # generating a record and counting its values for the entropy


class FloorKind(Kind):
    name = "floor"
    section = "bytes"
    settings = BytesSettings
    meanings = {"format": "the word floor"}
    rides_on = "bytes"
    is_verified = False

    def cells_per_point(self, block: GridBlock, settings: Any, codecs: int) -> int:
        return 1

    def cells(self, cell: Cell, plan: GridPlan) -> Iterator[Cell]:
        """Yield one cell, without a codec."""
        extent = plan.extent(self.amount(plan.settings, "none"))
        yield replace(cell, formats=(FLOOR,), **extent._asdict())

    def rows_of_format(self, cell: Cell, name: str) -> Iterator[Row]:
        """Compute the floor from shapes. No payload is generated."""
        sample = sample_of(cell)
        yield floor(sample.shapes, sample.bounds, sample.batch_fields).columns

    def estimate_s(self, cell: Cell) -> float:
        return _CELL_S + cell.records * _RECORD_NS * 1e-9

    def kernels(self, cell: Cell) -> Kernels | None:
        return None


KINDS: Final = (FloorKind(),)
