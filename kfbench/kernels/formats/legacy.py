"""Kernels of the message formats: v0 and v1 (`LegacyRecord`, `AbstractLegacyRecordBatch`).

A plain message stands for itself; a compressed set is one wrapper message whose value is the compressed inner set.
"""

import numpy as np

from kfbench import layouts
from kfbench.kernels.jit import kernel, leaf
from kfbench.kernels.simd.intrinsics import get_i8, get_i32, get_i64, get_u8, get_u32, put_i32, put_i64, put_u8
from kfbench.kernels.wire import status
from kfbench.kernels.wire.crc import crc32
from kfbench.kernels.wire.varint import put_bytes

_V1 = layouts.V1_MESSAGE
LENGTH, CRC, MAGIC, ATTRIBUTES, TIMESTAMP = (
    layouts.position(_V1, name) for name in ("length", "crc", "magic", "attributes", "timestamp_ms")
)
KEY_V0, KEY_V1 = layouts.V0_MESSAGE.itemsize, _V1.itemsize
AFTER_LENGTH = LENGTH + 4
FIXED_V0, FIXED_V1 = layouts.LEGACY_FIXED_BYTES
CODEC_MASK, APPEND, UNSET = layouts.CODEC_MASK, layouts.TIMESTAMP_TYPE_BIT, layouts.UNSET
NULL, NO_TIMESTAMP = layouts.NULL_LENGTH, layouts.NO_TIMESTAMP
INT32_MAX = 2**31 - 1
ONE = np.uint64(1)
OK, MESSAGE_TOO_LARGE, OUT_TOO_SMALL = 0, 1, 2

PARTS = ("offset", "length", "crc", "magic", "attributes", "timestamp", "key_length", "key", "value_length", "value")
PART_BYTES = (8, 4, 4, 1, 1, 8, 4, 0, 4, 0)  # a message, with v1's timestamp; 0: as long as it is


@leaf
def _put_message(out, at, offset, magic, attributes, timestamp,
                 keys, key_start, key_length, values, value_start, value_length):  # fmt: skip
    put_i64(out, at, offset)
    put_u8(out, at + MAGIC, np.uint8(magic))
    put_u8(out, at + ATTRIBUTES, np.uint8(attributes))
    p = at + KEY_V0
    if magic:
        put_i64(out, at + TIMESTAMP, timestamp)
        p = at + KEY_V1
    put_i32(out, p, np.int32(key_length))
    p = put_bytes(out, p + 4, keys, key_start, max(key_length, 0))
    put_i32(out, p, np.int32(value_length))
    p = put_bytes(out, p + 4, values, value_start, max(value_length, 0))
    put_i32(out, at + LENGTH, np.int32(p - at - AFTER_LENGTH))
    put_i32(out, at + CRC, np.int32(crc32(out, at + MAGIC, p)))
    return p


@kernel
def encode(columns, bounds, fields, magic, inner, out, positions):
    """Writes each record as a message: as they stand in the log, or (inner) as they stand inside a wrapper.

    Inside a v1 wrapper offsets count from the batch's base offset (KIP-31) and timestamps are the producer's. Control
    batches have no place in these formats and are left out. Fills positions int64[batches + 1].
    """
    timestamps, offsets, key_lengths, value_lengths = columns[:4]
    keys, key_starts, values, value_starts = columns[7:11]
    fixed = FIXED_V1 if magic else FIXED_V0
    at = 0
    for b in range(len(bounds) - 1):
        first, end = np.uint64(bounds[b]), np.uint64(bounds[b + 1])
        row = fields[b if len(fields) > 1 else 0]
        positions[b] = at
        if row.is_control or first == end:
            continue
        append = magic == 1 and row.timestamp_type == 1
        base = np.int64(0)
        if inner and magic == 1:
            base = offsets[first] if row.base_offset == UNSET else row.base_offset
        for i in range(first, end):
            key_length, value_length = np.int64(key_lengths[i]), np.int64(value_lengths[i])
            payload = max(key_length, 0) + max(value_length, 0)
            if payload > INT32_MAX - FIXED_V1:
                return MESSAGE_TOO_LARGE, b
            if payload + fixed > len(out) - at:
                return OUT_TOO_SMALL, b
            timestamp = row.append_time_ms if append and not inner else timestamps[i]
            # Into an inner message Kafka's builder writes append time and bit; its broker touches neither.
            attributes = APPEND if append and timestamp == row.append_time_ms else 0
            at = _put_message(out, at, offsets[i] - base, magic, attributes, timestamp,
                              keys, key_starts[i], key_length, values, value_starts[i], value_length)  # fmt: skip
    positions[len(bounds) - 1] = at
    return OK, 0


@kernel
def wrap(columns, bounds, fields, magic, codec, payload, payload_bounds, out, positions):
    """One wrapper message a batch around its slice of `payload`; nothing where the slice is empty."""
    timestamps, offsets = columns[:2]
    at = 0
    for b in range(len(bounds) - 1):
        positions[b] = at
        first, end = np.uint64(bounds[b]), np.uint64(bounds[b + 1])
        size = payload_bounds[b + 1] - payload_bounds[b]
        if size == 0:
            continue
        if size > INT32_MAX - FIXED_V1:
            return MESSAGE_TOO_LARGE, b
        row = fields[b if len(fields) > 1 else 0]
        attributes, timestamp = codec, row.max_timestamp_ms
        if magic == 1 and row.timestamp_type == 1:
            attributes |= APPEND
            timestamp = row.append_time_ms
        elif timestamp == UNSET:
            timestamp = timestamps[first]
            for i in range(first, end):
                timestamp = max(timestamp, timestamps[i])
        # A v1 reader counts back from the wrapper's offset, so only v0 can name a later one.
        last = offsets[end - ONE] if magic == 1 or row.last_offset == UNSET else row.last_offset
        at = _put_message(out, at, last, magic, attributes, timestamp,
                          payload, 0, np.int64(NULL), payload, payload_bounds[b], size)  # fmt: skip
    positions[len(bounds) - 1] = at
    return OK, 0


@kernel
def sizes(columns, bounds, fields, magic, out):
    """The uncompressed bytes of each batch, int64[batches]."""
    key_lengths, value_lengths = columns[2], columns[3]
    fixed = FIXED_V1 if magic else FIXED_V0
    for b in range(len(bounds) - 1):
        first, end = np.uint64(bounds[b]), np.uint64(bounds[b + 1])
        total = np.int64(0)
        if not fields[b if len(fields) > 1 else 0].is_control:
            for i in range(first, end):
                total += fixed + max(np.int64(key_lengths[i]), 0) + max(np.int64(value_lengths[i]), 0)
        out[b] = total


@leaf
def _check(data, at, end, magic):
    """The state of the message data[at:end]: long enough for its magic, sound by its CRC, lengths that stay inside.

    Any negative length is null to Kafka, and it does not look at what follows the value.
    """
    key = at + (KEY_V1 if magic else KEY_V0)
    if key + 8 > end:
        return status.SIZE
    if get_u32(data, at + CRC) != np.uint32(crc32(data, at + MAGIC, end)):
        return status.CRC
    length = np.int64(get_i32(data, key))
    if length > end - key - 8:
        return status.KEY_LENGTH
    value = key + 4 + max(length, 0)
    if get_i32(data, value) > end - value - 4:
        return status.VALUE_LENGTH
    return status.SOUND


@leaf
def _is_filled(data, at, end, magic):
    """Whether nulls are -1 and the message ends with its value, as writers have it."""
    key = at + (KEY_V1 if magic else KEY_V0)
    key_length = np.int64(get_i32(data, key))
    value = key + 4 + max(key_length, 0)
    value_length = np.int64(get_i32(data, value))
    return key_length >= NULL and value_length >= NULL and value + 4 + max(value_length, 0) == end


@kernel
def survey(data, positions, magic, codecs, bodies, stops, state):
    """Checks each message. Fills codecs int8, bodies and stops int64 (a wrapper's payload) and state int8.

    Gives whether there is a wrapper.
    """
    wrapped = False
    for b in range(len(state)):
        at, end = positions[b], positions[b + 1]
        codecs[b], bodies[b], stops[b] = 0, at, end
        if get_i8(data, at + MAGIC) != magic:
            state[b] = status.MAGIC
            continue
        problem = _check(data, at, end, magic)
        codec = get_u8(data, at + ATTRIBUTES) & CODEC_MASK
        if problem == status.SOUND and codec:
            key = at + (KEY_V1 if magic else KEY_V0)
            value = key + 4 + max(np.int64(get_i32(data, key)), 0)
            if codec > 3:
                problem = status.CODEC
            elif get_i32(data, value) < 0:
                problem = status.WRAPPER_VALUE
            else:
                codecs[b], bodies[b], wrapped = codec, value + 4, True
                stops[b] = value + 4 + np.int64(get_i32(data, value))
        state[b] = problem
    return wrapped


@leaf
def _too_long(data, at, end, most_bytes):
    """Whether the key or the value of the message data[at:end] is longer than that."""
    if end - at <= most_bytes:
        return False
    key = at + (KEY_V1 if get_i8(data, at + MAGIC) else KEY_V0)
    length = np.int64(get_i32(data, key))
    return length > most_bytes or np.int64(get_i32(data, key + 4 + max(length, 0))) > most_bytes


@kernel
def count(source, starts, ends, codecs, limits, state, counts):
    """Counts and checks the messages of each set source[starts[b]:ends[b]]; an incomplete last one is no error.

    limits: (messages a set, bytes a field).
    """
    most_messages, most_bytes = limits
    for b in range(len(state)):
        counts[b] = 0
        if state[b] != status.SOUND:
            continue
        if codecs[b] == 0:
            if _too_long(source, starts[b], ends[b], most_bytes):
                state[b] = status.LIMIT_FIELD
            else:
                counts[b] = 1
            continue
        at, end, messages = starts[b], ends[b], 0
        while end - at >= AFTER_LENGTH:
            length = np.int64(get_i32(source, at + LENGTH))
            stop = at + AFTER_LENGTH + length
            if length < layouts.MIN_LENGTH:
                state[b] = status.RECORD_LENGTH
                break
            if stop > end:
                break
            inner = get_i8(source, at + MAGIC)
            if inner < 0 or inner > 1:
                state[b] = status.MAGIC
                break
            problem = _check(source, at, stop, inner)
            if problem != status.SOUND:
                state[b] = status.INNER_CRC if problem == status.CRC else problem
                break
            if get_u8(source, at + ATTRIBUTES) & CODEC_MASK:
                state[b] = status.NESTED
                break
            if _too_long(source, at, stop, most_bytes):
                state[b] = status.LIMIT_FIELD
                break
            if messages == most_messages:
                state[b] = status.LIMIT_RECORDS
                break
            messages += 1
            at = stop
        if state[b] == status.SOUND and messages == 0:
            state[b] = status.EMPTY_SET
        if state[b] == status.SOUND:
            counts[b] = messages


@kernel
def index(data, positions, source, starts, codecs, counts, state,
          timestamps, created, offsets, key_lengths, key_starts, value_lengths, value_starts, bounds):  # fmt: skip
    """Reads the messages that `survey` and `count` have found sound into columns; fills bounds int64[batches + 1].

    A v1 wrapper gives the absolute offset of its last inner message; 0 means that inner offsets count from 0. With log
    append time it gives the timestamp of every inner message that has one (v0's do not).
    """
    r = np.int64(0)
    bounds[0] = 0
    for b in range(len(state)):
        p, wrapper = starts[b], positions[b]
        first = r
        in_v1_wrapper = codecs[b] != 0 and get_i8(data, wrapper + MAGIC) != 0
        append = in_v1_wrapper and get_u8(data, wrapper + ATTRIBUTES) & APPEND != 0
        for q in range(np.uint64(r), np.uint64(r + counts[b])):
            stop = p + AFTER_LENGTH + np.int64(get_i32(source, p + LENGTH))
            offsets[q] = get_i64(source, p)
            key = p + KEY_V0
            timestamps[q] = created[q] = NO_TIMESTAMP
            if get_i8(source, p + MAGIC):
                created[q] = get_i64(source, p + TIMESTAMP)
                timestamps[q] = get_i64(data, wrapper + TIMESTAMP) if append else created[q]
                key = p + KEY_V1
            length = np.int64(get_i32(source, key))
            key_lengths[q], key_starts[q] = max(length, NULL), key + 4
            value = key + 4 + max(length, 0)
            value_lengths[q], value_starts[q] = max(np.int64(get_i32(source, value)), NULL), value + 4
            p = stop
        r += counts[b]
        if in_v1_wrapper and r > first:
            last_inner, last = offsets[r - 1], get_i64(data, wrapper)
            if last and last < last_inner:
                state[b] = status.WRAPPER_OFFSET
                r = first
            elif last:
                for q in range(np.uint64(first), np.uint64(r)):
                    offsets[q] += last - last_inner
        bounds[b + 1] = r


@leaf
def _is_canonical_set(source, p, end, magic, appended):
    """Whether `encode` writes these inner messages so; appended: the wrapper's append time, or UNSET."""
    whole = True
    while whole and end - p >= AFTER_LENGTH:
        stop = p + AFTER_LENGTH + np.int64(get_i32(source, p + LENGTH))
        if stop > end:
            break
        whole = get_i8(source, p + MAGIC) == magic and _is_filled(source, p, stop, magic)
        if whole:
            marked = magic != 0 and appended != UNSET and get_i64(source, p + TIMESTAMP) == appended
            whole = get_u8(source, p + ATTRIBUTES) == (APPEND if marked else 0)
        p = stop
    return whole and p == end


@leaf
def holds_other_magic(source, p, end, magic):
    """Whether the set source[p:end], which `count` has found sound, holds a message of another magic."""
    found = False
    while not found and end - p >= AFTER_LENGTH:
        stop = p + AFTER_LENGTH + np.int64(get_i32(source, p + LENGTH))
        if stop > end:
            break
        found = get_i8(source, p + MAGIC) != magic
        p = stop
    return found


@kernel
def describe(data, positions, magic, source, starts, ends, sound, bounds, offsets, rows):
    """Fills one BATCH row for each entry number in `sound`, which holds the records bounds[i] to bounds[i + 1]."""
    for b in range(len(sound)):
        at, end = positions[sound[b]], positions[sound[b] + 1]
        row = rows[b]
        bits = np.int16(get_i8(data, at + ATTRIBUTES))
        row.position, row.size_bytes, row.magic = at, end - at, magic
        row.crc, row.attributes, row.codec = get_u32(data, at + CRC), bits, bits & CODEC_MASK
        row.timestamp_type = 1 if magic and bits & APPEND else 0
        row.count = bounds[b + 1] - bounds[b]
        row.base_offset = offsets[bounds[b]]
        row.last_offset = get_i64(data, at)  # a v0 wrapper's may differ from its last inner message's
        row.max_timestamp_ms = get_i64(data, at + TIMESTAMP) if magic else np.int64(NO_TIMESTAMP)
        row.append_time_ms = row.max_timestamp_ms if row.timestamp_type else np.int64(NO_TIMESTAMP)
        row.base_timestamp_ms = row.producer_id = row.delete_horizon_ms = -1
        row.partition_leader_epoch = row.base_sequence = row.last_sequence = -1
        row.producer_epoch = -1
        row.is_transactional = row.is_control = False
        known = layouts.LEGACY_ATTRIBUTES_MASK if magic else CODEC_MASK
        row.canonical = bits & ~known == 0 and _is_filled(data, at, end, magic)
        if row.codec and row.canonical:
            appended = row.max_timestamp_ms if row.timestamp_type else np.int64(UNSET)
            row.canonical = get_i32(data, at + (KEY_V1 if magic else KEY_V0)) == NULL and _is_canonical_set(
                source, starts[sound[b]], ends[sound[b]], magic, appended
            )
            if magic:  # the wrapper has the last message's offset
                row.canonical &= row.last_offset == offsets[bounds[b + 1] - 1]
        row.mixed_magic = False
        if row.codec and not row.canonical:
            row.mixed_magic = holds_other_magic(source, starts[sound[b]], ends[sound[b]], magic)
