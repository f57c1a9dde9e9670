"""Damage that no checksum reveals: change bytes of a batch, then correct its length and checksum."""

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

CANONICAL, READ = "canonical", "read, but not canonical"  # verdicts of a reader, besides the field that an error names
INTERESTING = [0, 1, 2, 3, 4, 7, 0x14, 0x16, 0x7E, 0x7F, 0x80, 0x81, 0xFE, 0xFF]


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


@st.composite
def mutations(draw: st.DrawFn, batch: bytes, name: str = "") -> bytes:
    """Draw a damaged copy of the batch, with a correct length and checksum.

    One to three times, a byte after the magic byte is changed, inserted or removed, or the rest of the batch is cut
    off.
    """
    data = bytearray(batch)
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(17, len(data) - 1)) if len(data) > 18 else 17
        byte = draw(st.sampled_from(INTERESTING) | st.integers(0, 255))
        match draw(st.sampled_from(["change", "change", "change", "insert", "remove", "cut"])):
            case "change":
                data[at] = byte
            case "insert":
                data[at:at] = bytes([byte])
            case "remove" if len(data) > 40:
                del data[at]
            case "cut" if at > 40:
                del data[at:]
    return sealed(bytes(data), name)


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
