"""The cost of a format in a broker: CPU time of append, conversion and compaction; bytes written and decompressed.

Each benchmark uses 2,000 records, 100 records per batch. Bytes are exact: they change only when the code changes.
"""

from importlib import import_module
from itertools import permutations

import numpy as np

from benchmarks.samples import CODEC_NAMES, FORMAT_NAMES, IS_FULL, RECORDS, Timed, TimedWithCodecs, encoded

BASE_OFFSET = 1_000_000
EVERY_SECOND = np.arange(RECORDS) % 2 == 1
CONVERSIONS = (
    tuple(f"{source} to {target}" for source, target in permutations(FORMAT_NAMES, 2) if "v2" in (source, target))
    if IS_FULL
    else ("v1 to v2", "v2 to v1", "v2 to v3", "v3 to v2")
)


def path(module, function):
    """Import a function of kfbench.broker when it is needed, because the oldest commits do not have this package."""
    return getattr(import_module(f"kfbench.broker.{module}"), function)


class Append(TimedWithCodecs):
    """Append 20 produced batches as a broker: validate them and assign offsets, in a copy of the batches."""

    def prepare(self, name, codec):
        self.append, self.log = path("append", "append"), encoded(name, codec=codec)
        self.time_append(name)

    def time_append(self, name, *_):
        return self.append(self.log, name, base_offset=BASE_OFFSET, from_zero=False)

    def track_written_bytes(self, name, *_):
        return self.time_append(name).work.written_bytes / RECORDS

    def track_decompressed_bytes(self, name, *_):
        return self.time_append(name).work.decompressed_bytes / RECORDS

    track_written_bytes.unit = track_decompressed_bytes.unit = "bytes/record"


class Compact(TimedWithCodecs):
    """Compact a log: drop every second record."""

    def prepare(self, name, codec):
        self.filtered, self.log = path("compact", "filtered"), encoded(name, codec=codec)
        self.time_compact(name)

    def time_compact(self, name, *_):
        return self.filtered(self.log, EVERY_SECOND, fmt=name, now_ms=0)

    def track_written_bytes(self, name, *_):
        return self.time_compact(name).work.written_bytes / RECORDS

    track_written_bytes.unit = "bytes/record"


class Convert(Timed):
    """Convert a log to another format."""

    params = (CONVERSIONS, CODEC_NAMES)
    param_names = ("conversion", "codec")

    def prepare(self, conversion, codec):
        self.source, self.target = conversion.split(" to ")
        self.convert, self.log = path("convert", "convert"), encoded(self.source, codec=codec)
        encoded(self.target, codec=codec)  # raises if the target format does not support the codec: asv shows n/a
        self.time_convert()

    def time_convert(self, *_):
        return self.convert(self.log, self.target, fmt=self.source, lossy=True)

    def track_written_bytes(self, *_):
        return self.time_convert().work.written_bytes / RECORDS

    track_written_bytes.unit = "bytes/record"
