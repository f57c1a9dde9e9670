"""Fields that messages of v0, v1 and enriched have in common. A negative length of a key or value means null."""

import numpy as np

from kfbench import layouts
from kfbench.kernels.jit import leaf
from kfbench.kernels.simd.intrinsics import get_i8, get_i32, get_u32, put_i32
from kfbench.kernels.wire.crc import crc32
from kfbench.kernels.wire.varint import put_bytes

LENGTH, CRC, MAGIC, ATTRIBUTES = (
    layouts.position(layouts.V0_MESSAGE, name) for name in ("length", "crc", "magic", "attributes")
)
AFTER_LENGTH = LENGTH + 4
NULL, UNSET, NO_TIMESTAMP = layouts.NULL_LENGTH, layouts.UNSET, layouts.NO_TIMESTAMP
INT32_MAX, LAST_CODEC = 2**31 - 1, 3


@leaf
def message_end(source, at):
    """Return the position after the message at `at`, computed from its length field."""
    return at + AFTER_LENGTH + np.int64(get_i32(source, at + LENGTH))


@leaf
def value_at(data, key):
    """Return the position of the field with the value's length. key: the position of the key's length field."""
    return key + 4 + max(np.int64(get_i32(data, key)), 0)


@leaf
def has_long_field(data, key, message_bytes, most_bytes):
    """Return whether the key or the value of a checked message is longer than `most_bytes`.

    key: the position of the field with the key's length.
    """
    if message_bytes <= most_bytes:
        return False
    return get_i32(data, key) > most_bytes or get_i32(data, value_at(data, key)) > most_bytes


@leaf
def put_key_and_value(out, at, p, keys, key_start, key_length, values, value_start, value_length):
    """Write key and value, then length and checksum of their message. Return the next position.

    Args:
        out: uint8 buffer.
        at: the position of the message.
        p: the position of the field with the key's length.
        keys, key_start, key_length: uint8 data, start and length of the key; length -1 means null.
        values, value_start, value_length: uint8 data, start and length of the value; length -1 means null.
    """
    put_i32(out, p, np.int32(key_length))
    p = put_bytes(out, p + 4, keys, key_start, max(key_length, 0))
    put_i32(out, p, np.int32(value_length))
    p = put_bytes(out, p + 4, values, value_start, max(value_length, 0))
    put_i32(out, at + LENGTH, np.int32(p - at - AFTER_LENGTH))
    put_i32(out, at + CRC, np.int32(crc32(out, at + MAGIC, p)))
    return p


@leaf
def read_lengths(source, key, q, columns):
    """Store lengths and starts of a checked message's key and value in row q. A negative length becomes -1, null.

    key: the position of the field with the key's length.
    """
    key_lengths, key_starts, value_lengths, value_starts = columns[3:]
    value = value_at(source, key)
    key_lengths[q], key_starts[q] = max(np.int64(get_i32(source, key)), NULL), key + 4
    value_lengths[q], value_starts[q] = max(np.int64(get_i32(source, value)), NULL), value + 4


@leaf
def describe_message(data, at, end, codec, count, row):
    """Fill those fields of a BATCH row that v0, v1 and enriched have in common. Producer fields etc. become -1."""
    row.position, row.size_bytes, row.magic = at, end - at, get_i8(data, at + MAGIC)
    row.crc, row.attributes, row.codec = get_u32(data, at + CRC), np.int16(get_i8(data, at + ATTRIBUTES)), codec
    row.count, row.timestamp_type = count, 0
    row.base_timestamp_ms = row.append_time_ms = row.producer_id = row.delete_horizon_ms = -1
    row.partition_leader_epoch = row.base_sequence = row.last_sequence = -1
    row.producer_epoch = -1
    row.is_transactional = row.is_control = False
