"""The cost of a codec without a format: CPU time to compress and decompress the records section of v2 batches."""

from itertools import pairwise

from benchmarks.samples import BATCH_SIZES, CODEC_NAMES, Timed, encoded
from kfbench import CODECS

V2_HEADER_BYTES = 61


class Codec(Timed):
    """Compress or decompress 2,000 records, batch by batch, at the codec's default level."""

    params = (tuple(codec for codec in CODEC_NAMES if codec != "none"), BATCH_SIZES)
    param_names = ("codec", "batch_size")

    def prepare(self, codec, batch_size):
        log = encoded("v2", batch_size)
        self.plain = [bytes(log.data[start + V2_HEADER_BYTES : end]) for start, end in pairwise(log.positions)]
        self.packed = [CODECS[codec].compress(records) for records in self.plain]
        self.time_decompress(codec)

    def time_compress(self, codec, *_):
        for records in self.plain:
            CODECS[codec].compress(records)

    def time_decompress(self, codec, *_):
        for records in self.packed:
            CODECS[codec].decompress(records)
