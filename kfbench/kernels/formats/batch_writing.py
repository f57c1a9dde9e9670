"""Write v2 and v3 batches: header, tagged fields, records, checksum.

The modules `rows` and `headers_first` each define `put_body` and `body_bytes` for their order of record fields.
`kernels_for` compiles `encode` and `sizes` with these two functions.
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
from kfbench.kernels.jit import leaf, variant
from kfbench.kernels.wire.crc import CRC32C_START, crc32c_finish
from kfbench.kernels.wire.sealing import FULL, NEVER, OFFSET_TOO_FAR, OK, OUT_TOO_SMALL, RunningCrc, problem_of, seal

WITH_TAGS, WITHOUT_ZIGZAG = False, False


def put_body(out, at, columns, first, end, span, attribute_bytes, shared, unsigned, crc):
    """Write the records first to end - 1 of a batch. Return a `sealing.Body`; its position is FULL if they do not fit.

    Args:
        out, at: uint8 buffer and position.
        columns: as in `encode`.
        first, end: uint64, bounds of the batch's records.
        span: the Outline of the batch.
        attribute_bytes: the size of each record's attributes, 0 or 1.
        shared: the number of headers per record that tag 1 has; they are not written again.
        unsigned: a literal, see `wire.lengths`.
        crc: the RunningCrc of the batch up to `at`.
    """
    raise NotImplementedError


def body_bytes(columns, first, end, span, attribute_bytes, shared, unsigned):
    """Return the number of bytes that `put_body` would write.

    Args:
        columns: those of `Shapes` or `Records`.
        first, end, span, attribute_bytes, shared, unsigned: as in `put_body`.
    """
    raise NotImplementedError


class Unsealed(NamedTuple):
    """A batch out[start:end] without length and checksum; end is 0 if there is none. crc: its RunningCrc."""

    start: int
    end: int
    crc: RunningCrc


@leaf
def _seal(out, unsealed):
    """Write the length and the checksum of a batch.

    Call this after the next batch is written. The CPU cannot read the last bytes of a batch until its stores are done,
    so for batches of one record, sealing at once measured 10 % slower.
    """
    start, end, crc = unsealed
    if end:
        seal(out, start, end, CRC, crc32c_finish(crc.value, out, crc.summed, end))


def encode(columns, bounds, fields, tags, shared, magic, features, codec, out, positions, bodies):
    """Write batches one after another.

    With a codec, the caller compresses the records later. They are written uncompressed, without batch length and
    checksum.

    Args:
        columns: arrays of `Records`: timestamps, offsets, lengths of keys and values, header bounds, lengths of header
            keys and header values; then data and starts of keys, values, header keys, header values.
        bounds: int64[batches + 1], the first record of each batch.
        fields: FIELDS rows, one for all batches or one per batch.
        tags: uint8, the bytes of tagged fields that callers set.
        shared: int64, the number of headers in tag 1, one item for all batches or one per batch.
        magic, features, codec: 2 or 3, the feature bits, the codec's number.
        out: uint8 buffer, filled.
        positions: int64[batches + 1], filled with the start of each batch.
        bodies: int64[batches], filled with the start of its records.

    Returns:
        OK or the problem that stopped the encoder, and the number of the batch with the problem.
    """
    attribute_bytes = 0 if features & BARE else 1
    at = 0
    unsealed = Unsealed(np.int64(0), np.int64(0), RunningCrc(CRC32C_START, np.int64(0)))
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
            _seal(out, unsealed)
            unsealed = Unsealed(np.int64(start), np.int64(at), body.crc)
    _seal(out, unsealed)
    positions[len(bounds) - 1] = at
    return OK, 0


def sizes(columns, bounds, fields, shared, magic, features, out):
    """Compute the size of each batch without compression.

    Args:
        columns: those of `Shapes` or `Records`.
        bounds, fields, shared, magic, features: as in `encode`.
        out: int64[batches], filled with bytes.
    """
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
    """The kernels `encode` and `sizes`, compiled for one record layout."""

    encode: Any
    encode_tagged: Any
    encode_unsigned: Any
    encode_tagged_unsigned: Any
    sizes: Any
    sizes_unsigned: Any


def kernels_for(module, put_body, body_bytes):
    """Compile `encode` and `sizes` for `module` with its functions `put_body` and `body_bytes`."""
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
