"""Columnar batches written by hand. The reference and the kernels both read, or both refuse, each of them."""

import struct

import pytest

from tests.formats.fuzz import check_agrees_with_reference, sealed
from tests.reference.model import Message, RefusedError
from tests.research.columnar import reference as columnar

NO_TIME = "ffffffffffff"  # maximum timestamp of a batch without timestamps


def batch(covered: str, magic: int = 5) -> bytes:
    """Return a batch with base offset 0, correct length and checksum.

    covered: its bytes from the attributes on, in hexadecimal.
    """
    return sealed(struct.pack(">qiibI", 0, 0, -1, magic, 0) + bytes.fromhex(covered))


def read(covered: str) -> list[Message]:
    data = batch(covered)
    found = columnar.decode_one(data, 0)
    assert found.size_bytes == len(data)
    check_agrees_with_reference(data)
    return list(found.messages)


def refused(covered: str, why: str) -> None:
    data = batch(covered)
    with pytest.raises(RefusedError, match=why):
        columnar.decode_one(data, 0)
    check_agrees_with_reference(data)
