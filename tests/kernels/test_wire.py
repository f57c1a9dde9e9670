"""Checksums of every length and alignment equal those of two other libraries. Varints equal the reference's."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kfbench import FORMATS, Records
from kfbench.measure.verify import wrong_checksum
from tests.formats.fuzz import check_agrees_with_reference, sealed
from tests.reference import v23
from tests.reference.model import Message

NOISE = np.random.default_rng(5).integers(0, 256, 20_000, np.uint8).tobytes()
# Above 600: 3 x 128, 3 x 1024, and folds of 64 and 256 bytes; each exact and one byte off.
LENGTHS = [*range(601), *(size + step for size in (768, 1024, 3072, 6144, 16384) for step in (-1, 0, 1))]
PIECES = [1, 63, 64, 65, 0, 127, 128, 512, 7000, 3, 600, 6145, 40, 1024, 88, 513]
WITH_CHECKSUMS = {(type(fmt), fmt.magic): fmt for fmt in FORMATS.values() if fmt.checksum}.values()


def check_checksums(lengths: list[int], start: int = 0, fill: int = 0, batch_size: int = 1, key_bytes: int = 0) -> None:
    """Write and read values of these lengths as batches from byte `start` of a buffer whose other bytes are `fill`."""
    values = [NOISE[start : start + length] for length in lengths]
    records = Records.from_lists(values, [NOISE[:key_bytes]] * len(values))
    for fmt in WITH_CHECKSUMS:
        buffer = np.full(start + int(fmt.size(records, batch_size).sum()) + 64, fill, np.uint8)
        log = fmt.encode(records, batch_size, out=buffer[start:])
        assert wrong_checksum(log.data, fmt) is None
        assert fmt.decode(log.data).records == records


@pytest.mark.compiled_only
def test_every_length() -> None:
    check_checksums(LENGTHS)


@pytest.mark.compiled_only
@pytest.mark.parametrize("fill", [0, 0xFF])
def test_every_alignment_between_any_bytes(fill: int) -> None:
    for start in range(33):
        check_checksums([*range(34), 63, 64, 65, 127, 128, 383, 384, 385, 3073], start, fill)


@pytest.mark.parametrize("key_bytes", [0, 1, 61, 64, 300])
def test_a_checksum_of_many_pieces(key_bytes: int) -> None:
    """A batch is summed while its pieces are copied. Some are shorter and some longer than a step of the kernel."""
    for count in range(1, len(PIECES) + 1):
        check_checksums(PIECES[:count], batch_size=count, key_bytes=key_bytes)


@pytest.mark.parametrize("more", range(12))
@pytest.mark.parametrize("at", [2, 3], ids=["of 64 bits", "of 32 bits"])
@given(data=st.data())
def test_any_varint_reads_as_the_reference_reads_it(at: int, more: int, data: st.DataObject) -> None:
    """at: the byte of the timestamp or offset delta in a record. more: the number of bytes that another one follows."""
    groups = data.draw(st.lists(st.integers(0x80, 0xFF), min_size=more, max_size=more))
    sound = v23.encode("v2", [Message(offset=0, value=b"v" * 20)])
    record = bytearray(sound[61:])
    record[at : at + 1] = [*groups, data.draw(st.integers(0, 0xFF))]
    record[0] = 2 * (len(record) - 1)
    check_agrees_with_reference(sealed(sound[:61] + bytes(record)), "v2")
