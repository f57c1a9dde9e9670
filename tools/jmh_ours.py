"""Time our kernels on the batches that JMH times, so that a report can show both ratios side by side.

A call has the batches of JMH repeated to RECORDS records. A call on 32 small batches would mostly time Python.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from kfbench.arrays import Int64
from kfbench.batches import BatchFields
from kfbench.formats import BASE_FORMAT, FORMATS
from kfbench.measure.cpu import Samples, measure, warm_up
from kfbench.measure.encode_input import EncodeInput
from kfbench.measure.format_arms import prepare
from kfbench.measure.path_arms import measure_path
from kfbench.measure.verify import verify_records
from kfbench.present.stored_times import AA, OurOperation
from kfbench.records import Records

RECORDS: Final = 8192
ROUNDS: Final = 33
SAMPLE_NS: Final = 300_000
PRODUCER_ID: Final = 4711
PRODUCER: Final = BatchFields(producer_id=PRODUCER_ID, producer_epoch=0, base_sequence=0)


@dataclass(frozen=True, kw_only=True)
class Batches:
    """Batches of the same number of records. bounds: int64[batches + 1], the first record of each batch, then all."""

    records: Records
    bounds: Int64

    def repeated(self, least_records: int) -> "Batches":
        """Return the batches one or more times in a row, with at least `least_records` records."""
        count = len(self.records)
        times = -(-least_records // count)
        every = [self.bounds[:-1] + count * i for i in range(times)]
        return Batches(
            records=self.records.take(np.tile(np.arange(count), times)),
            bounds=np.concatenate([*every, [count * times]]),
        )


def timed(operation: OurOperation, codec: str, batches: Batches, names: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Yield the samples of each format, then those of v2 a second time (A/A), as rows of the result file.

    names: the formats, with v2 first. Raises Unverified if a format does not carry the records.
    """
    many = batches.repeated(RECORDS)
    source = EncodeInput(records=many.records, bounds=many.bounds, codec=codec, batch_fields=PRODUCER)
    for name, samples in zip((*names, AA), _samples(operation, source, names), strict=True):
        yield {
            "operation": operation,
            "format": name,
            "codec": codec,
            "records": len(batches.records) // (len(batches.bounds) - 1),
            "records_per_sample": len(many.records) * samples.inner_loops,
            "cpu_ns": samples.cpu_ns.tolist(),
        }


def _samples(operation: OurOperation, source: EncodeInput, names: Sequence[str]) -> list[Samples]:
    formats = [FORMATS[name] for name in names]
    logs = [source.encode(fmt) for fmt in formats]
    for fmt, log in zip(formats, logs, strict=True):
        verify_records(fmt, source.records, source.bounds, source.batch_fields, log)
    if operation == "append":
        paths = measure_path("append", formats, None, source, rounds=ROUNDS, sample_ns=SAMPLE_NS, seed=1)
        for failed in filter(None, (path.error for path in paths)):
            raise failed
        return [path.samples for path in paths if path.samples]
    formats.append(FORMATS[BASE_FORMAT])
    arms = prepare(formats, [log.data for log in (*logs, logs[0])], operation, source)
    for arm in arms:
        warm_up(arm)
    return measure(arms, 0, ROUNDS, SAMPLE_NS)
