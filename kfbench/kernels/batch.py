"""Kernels of the batch formats: v2 (`DefaultRecordBatch`, `DefaultRecord`) and v3 (KIP-931 and its ablations).

`features` are the attribute bits above v2's: without a record attributes byte, with a header of fixed width.
"""

import numpy as np

from kfbench import layouts
from kfbench.kernels import status
from kfbench.kernels._jit import kernel, leaf
from kfbench.kernels.crc import BLOCK, CRC32C_START, crc32c, crc32c_ahead, crc32c_finish
from kfbench.kernels.intrinsics import (
    get_i8,
    get_i16,
    get_i32,
    get_i64,
    get_u8,
    get_u32,
    move,
    put_i16,
    put_i32,
    put_i64,
    put_u8,
)
from kfbench.kernels.varint import (
    get_varint,
    get_varlong,
    is_shortest,
    length_bytes,
    put_bytes,
    put_nullable,
    put_uvarint,
    put_varint,
    uvarint_bytes,
    varint_bytes,
    zigzag,
)

_V2, _V3, _TAIL = layouts.V2_HEADER, layouts.V3_HEADER, layouts.V3_FIXED_TAIL
at_ = layouts.position
LENGTH, EPOCH, MAGIC, CRC = (at_(_V2, name) for name in ("length", "partition_leader_epoch", "magic", "crc"))
ATTRIBUTES = at_(_V2, "attributes")
V2_LAST, V2_BASE_TIME, V2_MAX_TIME = (
    at_(_V2, name) for name in ("last_offset_delta", "base_timestamp_ms", "max_timestamp_ms")
)
V2_PRODUCER, V2_PRODUCER_EPOCH, V2_SEQUENCE = (
    at_(_V2, name) for name in ("producer_id", "producer_epoch", "base_sequence")
)
V2_COUNT, V2_SIZE = at_(_V2, "count"), _V2.itemsize
V3_PRODUCER, V3_PRODUCER_EPOCH, V3_SEQUENCE = (
    at_(_V3, name) for name in ("producer_id", "producer_epoch", "base_sequence")
)
V3_SIZE = _V3.itemsize
TAIL_LAST, TAIL_BASE_TIME, TAIL_MAX_TIME = (
    V3_SIZE + at_(_TAIL, name) for name in ("last_offset_delta", "base_timestamp_ms", "max_timestamp_ms")
)
TAIL_COUNT, TAIL_SIZE = V3_SIZE + at_(_TAIL, "count"), V3_SIZE + _TAIL.itemsize
AFTER_LENGTH = LENGTH + 4
CODEC_MASK, APPEND, TRANSACTIONAL = layouts.CODEC_MASK, layouts.TIMESTAMP_TYPE_BIT, layouts.TRANSACTIONAL_BIT
CONTROL, HORIZON = layouts.CONTROL_BIT, layouts.DELETE_HORIZON_BIT
BARE, FIXED = layouts.NO_RECORD_ATTRIBUTES_BIT, layouts.FIXED_HEADER_BIT
INT32_MAX, UNSET, MIN_RECORD = 2**31 - 1, layouts.UNSET, layouts.MIN_RECORD_BYTES
NEVER = 2**62  # a position that no writer reaches
FULL = -1
ONE = np.uint64(1)
OK, OFFSET_TOO_FAR, BATCH_TOO_LARGE, OUT_TOO_SMALL = 0, 1, 2, 3  # why an encoder stopped

# Where each byte of a batch goes. The header's fields are prefixed: record and batch both have a length, and so on.
_HEADER_PARTS = tuple(f"batch_header.{name}" for name in _V2.names)
_RECORD_PARTS = (
    "length",
    "attributes",
    "timestamp_delta",
    "offset_delta",
    "key_length",
    "key",
    "value_length",
    "value",
    "header_count",
    "header_key_length",
    "header_key",
    "header_value_length",
    "header_value",
)
PARTS = (*_HEADER_PARTS, *_RECORD_PARTS)
RECORD_PARTS_AT = len(_HEADER_PARTS)
LAST_PART, BASE_TIME_PART, MAX_TIME_PART = (
    _V2.names.index(name) for name in ("last_offset_delta", "base_timestamp_ms", "max_timestamp_ms")
)
FIXED_PART_BYTES = np.array([_V2[name].itemsize for name in _V2.names])


@leaf
def _outline(timestamps, offsets, first, end, row, magic, features):
    """(base offset, last offset delta, base time, max time, header size) of the records first to end - 1."""
    base_offset, last_offset = row.base_offset, row.last_offset
    base_time, max_time = row.base_timestamp_ms, row.max_timestamp_ms
    if base_offset == UNSET:
        base_offset = offsets[first] if first < end else np.int64(0)
    if last_offset == UNSET:
        last_offset = offsets[end - ONE] if first < end else base_offset
    if base_time == UNSET:
        base_time = np.int64(layouts.NO_TIMESTAMP)
        if row.delete_horizon_ms >= 0:
            base_time = row.delete_horizon_ms
        elif first < end:
            base_time = timestamps[first]
    if max_time == UNSET:
        max_time = np.int64(layouts.NO_TIMESTAMP)
        if row.timestamp_type:
            max_time = row.append_time_ms
        elif first < end:
            max_time = timestamps[first]
            for i in range(first, end):
                max_time = max(max_time, timestamps[i])
    last_delta = last_offset - base_offset
    size = V2_SIZE
    if magic == 3:
        size = TAIL_SIZE
        if not features & FIXED:
            size = V3_SIZE + varint_bytes(last_delta) + varint_bytes(base_time) + varint_bytes(max_time - base_time) + 4
    return base_offset, last_delta, base_time, max_time, size


@leaf
def _put_header(out, at, row, magic, attributes, base_offset, last_delta, base_time, max_time, count):
    """Everything but length and checksum; gives where the records begin."""
    put_i64(out, at, base_offset)
    put_i32(out, at + EPOCH, row.partition_leader_epoch)
    put_u8(out, at + MAGIC, np.uint8(magic))
    put_i16(out, at + ATTRIBUTES, np.int16(attributes))
    if magic == 2:
        put_i32(out, at + V2_LAST, np.int32(last_delta))
        put_i64(out, at + V2_BASE_TIME, base_time)
        put_i64(out, at + V2_MAX_TIME, max_time)
        put_i64(out, at + V2_PRODUCER, row.producer_id)
        put_i16(out, at + V2_PRODUCER_EPOCH, row.producer_epoch)
        put_i32(out, at + V2_SEQUENCE, row.base_sequence)
        put_i32(out, at + V2_COUNT, np.int32(count))
        return at + V2_SIZE
    put_i64(out, at + V3_PRODUCER, row.producer_id)
    put_i16(out, at + V3_PRODUCER_EPOCH, row.producer_epoch)
    put_i32(out, at + V3_SEQUENCE, row.base_sequence)
    if attributes & FIXED:
        put_i32(out, at + TAIL_LAST, np.int32(last_delta))
        put_i64(out, at + TAIL_BASE_TIME, base_time)
        put_i64(out, at + TAIL_MAX_TIME, max_time)
        put_i32(out, at + TAIL_COUNT, np.int32(count))
        return at + TAIL_SIZE
    at = put_varint(out, at + V3_SIZE, last_delta)
    at = put_varint(out, at, base_time)
    at = put_varint(out, at, max_time - base_time)
    put_i32(out, at, np.int32(count))
    return at + 4


@leaf
def _attributes(row, codec, features, count):
    bits = features
    if count:  # an empty batch has nothing to compress
        bits |= codec
    if row.timestamp_type:
        bits |= APPEND
    if row.is_transactional:
        bits |= TRANSACTIONAL
    if row.is_control:
        bits |= CONTROL
    if row.delete_horizon_ms >= 0:
        bits |= HORIZON
    return bits


@leaf
def _headers_bytes(header_bounds, header_key_lengths, header_value_lengths, i):
    """What the headers of record i take, their count included."""
    first, end = np.uint64(header_bounds[i]), np.uint64(header_bounds[i + ONE])
    size = length_bytes(np.int64(end - first))
    for h in range(first, end):
        name, content = np.int64(header_key_lengths[h]), np.int64(header_value_lengths[h])
        size += length_bytes(name) + name + length_bytes(content) + max(content, 0)
    return size


@leaf
def _put_record(out, at, columns, i, base_time, base_offset, marks, with_headers):
    """(next position, offset delta); the position is FULL where the record does not fit.

    with_headers is a literal: without, the compiler drops all that they need.
    """
    (timestamps, offsets, key_lengths, value_lengths, header_bounds, header_key_lengths, header_value_lengths,
     keys, key_starts, values, value_starts, header_keys, header_key_starts, header_values, header_value_starts,
     ) = columns  # fmt: skip
    time_delta = zigzag(timestamps[i] - base_time)
    delta = offsets[i] - base_offset
    offset_delta = zigzag(delta)
    key_length, value_length = np.int64(key_lengths[i]), np.int64(value_lengths[i])
    size = (
        marks + uvarint_bytes(time_delta) + uvarint_bytes(offset_delta)
        + length_bytes(key_length) + max(key_length, 0) + length_bytes(value_length) + max(value_length, 0)
    )  # fmt: skip
    if with_headers:
        size += _headers_bytes(header_bounds, header_key_lengths, header_value_lengths, i)
    else:
        size += 1
    if size + 5 > len(out) - at and size + length_bytes(size) > len(out) - at:
        return FULL, delta
    # Putting length, deltas and key length together in one word measured 15 % slower than these loops.
    at = put_varint(out, at, size)
    put_u8(out, at, np.uint8(0))  # written over where records carry no attributes
    at = put_uvarint(out, at + marks, time_delta)
    at = put_uvarint(out, at, offset_delta)
    at = put_nullable(out, at, keys, key_starts[i], key_length)
    at = put_nullable(out, at, values, value_starts[i], value_length)
    if with_headers:
        first, end = np.uint64(header_bounds[i]), np.uint64(header_bounds[i + ONE])
        at = put_varint(out, at, np.int64(end - first))
        for h in range(first, end):
            name, content = np.int64(header_key_lengths[h]), np.int64(header_value_lengths[h])
            at = put_bytes(out, put_varint(out, at, name), header_keys, header_key_starts[h], name)
            at = put_nullable(out, at, header_values, header_value_starts[h], content)
        return at, delta
    put_u8(out, at, np.uint8(0))
    return at + 1, delta


@kernel
def encode(columns, bounds, fields, magic, features, codec, out, positions, bodies):
    """Writes batches one after another; with a codec their records are still plain, and length and checksum unset.

    Fills positions int64[batches + 1] and bodies int64[batches] (where
    the records begin). Gives (problem, batch): OK, or why that batch cannot be written.
    """
    timestamps, offsets, header_bounds = columns[0], columns[1], columns[4]
    marks = 0 if features & BARE else 1
    at = 0
    for b in range(len(bounds) - 1):
        first, end = np.uint64(bounds[b]), np.uint64(bounds[b + 1])
        row = fields[b if len(fields) > 1 else 0]
        base_offset, last_delta, base_time, max_time, header = _outline(
            timestamps, offsets, first, end, row, magic, features
        )
        if (last_delta + 2**31) >> 32:
            return OFFSET_TOO_FAR, b
        if header > len(out) - at:
            return OUT_TOO_SMALL, b
        start = at
        positions[b] = start
        count = np.int64(end - first)
        sealed = codec == 0 or count == 0
        at = _put_header(
            out, at, row, magic, _attributes(row, codec, features, count),
            base_offset, last_delta, base_time, max_time, count,
        )  # fmt: skip
        bodies[b] = at
        far = np.int64(0)
        crc, summed = CRC32C_START, start + ATTRIBUTES if sealed else NEVER
        if header_bounds[first] == header_bounds[end]:
            for i in range(first, end):
                at, delta = _put_record(out, at, columns, i, base_time, base_offset, marks, False)
                if at == FULL:
                    return OUT_TOO_SMALL, b
                far |= delta + 2**31
                if at - summed >= BLOCK:
                    crc, summed = crc32c_ahead(crc, out, summed, at)
        else:
            for i in range(first, end):
                at, delta = _put_record(out, at, columns, i, base_time, base_offset, marks, True)
                if at == FULL:
                    return OUT_TOO_SMALL, b
                far |= delta + 2**31
                if at - summed >= BLOCK:
                    crc, summed = crc32c_ahead(crc, out, summed, at)
        if far >> 32:
            return OFFSET_TOO_FAR, b
        if at - start - AFTER_LENGTH > INT32_MAX:
            return BATCH_TOO_LARGE, b
        if sealed:
            _seal(out, start, at, crc32c_finish(crc, out, summed, at))
    positions[len(bounds) - 1] = at
    return OK, 0


@leaf
def _seal(out, start, end, crc):
    put_i32(out, start + LENGTH, np.int32(end - start - AFTER_LENGTH))
    put_i32(out, start + CRC, np.int32(crc))


@kernel
def assemble(plain, plain_positions, bodies, payload, payload_bounds, out, positions):
    """Compressed batches from plain ones: each header of `plain`, then its slice of `payload`, sealed."""
    at = 0
    for b in range(len(bodies)):
        positions[b] = start = at
        header = bodies[b] - plain_positions[b]
        size = payload_bounds[b + 1] - payload_bounds[b]
        move(out, at, plain, plain_positions[b], header)
        move(out, at + header, payload, payload_bounds[b], size)
        at += header + size
        if at - start - AFTER_LENGTH > INT32_MAX:
            return BATCH_TOO_LARGE, b
        _seal(out, start, at, crc32c(out, start + ATTRIBUTES, at))
    positions[len(bodies)] = at
    return OK, 0


@kernel
def sizes(columns, bounds, fields, magic, features, out):
    """The uncompressed bytes of each batch, int64[batches], without writing it."""
    timestamps, offsets, key_lengths, value_lengths, header_bounds, header_key_lengths, header_value_lengths = columns
    marks = 0 if features & BARE else 1
    any_headers = len(header_key_lengths) > 0
    for b in range(len(bounds) - 1):
        first, end = np.uint64(bounds[b]), np.uint64(bounds[b + 1])
        row = fields[b if len(fields) > 1 else 0]
        base_offset, _, base_time, _, total = _outline(timestamps, offsets, first, end, row, magic, features)
        wide = np.int64(0)
        if not any_headers:
            for i in range(first, end):
                time_delta, delta = timestamps[i] - base_time, offsets[i] - base_offset
                wide |= ((time_delta << 1) ^ (time_delta >> 63)) | ((delta << 1) ^ (delta >> 63))
        if not any_headers and wide >> 28 == 0:  # nearly every batch: a loop that compilers turn into vectors
            for i in range(first, end):
                time_delta, delta = timestamps[i] - base_time, offsets[i] - base_offset
                near, far = (time_delta << 1) ^ (time_delta >> 63), (delta << 1) ^ (delta >> 63)
                key_length, value_length = np.int64(key_lengths[i]), np.int64(value_lengths[i])
                size = (
                    3 + marks
                    + (near > 0x7F) + (near > 0x3FFF) + (near > 0x1FFFFF)
                    + (far > 0x7F) + (far > 0x3FFF) + (far > 0x1FFFFF)
                    + length_bytes(key_length) + max(key_length, 0)
                    + length_bytes(value_length) + max(value_length, 0)
                )  # fmt: skip
                total += size + length_bytes(size)
        else:
            for i in range(first, end):
                key_length, value_length = np.int64(key_lengths[i]), np.int64(value_lengths[i])
                size = (
                    marks + varint_bytes(timestamps[i] - base_time) + varint_bytes(offsets[i] - base_offset)
                    + length_bytes(key_length) + max(key_length, 0) + length_bytes(value_length) + max(value_length, 0)
                    + _headers_bytes(header_bounds, header_key_lengths, header_value_lengths, i)
                )  # fmt: skip
                total += size + length_bytes(size)
        out[b] = total


@kernel
def breakdown(columns, bounds, fields, magic, features, out):
    """Where the bytes go: int64[len(PARTS)], in the order of PARTS, summed over the batches."""
    timestamps, offsets, key_lengths, value_lengths, header_bounds, header_key_lengths, header_value_lengths = columns
    marks = 0 if features & BARE else 1
    compact = magic == 3 and not features & FIXED
    parts = out[RECORD_PARTS_AT:]
    for b in range(len(bounds) - 1):
        first, end = np.uint64(bounds[b]), np.uint64(bounds[b + 1])
        row = fields[b if len(fields) > 1 else 0]
        base_offset, last_delta, base_time, max_time, _ = _outline(
            timestamps, offsets, first, end, row, magic, features
        )
        for k in range(RECORD_PARTS_AT):
            out[k] += FIXED_PART_BYTES[k]
        if compact:
            out[LAST_PART] += varint_bytes(last_delta) - FIXED_PART_BYTES[LAST_PART]
            out[BASE_TIME_PART] += varint_bytes(base_time) - FIXED_PART_BYTES[BASE_TIME_PART]
            out[MAX_TIME_PART] += varint_bytes(max_time - base_time) - FIXED_PART_BYTES[MAX_TIME_PART]
        for i in range(first, end):
            key_length, value_length = np.int64(key_lengths[i]), np.int64(value_lengths[i])
            time_bytes, offset_bytes = varint_bytes(timestamps[i] - base_time), varint_bytes(offsets[i] - base_offset)
            h0, h1 = np.uint64(header_bounds[i]), np.uint64(header_bounds[i + ONE])
            parts[0] += length_bytes(
                marks + time_bytes + offset_bytes + length_bytes(key_length) + max(key_length, 0)
                + length_bytes(value_length) + max(value_length, 0)
                + _headers_bytes(header_bounds, header_key_lengths, header_value_lengths, i)
            )  # fmt: skip
            parts[1] += marks
            parts[2] += time_bytes
            parts[3] += offset_bytes
            parts[4] += length_bytes(key_length)
            parts[5] += max(key_length, 0)
            parts[6] += length_bytes(value_length)
            parts[7] += max(value_length, 0)
            parts[8] += length_bytes(np.int64(h1 - h0))
            for h in range(h0, h1):
                name, content = np.int64(header_key_lengths[h]), np.int64(header_value_lengths[h])
                parts[9] += length_bytes(name)
                parts[10] += name
                parts[11] += length_bytes(content)
                parts[12] += max(content, 0)


@leaf
def _read_header(data, at, end, magic):
    """(attributes, last offset delta, base time, max time, count, where records begin: end + 1 if it is cut short)."""
    bits = np.int64(get_i16(data, at + ATTRIBUTES))
    if magic == 2:
        return (
            bits, np.int64(get_i32(data, at + V2_LAST)), get_i64(data, at + V2_BASE_TIME),
            get_i64(data, at + V2_MAX_TIME), np.int64(get_i32(data, at + V2_COUNT)), at + V2_SIZE,
        )  # fmt: skip
    if bits & FIXED:
        if at + TAIL_SIZE > end:
            return bits, np.int64(0), np.int64(0), np.int64(0), np.int64(0), end + 1
        return (
            bits, np.int64(get_i32(data, at + TAIL_LAST)), get_i64(data, at + TAIL_BASE_TIME),
            get_i64(data, at + TAIL_MAX_TIME), np.int64(get_i32(data, at + TAIL_COUNT)), at + TAIL_SIZE,
        )  # fmt: skip
    last_delta, body = get_varint(data, at + V3_SIZE, end)
    base_time, body = get_varlong(data, body, end)
    max_delta, body = get_varlong(data, body, end)
    if body + 4 > end:
        return bits, np.int64(0), np.int64(0), np.int64(0), np.int64(0), end + 1
    return bits, last_delta, base_time, base_time + max_delta, np.int64(get_i32(data, body)), body + 4


@leaf
def _marks(bits, magic):
    """Attribute bytes a record."""
    return 0 if magic == 3 and bits & BARE else 1


@leaf
def _crc_holds(data, at, end):
    return get_u32(data, at + CRC) == np.uint32(crc32c(data, at + ATTRIBUTES, end))


@kernel
def survey(data, positions, magic, known_bits, codecs, counts, bodies, state):
    """Reads each batch header; checks the CRC of compressed batches, so that nothing damaged is decompressed.

    positions int64[batches + 1]. Fills codecs int8, counts int64, bodies int64 (where the records begin) and state
    int8 (see `status`). Gives (records that are claimed, whether any batch is compressed, has log append time).
    """
    least = V2_SIZE if magic == 2 else V3_SIZE
    records, compressed, append = np.int64(0), False, False
    for b in range(len(state)):
        at, end = positions[b], positions[b + 1]
        codecs[b], counts[b], bodies[b] = 0, 0, end
        if get_i8(data, at + MAGIC) != magic:
            state[b] = status.MAGIC
            continue
        if end - at < least:
            state[b] = status.SIZE
            continue
        bits, _, _, _, count, body = _read_header(data, at, end, magic)
        codec = bits & CODEC_MASK
        if (codec != 0 or body > end) and not _crc_holds(data, at, end):
            state[b] = status.CRC
        elif body > end:
            state[b] = status.BATCH_HEADER
        elif codec > 4:
            state[b] = status.CODEC
        elif magic == 3 and bits & ~known_bits:
            state[b] = status.ATTRIBUTES if _crc_holds(data, at, end) else status.CRC
        elif count < 0 or (codec == 0 and count > (end - body) // (MIN_RECORD + _marks(bits, magic))):
            state[b] = status.COUNT if _crc_holds(data, at, end) else status.CRC
        else:
            state[b], counts[b], bodies[b] = status.SOUND, count, body
            codecs[b] = codec if count else 0
            records += count
            compressed |= codecs[b] != 0
            append |= bits & APPEND != 0
    return records, compressed, append


@kernel
def index(data, positions, magic, source, starts, ends, state,
          timestamps, created, offsets, key_lengths, key_starts, value_lengths, value_starts,
          header_bounds, bounds):  # fmt: skip
    """Reads the records of each sound batch into columns; no byte of payload is moved.

    source[starts[b]:ends[b]] are the plain records of batch b (`data` itself where nothing is compressed). timestamps
    are a consumer's, created the producer's (one array may serve for both where no batch has log append time).
    A batch that breaks a promise gets its state and no record. Fills bounds int64[batches + 1].
    """
    r = np.int64(0)
    bounds[0] = header_bounds[0] = 0
    for b in range(len(state)):
        if state[b] == status.SOUND:
            at, end = positions[b], positions[b + 1]
            bits, _, base_time, max_time, count, _ = _read_header(data, at, end, magic)
            if (bits & CODEC_MASK == 0 or count == 0) and not _crc_holds(data, at, end):
                state[b] = status.CRC
            else:
                state[b] = _index_batch(
                    source, starts[b], ends[b], r, count, _marks(bits, magic), bits & APPEND != 0,
                    get_i64(data, at), base_time, max_time,
                    timestamps, created, offsets, key_lengths, key_starts, value_lengths, value_starts, header_bounds,
                )  # fmt: skip
                if state[b] == status.SOUND:
                    r += count
        bounds[b + 1] = r


@leaf
def _index_batch(source, p, end, r, count, marks, append, base_offset, base_time, max_time,
                 timestamps, created, offsets, key_lengths, key_starts, value_lengths, value_starts,
                 header_bounds):  # fmt: skip
    """The state of the batch."""
    if count == 0:  # Kafka ignores whatever follows
        return status.SOUND
    headers_before = header_bounds[r]
    for q in range(np.uint64(r), np.uint64(r + count)):
        size, p = get_varint(source, p, end)
        stop = p + size
        if p > end or size < marks or stop > end:
            return status.RECORD_LENGTH
        delta, p = get_varlong(source, p + marks, stop)
        if p > stop:
            return status.TIMESTAMP_DELTA
        created[q] = base_time + delta
        timestamps[q] = max_time if append else base_time + delta
        delta, p = get_varint(source, p, stop)
        if p > stop:
            return status.OFFSET_DELTA
        offsets[q] = base_offset + delta
        length, p = get_varint(source, p, stop)
        if length > stop - p:
            return status.KEY_LENGTH
        key_lengths[q], key_starts[q] = max(length, -1), p  # any negative length is null to Kafka
        length, p = get_varint(source, p + max(length, 0), stop)
        if length > stop - p:
            return status.VALUE_LENGTH
        value_lengths[q], value_starts[q] = max(length, -1), p
        headers, p = get_varint(source, p + max(length, 0), stop)
        if headers < 0 or headers > (stop - p) >> 1:  # a header takes two bytes at least
            return status.HEADER_COUNT
        headers_before += headers
        header_bounds[q + ONE] = headers_before
        for _ in range(headers):
            length, p = get_varint(source, p, stop)
            if length < 0 or length > stop - p:
                return status.HEADER_KEY_LENGTH
            length, p = get_varint(source, p + length, stop)
            if length > stop - p:
                return status.HEADER_VALUE_LENGTH
            p += max(length, 0)
        if p != stop:
            return status.RECORD_LENGTH
    return status.SOUND if p == end else status.TRAILING


@kernel
def index_headers(source, value_starts, value_lengths, header_bounds,
                  key_lengths, key_starts, content_lengths, content_starts):  # fmt: skip
    """Reads the headers of records that `index` has checked: they follow the value."""
    end = len(source)
    for i in range(len(value_starts)):
        if header_bounds[i] == header_bounds[i + 1]:
            continue
        _, p = get_varint(source, value_starts[i] + max(np.int64(value_lengths[i]), 0), end)
        for h in range(header_bounds[i], header_bounds[i + 1]):
            length, p = get_varint(source, p, end)
            key_lengths[h], key_starts[h] = length, p
            length, p = get_varint(source, p + length, end)
            content_lengths[h], content_starts[h] = max(length, -1), p
            p += max(length, 0)


@leaf
def _next(source, p, end):
    """(value, next position, whether it is the shortest form) of an int32."""
    value, after = get_varint(source, p, end)
    return value, after, is_shortest(source, p, after, value)


@leaf
def _record_is_canonical(source, p, end, marks):
    """(whether every varint is the shortest, nulls are -1 and attributes 0; next position)."""
    _, p, whole = _next(source, p, end)
    if marks:
        whole &= get_u8(source, p) == 0
        p += 1
    delta, after = get_varlong(source, p, end)
    whole &= is_shortest(source, p, after, delta)
    _, p, short = _next(source, after, end)
    whole &= short
    for _ in range(2):
        length, p, short = _next(source, p, end)
        whole &= short and length >= -1
        p += max(length, 0)
    headers, p, short = _next(source, p, end)
    whole &= short
    for _ in range(2 * headers):
        length, p, short = _next(source, p, end)
        whole &= short and length >= -1
        p += max(length, 0)
    return whole, p


@leaf
def _header_is_canonical(data, at, end, magic):
    bits = np.int64(get_i16(data, at + ATTRIBUTES))
    if magic == 2:
        return bits & ~layouts.V2_ATTRIBUTES_MASK == 0
    if bits & FIXED:
        return True
    delta, p, whole = _next(data, at + V3_SIZE, end)
    for _ in range(2):
        delta, after = get_varlong(data, p, end)
        whole &= is_shortest(data, p, after, delta)
        p = after
    return whole


@kernel
def describe(data, positions, magic, source, starts, ends, sound, rows):
    """Fills one BATCH row for each batch number in `sound`; the other arguments as in `index`, which has checked it."""
    for i in range(len(sound)):
        b = sound[i]
        at, end = positions[b], positions[b + 1]
        row = rows[i]
        bits, last_delta, base_time, max_time, count, _ = _read_header(data, at, end, magic)
        row.position, row.size_bytes, row.magic = at, end - at, magic
        row.crc, row.attributes, row.codec = get_u32(data, at + CRC), bits, bits & CODEC_MASK
        row.timestamp_type = 1 if bits & APPEND else 0
        row.base_offset = get_i64(data, at)
        row.last_offset = row.base_offset + last_delta
        row.count, row.base_timestamp_ms, row.max_timestamp_ms = count, base_time, max_time
        row.partition_leader_epoch = get_i32(data, at + EPOCH)
        producer, epoch, sequence = V2_PRODUCER, V2_PRODUCER_EPOCH, V2_SEQUENCE
        if magic == 3:
            producer, epoch, sequence = V3_PRODUCER, V3_PRODUCER_EPOCH, V3_SEQUENCE
        row.producer_id = get_i64(data, at + producer)
        row.producer_epoch = get_i16(data, at + epoch)
        first = np.int64(get_i32(data, at + sequence))
        row.base_sequence = first
        # Sequences wrap from int32's maximum to 0 (DefaultRecordBatch.incrementSequence).
        last = first + last_delta
        row.last_sequence = -1 if first == -1 else last - 2**31 if last > INT32_MAX else last
        row.is_transactional, row.is_control = bits & TRANSACTIONAL != 0, bits & CONTROL != 0
        row.delete_horizon_ms = base_time if bits & HORIZON else np.int64(layouts.NO_TIMESTAMP)
        row.records_size_bytes = ends[b] - starts[b]
        whole, p = _header_is_canonical(data, at, end, magic), starts[b]
        whole &= count > 0 or (p == ends[b] and row.codec == 0)
        # An encoder takes these for "derive it".
        whole &= row.base_offset != UNSET and row.last_offset != UNSET and base_time != UNSET and max_time != UNSET
        whole &= bits & HORIZON == 0 or base_time >= 0  # no encoder is asked for a horizon before time
        for _ in range(count):
            short, p = _record_is_canonical(source, p, ends[b], _marks(bits, magic))
            whole &= short
        row.canonical = whole
