"""Damage that no checksum reveals: change bytes of a batch, then correct its length and checksum.

Fuzzers and the comparison with Kafka's classes use the same edits as the tests of formats.
"""

import random
import struct
import zlib
from collections.abc import Callable, Iterable
from contextlib import suppress

import crc32c
import numpy as np
import pytest
from hypothesis import strategies as st

from kfbench import Dictionary
from kfbench.batches import DecodedLog, EncodedLog
from kfbench.errors import CorruptLog
from kfbench.formats import BY_MAGIC, FORMATS
from kfbench.log import read_log, write_log
from tests.common import check_decoded, reference_decode
from tests.reference.model import RefusedError
from tests.reference.varint import unsigned, zigzag

CANONICAL, READ = "canonical", "read, but not canonical"  # verdicts of a reader, besides the field that an error names
INTERESTING = [0, 1, 2, 3, 4, 7, 0x14, 0x16, 0x7E, 0x7F, 0x80, 0x81, 0xFE, 0xFF]
POWERS = [1 << bits for bits in (6, 7, 13, 15, 20, 27, 31, 32, 62, 63)]
NUMBERS = [0, 1, -1, 2, -2, 13, 14, *POWERS, *(-each for each in POWERS), *(each - 1 for each in POWERS)]
FIXED_BYTES = 80  # fields at fixed positions, which are changed more often
AFTER_MAGIC = 17


def sealed(batch: bytes, name: str = "") -> bytes:
    """Return the batch with its length and checksum corrected.

    name: the format. It is needed only if the magic does not show it.
    """
    checksum = (FORMATS[name] if name else BY_MAGIC.get(batch[16], FORMATS["v2"])).checksum
    batch = batch[:8] + struct.pack(">i", len(batch) - 12) + batch[12:]
    if checksum is None:
        return batch
    compute: Callable[[bytes], int] = zlib.crc32 if checksum.algorithm == "CRC-32" else crc32c.crc32c
    at = checksum.position
    return batch[:at] + struct.pack(">I", compute(batch[checksum.covers_from :])) + batch[at + 4 :]


def damaged(draw: random.Random, batch: bytes, first: int = AFTER_MAGIC, other: bytes = b"") -> bytes:
    """Return a copy of the batch with one to four edits at random places, at byte `first` or after it.

    other: a batch whose end may replace that of this one.
    """
    data = bytearray(batch)
    for _ in range(draw.choice([1, 1, 2, 2, 3, 4])):
        if len(data) <= first:
            break
        end = min(first + FIXED_BYTES, len(data)) if draw.randrange(3) == 0 else len(data)
        _edit(draw, data, draw.randrange(first, end), other)
    return bytes(data)


def _edit(draw: random.Random, data: bytearray, at: int, other: bytes) -> None:
    left = len(data) - at
    number = draw.choice(NUMBERS) if draw.randrange(3) else left + draw.randrange(-10, 3)
    match draw.choice(EDITS):
        case "bit":
            data[at] ^= 1 << draw.randrange(8)
        case "byte":
            data[at] = draw.choice(INTERESTING) if draw.randrange(3) else draw.randrange(256)
        case "varint":
            end = at + 1
            while end < len(data) and data[end - 1] & 0x80:
                end += 1
            data[at:end] = zigzag(number) if draw.randrange(3) else unsigned(number & 2**64 - 1)
        case "integer":
            size = draw.choice([4, 8])
            data[at : at + size] = (number & 2 ** (8 * size) - 1).to_bytes(size, "big")
        case "insert":
            data[at:at] = bytes(draw.choices(INTERESTING, k=draw.randrange(1, 5)))
        case "remove":
            del data[at : at + draw.randrange(1, 9)]
        case "cut":
            del data[at:]
        case "repeat":  # up to 64 bytes, such as a record
            data[at:at] = data[at : at + draw.randrange(1, 65)]
        case "splice":
            data[at:] = other[max(len(other) - draw.randrange(512), 0) :]


EDITS = ["bit", "byte", "byte", "byte", "varint", "varint", "integer", "insert", "remove", "cut", "repeat", "splice"]


def mutations(batch: bytes, name: str = "") -> st.SearchStrategy[bytes]:
    """Draw damaged copies of the batch, with a correct length and checksum."""
    return st.randoms(use_true_random=False).map(lambda draw: sealed(damaged(draw, batch), name))


def check_agrees_with_reference(data: bytes, name: str = "", dictionaries: Iterable[Dictionary] = ()) -> None:
    """Check that kfbench and the reference both refuse the batch, or decode equal fields.

    A plain canonical batch must also be encoded to the same bytes again. name: the format, needed if the magic does not
    show it. dictionaries: those that the reference knows, too.
    """
    if name and FORMATS[name].is_told_by_magic:
        name = ""
    batches, trailing, back, refusal = None, 0, None, None
    with suppress(RefusedError):
        batches, trailing = reference_decode(name, data)
    try:
        back = FORMATS[name].decode(data) if name else read_log(data, dictionaries=dictionaries)
    except CorruptLog as error:
        refusal = error
    assert (batches is None) == (back is None), refusal
    if batches is None or back is None:
        assert refusal is not None
        assert refusal.position == 0
        return
    assert back.trailing_bytes == trailing
    check_decoded(back, batches)
    rows = back.batches
    if rows["canonical"].all() and (rows["codec"] == "none").all():
        assert bytes(written_again(back, name)) == data[: len(data) - trailing]


def check_verdict(data: bytes, name: str, verdict: str) -> None:
    """Check what the reader of a format says about one batch: CANONICAL, READ, or the field that its error names.

    The reference must agree.
    """
    if verdict in (CANONICAL, READ):
        assert FORMATS[name].decode(data).batches["canonical"].all() == (verdict == CANONICAL)
        check_agrees_with_reference(data, name)
    else:
        assert check_refused(data, name) == verdict


def check_refused(data: bytes, name: str) -> str:
    """Check that the reader of a format and the reference refuse a batch. Return the field that the error names."""
    with pytest.raises(CorruptLog) as refusal:
        FORMATS[name].decode(data)
    assert refusal.value.position == 0
    check_agrees_with_reference(data, name)
    return refusal.value.field


def check_metadata_without_checksums(data: bytes, name: str) -> None:
    """Check that `decode_metadata(check_crcs=False)` gives the same columns and errors after a checksum was damaged."""
    broken = data[:17] + bytes([data[17] ^ 1]) + data[18:]
    whole = FORMATS[name].decode_metadata(data, on_error="skip")
    seen = FORMATS[name].decode_metadata(broken, on_error="skip", check_crcs=False)
    for field in ("timestamps_ms", "offsets", "key_lengths", "value_lengths", "header_counts", "bounds"):
        assert np.array_equal(getattr(seen, field), getattr(whole, field)), field
    assert [str(error) for error in seen.errors] == [str(error) for error in whole.errors]


def written_again(log: DecodedLog, name: str) -> EncodedLog:
    if not name:
        return write_log(log)
    return FORMATS[name].encode(log.source_records, log.bounds, batch_fields=log.batch_fields)
