"""Choose the number of records of a cell, in whole batches."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np

from kfbench.arrays import Int64
from kfbench.errors import InvalidConfig
from kfbench.formats import BASE_FORMAT, FORMATS
from kfbench.measure.cell import axes_of, workload_label
from kfbench.measure.kinds.base import Amount, Extent
from kfbench.records import Shapes
from kfbench.workloads import BLOCK_RECORDS, Sample, Workload
from kfbench.workloads.catalogue import NamedWorkload
from kfbench.workloads.recorded import RecordedTopic

MAX_BATCH_BYTES: Final = 1_048_588  # message.max.bytes


@lru_cache(maxsize=256)
def whole_batches(workload: Workload, seed: int, records: int) -> int:
    """Return `records` rounded up to the end of a batch.

    Without a value for the axis batch_size, the result is at most BLOCK_RECORDS (65,536).
    """
    batch = axes_of(workload).get("batch_size")
    if batch is not None:
        return int(batch) * -(-records // int(batch))
    bounds = workload.generate(records=BLOCK_RECORDS, seed=seed).bounds
    return int(bounds[min(int(np.searchsorted(bounds, records)), len(bounds) - 1)])


@dataclass(frozen=True, kw_only=True)
class FirstBatches:
    """The first batches of a workload, without payload. They show how many batches fit into a cell.

    is_uniform: True if the sample is one batch and all other batches have the same size.
    """

    sample: Sample
    is_uniform: bool

    def take(self, amount: Amount) -> Extent:
        """Count the whole batches, from the first one on, that fit the amount. Return their size; at least one batch.

        The last batch may exceed `amount.records`. Only a single batch may exceed `amount.payload_bytes`.
        """
        shapes, ends = self.sample.shapes, self.sample.bounds[1:]
        if self.is_uniform:
            batch = len(shapes)
            by_payload = amount.payload_bytes // max(shapes.payload_bytes, 1)
            count = max(1, min(-(-amount.records // batch), by_payload, amount.batches))
            return Extent(count * batch, count, count * shapes.payload_bytes)
        payload = _payload_until(shapes, ends)
        by_records = int(np.searchsorted(ends, amount.records)) + 1
        by_payload = int(np.searchsorted(payload, amount.payload_bytes, side="right"))
        last = max(0, min(by_records, by_payload, amount.batches, len(ends)) - 1)
        return Extent(int(ends[last]), last + 1, int(payload[last]))


def _payload_until(shapes: Shapes, ends: Int64) -> Int64:
    """Return the bytes of all keys, values and headers up to the end of each batch: int64[batches].

    ends: int64[batches], the number of records before the end of each batch.
    """
    lengths = np.maximum(shapes.key_lengths, 0, dtype=np.int64) + np.maximum(shapes.value_lengths, 0)
    headers = np.maximum(shapes.header_key_lengths, 0, dtype=np.int64) + np.maximum(shapes.header_value_lengths, 0)
    payload: Int64 = np.append(0, np.cumsum(lengths))[ends]
    if len(headers):
        payload = payload + np.append(0, np.cumsum(headers))[shapes.header_bounds[ends]]
    return payload


def first_batches(
    where: str, point: Workload, seed: int, records: int, most_bytes: int | None = None
) -> FirstBatches | None:
    """Generate the first batches of a workload, to plan its cells.

    Named workloads: whole blocks of 65,536 records, with at least `records` records. Recorded topics:
    `records` records, or all of them. Grid workloads: one batch.

    Return None if the sweep's axes make batches above `most_bytes`; None: MAX_BATCH_BYTES, a broker's limit. Raises
    InvalidConfig if a named workload without the axis batch_size has batches above this limit.

    where: the file and the block, for messages.
    """
    most_bytes = MAX_BATCH_BYTES if most_bytes is None else most_bytes
    axes = axes_of(point)
    is_named, is_recorded = isinstance(point, NamedWorkload), isinstance(point, RecordedTopic)
    batch = -(-records // BLOCK_RECORDS) * BLOCK_RECORDS if is_named else axes["batch_size"]
    if isinstance(point, RecordedTopic):
        batch = min(records, point.recorded)
    elif not is_named and batch * (1 + axes.get("headers", 0)) > most_bytes:  # too large to generate
        return None
    sample = point.generate(records=batch, seed=seed)
    if not (is_named or is_recorded) and sample.shapes.payload_bytes > most_bytes:
        return None
    largest_bytes = int(FORMATS[BASE_FORMAT].size(sample.shapes, sample.bounds, sample.batch_fields).max())
    if largest_bytes <= most_bytes:
        return FirstBatches(sample=sample, is_uniform=not (is_named or is_recorded))
    if isinstance(point, NamedWorkload) and point.batch_size is None:
        raise InvalidConfig(
            f"{where}: workloads: {workload_label(point)}: a batch has {largest_bytes:,} bytes in {BASE_FORMAT}, but a "
            f"broker accepts at most {most_bytes:,} (message.max.bytes)"
        )
    return None
