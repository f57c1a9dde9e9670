"""Output is verified before it is counted or timed; what fails becomes an error row, never a number."""

from dataclasses import replace

import numpy as np

from kfbench.arrays import Int64
from kfbench.batches import APPEND_TIME, BatchFields, EncodedLog
from kfbench.errors import KfbenchError
from kfbench.formats import Format
from kfbench.layouts import NO_TIMESTAMP
from kfbench.records import Records, Shapes


class Unverified(KfbenchError):
    """A format broke one of its promises: its output cannot be measured."""


def verify_size(fmt: Format, records: Records, bounds: Int64, batch_fields: BatchFields, log: EncodedLog) -> None:
    """size == len(encode) for every batch of an uncompressed log. Raises Unverified."""
    wrong = np.flatnonzero(fmt.size(records, bounds, batch_fields) != np.diff(log.positions))
    if len(wrong):
        said, written = (
            int(each[wrong[0]]) for each in (fmt.size(records, bounds, batch_fields), np.diff(log.positions))
        )
        raise Unverified(f"{fmt.name}: size says {said} bytes for batch {wrong[0]}, encode wrote {written}")


def verify_records(fmt: Format, records: Records, bounds: Int64, batch_fields: BatchFields, log: EncodedLog) -> None:
    """decode(encode(x)) == x, but for what the format cannot carry. Raises Unverified."""
    back = fmt.decode(log.data)
    if back.trailing_bytes:
        raise Unverified(f"{fmt.name}: {back.trailing_bytes} bytes are left over after decoding")
    expected, found = carried(fmt, records, bounds, batch_fields), back.records
    if len(found) != len(expected):
        raise Unverified(f"{fmt.name}: {len(expected)} records encoded, {len(found)} decoded")
    names = Shapes.__dataclass_fields__
    for name, one, other in zip(names, expected.shapes.columns, found.shapes.columns, strict=True):
        if not np.array_equal(one, other):
            raise Unverified(f"{fmt.name}: {name} differ after encode and decode")
    if expected != found:
        raise Unverified(f"{fmt.name}: payload differs after encode and decode")
    # Since v2 a record keeps its producer's timestamp beside the append time.
    if fmt.magic >= 2 and not np.array_equal(back.create_timestamps_ms, records.timestamps_ms):
        raise Unverified(f"{fmt.name}: create_timestamps_ms differ after encode and decode")


def carried(fmt: Format, records: Records, bounds: Int64, batch_fields: BatchFields) -> Records:
    """The records as a reader gets them from this format: what it cannot carry is gone."""
    can = fmt.capabilities
    timestamps_ms = records.timestamps_ms
    if not can.timestamps:
        timestamps_ms = np.full(len(records), NO_TIMESTAMP)
    elif "append_time_ms" in can.batch_fields:
        rows = np.broadcast_to(batch_fields.over(len(bounds) - 1), len(bounds) - 1)
        append = np.repeat(rows["timestamp_type"] == APPEND_TIME, np.diff(bounds))
        timestamps_ms = np.where(append, np.repeat(rows["append_time_ms"], np.diff(bounds)), timestamps_ms)
    old = records.shapes
    if can.headers or not old.has_headers:
        return replace(records, shapes=replace(old, timestamps_ms=timestamps_ms))
    bare = Shapes(
        timestamps_ms=timestamps_ms,
        offsets=old.offsets,
        key_lengths=old.key_lengths,
        value_lengths=old.value_lengths,
    )
    return Records(
        shapes=bare,
        key_data=records.key_data,
        key_starts=records.key_starts,
        value_data=records.value_data,
        value_starts=records.value_starts,
    )
