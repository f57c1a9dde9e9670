"""The log cleaner's choice of records (`kafka.log.Cleaner` 3.9.1): by key, by age of tombstones, by transaction.

A tombstone is a record with a null value: it deletes its key. A marker is a control batch that commits or aborts a
transaction. The delete horizon is the time, stored in a batch, until which its tombstones and markers stay.
"""

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
KEYS_TOGETHER: Final = 64  # keys that are looked up together; a core has fewer concurrent loads from memory
NO_TYPE: Final = -1  # the control type of a batch that is no control batch or has no record


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


def retained(
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
