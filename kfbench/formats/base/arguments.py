"""Check the arguments that several methods of a format take."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from kfbench.arrays import Bytes, Int64, as_bytes, integers_of
from kfbench.batches import NO_FIELDS, BatchFields, EncodedLog
from kfbench.errors import InvalidRecords
from kfbench.kernels.formats import control
from kfbench.kernels.wire import frames, status
from kfbench.records import Records, Shapes


def log_bytes(data: Any) -> Bytes:
    """Return the bytes of an EncodedLog or of an object with a buffer. Raises InvalidRecords."""
    return as_bytes("data", data.data if isinstance(data, EncodedLog) else data)


def check_control(records: Records, bounds: Int64, fields: BatchFields) -> None:
    """Raise InvalidRecords for control records that Kafka's readers refuse."""
    if "is_control" not in fields.set_fields:
        return
    i = control.first_broken(records.columns, bounds, fields.rows)
    if i >= 0:
        field, promise = status.PROMISES[status.CONTROL_RECORD]
        raise InvalidRecords(f"record {i} of a control batch: {field}: {promise}")


def check_entries(positions: ArrayLike, data: Bytes) -> Int64:
    """Return the positions as int64.

    Raise InvalidRecords if they are not positions of neighbouring entries in `data`.
    """
    checked: Int64 = integers_of("positions", positions, np.int64, is_kept=False)
    if not frames.are_entries(data, checked):
        raise InvalidRecords(
            "positions: must be those of neighbouring entries, as `Entries.of(data)` returns them "
            "(in v0 and v1 each message is an entry)"
        )
    return checked


def default_fields(batch_fields: BatchFields | None) -> BatchFields:
    """Return `batch_fields`, or the default fields for None. Raise InvalidRecords for another type."""
    if batch_fields is None:
        return NO_FIELDS
    if not isinstance(batch_fields, BatchFields):
        raise InvalidRecords(f"batch_fields: kfbench.BatchFields is wanted, not {type(batch_fields).__name__}")
    return batch_fields


def shapes_of(records: Records | Shapes) -> Shapes:
    """Return the shapes of Records, or Shapes unchanged. Raise InvalidRecords for another type."""
    if not isinstance(records, Records | Shapes):
        raise InvalidRecords(f"records: kfbench.Records or Shapes are wanted, not {type(records).__name__}")
    return records.shapes if isinstance(records, Records) else records
