"""The size model: what formats make of records of which nothing is there but their shapes.

Sizes without a codec follow from lengths, times and offsets (law 1 of `formats._format`), so that a thousand million
records need no byte of payload. They come block by block; what is kept of a block are sums, which add up over blocks,
cells and hosts.
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
from kfbench.measure.schema import counts_text
from kfbench.measure.verify import verify_records, verify_size
from kfbench.records import Records, Shapes


@dataclass(kw_only=True)
class Modelled:
    """What one format makes of all blocks that it was given. cpu_ns, wall_ns: of `size` alone."""

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
        """Of one row (schema.py)."""
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
    """The sizes of these records are those of the bytes that the format writes, and reads again. Raises Unverified."""
    log = fmt.encode(records, bounds, batch_fields=batch_fields, lossy=True)
    verify_records(fmt, records, bounds, batch_fields, log)
    verify_size(fmt, records, bounds, batch_fields, log)


def resident_bytes() -> int:
    """The most memory that this process has held so far (getrusage(2): KiB, and bytes on macOS)."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
