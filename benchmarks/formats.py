"""The cost of a format: CPU time and memory to encode, decode and compute sizes; bytes per record.

All benchmarks use one thread and compute checksums. asv compares commits on one machine. To compare formats with one
another, read kfbench's reports, which have paired ratios.
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
    """Encode 2,000 records into a reused buffer."""

    params = (FORMAT_NAMES, BATCH_SIZES, CODEC_NAMES)
    param_names = ("format", "batch_size", "codec")

    def prepare(self, name, batch_size, codec):
        self.out = encoded(name, batch_size, codec).data.copy()
        self.time_encode(name, batch_size, codec)

    def time_encode(self, name, batch_size, codec):
        made = sample(batch_size)
        FORMATS[name].encode(made.records, made.bounds, codec, lossy=True, out=self.out)


class Decode(Timed):
    """Decode 2,000 records to columns. Without a codec, keys and values are not copied."""

    params = (FORMAT_NAMES, BATCH_SIZES, CODEC_NAMES)
    param_names = ("format", "batch_size", "codec")

    def prepare(self, name, batch_size, codec):
        self.data = encoded(name, batch_size, codec).data
        self.time_decode(name, batch_size, codec)

    def time_decode(self, name, *_):
        FORMATS[name].decode(self.data)


class ReadLog(TimedWithCodecs):
    """Read a log segment and find the format of each batch: 2,000 records, 100 records per batch."""

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
    """Decode only offsets, timestamps and lengths of 2,000 records, 100 records per batch.

    Nothing else is decompressed if the format allows it.
    """

    def prepare(self, name, codec):
        self.data = encoded(name, codec=codec).data
        self.time_decode_metadata(name)

    def time_decode_metadata(self, name, *_):
        FORMATS[name].decode_metadata(self.data)


class ReadTimes(Timed):
    """Read only offsets and timestamps of 128,000 records, 100 records per batch."""

    params = (FORMAT_NAMES,)
    param_names = ("format",)

    def prepare(self, name):
        self.data, self.positions = many(name)
        self.time_read_times(name)

    def time_read_times(self, name):
        FORMATS[name].read_times(self.data, self.positions)


class Fetch(Timed):
    """Read one record, that with index 50, from each of 1,280 batches with 100 records."""

    params = (FORMAT_NAMES,)
    param_names = ("format",)

    def prepare(self, name):
        self.data, self.positions = many(name)
        self.indices = np.full(len(self.positions) - 1, 50)
        self.time_fetch(name)

    def time_fetch(self, name):
        FORMATS[name].fetch(self.data, self.positions, self.indices)


class Size(Timed):
    """Compute the exact size of each batch of 2,000 records, without encoding them."""

    params = (FORMAT_NAMES, BATCH_SIZES)
    param_names = ("format", "batch_size")

    def prepare(self, name, batch_size):
        self.time_size(name, batch_size)

    def time_size(self, name, batch_size):
        made = sample(batch_size)
        FORMATS[name].size(made.records, made.bounds)


class Overhead(Prepared):
    """The exact number of bytes per record that a format adds to keys, values and headers."""

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
    """The size of a compressed log in bytes per record, keys and values included, at each codec's default level.

    It depends on the build of the codec's library.
    """

    unit = "bytes/record"
    params = (FORMAT_NAMES, BATCH_SIZES, tuple(codec for codec in CODEC_NAMES if codec != "none"))
    param_names = ("format", "batch_size", "codec")

    def prepare(self, *parameters):
        self.track_bytes(*parameters)

    def track_bytes(self, name, batch_size, codec):
        return float(encoded(name, batch_size, codec).positions[-1]) / RECORDS


class BreakEven(Prepared):
    """The smallest number of records per batch from which on a format is smaller than another format, uncompressed.

    The result is nan if there is no such number in TRIED_BATCH_SIZES.
    """

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
    """The peak memory of a process that encodes or decodes 128,000 records, 100 records per batch.

    It includes Python and its imports. Decoding reads a log of 2,000 records, repeated 64 times, because generating
    128,000 different records takes more memory than decoding.
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
