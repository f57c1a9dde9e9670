"""Write v2 and v3 batches: header, tagged fields, records, checksum. Compute their sizes, and the bytes of each field.

`KERNELS` has the encoder and the sizer for each combination of the attribute bits that change the layout of records.
"""

from typing import Any, NamedTuple

import numpy as np

from kfbench import layouts
from kfbench.kernels.formats import headers_first, rows
from kfbench.kernels.formats.batch_header import (
    ATTRIBUTES,
    BARE,
    CRC,
    FIXED,
    HEADERS_FIRST,
    ONE,
    TAGGED,
    UNSIGNED,
    attribute_bytes_of,
    attributes_of,
    outline,
    put_header,
    untagged_bytes,
)
from kfbench.kernels.formats.batch_tags import put_tags, shared_bytes, tags_bytes
from kfbench.kernels.jit import kernel, leaf, variant
from kfbench.kernels.wire.crc import CRC32C_START, crc32c_finish
from kfbench.kernels.wire.lengths import RecordColumns, ShapeColumns, count_bytes, delta_code, length_bytes
from kfbench.kernels.wire.sealing import FULL, NEVER, OFFSET_TOO_FAR, OK, OUT_TOO_SMALL, RunningCrc, problem_of, seal
from kfbench.kernels.wire.varint import uvarint_bytes, varint_bytes

# Each variant replaces these: metadata precedes the payload, fields are tagged, and lengths are unsigned varints.
METADATA_FIRST, WITH_TAGS, WITHOUT_ZIGZAG = False, False, False

_V2 = layouts.V2_HEADER
# Header fields have a prefix, because some names, such as "length", are also record fields.
HEADER_PARTS = tuple(f"batch_header.{name}" for name in _V2.names)
TAGS_PART = len(HEADER_PARTS)
RECORD_PARTS_AT = TAGS_PART + 1
RECORD_PARTS = (
    "length", "metadata_length", "attributes", "timestamp_delta", "offset_delta", "key_length", "key",
    "value_length", "value", "header_count", "header_key_length", "header_key", "header_value_length",
    "header_value",
)  # fmt: skip
PARTS = (*HEADER_PARTS, "batch_header.tagged_fields", *RECORD_PARTS)
HEADER_COUNT_PART = PARTS.index("header_count")
LAST_PART, BASE_TIME_PART, MAX_TIME_PART = (
    _V2.names.index(name) for name in ("last_offset_delta", "base_timestamp_ms", "max_timestamp_ms")
)
FIXED_PART_BYTES = np.array([_V2[name].itemsize for name in _V2.names])


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


def _encode(columns, bounds, fields, tags, shared, magic, features, codec, out, positions, bodies):
    """Write batches one after another.

    With a codec, the caller compresses the records later. They are written uncompressed, without batch length and
    checksum.

    Args:
        columns: RecordColumns.
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
    columns, attribute_bytes, at = RecordColumns(*columns), 0 if features & BARE else 1, 0
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
        if METADATA_FIRST:
            body = headers_first.put_body(
                out, at, columns, first, end, span, attribute_bytes, common, WITHOUT_ZIGZAG, crc
            )
        else:
            body = rows.put_body(out, at, columns, first, end, span, attribute_bytes, common, WITHOUT_ZIGZAG, crc)
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


def _sizes(columns, bounds, fields, shared, magic, features, out):
    """Compute the size of each batch without compression.

    Args:
        columns: ShapeColumns or RecordColumns.
        bounds, fields, shared, magic, features: as in `_encode`.
        out: int64[batches], filled with bytes.
    """
    columns, attribute_bytes = ShapeColumns(*columns[:7]), 0 if features & BARE else 1
    for b in range(len(bounds) - 1):
        first, end = np.uint64(bounds[b]), np.uint64(bounds[b + 1])
        row = fields[b if len(fields) > 1 else 0]
        span = outline(columns, first, end, row, row.delete_horizon_ms, features & TAGGED != 0)
        total, common = untagged_bytes(span, magic, features), np.int64(0)
        if features & TAGGED:
            common = shared[b if len(shared) > 1 else 0]
            total += tags_bytes(row, columns, first, common, WITHOUT_ZIGZAG)
        if METADATA_FIRST:
            total += headers_first.body_bytes(columns, first, end, span, attribute_bytes, common, WITHOUT_ZIGZAG)
        else:
            total += rows.body_bytes(columns, first, end, span, attribute_bytes, common, WITHOUT_ZIGZAG)
        out[b] = total


class WritingKernels(NamedTuple):
    """The encoder and the sizer of a record layout."""

    encode: Any
    sizes: Any


def _kernels_for(metadata_first, unsigned, tagged):
    layout = {"METADATA_FIRST": metadata_first != 0, "WITHOUT_ZIGZAG": unsigned != 0}
    bits = metadata_first | unsigned
    encode = variant(_encode, f"encode_{bits | tagged:04x}", WITH_TAGS=tagged != 0, **layout)
    return WritingKernels(encode, variant(_sizes, f"sizes_{bits:04x}", **layout))


LAYOUT_BITS = HEADERS_FIRST | UNSIGNED | TAGGED
KERNELS = {  # by the layout's bits in the attributes
    metadata_first | unsigned | tagged: _kernels_for(metadata_first, unsigned, tagged)
    for metadata_first in (0, HEADERS_FIRST)
    for unsigned in (0, UNSIGNED)
    for tagged in (0, TAGGED)
}


@leaf
def _add_batch_header(out, row, columns, first, span, shared, magic, features):
    """Add the field sizes of one batch header to `out`. Record headers in tag 1 count as record headers.

    Args:
        out, columns, magic, features: as in `breakdown`.
        row, first, span: the batch's FIELDS row, first record and Outline.
        shared: the number of headers in tag 1.
    """
    for k in range(len(FIXED_PART_BYTES)):
        out[k] += FIXED_PART_BYTES[k]
    unsigned = features & UNSIGNED != 0
    if magic == 3 and not features & FIXED:
        last = uvarint_bytes(delta_code(span.last_delta, unsigned))
        out[LAST_PART] += last - FIXED_PART_BYTES[LAST_PART]
        out[BASE_TIME_PART] += varint_bytes(span.base_time_ms) - FIXED_PART_BYTES[BASE_TIME_PART]
        out[MAX_TIME_PART] += varint_bytes(span.max_time_ms - span.base_time_ms) - FIXED_PART_BYTES[MAX_TIME_PART]
    if features & TAGGED:
        size = tags_bytes(row, columns, first, shared, unsigned)
        if shared:
            size -= shared_bytes(columns, first, shared, unsigned)
            start = np.int64(columns.header_bounds[first])
            _add_headers(out, columns, start, start + shared, unsigned)
        out[TAGS_PART] += size


@leaf
def _add_headers(out, columns, start, end, unsigned):
    """Add the field sizes of the record headers start to end - 1, and of their count, to `out`."""
    parts = out[HEADER_COUNT_PART:]
    parts[0] += count_bytes(end - start, unsigned)
    for h in range(start, end):
        key_length, value_length = np.int64(columns.header_key_lengths[h]), np.int64(columns.header_value_lengths[h])
        parts[1] += count_bytes(key_length, unsigned)
        parts[2] += key_length
        parts[3] += length_bytes(value_length, unsigned)
        parts[4] += max(value_length, 0)


@kernel
def breakdown(columns, bounds, fields, shared, magic, features, out):
    """Compute how many bytes each field takes, summed over all batches.

    Args:
        columns: ShapeColumns or RecordColumns.
        bounds: int64[batches + 1], the first record of each batch.
        fields: FIELDS rows, one for all batches or one per batch.
        shared: int64, the number of headers in tag 1, one item for all batches or one per batch.
        magic, features: 2 or 3, and the feature bits.
        out: int64[len(PARTS)]; the bytes of each field are added to it.
    """
    columns = ShapeColumns(*columns[:7])
    timestamps, offsets, key_lengths, value_lengths, header_bounds = columns[:5]
    attribute_bytes, unsigned = attribute_bytes_of(features, magic), features & UNSIGNED != 0
    parts = out[RECORD_PARTS_AT:]
    for b in range(len(bounds) - 1):
        first, end = np.uint64(bounds[b]), np.uint64(bounds[b + 1])
        row = fields[b if len(fields) > 1 else 0]
        span = outline(columns, first, end, row, row.delete_horizon_ms, features & TAGGED != 0)
        common = shared[b if len(shared) > 1 else 0]
        _add_batch_header(out, row, columns, first, span, common, magic, features)
        if features & HEADERS_FIRST:
            if first < end:
                sizes = headers_first.sizes_of(columns, first, end, span, attribute_bytes, common, unsigned)
                parts[1] += uvarint_bytes(np.uint64(sizes.metadata))
        else:
            for i in range(first, end):
                size = rows.size_of(columns, i, span, attribute_bytes, common, unsigned)
                parts[0] += count_bytes(size, unsigned)
        for i in range(first, end):
            key_length, value_length = np.int64(key_lengths[i]), np.int64(value_lengths[i])
            parts[2] += attribute_bytes
            parts[3] += varint_bytes(timestamps[i] - span.base_time_ms)
            parts[4] += uvarint_bytes(delta_code(offsets[i] - span.base_offset, unsigned))
            parts[5] += length_bytes(key_length, unsigned)
            parts[6] += max(key_length, 0)
            parts[7] += length_bytes(value_length, unsigned)
            parts[8] += max(value_length, 0)
            start, stop = np.int64(header_bounds[i]) + common, np.int64(header_bounds[i + ONE])
            _add_headers(out, columns, start, stop, unsigned)
