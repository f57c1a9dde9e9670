"""The size model: compute the size of records in each format from their shapes.

Shapes are lengths, timestamps and offsets. The size without a codec follows from them (law 1 of `formats.base.format`).
So the model can size 1,000,000,000 records without a byte of payload. The shapes are processed in blocks of records,
and only sums are kept. Sums of several blocks, cells and hosts can be added.
"""

import resource
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from kfbench.arrays import Int64
from kfbench.batches import NO_FIELDS, BatchFields
from kfbench.formats import Format
from kfbench.measure.columns import counts_text
from kfbench.measure.verify import verify_records, verify_size
from kfbench.records import Records, Shapes


@dataclass(kw_only=True)
class Modelled:
    """The total size in one format of all records that were added so far.

    cpu_ns, wall_ns: the time of `Format.size` only.
    """

    fmt: Format
    batches: int = 0
    size_bytes: int = 0
    payload_bytes: int = 0
    cpu_ns: int = 0
    wall_ns: int = 0
    losses: Counter[str] = field(default_factory=Counter)

    def add(self, shapes: Shapes, bounds: Int64, batch_fields: BatchFields = NO_FIELDS) -> None:
        cpu_ns, wall_ns = time.thread_time_ns(), time.perf_counter_ns()
        sizes = self.fmt.size(shapes, bounds, batch_fields)
        self.cpu_ns += time.thread_time_ns() - cpu_ns
        self.wall_ns += time.perf_counter_ns() - wall_ns
        self.batches += len(sizes)
        self.size_bytes += int(sizes.sum())
        self.payload_bytes += shapes.payload_bytes
        self.losses.update(self.fmt.losses(shapes, bounds, batch_fields))

    @property
    def columns(self) -> dict[str, Any]:
        """The sums as columns of one row of the result table."""
        return {
            "batches": self.batches,
            "size_bytes": self.size_bytes,
            "payload_bytes": self.payload_bytes,
            "overhead_bytes": self.size_bytes - self.payload_bytes,
            "losses": counts_text(dict(sorted(self.losses.items()))),
            "inner_loops": 1,
            "cpu_ns": [self.cpu_ns],
            "wall_ns": [self.wall_ns],
        }


def verify_model(fmt: Format, records: Records, bounds: Int64, batch_fields: BatchFields) -> None:
    """Raise Unverified unless encode writes batches of the computed sizes, and decode returns the same records."""
    log = fmt.encode(records, bounds, batch_fields=batch_fields, lossy=True)
    verify_records(fmt, records, bounds, batch_fields, log)
    verify_size(fmt, records, bounds, batch_fields, log)


def resident_bytes() -> int:
    """Return the peak resident memory of this process in bytes. getrusage(2) gives KiB on Linux, bytes on macOS."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
