"""The columnar format (magic 4) writes the bytes of its reference codec, and reads batches written by hand."""

import itertools
import random
import struct
from typing import Any

import crc32c
import numpy as np
import pytest
from hypothesis import given

from kfbench import FORMATS, BatchFields, Records
from kfbench.arrays import as_bytes
from kfbench.codecs import Allowance
from kfbench.errors import CorruptLog
from kfbench.formats.base.columnar_reading import ColumnarReading
from kfbench.kernels.formats.columnar.batch_header import HEADERS
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
from tests.formats.columnar_batches import (
    ATTRIBUTES_AT,
    CODECS,
    COLUMNAR,
    COUNT_AT,
    CRC_AT,
    MAX_TIME_AT,
    with_headers,
)
from tests.formats.fuzz import check_agrees_with_reference, sealed
from tests.reference import columnar_cases
from tests.reference.model import Message
from tests.reference.varint import unsigned
from tests.strategies import INT64, NOW_MS, Case

MOST_I48 = 2**47 - 1


@given(strategies.cases_of("columnar") | columnar_cases.cases())
def test_bytes_equal_those_of_the_reference(case: Case) -> None:
    check_against_reference("columnar", case)


@pytest.mark.compiled_only
@pytest.mark.parametrize("codec", CODECS)
@given(case=strategies.cases_of("columnar", max_batches=2) | columnar_cases.cases(2))
def test_decompressed_bytes_equal_those_of_the_reference(codec: str, case: Case) -> None:
    check_codec_against_reference("columnar", case, codec)


@given(case=columnar_cases.cases())
def test_sizes_and_round_trips_of_every_kind_of_column(case: Case) -> None:
    check_sizes("columnar", case)
    records = records_of(case.messages)
    for codec in ("none", "zstd"):
        log = COLUMNAR.encode(records, bounds_of(case), codec, batch_fields=batch_fields_of(case))
        assert COLUMNAR.decode(log).source_records == records


@given(case=strategies.cases_of("columnar") | columnar_cases.cases())
def test_encoded_batches_are_canonical(case: Case) -> None:
    log = COLUMNAR.encode(records_of(case.messages), np.cumsum([0, *map(len, case.batches)]))
    back = read_log(log.data)
    assert back.batch_rows["canonical"].all()
    assert bytes(write_log(back)) == bytes(log)


def test_every_byte_of_a_small_batch_except_the_checksum() -> None:
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


def test_empty_records_take_no_byte_beyond_the_batch_header() -> None:
    assert COLUMNAR.size(Records.from_lists([None] * 100), 100).tolist() == [30]
    assert COLUMNAR.size(Records.from_lists([None] * 1000), 1000).tolist() == [31]
    assert COLUMNAR.size(Records.from_lists([b"value"]), 1).tolist() == [30 + 1 + 5]


# Ways to store a column (kinds). The first byte of the column, its descriptor, shows the kind.


def sums_of(steps: list[int]) -> list[int]:
    return list(itertools.accumulate(steps, initial=0))


def kind_of(descriptor: int) -> tuple[int, int | None]:
    """Return the kind in a column's descriptor byte, and for kind 3 the low six bits."""
    kind = int(descriptor) >> 6
    return kind, None if kind < 3 else int(descriptor) & 63


NOISE = random.Random(3)
KINDS: dict[str, tuple[list[int], tuple[int, int | None]]] = {
    "bits": ([0, 3, 1, 2, 3, 0, 1], (0, None)),
    "slope": ([1000 * i + (NOISE.randrange(8) if 0 < i < 59 else 0) for i in range(60)], (2, None)),
    "delta": (sums_of([NOISE.randrange(4) for _ in range(100)]), (3, 0)),
    "patched": ([NOISE.randrange(4) if i != 17 else 1 << 30 for i in range(60)], (3, 1)),
    "patched delta": (sums_of([NOISE.randrange(2) + (1 << 30 if i == 40 else 0) for i in range(100)]), (3, 2)),
    "rice": ([0, *(int(NOISE.expovariate(0.9)) for _ in range(99))], (3, 3)),
    "rice delta": (sums_of([int(NOISE.expovariate(0.9)) for _ in range(100)]), (3, 4)),
}
LEVEL = ("bits", "patched", "rice")  # the other kinds rise; their ages count back from the last value


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


@pytest.mark.sampled(12)
@pytest.mark.parametrize("bits", [*range(1, 58), 62, 64])
def test_columns_of_each_width(bits: int) -> None:
    """Eight, four or two integers are written at once, but single ones where `out` ends with the batch."""
    noise = random.Random(bits)
    for count in (2, 7, 8, 9, 30):
        ages = [(1 << bits) - 1, *(noise.randrange(1 << bits) for _ in range(count - 2)), 0]
        times = [age - (1 << 63) if bits == 64 else INT64 - age for age in ages]
        case = one_batch(*(Message(offset=i, timestamp_ms=time) for i, time in enumerate(times)))
        check_against_reference("columnar", case)
        records = records_of(case.messages)
        log = COLUMNAR.encode(records, count)
        assert bytes(COLUMNAR.encode(records, count, out=np.empty(len(log.data), np.uint8))) == bytes(log)


def test_checksum_of_payloads_that_are_summed_while_they_are_copied() -> None:
    """Payloads have sizes around multiples of 384 bytes. The expected CRC comes from another library."""
    sizes = (0, 1, 255, 256, 300, 383, 384, 385, 512, 1000, 1536)
    for key, value in itertools.product(sizes, sizes):
        items = [(NOISE.randbytes(key), NOISE.randbytes(value)) for _ in range(3)]
        records = Records.from_lists([value for _, value in items], keys=[key for key, _ in items])
        data = bytes(COLUMNAR.encode(records, 3))
        assert data.endswith(b"".join(key for key, _ in items) + b"".join(value for _, value in items))
        assert struct.unpack_from(">I", data, CRC_AT) == (crc32c.crc32c(data[ATTRIBUTES_AT:]),)


def test_one_outlier_in_a_column_does_not_widen_every_record() -> None:

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


# Ways to store record headers


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
    """Eight characters of a template are written for every record, then the next eight."""
    random_ = random.Random(seed)
    count, positions = random_.randint(2, 19), []
    for _ in range(random_.randint(1, 4)):
        share, text = random_.choice((0.05, 0.3, 0.8, 1)), random_.choices(range(32, 127), k=random_.randint(1, 70))
        fixed = random_.choice((0, 0, 9, 40))  # number of characters that do not vary
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
    """Headers are stored by position if all records have the same keys in the same order, else by record."""
    by_position = Records.from_lists(
        [b""] * 3, headers=[[("a", b"1"), ("b", None), ("a", b"%d" % i)] for i in range(3)]
    )
    by_row = Records.from_lists([b""] * 3, headers=[[("a", b"1"), ("b", b"2")][:: -1 if i else 1] for i in range(3)])
    for records, mode in ((by_position, 1), (by_row, 0)):
        log = COLUMNAR.encode(records, 3)
        assert log.data[COUNT_AT + 2] == mode
        assert COLUMNAR.decode(log).records == records


@pytest.mark.parametrize("number", [2, 32, 33])
def test_a_dictionary_is_tried_up_to_32_values(number: int) -> None:
    words = [random.Random(i).randbytes(8) for i in range(number)]
    records = with_headers([words[i % number] for i in range(3 * number)])
    log = COLUMNAR.encode(records, 3 * number)
    assert log.data[COUNT_AT + 5] == (3 if number <= 32 else 1)
    assert COLUMNAR.decode(log).records == records


# Timestamps in the header, and how a broker changes them


def with_append_time(data: bytes, append_time_ms: int) -> bytes:
    """Write the append time in place, as a broker does: the 48-bit field, attribute bit 3, checksum."""
    bits = struct.unpack_from(">H", data, ATTRIBUTES_AT)[0] | 8
    return sealed(
        data[:ATTRIBUTES_AT] + struct.pack(">H", bits) + append_time_ms.to_bytes(6, "big", signed=True) + data[29:]
    )


def test_append_time_in_place() -> None:
    """Every record has the append time. Create times are lost, as they counted from the overwritten field."""
    records = Records.from_lists([b"v"] * 3, timestamps_ms=[NOW_MS, NOW_MS - 5, NOW_MS - 2])
    back = COLUMNAR.decode(with_append_time(bytes(COLUMNAR.encode(records)), NOW_MS + 100))
    assert back.records.timestamps_ms.tolist() == [NOW_MS + 100] * 3
    assert back.create_timestamps_ms.tolist() == [-1] * 3
    assert back.batches["append_time_ms"].tolist() == [NOW_MS + 100]
    assert back.batches["base_timestamp_ms"].tolist() == [-1]
    assert back.batches["canonical"].tolist() == [False]  # no anchor, so create times stay unknown
    again = write_log(back)
    assert len(again.data) < len(COLUMNAR.encode(records).data)
    assert COLUMNAR.decode(again).create_timestamps_ms.tolist() == [-1] * 3


def test_ages_without_an_anchor_are_still_checked() -> None:
    """Ages (distances to the maximum timestamp) are not used without an anchor. Damaged ones are refused."""
    data = bytearray(
        with_append_time(bytes(COLUMNAR.encode(Records.from_lists([b"v"] * 3, timestamps_ms=[5, 6, 7]))), 9)
    )
    assert data[COUNT_AT + 1] == 2  # ages with two bits each: 2, 1, 0
    data[COUNT_AT + 2] |= 0x80
    with pytest.raises(CorruptLog, match="padding: "):
        COLUMNAR.decode(sealed(bytes(data)))
    check_agrees_with_reference(sealed(bytes(data)))


@pytest.mark.parametrize(
    ("times", "append_time_ms", "has_anchor"),
    [([5, 7], 9, True), ([5, 7], 7, True), ([-1, 7], 7, True), ([-1, -1], 7, False), ([-2, -1], 7, True),
     ([-(2**63), 2**63 - 1], 7, True), ([2**63 - 1] * 2, 7, True), ([-1], 7, False), ([7], 7, True)],
)  # fmt: skip
def test_a_batch_with_append_time_has_an_anchor_if_any_create_time_is_known(
    times: list[int], append_time_ms: int, has_anchor: bool
) -> None:
    """The anchor is the stored create-time maximum, from which create times are computed."""
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


def test_create_times_are_kept_next_to_an_append_time() -> None:
    records = Records.from_lists([b"v"] * 3, timestamps_ms=[NOW_MS, NOW_MS - 5, NOW_MS - 2])
    log = COLUMNAR.encode(records, batch_fields=BatchFields(append_time_ms=NOW_MS + 7))
    again = with_append_time(bytes(log), NOW_MS + 100)
    for data, seen in ((bytes(log), NOW_MS + 7), (again, NOW_MS + 100)):
        back = COLUMNAR.decode(data)
        assert back.source_records == records
        assert back.records.timestamps_ms.tolist() == [seen] * 3
        assert bytes(write_log(back)) == data


@pytest.mark.parametrize("latest", [MOST_I48, MOST_I48 + 1, -(2**47), -(2**47) - 1, INT64])
def test_timestamps_beyond_48_bits(latest: int) -> None:
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
    """Extension 4: the payload has key and value record by record. Our encoder does not write it."""
    columns = "02 01 04 00  02 09  02 03"  # record count, the extension, key lengths 1 and 2, value lengths 3 and 0
    data = sealed(bytes(16) + b"\x04" + bytes(4) + bytes.fromhex(f"9400 000000000005 {columns} 6178797a6263"))
    back = COLUMNAR.decode(data)
    assert [(message.key, message.value) for message in messages_of(back.records)] == [(b"a", b"xyz"), (b"bc", b"")]
    assert back.batches["canonical"].tolist() == [False]
    check_agrees_with_reference(data)
    fetched = COLUMNAR.fetch(data, np.array([0, len(data)]), [1])
    assert (fetched.key(0), fetched.value(0)) == (b"bc", b"")


def test_headers_that_appear_while_a_log_is_read_are_refused() -> None:
    """Another process sets the headers bit after memory for columns was allocated. The batch is refused."""
    log = COLUMNAR.encode(Records.from_lists([b"value"] * 20), 10)
    data = log.data.copy()
    reading = ColumnarReading(
        as_bytes("data", data), log.positions, "skip", Allowance.of(len(data), None), check_crcs=False
    )
    data[log.positions[1] + ATTRIBUTES_AT] |= HEADERS >> 8
    reading.read_columns()
    assert [(error.position, error.field) for error in reading.damage.errors()] == [(log.positions[1], "headers")]
