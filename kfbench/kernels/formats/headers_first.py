"""v3 batches with attribute bit 10: metadata of all records, then all payload (KIP-931, "[Additional proposal]").

A batch has `metadataLength uvarint`, the metadata of each record, then the payload of each record. The metadata are
attributes (unless bit 7), timestamp delta, offset delta, key length, value length, header count, and each header's key
and value lengths. The payload is key, value, and each header's key and value. A reader of offsets and times needs only
the metadata.
"""

from typing import NamedTuple

import numpy as np

from kfbench.kernels.formats.batch_header import NULL, ONE
from kfbench.kernels.jit import leaf
from kfbench.kernels.simd.intrinsics import put_u8
from kfbench.kernels.wire import status
from kfbench.kernels.wire.lengths import (
    count_bytes,
    delta_code,
    get_count,
    get_delta,
    get_length,
    length_bytes,
    put_count,
    put_length,
)
from kfbench.kernels.wire.sealing import FULL, INT32_MAX, NEVER, Body, extend_crc
from kfbench.kernels.wire.varint import (
    get_uvarint,
    get_varlong,
    put_bytes,
    put_uvarint,
    uvarint_bytes,
    varint_bytes,
    zigzag,
)


class BodySizes(NamedTuple):
    """The sizes of a batch's metadata and payload in bytes. far: see `sealing.Body`; it shows deltas above int32."""

    metadata: int
    payload: int
    far: int


@leaf
def sizes_of(columns, first, end, span, attribute_bytes, shared, unsigned):
    """Compute the sizes of metadata and payload of a batch. Args: as in `body_bytes`."""
    timestamps, offsets, key_lengths, value_lengths, header_bounds, header_key_lengths, header_value_lengths = columns[
        :7
    ]
    metadata, payload, far = np.int64(0), np.int64(0), np.int64(0)
    for i in range(first, end):
        delta = offsets[i] - span.base_offset
        far |= delta + 2**31
        key_length, value_length = np.int64(key_lengths[i]), np.int64(value_lengths[i])
        metadata += (
            varint_bytes(timestamps[i] - span.base_time_ms) + uvarint_bytes(delta_code(delta, unsigned))
            + length_bytes(key_length, unsigned) + length_bytes(value_length, unsigned)
        )  # fmt: skip
        payload += max(key_length, 0) + max(value_length, 0)
    metadata += np.int64(end - first) * (attribute_bytes + 1)  # the header count 0 takes one byte
    if first < end and header_bounds[first] != header_bounds[end]:
        for i in range(first, end):
            start, stop = np.int64(header_bounds[i]) + shared, np.int64(header_bounds[i + ONE])
            metadata += count_bytes(stop - start, unsigned) - 1
            for h in range(np.uint64(start), np.uint64(stop)):
                key_length, value_length = np.int64(header_key_lengths[h]), np.int64(header_value_lengths[h])
                metadata += count_bytes(key_length, unsigned) + length_bytes(value_length, unsigned)
                payload += key_length + max(value_length, 0)
    return BodySizes(metadata, payload, far)


@leaf
def body_bytes(columns, first, end, span, attribute_bytes, shared, unsigned):
    """Return the number of bytes that `put_body` would write. columns: ShapeColumns. Other args: as in `put_body`."""
    if first == end:
        return np.int64(0)
    sizes = sizes_of(columns, first, end, span, attribute_bytes, shared, unsigned)
    return uvarint_bytes(np.uint64(sizes.metadata)) + sizes.metadata + sizes.payload


@leaf
def _put_metadata(out, at, columns, first, end, span, attribute_bytes, shared, with_headers, unsigned):
    """Write the metadata of all records of a batch. Return the next position.

    Args:
        out, at, columns, first, end, span, attribute_bytes, shared, unsigned: as in `put_body`.
        with_headers: a literal bool; False if no record of the batch has a header.
    """
    timestamps, offsets, key_lengths, value_lengths, header_bounds, header_key_lengths, header_value_lengths = columns[
        :7
    ]
    for i in range(first, end):
        if attribute_bytes:
            put_u8(out, at, np.uint8(0))
        at = put_uvarint(out, at + attribute_bytes, zigzag(timestamps[i] - span.base_time_ms))
        at = put_uvarint(out, at, delta_code(offsets[i] - span.base_offset, unsigned))
        at = put_length(out, at, np.int64(key_lengths[i]), unsigned)
        at = put_length(out, at, np.int64(value_lengths[i]), unsigned)
        if with_headers:
            start, stop = np.int64(header_bounds[i]) + shared, np.int64(header_bounds[i + ONE])
            at = put_count(out, at, stop - start, unsigned)
            for h in range(np.uint64(start), np.uint64(stop)):
                at = put_count(out, at, np.int64(header_key_lengths[h]), unsigned)
                at = put_length(out, at, np.int64(header_value_lengths[h]), unsigned)
        else:
            put_u8(out, at, np.uint8(0))
            at += 1
    return at


@leaf
def _put_payload(out, at, columns, first, end, shared, with_headers, far, crc):
    """Write the payload of all records of a batch: keys, values and headers. Return the `sealing.Body`.

    Args:
        out, at, columns, first, end, shared, crc: as in `put_body`.
        with_headers: as in `_put_metadata`.
        far: the value for the field `far` of the Body.
    """
    (_, _, key_lengths, value_lengths, header_bounds, header_key_lengths, header_value_lengths,
     keys, key_starts, values, value_starts, header_keys, header_key_starts, header_values, header_value_starts,
     ) = columns  # fmt: skip
    for i in range(first, end):
        at = put_bytes(out, at, keys, key_starts[i], np.int64(key_lengths[i]))
        at = put_bytes(out, at, values, value_starts[i], np.int64(value_lengths[i]))
        if with_headers:
            for h in range(np.uint64(header_bounds[i] + shared), np.uint64(header_bounds[i + ONE])):
                at = put_bytes(out, at, header_keys, header_key_starts[h], np.int64(header_key_lengths[h]))
                at = put_bytes(out, at, header_values, header_value_starts[h], np.int64(header_value_lengths[h]))
        crc = extend_crc(crc, out, at)
    return Body(np.int64(at), far, crc)


@leaf
def put_body(out, at, columns, first, end, span, attribute_bytes, shared, unsigned, crc):
    """Write metadata and payload of a batch. Args and result: as in `rows.put_body`."""
    if first == end:
        return Body(np.int64(at), np.int64(0), crc)
    sizes = sizes_of(columns, first, end, span, attribute_bytes, shared, unsigned)
    if uvarint_bytes(np.uint64(sizes.metadata)) + sizes.metadata + sizes.payload > len(out) - at:
        return Body(np.int64(FULL), sizes.far, crc)
    at = put_uvarint(out, at, np.uint64(sizes.metadata))
    if columns.header_bounds[first] == columns.header_bounds[end]:
        at = _put_metadata(out, at, columns, first, end, span, attribute_bytes, shared, False, unsigned)
        return _put_payload(out, at, columns, first, end, shared, False, sizes.far, crc)
    at = _put_metadata(out, at, columns, first, end, span, attribute_bytes, shared, True, unsigned)
    return _put_payload(out, at, columns, first, end, shared, True, sizes.far, crc)


@leaf
def read(source, run, columns, header_bounds, unsigned):
    """Read the records of a RecordRun into the columns of an `Index` and header_bounds. Return the batch's `status`.

    source[run.start:run.end] must have all metadata, but may lack the payload.
    """
    timestamps, created, offsets, key_lengths, key_starts, value_lengths, value_starts = columns
    end, payload_end = run.end, run.payload_end
    size, p = get_uvarint(source, run.start, end)
    if p > end or size > end - p:
        return status.METADATA
    stop = p + size
    payload = stop
    headers_before = header_bounds[run.row]
    for q in range(np.uint64(run.row), np.uint64(run.row + run.count)):
        delta, p = get_varlong(source, p + run.attribute_bytes, stop)
        if p > stop:
            return status.TIMESTAMP_DELTA
        created[q] = run.base_time_ms + delta
        timestamps[q] = run.append_time_ms if run.is_append else run.base_time_ms + delta
        delta, p = get_delta(source, p, stop, unsigned)
        if p > stop:
            return status.OFFSET_DELTA
        offsets[q] = run.base_offset + delta
        length, p = get_length(source, p, stop, unsigned)
        if p > stop or length > min(payload_end - payload, INT32_MAX):
            return status.KEY_LENGTH
        key_lengths[q], key_starts[q] = max(length, NULL), payload
        payload += max(length, 0)
        length, p = get_length(source, p, stop, unsigned)
        if p > stop or length > min(payload_end - payload, INT32_MAX):
            return status.VALUE_LENGTH
        value_lengths[q], value_starts[q] = max(length, NULL), payload
        payload += max(length, 0)
        headers, p = get_count(source, p, stop, unsigned)
        if p > stop or headers < 0 or headers > (stop - p) >> 1:  # a header has at least two bytes
            return status.HEADER_COUNT
        headers_before += run.shared + headers
        header_bounds[q + ONE] = headers_before
        for _ in range(headers):
            key_length, p = get_count(source, p, stop, unsigned)
            if p > stop or key_length < 0 or key_length > min(payload_end - payload, INT32_MAX):
                return status.HEADER_KEY_LENGTH
            payload += key_length
            length, p = get_length(source, p, stop, unsigned)
            if p > stop or length > min(payload_end - payload, INT32_MAX):
                return status.HEADER_VALUE_LENGTH
            if max(key_length, length) > run.most_bytes:
                return status.LIMIT_FIELD
            payload += max(length, 0)
    if p != stop:
        return status.METADATA
    return status.SOUND if payload == payload_end or payload_end == NEVER else status.TRAILING


@leaf
def read_headers(source, p, end, first, last, attribute_bytes, shared, header_bounds, headers, unsigned):
    """Read the headers of the records first to last - 1, which `read` has found undamaged.

    Args:
        source, p, end: uint8 buffer; the batch's body is source[p:end], with at least all metadata.
        first, last: rows of header_bounds.
        attribute_bytes: the size of each record's attributes, 0 or 1.
        shared: the number of headers per record that tag 1 stores; they are not read.
        header_bounds: int64[records + 1].
        headers: lengths and starts of keys, then those of values, filled.
        unsigned: see `wire.lengths`.
    """
    key_lengths, key_starts, value_lengths, value_starts = headers
    size, p = get_uvarint(source, p, end)
    payload = p + size
    for q in range(np.uint64(first), np.uint64(last)):
        _, p = get_varlong(source, p + attribute_bytes, end)
        _, p = get_delta(source, p, end, unsigned)
        for _ in range(2):
            length, p = get_length(source, p, end, unsigned)
            payload += max(length, 0)
        _, p = get_count(source, p, end, unsigned)
        for h in range(np.uint64(header_bounds[q] + shared), np.uint64(header_bounds[q + ONE])):
            length, p = get_count(source, p, end, unsigned)
            key_lengths[h], key_starts[h] = length, payload
            payload += length
            length, p = get_length(source, p, end, unsigned)
            value_lengths[h], value_starts[h] = max(length, NULL), payload
            payload += max(length, 0)
