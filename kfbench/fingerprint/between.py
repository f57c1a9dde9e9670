"""Estimate a topic's sizes in the batches of a producer's settings that its fingerprint does not have.

The numbers of batches of a topic and of a sample are known at many settings, the sample's bytes at fewer. Bytes depend
most on the number of batches. So they are interpolated to the setting where the sample has as many records per batch as
the topic has. A factor then leads from the sample to the topic. It is known at the settings that were measured on the
whole topic.
"""

from bisect import bisect_left
from collections.abc import Collection, Iterable, Mapping, Sequence
from math import ceil, exp, hypot, log, log1p
from typing import Final, NamedTuple

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from kfbench.errors import InvalidConfig
from kfbench.fingerprint.file import BatchingSums, CodecSums, Fingerprint, StretchSums, TopicPrint, samples
from kfbench.fingerprint.grid import LEAST_CHANGE, NONE, REFERENCE, Counts, Grid
from kfbench.whatif.estimate import SampleSums
from kfbench.whatif.rebatch import Batching

_NOTHING: Final = StretchSums(stretches=0, plain=0, coded=0, plain_squares=0, products=0, coded_squares=0)
_LEAST_DISTANCE: Final = 1e-3
_SETTINGS_WEIGHT: Final = 0.3
"""The weight of settings in a distance. Records per batch have weight 1. Both are compared by their logarithms."""

_LEAST_DIFFERENCE: Final = 0.05
"""The cost of a batch is computed from two settings whose logarithms of batches differ by more than this."""

_MOST_EXTENDED: Final = 2.0
"""A size beyond the end of a line is at most this factor larger or smaller than all sizes on the line."""


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
    sample = _Sample(topic)
    factors = {arm: _factors(topic, sample, *arm) for arm in sample.arms}
    batch_factors = {each.batching: each.batches / sample.topic_batches(each.batching) for each in topic.batchings}
    # Times are whole milliseconds, so a linger of 4.2 ms acts like 5 ms.
    whole = {each: Batching(float(ceil(each.linger_ms)), each.batch_size_bytes) for each in asked}
    found = {each: _estimated(sample, factors, batch_factors, at) for each, at in whole.items()}
    return {each: replace(sums, linger_ms=each.linger_ms) for each, sums in found.items()}


def _estimated(
    sample: "_Sample",
    factors: Mapping[tuple[str, str], Mapping[Batching, float]],
    batch_factors: Mapping[Batching, float],
    asked: Batching,
) -> BatchingSums:
    sizes, coded = dict[str, int](), list[CodecSums]()
    for (name, codec), known in factors.items():
        if not known:
            continue
        size_bytes = round(sample.size(name, codec, asked) * sample.weighted(known, asked))
        if codec == NONE:
            sizes[name] = size_bytes
        else:
            sums = StretchSums(
                stretches=1, plain=sizes[name], coded=size_bytes, plain_squares=0, products=0, coded_squares=0
            )
            coded.append(CodecSums(format=name, codec=codec, drawn=sums, certain=_NOTHING))
    batches = max(round(sample.topic_batches(asked) * sample.weighted(batch_factors, asked)), 1)
    return _sums_of(asked, batches, sizes, coded)


def _sums_of(asked: Batching, batches: int, sizes: dict[str, int], coded: list[CodecSums]) -> BatchingSums:
    return BatchingSums(
        linger_ms=asked.linger_ms, batch_size_bytes=asked.batch_size_bytes, batches=batches, sizes=sizes, coded=coded
    )


class _PerRecord:
    """Batches per record, between the settings of a table."""

    def __init__(self, counts: Counts) -> None:
        self._axes = np.log1p(counts.linger_ms), np.log(counts.batch_size_bytes)
        self._logarithms = np.log(counts.batches) - log(counts.records)
        self._known: dict[Batching, float] = {}

    def at(self, batching: Batching) -> float:
        """Return the logarithm of batches per record."""
        if batching not in self._known:
            lingers, sizes = self._axes
            along = [np.interp(log(batching.batch_size_bytes), sizes, row) for row in self._logarithms]
            self._known[batching] = float(np.interp(log1p(batching.linger_ms), lingers, along))
        return self._known[batching]


class _Sample:
    """The sizes of a topic's sample, in batches of as many records as those of the topic.

    If the sample has all records of the topic, or the topic's batches are unknown, a setting is looked up as it is.
    """

    def __init__(self, topic: TopicPrint) -> None:
        assert topic.sample
        self._records = topic.stored.sent_records
        self._own = _PerRecord(topic.sample.counts)
        sampled = topic.sample.counts.records
        # Batches of fewer records than the sample has say less about the topic than the sample does.
        is_part = sampled < self._records
        is_known = topic.batches is not None and topic.batches.records >= sampled
        self._topic = _PerRecord(topic.batches) if topic.batches and is_part and is_known else None
        self._fast = _table(topic.sample.fast)
        self._slow = self._over_reference(_table(topic.sample.slow))

    @property
    def arms(self) -> list[tuple[str, str]]:
        """Pairs of format and codec. Those without a codec come first."""
        known = {**self._fast.logarithms, **self._slow.logarithms}
        return sorted(known, key=lambda arm: arm[1] != NONE)

    def topic_batches(self, at: Batching) -> float:
        """Return the topic's number of batches."""
        return self._records * exp((self._topic or self._own).at(at))

    def size(self, name: str, codec: str, at: Batching) -> float:
        """Return the bytes of the sample. Those under the slow codec are known compared with the reference codec."""
        if (name, codec) in self._fast.logarithms:
            return self._between(self._fast, name, codec, at)
        return self.size(name, REFERENCE, at) * self._between(self._slow, name, codec, at)

    def weighted(self, factors: Mapping[Batching, float], asked: Batching) -> float:
        """Return the mean of factors, weighted by the inverse of the squared distance to the settings."""
        weights = [1 / max(self._distance(each, asked), _LEAST_DISTANCE) ** 2 for each in factors]
        return exp(np.average(np.log([*factors.values()]), weights=weights))

    def _distance(self, one: Batching, other: Batching) -> float:
        per_record = (self._topic or self._own).at
        lingers = log1p(one.linger_ms) - log1p(other.linger_ms)
        sizes = log(one.batch_size_bytes) - log(other.batch_size_bytes)
        return hypot(per_record(one) - per_record(other), _SETTINGS_WEIGHT * lingers, _SETTINGS_WEIGHT * sizes)

    def _over_reference(self, table: "_Table") -> "_Table":
        """Divide the sizes of a table by those of the same formats under the reference codec."""
        settings = [[Batching(linger, size) for size in table.batch_sizes] for linger in table.lingers_ms]
        logarithms = {
            (name, codec): rows
            - np.log([[self._looked_up(self._fast, name, REFERENCE, at) for at in row] for row in settings])
            for (name, codec), rows in table.logarithms.items()
        }
        return table._replace(logarithms=logarithms)

    def _between(self, table: "_Table", name: str, codec: str, at: Batching) -> float:
        """Return the sample's size, or ratio of sizes, where it has as many records per batch as the topic."""
        if self._topic is None:
            return self._looked_up(table, name, codec, at)
        wanted, size = self._topic.at(at), at.batch_size_bytes
        lines = [Batching(linger_ms, size) for linger_ms in table.lingers_ms]
        # A longer linger makes fewer batches.
        log_counts = np.minimum.accumulate([self._own.at(line) for line in lines])
        log_sizes = [self._on_line(table, name, codec, i, size) for i in range(len(lines))]
        if log_counts[-1] <= wanted <= log_counts[0] or table is self._slow:  # ratios are not extended
            return exp(np.interp(wanted, log_counts[::-1], log_sizes[::-1]))
        return _extended(wanted, log_counts, log_sizes)

    def _looked_up(self, table: "_Table", name: str, codec: str, at: Batching) -> float:
        """Interpolate over both settings."""
        size, lines = at.batch_size_bytes, _neighbours(table.lingers_ms, at.linger_ms)
        on_lines = [self._on_line(table, name, codec, i, size) for i in lines]
        ends = [Batching(table.lingers_ms[i], size) for i in lines]
        return exp(self._interpolated(at, ends, on_lines))

    def _on_line(self, table: "_Table", name: str, codec: str, i: int, size: int) -> float:
        """Return the logarithm of a size at a linger.ms of the table, interpolated over batch.size."""
        sizes, log_sizes = _neighbours(table.batch_sizes, size), table.logarithms[name, codec]
        return self._interpolated(
            Batching(table.lingers_ms[i], size),
            [Batching(table.lingers_ms[i], table.batch_sizes[j]) for j in sizes],
            [log_sizes[i, j] for j in sizes],
        )

    def _interpolated(self, at: Batching, ends: Sequence[Batching], numbers: Sequence[float]) -> float:
        """Interpolate between two settings, by the number of batches. If it hardly differs: by the settings."""
        here, below, above = (self._own.at(each) for each in (at, *ends))
        if abs(above - below) < LEAST_CHANGE:
            here, below, above = (log1p(each.linger_ms) + log(each.batch_size_bytes) for each in (at, *ends))
        share = min(max((here - below) / (above - below), 0.0), 1.0) if above != below else 0.0
        return numbers[0] * (1 - share) + numbers[1] * share


def _extended(wanted: float, log_counts: NDArray[np.float64], log_sizes: Sequence[float]) -> float:
    """Return a size beyond an end of a line: each batch costs as many bytes as near that end.

    log_counts, log_sizes: logarithms of batches per record, which fall, and of sizes.
    """
    end = 0 if wanted > log_counts[0] else len(log_counts) - 1
    others = np.flatnonzero(np.abs(log_counts - log_counts[end]) > _LEAST_DIFFERENCE)
    if not len(others):
        return exp(log_sizes[end])
    other = others[0 if end == 0 else -1]
    batches, sizes = np.exp(log_counts[[end, other]]), np.exp([log_sizes[end], log_sizes[other]])
    bytes_per_batch = (sizes[0] - sizes[1]) / (batches[0] - batches[1])
    extended = sizes[0] + bytes_per_batch * (exp(wanted) - batches[0])
    return float(np.clip(extended, exp(min(log_sizes)) / _MOST_EXTENDED, exp(max(log_sizes)) * _MOST_EXTENDED))


class _Table(NamedTuple):
    """Logarithms of the bytes by format and codec, float64[linger.ms, batch.size]."""

    lingers_ms: Sequence[int]
    batch_sizes: Sequence[int]
    logarithms: Mapping[tuple[str, str], NDArray[np.float64]]


def _table(grid: Grid) -> _Table:
    divisions = np.array(grid.divisions) - 1
    logarithms = {(arm.format, arm.codec): np.log(arm.size_bytes)[divisions] for arm in grid.arms}
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
