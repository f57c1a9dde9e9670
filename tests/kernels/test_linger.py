"""Batches of a simulated producer equal the Java client's rules, and match queueing theory."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from kfbench import Records
from kfbench.kernels.workload.linger import linger
from kfbench.records import Shapes

HEADER = 61
BATCH_SIZE = 16_384


def batches(times_us: NDArray[np.int64], shapes: Shapes, linger_us: int, size: int, share: float = 1.0) -> list[int]:
    bounds = np.empty(len(shapes) + 1, np.int64)
    found = linger(times_us, shapes.columns, linger_us, size, share, bounds)
    as_list: list[int] = bounds[: found + 1].tolist()
    return as_list


def varint_bytes(value: int) -> int:
    return max(-(-(2 * value if value >= 0 else -2 * value - 1).bit_length() // 7), 1)


def field_bytes(field: bytes | None) -> int:
    return 1 if field is None else varint_bytes(len(field)) + len(field)


Row = tuple[bytes | None, bytes | None, list[tuple[str, bytes | None]], int, int]


def payload_bytes(row: Row) -> int:
    """Return the size of key, value and headers, with their lengths, as `DefaultRecord.sizeOf` counts it."""
    value, key, headers, _, _ = row
    size = field_bytes(key) + field_bytes(value) + varint_bytes(len(headers))
    return size + sum(field_bytes(name.encode()) + field_bytes(content) for name, content in headers)


def accumulated(times_us: list[int], rows: list[Row], linger_us: int, batch_size: int, share: float) -> list[int]:
    """Return batch bounds by the rules of `RecordAccumulator.append` and `MemoryRecordsBuilder.hasRoomFor`.

    Bounds are record indexes. share: estimated compressed size divided by plain size.
    """
    bounds, first, written, room = [0], 0, 0, 0
    for i, row in enumerate(rows):
        while True:
            size = 1 + varint_bytes(row[4] - rows[first][4]) + varint_bytes(i - first) + payload_bytes(row)
            size += varint_bytes(size)
            if i == first:
                written, room = 0, max(batch_size, HEADER + 21 + payload_bytes(row))
                break
            if times_us[i] - times_us[first] < linger_us and HEADER + int(written * share) + size <= room:
                break
            bounds.append(i)
            first = i
        written += size
    return [*bounds, len(rows)] if rows else bounds


payloads = st.none() | st.integers(0, 200).map(bytes)
headers = st.lists(st.tuples(st.sampled_from(["", "a", "trace" * 20]), payloads), max_size=3)
given_records = st.lists(
    st.tuples(payloads, payloads, headers, st.integers(0, 40), st.integers(-(2**40), 2**40)), max_size=25
)


def check_as_the_client(rows: list[Row], linger_us: int, batch_size: int, share: float) -> None:
    values, keys, pairs, gaps, stamps = zip(*rows, strict=True) if rows else ((),) * 5
    records = Records.from_lists(values, keys, list(stamps), pairs)
    times_us = np.cumsum(np.array(gaps, np.int64))
    expected = accumulated(times_us.tolist(), rows, linger_us, batch_size, share)
    assert batches(times_us, records.shapes, linger_us, batch_size, share) == expected


@given(given_records, st.sampled_from([0, 1, 30, 2**62]), st.integers(0, 900), st.sampled_from([1.0, 0.3, 0.0]))
@settings(max_examples=100, deadline=None)
def test_as_the_client_counts(rows: list[Row], linger_us: int, batch_size: int, share: float) -> None:
    check_as_the_client(rows, linger_us, batch_size, share)


@pytest.mark.parametrize("header_bytes", [0, 80])
@pytest.mark.parametrize("share", [1.0, 0.3])
def test_hundreds_of_records_in_a_batch(share: float, header_bytes: int) -> None:
    """Deltas and, with headers, lengths of records take one or two bytes."""
    rows: list[Row] = [
        (b"v" * (i % 3), None, [("h", bytes(i % header_bytes))] if header_bytes else [], 0, i) for i in range(900)
    ]
    check_as_the_client(rows, 1, 9_000, share)


def test_a_large_record_has_a_batch_of_its_own_or_shares_what_its_estimate_left() -> None:
    large, small, none = bytes(50_000), b"1234567", b""
    records = Records.from_lists([none, large, none, large, small, small], timestamps_ms=[0] * 6)
    assert batches(np.zeros(6, np.int64), records.shapes, 1, BATCH_SIZE) == [0, 1, 3, 5, 6]


# Records per batch, by linger.ms and rate, for 200-byte records and Kafka's batch.size: MASCOTS 2025, N/T policy.
PUBLISHED = {
    5: {1: 1.01, 10: 1.05, 100: 1.5, 1_000: 6.0, 10_000: 51.0},
    20: {1: 1.02, 10: 1.2, 100: 3.0, 1_000: 21.0, 10_000: 78},
    100: {1: 1.1, 10: 2.0, 100: 11.0, 1_000: 78, 10_000: 78},
}


@pytest.mark.compiled_only
@pytest.mark.parametrize("linger_ms", PUBLISHED)
def test_the_published_table(linger_ms: int) -> None:
    n, gaps = 100_000, np.random.default_rng(7).exponential(1e6, 100_000)
    for rate, expected in PUBLISHED[linger_ms].items():
        times_us = np.cumsum(gaps / rate).astype(np.int64)
        records = Records.from_lists([bytes(198)] * n, timestamps_ms=times_us // 1000)
        found = batches(times_us, records.shapes, linger_ms * 1000, BATCH_SIZE)
        assert n / (len(found) - 1) == pytest.approx(expected, rel=0.02)
