"""Formats with batch headers: deltas of offsets and timestamps, lengths, empty batches, append time."""

import numpy as np
import pytest

from kfbench import FORMATS, BatchFields, Records
from kfbench.errors import InvalidRecords
from tests.common import (
    check_against_reference,
    check_sizes,
    one_batch,
)
from tests.reference.model import Fields, Message
from tests.strategies import FALLING_NAMES, INT32, INT64, NOW_MS, Case

NAMES = [name for name, fmt in FORMATS.items() if not fmt.holds_messages]
every_name = pytest.mark.parametrize("name", NAMES)
BOUNDARIES = [0, 1, 63, 64, 127, 128, 8191, 8192, 16383, 16384, 1048575, 1048576]
LENGTHS = [*BOUNDARIES, 120, 121, 122, 123, 126, 16376]
MARKED_LENGTHS = [pytest.param(n, marks=[pytest.mark.compiled_only] if n > 20_000 else []) for n in LENGTHS]


@pytest.mark.sampled
@every_name
@pytest.mark.parametrize("length", MARKED_LENGTHS)
def test_lengths_at_varint_boundaries(name: str, length: int) -> None:
    content = b"\1" * length
    for key, value in [(content, b"v"), (None, content), (b"", content), (content, None), (bytes(length), content)]:
        case = one_batch(Message(offset=0, timestamp_ms=NOW_MS, key=key, value=value))
        check_against_reference(name, case)
        check_sizes(name, case)


@every_name
def test_timestamp_deltas_are_64_bits_wide(name: str) -> None:
    for delta in (*BOUNDARIES, 2**31, 2**34, 2**41, 2**48, 2**55, 2**62):
        for base, later in ((0, delta), (INT64, INT64 - delta)):
            messages = [Message(offset=0, timestamp_ms=base), Message(offset=1, timestamp_ms=later)]
            check_against_reference(name, one_batch(*messages))
    wrapping = [Message(offset=0, timestamp_ms=-1), Message(offset=1, timestamp_ms=INT64)]
    check_against_reference(name, one_batch(*wrapping))


@every_name
def test_offset_deltas_are_32_bits_wide(name: str) -> None:
    for delta in (*BOUNDARIES, 2**21, 2**28, INT32):
        case = one_batch(Message(offset=7), Message(offset=7 + delta))
        check_against_reference(name, case)
        check_sizes(name, case)
    for delta in (-1, -64, -65, -8193, -(2**31)) if name in FALLING_NAMES else ():
        case = one_batch(Message(offset=2**31), Message(offset=2**31 + delta))
        check_against_reference(name, case)
        check_sizes(name, case)


@pytest.mark.compiled_only
@pytest.mark.sampled
@pytest.mark.parametrize("name", [name for name in NAMES if FORMATS[name].capabilities.headers])
@pytest.mark.parametrize("count", [1, 29, 30, 61, 62, 63, 64, 127, 128, 8191, 8192])
def test_header_counts_at_varint_boundaries(name: str, count: int) -> None:
    headers = tuple((f"h{i % 10}", None if i % 3 else b"%d" % i) for i in range(count))
    for case in (
        one_batch(Message(offset=0, headers=headers), Message(offset=1)),
        one_batch(Message(offset=0, headers=(("", None),) * count)),
    ):
        check_against_reference(name, case)
        check_sizes(name, case)


@every_name
def test_an_offset_too_far_is_refused(name: str) -> None:
    for offsets, fields in [
        ([0, 2**31], None),
        ([0, 2**40], None),
        ([0, INT64], None),
        ([0, 1], BatchFields(last_offset=2**31)),
        ([2**31, 2**31 + 1], BatchFields(base_offset=0)),
        ([0, 1], BatchFields(base_offset=0, last_offset=2**40)),
    ]:
        for out in (None, np.zeros(66, np.uint8), np.zeros(4096, np.uint8)):
            with pytest.raises(InvalidRecords, match=r"batch 0.*int32"):
                FORMATS[name].encode(Records.from_lists([b"", b""], offsets=offsets), batch_fields=fields, out=out)
    records = Records.from_lists([b""] * 4, offsets=[0, 1, 2, 2**32])
    with pytest.raises(InvalidRecords, match="batch 1"):
        FORMATS[name].encode(records, 2)
    assert len(FORMATS[name].encode(records, 1)) == 4


@every_name
def test_empty_batches_keep_their_range(name: str) -> None:
    has_epoch = "partition_leader_epoch" in FORMATS[name].capabilities.batch_fields
    fields = Fields(
        base_offset=50, last_offset=59, base_timestamp_ms=-1, max_timestamp_ms=NOW_MS, producer_id=4711,
        producer_epoch=3, base_sequence=20, is_transactional=True, partition_leader_epoch=3 if has_epoch else -1,
    )  # fmt: skip
    message, last = (
        Message(offset=60, timestamp_ms=NOW_MS, key=b"k", value=b"v"),
        Fields(base_offset=70, last_offset=70),
    )
    case = Case(batches=((), (message,), ()), fields=(fields, Fields(), last))
    check_against_reference(name, case)
    check_sizes(name, case)
    for codec in FORMATS[name].capabilities.codecs[1:]:
        check_against_reference(name, case, codec)
