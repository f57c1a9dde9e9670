"""Each axis of the grid (the workload with free parameters) has exactly the effect that its name states."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from kfbench.codecs import CODECS
from kfbench.errors import InvalidConfig
from kfbench.workloads import BLOCK_RECORDS, Sample
from kfbench.workloads.grid import APPEND_DELAY_MS, PAYLOADS, START_OF_2026_MS, GridPoint


def sample(records: int = 1_000, start: int = 0, seed: int = 5, **axes: Any) -> Sample:
    return GridPoint(**axes).generate(records=records, seed=seed, start=start)


@pytest.mark.parametrize("batch_size", [1, 2, 3, 100, 10_000])
def test_batch_size(batch_size: int) -> None:
    sizes = np.diff(sample(records=10_001, batch_size=batch_size).bounds)
    assert set(sizes[:-1].tolist()) <= {batch_size}
    assert sizes.sum() == 10_001 and 0 < sizes[-1] <= batch_size


@pytest.mark.sampled
@pytest.mark.parametrize("payload", PAYLOADS)
@pytest.mark.parametrize("length", [-1, 0, 1, 7, 8, 63, 64, 900, 5_000])
def test_lengths(length: int, payload: str) -> None:
    made = sample(records=20, key_bytes=length, value_bytes=length, payload=payload).records
    expected = None if length == -1 else length
    for i in range(20):
        key, value = made.key(i), made.value(i)
        assert (None if key is None else len(key)) == expected
        assert (None if value is None else len(value)) == expected


@pytest.mark.sampled
@pytest.mark.parametrize("spread_ms", [0, 1, 63, 64, 8_191, 8_192, 86_400_000])
@pytest.mark.parametrize("batch_size", [2, 3, 100])
def test_timestamp_spread_is_exact_in_every_whole_batch_and_rises(spread_ms: int, batch_size: int) -> None:
    made = sample(records=batch_size * 50, batch_size=batch_size, timestamp_spread_ms=spread_ms)
    rows = made.shapes.timestamps_ms.reshape(50, batch_size)
    assert set(rows[:, 0].tolist()) == {START_OF_2026_MS}
    assert set((rows[:, -1] - rows[:, 0]).tolist()) == {spread_ms}
    assert np.all(np.diff(rows, axis=1) >= 0)


def test_timestamps_of_a_batch_do_not_lie_on_a_line() -> None:
    rows = sample(records=200, timestamp_spread_ms=60_000).shapes.timestamps_ms.reshape(2, 100)
    assert len(set(np.diff(rows[0]).tolist())) > 50
    assert np.any(rows[0] != rows[1])


@pytest.mark.parametrize("base_ms", [-1, 0, 2_208_988_800_000])
def test_base_timestamp(base_ms: int) -> None:
    assert set(sample(base_timestamp_ms=base_ms).shapes.timestamps_ms.tolist()) == {base_ms}


def test_headers() -> None:
    made = sample(records=50, headers=3, header_key_bytes=12, header_value_bytes=20).records
    names = {tuple(name for name, _ in made.headers(i)) for i in range(50)}
    assert names == {("x-header-000", "x-header-001", "x-header-002")}
    contents = {content for i in range(50) for _, content in made.headers(i)}
    assert len(contents) == 150 and {len(content or b"") for content in contents} == {20}
    assert sample(records=5, headers=1, header_value_bytes=-1).records.headers(0)[0][1] is None


@pytest.mark.parametrize("share", [0.0, 0.15, 1.0])
def test_null_share(share: float) -> None:
    nulls = np.mean(sample(records=20_000, null_share=share).shapes.value_lengths == -1)
    assert nulls == pytest.approx(share, abs=0.015 if 0 < share < 1 else 0)


def test_other_values_stay_where_some_turn_null() -> None:
    full, holed = sample().records, sample(null_share=0.5).records
    assert all(holed.value(i) in (None, full.value(i)) for i in range(1_000))


def test_offset_stride() -> None:
    assert sample(records=4, start=7, offset_stride=64).shapes.offsets.tolist() == [448, 512, 576, 640]


def test_producer_and_append_time_become_batch_fields() -> None:
    rows = sample(records=250, start=30, producer=True, append_time=True, timestamp_spread_ms=99).batch_fields.rows
    assert rows["base_sequence"].tolist() == [30, 100, 200]
    assert rows["timestamp_type"].tolist() == [1, 1, 1]
    assert rows["append_time_ms"].tolist()[:2] == [START_OF_2026_MS + 99 + APPEND_DELAY_MS] * 2
    assert sample(records=250).batch_fields.set_fields == set()


def test_half_payload_is_half_zeros_and_ones_are_ones() -> None:
    half = sample(records=200, value_bytes=101, payload="half").records
    rows = np.array([list(half.value(i) or b"") for i in range(200)])
    assert not rows[:, 51:].any() and len(np.unique(rows[:, :51])) == 256
    assert set(sample(value_bytes=9, payload="ones").records.value_data.tolist()) == {1}


def zstd_ratio(point: GridPoint) -> float:
    made = point.generate(records=1_000, seed=5)
    payload = [(made.records.key(i) or b"") + (made.records.value(i) or b"") for i in range(1_000)]
    batches = [b"".join(payload[a:b]) for a, b in zip(made.bounds[:-1], made.bounds[1:], strict=True)]
    return sum(len(CODECS["zstd"].compress(batch)) for batch in batches) / made.shapes.payload_bytes


def test_template_payload_compresses_as_real_topics_do() -> None:
    point = GridPoint(value_bytes=600)
    assert 0.65 <= zstd_ratio(replace(point, batch_size=1)) <= 0.9
    assert 0.2 <= zstd_ratio(replace(point, batch_size=10)) <= 0.35
    assert 0.1 <= zstd_ratio(replace(point, batch_size=100)) <= 0.25


def test_random_payload_does_not_compress() -> None:
    assert zstd_ratio(GridPoint(payload="random", value_bytes=600)) > 0.99


def test_a_slice_of_large_values_does_not_make_the_whole_block() -> None:
    made = sample(records=3, start=BLOCK_RECORDS - 2, value_bytes=102_400, payload="random").records
    assert len(made.value_data) == 3 * 102_400
    again = sample(records=1, start=BLOCK_RECORDS, value_bytes=102_400, payload="random").records
    assert again.value(0) == made.value(2)


@pytest.mark.parametrize(
    ("axes", "named"),
    [
        ({"batch_size": 0}, "batch_size"),
        ({"key_bytes": -2}, "key_bytes"),
        ({"key_bytes": "16"}, "key_bytes"),
        ({"producer": 1}, "producer"),
        ({"null_share": 1.5}, "null_share"),
        ({"payload": "json"}, "payload"),
        ({"batch_size": 1, "timestamp_spread_ms": 5}, "timestamp_spread_ms"),
        ({"value_bytes": -1, "null_share": 0.5}, "null_share"),
    ],
)
def test_a_point_off_the_grid_is_refused_by_its_axis(axes: dict[str, Any], named: str) -> None:
    with pytest.raises(InvalidConfig, match=f"^{named}: "):
        GridPoint(**axes)
