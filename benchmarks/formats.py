"""The cost of a format: CPU and memory to encode, decode and size; bytes per record. One thread, with checksums.

asv compares the commits of one machine. Reports compare formats with one another (paired ratios).
"""

import numpy as np

from benchmarks.samples import (
    BATCH_SIZES,
    CODEC_NAMES,
    FORMAT_NAMES,
    MANY_RECORDS,
    RECORDS,
    Prepared,
    Timed,
    TimedWithCodecs,
    encoded,
    many,
    sample,
)
from kfbench import FORMATS, read_log
from kfbench.errors import CorruptLog

OTHER_NAMES = ("v0", "v1", "v2")
TRIED_BATCH_SIZES = (*range(1, 16), 20, 30, 50, 100, 200, 500, 1000)


class Encode(Timed):
    """Encoding of 2,000 records into a reused buffer."""

    params = (FORMAT_NAMES, BATCH_SIZES, CODEC_NAMES)
    param_names = ("format", "batch_size", "codec")

    def prepare(self, name, batch_size, codec):
        self.out = encoded(name, batch_size, codec).data.copy()
        self.time_encode(name, batch_size, codec)

    def time_encode(self, name, batch_size, codec):
        made = sample(batch_size)
        FORMATS[name].encode(made.records, made.bounds, codec, lossy=True, out=self.out)


class Decode(Timed):
    """Decoding of 2,000 records to columns. Without a codec keys and values are not copied."""

    params = (FORMAT_NAMES, BATCH_SIZES, CODEC_NAMES)
    param_names = ("format", "batch_size", "codec")

    def prepare(self, name, batch_size, codec):
        self.data = encoded(name, batch_size, codec).data
        self.time_decode(name, batch_size, codec)

    def time_decode(self, name, *_):
        FORMATS[name].decode(self.data)


class ReadLog(TimedWithCodecs):
    """Reading of a log segment that finds the format of each batch: 2,000 records, 100 per batch."""

    def prepare(self, name, codec):
        self.data = encoded(name, codec=codec).data
        try:
            found = read_log(self.data).records
        except CorruptLog:
            found = None
        if found != FORMATS[name].decode(self.data).records:
            raise NotImplementedError(f"{name} has the magic of another format")

    def time_read_log(self, *_):
        read_log(self.data)


class DecodeMetadata(TimedWithCodecs):
    """Offsets, times and lengths of 2,000 records, 100 per batch. No more than they need is decompressed."""

    def prepare(self, name, codec):
        self.data = encoded(name, codec=codec).data
        self.time_decode_metadata(name)

    def time_decode_metadata(self, name, *_):
        FORMATS[name].decode_metadata(self.data)


class ReadTimes(Timed):
    """Offsets and times of 128,000 records, 100 records per batch."""

    params = (FORMAT_NAMES,)
    param_names = ("format",)

    def prepare(self, name):
        self.data, self.positions = many(name)
        self.time_read_times(name)

    def time_read_times(self, name):
        FORMATS[name].read_times(self.data, self.positions)


class Fetch(Timed):
    """The middle record of each of 1,280 batches of 100 records."""

    params = (FORMAT_NAMES,)
    param_names = ("format",)

    def prepare(self, name):
        self.data, self.positions = many(name)
        self.indices = np.full(len(self.positions) - 1, 50)
        self.time_fetch(name)

    def time_fetch(self, name):
        FORMATS[name].fetch(self.data, self.positions, self.indices)


class Size(Timed):
    """Exact sizes of the batches of 2,000 records, without encoding them."""

    params = (FORMAT_NAMES, BATCH_SIZES)
    param_names = ("format", "batch_size")

    def prepare(self, name, batch_size):
        self.time_size(name, batch_size)

    def time_size(self, name, batch_size):
        made = sample(batch_size)
        FORMATS[name].size(made.records, made.bounds)


class Overhead(Prepared):
    """The bytes that a format adds to keys, values and headers. Exact."""

    unit = "bytes/record"
    params = (FORMAT_NAMES, BATCH_SIZES)
    param_names = ("format", "batch_size")

    def prepare(self, name, batch_size):
        self.track_overhead(name, batch_size)

    def track_overhead(self, name, batch_size):
        made = sample(batch_size)
        size_bytes = FORMATS[name].size(made.records, made.bounds).sum()
        return float(size_bytes - made.shapes.payload_bytes) / RECORDS


class Compressed(Prepared):
    """The bytes of a log at each codec's default level, with keys and values. They depend on the codec's build."""

    unit = "bytes/record"
    params = (FORMAT_NAMES, BATCH_SIZES, tuple(codec for codec in CODEC_NAMES if codec != "none"))
    param_names = ("format", "batch_size", "codec")

    def prepare(self, *parameters):
        self.track_bytes(*parameters)

    def track_bytes(self, name, batch_size, codec):
        return float(encoded(name, batch_size, codec).positions[-1]) / RECORDS


class BreakEven(Prepared):
    """The least batch size from which on a format is smaller than another one, uncompressed. nan: there is none."""

    unit = "records/batch"
    params = (FORMAT_NAMES, OTHER_NAMES)
    param_names = ("format", "other")

    def prepare(self, name, other):
        if name == other:
            raise NotImplementedError(f"{name} is {other}")
        self.track_records_per_batch(name, other)

    def track_records_per_batch(self, name, other):
        first = float("nan")
        for batch_size in reversed(TRIED_BATCH_SIZES):
            made = sample(batch_size)
            one, two = (FORMATS[each].size(made.records, made.bounds).sum() for each in (name, other))
            if one >= two:
                break
            first = float(batch_size)
        return first


class Memory(Prepared):
    """The most memory of a process, with Python and its imports: 128,000 records, 100 records per batch.

    Decoding reads the same 2,000 records repeatedly, because generating all of them takes more memory than decoding.
    """

    params = (FORMAT_NAMES,)
    param_names = ("format",)

    def prepare(self, name):
        encoded(name)

    def peakmem_encode(self, name):
        made = sample(records=MANY_RECORDS)
        FORMATS[name].encode(made.records, made.bounds, lossy=True)

    def peakmem_decode(self, name):
        FORMATS[name].decode(np.tile(encoded(name).data, MANY_RECORDS // RECORDS))
