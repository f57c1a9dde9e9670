"""Parameters, records and base classes that the benchmarks share.

Only public names of kfbench are imported, so that the benchmarks run on commits before and after a redesign. A feature
that a commit does not have is shown as n/a.

asv numbers the parameter sets once and uses these numbers for each commit. So the lists of formats, codecs and
workloads must not depend on the commit that is installed. By default they are DEFAULTS. With KFBENCH_ASV=full,
`tools/asv_plugin.py` reads them from the checkout in which asv was started. It passes them in KFBENCH_ASV_NAMES.
"""

import json
import os
import time
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from typing import NamedTuple

import numpy as np

from kfbench import FORMATS, WORKLOADS
from kfbench.errors import IllegalCombination

os.environ["KFBENCH_COMPILE"] = "1"  # else the first calls of a kernel run as plain Python

DEFAULTS = {
    "formats": ("v0", "v1", "v2", "v3", "columnar"),
    "codecs": ("none", "zstd"),
    "workloads": ("iot-telemetry", "kv-ycsb", "service-events"),
}
NAMES = json.loads(os.environ.get("KFBENCH_ASV_NAMES", "null")) or DEFAULTS
IS_FULL = "KFBENCH_ASV_NAMES" in os.environ

FORMAT_NAMES = tuple(NAMES["formats"])
CODEC_NAMES = tuple(NAMES["codecs"])
WORKLOAD_NAMES = tuple(NAMES["workloads"])
BATCH_SIZES = (1, 10, 100, 1000) if IS_FULL else (1, 100)

RECORDS = 2_000
MANY_RECORDS = 64 * RECORDS  # 15 MB of keys and values
SEED = 7


@cache
def sample(batch_size=100, records=RECORDS):
    """Generate records and their batches: keys of 16 bytes, values of 100 bytes, the grid's payload `template`."""
    return replace(WORKLOADS["grid"], batch_size=batch_size).generate(records=records, seed=SEED)


@cache
def encoded(name, batch_size=100, codec="none"):
    """Encode 2,000 records of `sample` in the format `name`."""
    made = sample(batch_size)
    return FORMATS[name].encode(made.records, made.bounds, codec, lossy=True)


class Many(NamedTuple):
    """A log of many records.

    Args:
        data: uint8[size], the bytes.
        positions: int64[entries + 1], the start of each entry (batch or record) in bytes, then the size.
    """

    data: np.ndarray
    positions: np.ndarray


def many(name, batch_size=100):
    """Return a log of 128,000 records: the encoded sample of 2,000 records, repeated 64 times.

    The positions are those of batches. In v0 and v1, where a batch adds no bytes, they are those of records.
    """
    log, by_record = encoded(name, batch_size), encoded(name, batch_size=1)
    if by_record.positions[-1] == log.positions[-1]:
        log = by_record
    times = MANY_RECORDS // RECORDS
    ends = log.positions[1:] + log.positions[-1] * np.arange(times)[:, np.newaxis]
    return Many(np.tile(log.data, times), np.concatenate([[0], ends.ravel()]))


@contextmanager
def lacking():
    """Turn errors of the `with` body into NotImplementedError if a commit or a format does not have a feature.

    asv shows NotImplementedError as n/a. If a third-party package is missing, the error is raised unchanged, so the
    benchmark fails. A test lists the parameter sets that may be n/a in the newest commit.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "kfbench":
            raise
        raise NotImplementedError(str(error)) from error
    except (ImportError, AttributeError, KeyError, TypeError, IllegalCombination) as error:
        raise NotImplementedError(f"{type(error).__name__}: {error}") from error


class Prepared:
    """The base of all benchmarks. asv calls `setup` before every sample, but `prepare` runs once per process.

    The `prepare` of a benchmark creates its data. It also calls the measured function once, so that its kernels are
    compiled before the measurement.
    """

    version = "2"
    prepared = False

    def setup(self, *parameters):
        if not self.prepared:
            with lacking():
                self.prepare(*parameters)
            self.prepared = True


class Timed(Prepared):
    """The base of benchmarks that measure CPU time of the process. A sample is one call.

    asv takes 10 to 100 samples in each of two processes.
    """

    timer = time.process_time
    rounds = 2
    repeat = (10, 100, 0.1)
    warmup_time = 0.02


class TimedWithCodecs(Timed):
    """The base of benchmarks that measure CPU time of every format with every codec."""

    params = (FORMAT_NAMES, CODEC_NAMES)
    param_names = ("format", "codec")
