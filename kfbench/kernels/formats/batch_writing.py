"""Encoders of v2 and v3 batches: header, tagged fields, records, checksum.

`rows` and `headers_first` compile `encode` and `sizes` with their own `put_body` and `body_bytes` (`kernels_for`).
"""

from typing import Any, NamedTuple

import numpy as np

from kfbench.kernels.formats.batch_header import (
    ATTRIBUTES,
    BARE,
    CRC,
    TAGGED,
    attributes_of,
    outline,
    put_header,
    untagged_bytes,
)
from kfbench.kernels.formats.batch_tags import put_tags, tags_bytes
from kfbench.kernels.jit import variant
from kfbench.kernels.wire.crc import CRC32C_START, crc32c_finish
from kfbench.kernels.wire.sealing import FULL, NEVER, OFFSET_TOO_FAR, OK, OUT_TOO_SMALL, RunningCrc, problem_of, seal

WITH_TAGS, WITHOUT_ZIGZAG = False, False


def put_body(out, at, columns, first, end, span, attribute_bytes, shared, unsigned, crc):
    """Write the records first to end - 1. Return a `sealing.Body`, whose position is FULL where they do not fit.

    Args:
        out, at: uint8 buffer and position.
        columns: as in `encode`.
        first, end: uint64, records of the batch.
        span: its Outline.
        attribute_bytes: what each record's attributes take, 0 or 1.
        shared: how many headers of each record are in tag 1, and not written.
        unsigned: a literal, see `wire.lengths`.
        crc: the RunningCrc of what is written so far.
    """
    raise NotImplementedError


def body_bytes(columns, first, end, span, attribute_bytes, shared, unsigned):
    """Return the bytes that `put_body` would write; columns: those of `Shapes` suffice."""
    raise NotImplementedError


def encode(columns, bounds, fields, tags, shared, magic, features, codec, out, positions, bodies):
    """Write batches one after another. With a codec their records stay plain, and length and checksum unset.

    Args:
        columns: of `Records`: timestamps, offsets, lengths of keys and values, header bounds, lengths of header keys
            and values; then data and starts of keys, values, header keys, header values.
        bounds: int64[batches + 1], the first record of each batch.
        fields: FIELDS rows, one for all batches or one per batch.
        tags: uint8, the callers' tagged fields as bytes.
        shared: int64, how many headers go into tag 1, one item for all batches or one per batch.
        magic, features, codec: 2 or 3, the feature bits, the codec's number.
        out: uint8 buffer.
        positions: int64[batches + 1], to be filled: where each batch begins.
        bodies: int64[batches], to be filled: where its records begin.

    Returns (problem, batch): OK, or why that batch cannot be written.
    """
    attribute_bytes = 0 if features & BARE else 1
    at = 0
    for b in range(len(bounds) - 1):
        first, end = np.uint64(bounds[b]), np.uint64(bounds[b + 1])
        row = fields[b if len(fields) > 1 else 0]
        span = outline(columns, first, end, row, row.delete_horizon_ms, features & TAGGED != 0)
        if (span.last_delta + 2**31) >> 32:
            return OFFSET_TOO_FAR, b
        count, common = np.int64(end - first), np.int64(0)
        room = untagged_bytes(span, magic, features)
        if WITH_TAGS:
            common = shared[b if len(shared) > 1 else 0]
            room += tags_bytes(row, columns, first, common, WITHOUT_ZIGZAG)
        if room > len(out) - at:
            return OUT_TOO_SMALL, b
        start = at
        positions[b] = start
        is_sealed = codec == 0 or count == 0
        at = put_header(out, at, row, magic, attributes_of(row, codec, features, count), span, count)
        if WITH_TAGS:
            at = put_tags(out, at, row, tags, columns, first, common, WITHOUT_ZIGZAG)
        bodies[b] = at
        crc = RunningCrc(CRC32C_START, np.int64(start + ATTRIBUTES if is_sealed else NEVER))
        body = put_body(out, at, columns, first, end, span, attribute_bytes, common, WITHOUT_ZIGZAG, crc)
        if body.at == FULL:
            return OUT_TOO_SMALL, b
        at = body.at
        problem = problem_of(start, at, body.far)
        if problem != OK:
            return problem, b
        if is_sealed:
            seal(out, start, at, CRC, crc32c_finish(body.crc.value, out, body.crc.summed, at))
    positions[len(bounds) - 1] = at
    return OK, 0


def sizes(columns, bounds, fields, shared, magic, features, out):
    """Fill out int64[batches] with the bytes of each batch, uncompressed. Arguments as in `encode`."""
    attribute_bytes = 0 if features & BARE else 1
    for b in range(len(bounds) - 1):
        first, end = np.uint64(bounds[b]), np.uint64(bounds[b + 1])
        row = fields[b if len(fields) > 1 else 0]
        span = outline(columns, first, end, row, row.delete_horizon_ms, features & TAGGED != 0)
        total, common = untagged_bytes(span, magic, features), np.int64(0)
        if features & TAGGED:
            common = shared[b if len(shared) > 1 else 0]
            total += tags_bytes(row, columns, first, common, WITHOUT_ZIGZAG)
        out[b] = total + body_bytes(columns, first, end, span, attribute_bytes, common, WITHOUT_ZIGZAG)


class BatchKernels(NamedTuple):
    """The kernels of one way to write records; see `encode` and `sizes`."""

    encode: Any
    encode_tagged: Any
    encode_unsigned: Any
    encode_tagged_unsigned: Any
    sizes: Any
    sizes_unsigned: Any


def kernels_for(module, put_body, body_bytes):
    """Return the BatchKernels of a module, which has these two helpers."""
    encoders = [
        variant(encode, name, module, put_body=put_body, WITH_TAGS=with_tags, WITHOUT_ZIGZAG=without_zigzag)
        for name, with_tags, without_zigzag in (
            ("encode", False, False),
            ("encode_tagged", True, False),
            ("encode_unsigned", False, True),
            ("encode_tagged_unsigned", True, True),
        )
    ]
    sizers = [
        variant(sizes, name, module, body_bytes=body_bytes, WITHOUT_ZIGZAG=without_zigzag)
        for name, without_zigzag in (("sizes", False), ("sizes_unsigned", True))
    ]
    return BatchKernels(*encoders, *sizers)
