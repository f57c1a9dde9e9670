"""Fit how generated values vary, so that they compress like the topic's under all codecs of its fingerprint.

For each of a few spreads, the freshness is fitted to one codec. The spread with the smallest errors under all codecs is
kept. The fit takes a few seconds per topic.
"""

import math
from typing import Final, NamedTuple

import numpy as np

from kfbench.formats import BASE_FORMAT, FORMATS
from kfbench.workloads.base.workload import Sample
from kfbench.workloads.fingerprinted.model import TopicModel
from kfbench.workloads.fingerprinted.workload import FingerprintWorkload, varied

FIRST_CODECS: Final = ("zstd", "gzip", "lz4", "snappy")  # the first that the fingerprint has is fitted
RECORDS: Final = 4_096
PAYLOAD_BYTES: Final = 1 << 17
LEAST_RECORDS: Final = 16
STEPS: Final = 8
FRESHNESS: Final = (-1.0, 2.0)
SPREADS: Final = (0.5, 0.75, 1.0, 1.4, 2.0, 3.0)
PLATEAU: Final = 1.002  # of two freshnesses with the same size, the larger is kept: its records differ
SEED: Final = 20_261_127


class _Tried(NamedTuple):
    """Values of a model, and the sum of the squares of their errors."""

    error: float
    freshness: float
    spread: float
    has_long_runs: bool


def fitted(model: TopicModel) -> FingerprintWorkload:
    """Return the workload of a topic, with values that fit its compressed sizes in the log's batches."""
    bare, known = FingerprintWorkload.of(model), dict(model.shares)
    codec = next((name for name in FIRST_CODECS if name in known), None)
    if codec is None:
        return bare
    sample = bare.generate(records=RECORDS, seed=SEED)
    sizes = np.maximum(sample.shapes.key_lengths, 0, dtype=np.int64) + np.maximum(sample.shapes.value_lengths, 0)
    records = max(int(np.searchsorted(np.cumsum(sizes), PAYLOAD_BYTES)), LEAST_RECORDS)

    def share(name: str, freshness: float, spread: float, has_long_runs: bool) -> float:
        return coded_share(varied(bare, freshness, spread, has_long_runs).generate(records=records, seed=SEED), name)

    def tried(spread: float, has_long_runs: bool) -> _Tried:
        low, high = FRESHNESS
        for _ in range(STEPS):
            middle = (low + high) / 2
            is_small = share(codec, middle, spread, has_long_runs) < PLATEAU * known[codec]
            low, high = (middle, high) if is_small else (low, middle)
        values = round((low + high) / 2, 3), spread, has_long_runs
        errors = [math.log(share(name, *values) / wanted) for name, wanted in known.items()]
        return _Tried(sum(error * error for error in errors), *values)

    best = min(tried(spread, False) for spread in SPREADS)
    if best.freshness < 0:
        best = min(best, tried(best.spread, True))
    return varied(bare, *best[1:])


def coded_share(sample: Sample, codec: str) -> float:
    """Return bytes with a codec / bytes without it, in the base format."""
    fmt = FORMATS[BASE_FORMAT]
    plain = fmt.size(sample.shapes, sample.bounds, sample.batch_fields).sum()
    return len(fmt.encode(sample.records, sample.bounds, codec, batch_fields=sample.batch_fields).data) / int(plain)
