"""What a format costs: CPU and memory to encode, decode and size; bytes a record. One thread, CRC included.

asv compares one machine's commits with one another: for formats with one another see the reports (paired ratios).
Key 16 bytes, value 100 bytes of template payload, unless a parameter says otherwise.
"""

import time
from dataclasses import replace

import numpy as np

from kfbench.errors import IllegalCombination
from kfbench.formats import FORMATS, Entries
from kfbench.workloads import WORKLOADS

FORMAT_NAMES = (
    "v0", "v1", "v2", "v3", "v3-attributes-only", "v3-header-only",
    "v3-unsigned", "v3-headers-first", "v3-tagged", "v3-batch-headers", "v3-full", "kip98", "enriched", "enriched-ms",
    "columnar",
)  # fmt: skip
BATCH_SIZES = (1, 10, 100, 1000)
VALUE_BYTES = (10, 100, 1000)
CODEC_NAMES = ("none", "gzip", "snappy", "lz4", "zstd")
RECORDS = 2000
MANY = 64 * RECORDS  # 15 MB of keys and values, which no process has without them
SEED = 7


def sample(records=RECORDS, **axes):
    return replace(WORKLOADS["grid"], **axes).generate(records=records, seed=SEED)


def given(fmt, made):
    """What a format's sizes follow from."""
    return made.shapes if fmt.capabilities.sizes_from_shapes else made.records


def many(fmt, made):
    """A log of 128,000 records, and the positions of its entries."""
    data = np.tile(fmt.encode(made.records, made.bounds, lossy=True).data, MANY // RECORDS)
    return data, Entries.of(data).positions


class Encode:
    """2,000 records into a reused buffer."""

    version = "1"
    timer = time.process_time
    params = (FORMAT_NAMES, BATCH_SIZES, VALUE_BYTES)
    param_names = ("format", "batch_size", "value_bytes")

    def setup(self, name, batch_size, value_bytes):
        made = sample(batch_size=batch_size, value_bytes=value_bytes)
        self.format, self.sample = FORMATS[name], made
        self.out = self.format.encode(made.records, made.bounds, lossy=True).data.copy()
        self.time_encode()

    def time_encode(self, *_):
        self.format.encode(self.sample.records, self.sample.bounds, lossy=True, out=self.out)


class Decode:
    """2,000 records to columns; keys and values stay where they are."""

    version = "1"
    timer = time.process_time
    params = (FORMAT_NAMES, BATCH_SIZES, VALUE_BYTES)
    param_names = ("format", "batch_size", "value_bytes")

    def setup(self, name, batch_size, value_bytes):
        made = sample(batch_size=batch_size, value_bytes=value_bytes)
        self.format = FORMATS[name]
        self.data = self.format.encode(made.records, made.bounds, lossy=True).data
        self.time_decode()

    def time_decode(self, *_):
        self.format.decode(self.data)


class DecodeMetadata:
    """Offsets, times and lengths of 2,000 records: what a format has to decode and decompress for them."""

    version = "1"
    timer = time.process_time
    params = (FORMAT_NAMES, BATCH_SIZES, ("none", "zstd"))
    param_names = ("format", "batch_size", "codec")

    def setup(self, name, batch_size, codec):
        if codec not in FORMATS[name].capabilities.codecs:
            raise NotImplementedError(f"{name} has no {codec}")
        made = sample(batch_size=batch_size)
        self.format = FORMATS[name]
        self.data = self.format.encode(made.records, made.bounds, codec, lossy=True).data
        self.time_decode_metadata()

    def time_decode_metadata(self, *_):
        self.format.decode_metadata(self.data)


class ReadTimes:
    """Offsets and times of 128,000 records in batches whose places are known, so that a call's own time is little of
    it."""

    version = "1"
    timer = time.process_time
    params = (FORMAT_NAMES, (10, 100, 1000))
    param_names = ("format", "batch_size")

    def setup(self, name, batch_size):
        self.format = FORMATS[name]
        self.data, self.positions = many(self.format, sample(batch_size=batch_size))
        self.time_read_times()

    def time_read_times(self, *_):
        self.format.read_times(self.data, self.positions)


class Fetch:
    """The middle record of each batch of 128,000 records."""

    version = "1"
    timer = time.process_time
    params = (FORMAT_NAMES, (10, 100, 1000))
    param_names = ("format", "batch_size")

    def setup(self, name, batch_size):
        self.format = FORMATS[name]
        self.data, self.positions = many(self.format, sample(batch_size=batch_size))
        self.indices = np.full(len(self.positions) - 1, batch_size // 2)
        try:
            self.time_fetch()
        except IllegalCombination as error:
            raise NotImplementedError(error) from None

    def time_fetch(self, *_):
        self.format.fetch(self.data, self.positions, self.indices)


class Size:
    """Exact sizes of 2,000 records: from their shapes alone, but where headers' bytes decide too."""

    version = "1"
    timer = time.process_time
    params = (FORMAT_NAMES, BATCH_SIZES)
    param_names = ("format", "batch_size")

    def setup(self, name, batch_size):
        self.format, self.sample = FORMATS[name], sample(batch_size=batch_size)
        self.given = given(self.format, self.sample)
        self.time_size()

    def time_size(self, *_):
        self.format.size(self.given, self.sample.bounds)


class Overhead:
    """Exact, so any change is a change of the format."""

    version = "1"
    unit = "bytes/record"
    params = (FORMAT_NAMES, BATCH_SIZES)
    param_names = ("format", "batch_size")

    def track_overhead(self, name, batch_size):
        made = sample(batch_size=batch_size)
        size = FORMATS[name].size(made.records, made.bounds).sum()
        return float(size - made.shapes.payload_bytes) / RECORDS


class Compressed:
    """Bytes a record, payload too, at each codec's default level; they change with the codec's build too."""

    version = "1"
    unit = "bytes/record"
    params = (FORMAT_NAMES, CODEC_NAMES)
    param_names = ("format", "codec")

    def setup(self, name, codec):
        if codec not in FORMATS[name].capabilities.codecs:
            raise NotImplementedError(f"{name} has no {codec}")

    def track_bytes(self, name, codec):
        made = sample(batch_size=100)
        log = FORMATS[name].encode(made.records, made.bounds, codec, lossy=True)
        return float(log.positions[-1]) / RECORDS


class Memory:
    """The most that a process takes, of which asv's own modules and ours are some 200 MB. 100 records a batch.

    What is decoded are the same 2,000 records over and over: making all of them would take more than decoding them.
    """

    version = "1"
    params = (FORMAT_NAMES,)
    param_names = ("format",)

    def peakmem_encode(self, name):
        made = sample(MANY, batch_size=100)
        FORMATS[name].encode(made.records, made.bounds, lossy=True)

    def peakmem_decode(self, name):
        made = sample(batch_size=100)
        log = FORMATS[name].encode(made.records, made.bounds, lossy=True)
        FORMATS[name].decode(np.tile(log.data, MANY // RECORDS))

    def peakmem_size(self, name):
        made = sample(MANY, batch_size=100)
        FORMATS[name].size(given(FORMATS[name], made), made.bounds)
