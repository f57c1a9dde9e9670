"""Read the metadata of columnar batches without their payload. Fetch single records of columnar, v2 and v3."""

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
from tests.formats.fuzz import check_agrees_with_reference, mutations, sealed
from tests.research.columnar.batches import CODECS, COLUMNAR, HEADED, batch_of, positions_of
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
            assert not n or attributes & 0x1007, refusal  # the batch has headers or a codec


LENGTHS: dict[str, tuple[str, list[int]]] = {  # name -> column in hexadecimal, its lengths
    "bits": ("02 39", [0, 1, 2, -1]),
    "base": ("41 04 05", [2, 1, 2, 1]),
    "equal": ("40 06", [2, 2, 2, 2]),
    "all empty": ("40 02", [0, 0, 0, 0]),
    "all null": ("00", [-1, -1, -1, -1]),
    "patched": ("81 02 05 01 02 03", [1, 0, 7, 0]),
    "patched with nulls": ("81 00 05 01 01 02", [0, 3, 0, -1]),
    "patched without a patch": ("82 02 e4 00", [0, 1, 2, 3]),
    "patched of no bits": ("80 00 02 0d 01 02", [-1, 0, -1, 1]),
}


@pytest.mark.sampled
@pytest.mark.parametrize("name", LENGTHS)
@pytest.mark.parametrize("keys", [True, False])
def test_decode_and_fetch_agree_on_lengths_in_every_kind_of_column(name: str, keys: bool) -> None:
    column, lengths = LENGTHS[name]
    other = "42 02 e4"  # lengths 0, 1, 2, 3
    columns = f"{column} {other}" if keys else f"{other} {column}"
    payload = "".join(f"{i:02x}" for i in range(6 + sum(max(length, 0) for length in lengths)))
    data = batch_of(0xC00, columns + payload, "04")
    check_agrees_with_reference(data)
    back = COLUMNAR.decode(data).records
    assert (back.shapes.key_lengths if keys else back.shapes.value_lengths).tolist() == lengths
    for i in range(4):
        assert COLUMNAR.fetch(data, np.array([0, len(data)]), [i]) == back.part(i, i + 1)


def test_patches_that_end_in_the_next_batch_are_refused() -> None:
    data = batch_of(0x100, "80 00 00 01 00")
    log = data + bytes(COLUMNAR.encode(Records.from_lists([b"v"], offsets=[2**63 - 1])))
    assert [error.field for error in COLUMNAR.decode(log, on_error="skip").errors] == ["patches"]
    for read in (
        lambda: COLUMNAR.fetch(log, np.array([0, len(data)]), [1]),
        lambda: COLUMNAR.read_times(log, np.array([0, len(data)])),
    ):
        with pytest.raises(CorruptLog, match="patches"):
            read()


@pytest.mark.parametrize("index", [0, 1])
def test_patch_indexes_that_do_not_rise_are_refused(index: int) -> None:
    """Patches are stored in the order of their indexes."""
    data = batch_of(0x400, "81 02 01 02 01 02 41 62 63", "02")
    check_agrees_with_reference(data)
    with pytest.raises(CorruptLog, match="patches"):
        COLUMNAR.fetch(data, np.array([0, len(data)]), [index])


@pytest.mark.parametrize("bit", [0x40, 0x2000, 0x4000])
def test_an_optional_timestamp_may_be_the_least_int64(bit: int) -> None:
    data = batch_of(bit, "8000000000000000")
    check_agrees_with_reference(data)
    back = COLUMNAR.decode(data)
    rows = back.batches
    assert rows["delete_horizon_ms"].tolist() == [-(2**63) if bit == 0x40 else -1]
    assert rows["base_timestamp_ms"].tolist() == [-(2**63)]
    assert back.records.timestamps_ms.tolist() == [-(2**63) if bit == 0x4000 else 0] * 2


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
    """Equal lengths take no bytes."""
    data = batch_of(0x800, "40 02", "e807") * 3
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
