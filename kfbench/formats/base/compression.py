"""Compress the bodies of batches, and join pieces of an encoded log."""

from typing import NamedTuple

import numpy as np

from kfbench.arrays import Bytes, Int64, check_buffer
from kfbench.codecs import Codec, Level, Payloads, join_payloads


class BatchBytes(NamedTuple):
    """Encoded batches in one uint8 buffer: batch b is data[positions[b]:positions[b + 1]].

    positions: int64[batches + 1].
    """

    data: Bytes
    positions: Int64


def join_batches(pieces: list[BatchBytes], out: Bytes | None) -> BatchBytes:
    """Join pieces of a log in a new buffer, or in `out` if it is given. Raises InvalidRecords if `out` is too small."""
    sizes = [len(piece.data) for piece in pieces]
    total = sum(sizes)
    if out is not None:
        check_buffer(out, total)
    data = np.zeros(0, np.uint8)
    if pieces:
        data = np.concatenate([piece.data for piece in pieces], out=None if out is None else out[:total])
    starts = np.cumsum([0, *sizes])
    positions = [piece.positions[:-1] + start for piece, start in zip(pieces, starts, strict=False)]
    return BatchBytes(data, np.concatenate([*positions, starts[-1:]]).astype(np.int64))


def compress_bodies(codec: Codec, level: Level, plain: Bytes, starts: Int64, ends: Int64) -> Payloads:
    """Compress plain[starts[b]:ends[b]] of each batch b as one payload. An empty body stays empty."""
    return join_payloads(
        [
            codec.compress(plain[start:end], level) if start < end else b""
            for start, end in zip(starts.tolist(), ends.tolist(), strict=True)
        ]
    )
