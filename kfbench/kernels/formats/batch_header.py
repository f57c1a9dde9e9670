"""The header of a record batch: v2's (`DefaultRecordBatch`), and v3's with its features (KIP-931 and ablations).

`features` are the attribute bits above v2's, with SHARED_HEADERS for a writer that is to fill tag 1.
"""

import numpy as np

from kfbench import layouts
from kfbench.kernels.jit import kernel, leaf
from kfbench.kernels.simd.intrinsics import (
    get_i8,
    get_i16,
    get_i32,
    get_i64,
    get_u32,
    move,
    put_i16,
    put_i32,
    put_i64,
    put_u8,
)
from kfbench.kernels.wire import status
from kfbench.kernels.wire.crc import crc32c
from kfbench.kernels.wire.frames import ask_ahead
from kfbench.kernels.wire.lengths import (
    count_bytes,
    delta_code,
    get_count,
    get_delta,
    get_length,
    length_bytes,
    put_count,
    put_field,
    skip,
)
from kfbench.kernels.wire.varint import (
    get_uvarint,
    get_varlong,
    is_shortest,
    is_shortest_uvarint,
    put_bytes,
    put_uvarint,
    put_varint,
    uvarint_bytes,
    varint_bytes,
)

_V2, _V3, _TAIL = layouts.V2_HEADER, layouts.V3_HEADER, layouts.V3_FIXED_TAIL
at_ = layouts.position
EPOCH, MAGIC, CRC = (at_(_V2, name) for name in ("partition_leader_epoch", "magic", "crc"))
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
CODEC_MASK, APPEND, TRANSACTIONAL = layouts.CODEC_MASK, layouts.TIMESTAMP_TYPE_BIT, layouts.TRANSACTIONAL_BIT
CONTROL, HORIZON = layouts.CONTROL_BIT, layouts.DELETE_HORIZON_BIT
BARE, FIXED, UNSIGNED = layouts.NO_RECORD_ATTRIBUTES_BIT, layouts.FIXED_HEADER_BIT, layouts.UNSIGNED_BIT
HEADERS_FIRST, TAGGED = layouts.HEADERS_FIRST_BIT, layouts.TAGGED_BIT
ATTRIBUTE_BITS = 0xFFFF
APPEND_TAG, SHARED_TAG, APPEND_TAG_BYTES = layouts.APPEND_TIME_TAG, layouts.SHARED_HEADERS_TAG, 8
UNSET, NO_TIMESTAMP, NULL = layouts.UNSET, layouts.NO_TIMESTAMP, layouts.NULL_LENGTH
ONE = np.uint64(1)

# Where each byte of a batch goes. The header's fields are prefixed: record and batch both have a length, and so on.
HEADER_PARTS = tuple(f"batch_header.{name}" for name in _V2.names)
TAGS_PART = len(HEADER_PARTS)
RECORD_PARTS_AT = TAGS_PART + 1
RECORD_PARTS = (
    "length",
    "metadata_length",
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
PARTS = (*HEADER_PARTS, "batch_header.tagged_fields", *RECORD_PARTS)
HEADER_COUNT_PART = PARTS.index("header_count")
LAST_PART, BASE_TIME_PART, MAX_TIME_PART = (
    _V2.names.index(name) for name in ("last_offset_delta", "base_timestamp_ms", "max_timestamp_ms")
)
FIXED_PART_BYTES = np.array([_V2[name].itemsize for name in _V2.names])


@leaf
def outline(timestamps, offsets, first, end, row, horizon_ms, tagged):
    """(base offset, last offset delta, base time, max time) of the records first to end - 1."""
    base_offset, last_offset = row.base_offset, row.last_offset
    base_time, max_time = row.base_timestamp_ms, row.max_timestamp_ms
    if base_offset == UNSET:
        base_offset = offsets[first] if first < end else np.int64(0)
    if last_offset == UNSET:
        last_offset = offsets[end - ONE] if first < end else base_offset
    if base_time == UNSET:
        base_time = np.int64(NO_TIMESTAMP)
        if horizon_ms >= 0:
            base_time = horizon_ms
        elif first < end:
            base_time = timestamps[first]
    if max_time == UNSET:
        max_time = np.int64(NO_TIMESTAMP)
        if row.timestamp_type and not tagged:  # there tag 0 has it
            max_time = row.append_time_ms
        elif first < end:
            max_time = timestamps[first]
            for i in range(first, end):
                max_time = max(max_time, timestamps[i])
    return base_offset, last_offset - base_offset, base_time, max_time


@leaf
def untagged_bytes(last_delta, base_time, max_time, magic, features):
    """The header's size without its tagged fields."""
    if magic == 2:
        return V2_SIZE
    if features & FIXED:
        return TAIL_SIZE
    last = uvarint_bytes(delta_code(last_delta, features & UNSIGNED != 0))
    return V3_SIZE + last + varint_bytes(base_time) + varint_bytes(max_time - base_time) + 4


@leaf
def shared_bytes(header_bounds, key_lengths, value_lengths, first, shared, unsigned):
    """What is in tag 1: the first `shared` headers of record `first`."""
    start = np.int64(header_bounds[first])
    size = count_bytes(shared, unsigned)
    for h in range(np.uint64(start), np.uint64(start + shared)):
        name, content = np.int64(key_lengths[h]), np.int64(value_lengths[h])
        size += count_bytes(name, unsigned) + name + length_bytes(content, unsigned) + max(content, 0)
    return size


@leaf
def tags_bytes(row, header_bounds, key_lengths, value_lengths, first, shared, unsigned):
    """All tagged fields, their number included."""
    size = 2 + APPEND_TAG_BYTES + np.int64(row.tags_bytes)
    tags = 1 + np.int64(row.tags_count)
    if shared:
        content = shared_bytes(header_bounds, key_lengths, value_lengths, first, shared, unsigned)
        size += 1 + uvarint_bytes(np.uint64(content)) + content
        tags += 1
    return size + uvarint_bytes(np.uint64(tags))


@leaf
def attributes_of(row, codec, features, count):
    bits = features & ATTRIBUTE_BITS
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
def put_header(out, at, row, magic, attributes, base_offset, last_delta, base_time, max_time, count):
    """Everything but length, checksum and tagged fields; gives the position after the count."""
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
    at = put_uvarint(out, at + V3_SIZE, delta_code(last_delta, attributes & UNSIGNED != 0))
    at = put_varint(out, at, base_time)
    at = put_varint(out, at, max_time - base_time)
    put_i32(out, at, np.int32(count))
    return at + 4


@leaf
def put_tags(out, at, row, tags, columns, first, shared, unsigned):
    """Tag 0, tag 1 where the records share headers, and the caller's own, which are `tags`, ready to copy."""
    header_bounds, key_lengths, value_lengths = columns[4:7]
    keys, key_starts, values, value_starts = columns[11:15]
    number = 1 + np.int64(row.tags_count) + (1 if shared else 0)
    at = put_uvarint(out, at, np.uint64(number))
    put_u8(out, at, np.uint8(APPEND_TAG))
    put_u8(out, at + 1, np.uint8(APPEND_TAG_BYTES))
    put_i64(out, at + 2, row.append_time_ms)
    at += 2 + APPEND_TAG_BYTES
    if shared:
        content = shared_bytes(header_bounds, key_lengths, value_lengths, first, shared, unsigned)
        put_u8(out, at, np.uint8(SHARED_TAG))
        at = put_uvarint(out, at + 1, np.uint64(content))
        at = put_count(out, at, shared, unsigned)
        start = np.int64(header_bounds[first])
        for h in range(np.uint64(start), np.uint64(start + shared)):
            name, content = np.int64(key_lengths[h]), np.int64(value_lengths[h])
            at = put_bytes(out, put_count(out, at, name, unsigned), keys, key_starts[h], name)
            at = put_field(out, at, values, value_starts[h], content, unsigned)
    move(out, at, tags, row.tags_start, np.int64(row.tags_bytes))
    return at + row.tags_bytes


@leaf
def add_parts(out, row, columns, first, last_delta, base_time, max_time, shared, magic, features):
    """Adds the header of one batch to `out` int64[len(PARTS)]; the headers of tag 1 are counted as headers."""
    for k in range(len(FIXED_PART_BYTES)):
        out[k] += FIXED_PART_BYTES[k]
    if magic == 3 and not features & FIXED:
        last = uvarint_bytes(delta_code(last_delta, features & UNSIGNED != 0))
        out[LAST_PART] += last - FIXED_PART_BYTES[LAST_PART]
        out[BASE_TIME_PART] += varint_bytes(base_time) - FIXED_PART_BYTES[BASE_TIME_PART]
        out[MAX_TIME_PART] += varint_bytes(max_time - base_time) - FIXED_PART_BYTES[MAX_TIME_PART]
    if features & TAGGED:
        unsigned = features & UNSIGNED != 0
        header_bounds, key_lengths, value_lengths = columns[4:7]
        size = tags_bytes(row, header_bounds, key_lengths, value_lengths, first, shared, unsigned)
        if shared:
            size -= shared_bytes(header_bounds, key_lengths, value_lengths, first, shared, unsigned)
            start = np.int64(header_bounds[first])
            add_header_parts(out, key_lengths, value_lengths, start, start + shared, unsigned)
        out[TAGS_PART] += size


@leaf
def add_header_parts(out, key_lengths, value_lengths, start, end, unsigned):
    """Adds the headers start to end - 1 and their count."""
    parts = out[HEADER_COUNT_PART:]
    parts[0] += count_bytes(end - start, unsigned)
    for h in range(start, end):
        name, content = np.int64(key_lengths[h]), np.int64(value_lengths[h])
        parts[1] += count_bytes(name, unsigned)
        parts[2] += name
        parts[3] += length_bytes(content, unsigned)
        parts[4] += max(content, 0)


@leaf
def read_header(data, at, end, magic):
    """(attributes, last offset delta, base time, max time, count, position after it: end + 1 if it is cut short)."""
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
    last_delta, body = get_delta(data, at + V3_SIZE, end, bits & UNSIGNED != 0)
    base_time, body = get_varlong(data, body, end)
    max_delta, body = get_varlong(data, body, end)
    if body + 4 > end:
        return bits, np.int64(0), np.int64(0), np.int64(0), np.int64(0), end + 1
    return bits, last_delta, base_time, base_time + max_delta, np.int64(get_i32(data, body)), body + 4


@leaf
def read_tags(data, p, end):
    """(state, whether tag 0 is there, append time, tag 1 from, to, other tags from, their number, where records begin).

    Tags rise, as KIP-482 has them; from = to: tag 1 is not there.
    """
    timed, append_time = False, np.int64(NO_TIMESTAMP)
    shared_start = shared_stop = np.int64(end)
    others, rest = np.int64(0), np.int64(end)
    number, p = get_uvarint(data, p, end)
    last = np.int64(-1)
    for _ in range(number):
        here = p
        tag, p = get_uvarint(data, p, end)
        size, p = get_uvarint(data, p, end)
        if p > end or size > end - p or tag <= last or (tag == APPEND_TAG and size != APPEND_TAG_BYTES):
            return status.TAGS, timed, append_time, shared_start, shared_stop, rest, others, np.int64(end)
        if tag == SHARED_TAG and size == 0:  # no count in it
            return status.SHARED_HEADERS, timed, append_time, shared_start, shared_stop, rest, others, np.int64(end)
        if tag == APPEND_TAG:
            timed, append_time = True, get_i64(data, p)
        elif tag == SHARED_TAG:
            shared_start, shared_stop = np.int64(p), np.int64(p + size)
        else:
            if others == 0:
                rest = np.int64(here)
            others += 1
        last = tag
        p += size
    state = status.TAGS if p > end else status.SOUND
    return state, timed, append_time, shared_start, shared_stop, rest, others, np.int64(p)


@leaf
def read_shared(source, p, stop, most_bytes, unsigned):
    """(state, number of headers in tag 1, where the first begins)."""
    number, p = get_count(source, p, stop, unsigned)
    if number < 0 or number > (stop - p) >> 1:
        return status.SHARED_HEADERS, np.int64(0), p
    first = p
    for _ in range(number):
        length, p = get_count(source, p, stop, unsigned)
        if length < 0 or length > stop - p:
            return status.SHARED_HEADERS, np.int64(0), first
        content, p = get_length(source, p + length, stop, unsigned)
        if content > stop - p:
            return status.SHARED_HEADERS, np.int64(0), first
        if max(length, content) > most_bytes:
            return status.LIMIT_FIELD, np.int64(0), first
        length = content
        p += max(length, 0)
    return status.SOUND if p == stop else status.SHARED_HEADERS, number, first


@leaf
def marks_of(bits, magic):
    """Attribute bytes a record."""
    return 0 if magic == 3 and bits & BARE else 1


@leaf
def least_record_bytes(bits, magic):
    """No record is smaller; headers first, it has no length of its own."""
    own_length = 0 if magic == 3 and bits & HEADERS_FIRST else 1
    return layouts.MIN_RECORD_BYTES + marks_of(bits, magic) + own_length


@leaf
def crc_holds(data, at, end):
    return get_u32(data, at + CRC) == np.uint32(crc32c(data, at + ATTRIBUTES, end))


@kernel
def survey(data, positions, magic, most_records, most_bytes, check_crcs, codecs, counts, bodies, shared_starts,
           shared_stops, state):  # fmt: skip
    """Reads each batch header, tag 1 included; with check_crcs checks the CRC of compressed batches, so that nothing
    damaged is decompressed.

    positions int64[batches + 1]. Fills codecs int8, counts int64, bodies int64 (where the records begin), state int8
    (see `status`) and, of magic 3, shared_starts and shared_stops int64 (tag 1; equal: not there). Gives (records that
    are claimed, whether any batch is compressed, has log append time, is unsigned, headers first or tagged).
    """
    least = V2_SIZE if magic == 2 else V3_SIZE
    records, compressed, append, featured = np.int64(0), False, False, False
    for b in range(len(state)):
        if not check_crcs:
            ask_ahead(data, positions, b)
        at, end = positions[b], positions[b + 1]
        codecs[b], counts[b], bodies[b] = 0, 0, end
        if magic == 3:
            shared_starts[b] = shared_stops[b] = 0
        if get_i8(data, at + MAGIC) != magic:
            state[b] = status.MAGIC
            continue
        if end - at < least:
            state[b] = status.SIZE
            continue
        bits, _, _, _, count, body = read_header(data, at, end, magic)
        codec = bits & CODEC_MASK
        problem = status.SOUND
        if body > end:
            problem = status.BATCH_HEADER
        elif codec > 4:
            problem = status.CODEC
        elif magic == 3 and bits & ~layouts.V3_ATTRIBUTES_MASK:
            problem = status.ATTRIBUTES
        elif magic == 3 and bits & TAGGED:
            problem, _, _, shared_starts[b], shared_stops[b], _, _, body = read_tags(data, body, end)
            if problem == status.SOUND and shared_starts[b] != shared_stops[b]:
                unsigned = bits & UNSIGNED != 0
                problem, _, _ = read_shared(data, shared_starts[b], shared_stops[b], most_bytes, unsigned)
        if problem == status.SOUND:
            if count < 0 or (codec == 0 and count * least_record_bytes(bits, magic) > end - body):
                problem = status.COUNT
            elif count > most_records:
                problem = status.LIMIT_RECORDS
        if check_crcs and (codec != 0 or problem != status.SOUND) and not crc_holds(data, at, end):
            problem = status.CRC
        state[b] = problem
        if problem == status.SOUND:
            counts[b], bodies[b] = count, body
            codecs[b] = codec if count else 0
            records += count
            compressed |= codecs[b] != 0
            append |= bits & APPEND != 0
            featured |= magic == 3 and bits & (UNSIGNED | HEADERS_FIRST | TAGGED) != 0
    return records, compressed, append, featured


@leaf
def is_canonical(data, at, end, magic):
    """Whether an encoder writes this header so: shortest varints, tag 0 there, no bits that v2 does not know."""
    bits = np.int64(get_i16(data, at + ATTRIBUTES))
    if magic == 2:
        return bits & ~layouts.V2_ATTRIBUTES_MASK == 0
    whole, p = True, at + TAIL_SIZE
    if not bits & FIXED:
        _, p, whole = skip(data, at + V3_SIZE, end, bits & UNSIGNED != 0)
        for _ in range(2):
            value, after = get_varlong(data, p, end)
            whole &= is_shortest(data, p, after, value)
            p = after
        p += 4
    if bits & TAGGED:
        _, timed, _, start, stop, _, _, _ = read_tags(data, p, end)
        whole &= timed
        number, after = get_uvarint(data, p, end)
        whole &= is_shortest_uvarint(data, p, after, number)
        for _ in range(number):
            for _ in range(2):
                p = after
                value, after = get_uvarint(data, p, end)
                whole &= is_shortest_uvarint(data, p, after, value)
            after += value
        if start != stop:
            unsigned = bits & UNSIGNED != 0
            headers, p, short = skip(data, start, stop, unsigned)
            whole &= short and headers > 0
            for _ in range(headers):
                name, p, short = skip(data, p, stop, unsigned)
                whole &= short
                content, after = get_length(data, p + name, stop, unsigned)
                whole &= skip(data, p + name, stop, unsigned)[2] and content >= NULL
                p = after + max(content, 0)
    return whole
