"""What a format costs the broker: CPU of append, conversion and compaction, and the bytes that they write and open.

asv compares one machine's commits with one another: for formats with one another see the reports (paired ratios).
2,000 records of 16-byte keys and 100-byte values of template payload, 100 records a batch.
"""

import time

import numpy as np

from benchmarks.formats import CODEC_NAMES, FORMAT_NAMES, RECORDS, sample
from kfbench.broker.append import append
from kfbench.broker.compact import filtered
from kfbench.broker.convert import convert
from kfbench.formats import FORMATS

TARGET_NAMES = ("v0", "v1", "v2", "v3")
BASE_OFFSET = 1_000_000
EVERY_SECOND = np.arange(RECORDS) % 2 == 1


class _Path:
    """A path: its time, and the bytes a record that it writes and decompresses (exact, so any change is its own)."""

    version = "1"
    timer = time.process_time
    params = (FORMAT_NAMES, CODEC_NAMES)
    param_names = ("format", "codec")

    def setup(self, *given):
        *names, codec = given
        for name in names:
            if codec not in FORMATS[name].capabilities.codecs:
                raise NotImplementedError(f"{name} has no {codec}")
        made = sample(batch_size=100)
        self.log = FORMATS[names[0]].encode(made.records, made.bounds, codec, lossy=True)
        self.time_path(*given)

    def time_path(self, *given):
        self.call(*given)

    def track_written_bytes(self, *given):
        return self.call(*given).work.written_bytes / RECORDS

    def track_decompressed_bytes(self, *given):
        return self.call(*given).work.decompressed_bytes / RECORDS

    track_written_bytes.unit = track_decompressed_bytes.unit = "bytes/record"


class Append(_Path):
    """20 requests validated and given their offsets, in a copy of what came in."""

    def call(self, name, _codec):
        return append(self.log, name, base_offset=BASE_OFFSET, from_zero=False)


class Compact(_Path):
    """Every second record goes."""

    def call(self, name, _codec):
        return filtered(self.log, EVERY_SECOND, fmt=name, now_ms=0)


class Convert(_Path):
    """From one format to another, or to itself."""

    params = (FORMAT_NAMES, TARGET_NAMES, CODEC_NAMES)
    param_names = ("format", "to", "codec")

    def call(self, name, to, _codec):
        return convert(self.log, to, fmt=name, lossy=True)
