"""The metadata floor (a lower bound of metadata bytes, by entropy) equals values computed by hand.

Formats take at least as much.
"""

from collections import Counter
from math import log2
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kfbench.batches import NO_FIELDS, BatchFields
from kfbench.formats import FORMATS
from kfbench.measure.kinds.floor import FLOOR, HEADER_BYTES, PRODUCER_BYTES, TIME_BYTES, Floor, floor
from kfbench.measure.schema import table
from kfbench.records import Shapes
from kfbench.workloads.catalogue import WORKLOADS
from kfbench.workloads.grid import GridPoint
from tests.common import batch_fields_of, bounds_of, records_of
from tests.strategies import Case, cases_of

PLAIN = HEADER_BYTES + 1  # bytes of a header, for a batch of at most 127 records
COLUMNS = (
    "timestamp_delta", "offset_delta", "key_length", "value_length", "header_count", "header_key_length",
    "header_value_length",
)  # fmt: skip


def shapes(n: int = 4, **columns: Any) -> Shapes:
    given = {"timestamps_ms": [7] * n, "offsets": range(n), "key_lengths": [3] * n, "value_lengths": [9] * n} | columns
    made: dict[str, Any] = {name: np.array(values, np.int64) for name, values in given.items()}
    return Shapes(**made)


def of(given: Shapes, *bounds: int, **fields: Any) -> Floor:
    return floor(given, np.array(bounds or (0, len(given))), BatchFields(**fields))


def bits(given: Shapes, *bounds: int, **fields: Any) -> dict[str, float]:
    """Return the entropy in bits of each column in which it is not 0."""
    return {name: found for name, found in of(given, *bounds, **fields).bits.items() if found}


def entropy(symbols: list[int]) -> float:
    """Return the total entropy of a list of symbols in bits."""
    counts = Counter(symbols).values()
    return -sum(count * log2(count / len(symbols)) for count in counts)


TWO_HEADERS = {"header_bounds": [0, 2, 4, 6, 8], "header_key_lengths": [5, 8] * 4}
ENDS = [-(2**63) + 1, 2**63 - 1]
# Columns of shapes, bounds and header fields -> the entropy in bits of each column in which it is not 0.
BITS: dict[str, tuple[dict[str, Any], tuple[int, ...], dict[str, Any], dict[str, float]]] = {
    # 9 four times, 1 twice, null twice: 1 bit each for the four, 2 bits each for the other four.
    "lengths": ({"value_lengths": [9, 1, 9, -1, 9, 1, 9, -1]}, (), {}, {"value_length": 4 * 1 + 4 * 2}),
    # three equal lengths and one null: 3 log2(4/3) + log2(4) bits
    "a null": ({"key_lengths": [1, 1, 1, -1]}, (), {}, {"key_length": 3 * log2(4 / 3) + 2}),
    # All lengths within a batch are equal: a model per batch would give 0.
    "one model for all batches": ({"value_lengths": [5, 5, 6, 6]}, (0, 2, 4), {}, {"value_length": 4}),
    "offsets without holes": ({"offsets": [10, 11, 12, 13]}, (), {}, {}),
    "gaps of 0, 0, 3 and 3": ({"offsets": [10, 11, 15, 19]}, (), {}, {"offset_delta": 4}),
    "a gap of one before each record": ({"offsets": [10, 12, 14, 16]}, (), {"base_offset": 9}, {}),
    "a gap of one before the third record": (
        {}, (0, 2, 4), {"base_offset": np.array([0, 1])}, {"offset_delta": entropy([0, 0, 1, 0])}
    ),
    # Distances to the latest: 0 and 1, ten each. To the line through both ends: -1, 0 and 1. Steps: -1, 0 and 1.
    "ages": (
        {"timestamps_ms": [9, 8, 8, 9, 9, 8, 9, 8, 8, 9, 8, 9, 9, 8, 8, 9, 8, 9, 9, 8]}, (0, 10, 20), {},
        {"timestamp_delta": 20},
    ),
    "steps of 0 or 5": (  # distances to the line all differ
        {"timestamps_ms": [0, 5, 5, 5, 10, 15, 15, 20]}, (), {}, {"timestamp_delta": entropy([5, 0, 0, 5, 5, 0, 5])}
    ),
    "times on a line, with two slopes": (
        {"timestamps_ms": [0, 10, 20, 30, 0, 20, 40, 60]}, (0, 4, 8), {}, {"timestamp_delta": 2}
    ),
    "7 or 3 after the first timestamp, once 99": (
        {"timestamps_ms": [0, 7, 3, 7, 3, 3, 7, 99, 3, 7]}, (), {},
        {"timestamp_delta": entropy([7, 3, 7, 3, 3, 7, 99, 3, 7])},
    ),
    # each is the latest of its batch, which the header stores
    "times of records alone": ({"timestamps_ms": [0, 100, 2**62, 5]}, (0, 1, 2, 3, 4), {}, {}),
    "times further apart than int64": ({"timestamps_ms": ENDS * 2}, (), {}, {"timestamp_delta": 2}),
    "headers": ({**TWO_HEADERS, "header_value_lengths": [1, 7] * 4}, (), {}, {}),  # a model for each position
    "a second header of two lengths": (
        {**TWO_HEADERS, "header_value_lengths": [1, 7, 1, 6, 1, 7, 1, 6]}, (), {}, {"header_value_length": 4}
    ),
    "one header, then two": (
        {"timestamps_ms": [7, 7], "header_bounds": [0, 1, 3], "header_key_lengths": [5, 5, 8],
         "header_value_lengths": [-1] * 3},
        (), {}, {"header_count": 2},
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", BITS)
def test_columns_take_the_bits_that_were_counted_by_hand(case: str) -> None:
    columns, bounds, fields, wanted = BITS[case]
    records = next((len(values) for name, values in columns.items() if not name.startswith("header")), 4)
    assert bits(shapes(records, **columns), *bounds, **fields) == pytest.approx(wanted)


def test_what_is_the_same_in_every_record_takes_nothing() -> None:
    found = of(
        shapes(6, header_bounds=range(0, 14, 2), header_key_lengths=[5, 8] * 6, header_value_lengths=[-1, 4] * 6)
    )
    assert tuple(found.bits) == COLUMNS and not any(found.bits.values())
    assert found.header_bytes == found.overhead_bytes == PLAIN


@pytest.mark.parametrize("field", ["base_timestamp_ms", "delete_horizon_ms"])
def test_deltas_are_to_the_base_that_the_header_has(field: str) -> None:
    """Timestamps are small and repeating distances (3 or 5, once 40 and 70) from the base in the header.

    Other distances, such as those from the first record, have more entropy.
    """
    deltas = [5, 3, 3, 5, 3, 5, 5, 40, 3, 5, 3, 3, 5, 3, 5, 70]
    based = shapes(16, timestamps_ms=[1_000 + delta for delta in deltas[:8]] + [2_000 + delta for delta in deltas[8:]])
    found = bits(based, 0, 8, 16, **{field: np.array([1_000, 2_000])})
    assert found == {"timestamp_delta": pytest.approx(entropy(deltas))}
    assert bits(based, 0, 8, 16)["timestamp_delta"] > found["timestamp_delta"]


def test_the_header_is_as_lean_as_what_it_says() -> None:
    assert of(shapes(127)).header_bytes == PLAIN and of(shapes(128)).header_bytes == PLAIN + 1
    assert of(shapes(4), 0, 2, 4).header_bytes == 2 * PLAIN
    assert of(shapes(4, offsets=[10, 11, 15, 19])).header_bytes == PLAIN + 1  # the last offset delta is 9
    assert of(shapes(0), 0, 0).header_bytes == PLAIN + 1  # no records, but the header still has a last offset
    for fields, more in (
        ({"producer_id": 5}, PRODUCER_BYTES),
        ({"base_sequence": 0}, PRODUCER_BYTES),
        ({"append_time_ms": 8}, TIME_BYTES),
        ({"delete_horizon_ms": 8}, TIME_BYTES),
        ({"base_timestamp_ms": 7, "max_timestamp_ms": 7}, 0),
        ({"base_timestamp_ms": 5, "max_timestamp_ms": 8}, 2 * TIME_BYTES),
        ({"last_offset": 4}, 1),  # the last record was compacted away
        ({"tagged_fields": {7: b"abc"}}, 5),
        ({"is_transactional": True, "partition_leader_epoch": 3}, 0),
    ):
        assert of(shapes(4), **fields).header_bytes == PLAIN + more, fields


def test_whole_bytes_are_rounded_down_and_add_up() -> None:
    """An entropy of exactly 24 bits gives 3 bytes. Floating-point error must not make it 2."""
    headers = {"header_bounds": range(0, 25, 3), "header_key_lengths": [4, 5, 6] * 8}
    thirds = of(shapes(8, **headers, header_value_lengths=[1, 2, 3] * 4 + [7, 8, 9] * 4))
    assert thirds.field_bytes["header_value_length"] == 3
    three = of(shapes(4, key_lengths=[1, 1, 1, -1]))
    assert three.field_bytes["key_length"] == 0  # 3.2 bits are no whole byte
    row = three.columns
    assert row["size_bytes"] == sum(three.field_bytes.values()) == row["overhead_bytes"] + row["payload_bytes"]
    assert row["payload_bytes"] == 3 + 4 * 9 and row["records"] == 4 and row["batches"] == 1
    common = dict.fromkeys("kind cell_id status grid workload codec".split(), "x") | {"seed": 1, "format": FLOOR}
    assert table([common | row]).num_rows == 1


@pytest.mark.parametrize("name", ["user-activity", "service-events", "compacted-changelog"])
def test_the_order_of_batches_does_not_matter(name: str) -> None:
    sample = WORKLOADS[name].generate(records=4_096, seed=1)
    given, batches = sample.shapes, len(sample.bounds) - 1
    order = np.random.default_rng(1).permutation(batches)
    sizes = np.diff(sample.bounds)
    numbers = np.concatenate([np.arange(*sample.bounds[b : b + 2]) for b in order])
    headers = np.concatenate([np.arange(*given.header_bounds[i : i + 2]) for i in numbers])
    moved = Shapes(
        **{
            column: getattr(given, column)[headers if column.startswith("header") else numbers]
            for column in ("timestamps_ms", "offsets", "key_lengths", "value_lengths", "header_key_lengths",
                           "header_value_lengths")
        },
        header_bounds=np.concatenate([[0], np.cumsum(np.diff(given.header_bounds)[numbers])]),
    )  # fmt: skip
    found = floor(moved, np.concatenate([[0], np.cumsum(sizes[order])]), sample.batch_fields.take(order))
    assert found == floor(given, sample.bounds, sample.batch_fields)


@pytest.mark.parametrize("name", WORKLOADS)
def test_formats_lie_above_it(name: str) -> None:
    sample = WORKLOADS[name].generate(records=4_096, seed=2)
    found = floor(sample.shapes, sample.bounds, sample.batch_fields)
    for fmt in ("v2", "v3", "v3-headers-first"):
        size_bytes = int(FORMATS[fmt].size(sample.shapes, sample.bounds, sample.batch_fields).sum())
        assert found.overhead_bytes + found.payload_bytes <= size_bytes


@given(st.sampled_from(["v2", "v3"]), st.data())
def test_no_column_of_v2_and_v3_takes_less(name: str, data: st.DataObject) -> None:
    case = data.draw(cases_of(name))
    shapes, bounds = records_of(case.messages).shapes, np.array(bounds_of(case))
    fields = batch_fields_of(case) or NO_FIELDS
    taken, found = FORMATS[name].breakdown(shapes, bounds, fields), floor(shapes, bounds, fields)
    for column in COLUMNS:
        assert found.bits[column] <= 8 * taken[column] + 1e-6, column


def test_the_floor_per_record_grows_with_records_up_to_a_limit() -> None:
    """Few records use few of the 1,000 possible milliseconds.

    The model does not count bytes for the list of used values. So the floor per record is lower for few records.
    """
    point = GridPoint(batch_size=100, timestamp_spread_ms=100_000)

    def of_records(records: int) -> float:
        sample = point.generate(records=records, seed=1)
        return floor(sample.shapes, sample.bounds).bits["timestamp_delta"] / records

    few, some, many = map(of_records, (100, 1_000, 50_000))
    assert few < some < many < log2(2_000) and many > 0.9 * log2(1_000)


@given(st.sampled_from(["v2", "v3-full"]).flatmap(cases_of))
def test_the_same_batches_once_more_take_as_much_again(case: Case) -> None:
    records, bounds, fields = records_of(case.messages), np.array(bounds_of(case)), batch_fields_of(case) or NO_FIELDS
    found = floor(records.shapes, bounds, fields)
    assert found.header_bytes >= PLAIN * len(case.batches) and found.overhead_bytes >= found.header_bytes
    assert found.payload_bytes == records.shapes.payload_bytes and min(found.bits.values()) >= 0
    twice = floor(
        records.take(np.tile(np.arange(len(records)), 2)).shapes,
        np.concatenate([bounds, bounds[1:] + len(records)]),
        fields.take(np.tile(np.arange(len(case.batches)), 2)),
    )
    assert twice.header_bytes == 2 * found.header_bytes
    assert twice.bits == pytest.approx({name: 2 * each for name, each in found.bits.items()}, abs=1e-6)


@given(st.lists(st.integers(-1, 5), min_size=1, max_size=60), st.data())
def test_columns_take_the_entropy_of_their_symbols(lengths: list[int], data: st.DataObject) -> None:
    n = len(lengths)
    cuts = sorted(data.draw(st.sets(st.integers(1, n), max_size=4)))
    bounds = sorted({0, *cuts, n})
    wide = [length * 1_000_003 if length > 0 else length for length in lengths]  # large values are sorted
    found = of(shapes(n, value_lengths=lengths, key_lengths=wide), *bounds).bits
    assert found["value_length"] == pytest.approx(entropy(lengths), abs=1e-9)
    assert found["key_length"] == found["value_length"]
    assert found["offset_delta"] == found["timestamp_delta"] == 0
