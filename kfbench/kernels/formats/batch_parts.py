"""Count how many bytes each field takes in v2 and v3 batches."""

import numpy as np

from kfbench import layouts
from kfbench.kernels.formats import batch_header, headers_first, rows
from kfbench.kernels.formats.batch_tags import shared_bytes, tags_bytes
from kfbench.kernels.jit import kernel, leaf
from kfbench.kernels.wire.lengths import count_bytes, delta_code, length_bytes
from kfbench.kernels.wire.varint import uvarint_bytes, varint_bytes

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
    unsigned = features & batch_header.UNSIGNED != 0
    if magic == 3 and not features & batch_header.FIXED:
        last = uvarint_bytes(delta_code(span.last_delta, unsigned))
        out[LAST_PART] += last - FIXED_PART_BYTES[LAST_PART]
        out[BASE_TIME_PART] += varint_bytes(span.base_time_ms) - FIXED_PART_BYTES[BASE_TIME_PART]
        out[MAX_TIME_PART] += varint_bytes(span.max_time_ms - span.base_time_ms) - FIXED_PART_BYTES[MAX_TIME_PART]
    if features & batch_header.TAGGED:
        size = tags_bytes(row, columns, first, shared, unsigned)
        if shared:
            size -= shared_bytes(columns, first, shared, unsigned)
            start = np.int64(columns[4][first])
            _add_headers(out, columns, start, start + shared, unsigned)
        out[TAGS_PART] += size


@leaf
def _add_headers(out, columns, start, end, unsigned):
    """Add the field sizes of the record headers start to end - 1, and of their count, to `out`."""
    parts = out[HEADER_COUNT_PART:]
    parts[0] += count_bytes(end - start, unsigned)
    for h in range(start, end):
        key_length, value_length = np.int64(columns[5][h]), np.int64(columns[6][h])
        parts[1] += count_bytes(key_length, unsigned)
        parts[2] += key_length
        parts[3] += length_bytes(value_length, unsigned)
        parts[4] += max(value_length, 0)


@kernel
def breakdown(columns, bounds, fields, shared, magic, features, out):
    """Compute how many bytes each field takes, summed over all batches.

    Args:
        columns: arrays of `Shapes`: timestamps, offsets, lengths of keys and values, header bounds, lengths of header
            keys and header values.
        bounds: int64[batches + 1], the first record of each batch.
        fields: FIELDS rows, one for all batches or one per batch.
        shared: int64, the number of headers in tag 1, one item for all batches or one per batch.
        magic, features: 2 or 3, and the feature bits.
        out: int64[len(PARTS)]; the bytes of each field are added to it.
    """
    timestamps, offsets, key_lengths, value_lengths, header_bounds = columns[:5]
    attribute_bytes, unsigned = batch_header.attribute_bytes_of(features, magic), features & batch_header.UNSIGNED != 0
    parts = out[RECORD_PARTS_AT:]
    for b in range(len(bounds) - 1):
        first, end = np.uint64(bounds[b]), np.uint64(bounds[b + 1])
        row = fields[b if len(fields) > 1 else 0]
        span = batch_header.outline(
            columns, first, end, row, row.delete_horizon_ms, features & batch_header.TAGGED != 0
        )
        common = shared[b if len(shared) > 1 else 0]
        _add_batch_header(out, row, columns, first, span, common, magic, features)
        if features & batch_header.HEADERS_FIRST:
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
            start, stop = np.int64(header_bounds[i]) + common, np.int64(header_bounds[i + batch_header.ONE])
            _add_headers(out, columns, start, stop, unsigned)
