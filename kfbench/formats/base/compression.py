"""Compressed bodies of batches, and chunks of a compressed log joined to one."""

import numpy as np

from kfbench.arrays import Bytes, Int64, check_buffer
from kfbench.codecs import Codec, join_payloads


def gather(pieces: list[tuple[Bytes, Int64]], out: Bytes | None) -> tuple[Bytes, Int64]:
    """Join chunks of data and positions, in `out` if it is given."""
    sizes = [len(data) for data, _ in pieces]
    total = sum(sizes)
    if out is not None:
        check_buffer(out, total)
    data = np.zeros(0, np.uint8)
    if pieces:
        data = np.concatenate([data for data, _ in pieces], out=None if out is None else out[:total])
    starts = np.cumsum([0, *sizes])
    positions = [positions[:-1] + start for (_, positions), start in zip(pieces, starts, strict=False)]
    return data, np.concatenate([*positions, starts[-1:]]).astype(np.int64)


def compress_bodies(codec: Codec, level: int | None, plain: Bytes, starts: Int64, ends: Int64) -> tuple[Bytes, Int64]:
    """Compress plain[starts[b]:ends[b]] of each batch: the payload and its bounds. An empty body stays empty."""
    return join_payloads(
        [
            codec.compress(plain[start:end], level) if start < end else b""
            for start, end in zip(starts.tolist(), ends.tolist(), strict=True)
        ]
    )
