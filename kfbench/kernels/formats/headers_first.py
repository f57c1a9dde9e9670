"""The metadata of all records before the payload of all: v3, bit 10 ("[Additional proposal]" of KIP-931).

`metadataLength uvarint`, then of every record attributes (unless bit 7), timestamp delta, offset delta, key length,
value length, header count and each header's key and value lengths; then of every record key, value, and each header's
key and value. A reader of offsets and times needs no more than the metadata.
"""

import numpy as np

from kfbench.kernels.formats.batch_header import (
    ATTRIBUTES,
    BARE,
    CRC,
    NULL,
    ONE,
    RECORD_PARTS_AT,
    TAGGED,
    UNSIGNED,
    add_header_parts,
    add_parts,
    attributes_of,
    outline,
    put_header,
    put_tags,
    tags_bytes,
    untagged_bytes,
)
from kfbench.kernels.jit import kernel, leaf
from kfbench.kernels.simd.intrinsics import get_u8, put_u8
from kfbench.kernels.wire import status
from kfbench.kernels.wire.crc import BLOCK, CRC32C_START, crc32c_ahead, crc32c_finish
from kfbench.kernels.wire.lengths import (
    count_bytes,
    delta_code,
    get_count,
    get_delta,
    get_length,
    length_bytes,
    put_count,
    put_length,
    skip,
)
from kfbench.kernels.wire.sealing import (
    AFTER_LENGTH,
    BATCH_TOO_LARGE,
    INT32_MAX,
    NEVER,
    OFFSET_TOO_FAR,
    OK,
    OUT_TOO_SMALL,
    seal,
)
from kfbench.kernels.wire.varint import (
    get_uvarint,
    get_varlong,
    is_shortest,
    is_shortest_uvarint,
    put_bytes,
    put_uvarint,
    uvarint_bytes,
    varint_bytes,
    zigzag,
)


@leaf
def _sizes(columns, first, end, base_time, base_offset, marks, shared, unsigned):
    """(metadata bytes, payload bytes, offset deltas beyond int32 as set high bits) of the records."""
    timestamps, offsets, key_lengths, value_lengths, header_bounds, header_key_lengths, header_value_lengths = columns
    metadata, payload, far = np.int64(0), np.int64(0), np.int64(0)
    for i in range(first, end):
        delta = offsets[i] - base_offset
        far |= delta + 2**31
        key_length, value_length = np.int64(key_lengths[i]), np.int64(value_lengths[i])
        metadata += (
            varint_bytes(timestamps[i] - base_time) + uvarint_bytes(delta_code(delta, unsigned))
            + length_bytes(key_length, unsigned) + length_bytes(value_length, unsigned)
        )  # fmt: skip
        payload += max(key_length, 0) + max(value_length, 0)
    metadata += np.int64(end - first) * (marks + 1)  # a count of no headers takes one byte
    if first < end and header_bounds[first] != header_bounds[end]:
        for i in range(first, end):
            start, stop = np.int64(header_bounds[i]) + shared, np.int64(header_bounds[i + ONE])
            metadata += count_bytes(stop - start, unsigned) - 1
            for h in range(np.uint64(start), np.uint64(stop)):
                name, content = np.int64(header_key_lengths[h]), np.int64(header_value_lengths[h])
                metadata += count_bytes(name, unsigned) + length_bytes(content, unsigned)
                payload += name + max(content, 0)
    return metadata, payload, far


@leaf
def _put_metadata(out, at, columns, first, end, base_time, base_offset, marks, shared, with_headers, unsigned):
    timestamps, offsets, key_lengths, value_lengths, header_bounds, header_key_lengths, header_value_lengths = columns[
        :7
    ]
    for i in range(first, end):
        if marks:
            put_u8(out, at, np.uint8(0))
        at = put_uvarint(out, at + marks, zigzag(timestamps[i] - base_time))
        at = put_uvarint(out, at, delta_code(offsets[i] - base_offset, unsigned))
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
def _put_payload(out, at, columns, first, end, shared, summed, with_headers):
    """(next position, running checksum, how far it came)."""
    (_, _, key_lengths, value_lengths, header_bounds, header_key_lengths, header_value_lengths,
     keys, key_starts, values, value_starts, header_keys, header_key_starts, header_values, header_value_starts,
     ) = columns  # fmt: skip
    crc = CRC32C_START
    for i in range(first, end):
        at = put_bytes(out, at, keys, key_starts[i], np.int64(key_lengths[i]))
        at = put_bytes(out, at, values, value_starts[i], np.int64(value_lengths[i]))
        if with_headers:
            for h in range(np.uint64(header_bounds[i] + shared), np.uint64(header_bounds[i + ONE])):
                at = put_bytes(out, at, header_keys, header_key_starts[h], np.int64(header_key_lengths[h]))
                at = put_bytes(out, at, header_values, header_value_starts[h], np.int64(header_value_lengths[h]))
        if at - summed >= BLOCK:
            crc, summed = crc32c_ahead(crc, out, summed, at)
    return at, crc, summed


@kernel
def encode(columns, bounds, fields, tags, shared, magic, features, codec, out, positions, bodies):
    """As `rows.encode`."""
    timestamps, offsets, header_bounds = columns[0], columns[1], columns[4]
    marks = 0 if features & BARE else 1
    unsigned = features & UNSIGNED != 0
    at = 0
    for b in range(len(bounds) - 1):
        first, end = np.uint64(bounds[b]), np.uint64(bounds[b + 1])
        row = fields[b if len(fields) > 1 else 0]
        base_offset, last_delta, base_time, max_time = outline(
            timestamps, offsets, first, end, row, row.delete_horizon_ms, features & TAGGED != 0
        )
        count, common = np.int64(end - first), np.int64(0)
        room = untagged_bytes(last_delta, base_time, max_time, magic, features)
        if features & TAGGED:
            common = shared[b if len(shared) > 1 else 0]
            room += tags_bytes(row, header_bounds, columns[5], columns[6], first, common, unsigned)
        if unsigned:
            metadata, payload, far = _sizes(columns[:7], first, end, base_time, base_offset, marks, common, True)
        else:
            metadata, payload, far = _sizes(columns[:7], first, end, base_time, base_offset, marks, common, False)
        if (far | (last_delta + 2**31)) >> 32:
            return OFFSET_TOO_FAR, b
        if count:
            room += uvarint_bytes(np.uint64(metadata)) + metadata + payload
        if room - AFTER_LENGTH > INT32_MAX:
            return BATCH_TOO_LARGE, b
        if room > len(out) - at:
            return OUT_TOO_SMALL, b
        start = at
        positions[b] = start
        sealed = codec == 0 or count == 0
        bits = attributes_of(row, codec, features, count)
        at = put_header(out, at, row, magic, bits, base_offset, last_delta, base_time, max_time, count)
        if features & TAGGED:
            at = put_tags(out, at, row, tags, columns, first, common, unsigned)
        bodies[b] = at
        crc, summed = CRC32C_START, start + ATTRIBUTES if sealed else NEVER
        if count:
            at = put_uvarint(out, at, np.uint64(metadata))
            with_headers = header_bounds[first] != header_bounds[end]
            if with_headers and unsigned:
                at = _put_metadata(out, at, columns, first, end, base_time, base_offset, marks, common, True, True)
            elif with_headers:
                at = _put_metadata(out, at, columns, first, end, base_time, base_offset, marks, common, True, False)
            elif unsigned:
                at = _put_metadata(out, at, columns, first, end, base_time, base_offset, marks, common, False, True)
            else:
                at = _put_metadata(out, at, columns, first, end, base_time, base_offset, marks, common, False, False)
            if with_headers:
                at, crc, summed = _put_payload(out, at, columns, first, end, common, summed, True)
            else:
                at, crc, summed = _put_payload(out, at, columns, first, end, common, summed, False)
        if sealed:
            seal(out, start, at, CRC, crc32c_finish(crc, out, summed, at))
    positions[len(bounds) - 1] = at
    return OK, 0


@kernel
def sizes(columns, bounds, fields, shared, magic, features, out):
    """The uncompressed bytes of each batch, int64[batches], without writing it."""
    timestamps, offsets, _, _, header_bounds, key_lengths, value_lengths = columns
    marks = 0 if features & BARE else 1
    unsigned = features & UNSIGNED != 0
    for b in range(len(bounds) - 1):
        first, end = np.uint64(bounds[b]), np.uint64(bounds[b + 1])
        row = fields[b if len(fields) > 1 else 0]
        base_offset, last_delta, base_time, max_time = outline(
            timestamps, offsets, first, end, row, row.delete_horizon_ms, features & TAGGED != 0
        )
        total, common = untagged_bytes(last_delta, base_time, max_time, magic, features), np.int64(0)
        if features & TAGGED:
            common = shared[b if len(shared) > 1 else 0]
            total += tags_bytes(row, header_bounds, key_lengths, value_lengths, first, common, unsigned)
        if first < end:
            if unsigned:
                metadata, payload, _ = _sizes(columns, first, end, base_time, base_offset, marks, common, True)
            else:
                metadata, payload, _ = _sizes(columns, first, end, base_time, base_offset, marks, common, False)
            total += uvarint_bytes(np.uint64(metadata)) + metadata + payload
        out[b] = total


@kernel
def breakdown(columns, bounds, fields, shared, magic, features, out):
    """As `rows.breakdown`."""
    timestamps, offsets, key_lengths, value_lengths, header_bounds, header_key_lengths, header_value_lengths = columns
    marks = 0 if features & BARE else 1
    unsigned = features & UNSIGNED != 0
    parts = out[RECORD_PARTS_AT:]
    for b in range(len(bounds) - 1):
        first, end = np.uint64(bounds[b]), np.uint64(bounds[b + 1])
        row = fields[b if len(fields) > 1 else 0]
        base_offset, last_delta, base_time, max_time = outline(
            timestamps, offsets, first, end, row, row.delete_horizon_ms, features & TAGGED != 0
        )
        common = shared[b if len(shared) > 1 else 0]
        add_parts(out, row, columns, first, last_delta, base_time, max_time, common, magic, features)
        if first < end:
            metadata, _, _ = _sizes(columns, first, end, base_time, base_offset, marks, common, unsigned)
            parts[1] += uvarint_bytes(np.uint64(metadata))
        for i in range(first, end):
            key_length, value_length = np.int64(key_lengths[i]), np.int64(value_lengths[i])
            parts[2] += marks
            parts[3] += varint_bytes(timestamps[i] - base_time)
            parts[4] += uvarint_bytes(delta_code(offsets[i] - base_offset, unsigned))
            parts[5] += length_bytes(key_length, unsigned)
            parts[6] += max(key_length, 0)
            parts[7] += length_bytes(value_length, unsigned)
            parts[8] += max(value_length, 0)
            start, stop = np.int64(header_bounds[i]) + common, np.int64(header_bounds[i + ONE])
            add_header_parts(out, header_key_lengths, header_value_lengths, start, stop, unsigned)


@leaf
def read(source, p, end, payload_end, r, count, marks, clock, base_offset, shared, most_bytes, columns, header_bounds,
         unsigned):  # fmt: skip
    """As `rows.read`. source[p:end] holds the metadata at least; payload_end: where the payload ends, or NEVER."""
    timestamps, created, offsets, key_lengths, key_starts, value_lengths, value_starts = columns
    base_time, append, append_time = clock
    size, p = get_uvarint(source, p, end)
    if p > end or size > end - p:
        return status.METADATA
    stop = p + size
    payload = stop
    headers_before = header_bounds[r]
    for q in range(np.uint64(r), np.uint64(r + count)):
        delta, p = get_varlong(source, p + marks, stop)
        if p > stop:
            return status.TIMESTAMP_DELTA
        created[q] = base_time + delta
        timestamps[q] = append_time if append else base_time + delta
        delta, p = get_delta(source, p, stop, unsigned)
        if p > stop:
            return status.OFFSET_DELTA
        offsets[q] = base_offset + delta
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
        if p > stop or headers < 0 or headers > (stop - p) >> 1:  # a header takes two bytes at least
            return status.HEADER_COUNT
        headers_before += shared + headers
        header_bounds[q + ONE] = headers_before
        for _ in range(headers):
            name, p = get_count(source, p, stop, unsigned)
            if p > stop or name < 0 or name > min(payload_end - payload, INT32_MAX):
                return status.HEADER_KEY_LENGTH
            payload += name
            length, p = get_length(source, p, stop, unsigned)
            if p > stop or length > min(payload_end - payload, INT32_MAX):
                return status.HEADER_VALUE_LENGTH
            if max(name, length) > most_bytes:
                return status.LIMIT_FIELD
            payload += max(length, 0)
    if p != stop:
        return status.METADATA
    return status.SOUND if payload == payload_end or payload_end == NEVER else status.TRAILING


@leaf
def read_headers(source, p, end, count, marks, shared, header_bounds, r,
                 key_lengths, key_starts, value_lengths, value_starts, unsigned):  # fmt: skip
    """Reads the headers of the records r to r + count - 1, known to be sound, after the first `shared` of each."""
    size, p = get_uvarint(source, p, end)
    payload = p + size
    for q in range(np.uint64(r), np.uint64(r + count)):
        _, p = get_varlong(source, p + marks, end)
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


@leaf
def are_canonical(source, p, end, count, marks, unsigned):
    """Whether every number of the metadata is the shortest, nulls are -1 and attributes 0."""
    size, after = get_uvarint(source, p, end)
    whole = is_shortest_uvarint(source, p, after, size)
    p = after
    for _ in range(count):
        if marks:
            whole &= get_u8(source, p) == 0
            p += 1
        delta, after = get_varlong(source, p, end)
        whole &= is_shortest(source, p, after, delta)
        _, p, short = skip(source, after, end, unsigned)
        whole &= short
        for _ in range(2):
            short = skip(source, p, end, unsigned)[2]
            length, p = get_length(source, p, end, unsigned)
            whole &= short and length >= NULL
        headers, p, short = skip(source, p, end, unsigned)
        whole &= short
        for _ in range(headers):
            _, p, short = skip(source, p, end, unsigned)
            whole &= short
            short = skip(source, p, end, unsigned)[2]
            length, p = get_length(source, p, end, unsigned)
            whole &= short and length >= NULL
    return whole
