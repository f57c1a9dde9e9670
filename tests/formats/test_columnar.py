"""columnar, magic 4, against the reference, by hand, and where a log of it is hostile."""

import itertools
import random
import struct
import tracemalloc
from collections.abc import Callable
from typing import Any

import crc32c
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kfbench import FORMATS, BatchFields, Records, codecs
from kfbench.arrays import Int64, as_bytes
from kfbench.batches import DecodedLog
from kfbench.codecs import Allowance
from kfbench.errors import CorruptLog, IllegalCombination, InvalidRecords
from kfbench.formats import Entries
from kfbench.formats.base.columnar_reading import ColumnarReading
from kfbench.kernels.formats.columnar.batch_header import HEADERS
from kfbench.kernels.wire.frames import MIN_LENGTH, START
from kfbench.limits import Limits
from kfbench.log import read_log, write_log
from tests import strategies
from tests.common import (
    batch_fields_of,
    bounds_of,
    check_against_reference,
    check_codec_against_reference,
    check_round_trip,
    check_sizes,
    messages_of,
    one_batch,
    records_of,
)
from tests.formats.fuzz import check_agrees_with_reference, check_metadata_without_checksums, mutations, sealed
from tests.reference import columnar, columnar_cases
from tests.reference.model import Fields, Message
from tests.reference.varint import unsigned, zigzag
from tests.strategies import INT64, NOW_MS, Case

COLUMNAR = FORMATS["columnar"]
CODECS = ["gzip", "snappy", "lz4", "zstd"]
CRC_AT, ATTRIBUTES_AT, MAX_TIME_AT, COUNT_AT = 17, 21, 23, 29
MOST_I48 = 2**47 - 1


@given(strategies.cases_of("columnar") | columnar_cases.cases())
def test_the_bytes_are_the_references(case: Case) -> None:
    check_against_reference("columnar", case)


@pytest.mark.compiled_only
@pytest.mark.parametrize("codec", CODECS)
@given(case=strategies.cases_of("columnar", max_batches=2) | columnar_cases.cases(2))
def test_the_decompressed_bytes_are_the_references(codec: str, case: Case) -> None:
    check_codec_against_reference("columnar", case, codec)


@given(case=columnar_cases.cases())
def test_sizes_and_round_trips_of_every_kind_of_column(case: Case) -> None:
    check_sizes("columnar", case)
    records = records_of(case.messages)
    for codec in ("none", "zstd"):
        log = COLUMNAR.encode(records, bounds_of(case), codec, batch_fields=batch_fields_of(case))
        assert COLUMNAR.decode(log).source_records == records


@given(case=strategies.cases_of("columnar") | columnar_cases.cases())
def test_what_it_writes_is_canonical(case: Case) -> None:
    log = COLUMNAR.encode(records_of(case.messages), np.cumsum([0, *map(len, case.batches)]))
    back = read_log(log.data)
    assert back.batch_rows["canonical"].all()
    assert bytes(write_log(back)) == bytes(log)


def test_a_batch_by_hand() -> None:
    """Every byte of a small batch, written out, but for the checksum."""
    records = Records.from_lists(
        [b"v", None, b""], keys=[None, b"k", b""], timestamps_ms=[1000, 1001, 999], offsets=[0, 1, 130]
    )
    fields = BatchFields(last_offset=200, producer_id=7, producer_epoch=1, base_sequence=0)
    data = COLUMNAR.encode(records, batch_fields=fields).data.tobytes()
    ages, offsets, keys, values = "02 21", "08 000182", "00 02 18", "00 02 12"
    body = f"3f80 0000000003e9 0000000000000007 0001 00000000 03 c801 {ages} {offsets} {keys} {values} 6b 76"
    assert data[21:] == bytes.fromhex(body)
    assert data[:17] == bytes(8) + struct.pack(">ii", len(data) - 12, -1) + b"\x04"
    assert sealed(data) == data


def test_a_record_of_nothing_takes_no_byte() -> None:
    """What it costs is the header, whatever the number of records."""
    assert COLUMNAR.size(Records.from_lists([None] * 100), 100).tolist() == [30]
    assert COLUMNAR.size(Records.from_lists([None] * 1000), 1000).tolist() == [31]
    assert COLUMNAR.size(Records.from_lists([b"value"]), 1).tolist() == [30 + 1 + 5]


# Kinds of columns: the descriptor of the first column of a batch that has nothing else before it


def walk(steps: list[int]) -> list[int]:
    return list(itertools.accumulate(steps, initial=0))


def kind_of(descriptor: int) -> tuple[int, int | None]:
    """Return a column's kind, and the low bits if its kind is 3."""
    kind = int(descriptor) >> 6
    return kind, None if kind < 3 else int(descriptor) & 63


NOISE = random.Random(3)
KINDS: dict[str, tuple[list[int], tuple[int, int | None]]] = {
    "bits": ([0, 3, 1, 2, 3, 0, 1], (0, None)),
    "a line": ([1000 * i + (NOISE.randrange(8) if 0 < i < 59 else 0) for i in range(60)], (2, None)),
    "a walk": (walk([NOISE.randrange(4) for _ in range(100)]), (3, 0)),
    "an outlier": ([NOISE.randrange(4) if i != 17 else 1 << 30 for i in range(60)], (3, 1)),
    "a leap": (walk([NOISE.randrange(2) + (1 << 30 if i == 40 else 0) for i in range(100)]), (3, 2)),
    "a tail": ([0, *(int(NOISE.expovariate(0.9)) for _ in range(99))], (3, 3)),
    "gaps": (walk([int(NOISE.expovariate(0.9)) for _ in range(100)]), (3, 4)),
}
LEVEL = ("bits", "an outlier", "a tail")  # the others rise: ages that do so count back from the last


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("column", ["ages", "offsets"])
def test_kinds_of_ages_and_offsets(name: str, column: str) -> None:
    values, expected = KINDS[name]
    n = len(values)
    given: dict[str, Any] = {"timestamps_ms": np.full(n, NOW_MS), "offsets": np.arange(n)}
    at = COUNT_AT + 1
    if column == "ages":
        given["timestamps_ms"] = NOW_MS + np.array(values) * (-1 if name in LEVEL else 1)
    else:
        given["offsets"] = np.array(values)
        at += len(unsigned(int(given["offsets"][-1])))
    records = Records.from_lists([None] * n, **given)
    log = COLUMNAR.encode(records, n, batch_fields=BatchFields(base_offset=0))
    assert kind_of(log.data[at]) == expected
    assert COLUMNAR.decode(log).records == records
    assert COLUMNAR.size(records, n, batch_fields=BatchFields(base_offset=0)).tolist() == [len(log.data)]
    for i in (0, 1, n // 2, n - 1):
        assert COLUMNAR.fetch(log, log.positions, [i]) == records.part(i, i + 1)


@pytest.mark.parametrize(
    ("lengths", "expected"),
    [
        ([100, 101, 102, 100], (1, None)),
        ([0, 3, 1, 2], (0, None)),
        ([NOISE.randrange(4) if i != 17 else 100_000 for i in range(60)], (3, 1)),
        ([int(NOISE.expovariate(0.9)) for _ in range(100)], (3, 3)),
        ([NOISE.choice([3, 50, 700]) for _ in range(60)], (3, 5)),
    ],
)
def test_kinds_of_lengths(lengths: list[int], expected: tuple[int, int | None]) -> None:
    for name in ("keys", "values"):
        items = [bytes(length) for length in lengths]
        nulls = [None] * len(items)
        records = Records.from_lists(items if name == "values" else nulls, keys=items if name == "keys" else nulls)
        log = COLUMNAR.encode(records, len(items))
        assert kind_of(log.data[COUNT_AT + 1]) == expected
        assert COLUMNAR.decode(log).records == records


@pytest.mark.parametrize("bits", [55, 56, 57, 62])
def test_widths_of_most_bits_and_of_a_word(bits: int) -> None:
    """57 and more are written as 64, whose code is 63."""
    noise = random.Random(bits)
    ages = [0, (1 << bits) - 1, *(noise.randrange(1 << bits) for _ in range(30))]
    records = Records.from_lists([None] * 32, timestamps_ms=[INT64 - age for age in ages])
    log = COLUMNAR.encode(records, 32, batch_fields=BatchFields(max_timestamp_ms=0))
    assert log.data[COUNT_AT + 1 + 1 + 10] == (bits if bits <= 56 else 63)
    assert COLUMNAR.decode(log).create_timestamps_ms.tolist() == records.timestamps_ms.tolist()


@pytest.mark.sampled(12)
@pytest.mark.parametrize("bits", [*range(1, 57), 64])
def test_values_that_fill_no_group(bits: int) -> None:
    """Eight, four or two are packed at a time, and where `out` ends with the batch one at a time."""
    noise = random.Random(bits)
    for count in (2, 7, 8, 9, 30):
        ages = [(1 << bits) - 1, *(noise.randrange(1 << bits) for _ in range(count - 2)), 0]
        times = [age - (1 << 63) if bits == 64 else INT64 - age for age in ages]
        case = one_batch(*(Message(offset=i, timestamp_ms=time) for i, time in enumerate(times)))
        check_against_reference("columnar", case)
        records = records_of(case.messages)
        log = COLUMNAR.encode(records, count)
        assert bytes(COLUMNAR.encode(records, count, out=np.empty(len(log.data), np.uint8))) == bytes(log)


def test_keys_and_values_that_are_summed_as_they_are_copied() -> None:
    """In steps of 384 bytes, whatever lies before them: the checksum is another implementation's."""
    sizes = (0, 1, 255, 256, 300, 383, 384, 385, 512, 1000, 1536)
    for key, value in itertools.product(sizes, sizes):
        items = [(NOISE.randbytes(key), NOISE.randbytes(value)) for _ in range(3)]
        records = Records.from_lists([value for _, value in items], keys=[key for key, _ in items])
        data = bytes(COLUMNAR.encode(records, 3))
        assert data.endswith(b"".join(key for key, _ in items) + b"".join(value for _, value in items))
        assert struct.unpack_from(">I", data, CRC_AT) == (crc32c.crc32c(data[ATTRIBUTES_AT:]),)


def test_one_outlier_in_each_column() -> None:
    """Patches keep it from being paid by every record."""

    def records(outlier: bool) -> Records:
        return records_of(
            [
                Message(
                    offset=i + (2**30 if outlier and i == 99 else 0),
                    timestamp_ms=NOW_MS + i % 7 - (10**11 if outlier and i == 50 else 0),
                    key=b"k" * (3 + i % 2 + (2000 if outlier and i == 20 else 0)),
                    value=b"v" * (5 + i % 3 + (60_000 if outlier and i == 70 else 0)),
                )
                for i in range(100)
            ]
        )  # fmt: skip

    def metadata(name: str, outlier: bool) -> int:
        given = records(outlier)
        return int(FORMATS[name].size(given.shapes).sum()) - given.shapes.payload_bytes

    assert metadata("columnar", True) - metadata("columnar", False) < 48
    assert metadata("columnar", True) < metadata("v2", True) / 4


# Forms of headers


def with_headers(values: list[bytes | None]) -> Records:
    return Records.from_lists([b""] * len(values), headers=[[("h", value)] for value in values])


FORMS: dict[str, tuple[list[bytes | None], int]] = {
    "constant": ([b"abc"] * 9, 0),
    "null": ([None] * 9, 0),
    "plain": ([bytes([i, 200 + i]) * (i % 3) for i in range(9)], 1),
    "plain with nulls": ([None if i == 4 else bytes([i, 77 * i % 256]) * 3 for i in range(40)], 2),
    "dictionary": ([[b"application/json", None, b""][i % 3] for i in range(9)], 3),
    "template": ([b"00-%032x-01" % NOISE.getrandbits(128) for _ in range(9)], 4),
    "odd nibbles": ([b"x%03xy" % NOISE.getrandbits(12) for _ in range(9)], 4),
}


@pytest.mark.parametrize("name", FORMS)
def test_forms_of_a_position(name: str) -> None:
    values, form = FORMS[name]
    records = with_headers(values)
    log = COLUMNAR.encode(records, len(values))
    assert log.data[COUNT_AT + 2 : COUNT_AT + 6].tolist() == [1, 1, 1, form]
    for data in (bytes(log), bytes(COLUMNAR.encode(records, len(values), "zstd"))):
        back = COLUMNAR.decode(data)
        assert back.records == records
        assert back.batch_rows["canonical"].all()
    two = Records.from_lists([b"", b"x"] * 9, headers=[[("h", value)] for value in [*values, *values][:18]])
    assert COLUMNAR.decode(COLUMNAR.encode(two, 9)).records == two


@pytest.mark.sampled(6)
@pytest.mark.parametrize("seed", range(25))
def test_templates_of_any_length_and_place(seed: int) -> None:
    """Their values are spelled a word of eight characters at a time, of all records at once."""
    random_ = random.Random(seed)
    count, positions = random_.randint(2, 19), []
    for _ in range(random_.randint(1, 4)):
        share, text = random_.choice((0.05, 0.3, 0.8, 1)), random_.choices(range(32, 127), k=random_.randint(1, 70))
        fixed = random_.choice((0, 0, 9, 40))  # whole words of which nothing varies
        varies = [k >= fixed and random_.random() < share for k in range(len(text))]
        positions.append(
            [bytes(random_.choice(b"0123456789abcdef") if v else c for c, v in zip(text, varies, strict=True))
             for _ in range(count)]
        )  # fmt: skip
    headers = [[(f"h{k}", values[i]) for k, values in enumerate(positions)] for i in range(count)]
    records, bounds = Records.from_lists([b"v"] * count, headers=headers), sorted({0, random_.randint(0, count), count})
    for codec in ("none", "zstd"):
        assert COLUMNAR.decode(COLUMNAR.encode(records, bounds, codec)).records == records


def test_order_and_duplicates_of_headers() -> None:
    """By position where all records have the same keys in the same order; else row by row."""
    by_position = Records.from_lists(
        [b""] * 3, headers=[[("a", b"1"), ("b", None), ("a", b"%d" % i)] for i in range(3)]
    )
    by_row = Records.from_lists([b""] * 3, headers=[[("a", b"1"), ("b", b"2")][:: -1 if i else 1] for i in range(3)])
    for records, mode in ((by_position, 1), (by_row, 0)):
        log = COLUMNAR.encode(records, 3)
        assert log.data[COUNT_AT + 2] == mode
        assert COLUMNAR.decode(log).records == records


@pytest.mark.parametrize("number", [2, 32, 33])
def test_as_many_values_as_a_dictionary_tries(number: int) -> None:
    words = [random.Random(i).randbytes(8) for i in range(number)]
    records = with_headers([words[i % number] for i in range(3 * number)])
    log = COLUMNAR.encode(records, 3 * number)
    assert log.data[COUNT_AT + 5] == (3 if number <= 32 else 1)
    assert COLUMNAR.decode(log).records == records


# Times of the header, and what a broker does to it


def in_place(data: bytes, append_time_ms: int) -> bytes:
    """As a broker sets the append time: the field, bit 3 and the checksum."""
    bits = struct.unpack_from(">H", data, ATTRIBUTES_AT)[0] | 8
    return sealed(
        data[:ATTRIBUTES_AT] + struct.pack(">H", bits) + append_time_ms.to_bytes(6, "big", signed=True) + data[29:]
    )


def test_append_time_in_place() -> None:
    """Readers see it for every record; create times were relative to the field, and nobody knows them any more."""
    records = Records.from_lists([b"v"] * 3, timestamps_ms=[NOW_MS, NOW_MS - 5, NOW_MS - 2])
    back = COLUMNAR.decode(in_place(bytes(COLUMNAR.encode(records)), NOW_MS + 100))
    assert back.records.timestamps_ms.tolist() == [NOW_MS + 100] * 3
    assert back.create_timestamps_ms.tolist() == [-1] * 3
    assert back.batches["append_time_ms"].tolist() == [NOW_MS + 100]
    assert back.batches["base_timestamp_ms"].tolist() == [-1]
    assert back.batches["canonical"].tolist() == [False]  # ages of nothing
    again = write_log(back)
    assert len(again.data) < len(COLUMNAR.encode(records).data)
    assert COLUMNAR.decode(again).create_timestamps_ms.tolist() == [-1] * 3


def test_ages_of_an_unknown_anchor_are_still_checked() -> None:
    """Their values are not used, but a column that is broken is."""
    data = bytearray(in_place(bytes(COLUMNAR.encode(Records.from_lists([b"v"] * 3, timestamps_ms=[5, 6, 7]))), 9))
    assert data[COUNT_AT + 1] == 2  # ages of two bits: 2, 1, 0
    data[COUNT_AT + 2] |= 0x80
    with pytest.raises(CorruptLog, match="behind its last value"):
        COLUMNAR.decode(sealed(bytes(data)))
    check_agrees_with_reference(sealed(bytes(data)))


@pytest.mark.parametrize(
    ("times", "append_time_ms", "has_anchor"),
    [([5, 7], 9, True), ([5, 7], 7, True), ([-1, 7], 7, True), ([-1, -1], 7, False), ([-2, -1], 7, True),
     ([-(2**63), 2**63 - 1], 7, True), ([2**63 - 1] * 2, 7, True), ([-1], 7, False), ([7], 7, True)],
)  # fmt: skip
def test_an_append_time_has_an_anchor_where_any_create_time_is_known(
    times: list[int], append_time_ms: int, has_anchor: bool
) -> None:
    """So that nothing that is encoded loses any."""
    case = one_batch(
        *(Message(offset=i, timestamp_ms=time, value=b"v") for i, time in enumerate(times)),
        append_time_ms=append_time_ms,
    )
    check_against_reference("columnar", case)
    check_sizes("columnar", case)
    check_round_trip("columnar", case)
    log = COLUMNAR.encode(records_of(case.messages), batch_fields=BatchFields(append_time_ms=append_time_ms))
    assert (log.data[ATTRIBUTES_AT] >> 7 & 1) == has_anchor
    assert COLUMNAR.decode(log).batches["canonical"].tolist() == [True]


def test_create_times_beside_an_append_time() -> None:
    records = Records.from_lists([b"v"] * 3, timestamps_ms=[NOW_MS, NOW_MS - 5, NOW_MS - 2])
    log = COLUMNAR.encode(records, batch_fields=BatchFields(append_time_ms=NOW_MS + 7))
    again = in_place(bytes(log), NOW_MS + 100)
    for data, seen in ((bytes(log), NOW_MS + 7), (again, NOW_MS + 100)):
        back = COLUMNAR.decode(data)
        assert back.source_records == records
        assert back.records.timestamps_ms.tolist() == [seen] * 3
        assert bytes(write_log(back)) == data


@pytest.mark.parametrize("latest", [MOST_I48, MOST_I48 + 1, -(2**47), -(2**47) - 1, INT64])
def test_times_beyond_48_bits(latest: int) -> None:
    records = Records.from_lists([b"v"] * 2, timestamps_ms=[latest - 1 if latest > -(2**63) else latest, latest])
    log = COLUMNAR.encode(records)
    back = COLUMNAR.decode(log)
    assert back.records == records
    assert back.batches["max_timestamp_ms"].tolist() == [latest]
    fits = -(2**47) <= latest <= MOST_I48
    assert (len(log.data) == 29 + 1 + 2 + 2 + 2) == fits
    assert log.data[MAX_TIME_AT : MAX_TIME_AT + 6].tobytes() == (
        latest.to_bytes(6, "big", signed=True) if fits else bytes(6)
    )


def test_an_odd_maximum_and_an_odd_base() -> None:
    case = one_batch(
        Message(offset=5, timestamp_ms=NOW_MS, value=b"v"),
        Message(offset=9, timestamp_ms=NOW_MS + 3, value=None),
        base_timestamp_ms=NOW_MS - 8,
        max_timestamp_ms=NOW_MS + 1,
        base_offset=1,
        last_offset=20,
    )
    check_against_reference("columnar", case)
    check_round_trip("columnar", case)


def test_empty_batches() -> None:
    fields = BatchFields(
        base_offset=[5, 7], last_offset=[6, 9], delete_horizon_ms=[-1, NOW_MS], is_transactional=True, producer_id=3
    )
    for codec in ("none", "gzip"):
        log = COLUMNAR.encode(Records.from_lists([]), [0, 0, 0], codec, batch_fields=fields)
        back = COLUMNAR.decode(log)
        assert back.batches["last_offset"].tolist() == [6, 9]
        assert back.batches["delete_horizon_ms"].tolist() == [-1, NOW_MS]
        assert back.batches["codec"].tolist() == ["none"] * 2
        assert bytes(write_log(back)) == bytes(log)


def test_payload_by_rows_is_read() -> None:
    """Extension 4, which our encoder does not write."""
    columns = "02 01 04 00  02 09  02 03"  # count, the extension, key lengths 1 and 2, value lengths 3 and 0
    data = sealed(bytes(16) + b"\x04" + bytes(4) + bytes.fromhex(f"9400 000000000005 {columns} 6178797a6263"))
    back = COLUMNAR.decode(data)
    assert [(message.key, message.value) for message in messages_of(back.records)] == [(b"a", b"xyz"), (b"bc", b"")]
    assert back.batches["canonical"].tolist() == [False]
    check_agrees_with_reference(data)
    fetched = COLUMNAR.fetch(data, np.array([0, len(data)]), [1])
    assert (fetched.key(0), fetched.value(0)) == (b"bc", b"")


def test_headers_that_appear_while_a_log_is_read() -> None:
    """Somebody else writes into it: no room was made for them."""
    log = COLUMNAR.encode(Records.from_lists([b"value"] * 20), 10)
    data = log.data.copy()
    reading = ColumnarReading(
        as_bytes("data", data), log.positions, "skip", Allowance.of(len(data), None), check_crcs=False
    )
    data[log.positions[1] + ATTRIBUTES_AT] |= HEADERS >> 8
    reading.read_columns()
    assert [(error.position, error.field) for error in reading.damage.errors()] == [(log.positions[1], "headers")]


# What it reads without the payload, and of one record


@pytest.mark.parametrize("codec", ["none", *CODECS])
def test_metadata_without_the_payload(codec: str) -> None:
    """No byte of it is looked at under a codec: it may be undecodable."""
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
@given(case=columnar_cases.cases() | strategies.cases_of("columnar"), data=st.data())
def test_one_record_of_each_batch(name: str, case: Case, data: st.DataObject) -> None:
    batches = [[Message(**{**message.__dict__, "headers": ()}) for message in batch] for batch in case.batches if batch]
    records = records_of([message for batch in batches for message in batch])
    bounds = np.cumsum([0, *map(len, batches)])
    log = FORMATS[name].encode(records, bounds)
    indices = [data.draw(st.integers(0, len(batch) - 1)) for batch in batches]
    assert FORMATS[name].fetch(log, log.positions, indices) == records.take(bounds[:-1] + np.array(indices, np.int64))


@given(data=st.data())
def test_one_record_of_a_damaged_batch(data: st.DataObject) -> None:
    """What a whole reader takes is fetched the same; of what it refuses, a record may be sound all the same."""
    case = data.draw(columnar_cases.cases(1) | strategies.cases_of("columnar", max_batches=1))
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
            assert not n or attributes & 0x4007, refusal  # headers, or a codec


LENGTHS: dict[str, tuple[str, bool, list[int]]] = {  # a column, whether some may be null, the lengths
    "a slope": ("80 02 02", False, [1, 2, 3, 4]),
    "a walk": ("c0 01 02 00 05", False, [1, 2, 2, 3]),
    "a walk with a leap": ("c2 01 02 00 05 01 01 01", False, [1, 2, 4, 5]),
    "an outlier": ("c1 01 02 05 01 02 03", False, [2, 1, 8, 1]),
    "words": ("3f" + "".join(f"{n:02x}" + 7 * "00" for n in (1, 0, 2, 3)), False, [1, 0, 2, 3]),
    "a negative base": ("42 01 b9", False, [0, 1, 2, 1]),
    "a walk from null": ("02 c0 01 00 00 05", True, [-1, 2, 2, 3]),
    "an outlier among nulls": ("02 c1 01 00 05 01 01 02", True, [2, 5, 2, -1]),
    "codes above a base": ("02 41 02 05", True, [3, 2, 3, 2]),
    "a tail": ("c3 01 00 09 0b 01", False, [1, 0, 2, 9]),
    "a tail of quotients alone": ("c3 00 00 b1", False, [0, 3, 0, 1]),
    "a tail from a negative base": ("c3 00 01 52 08", False, [0, 1, 0, 3]),
    "a tail among nulls": ("02 c3 00 00 b1", True, [-1, 4, -1, 2]),
    "gaps": ("c4 00 02 00 26", False, [1, 2, 2, 4]),
    "a few": ("c5 03 02 02 20 06", False, [1, 5, 5, 1]),
    "a few among nulls": ("02 c5 03 00 03 48 01 61", True, [2, -1, 6, 2]),
    "a few of no bits": ("c5 00 04 02 05", False, [2, 2, 2, 2]),
    "a few words": ("c5 3f 00 02 03" + 7 * "00" + "01" + 7 * "00" + "06", False, [3, 1, 1, 3]),
}


@pytest.mark.sampled
@pytest.mark.parametrize("name", LENGTHS)
@pytest.mark.parametrize("keys", [True, False])
def test_lengths_in_every_kind_of_column(name: str, keys: bool) -> None:
    """Whatever its kind, as a whole reader has it and as who fetches one record."""
    column, nulls, lengths = LENGTHS[name]
    bits = 0x1400 | (0x800 if keys else 0x2000) * nulls
    columns = f"{column} 02 e4" if keys else f"02 e4 {column}"  # the other: 0, 1, 2, 3
    payload = "".join(f"{i:02x}" for i in range(6 + sum(max(length, 0) for length in lengths)))
    data = batch_of(bits, columns + payload, "04")
    check_agrees_with_reference(data)
    back = COLUMNAR.decode(data).records
    assert (back.shapes.key_lengths if keys else back.shapes.value_lengths).tolist() == lengths
    for i in range(4):
        assert COLUMNAR.fetch(data, np.array([0, len(data)]), [i]) == back.part(i, i + 1)


FAR = 2**63 - 1
WRAPPING: dict[str, list[int]] = {  # lengths, of which all but the last two are none
    "the sum is one": [FAR, FAR - 60, 0, 0],
    "before memory": [FAR, FAR - 10**11, 0, 0],
    "negative": [-1, -60, 5, 0],
}


@pytest.mark.parametrize("lengths", WRAPPING.values(), ids=WRAPPING)
@pytest.mark.parametrize("kind", ["dictionary", "patched delta", "patched"])
def test_lengths_before_a_record_that_are_none(kind: str, lengths: list[int]) -> None:
    """Each is refused when it is met, and not forgotten for the next one that holds: they would add up to any place."""
    if kind == "dictionary":
        distinct = sorted({length % 2**64 for length in lengths})
        column = columnar.dictionary(0, distinct, [distinct.index(length % 2**64) for length in lengths])
    elif kind == "patched":
        column = columnar.patched(1, b"", -7, [(length + 7) % 2**64 for length in lengths], 0)
    else:
        steps = [(after - before) % 2**64 for before, after in itertools.pairwise(lengths)]
        column = columnar.patched(2, zigzag(lengths[0]), 0, steps, 0)
    values = columnar.column([3, 3, 3, 3], "lengths")
    for bits, columns in ((0x400 | 0x1000, column + values), (0x400 | 0x1000, values + column)):
        data = batch_of(bits, (columns + b"x" * 12).hex(), "04")
        check_agrees_with_reference(data)
        for index in range(4):
            with pytest.raises(CorruptLog, match="column length"):
                COLUMNAR.fetch(data, np.array([0, len(data)]), [index])


def test_a_length_that_a_patch_brings_back() -> None:
    """2**64 - 2 above 5 is 3: all arithmetic is modulo 2**64."""
    column = columnar.patched(1, b"", 5, [0, 2**64 - 2, 0, 0], 0)
    data = batch_of(0x400, (column + b"abcdefghijklmnopqr").hex(), "04")
    check_agrees_with_reference(data)
    back = COLUMNAR.decode(data).records
    assert back.shapes.key_lengths.tolist() == [5, 3, 5, 5]
    for i in range(4):
        assert COLUMNAR.fetch(data, np.array([0, len(data)]), [i]) == back.part(i, i + 1)


def test_a_patch_that_does_not_rise_is_not_left_over() -> None:
    """Behind one at the last value; what is found would be out of its place by what it adds."""
    data = batch_of(0x400 | 0x800, "00 c1 01 01 03 02 01 02 41 62 63", "02")
    check_agrees_with_reference(data)
    for index in (0, 1):
        with pytest.raises(CorruptLog, match="patches"):
            COLUMNAR.fetch(data, np.array([0, len(data)]), [index])


@pytest.mark.parametrize("body", ["c4 00 00 00 00", "c3 00 00 00"])
def test_quotients_that_end_in_the_next_batch(body: str) -> None:
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
def test_an_extension_may_say_the_least_time(tag: int) -> None:
    """-2**63 is a time like any other."""
    bits = 0x8000 | (0x40 if tag == 1 else 0)
    data = batch_of(bits, f"01 {tag:02x} 08 8000000000000000")
    check_agrees_with_reference(data)
    back = COLUMNAR.decode(data)
    rows = back.batches
    assert rows["delete_horizon_ms"].tolist() == [-(2**63) if tag == 1 else -1]
    assert rows["base_timestamp_ms"].tolist() == [-(2**63)]
    assert back.records.timestamps_ms.tolist() == [-(2**63) if tag == 2 else 0] * 2


@pytest.mark.parametrize("name", ["v2", "columnar"])
def test_a_record_that_cannot_be_fetched(name: str) -> None:
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


# Damage, and what hostile bytes may not do


@given(data=st.data())
def test_damage_agrees_with_the_reference(data: st.DataObject) -> None:
    case = data.draw(columnar_cases.cases(1) | strategies.cases_of("columnar", max_batches=1))
    codec = data.draw(st.sampled_from(["none", "none", "gzip"]))
    log = COLUMNAR.encode(records_of(case.messages), [0, len(case.messages)], codec)
    changed = data.draw(mutations(bytes(log)))
    check_agrees_with_reference(changed)
    check_metadata_without_checksums(changed, "columnar")


@given(data=st.data(), cut=st.integers(17, 300))
def test_prefixes_that_are_cut_agree_with_the_reference(data: st.DataObject, cut: int) -> None:
    case = data.draw(columnar_cases.cases(1))
    log = COLUMNAR.encode(records_of(case.messages), [0, len(case.messages)])
    check_agrees_with_reference(sealed(bytes(log)[: max(cut, 30)]))


@pytest.mark.parametrize("codec", CODECS)
def test_a_payload_is_no_larger_than_its_lengths_say(codec: str) -> None:
    """They are known before the codec runs, and it is stopped there."""
    messages = [Message(offset=i, timestamp_ms=0, value=b"v" * 100) for i in range(2)]
    whole, larger = (
        columnar.batch(messages, Fields(), codec, codecs.find(codec).compress(bytes(size))) for size in (200, 16 << 20)
    )
    assert len(COLUMNAR.decode(whole).records) == 2
    tracemalloc.start()
    try:
        with pytest.raises(CorruptLog, match="lengths add up to: grows past the limit of 200 bytes"):
            COLUMNAR.decode(larger)
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


def positions_of(log: bytes) -> Int64:
    return Entries.of(as_bytes("log", log)).positions


def batch_of(bits: int, body: str, count: str = "02") -> bytes:
    return sealed(bytes(16) + b"\x04" + bytes(4) + struct.pack(">H", bits) + bytes(6) + bytes.fromhex(count + body))


# One per field that an error names; tests/reference/test_columnar.py has each way to break a promise.
REFUSED: dict[str, tuple[bytes, str]] = {
    "column": (batch_of(0x100, "c6 01 00 00"), "column"),
    "packed values": (batch_of(0x100, "c3 00 00 07"), "behind its last value"),
    "patches": (batch_of(0x100, "c1 01 00 00 01 00 00"), "patches"),
    "offset delta": (batch_of(0x200, "01 40 8080808010"), "offset delta"),
    "column length": (batch_of(0x400, "c3 1e 00" + 8 * "00" + "09"), "column length"),
    "extensions": (batch_of(0x8000, "01 05 00"), "extensions"),
    "attributes": (batch_of(0x800, ""), "attributes"),
    "empty batch": (batch_of(0x300, "00 00", "00"), "attributes"),
    "payload": (batch_of(0, "00"), "payload"),
    "codec": (batch_of(5, ""), "codec"),
    "headers": (batch_of(0x4000, "01 01 00 05"), "headers"),
    "payload of a template": (batch_of(0x4000, "01 01 00 04 01 01 00", "03"), "payload"),
    "batch header": (batch_of(0, "", "80"), "batch header"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_hostile_batches_are_refused(name: str) -> None:
    data, promise = REFUSED[name]
    with pytest.raises(CorruptLog, match=promise) as refusal:
        COLUMNAR.decode(data)
    assert refusal.value.position == 0
    assert "\n" not in str(refusal.value)
    check_agrees_with_reference(data)
    sound = bytes(COLUMNAR.encode(Records.from_lists([b"v"])))
    kept = COLUMNAR.decode(sound + data + sound, on_error="skip")
    assert (len(kept), len(kept.records), len(kept.errors)) == (2, 2, 1)


def test_a_nibble_behind_the_last() -> None:
    records = with_headers([b"%x" % i for i in (1, 2, 3, 10, 11)])
    data = bytearray(bytes(COLUMNAR.encode(records)))
    assert data[COUNT_AT + 5] == 4
    data[-1] |= 1
    with pytest.raises(CorruptLog, match="behind its last value"):
        COLUMNAR.decode(sealed(bytes(data)))


def refused_early(call: Callable[[], DecodedLog], match: str) -> None:
    tracemalloc.start()
    try:
        with pytest.raises(CorruptLog, match=match):
            call()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 1 << 20


def test_a_claim_of_records_is_refused_before_there_is_room_for_them() -> None:
    """A record may take no byte: 34 bytes can claim 2**31 of them."""
    claim = batch_of(0, "", "ffffffff07")
    assert len(claim) == 34
    refused_early(lambda: COLUMNAR.decode(claim), "limits.batch_records")
    many = batch_of(0, "", "8040") * 400  # 8,192 each
    refused_early(lambda: COLUMNAR.decode(many, limits=Limits(batch_records=1 << 13, log_expansion=1)), "log_expansion")
    two = batch_of(0, "", "e807") * 2
    kept = COLUMNAR.decode(two, on_error="skip", limits=Limits(batch_records=1000, log_expansion=1))
    assert (len(kept.records), len(kept.errors)) == (1000, 1)
    with pytest.raises(CorruptLog, match="log_expansion"):
        COLUMNAR.read_times(two, positions_of(two), Limits(batch_records=1000, log_expansion=1))


def test_other_formats_between_claims_make_no_room_for_more_of_them() -> None:
    """The limits are of a log, and not of a run of batches of one magic."""
    claim, between = batch_of(0, "", "e807"), bytes(FORMATS["v2"].encode(Records.from_lists([]), [0, 0]))
    limits = Limits(batch_records=1000, log_expansion=1)
    kept = read_log((claim + between) * 5, on_error="skip", limits=limits)
    assert (len(kept.records), len(kept), len(kept.errors)) == (1000, 6, 4)
    claim = batch_of(0x4000, "01 01" + "00 00 01", "e807")
    limits = Limits(batch_headers=1000, log_expansion=1)
    kept = read_log((claim + between) * 5, on_error="skip", limits=limits)
    assert (len(kept.records), len(kept), len(kept.errors)) == (1000, 6, 4)
    assert kept.errors[0].promise == "more headers in all than limits.log_expansion allows a log of this size"
    claim = bytes(COLUMNAR.encode(with_headers([b"%04000x" % (i % 16) for i in range(1000)]), 1000))
    kept = read_log((claim + between) * 5, on_error="skip", limits=Limits(batch_bytes=5_000_000, log_expansion=1))
    assert (len(kept), {error.field for error in kept.errors}) == (6, {"headers"})


def test_a_damaged_batch_takes_no_room_from_those_behind_another_format() -> None:
    damaged, sound = batch_of(0x1000, "ff 00 00", "e807"), batch_of(0, "", "e807")
    between = bytes(FORMATS["v2"].encode(Records.from_lists([]), [0, 0]))
    limits = Limits(batch_records=1000, log_expansion=1)
    assert len(read_log(damaged + between + sound, on_error="skip", limits=limits).records) == 1000


def test_one_record_is_not_looked_for_among_more_than_a_log_may_hold() -> None:
    """Lengths that rise by nothing have no bytes, and are added up one after another."""
    data = batch_of(0x1000, "80 00 00", "e807") * 3
    positions, limits = positions_of(data), Limits(batch_records=1000, log_expansion=1)
    assert len(COLUMNAR.fetch(data, positions, [999] * 3)) == 3
    assert len(COLUMNAR.fetch(data, positions[:2], [999], limits)) == 1
    with pytest.raises(CorruptLog, match=r"limits\.log_expansion") as refused:
        COLUMNAR.fetch(data, positions, [999] * 3, limits)
    assert refused.value.position == positions[1]


def test_claims_of_headers_are_refused_before_there_is_room_for_them() -> None:
    """A constant header takes no byte a record, nor does its expansion."""
    claim = batch_of(0x4000, "01 808008" + "00 00 01" * 4, "808040")
    refused_early(lambda: COLUMNAR.decode(claim, limits=Limits(batch_headers=1 << 20, batch_records=1 << 10)), "limits")
    records = Records.from_lists([b""] * 100, headers=[[("h", b"x" * 1000)]] * 100)
    log = COLUMNAR.encode(records)
    assert COLUMNAR.decode(log, limits=Limits(batch_headers=100)).records == records
    refused_early(lambda: COLUMNAR.decode(log, limits=Limits(batch_headers=99)), "batch_headers")
    refused_early(lambda: COLUMNAR.decode(log, limits=Limits(batch_bytes=1000, log_expansion=1)), "log_expansion")
    template = with_headers([b"%01000x" % i for i in range(100)])
    log = COLUMNAR.encode(template)
    refused_early(lambda: COLUMNAR.decode(log, limits=Limits(batch_bytes=1000, log_expansion=1)), "log_expansion")
    with pytest.raises(CorruptLog, match="field_bytes"):
        COLUMNAR.decode(log, limits=Limits(field_bytes=999))


def test_damage_behind_a_codec_leaves_the_others() -> None:
    """Columns are read before the payload is decompressed; rows of batches that then fail are dropped."""
    records = Records.from_lists(
        [b"value %d" % i for i in range(40)], headers=[[("h", b"%04x" % i)] for i in range(40)]
    )
    log = COLUMNAR.encode(records, 10, "zstd")
    parts = [bytes(log.data[start:end]) for start, end in itertools.pairwise(log.positions.tolist())]
    parts[1] = sealed(parts[1][:-4] + b"\xff" * 4)
    other = bytes(COLUMNAR.encode(records.part(10, 20), 10))
    parts[2] = sealed(parts[2][:-1])
    kept = COLUMNAR.decode(b"".join([*parts, other]), on_error="skip")
    assert len(kept.errors) == 2
    expected = [i for i in range(40) if not 10 <= i < 30] + list(range(10, 20))
    assert [message.value for message in messages_of(kept.records)] == [b"value %d" % i for i in expected]
    assert [message.headers[0][1] for message in messages_of(kept.records)] == [b"%04x" % i for i in expected]
    assert len(kept.batches) == 3


HEADED = [
    Message(
        offset=i,
        timestamp_ms=NOW_MS + i * i,
        key=b"k" * (i % 3),
        value=b"v" * 7 * i,
        headers=(
            ("same", b"x"),
            ("plain", b"p" * (9 * i % 7)),
            ("null", None if i % 2 else b"n" * i),
            ("few", (b"accepted" * 4, b"refused" * 4)[i % 2]),
            ("id", b"%08x-%08x" % (i * 2654435761 % 2**32, i * 40503)),
        ),
    )
    for i in range(6)
]
BY_RECORD = [Message(**{**each.__dict__, "headers": each.headers[: i % 3]}) for i, each in enumerate(HEADED)]


@pytest.mark.parametrize("messages", [HEADED, BY_RECORD, HEADED[:1], HEADED[3:4]])
def test_no_room_that_is_too_small_is_written_behind(messages: list[Message]) -> None:
    records = records_of(messages)
    size = len(COLUMNAR.encode(records, [0, len(messages)]).data)
    for room in range(size):
        arena = np.full(room + 64, 0xEE, np.uint8)
        with pytest.raises(InvalidRecords, match=f"out: {room} bytes, {size} are needed"):
            COLUMNAR.encode(records, [0, len(messages)], out=arena[:room])
        assert (arena[room:] == 0xEE).all()


@pytest.mark.parametrize("name", ["v2", "v3", "columnar"])
def test_a_record_of_a_batch_that_is_cut_short_or_damaged_anywhere(name: str) -> None:
    """It is refused by a typed error, or lies within the batch: there is no checksum to rely on."""
    messages = [Message(**{**each.__dict__, "headers": ()}) for each in HEADED]
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


MASK = bytes(511) + b"\1"  # of a template of 4096 characters, one of which varies
TEMPLATE = b"\1\1\0\4\x80\x20" + MASK  # by position, one header, an empty key
ALL_VARY = TEMPLATE[:-512] + b"\xff" * 512
LARGE = b"\1\2\0\4\1\1\0\1\x40" + zigzag(1 << 28)  # a template of one digit, and values of 256 MiB


@pytest.mark.parametrize(
    ("attributes", "count", "columns"),
    [(0x4000, 1 << 12, TEMPLATE), (0x4004, 1 << 12, ALL_VARY), (0x4004, 2, LARGE), (0x4000, 2, LARGE)],
)
def test_a_refused_batch_of_templates_takes_no_room(attributes: int, count: int, columns: bytes) -> None:
    """551 bytes once asked for 64 GiB."""
    covered = struct.pack(">H", attributes) + b"\xff" * 6 + unsigned(count) + columns + b"no codec"
    sound = bytes(COLUMNAR.encode(records_of(HEADED), [0, len(HEADED)]).data)
    data = sound + sealed(struct.pack(">qiibI", 0, 0, -1, 4, 0) + covered) + sound
    COLUMNAR.decode(data, on_error="skip")  # compiled
    tracemalloc.start()
    found = COLUMNAR.decode(data, on_error="skip")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(found.errors) == 1 and len(found.records) == 2 * len(HEADED)
    assert peak < 150 * count + (1 << 20)
    with pytest.raises(CorruptLog):
        COLUMNAR.decode(data)
