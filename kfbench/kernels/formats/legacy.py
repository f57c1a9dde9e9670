"""Messages and wrappers of v0 and v1 (`LegacyRecord`, `AbstractLegacyRecordBatch`). The kernels are in `messages`."""

import numpy as np

from kfbench import layouts
from kfbench.kernels.formats.message_fields import (
    AFTER_LENGTH,
    ATTRIBUTES,
    CRC,
    INT32_MAX,
    MAGIC,
    NO_TIMESTAMP,
    NULL,
    UNSET,
    message_end,
    put_key_and_value,
    read_lengths,
    value_at,
)
from kfbench.kernels.jit import leaf
from kfbench.kernels.simd.intrinsics import get_i8, get_i32, get_i64, get_u8, get_u32, put_i64, put_u8
from kfbench.kernels.wire import status
from kfbench.kernels.wire.crc import crc32

TIMESTAMP = layouts.position(layouts.V1_MESSAGE, "timestamp_ms")
KEY_V0, KEY_V1 = layouts.V0_MESSAGE.itemsize, layouts.V1_MESSAGE.itemsize
FIXED_V0, FIXED_V1 = layouts.LEGACY_FIXED_BYTES
CODEC_MASK, APPEND = layouts.CODEC_MASK, layouts.TIMESTAMP_TYPE_BIT
ONE = np.uint64(1)
MOST_PAYLOAD_BYTES = INT32_MAX - FIXED_V1  # of a message's key and value together

PARTS = ("offset", "length", "crc", "magic", "attributes", "timestamp", "key_length", "key", "value_length", "value")
PART_BYTES = (8, 4, 4, 1, 1, 8, 4, 0, 4, 0)  # of a message with v1's timestamp; 0: variable size


@leaf
def fixed_bytes(magic):
    """Return the size of a message without its key and value, in bytes."""
    return FIXED_V1 if magic else FIXED_V0


@leaf
def key_at(data, at):
    """Return the position of the field that stores the key's length. at: the position of the message."""
    return at + (KEY_V1 if get_i8(data, at + MAGIC) else KEY_V0)


@leaf
def codec_of(data, at):
    """Return the codec number of the message at `at`, 0 for none."""
    return np.int64(get_u8(data, at + ATTRIBUTES)) & CODEC_MASK


@leaf
def _put_start(out, at, offset, magic, attributes, timestamp):
    """Write the fields of a message before its key, without length and checksum. Return the next position."""
    put_i64(out, at, offset)
    put_u8(out, at + MAGIC, np.uint8(magic))
    put_u8(out, at + ATTRIBUTES, np.uint8(attributes))
    if magic:
        put_i64(out, at + TIMESTAMP, timestamp)
        return at + KEY_V1
    return at + KEY_V0


@leaf
def put_record(out, at, columns, i, row, base, magic, inner):
    """Write record i as a v0 or v1 message. Return the next position.

    Inside a v1 wrapper, the timestamp is the one that the producer set.

    Args:
        out, at: uint8 buffer and position.
        columns, i: RecordColumns, and the number of the record.
        row: the batch's FIELDS row.
        base: int64; the message stores the record's offset minus `base`.
        magic: 0 or 1.
        inner: True if the message goes inside a wrapper.
    """
    timestamps, offsets, key_lengths, value_lengths = columns[:4]
    keys, key_starts = columns.key_data, columns.key_starts
    values, value_starts = columns.value_data, columns.value_starts
    append = magic == 1 and row.timestamp_type == 1
    timestamp = row.append_time_ms if append and not inner else timestamps[i]
    # Kafka's builder writes append time and its attribute bit into inner messages. Its broker changes neither.
    attributes = APPEND if append and timestamp == row.append_time_ms else 0
    p = _put_start(out, at, offsets[i] - base, magic, attributes, timestamp)
    return put_key_and_value(
        out, at, p, keys, key_starts[i], np.int64(key_lengths[i]), values, value_starts[i], np.int64(value_lengths[i])
    )


@leaf
def put_wrapper(out, at, columns, first, end, row, magic, codec, payload, start, size):
    """Write a wrapper message around payload[start : start + size]. Return the next position.

    Args:
        out, at, columns, row, magic: as in `put_record`.
        first, end: uint64; the wrapper holds the records first to end - 1.
        codec: the codec's number.
        payload, start, size: uint8 data, and the wrapper's slice of it.
    """
    timestamps, offsets = columns[:2]
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
    p = _put_start(out, at, last, magic, attributes, timestamp)
    return put_key_and_value(out, at, p, payload, 0, np.int64(NULL), payload, start, size)


@leaf
def check(data, at, end):
    """Check the message data[at:end]. Return its `status`, SOUND if it is undamaged.

    Like Kafka, treat any negative length as null, and ignore bytes after the value.
    """
    key = key_at(data, at)
    if key + 8 > end:
        return status.SIZE
    if get_u32(data, at + CRC) != np.uint32(crc32(data, at + MAGIC, end)):
        return status.CRC
    length = np.int64(get_i32(data, key))
    if length > end - key - 8:
        return status.KEY_LENGTH
    value = value_at(data, key)
    if get_i32(data, value) > end - value - 4:
        return status.VALUE_LENGTH
    return status.SOUND


@leaf
def read_set(data, wrapper, source, p, inner, first, number, columns):
    """Read the messages of a set into the rows from `first` on. Return SOUND, or WRAPPER_OFFSET for a wrong wrapper.

    A v1 wrapper stores the absolute offset of its last inner message. If it is 0, inner offsets are absolute. With log
    append time, the wrapper's timestamp replaces the timestamp of every inner v1 message. v0 messages have none.

    Args:
        data, wrapper: uint8 log, and the position of the wrapper or plain message.
        source, p, number: the uncompressed messages, the position of the first one, and their number.
        inner: True if the messages lie in a wrapper.
        first, columns: the first row to fill, and the arrays of an `Index`.
    """
    timestamps, created, offsets = columns[:3]
    in_v1_wrapper = inner and get_i8(data, wrapper + MAGIC) != 0
    append = in_v1_wrapper and get_u8(data, wrapper + ATTRIBUTES) & APPEND != 0
    for q in range(np.uint64(first), np.uint64(first + number)):
        offsets[q] = get_i64(source, p)
        timestamps[q] = created[q] = NO_TIMESTAMP
        if get_i8(source, p + MAGIC):
            created[q] = get_i64(source, p + TIMESTAMP)
            timestamps[q] = get_i64(data, wrapper + TIMESTAMP) if append else created[q]
        read_lengths(source, key_at(source, p), q, columns)
        p = message_end(source, p)
    if in_v1_wrapper and number > 0:
        last_inner, last = offsets[first + number - 1], get_i64(data, wrapper)
        if last and last < last_inner:
            return status.WRAPPER_OFFSET
        if last:
            for q in range(np.uint64(first), np.uint64(first + number)):
                offsets[q] += last - last_inner
    return status.SOUND


@leaf
def _is_filled(data, at, end):
    """Return whether nulls have length -1 and no bytes follow the value of the message data[at:end]."""
    key = key_at(data, at)
    value = value_at(data, key)
    value_length = np.int64(get_i32(data, value))
    return get_i32(data, key) >= NULL and value_length >= NULL and value + 4 + max(value_length, 0) == end


@leaf
def _is_canonical_set(source, p, end, magic, appended):
    """Return whether `encode` would write exactly these bytes for the inner messages source[p:end].

    appended: the wrapper's append time in ms, or UNSET.
    """
    whole = True
    while whole and end - p >= AFTER_LENGTH:
        stop = message_end(source, p)
        if stop > end:
            break
        whole = get_i8(source, p + MAGIC) == magic and _is_filled(source, p, stop)
        if whole:
            marked = magic != 0 and appended != UNSET and get_i64(source, p + TIMESTAMP) == appended
            whole = get_u8(source, p + ATTRIBUTES) == (APPEND if marked else 0)
        p = stop
    return whole and p == end


@leaf
def holds_other_magic(source, p, end, magic):
    """Return whether any message of the undamaged set source[p:end] has another magic."""
    found = False
    while not found and end - p >= AFTER_LENGTH:
        stop = message_end(source, p)
        if stop > end:
            break
        found = get_i8(source, p + MAGIC) != magic
        p = stop
    return found


@leaf
def describe_set(data, at, end, source, p, p_end, magic, first_offset, last_offset, row):
    """Fill those fields of a BATCH row that `describe_message` does not fill.

    Args:
        data, at, end: uint8 log, and the bounds of the wrapper or plain message.
        source, p, p_end: the uncompressed messages source[p:p_end].
        magic: 0 or 1.
        first_offset, last_offset: those of the set's records.
        row: the BATCH row to fill.
    """
    bits = np.int16(get_i8(data, at + ATTRIBUTES))
    row.timestamp_type = 1 if magic and bits & APPEND else 0
    row.base_offset = first_offset
    row.last_offset = get_i64(data, at)  # a v0 wrapper may have another offset than its last inner message
    row.max_timestamp_ms = get_i64(data, at + TIMESTAMP) if magic else np.int64(NO_TIMESTAMP)
    row.append_time_ms = row.max_timestamp_ms if row.timestamp_type else np.int64(NO_TIMESTAMP)
    known = layouts.LEGACY_ATTRIBUTES_MASK if magic else CODEC_MASK
    row.canonical = bits & ~known == 0 and _is_filled(data, at, end)
    if row.codec and row.canonical:
        appended = row.max_timestamp_ms if row.timestamp_type else np.int64(UNSET)
        is_null = get_i32(data, key_at(data, at)) == NULL
        row.canonical = is_null and _is_canonical_set(source, p, p_end, magic, appended)
        if magic:  # the wrapper has the last message's offset
            row.canonical &= row.last_offset == last_offset
    row.mixed_magic = False
    if row.codec and not row.canonical:
        row.mixed_magic = holds_other_magic(source, p, p_end, magic)
