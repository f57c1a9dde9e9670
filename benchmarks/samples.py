"""Parameters and records that the benchmarks share, and the report of features that a commit lacks.

Only public names are imported, so that the benchmarks run on commits before and after a redesign.

asv numbers the parameter sets once and runs each commit by these numbers. So the lists must not depend on the installed
commit. By default they are the lists below. With KFBENCH_ASV=full, `tools/asv_full.py` reads them from the checkout in
which asv was started and passes them in KFBENCH_ASV_NAMES.
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
    """Return records of 16-byte keys and 100-byte values of template payload, with their batch boundaries."""
    return replace(WORKLOADS["grid"], batch_size=batch_size).generate(records=records, seed=SEED)


@cache
def encoded(name, batch_size=100, codec="none"):
    """Return the sample's log in a format."""
    made = sample(batch_size)
    return FORMATS[name].encode(made.records, made.bounds, codec, lossy=True)


class Many(NamedTuple):
    """A log of many records: data uint8[size], positions int64[entries + 1]."""

    data: np.ndarray
    positions: np.ndarray


def many(name, batch_size=100):
    """Return the encoded sample, repeated 64 times: 128,000 records.

    The positions are those of the log's entries: of records if a batch costs nothing, as in v0 and v1; else of batches.
    """
    log, by_record = encoded(name, batch_size), encoded(name, batch_size=1)
    if by_record.positions[-1] == log.positions[-1]:
        log = by_record
    times = MANY_RECORDS // RECORDS
    ends = log.positions[1:] + log.positions[-1] * np.arange(times)[:, np.newaxis]
    return Many(np.tile(log.data, times), np.concatenate([[0], ends.ravel()]))


@contextmanager
def lacking():
    """Raise NotImplementedError, which asv shows as n/a, for a feature that a commit or a format lacks.

    A missing third-party package fails the benchmark. A test lists the parameter sets that may be n/a in the newest
    commit.
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
    """The base of the benchmarks. asv calls `setup` before every sample, but `prepare` runs once per process.

    `prepare` sets the state, and calls the measured function once, so that its kernels are compiled.
    """

    version = "2"
    prepared = False

    def setup(self, *parameters):
        if not self.prepared:
            with lacking():
                self.prepare(*parameters)
            self.prepared = True


class Timed(Prepared):
    """Process time, in samples of one call: 10 to 100 of them in each of two processes."""

    timer = time.process_time
    rounds = 2
    repeat = (10, 100, 0.1)
    warmup_time = 0.02


class TimedWithCodecs(Timed):
    """The benchmarks of every format with every codec."""

    params = (FORMAT_NAMES, CODEC_NAMES)
    param_names = ("format", "codec")
