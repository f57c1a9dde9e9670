"""Short logs of plain batches are read in one call, with the results and errors of the general reader."""

from collections.abc import Callable
from functools import partial

import numpy as np
import pytest

from kfbench import FORMATS, DecodedLog, Records
from kfbench.arrays import as_bytes
from kfbench.errors import CorruptLog
from kfbench.formats.base.format import Format
from kfbench.formats.base.short_log import read_short
from tests.common import records_of
from tests.reference.model import Message
from tests.strategies import NOW_MS

PLAIN = [Message(offset=i, timestamp_ms=NOW_MS + i, key=b"k" * i or None, value=b"v" * 200) for i in range(4)]


def general(name: str, data: bytes) -> DecodedLog:
    return Format.decode(FORMATS[name], data)


def encoded(name: str, batch_size: int = 2) -> bytes:
    return bytes(FORMATS[name].encode(records_of(PLAIN), batch_size))


@pytest.mark.parametrize("name", ["v2", "v3", "v3-header-only", "v3-attributes-only"])
def test_plain_batches_are_read_in_one_call(name: str) -> None:
    data = encoded(name)
    short = read_short(as_bytes("data", data), FORMATS[name].magic)
    assert short is not None and short.records == records_of(PLAIN) and short.bounds.tolist() == [0, 2, 4]
    assert all(not column.flags.writeable for column in short.records.columns)
    assert np.array_equal(short.batch_rows, general(name, data).batch_rows)
    empty = read_short(as_bytes("data", b""), FORMATS[name].magic)
    assert empty is not None and not len(empty.records) and empty.bounds.tolist() == [0]


def outcome(read: Callable[[bytes], DecodedLog], data: bytes) -> str | tuple[Records, int]:
    """Return the error's text, or the records and the size of an incomplete batch."""
    try:
        found = read(data)
    except CorruptLog as error:
        return str(error)
    return found.records, found.trailing_bytes


@pytest.mark.compiled_only
@pytest.mark.parametrize("name", ["v2", "v3"])
def test_damage_is_reported_as_by_the_general_reader(name: str) -> None:
    sound = encoded(name)
    for at in range(len(sound)):
        flipped = sound[:at] + bytes([sound[at] ^ 1 << at % 8]) + sound[at + 1 :]
        for damaged in (sound[:at], flipped):
            assert outcome(FORMATS[name].decode, damaged) == outcome(partial(general, name), damaged)
