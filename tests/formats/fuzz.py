"""Damage that a checksum does not catch: bytes changed inside a batch, and its checksum made to fit again."""

import struct
import zlib
from contextlib import suppress

import crc32c
from hypothesis import strategies as st

from kfbench.errors import CorruptLog
from kfbench.log import read_log, write_log
from tests.common import check_decoded
from tests.reference import log as reference_log
from tests.reference.model import RefusedError

INTERESTING = [0, 1, 2, 3, 4, 7, 0x14, 0x16, 0x7E, 0x7F, 0x80, 0x81, 0xFE, 0xFF]


def sealed(batch: bytes) -> bytes:
    """One batch with length and checksum as its bytes ask for."""
    magic = batch[16]
    batch = batch[:8] + struct.pack(">i", len(batch) - 12) + batch[12:]
    if magic > 1:
        return batch[:17] + struct.pack(">I", crc32c.crc32c(batch[21:])) + batch[21:]
    return batch[:12] + struct.pack(">I", zlib.crc32(batch[16:])) + batch[16:]


@st.composite
def mutations(draw: st.DrawFn, batch: bytes) -> bytes:
    """`batch` with some bytes changed, put in or taken out, all of it behind the magic byte, and sealed."""
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
    return sealed(bytes(data))


def check_agrees_with_reference(data: bytes) -> None:
    """Either both refuse the batch, or both read the same; a canonical one is written back byte for byte."""
    batches, trailing, back, refusal = None, 0, None, None
    with suppress(RefusedError):
        batches, trailing = reference_log.decode(data)
    try:
        back = read_log(data)
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
        assert bytes(write_log(back)) == data[: len(data) - trailing]
