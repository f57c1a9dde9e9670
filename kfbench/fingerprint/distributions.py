"""Collect the distributions of a topic's records: lengths, batches, times, offsets, producers, keys and bytes.

All sums are integers that add up over chunks, parts and workers. `fingerprint.merging` writes them to the file. Hashes
of keys and their seed stay in this process.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from kfbench.arrays import Bytes, Int32, Int64, freeze
from kfbench.fingerprint.counted import Counted, Hashes, HashSample, codes_of
from kfbench.kernels.broker import item_hashes
from kfbench.layouts import NO_PRODUCER_ID, NULL_LENGTH
from kfbench.records import Records, Shapes
from kfbench.sources import Chunk
from kfbench.whatif.rebatch import LATEST_MS, Sent
from kfbench.workloads.fingerprinted.parts import HEADER_POSITIONS, POSITIONS

FIRST_DATE_MS: Final = 10**12
"""September 2001. A span from an earlier time, such as 0, would tell the date of the others."""
LONGEST_STEP_MS: Final = 1 << 32  # about 50 days; longer steps are counted as this one
LARGEST_GAP: Final = 1 << 20
MOST_CLASSES: Final = 65_536  # classes in memory
SAMPLED: Final = 1_024  # records per chunk whose bytes are counted by position
FIELDS: Final = ("key", "value", "headers", "header_bytes")
STEPS: Final = ("time_steps_ms", "batch_time_steps_ms", "offset_gaps", "batch_offset_gaps")
_NULL, _FIELD_BITS = 0, 8

Seed = tuple[int, int]


@dataclass(frozen=True)
class Classes:
    """Records by the buckets of four lengths: key, value, number of headers, bytes of headers.

    level: buckets are 2**level eighths of an octave wide. It is the smallest with at most MOST_CLASSES classes. The
    sums are those of `RecordClass`, without nulls of keys and values, which have buckets of their own.
    """

    level: int = 0
    counted: Counted = field(default_factory=Counted)

    @classmethod
    def of(cls, shapes: Shapes) -> Self:
        headers = np.diff(shapes.header_bounds)
        nothing = np.zeros((), np.int64)
        names = contents = nulls = nothing
        if shapes.has_headers:
            names = _by_record(shapes.header_key_lengths, shapes.header_bounds)
            contents = _by_record(np.maximum(shapes.header_value_lengths, 0), shapes.header_bounds)
            nulls = _by_record(shapes.header_value_lengths == NULL_LENGTH, shapes.header_bounds)
        packed = np.zeros(len(shapes), np.int64)
        for lengths in (shapes.key_lengths, shapes.value_lengths, headers, names + contents):
            packed <<= _FIELD_BITS
            packed |= np.where(lengths < 0, _NULL, codes_of(lengths) + 1) if lengths.ndim else 1
        keys, values = (np.maximum(each, 0) for each in (shapes.key_lengths, shapes.value_lengths))
        counts = headers if shapes.has_headers else nothing
        return cls(0, Counted.of(packed, keys, values, counts, names, contents, nulls))._limited()

    def plus(self, other: Self) -> Self:
        level = max(self.level, other.level)
        return type(self)(level, self._at(level).plus(other._at(level)))._limited()

    def _at(self, level: int) -> Counted:
        return _coarser(self.counted, level - self.level) if level > self.level else self.counted

    def _limited(self) -> Self:
        found = self
        while len(found.counted.codes) > MOST_CLASSES:
            found = found.coarser()
        return found

    def coarser(self) -> Self:
        """Return the same records in buckets that are twice as wide."""
        return type(self)(self.level + 1, _coarser(self.counted, 1))

    def fields(self) -> Int64:
        """Return the codes of the four lengths of each class: int64[classes, 4]; 0 is null."""
        return np.stack(_unpacked(self.counted.codes), axis=1)


def _unpacked(codes: Int64) -> list[Int64]:
    return [codes >> (shift * _FIELD_BITS) & 0xFF for shift in (3, 2, 1, 0)]


def _coarser(counted: Counted, levels: int) -> Counted:
    """Make buckets 2**levels times as wide. Nulls and lengths of 0 keep their own."""
    packed = np.zeros(len(counted.codes), np.int64)
    for codes in _unpacked(counted.codes):
        packed = packed << _FIELD_BITS | np.where(codes < 2, codes, (np.maximum(codes, 2) - 2 >> levels) + 2)
    return Counted.grouped(packed, counted.sums)


def _by_record(of_headers: NDArray[np.generic], bounds: Int64) -> Int64:
    until = np.append(0, np.cumsum(of_headers, dtype=np.int64))
    sums: Int64 = np.diff(until[bounds])
    return sums


@dataclass(frozen=True)
class Positions:
    """Bytes by position, of a sample of keys or values.

    counts: int64[POSITIONS, 256], by byte. compared, same: int64[POSITIONS], the number of pairs of successive records
    that both reach the position, and the number of those with the same byte.
    """

    counts: Int64 = field(default_factory=lambda: np.zeros((POSITIONS, 256), np.int64))
    compared: Int64 = field(default_factory=lambda: np.zeros(POSITIONS, np.int64))
    same: Int64 = field(default_factory=lambda: np.zeros(POSITIONS, np.int64))

    @classmethod
    def of(cls, data: Bytes, starts: Int64, lengths: Int32) -> Self:
        """Count a sample of the items, each compared with the item before."""
        n = len(lengths)
        if not n or not len(data):
            return cls()
        drawn = np.arange(min(n, SAMPLED)) * n // min(n, SAMPLED)
        at = np.arange(POSITIONS)

        def bytes_of(items: Int64) -> Bytes:
            found: Bytes = data[np.clip(starts[items][:, None] + at, 0, len(data) - 1)]
            return found

        reached = at < lengths[drawn][:, None]
        items = bytes_of(drawn)
        before = np.maximum(drawn - 1, 0)
        both = reached & (at < lengths[before][:, None]) & (drawn > 0)[:, None]
        flat = (at * 256 + items)[reached]
        return cls(
            np.bincount(flat, minlength=POSITIONS * 256).reshape(POSITIONS, 256),
            both.sum(0),
            (both & (items == bytes_of(before))).sum(0),
        )

    def plus(self, other: Self) -> Self:
        return type(self)(self.counts + other.counts, self.compared + other.compared, self.same + other.same)


class HeaderSums(NamedTuple):
    """The sums of one header position. compared: headers of records that have a record before."""

    headers: int
    key_bytes: int
    value_bytes: int
    compared: int
    same_key: int
    same_value: int


def _header_sums(records: Records, seed: NDArray[np.uint64]) -> Int64:
    """Return the columns of `HeaderSums` by position, int64[6, HEADER_POSITIONS]. Compare with the record before."""
    shapes, bounds = records.shapes, records.shapes.header_bounds
    if not shapes.has_headers:
        return np.zeros((len(HeaderSums._fields), HEADER_POSITIONS), np.int64)
    counts = np.diff(bounds)
    record = np.repeat(np.arange(len(shapes)), counts)
    place = np.arange(len(record)) - bounds[:-1][record]
    before = np.maximum(record - 1, 0)
    is_compared = record > 0
    has_other = is_compared & (counts[before] > place)
    other = np.where(has_other, bounds[before] + place, 0)
    value_bytes = np.maximum(shapes.header_value_lengths, 0)
    columns: list[NDArray[Any]] = [np.ones(len(record)), shapes.header_key_lengths, value_bytes, is_compared]
    for part in ("header_key", "header_value"):
        lengths = getattr(shapes, f"{part}_lengths")
        hashes = _hashes(getattr(records, f"{part}_data"), getattr(records, f"{part}_starts"), lengths, seed)
        same = hashes == hashes[other]
        columns.append(has_other & same & ((lengths < 0) == (lengths[other] < 0)))
    near = place < HEADER_POSITIONS
    found = [np.bincount(place[near], weights=column[near], minlength=HEADER_POSITIONS) for column in columns]
    return np.stack(found).astype(np.int64)


def _header_values(records: Records) -> dict[int, Positions]:
    """Return the bytes of header values by header position."""
    shapes = records.shapes
    counts = np.diff(shapes.header_bounds)
    found = {}
    for place in range(min(int(counts.max(initial=0)), HEADER_POSITIONS)):
        mine = shapes.header_bounds[:-1][counts > place] + place
        columns = records.header_value_starts[mine], shapes.header_value_lengths[mine]
        found[place] = Positions.of(records.header_value_data, *columns)
    return found


def _added(one: Mapping[int, Positions], other: Mapping[int, Positions]) -> dict[int, Positions]:
    return {p: one.get(p, Positions()).plus(other.get(p, Positions())) for p in one.keys() | other.keys()}


def _hashes(data: Bytes, starts: Int64, lengths: Int32, seed: NDArray[np.uint64]) -> Hashes:
    out = np.empty(len(lengths), np.uint64)
    item_hashes.hash_items(data, starts, lengths, seed, out)
    return out


class _Last(NamedTuple):
    """The last record so far: the timestamp and the offset."""

    time_ms: int
    offset: int


class Distributions:
    """The distributions of one part, or of several that were added.

    Differences between a part's last record and another part's first one are not counted.
    """

    def __init__(self, seed: Seed) -> None:
        self._seed = np.array(seed, np.uint64)
        self._seed.setflags(write=False)
        self._last: _Last | None = None
        self.records = self.untimed = self.producerless = self.same_keys = self.compared_keys = 0
        self.classes = Classes()
        self.per_batch = Counted()
        self.steps: Mapping[str, Counted] = {name: Counted() for name in STEPS}
        self.producers, self.keys = HashSample(), HashSample()
        self.key_bytes, self.value_bytes = Positions(), Positions()
        self.headers = np.zeros((len(HeaderSums._fields), HEADER_POSITIONS), np.int64)
        self.header_values: Mapping[int, Positions] = {}

    def plus(self, other: Self) -> Self:
        both = type(self)((0, 0))
        for name in ("records", "untimed", "producerless", "same_keys", "compared_keys", "headers"):
            setattr(both, name, getattr(self, name) + getattr(other, name))
        for name in ("classes", "per_batch", "producers", "keys", "key_bytes", "value_bytes"):
            setattr(both, name, getattr(self, name).plus(getattr(other, name)))
        both.header_values = _added(self.header_values, other.header_values)
        both.steps = {name: each.plus(other.steps[name]) for name, each in self.steps.items()}
        return both

    def add(self, chunk: Chunk, of_clients: Sent) -> None:
        """Add the records of clients. chunk: tells which of them are in one batch."""
        records, shapes = of_clients.records, of_clients.records.shapes
        if not len(records):
            return
        self.records += len(records)
        self.classes = self.classes.plus(Classes.of(shapes))
        is_first = self._batches(chunk)
        for name, found in _steps(shapes, is_first, self._last):
            self.steps = {**self.steps, name: self.steps[name].plus(found)}
        self.untimed += len(records) - int(np.count_nonzero(_usable(shapes.timestamps_ms)))
        self._last = _Last(int(shapes.timestamps_ms[-1]), int(shapes.offsets[-1]))
        self._owners(of_clients.owners["producer_id"])
        self._keys(records)
        self.key_bytes = self.key_bytes.plus(Positions.of(records.key_data, records.key_starts, shapes.key_lengths))
        values = Positions.of(records.value_data, records.value_starts, shapes.value_lengths)
        self.value_bytes = self.value_bytes.plus(values)
        self.headers = self.headers + _header_sums(records, self._seed)
        self.header_values = _added(self.header_values, _header_values(records))

    def _batches(self, chunk: Chunk) -> NDArray[np.bool_]:
        """Count records per batch. Return True for the first record of each batch of clients."""
        bounds = np.array([0, len(chunk.records)]) if chunk.bounds is None else chunk.bounds
        control = np.broadcast_to(chunk.fields.over(len(bounds) - 1)["is_control"], len(bounds) - 1)
        counts = np.diff(bounds)[~control]
        self.per_batch = self.per_batch.plus(Counted.of(codes_of(counts), counts))
        is_first = np.zeros(int(counts.sum()), np.bool_)
        is_first[(np.cumsum(counts) - counts)[counts > 0]] = True
        return is_first

    def _owners(self, producer_ids: Int64) -> None:
        starts = np.flatnonzero(np.append(True, producer_ids[1:] != producer_ids[:-1]))
        runs = np.diff(np.append(starts, len(producer_ids)))
        known = producer_ids[starts] != NO_PRODUCER_ID
        self.producerless += int(runs[~known].sum())
        ids = np.ascontiguousarray(producer_ids[starts[known]])
        columns = ids.view(np.uint8), np.arange(len(ids)) * 8, np.full(len(ids), 8, np.int32)
        freeze(*columns)
        self.producers = self.producers.plus(HashSample(hashes=_hashes(*columns, self._seed), counts=runs[known]))

    def _keys(self, records: Records) -> None:
        lengths = records.shapes.key_lengths
        is_null = lengths == NULL_LENGTH
        if is_null.all():
            return
        hashes = _hashes(records.key_data, records.key_starts, lengths, self._seed)
        same = (hashes[1:] == hashes[:-1]) & ~is_null[1:] & ~is_null[:-1]
        self.same_keys += int(np.count_nonzero(same))
        self.compared_keys += len(same)
        self.keys = self.keys.plus(HashSample.of(hashes[~is_null], self.keys.level))


def _usable(times_ms: Int64) -> NDArray[np.bool_]:
    usable: NDArray[np.bool_] = (times_ms >= FIRST_DATE_MS) & (times_ms < LATEST_MS)
    return usable


def _steps(shapes: Shapes, is_first: NDArray[np.bool_], last: _Last | None) -> Iterator[tuple[str, Counted]]:
    """Yield the histogram of each of STEPS: differences between a record and the one before."""
    times, offsets = shapes.timestamps_ms, shapes.offsets
    if last is not None:
        times, offsets = np.append(last.time_ms, times), np.append(last.offset, offsets)
    else:
        is_first = is_first[1:]
    usable = _usable(times)
    usable = usable[1:] & usable[:-1]
    steps = np.clip(np.diff(times), -LONGEST_STEP_MS, LONGEST_STEP_MS)
    gaps = np.clip(np.diff(offsets) - 1, -LARGEST_GAP, LARGEST_GAP)
    for name, values, wanted in zip(
        STEPS, (steps, steps, gaps, gaps), (usable & ~is_first, usable & is_first, ~is_first, is_first), strict=True
    ):
        yield name, Counted.of(codes_of(values[wanted]), values[wanted])
