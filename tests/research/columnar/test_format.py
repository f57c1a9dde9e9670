"""The columnar format (magic 5) writes the bytes of its reference codec, and reads batches written by hand."""

import itertools
import random
import struct

import crc32c
import numpy as np
import pytest

from kfbench import BatchFields, Records
from kfbench.arrays import as_bytes
from kfbench.broker.append import append
from kfbench.codecs import Allowance
from kfbench.errors import CorruptLog
from kfbench.log import read_log, write_log
from kfbench.research.columnar.kernels.batch_header import HEADERS
from kfbench.research.columnar.reader import ColumnarReading
from tests.common import (
    check_against_reference,
    one_batch,
    records_of,
)
from tests.formats.fuzz import check_agrees_with_reference, sealed
from tests.fuzz import corpus
from tests.reference.model import Message
from tests.research.columnar import cases as columnar_cases
from tests.research.columnar.batches import (
    ATTRIBUTES_AT,
    COLUMNAR,
    COUNT_AT,
    CRC_AT,
    with_headers,
)
from tests.strategies import INT64, NOW_MS, Case


def test_every_byte_of_a_small_batch_except_the_checksum() -> None:
    records = Records.from_lists(
        [b"v", None, b""], keys=[None, b"k", b""], timestamps_ms=[1000, 1001, 999], offsets=[0, 1, 130]
    )
    fields = BatchFields(last_offset=200, producer_id=7, producer_epoch=1, base_sequence=0)
    data = COLUMNAR.encode(records, batch_fields=fields).data.tobytes()
    ages, offsets, keys, values = "02 21", "08 000182", "02 18", "02 12"
    body = f"0f80 0000000003e9 0000000000000007 0001 00000000 03 c801 {ages} {offsets} {keys} {values} 6b 76"
    assert data[21:] == bytes.fromhex(body)
    assert data[:17] == bytes(8) + struct.pack(">ii", len(data) - 12, -1) + b"\x05"
    assert sealed(data) == data


def test_empty_records_take_no_byte_beyond_the_batch_header() -> None:
    assert COLUMNAR.size(Records.from_lists([None] * 100), 100).tolist() == [30]
    assert COLUMNAR.size(Records.from_lists([None] * 1000), 1000).tolist() == [31]
    assert COLUMNAR.size(Records.from_lists([b"value"]), 1).tolist() == [30 + 1 + 5]


NOISE = random.Random(3)


def test_every_kind_of_column_and_form_of_headers() -> None:
    """The bytes are the reference's for 400 seeds. tests/fuzz/test_corpus.py holds that they have every choice."""
    for seed in range(corpus.COLUMNAR_SEEDS):
        messages, fields = columnar_cases.drawn(seed)
        check_against_reference("columnar", Case(batches=(messages,), fields=(fields,)))


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


@pytest.mark.parametrize("number", [2, 32, 33])
def test_a_dictionary_is_tried_up_to_32_values(number: int) -> None:
    words = [random.Random(i).randbytes(8) for i in range(number)]
    records = with_headers([words[i % number] for i in range(3 * number)])
    log = COLUMNAR.encode(records, 3 * number)
    assert log.data[COUNT_AT + 6] == (number if number <= 32 else 255)
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


def test_create_times_are_kept_next_to_an_append_time() -> None:
    records = Records.from_lists([b"v"] * 3, timestamps_ms=[NOW_MS, NOW_MS - 5, NOW_MS - 2])
    log = COLUMNAR.encode(records, batch_fields=BatchFields(append_time_ms=NOW_MS + 7))
    again = with_append_time(bytes(log), NOW_MS + 100)
    for data, seen in ((bytes(log), NOW_MS + 7), (again, NOW_MS + 100)):
        back = COLUMNAR.decode(data)
        assert back.source_records == records
        assert back.records.timestamps_ms.tolist() == [seen] * 3
        assert bytes(write_log(back)) == data


# Batches of the layout before 2026-11-29, of three records with headers and nulls, and of one record.
OLD_BATCH = "000000000000000000000036ffffffff04334e88817500018bcfe56823030623f00001070702210101010401016b6b6c"
OLD_BATCHES = f"{OLD_BATCH}76616c7565203176616c7565203232680120", "14ffffffff04daeaa3c01000ffffffffffff010176".zfill(64)


@pytest.mark.parametrize("batch", OLD_BATCHES)
def test_an_older_layout_is_refused_by_one_line(batch: str) -> None:
    old, new = bytes.fromhex(batch), bytes(COLUMNAR.encode(Records.from_lists([b"v"])))
    for read in (read_log, append):
        with pytest.raises(CorruptLog, match=r"magic: 4 is columnar's layout before .*: encode the records") as refusal:
            read(old)
        assert "\n" not in str(refusal.value)
    positions = np.array([0, len(old)])
    for call in (
        lambda: COLUMNAR.decode(old),
        lambda: COLUMNAR.decode_metadata(old),
        lambda: COLUMNAR.fetch(old, positions, [0]),
        lambda: COLUMNAR.read_times(old, positions),
    ):
        with pytest.raises(CorruptLog, match="magic: not the version that is read here"):
            call()
    found = read_log(new + old + new, on_error="skip")
    assert (len(found.records), [error.position for error in found.errors]) == (2, [len(new)])


def test_headers_that_appear_while_a_log_is_read_are_refused() -> None:
    """Another process sets the headers bit after memory for columns was allocated. The batch is refused."""
    log = COLUMNAR.encode(Records.from_lists([b"value"] * 20), 10)
    data = log.data.copy()
    reading = ColumnarReading(
        as_bytes("data", data), log.positions, "skip", Allowance.of(len(data), None), check_crcs=False
    )
    data[log.positions[1] + ATTRIBUTES_AT] |= HEADERS >> 8
    reading.read("columns")
    assert [(error.position, error.field) for error in reading.damage.errors()] == [(log.positions[1], "headers")]
