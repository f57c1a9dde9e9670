"""The log cleaner's choice of records (`kafka.log.Cleaner` 3.9.1): by key, by age of tombstones, by transaction."""

import os
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from kfbench.arrays import Int64
from kfbench.batches import DecodedLog
from kfbench.kernels.broker import last_keys
from kfbench.layouts import CONTROL_ABORT, CONTROL_COMMIT, CONTROL_KEY, NO_PRODUCER_ID, NULL_LENGTH, position
from kfbench.records import Records

Flags = NDArray[np.bool_]
KEYS_TOGETHER: Final = 64  # more does not help: a core has fewer concurrent loads from memory
NO_TYPE: Final = -1  # of a batch that is no control batch or holds no record


@dataclass(frozen=True, kw_only=True)
class Retention:
    """The decisions of a round of cleaning, per record or per batch."""

    keep: Flags  # records
    retain_empty: Flags  # batches whose header stays without records
    emptied_transaction: Flags  # markers of a transaction without records
    keyless_records: int  # removed as invalid
    aborted_records: int


@dataclass(frozen=True, kw_only=True)
class History:
    """The producers' transactions in a whole log, bool[batches] (`TransactionIndex`, `ProducerStateManager`).

    first_undecided: the first batch of a transaction that has not ended, or the number of batches.
    """

    aborted: Flags  # batches of a transaction that was aborted
    emptied: Flags  # markers of a transaction without records
    last: Flags  # batches that hold a producer's last sequence, or its epoch alone
    first_undecided: int


def retained(
    log: DecodedLog,
    history: History,
    *,
    now_ms: int,
    has_horizon: Flags,
    keep_legacy_tombstones: bool,
    retain_last: bool,
) -> Retention:
    """Decide which records of these batches stay. `history` covers these batches and those after them.

    The last record of each key stays. A tombstone stays until the delete horizon of its batch has passed. A control
    record stays until its transaction has no batch left, and then until the horizon has passed. A batch without records
    stays as a header if it is the last of its producer, or (retain_last) of the round (KAFKA-17076).

    has_horizon bool[batches]: the format has a delete horizon.
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
    """Return which of the records in `among` (bool[records]) are the last with their key. A null is no key.

    The result is exact. Kafka's `SkimpyOffsetMap` takes two keys with the same MD5 for one. At most 2**32 - 1 records.
    """
    found = np.empty(len(records), np.bool_)
    room = np.empty(KEYS_TOGETHER, np.uint64), np.empty(KEYS_TOGETHER, np.uint64)
    table = np.zeros(1 << max(1, (2 * len(records) - 1).bit_length()), np.uint64)
    seed = np.frombuffer(os.urandom(16), np.uint64)
    last_keys.latest(records.key_data, records.key_starts, records.shapes.key_lengths, among, seed, table, room, found)
    return found


def history_of(log: DecodedLog) -> History:
    """Return the transactions of a log. All its producers count as active."""
    rows, types = log.batch_rows, _control_types(log)
    order = np.flatnonzero(rows["producer_id"] != NO_PRODUCER_ID)
    order = order[np.argsort(rows["producer_id"][order], kind="stable")]
    producers, beyond = rows["producer_id"][order], len(order)
    is_marker = np.isin(types[order], (CONTROL_ABORT, CONTROL_COMMIT))
    # The place in `order` of the marker that ends each batch's transaction, or `beyond`.
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
    """Return the type of each control batch's first record (`ControlRecordType`), or NO_TYPE."""
    types = np.full(len(log), NO_TYPE, np.int16)
    filled = np.flatnonzero(log.batch_rows["is_control"] & (np.diff(log.bounds) > 0))
    at = log.records.key_starts[log.bounds[filled]] + position(CONTROL_KEY, "type")
    key_data = log.records.key_data
    types[filled] = key_data[at].astype(np.int16) << 8 | key_data[at + 1] if len(filled) else NO_TYPE
    return types


def _last_of_producers(producers: Int64, epochs: NDArray[np.int16], is_data: Flags) -> Flags:
    """Return which batches hold a producer's last sequence (`ProducerStateEntry`).

    If a producer has only markers in its last epoch, these are returned instead. There must be at least one batch. The
    batches are sorted by producer.
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
