"""Reading a file in pieces yields each whole batch once, for every size of a piece."""

import os
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kfbench import FORMATS
from kfbench.errors import CorruptLog, InvalidRecords
from kfbench.formats import Entries
from kfbench.log.pieces import Piece, first_batch, pieces
from tests.common import records_of
from tests.reference.model import Message
from tests.strategies import NOW_MS

SAMPLE = [Message(offset=i, timestamp_ms=NOW_MS + i, key=b"k%d" % i, value=b"v" * (i * 7 % 90)) for i in range(40)]
LOG = b"".join(
    bytes(FORMATS[name].encode(records_of(SAMPLE), size, codec, lossy=True))
    for name, size, codec in (
        ("v0", 1, "none"),
        ("v1", 9, "gzip"),
        ("v2", 7, "none"),
        ("v3", 3, "lz4"),
        ("columnar", 3, "lz4"),
    )
)


@pytest.fixture(scope="module")
def segment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("pieces") / "00000000000000000000.log"
    path.write_bytes(LOG)
    return path


def check(found: list[Piece], log: bytes) -> None:
    whole = Entries.of(np.frombuffer(log, np.uint8))
    assert b"".join(piece.data.tobytes() for piece in found) == log[: whole.positions[-1]]
    at = 0
    for piece in found:
        assert piece.at == at
        assert piece.positions[0] == 0
        assert piece.positions[-1] == len(piece.data)
        at += len(piece.data)
    assert np.concatenate([piece.magics for piece in found]).tolist() == whole.magics.tolist()
    starts = np.concatenate([piece.positions[:-1] + piece.at for piece in found])
    assert starts.tolist() == whole.positions[:-1].tolist()
    assert [piece.trailing_bytes for piece in found[:-1]] == [0] * (len(found) - 1)
    assert found[-1].trailing_bytes == whole.trailing_bytes


@given(piece_bytes=st.integers(12, len(LOG) + 100), cut=st.integers(0, len(LOG)))
def test_every_batch_once(segment: Path, piece_bytes: int, cut: int) -> None:
    segment.write_bytes(LOG[:cut])
    found = list(pieces(segment, piece_bytes))
    check(found, LOG[:cut])
    largest = int(np.diff(Entries.of(np.frombuffer(LOG, np.uint8)).positions).max())
    assert max(len(piece.data) for piece in found) <= max(piece_bytes, largest)
    if piece_bytes > largest:
        assert len(found) <= 1 + len(LOG) // (piece_bytes - largest)


@given(cuts=st.lists(st.integers(0, len(LOG)), max_size=4), piece_bytes=st.integers(12, len(LOG) + 100))
def test_shares_hold_every_batch_once(segment: Path, cuts: list[int], piece_bytes: int) -> None:
    """A file is divided at any bytes into shares. Each batch is read with the share in which it starts."""
    segment.write_bytes(LOG)
    descriptor = os.open(segment, os.O_RDONLY)
    starts = Entries.of(np.frombuffer(LOG, np.uint8)).positions[:-1]
    bounds = [0, *sorted(cuts), len(LOG)]
    try:
        for wanted, end in pairwise(bounds):
            start = first_batch(descriptor, wanted, len(LOG))
            assert start is not None
            assert start == min([*starts[starts >= wanted], len(LOG)])
            found = list(pieces(descriptor, piece_bytes, start=start, end=end))
            begun = [piece.at + at for piece in found for at in piece.positions[:-1]]
            assert begun == starts[(starts >= wanted) & (starts < end)].tolist()
            assert all(piece.data.tobytes() == LOG[piece.at : piece.at + len(piece.data)] for piece in found)
    finally:
        os.close(descriptor)


@pytest.mark.parametrize("length", [0, 13, -1, 1 << 20])
def test_no_share_begins_behind_a_length_that_cannot_be_skipped(segment: Path, length: int) -> None:
    segment.write_bytes(LOG + LOG[:8] + length.to_bytes(4, "big", signed=True) + LOG[12:])
    with segment.open("rb") as file:
        assert first_batch(file.fileno(), len(LOG), 1 << 16) == len(LOG)
        assert first_batch(file.fileno(), len(LOG) + 1, 1 << 16) is None
    with pytest.raises(CorruptLog) as refusal:
        list(pieces(segment, 300, 1 << 16))
    assert refusal.value.position == len(LOG)


def test_no_share_begins_in_an_incomplete_batch(segment: Path) -> None:
    segment.write_bytes(LOG[:-1])
    with segment.open("rb") as file:
        assert first_batch(file.fileno(), len(LOG) - 2, len(LOG)) is None


def test_an_open_file(segment: Path) -> None:
    segment.write_bytes(LOG)
    descriptor = os.open(segment, os.O_RDONLY)
    try:
        for _ in range(2):  # each call reads from byte 0 and leaves the file open
            check(list(pieces(descriptor, 500)), LOG)
    finally:
        os.close(descriptor)


def test_a_false_length_allocates_nothing(segment: Path) -> None:
    false_log = LOG + LOG[:8] + (2**31 - 1).to_bytes(4, "big") + LOG[12:40]
    segment.write_bytes(false_log)
    found = list(pieces(segment, 100))
    check(found, false_log)
    assert found[-1].trailing_bytes == 40


def test_a_batch_above_the_bound_is_refused_after_those_before(segment: Path) -> None:
    starts = Entries.of(np.frombuffer(LOG, np.uint8)).positions
    largest = int(np.diff(starts).argmax())
    most_bytes = int(np.diff(starts)[largest]) - 1
    segment.write_bytes(LOG)
    first_bytes = int(starts[1])
    for piece_bytes, bound, batch in ((20, most_bytes, largest), (100, most_bytes, largest), (20, first_bytes - 1, 0)):
        found: list[Piece] = []
        with pytest.raises(CorruptLog) as refusal:
            found.extend(pieces(segment, piece_bytes, bound))  # the content read before stays
        assert (refusal.value.position, refusal.value.field) == (starts[batch], "length")
        assert f"{bound + 1} bytes" in refusal.value.promise and f"take {bound}" in refusal.value.promise
        assert b"".join(piece.data.tobytes() for piece in found) == LOG[: starts[batch]]
    check(list(pieces(segment, 100, most_bytes + 1)), LOG)


def test_a_file_that_begins_above_the_bound_has_no_batch(segment: Path) -> None:
    segment.write_bytes(b"a plain text" * 100)
    [piece] = pieces(segment, 100, 1 << 20)
    assert (len(piece.data), piece.trailing_bytes) == (0, 1200)


def test_invalid_sizes_and_empty_files(segment: Path) -> None:
    with pytest.raises(InvalidRecords, match="piece_bytes"):
        next(pieces(segment, 11))
    segment.write_bytes(b"")
    (piece,) = pieces(segment)
    assert (len(piece.data), len(piece.magics), piece.trailing_bytes) == (0, 0, 0)
