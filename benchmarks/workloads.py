"""The cost of generating records: CPU time for shapes (lengths, times, offsets) and for payload.

Also the generated records per batch and payload bytes per record, which show if a workload has changed.
"""

import numpy as np

from benchmarks.samples import SEED, WORKLOAD_NAMES, Prepared, Timed
from kfbench import WORKLOADS

BLOCK_RECORDS = 65_536
PAYLOAD_BYTES = 1 << 20


def shapes(name, records=BLOCK_RECORDS):
    return WORKLOADS[name].generate(records=records, seed=SEED)


class Shapes(Timed):
    """Generate lengths, times, offsets and batches of 65,536 records, without payload."""

    params = (WORKLOAD_NAMES,)
    param_names = ("workload",)

    def prepare(self, name):
        self.time_shapes(name)

    def time_shapes(self, name):
        shapes(name)


class Payload(Timed):
    """Generate about 1 MiB of keys, values and headers, in whole batches. Lengths and times are generated before."""

    params = (WORKLOAD_NAMES,)
    param_names = ("workload",)

    def prepare(self, name):
        block = shapes(name)
        wanted = PAYLOAD_BYTES * BLOCK_RECORDS / block.shapes.payload_bytes
        batches = min(np.searchsorted(block.bounds, wanted), len(block.bounds) - 1)
        self.sample = shapes(name, int(block.bounds[batches]))
        self.time_payload(name)

    def time_payload(self, _name):
        self.sample.payload()


class Made(Prepared):
    """Exact numbers of generated records per batch and payload bytes per record. They change only with the workload."""

    params = (WORKLOAD_NAMES,)
    param_names = ("workload",)

    def prepare(self, name):
        self.made = shapes(name)

    def track_records_per_batch(self, _name):
        return BLOCK_RECORDS / (len(self.made.bounds) - 1)

    def track_payload_bytes(self, _name):
        return self.made.shapes.payload_bytes / BLOCK_RECORDS

    track_records_per_batch.unit = "records/batch"
    track_payload_bytes.unit = "bytes/record"
