"""Read the metadata of columnar batches without their payload. Fetch single records of columnar, v2 and v3."""

import itertools
import struct
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kfbench import FORMATS, Records
from kfbench.errors import CorruptLog, IllegalCombination, InvalidRecords
from kfbench.kernels.wire.frames import MIN_LENGTH, START
from kfbench.limits import Limits
from tests import strategies
from tests.common import records_of
from tests.formats.columnar_batches import CODECS, COLUMNAR, HEADED, batch_of, positions_of
from tests.formats.fuzz import check_agrees_with_reference, mutations, sealed
from tests.reference import columnar_columns
from tests.reference.varint import zigzag
from tests.strategies import Case


@pytest.mark.parametrize("codec", ["none", *CODECS])
def test_metadata_is_read_without_the_payload(codec: str) -> None:
    """The metadata can be read although the compressed payload is damaged."""
    records = Records.from_lists(
        [b"v" * 40] * 50, keys=[b"k"] * 50, timestamps_ms=range(50), headers=[[("h", b"%d" % i)] for i in range(50)]
    )
    log = COLUMNAR.encode(records, 10, codec)
    seen = COLUMNAR.decode_metadata(log)
    assert seen.value_lengths.tolist() == [40] * 50
    assert seen.header_counts.tolist() == [1] * 50
    assert seen.timestamps_ms.tolist() == list(range(50))
    assert seen.plain_bytes < 5 * 60
    if codec != "none":
        damaged = sealed(bytes(log.data[: log.positions[1] - 5]))
        assert COLUMNAR.decode_metadata(damaged).offsets.tolist() == list(range(10))
        with pytest.raises(CorruptLog):
            COLUMNAR.decode(damaged)


@pytest.mark.parametrize("name", ["v2", "v3", "columnar"])
@given(case=strategies.cases_of("columnar"), data=st.data())
def test_fetch_one_record_of_each_batch(name: str, case: Case, data: st.DataObject) -> None:
    batches = [[replace(message, headers=()) for message in batch] for batch in case.batches if batch]
    records = records_of([message for batch in batches for message in batch])
    bounds = np.cumsum([0, *map(len, batches)])
    log = FORMATS[name].encode(records, bounds)
    indices = [data.draw(st.integers(0, len(batch) - 1)) for batch in batches]
    assert FORMATS[name].fetch(log, log.positions, indices) == records.take(bounds[:-1] + np.array(indices, np.int64))


@given(data=st.data())
def test_fetch_one_record_of_a_damaged_batch(data: st.DataObject) -> None:
    """Fetch and decode give equal records if the log is valid. In a damaged log, fetch may still return a record."""
    case = data.draw(strategies.cases_of("columnar", max_batches=1))
    log = COLUMNAR.encode(records_of(case.messages), [0, len(case.messages)])
    damaged = data.draw(mutations(bytes(log)))
    whole = COLUMNAR.decode(damaged, on_error="skip")
    if whole.trailing_bytes or (whole.errors and whole.errors[0].field == "length"):
        return
    n = len(whole.records) if len(whole) else 5
    for index in data.draw(st.lists(st.integers(0, max(0, n - 1)), max_size=4)):
        found, refusal = None, None
        try:
            found = COLUMNAR.fetch(damaged, np.array([0, len(damaged)]), [index])
        except (CorruptLog, InvalidRecords) as error:
            refusal = error
        if found is not None:
            assert len(found.key(0) or b"") == max(0, found.shapes.key_lengths[0])
            assert whole.errors or found == whole.records.part(index, index + 1)
        elif not whole.errors:
            attributes = int.from_bytes(damaged[21:23], "big")
            assert not n or attributes & 0x4007, refusal  # the batch has headers or a codec


LENGTHS: dict[str, tuple[str, bool, list[int]]] = {  # name -> column in hexadecimal, may it have nulls, its lengths
    "slope": ("80 02 02", False, [1, 2, 3, 4]),
    "delta": ("c0 01 02 00 05", False, [1, 2, 2, 3]),
    "patched delta": ("c2 01 02 00 05 01 01 01", False, [1, 2, 4, 5]),
    "patched": ("c1 01 02 05 01 02 03", False, [2, 1, 8, 1]),
    "bits of width 64": ("3f" + "".join(f"{n:02x}" + 7 * "00" for n in (1, 0, 2, 3)), False, [1, 0, 2, 3]),
    "negative base": ("42 01 b9", False, [0, 1, 2, 1]),
    "delta with nulls": ("02 c0 01 00 00 05", True, [-1, 2, 2, 3]),
    "patched with nulls": ("02 c1 01 00 05 01 01 02", True, [2, 5, 2, -1]),
    "base with nulls": ("02 41 02 05", True, [3, 2, 3, 2]),
    "rice": ("c3 01 00 09 0b 01", False, [1, 0, 2, 9]),
    "rice of width 0": ("c3 00 00 b1", False, [0, 3, 0, 1]),
    "rice with a negative base": ("c3 00 01 52 08", False, [0, 1, 0, 3]),
    "rice with nulls": ("02 c3 00 00 b1", True, [-1, 4, -1, 2]),
    "rice delta": ("c4 00 02 00 26", False, [1, 2, 2, 4]),
    "dictionary": ("c5 03 02 02 20 06", False, [1, 5, 5, 1]),
    "dictionary with nulls": ("02 c5 03 00 03 48 01 61", True, [2, -1, 6, 2]),
    "dictionary of width 0": ("c5 00 04 02 05", False, [2, 2, 2, 2]),
    "dictionary of width 64": ("c5 3f 00 02 03" + 7 * "00" + "01" + 7 * "00" + "06", False, [3, 1, 1, 3]),
}


@pytest.mark.sampled
@pytest.mark.parametrize("name", LENGTHS)
@pytest.mark.parametrize("keys", [True, False])
def test_decode_and_fetch_agree_on_lengths_in_every_kind_of_column(name: str, keys: bool) -> None:
    column, nulls, lengths = LENGTHS[name]
    bits = 0x1400 | (0x800 if keys else 0x2000) * nulls
    columns = f"{column} 02 e4" if keys else f"02 e4 {column}"  # the other column has the lengths 0, 1, 2, 3
    payload = "".join(f"{i:02x}" for i in range(6 + sum(max(length, 0) for length in lengths)))
    data = batch_of(bits, columns + payload, "04")
    check_agrees_with_reference(data)
    back = COLUMNAR.decode(data).records
    assert (back.shapes.key_lengths if keys else back.shapes.value_lengths).tolist() == lengths
    for i in range(4):
        assert COLUMNAR.fetch(data, np.array([0, len(data)]), [i]) == back.part(i, i + 1)


FAR = 2**63 - 1
WRAPPING: dict[str, list[int]] = {  # invalid lengths, each followed by two valid ones
    "the sum is a valid length": [FAR, FAR - 60, 0, 0],
    "the sum is far below 0": [FAR, FAR - 10**11, 0, 0],
    "negative": [-1, -60, 5, 0],
}


@pytest.mark.parametrize("lengths", WRAPPING.values(), ids=WRAPPING)
@pytest.mark.parametrize("kind", ["dictionary", "patched delta", "patched"])
def test_invalid_lengths_before_a_record_are_refused(kind: str, lengths: list[int]) -> None:
    """Each length is checked alone, because the 64-bit sum of invalid lengths may wrap to a valid position."""
    if kind == "dictionary":
        distinct = sorted({length % 2**64 for length in lengths})
        column = columnar_columns.dictionary(0, distinct, [distinct.index(length % 2**64) for length in lengths])
    elif kind == "patched":
        column = columnar_columns.patched(1, b"", -7, [(length + 7) % 2**64 for length in lengths], 0)
    else:
        steps = [(after - before) % 2**64 for before, after in itertools.pairwise(lengths)]
        column = columnar_columns.patched(2, zigzag(lengths[0]), 0, steps, 0)
    values = columnar_columns.column([3, 3, 3, 3], "lengths")
    for bits, columns in ((0x400 | 0x1000, column + values), (0x400 | 0x1000, values + column)):
        data = batch_of(bits, (columns + b"x" * 12).hex(), "04")
        check_agrees_with_reference(data)
        for index in range(4):
            with pytest.raises(CorruptLog, match="column length"):
                COLUMNAR.fetch(data, np.array([0, len(data)]), [index])


def test_a_patch_may_lower_a_length() -> None:
    """A patch adds to a length modulo 2**64, so it may lower it: 5 + 2**64 - 2 is 3."""
    column = columnar_columns.patched(1, b"", 5, [0, 2**64 - 2, 0, 0], 0)
    data = batch_of(0x400, (column + b"abcdefghijklmnopqr").hex(), "04")
    check_agrees_with_reference(data)
    back = COLUMNAR.decode(data).records
    assert back.shapes.key_lengths.tolist() == [5, 3, 5, 5]
    for i in range(4):
        assert COLUMNAR.fetch(data, np.array([0, len(data)]), [i]) == back.part(i, i + 1)


def test_patch_indexes_that_do_not_rise_are_refused() -> None:
    """Patches are stored in the order of their indexes.

    Here the first belongs to the last value, so a reader could overlook the second.
    """
    data = batch_of(0x400 | 0x800, "00 c1 01 01 03 02 01 02 41 62 63", "02")
    check_agrees_with_reference(data)
    for index in (0, 1):
        with pytest.raises(CorruptLog, match="patches"):
            COLUMNAR.fetch(data, np.array([0, len(data)]), [index])


@pytest.mark.parametrize("body", ["c4 00 00 00 00", "c3 00 00 00"])
def test_quotients_that_end_in_the_next_batch_are_refused(body: str) -> None:
    data = batch_of(0x100, body)
    ones = bytes(COLUMNAR.encode(Records.from_lists([b"v"], offsets=[2**63 - 1])))
    log = data + ones
    assert [error.field for error in COLUMNAR.decode(log, on_error="skip").errors] == ["column"]
    for read in (
        lambda: COLUMNAR.fetch(log, np.array([0, len(data)]), [1]),
        lambda: COLUMNAR.read_times(log, np.array([0, len(data)])),
    ):
        with pytest.raises(CorruptLog, match="column"):
            read()


@pytest.mark.parametrize("tag", [0, 1, 2])
def test_an_extension_may_hold_the_least_int64_timestamp(tag: int) -> None:
    bits = 0x8000 | (0x40 if tag == 1 else 0)
    data = batch_of(bits, f"01 {tag:02x} 08 8000000000000000")
    check_agrees_with_reference(data)
    back = COLUMNAR.decode(data)
    rows = back.batches
    assert rows["delete_horizon_ms"].tolist() == [-(2**63) if tag == 1 else -1]
    assert rows["base_timestamp_ms"].tolist() == [-(2**63)]
    assert back.records.timestamps_ms.tolist() == [-(2**63) if tag == 2 else 0] * 2


@pytest.mark.parametrize("name", ["v2", "columnar"])
def test_errors_of_fetch(name: str) -> None:
    fmt, records = FORMATS[name], Records.from_lists([b"v"] * 4)
    log, compressed = fmt.encode(records, 2), fmt.encode(records, 2, "gzip")
    for index in (-1, 2, 2**63 - 1, -(2**63)):
        with pytest.raises(InvalidRecords, match=rf"indices: item 1 is {index}, .* byte {log.positions[1]} "):
            fmt.fetch(log, log.positions, [0, index])
    with pytest.raises(CorruptLog, match="whole batch"):
        fmt.fetch(compressed, compressed.positions, [0, 0])
    other = FORMATS["v3"].encode(records, 2)
    with pytest.raises(CorruptLog, match="magic"):
        fmt.fetch(other, other.positions, [0, 0])
    with pytest.raises(InvalidRecords, match="indices"):
        fmt.fetch(log, log.positions, [0])
    with pytest.raises(IllegalCombination, match="v1"):
        FORMATS["v1"].fetch(log, log.positions, [0, 0])


def test_fetch_refuses_more_records_than_a_log_may_hold() -> None:
    """Lengths that rise by 0 take no bytes.

    Fetch must refuse a huge record count, because it adds up the lengths one by one.
    """
    data = batch_of(0x1000, "80 00 00", "e807") * 3
    positions, limits = positions_of(data), Limits(batch_records=1000, log_expansion=1)
    assert len(COLUMNAR.fetch(data, positions, [999] * 3)) == 3
    assert len(COLUMNAR.fetch(data, positions[:2], [999], limits)) == 1
    with pytest.raises(CorruptLog, match=r"limits\.log_expansion") as refused:
        COLUMNAR.fetch(data, positions, [999] * 3, limits)
    assert refused.value.position == positions[1]


@pytest.mark.parametrize("name", ["v2", "v3", "columnar"])
def test_fetch_from_a_batch_that_is_truncated_or_damaged_anywhere(name: str) -> None:
    """Fetch raises a typed error, or returns a record inside the batch. It checks no checksum."""
    messages = [replace(each, headers=()) for each in HEADED]
    data = bytes(FORMATS[name].encode(records_of(messages), [0, len(messages)]).data)
    for size in range(20, START + MIN_LENGTH):
        with pytest.raises(InvalidRecords, match="positions"):
            FORMATS[name].fetch(data[:size], np.array([0, size]), [3])
    cut = [data[:size] for size in range(START + MIN_LENGTH, len(data))]
    damaged = [
        data[:i] + bytes([data[i] ^ bit]) + data[i + 1 :] for i in range(12, len(data)) for bit in (1, 0x80, 0xFF)
    ]
    refused = 0
    for each in cut + damaged:
        whole = each[:8] + struct.pack(">i", len(each) - 12) + each[12:]
        try:
            found = FORMATS[name].fetch(whole, np.array([0, len(whole)]), [3])
        except CorruptLog:
            refused += 1
        else:
            shapes = found.shapes
            assert max(0, shapes.key_lengths[0]) + max(0, shapes.value_lengths[0]) <= len(whole)
    assert refused > 30
