"""The log cleaner in plain Python, batch after batch, by the rules of Kafka 3.9.1's `Cleaner` and `filterTo`.

A round first reads the whole log: it collects aborted and open transactions, and the last offset of each producer. Then
it reads the batches to clean: it collects the last offset of each key, and decides on each batch.
"""

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from tests.reference.model import Batch, Fields, Message

ABORT, COMMIT = 0, 1


@dataclass(frozen=True, kw_only=True)
class CleanedBatch:
    """A batch of the compacted log: copied unchanged, or rebuilt from `messages` and `fields`."""

    source: int  # index of the batch in the source log
    copied: bool
    messages: tuple[Message, ...] = ()
    fields: Fields = field(default_factory=Fields)


@dataclass(kw_only=True)
class ProducerState:
    epoch: int
    last_data_offset: int | None = None


def _type(batch: Batch) -> int | None:
    """Return the control type in the key of the batch's first record. Return None for data and for an emptied batch."""
    if not batch.is_control or not batch.messages:
        return None
    key = batch.messages[0].key
    assert key is not None
    (number,) = struct.unpack_from(">h", key, 2)
    return int(number)


def _ends_transaction(batch: Batch) -> bool:
    return batch.producer_id >= 0 and _type(batch) in (ABORT, COMMIT)


def round_end(batches: Sequence[Batch], end_offset: int | None) -> int:
    """Return the index of the first batch that this compaction may not clean.

    It reaches `end_offset` or belongs to an open transaction.
    """
    first: dict[int, int] = {}
    beyond = len(batches)
    for number, batch in enumerate(batches):
        if end_offset is not None and batch.last_offset >= end_offset:
            beyond = min(beyond, number)
        if _ends_transaction(batch):
            first.pop(batch.producer_id, None)
        elif batch.is_transactional and not batch.is_control and batch.producer_id >= 0:
            first.setdefault(batch.producer_id, number)
    return min([beyond, *first.values()])


def _aborted_transactions(batches: Sequence[Batch]) -> list[tuple[int, int]]:
    """Return (first offset, producer id) per aborted transaction, sorted by offset, like Kafka's transaction index."""
    started: dict[int, int] = {}
    aborted = []
    for batch in batches:
        if _ends_transaction(batch):
            first = started.pop(batch.producer_id, None)
            if first is not None and _type(batch) == ABORT:
                aborted.append((first, batch.producer_id))
        elif batch.is_transactional and not batch.is_control and batch.producer_id >= 0:
            started.setdefault(batch.producer_id, batch.base_offset)
    return sorted(aborted)


class TransactionStates:
    """Tracks which transactions are open, aborted or committed while the cleaner reads batch after batch."""

    def __init__(self, batches: Sequence[Batch]) -> None:
        self.ahead = _aborted_transactions(batches)
        self.aborted: dict[int, bool] = {}  # producer id -> True once a batch of its aborted transaction was read
        self.committed: set[int] = set()

    def can_discard(self, batch: Batch) -> bool:
        while self.ahead and self.ahead[0][0] <= batch.last_offset:
            self.aborted.setdefault(self.ahead.pop(0)[1], False)
        if not batch.is_control:
            if not batch.is_transactional or batch.producer_id < 0:
                return False
            if batch.producer_id in self.aborted:
                self.aborted[batch.producer_id] = True
                return True
            self.committed.add(batch.producer_id)
            return False
        if not batch.messages:
            return True
        if batch.producer_id < 0:  # Kafka did not write this marker
            return False
        if _type(batch) == ABORT:
            return not self.aborted.pop(batch.producer_id, False)
        if _type(batch) == COMMIT:
            was_open = batch.producer_id in self.committed
            self.committed.discard(batch.producer_id)
            return not was_open
        return False


def _producers(batches: Sequence[Batch]) -> dict[int, ProducerState]:
    found: dict[int, ProducerState] = {}
    for batch in batches:
        if batch.producer_id >= 0:
            producer = found.setdefault(batch.producer_id, ProducerState(epoch=batch.producer_epoch))
            if producer.epoch != batch.producer_epoch:
                producer.epoch, producer.last_data_offset = batch.producer_epoch, None
            if not batch.is_control:
                producer.last_data_offset = batch.last_offset
    return found


def clean(
    batches: Sequence[Batch],
    *,
    now_ms: int,
    delete_retention_ms: int,
    keep_legacy_tombstones: bool,
    retain_last: bool,
    end_offset: int | None = None,
    has_horizon: bool,
    has_empty_batches: bool,
    is_tagged: bool = False,
) -> list[CleanedBatch]:
    end = round_end(batches, end_offset)
    cleaned, producers = batches[:end], _producers(batches)
    latest: dict[bytes, int] = {}
    transactions = TransactionStates(batches)
    for batch in cleaned:
        if not transactions.can_discard(batch) and not batch.is_control:
            latest |= {message.key: message.offset for message in batch.messages if message.key is not None}

    kept: list[CleanedBatch] = []
    transactions = TransactionStates(batches)
    for number, batch in enumerate(cleaned):
        can_discard = transactions.can_discard(batch)
        has_expired = not keep_legacy_tombstones
        if has_horizon:
            has_expired = batch.delete_horizon_ms is not None and batch.delete_horizon_ms <= now_ms
        survivors = []
        for message in batch.messages:
            if batch.is_control:
                stays = not (can_discard and has_expired)
            else:
                stays = not can_discard and message.key is not None and latest[message.key] == message.offset
                stays = stays and (message.value is not None or not has_expired)
            if stays:
                survivors.append(message)
        producer = producers.get(batch.producer_id)
        retain_empty = retain_last and number == len(cleaned) - 1
        if producer is not None:
            if producer.last_data_offset is not None:
                retain_empty |= batch.last_offset == producer.last_data_offset
            else:
                retain_empty |= batch.is_control and batch.producer_epoch == producer.epoch
        if survivors:
            asks = any(message.value is None for message in survivors) or (can_discard and batch.is_control)
            gets_horizon = has_horizon and asks and batch.delete_horizon_ms is None
            if len(survivors) == len(batch.messages) and not gets_horizon:
                kept.append(CleanedBatch(source=number, copied=True))
                continue
            horizon = now_ms + delete_retention_ms if gets_horizon else batch.delete_horizon_ms
            kept.append(rebuilt(number, batch, survivors, horizon, is_tagged))
        elif retain_empty and has_empty_batches:
            kept.append(emptied(number, batch, is_tagged))
    return kept + [CleanedBatch(source=number, copied=True) for number in range(end, len(batches))]


def _fields(batch: Batch, is_tagged: bool, **given: int | None) -> Fields:
    unset = dict.fromkeys(("delete_horizon_ms", "base_timestamp_ms", "max_timestamp_ms"))
    if batch.magic < 2:
        unset |= dict.fromkeys(("base_offset", "last_offset"))
    if is_tagged:
        has_time = batch.append_time_ms != -1 or batch.is_append_time
        given["append_time_ms"] = batch.append_time_ms if has_time else None
        given["timestamp_type"] = int(batch.is_append_time)
    return batch.fields(**unset | given)


def rebuilt(
    number: int, batch: Batch, survivors: Sequence[Message], horizon: int | None, is_tagged: bool
) -> CleanedBatch:
    """Return a batch with the surviving messages.

    Under append time, Kafka's builder gives them the time that a consumer sees. Tagged formats store both times.
    """
    times = [message.timestamp_ms for message in survivors]
    if batch.is_append_time and not is_tagged:
        times = [batch.append_time_ms] * len(survivors)
    messages = tuple(replace(message, timestamp_ms=time) for message, time in zip(survivors, times, strict=True))
    fields = _fields(batch, is_tagged, delete_horizon_ms=horizon)
    return CleanedBatch(source=number, copied=False, messages=messages, fields=fields)


def emptied(number: int, batch: Batch, is_tagged: bool) -> CleanedBatch:
    given = {"base_timestamp_ms": -1, "max_timestamp_ms": batch.max_timestamp_ms}
    return CleanedBatch(source=number, copied=False, fields=_fields(batch, is_tagged, **given))
