"""What it costs to make records, in CPU and memory: shapes alone and with payload, of each workload of the catalogue.

A slice of 1,000 records costs the batches and times of its whole block of 65,536. Payload is that of whole batches, of
about 1 MiB.
"""

import time

import numpy as np

from kfbench.workloads import WORKLOADS

NAMES = (
    "cdc-debezium", "cloudevents", "cluster-metadata", "compacted-changelog", "connect-internal", "consumer-offsets",
    "iot-telemetry", "kv-etc", "kv-mixgraph", "kv-ycsb", "large-payload", "log-shipping", "omb-100b", "omb-1kb",
    "out-of-order", "producer-perf", "service-events", "transactional", "user-activity",
)  # fmt: skip
RECORDS = (1_000, 65_536)
PAYLOAD_BYTES = 1 << 20
SEED = 7


def shapes(name, records):
    return WORKLOADS[name].generate(records=records, seed=SEED)


class Shapes:
    """Lengths, times, offsets and batches, without a byte of payload."""

    version = "1"
    timer = time.process_time
    params = (NAMES, RECORDS)
    param_names = ("workload", "records")

    def setup(self, name, records):
        self.time_shapes(name, records)

    def time_shapes(self, name, records):
        shapes(name, records)

    def peakmem_shapes(self, name, records):
        shapes(name, records)


class Payload:
    """Keys, values and headers of about 1 MiB of records whose shapes are there."""

    version = "1"
    timer = time.process_time
    params = (NAMES,)
    param_names = ("workload",)

    def setup(self, name):
        block = shapes(name, RECORDS[-1])
        wanted = PAYLOAD_BYTES * RECORDS[-1] / block.shapes.payload_bytes
        batches = min(np.searchsorted(block.bounds, wanted), len(block.bounds) - 1)
        self.sample = shapes(name, int(block.bounds[batches]))
        self.time_payload(name)

    def time_payload(self, _name):
        self.sample.payload()

    def peakmem_payload(self, _name):
        self.sample.payload()


class Made:
    """Exact, so any change is a change of the workload."""

    version = "1"
    params = (NAMES,)
    param_names = ("workload",)

    def track_records_a_batch(self, name):
        return RECORDS[-1] / (len(shapes(name, RECORDS[-1]).bounds) - 1)

    def track_payload_bytes(self, name):
        return shapes(name, RECORDS[-1]).shapes.payload_bytes / RECORDS[-1]

    track_records_a_batch.unit = "records/batch"
    track_payload_bytes.unit = "bytes/record"
