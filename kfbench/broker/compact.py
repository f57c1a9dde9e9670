"""Compact one log as the log cleaner does, in every format (`kafka.log.Cleaner`, `MemoryRecords.filterTo` 3.9.1).

Remaining records keep their offsets. A batch that keeps all its records is copied. Any other batch is rebuilt with the
same codec and header fields, so gaps (holes) appear between the offsets of its records.

One call is one round of cleaning. Difference from Kafka: keys are compared byte by byte, not by their MD5. Two options
go beyond Kafka: `merge_bytes` joins consecutive batches (proposal "Kafka Enriched Message Metadata"), and `to` writes
another format (KIP-724).

A tombstone is a record with a null value: it deletes its key. A marker is a control batch that commits or aborts a
transaction. The delete horizon is the time, stored in a batch, until which its tombstones and markers stay.
"""

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kfbench.arrays import Bytes, Int64, ranges
from kfbench.batches import DecodedLog, EncodedLog
from kfbench.broker.source import bytes_of, find
from kfbench.broker.work import NewBatches, NewLog, Work, build
from kfbench.codecs import Allowance, Dictionary
from kfbench.errors import CorruptLog, InvalidRecords
from kfbench.formats import Format
from kfbench.kernels.broker import last_keys
from kfbench.layouts import (
    CONTROL_ABORT,
    CONTROL_COMMIT,
    CONTROL_KEY,
    NO_PRODUCER_ID,
    NO_TIMESTAMP,
    NULL_LENGTH,
    UNSET,
    position,
)
from kfbench.limits import Limits
from kfbench.log import read_log
from kfbench.log.writing import BatchEncodings, Slices, check_room, encodings_of, splice
from kfbench.records import Records

Flags = NDArray[np.bool_]
KEYS_TOGETHER: Final = 64  # keys that are looked up together; a core has fewer concurrent loads from memory
NO_TYPE: Final = -1  # the control type of a batch that is no control batch or has no record
DELETE_RETENTION_MS: Final = 86_400_000  # `delete.retention.ms`, Kafka's default
LARGEST_DELTA: Final = 2**31 - 1


@dataclass(frozen=True, kw_only=True)
class CompactResult(NewLog):
    """A log after one round of cleaning."""

    kept_records: int  # number of remaining records
    keyless_records: int = 0  # number of records that were removed because they have no key
    aborted_records: int = 0  # number of records that were removed because their transaction was aborted


def compact(
    log: EncodedLog | Any,
    *,
    fmt: Format | str | None = None,
    to: Format | str | None = None,
    now_ms: int,
    delete_retention_ms: int = DELETE_RETENTION_MS,
    keep_legacy_tombstones: bool = True,
    retain_last: bool = True,
    end_offset: int | None = None,
    merge_bytes: int = 0,
    lossy: bool = False,
    limits: Limits | None = None,
    dictionaries: Iterable[Dictionary] = (),
) -> CompactResult:
    """Clean a log once: keep the latest record of each key, at its offset.

    As in Kafka, a second round at the same `now_ms` may still change the log: it may set a delete horizon for
    transaction markers whose records the first round removed. A third round changes nothing.

    Args:
        fmt, to: the formats of the log and of the result. None: found by each batch's magic; each batch keeps its
            format.
        now_ms, delete_retention_ms: a tombstone stays until the sum of both times in the round that first finds it, and
            so does the marker of a transaction without records. The batch stores this time (delete horizon).
        keep_legacy_tombstones: True: keep tombstones in formats that cannot store a delete horizon. Kafka decides by
            the time of the segment's last change.
        retain_last: keep the last batch, even empty, so that the log keeps its last offset (KAFKA-17076, after 3.9.1).
        end_offset: copy the batches from this offset on. Batches from the first open transaction on are always copied.
        merge_bytes: join consecutive batches to one with at most this many bytes of keys, values and headers, if no
            header field is lost. 0: join none.
        lossy: allow the loss of properties that the format `to` cannot carry.
        dictionaries: zstd dictionaries. Without `fmt`, those that stand in the log are found, too.

    Raises:
        CorruptLog: damage, including an incomplete last batch. Or a result in another format whose size without a codec
            would exceed `limits.log_bytes` of the log.
        WouldLose, IllegalCombination: the format `to` cannot carry something, or lacks a codec.
    """
    source, target = bytes_of(log), None if to is None else find(to)
    whole = _whole(source, fmt, limits, dictionaries)
    history = history_of(whole)
    end = history.first_undecided
    if end_offset is not None and (beyond := np.flatnonzero(_last_offsets(whole) >= end_offset)).size:
        end = min(end, int(beyond[0]))
    decoded = _head(whole, end)
    kinds = _kinds(decoded, fmt)
    decided = choose_records(
        decoded,
        history,
        now_ms=now_ms,
        has_horizon=_of_kinds([_has_horizon(kind.fmt) for kind in kinds.kinds], kinds.number),
        keep_legacy_tombstones=keep_legacy_tombstones,
        retain_last=retain_last,
    )
    rewriting = _Rewriting(source, decoded, decided, kinds, target, Allowance.of(len(source), limits))
    compacted = rewriting.compact(now_ms + delete_retention_ms, merge_bytes, lossy)
    if end == len(whole):
        return compacted
    return _append_uncleaned(compacted, source, whole.batch_rows[end:])


def filtered(
    log: EncodedLog | Any,
    keep: ArrayLike,
    *,
    fmt: Format | str | None = None,
    retain_empty: ArrayLike = False,
    emptied_transaction: ArrayLike = False,
    now_ms: int,
    delete_retention_ms: int = DELETE_RETENTION_MS,
    limits: Limits | None = None,
    dictionaries: Iterable[Dictionary] = (),
) -> CompactResult:
    """Keep only the chosen records, in their batches (`MemoryRecords.filterTo`). Raise CorruptLog, InvalidRecords.

    The sum of now_ms and delete_retention_ms is the delete horizon: until then tombstones (null values) and markers
    stay.

    Args:
        keep: the records to keep, bool[records].
        retain_empty: batches that stay without records, bool[batches], or True for all. Only formats with empty batches
            keep them.
        emptied_transaction: transaction markers that get a delete horizon, bool[batches]. Batches with a kept tombstone
            get one, too.
        dictionaries: as in `compact`.
    """
    source = bytes_of(log)
    decoded = _whole(source, fmt, limits, dictionaries)
    decided = Retention(
        keep=_flags("keep", keep, len(decoded.records)),
        retain_empty=_flags("retain_empty", retain_empty, len(decoded)),
        emptied_transaction=_flags("emptied_transaction", emptied_transaction, len(decoded))
        & decoded.batch_rows["is_control"],
    )
    rewriting = _Rewriting(source, decoded, decided, _kinds(decoded, fmt), None, Allowance.of(len(source), limits))
    return rewriting.compact(now_ms + delete_retention_ms)


@dataclass(frozen=True, kw_only=True)
class Retention:
    """The records and batches that a round of cleaning keeps."""

    keep: Flags  # bool[records]: the record stays
    retain_empty: Flags  # bool[batches]: the batch stays as a header, even without records
    emptied_transaction: Flags  # bool[batches]: a marker whose transaction has no records left
    keyless_records: int = 0  # number of records removed because they have no key
    aborted_records: int = 0


@dataclass(frozen=True, kw_only=True)
class History:
    """The transactions of all producers in a whole log (`TransactionIndex`, `ProducerStateManager`).

    A marker is a control batch that commits or aborts a transaction.

    Args:
        aborted: batches of a transaction that was aborted, bool[batches].
        emptied: markers of a transaction without records, bool[batches].
        last: batches with a producer's last sequence number, or only its last epoch, bool[batches].
        first_undecided: number of the first batch whose transaction has no end; without one, the number of batches.
    """

    aborted: Flags
    emptied: Flags
    last: Flags
    first_undecided: int


def choose_records(
    log: DecodedLog,
    history: History,
    *,
    now_ms: int,
    has_horizon: Flags,
    keep_legacy_tombstones: bool,
    retain_last: bool,
) -> Retention:
    """Decide which records of these batches stay.

    The last record of each key stays. A tombstone (null value) stays until the delete horizon, a time in the header of
    its batch. A control record stays until its transaction has no batch left, and then until the horizon. A batch
    without records stays as a header if it is the last of its producer. With `retain_last` the last batch of the round
    stays too (KAFKA-17076).

    Args:
        history: the transactions of these batches and of the batches after them.
        now_ms: the time of the round.
        has_horizon: True if the format of the batch can store a delete horizon, bool[batches].
        keep_legacy_tombstones: True: tombstones and control records stay in formats without a delete horizon.
    """
    rows, counts = log.batch_rows, np.diff(log.bounds)
    aborted, emptied = history.aborted[: len(log)], history.emptied[: len(log)]
    expired = has_horizon & (rows["delete_horizon_ms"] != -1) & (rows["delete_horizon_ms"] <= now_ms)
    # Without a horizon in its batch, a tombstone or a marker expires by the age of the clean part of the log.
    expired |= ~has_horizon & (not keep_legacy_tombstones)
    discarded = np.where(rows["is_control"], emptied & expired, aborted)

    def of_records(batches: NDArray[np.bool_]) -> Flags:
        return np.repeat(batches, counts)

    shapes, data = log.records.shapes, of_records(~rows["is_control"])
    has_key, is_tombstone = shapes.key_lengths != NULL_LENGTH, shapes.value_lengths == NULL_LENGTH
    alive = data & ~of_records(discarded)
    keep = latest_of_keys(log.records, alive) & ~(is_tombstone & of_records(expired)) | of_records(
        rows["is_control"] & ~discarded
    )
    retain_empty = history.last[: len(log)].copy()
    if retain_last and len(rows):
        retain_empty[-1] = True
    return Retention(
        keep=keep,
        retain_empty=retain_empty,
        emptied_transaction=emptied,
        keyless_records=int(np.count_nonzero(alive & ~has_key)),
        aborted_records=int(counts[aborted].sum()),
    )


def latest_of_keys(records: Records, among: Flags) -> Flags:
    """Return which records in `among` (bool[records]) are the last with their key. Records without a key are left out.

    The result is exact. Kafka's `SkimpyOffsetMap` treats two keys with the same MD5 as equal. At most 2**32 - 1
    records.
    """
    found = np.empty(len(records), np.bool_)
    room = np.empty(KEYS_TOGETHER, np.uint64), np.empty(KEYS_TOGETHER, np.uint64)
    table = np.zeros(1 << max(1, (2 * len(records) - 1).bit_length()), np.uint64)
    seed = np.frombuffer(os.urandom(16), np.uint64)
    last_keys.latest(records.key_data, records.key_starts, records.shapes.key_lengths, among, seed, table, room, found)
    return found


def history_of(log: DecodedLog) -> History:
    """Find the transactions in a log. All its producers count as active."""
    rows, types = log.batch_rows, _control_types(log)
    order = np.flatnonzero(rows["producer_id"] != NO_PRODUCER_ID)
    order = order[np.argsort(rows["producer_id"][order], kind="stable")]
    producers, beyond = rows["producer_id"][order], len(order)
    is_marker = np.isin(types[order], (CONTROL_ABORT, CONTROL_COMMIT))
    # The index in `order` of the marker that ends each batch's transaction; `beyond`: there is none.
    ends = np.minimum.accumulate(np.where(is_marker, np.arange(beyond), beyond)[::-1])[::-1]
    is_ended = ends < beyond
    is_ended[is_ended] = producers[ends[is_ended]] == producers[is_ended]
    inside = (rows["is_transactional"] & ~rows["is_control"])[order]
    is_ended, undecided = inside & is_ended, order[inside & ~is_ended]

    aborted, emptied, last = (np.zeros(len(rows), np.bool_) for _ in range(3))
    aborted[order[is_ended]] = types[order[ends[is_ended]]] == CONTROL_ABORT
    emptied[order[is_marker]] = True
    emptied[order[ends[is_ended]]] = False
    if len(order):
        last[order] = _last_of_producers(producers, rows["producer_epoch"][order], ~rows["is_control"][order])
    return History(
        aborted=aborted, emptied=emptied, last=last, first_undecided=min(undecided.tolist(), default=len(rows))
    )


def _control_types(log: DecodedLog) -> NDArray[np.int16]:
    """Return the type of each batch's first control record (`ControlRecordType`), or NO_TYPE."""
    types = np.full(len(log), NO_TYPE, np.int16)
    filled = np.flatnonzero(log.batch_rows["is_control"] & (np.diff(log.bounds) > 0))
    at = log.records.key_starts[log.bounds[filled]] + position(CONTROL_KEY, "type")
    key_data = log.records.key_data
    types[filled] = key_data[at].astype(np.int16) << 8 | key_data[at + 1] if len(filled) else NO_TYPE
    return types


def _last_of_producers(producers: Int64, epochs: NDArray[np.int16], is_data: Flags) -> Flags:
    """Return which batches have the last sequence number of a producer (`ProducerStateEntry`).

    If a producer has only control batches in its last epoch, all of these are returned instead. There must be at least
    one batch. The batches are sorted by producer.
    """
    starts = np.flatnonzero(np.append(True, producers[1:] != producers[:-1]))
    ends = np.append(starts[1:], len(producers))
    numbers, owner = np.arange(len(producers)), np.repeat(np.arange(len(starts)), ends - starts)
    last_epoch = epochs[ends - 1][owner]
    # If a producer left an epoch and used it again, only the last use counts.
    left = np.maximum.reduceat(np.where(epochs != last_epoch, numbers, -1), starts)[owner]
    last_data = np.maximum.reduceat(np.where(is_data & (numbers > left), numbers, -1), starts)
    found: Flags = (last_data < 0)[owner] & ~is_data & (epochs == last_epoch)
    found[last_data[last_data >= 0]] = True
    return found


class _Rewriting:
    """Writes the result of one round of cleaning."""

    def __init__(
        self,
        source: Bytes,
        log: DecodedLog,
        decided: Retention,
        kinds: BatchEncodings,
        target: Format | None,
        allowance: Allowance,
    ) -> None:
        self.source, self.log, self.decided, self.rows = source, log, decided, log.batch_rows
        self.own, self.number, self.target, self.allowance = kinds.kinds, kinds.number, target, allowance
        self.kinds = [kind if target is None else replace(kind, fmt=target) for kind in kinds.kinds]
        before = np.append(0, np.cumsum(decided.keep))
        self.first, self.survivors = before[log.bounds[:-1]], np.diff(before[log.bounds])

    def compact(self, horizon_ms: int, merge_bytes: int = 0, lossy: bool = False) -> CompactResult:
        rows, decided, shapes, number = self.rows, self.decided, self.log.records.shapes, self.number
        is_same = _of_kinds([a.fmt == b.fmt for a, b in zip(self.own, self.kinds, strict=True)], number)
        has_horizon = _of_kinds([_has_horizon(kind.fmt) for kind in self.kinds], number)
        can_empty = _of_kinds([kind.fmt.capabilities.empty_batches for kind in self.kinds], number)
        tombstones = np.append(0, np.cumsum(self.decided.keep & (shapes.value_lengths == NULL_LENGTH)))
        has_tombstone = np.diff(tombstones[self.log.bounds]) > 0
        is_held = self.survivors > 0
        gets_horizon = (
            has_horizon & is_held & (has_tombstone | decided.emptied_transaction) & (rows["delete_horizon_ms"] == -1)
        )
        horizons = np.where(gets_horizon, horizon_ms, np.where(is_held, rows["delete_horizon_ms"], NO_TIMESTAMP))
        is_copied = is_same & is_held & (self.survivors == np.diff(self.log.bounds)) & ~gets_horizon
        is_copied &= ~rows["mixed_magic"]  # KAFKA-4298: rewriting corrects it

        kept = np.flatnonzero(is_held | decided.retain_empty & can_empty)
        groups = np.arange(len(kept) + 1)
        if merge_bytes:
            groups = self._groups(kept, horizons, merge_bytes)
        leaders, followers = kept[groups[:-1]], kept[groups[1:] - 1]
        is_written = ~is_copied[leaders] | (leaders != followers)
        is_rewritten = np.repeat(is_written, np.diff(groups))
        rebuilt = self._rebuild(kept[is_rewritten], leaders[is_written], followers[is_written], horizons, lossy)
        written = rebuilt.log
        copied, new = np.flatnonzero(~is_written), np.flatnonzero(is_written)
        starts, sizes = rows["position"][leaders[copied]], rows["size_bytes"][leaders[copied]]
        parts = [Slices.of(written, new), Slices(self.source, starts, starts + sizes, copied)]
        result = splice(len(leaders), parts)
        positions = result.positions[np.append(True, np.diff(result.positions) > 0)]
        compressed, rewritten = rows["codec"] > 0, int(np.count_nonzero(is_rewritten))
        lost = leaders[is_written][np.diff(written.positions) == 0]  # control batches in a format without them
        work = Work(
            untouched=len(kept) - rewritten,
            rewritten=rewritten - len(lost),
            dropped=len(rows) - len(kept) + len(lost),
            read_bytes=int(rows["size_bytes"].sum()),
            written_bytes=len(result.data),
            decompressed_bytes=int(rows["records_size_bytes"][compressed].sum()),
            recompressed_bytes=rebuilt.plain_bytes,
            losses=written.losses,
        )
        return CompactResult(
            data=result.data,
            positions=positions,
            work=work,
            kept_records=int(self.survivors.sum() - self.survivors[lost].sum()),
            keyless_records=decided.keyless_records,
            aborted_records=decided.aborted_records,
        )

    def _groups(self, kept: Int64, horizons: Int64, merge_bytes: int) -> Int64:
        """Choose the batches to join. Return the indices in `kept` at which each joined batch begins, and the end.

        kept: the numbers of the remaining batches. horizons: the delete horizon of every batch, in ms.
        """
        rows, shapes = self.rows.take(kept), self.log.records.shapes
        plain_messages = _of_kinds([kind.codec == "none" and kind.fmt.magic < 2 for kind in self.kinds], self.number)
        is_alone = (rows["producer_id"] != NO_PRODUCER_ID) | rows["is_transactional"] | rows["is_control"]
        is_alone |= (self.survivors[kept] == 0) | plain_messages[kept]
        if self.log.tags is not None:
            is_alone |= np.array([bool(self.log.tagged_fields[b]) for b in kept.tolist()], np.bool_)
        is_alike = ~is_alone[1:] & ~is_alone[:-1] & (self.number[kept][1:] == self.number[kept][:-1])
        is_alike &= horizons[kept][1:] == horizons[kept][:-1]
        for name in ("timestamp_type", "append_time_ms", "partition_leader_epoch"):
            is_alike &= rows[name][1:] == rows[name][:-1]
        payload = np.maximum(shapes.key_lengths, 0).astype(np.int64) + np.maximum(shapes.value_lengths, 0)
        headers = np.append(0, np.cumsum(shapes.header_key_lengths + np.maximum(shapes.header_value_lengths, 0)))
        payload += np.diff(headers[shapes.header_bounds])
        totals = np.append(0, np.cumsum(payload * self.decided.keep))
        sizes = np.append(0, np.cumsum(np.diff(totals[self.log.bounds])[kept]))
        ends = np.append(np.flatnonzero(~is_alike) + 1, len(kept))  # the end of each run of batches that may be joined
        end = np.repeat(ends, np.diff(ends, prepend=0))
        fits = np.searchsorted(sizes, sizes[:-1] + merge_bytes, side="right") - 1
        # If the offsets of a log do not rise, fewer batches are joined than possible.
        farthest = np.maximum.accumulate(_last_offsets(self.log)[kept]) - LARGEST_DELTA
        reaches = np.searchsorted(farthest, rows["base_offset"], side="right")
        following = np.maximum(np.minimum(np.minimum(fits, reaches), end), np.arange(len(kept)) + 1)
        return _indices_on_the_way(np.append(0, ends[:-1]), np.append(following, len(kept)))

    def _rebuild(self, batches: Int64, leaders: Int64, followers: Int64, horizons: Int64, lossy: bool) -> NewBatches:
        """Encode the batches that are not copied. New batch i joins the batches from leaders[i] to followers[i]."""
        if not len(leaders):
            return NewBatches(EncodedLog(data=np.zeros(0, np.uint8), positions=np.zeros(1, np.int64)), 0)
        of_leader = self.rows.take(leaders)
        filled = self.survivors[leaders] > 0
        before = np.append(0, np.cumsum(self.survivors[batches]))
        bounds = before[np.append(np.searchsorted(batches, leaders), len(batches))]
        survivors = np.flatnonzero(self.decided.keep)[ranges(self.first[batches], self.survivors[batches])]

        kinds, number = self.kinds, self.number[leaders]
        keeps_range = _of_kinds([kind.fmt.magic >= 2 for kind in kinds], number)
        # Kafka's builder writes the times that a consumer sees. A format with tags has room for both times.
        keeps_create_times = _of_kinds(
            ["tagged_fields" in kind.fmt.capabilities.batch_fields for kind in kinds], number
        )
        times = np.where(
            np.repeat(keeps_create_times, np.diff(bounds)),
            self.log.create_timestamps_ms[survivors],
            self.log.records.timestamps_ms[survivors],
        )
        records = self.log.records.take(survivors).at_times(times)
        fields = self.log.batch_fields.take(leaders).replace(
            base_offset=np.where(keeps_range, of_leader["base_offset"], UNSET),
            last_offset=np.where(keeps_range, _last_offsets(self.log)[followers], UNSET),
            base_timestamp_ms=UNSET,
            max_timestamp_ms=np.where(filled, UNSET, of_leader["max_timestamp_ms"]),
            delete_horizon_ms=horizons[leaders],
        )
        if self.target is not None:
            check_room(self.target, records, bounds, fields, of_leader["position"], self.allowance)
        return build(records, bounds, fields, number, kinds, lossy)


def _indices_on_the_way(starts: Int64, following: Int64) -> Int64:
    """Return all indices met on the way from each of `starts`, sorted. Index i leads to following[i].

    following[i] is greater than i, except for the last index.
    """
    is_reached = np.zeros(len(following), np.bool_)
    is_reached[starts] = True
    # Each repetition doubles the steps: after k repetitions all indices less than 2**k steps away are known.
    while True:
        known = np.flatnonzero(is_reached)
        is_reached[following[known]] = True
        if np.count_nonzero(is_reached) == len(known):
            return known
        following = following[following]


def _append_uncleaned(compacted: CompactResult, source: Bytes, rows: NDArray[np.void]) -> CompactResult:
    """Append unchanged copies of the batches that this round does not clean.

    rows: their rows. All of them were read, to find the ends of transactions, so their bytes count as read.
    """
    start, size = int(rows["position"][0]), int(rows["size_bytes"].sum())
    read = Work(
        untouched=len(rows),
        read_bytes=size,
        written_bytes=size,
        decompressed_bytes=int(rows["records_size_bytes"][rows["codec"] > 0].sum()),
    )
    return replace(
        compacted,
        data=np.concatenate([compacted.data, source[start : start + size]]),
        positions=np.append(compacted.positions, compacted.positions[-1] + np.cumsum(rows["size_bytes"])),
        kept_records=compacted.kept_records + int(rows["count"].sum()),
        work=compacted.work + read,
    )


def _whole(
    source: Bytes, fmt: Format | str | None, limits: Limits | None, dictionaries: Iterable[Dictionary] = ()
) -> DecodedLog:
    """Read the whole log. Raise CorruptLog, also for an incomplete last batch: the result would not have it."""
    if fmt is None:
        log = read_log(source, limits=limits, dictionaries=dictionaries)
    else:
        log = find(fmt).decode(source, limits=limits, dictionaries=dictionaries)
    if log.trailing_bytes:
        raise CorruptLog(len(source) - log.trailing_bytes, "length", "runs past the end of the log")
    return log


def _kinds(log: DecodedLog, fmt: Format | str | None) -> BatchEncodings:
    """Return format, codec and level of each batch. `fmt` replaces the format that was found in the batch.

    Attributes do not show that a format shares headers between records.
    """
    found = encodings_of(log)
    if fmt is None:
        for kind in found.kinds:
            find(kind.fmt)  # raises for a format without this path
        return found
    kinds = [replace(kind, fmt=find(fmt)) for kind in found.kinds]
    distinct = list(dict.fromkeys(kinds))
    return BatchEncodings(np.array([distinct.index(kind) for kind in kinds], np.int64)[found.number], distinct)


def _last_offsets(log: DecodedLog) -> Int64:
    """Return the last offset of each batch, by its header or its last record. A v1 wrapper may have 0."""
    last, ends = log.batch_rows["last_offset"].copy(), log.bounds[1:]
    filled = np.diff(log.bounds) > 0
    last[filled] = np.maximum(last[filled], log.records.offsets[ends[filled] - 1])
    return last


def _head(log: DecodedLog, end: int) -> DecodedLog:
    records = log.records.part(0, log.bounds[end])
    return replace(
        log,
        records=records,
        bounds=log.bounds[: end + 1],
        create_timestamps_ms=log.create_timestamps_ms[: len(records)],
        rows=lambda: log.batch_rows[:end],
        tags=(lambda: log.tagged_fields[:end]) if log.tags else None,
    )


def _has_horizon(fmt: Format) -> bool:
    return "delete_horizon_ms" in fmt.capabilities.batch_fields


def _of_kinds(flags: Sequence[bool], number: Int64) -> Flags:
    found: Flags = np.array(flags, np.bool_)[number] if len(flags) else np.zeros(len(number), np.bool_)
    return found


def _flags(name: str, given: ArrayLike, count: int) -> Flags:
    flags = np.asarray(given)
    if flags.dtype != np.bool_ or flags.shape not in ((), (count,)):
        raise InvalidRecords(f"{name}: {count} booleans are wanted, not {flags.dtype}{list(flags.shape)}")
    return np.broadcast_to(flags, count)
