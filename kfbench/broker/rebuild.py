"""Rebuild requests in an append. Each becomes one batch, one compressed set (wrapper) or several plain messages."""

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from kfbench.arrays import Int64, ranges
from kfbench.batches import APPEND_TIME, CREATE_TIME, BatchFields
from kfbench.broker.in_place import Piece
from kfbench.broker.requests import Run
from kfbench.broker.topic import Topic
from kfbench.broker.work import Work
from kfbench.codecs import REBUILT_AS, Allowance
from kfbench.errors import Refused
from kfbench.layouts import NO_TIMESTAMP
from kfbench.log.writing import Kind, check_room, codec_bytes, write_batches
from kfbench.records import Records


class _Selected(NamedTuple):
    """The requests to rebuild, and their records.

    Args:
        requests: the numbers of these requests in their run.
        records: the records of all of them, with the offsets and times that the log stores.
        bounds: the index of the first record of each request, and the end.
        fields: header fields of each request.
        codecs: the number of the codec for each request.
    """

    requests: Int64
    records: Records
    bounds: Int64
    fields: BatchFields
    codecs: Int64


def rebuild(run: Run, bases: Int64, topic: Topic, allowance: Allowance) -> Piece:
    """Rebuild the requests of a run that cannot be set in place (`MemoryRecordsBuilder`).

    bases: the first offset of each request in the run. Raises Refused, CorruptLog if the batches need more bytes than
    `allowance` has, and WouldLose.
    """
    given, to, columns = _selected(run, bases, topic), run.to, run.columns
    first, end = run.bounds[:-1][given.requests], run.bounds[1:][given.requests]
    filled = np.flatnonzero(np.diff(given.bounds))  # Kafka's builder writes nothing for no records
    bounds, fields = np.append(given.bounds[:-1][filled], given.bounds[-1]), given.fields.take(filled)
    codecs, number = np.unique(given.codecs[filled], return_inverse=True)
    kinds = [Kind(fmt=to, codec=REBUILT_AS[codec], level=topic.level if codec else None) for codec in codecs]
    check_room(to, given.records, bounds, fields, columns.positions[first[filled]], allowance)
    built = write_batches(given.records, bounds, fields, number, kinds, topic.lossy)
    recompressed_bytes = codec_bytes(given.records, bounds, fields, number, kinds)
    allowance.built_bytes -= max(len(built.data), recompressed_bytes)
    sizes = np.zeros(len(given.requests) + 1, np.int64)
    sizes[filled + 1] = np.diff(built.positions)
    work = Work(
        rewritten=int((end - first).sum()),
        read_bytes=int((columns.positions[end] - columns.positions[first]).sum()),
        written_bytes=len(built.data),
        recompressed_bytes=recompressed_bytes,
        losses=built.losses,
    )
    return Piece(run.first + given.requests, built.data, np.cumsum(sizes), work)


def _selected(run: Run, bases: Int64, topic: Topic) -> _Selected:
    columns, to = run.columns, run.to
    requests = np.flatnonzero(~run.stays)
    counts, records, times_ms = run.counts[requests], columns.records, columns.timestamps_ms
    numbers = None  # indices of the selected records in the run; None: all records
    if len(requests) < len(run.counts):
        numbers = ranges(run.record_bounds[:-1][requests], counts)
        records, times_ms = records.take(numbers), times_ms[numbers]
    bounds = np.append(0, np.cumsum(counts))
    if (negative := np.flatnonzero(times_ms < NO_TIMESTAMP)).size:
        record = negative[0] if numbers is None else numbers[negative[0]]
        batch = int(np.searchsorted(columns.bounds, record, side="right")) - 1
        promise = f"invalid negative timestamp {times_ms[negative[0]]}"
        raise Refused("UNKNOWN_SERVER_ERROR", int(columns.positions[batch]), promise)
    if to.holds_messages and topic.is_append and to.capabilities.timestamps:
        times_ms = np.full(len(times_ms), topic.now_ms, np.int64)  # Kafka's builder sets them in inner messages too
    offsets = np.arange(bounds[-1]) + np.repeat(bases[requests] - bounds[:-1], counts)
    records = replace(records, shapes=replace(records.shapes, timestamps_ms=times_ms, offsets=offsets))
    fields = columns.batch_fields
    if len(fields.rows) > 1:
        fields = fields.take(run.bounds[:-1][requests])  # a request has the fields of its first batch
    set_by_broker: dict[str, Any] = {
        "base_offset": bases[requests],
        "partition_leader_epoch": topic.epoch,
        "timestamp_type": APPEND_TIME if topic.is_append else CREATE_TIME,
        "append_time_ms": topic.now_ms if topic.is_append else NO_TIMESTAMP,
    }
    known = to.capabilities.batch_fields
    fields = fields.replace(**{name: value for name, value in set_by_broker.items() if name in known})
    return _Selected(requests, records, bounds, fields, run.codecs[requests])
