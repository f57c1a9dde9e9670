"""The codecs that compress, and two sample inputs: text, which compresses, and noise, which does not."""

REAL = ("gzip", "snappy", "lz4", "zstd")
TEXT = b"".join(b'{"user":%d,"page":"/item/%d"}' % (i % 97, i * i % 1009) for i in range(6000))
NOISE = bytes((i * 2654435761 >> 13) & 0xFF for i in range(100_000))
