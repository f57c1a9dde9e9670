"""The batches of a workload have the sizes of its model. Records that belong together are in one batch."""

from typing import Any

import msgspec
import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import geom, kstest

from kfbench.formats import FORMATS
from kfbench.records import Shapes
from kfbench.workloads import BLOCK_RECORDS
from kfbench.workloads.named.batching import Batching, CompactionSurvivors, Linger, linger_batches, plan_batches

Sizes = NDArray[np.int64]


def batching(**settings: Any) -> Batching:
    return msgspec.convert(settings, Batching)  # type: ignore[no-any-return]


def sizes(seed: int = 1, block: int = 0, starts: Sizes | None = None, **settings: Any) -> Sizes:
    bounds = plan_batches(batching(**settings), seed, block, starts, np.arange(BLOCK_RECORDS))
    assert bounds is not None
    assert (bounds[0], bounds[-1]) == (0, BLOCK_RECORDS)
    found: Sizes = np.diff(bounds)
    assert found.min() >= 1
    return found


def test_fixed() -> None:
    assert sizes(model="fixed", records=100).tolist() == [100] * 655 + [36]
    assert sizes(model="fixed", records=BLOCK_RECORDS).tolist() == [BLOCK_RECORDS]


@pytest.mark.parametrize(
    ("records", "mean"),
    [
        ({"dist": "choice", "values": [1, 56], "weights": [0.97, 0.03]}, 0.97 + 0.03 * 56),
        ({"dist": "uniform", "low": 100, "high": 1_000}, 550),
        ({"dist": "uniform", "low": 1, "high": 500}, 250.5),
        ({"dist": "fixed", "value": 60_000}, 60_000),
    ],
)
def test_drawn_sizes_are_those_of_the_distribution(records: dict[str, Any], mean: float) -> None:
    found = np.concatenate([sizes(block=block, model="drawn", records=records)[:-1] for block in range(40)])
    assert found.mean() == pytest.approx(mean, rel=0.02)
    if records["dist"] == "uniform":
        low, width = records["low"], records["high"] - records["low"] + 1
        between = np.random.default_rng(1).random(len(found))  # spread each whole number over one unit
        assert kstest((found - low + between) / width, "uniform").pvalue > 0.001
    elif records["dist"] == "choice":
        assert (found == 1).mean() == pytest.approx(0.97, abs=0.002)


def test_what_is_counted_need_not_be_records() -> None:
    """A batch counts events, and an event may have several records. The first of these events has two records."""
    starts = np.concatenate([[0], np.arange(2, BLOCK_RECORDS)])
    assert sizes(starts=starts, model="fixed", records=1)[:3].tolist() == [2, 1, 1]
    drawn = sizes(starts=starts, model="drawn", records={"dist": "fixed", "value": 2})
    assert (drawn[0], set(drawn[1:].tolist())) == (3, {1, 2})


@pytest.mark.parametrize("most", [1, 2, 100, BLOCK_RECORDS])
def test_a_transaction_is_data_and_then_one_marker(most: int) -> None:
    uniform = {"dist": "uniform", "low": 1, "high": most}
    for seed in range(5):
        found = sizes(seed, model="transactions", records=uniform)
        assert len(found) % 2 == 0 and set(found[1::2].tolist()) == {1}
        assert found[:-2:2].max(initial=1) <= most
    data = np.concatenate([sizes(s, model="transactions", records=uniform)[:-2:2] for s in range(30)])
    if most == 100:
        assert data.mean() == pytest.approx(50.5, rel=0.02)


def survivors(survival: float, seed: int = 1, block: int = 0) -> tuple[CompactionSurvivors, Sizes, Sizes]:
    model = CompactionSurvivors(of_records=100, survival=survival)
    offsets = model.offsets(seed, block)
    bounds = plan_batches(model, seed, block, None, offsets)
    assert bounds is not None
    return model, offsets, bounds


@pytest.mark.parametrize("survival", [0.02, 0.1, 0.5, 0.9])
def test_survivors_lie_as_far_apart_as_chance_has_it(survival: float) -> None:
    model, offsets, bounds = survivors(survival)
    _, after, _ = survivors(survival, block=1)
    gaps = np.diff(offsets)
    assert gaps.min() >= 1 and offsets[-1] < model.block_offsets <= after[0]
    assert gaps.mean() == pytest.approx(1 / survival, rel=0.02)
    for share in (0.25, 0.5, 0.9, 0.99):
        expected = geom.ppf(share, survival)
        assert abs(np.quantile(gaps, share) - expected) <= max(1, 0.02 * expected)
    batch = offsets // 100
    assert np.array_equal(np.flatnonzero(np.diff(batch)) + 1, bounds[1:-1])  # one batch per 100 offsets
    kept = np.diff(bounds)[:-1]
    assert kept.mean() == pytest.approx(100 * survival / (1 - (1 - survival) ** 100), rel=0.02)


def test_where_all_survive_there_are_no_holes() -> None:
    _, offsets, _ = survivors(1.0, block=3)
    assert np.diff(offsets).tolist() == [1] * (BLOCK_RECORDS - 1)


def shapes(n: int, value_bytes: int) -> Shapes:
    nulls = np.full(n, -1, np.int32)
    return Shapes(
        timestamps_ms=np.zeros(n, np.int64),
        offsets=np.arange(n),
        key_lengths=nulls,
        value_lengths=np.full(n, value_bytes, np.int32),
    )


def test_linger_takes_what_fits_of_records_that_come_fast_enough() -> None:
    times_us = np.arange(BLOCK_RECORDS)
    given = shapes(BLOCK_RECORDS, 1024)
    full = linger_batches(Linger(linger_ms=1, batch_size_bytes=131_072), times_us, given)
    assert set(np.diff(full)[:-1].tolist()) == {126}
    assert FORMATS["v2"].size(given, full).max() <= 131_072
    assert FORMATS["v2"].size(shapes(127, 1024), 127).sum() > 131_072
