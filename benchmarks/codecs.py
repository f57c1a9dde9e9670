"""What a codec costs without a format: CPU of the records of v2 in Kafka's framing, and what is left of their bytes.

2,000 records of 16-byte keys and 100-byte values of template payload, at each codec's default level.
"""

import time
from itertools import pairwise

from benchmarks.formats import BATCH_SIZES, sample
from kfbench.codecs import CODECS, LEGACY_LZ4
from kfbench.formats import FORMATS
from kfbench.layouts import V2_HEADER

FRAMINGS = ("none", "gzip", "snappy", "lz4", "zstd", "lz4-v0")
BY_FRAMING = {**CODECS, "lz4-v0": LEGACY_LZ4}


class _Framing:
    version = "1"
    timer = time.process_time
    params = (FRAMINGS, BATCH_SIZES)
    param_names = ("framing", "batch_size")

    def setup(self, framing, batch_size):
        made = sample(batch_size=batch_size)
        log = FORMATS["v2"].encode(made.records, made.bounds)
        batches = (bytes(log.data[start:end]) for start, end in pairwise(log.positions))
        self.codec = BY_FRAMING[framing]
        self.plain = [batch[V2_HEADER.itemsize :] for batch in batches]
        self.packed = [self.codec.compress(records) for records in self.plain]


class Compress(_Framing):
    """Batch by batch."""

    def time_compress(self, *_):
        for records in self.plain:
            self.codec.compress(records)

    def track_ratio(self, *_):
        return sum(map(len, self.packed)) / sum(map(len, self.plain))

    track_ratio.unit = "of the bytes"


class Decompress(_Framing):
    """Batch by batch, in one go as a reader of whole batches does, and as a stream that is read to its end."""

    def setup(self, *given):
        super().setup(*given)
        self.time_decompress()
        self.time_stream()

    def time_decompress(self, *_):
        for records in self.packed:
            self.codec.decompress(records)

    def time_stream(self, *_):
        for packed, plain in zip(self.packed, self.plain, strict=True):
            self.codec.stream(packed).read(len(plain))
