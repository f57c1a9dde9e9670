"""Estimate a topic's sizes in the batches of a producer's settings that its fingerprint does not have.

The number of batches of a sample is known at many settings, its bytes at fewer. Bytes are interpolated between the
neighbours of a setting by the number of batches, because bytes jump where it jumps. A factor then leads from the sample
to the topic. It is known at the settings that were measured on the whole topic.
"""

from bisect import bisect_left
from collections.abc import Collection, Iterable, Mapping, Sequence
from math import ceil, exp, hypot, log, log1p
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kfbench.errors import InvalidConfig
from kfbench.fingerprint.file import BatchingSums, CodecSums, Fingerprint, StretchSums, TopicPrint, samples
from kfbench.fingerprint.grid import LEAST_CHANGE, NONE, REFERENCE, Grid, SampleSizes
from kfbench.whatif.estimate import SampleSums
from kfbench.whatif.rebatch import Batching

_NOTHING: Final = StretchSums(stretches=0, plain=0, coded=0, plain_squares=0, products=0, coded_squares=0)
_LEAST_DISTANCE: Final = 1e-3


def check_between(asked: Iterable[Batching], given: Fingerprint) -> None:
    """Raise InvalidConfig for settings that the fingerprint says nothing about."""
    for topic in (topic for topic in given.topics if topic.stored.sent_records):
        for each in asked:
            if not topic.sample:
                raise InvalidConfig(f"{topic.name}: the fingerprint has sizes in its own batches only")
            if not topic.sample.counts.has(each.linger_ms, each.batch_size_bytes):
                lingers, sizes = topic.sample.counts.linger_ms, topic.sample.counts.batch_size_bytes
                raise InvalidConfig(
                    f"{each.words}: the fingerprint has linger {lingers[0]:g} to {lingers[-1]:g} ms and batch.size "
                    f"{sizes[0]:,} to {sizes[-1]:,}"
                )


def estimated(topic: TopicPrint, asked: Collection[Batching]) -> dict[Batching, BatchingSums]:
    """Return the estimated sums of a topic in other batches, for the formats and codecs that its sample has.

    A topic without records of clients has no batches.
    """
    if not asked or not topic.stored.sent_records or not topic.sample:
        return {each: _sums_of(each, 0, dict.fromkeys(topic.formats, 0), []) for each in asked}
    sample = _Sample(topic.sample)
    factors = {arm: _factors(topic, sample, *arm) for arm in sample.arms}
    of_batches = {each.batching: each.batches / sample.batches(each.batching) for each in topic.batchings}
    return {each: _estimated(sample, factors, of_batches, each) for each in asked}


def _estimated(
    sample: "_Sample",
    factors: Mapping[tuple[str, str], Mapping[Batching, float]],
    of_batches: Mapping[Batching, float],
    asked: Batching,
) -> BatchingSums:
    sizes, coded = dict[str, int](), list[CodecSums]()
    for (name, codec), known in factors.items():
        if not known:
            continue
        size_bytes = round(sample.size(name, codec, asked) * _weighted(known, asked))
        if codec == NONE:
            sizes[name] = size_bytes
        else:
            sums = StretchSums(
                stretches=1, plain=sizes[name], coded=size_bytes, plain_squares=0, products=0, coded_squares=0
            )
            coded.append(CodecSums(format=name, codec=codec, drawn=sums, certain=_NOTHING))
    batches = max(round(sample.batches(asked) * _weighted(of_batches, asked)), 1)
    return _sums_of(asked, batches, sizes, coded)


def _sums_of(asked: Batching, batches: int, sizes: dict[str, int], coded: list[CodecSums]) -> BatchingSums:
    return BatchingSums(
        linger_ms=asked.linger_ms, batch_size_bytes=asked.batch_size_bytes, batches=batches, sizes=sizes, coded=coded
    )


class _Sample:
    """The sizes of a topic's sample, between the settings of its tables."""

    def __init__(self, sampled: SampleSizes) -> None:
        counts = sampled.counts
        self._axes = np.log1p(counts.linger_ms), np.log(counts.batch_size_bytes)
        self._counts = np.log(counts.batches)
        self._known: dict[Batching, float] = {}
        self._fast = _table(sampled.fast)
        self._slow = self._over_reference(_table(sampled.slow))

    @property
    def arms(self) -> list[tuple[str, str]]:
        """Pairs of format and codec. Those without a codec come first."""
        known = {**self._fast.logarithms, **self._slow.logarithms}
        return sorted(known, key=lambda arm: arm[1] != NONE)

    def size(self, name: str, codec: str, at: Batching) -> float:
        """Return the bytes of the sample. Those under the slow codec are known compared with the reference codec."""
        if (name, codec) in self._fast.logarithms:
            return self._between(self._fast, name, codec, at)
        return self.size(name, REFERENCE, at) * self._between(self._slow, name, codec, at)

    def _over_reference(self, table: "_Table") -> "_Table":
        """Divide the sizes of a table by those of the same formats under the reference codec."""
        settings = [[Batching(linger, size) for size in table.batch_sizes] for linger in table.lingers_ms]
        logarithms = {
            (name, codec): rows - np.log([[self.size(name, REFERENCE, at) for at in row] for row in settings])
            for (name, codec), rows in table.logarithms.items()
        }
        return table._replace(logarithms=logarithms)

    def batches(self, at: Batching) -> float:
        return exp(self._count(Batching(ceil(at.linger_ms), at.batch_size_bytes)))

    def _count(self, at: Batching) -> float:
        """Return the logarithm of the number of batches."""
        if at not in self._known:
            lingers, sizes = self._axes
            along = [np.interp(log(at.batch_size_bytes), sizes, row) for row in self._counts]
            self._known[at] = float(np.interp(log1p(at.linger_ms), lingers, along))
        return self._known[at]

    def _between(self, table: "_Table", name: str, codec: str, at: Batching) -> float:
        """Interpolate over both settings. Times are whole milliseconds, so a linger of .2 ms acts like 1 ms."""
        linger_ms, size = ceil(at.linger_ms), at.batch_size_bytes
        logarithms, sizes = table.logarithms[name, codec], _neighbours(table.batch_sizes, size)
        lines = _neighbours(table.lingers_ms, linger_ms)
        on_lines = [
            self._interpolated(
                Batching(table.lingers_ms[i], size),
                [Batching(table.lingers_ms[i], table.batch_sizes[j]) for j in sizes],
                [logarithms[i, j] for j in sizes],
            )
            for i in lines
        ]
        ends = [Batching(table.lingers_ms[i], size) for i in lines]
        return exp(self._interpolated(Batching(linger_ms, size), ends, on_lines))

    def _interpolated(self, at: Batching, ends: Sequence[Batching], numbers: Sequence[float]) -> float:
        """Interpolate between two settings, by the number of batches. If it hardly differs: by the settings."""
        here, below, above = (self._count(each) for each in (at, *ends))
        if abs(above - below) < LEAST_CHANGE:
            here, below, above = (log1p(each.linger_ms) + log(each.batch_size_bytes) for each in (at, *ends))
        share = min(max((here - below) / (above - below), 0.0), 1.0) if above != below else 0.0
        return numbers[0] * (1 - share) + numbers[1] * share


class _Table(NamedTuple):
    """Logarithms of the bytes by format and codec, float64[linger.ms, batch.size]."""

    lingers_ms: Sequence[int]
    batch_sizes: Sequence[int]
    logarithms: Mapping[tuple[str, str], NDArray[np.float64]]


def _table(grid: Grid) -> _Table:
    logarithms = {(arm.format, arm.codec): np.log(arm.size_bytes) for arm in grid.arms}
    return _Table(grid.linger_ms, grid.batch_size_bytes, logarithms)


def _neighbours(values: Sequence[int], value: float) -> tuple[int, int]:
    """Return the positions of the values below and above one. They are equal if it is one of the values."""
    upper = bisect_left(values, value)
    return (upper, upper) if values[upper] == value else (upper - 1, upper)


def _factors(topic: TopicPrint, sample: _Sample, name: str, codec: str) -> dict[Batching, float]:
    """Return the bytes of the topic for each byte of the sample, at the settings of `topic.batchings`.

    Empty: nothing of this topic was drawn to be compressed, so other topics stand for it.
    """
    factors: dict[Batching, float] = {}
    for each in topic.batchings:
        size_bytes: int | None = each.sizes[name]
        if codec != NONE:
            sums = samples(each.coded).get((name, codec), SampleSums())
            size_bytes = sums.estimate(each.sizes[name]).size_bytes
        if size_bytes:
            factors[each.batching] = size_bytes / sample.size(name, codec, each.batching)
    return factors


def _weighted(factors: Mapping[Batching, float], asked: Batching) -> float:
    """Return the mean of factors, weighted by the inverse of the squared distance to the settings."""
    weights = [1 / max(_distance(each, asked), _LEAST_DISTANCE) ** 2 for each in factors]
    return float(np.average([*factors.values()], weights=weights))


def _distance(one: Batching, other: Batching) -> float:
    lingers = log1p(one.linger_ms) - log1p(other.linger_ms)
    return hypot(lingers, log(one.batch_size_bytes) - log(other.batch_size_bytes))
