"""The batches of a cell: how many records it takes, in whole batches."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Final, NamedTuple

import numpy as np

from kfbench.arrays import Int64
from kfbench.errors import InvalidConfig
from kfbench.formats import BASE_FORMAT, FORMATS
from kfbench.records import Shapes
from kfbench.sweep.definition.cell import axes_of, workload_label
from kfbench.workloads import BLOCK_RECORDS, Sample, Workload
from kfbench.workloads.catalogue import NamedWorkload

MAX_BATCH_BYTES: Final = 1_048_588  # message.max.bytes


class Amount(NamedTuple):
    """The wanted size of a cell: about this number of records, and at most this payload."""

    records: int
    payload_bytes: int


class Extent(NamedTuple):
    records: int
    batches: int
    payload_bytes: int


def block_records(workload: Workload) -> int:
    """Return the number of records in whole batches that is nearest below BLOCK_RECORDS; at least one batch."""
    batch = int(axes_of(workload).get("batch_size") or 1)
    return max(BLOCK_RECORDS // batch, 1) * batch


@lru_cache(maxsize=256)
def whole_batches(workload: Workload, seed: int, records: int) -> int:
    """Return `records` rounded up to whole batches. Without the axis batch_size, stop at the end of the first block."""
    batch = axes_of(workload).get("batch_size")
    if batch is not None:
        return int(batch) * -(-records // int(batch))
    bounds = workload.generate(records=BLOCK_RECORDS, seed=seed).bounds
    return int(bounds[min(int(np.searchsorted(bounds, records)), len(bounds) - 1)])


@dataclass(frozen=True, kw_only=True)
class FirstBatches:
    """The first batches of a workload, without payload. The records of a cell are cut from them.

    is_uniform: the sample is one batch, and all other batches have the same size.
    """

    sample: Sample
    is_uniform: bool

    def take(self, amount: Amount) -> Extent:
        """Return the size of the first whole batches that fit the amount; at least one batch."""
        shapes, ends = self.sample.shapes, self.sample.bounds[1:]
        if self.is_uniform:
            batch = len(shapes)
            count = max(1, min(-(-amount.records // batch), amount.payload_bytes // max(shapes.payload_bytes, 1)))
            return Extent(count * batch, count, count * shapes.payload_bytes)
        payload = _payload_until(shapes, ends)
        by_records = int(np.searchsorted(ends, amount.records)) + 1
        by_payload = int(np.searchsorted(payload, amount.payload_bytes, side="right"))
        last = max(0, min(by_records, by_payload, len(ends)) - 1)
        return Extent(int(ends[last]), last + 1, int(payload[last]))


def _payload_until(shapes: Shapes, ends: Int64) -> Int64:
    """Return the size of all keys, values and headers before each end: int64[batches]."""
    lengths = np.maximum(shapes.key_lengths, 0, dtype=np.int64) + np.maximum(shapes.value_lengths, 0)
    headers = np.maximum(shapes.header_key_lengths, 0, dtype=np.int64) + np.maximum(shapes.header_value_lengths, 0)
    payload: Int64 = np.cumsum(lengths)[ends - 1]
    if len(headers):
        payload = payload + np.cumsum(headers)[shapes.header_bounds[ends] - 1]
    return payload


def first_batches(where: str, point: Workload, seed: int, records: int) -> FirstBatches | None:
    """Return the first batches of a workload, with at least this number of records.

    None if an axis makes batches that a broker would refuse as too large. Raises InvalidConfig if a named workload's
    own batches are too large.
    """
    axes = axes_of(point)
    is_named = isinstance(point, NamedWorkload)
    batch = -(-records // BLOCK_RECORDS) * BLOCK_RECORDS if is_named else axes["batch_size"]
    if not is_named and batch * (1 + axes.get("headers", 0)) > MAX_BATCH_BYTES:  # too large to generate
        return None
    sample = point.generate(records=batch, seed=seed)
    if not is_named and sample.shapes.payload_bytes > MAX_BATCH_BYTES:
        return None
    largest_bytes = int(FORMATS[BASE_FORMAT].size(sample.shapes, sample.bounds, sample.batch_fields).max())
    if largest_bytes <= MAX_BATCH_BYTES:
        return FirstBatches(sample=sample, is_uniform=not is_named)
    if isinstance(point, NamedWorkload) and point.batch_size is None:
        raise InvalidConfig(
            f"{where}: workloads: {workload_label(point)}: a batch has {largest_bytes:,} bytes in {BASE_FORMAT}, but a "
            f"broker accepts at most {MAX_BATCH_BYTES:,} (message.max.bytes)"
        )
    return None
