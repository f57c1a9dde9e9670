"""Kernels of the message formats v0 and v1 (`LegacyRecord`, `AbstractLegacyRecordBatch`); `kind` is the magic."""

import numpy as np

from kfbench import layouts
from kfbench.kernels.formats import messages
from kfbench.kernels.formats.messages import (
    AFTER_LENGTH,
    ATTRIBUTES,
    CRC,
    INT32_MAX,
    MAGIC,
    NULL,
    UNSET,
    describe_message,
    message_end,
    put_key_and_value,
    read_lengths,
    value_at,
)
from kfbench.kernels.jit import kernel, leaf
from kfbench.kernels.simd.intrinsics import get_i8, get_i32, get_i64, get_u8, get_u32, put_i64, put_u8
from kfbench.kernels.wire import status
from kfbench.kernels.wire.crc import crc32

TIMESTAMP = layouts.position(layouts.V1_MESSAGE, "timestamp_ms")
KEY_V0, KEY_V1 = layouts.V0_MESSAGE.itemsize, layouts.V1_MESSAGE.itemsize
FIXED_V0, FIXED_V1 = layouts.LEGACY_FIXED_BYTES
CODEC_MASK, APPEND, NO_TIMESTAMP = layouts.CODEC_MASK, layouts.TIMESTAMP_TYPE_BIT, layouts.NO_TIMESTAMP
ONE = np.uint64(1)
HOLDS_CONTROL, FIRST_MAGIC, MOST_PAYLOAD_BYTES = False, 0, INT32_MAX - FIXED_V1  # see `messages`

PARTS = ("offset", "length", "crc", "magic", "attributes", "timestamp", "key_length", "key", "value_length", "value")
PART_BYTES = (8, 4, 4, 1, 1, 8, 4, 0, 4, 0)  # of a message with v1's timestamp; 0: variable size


@leaf
def fixed_bytes(magic):
    return FIXED_V1 if magic else FIXED_V0


@leaf
def wrapper_bytes(magic):
    return FIXED_V1


@leaf
def has_relative_offsets(magic):
    return magic == 1  # KIP-31


@leaf
def magic_of(magic):
    return magic


@leaf
def key_at(data, at):
    return at + (KEY_V1 if get_i8(data, at + MAGIC) else KEY_V0)


@leaf
def codec_of(data, at):
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
        out, at, columns, i, row, base, inner: as in `messages.put_record`.
        magic: 0 or 1.
    """
    timestamps, offsets, key_lengths, value_lengths = columns[:4]
    keys, key_starts, values, value_starts = columns[7:11]
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
        out, at, columns, first, end, row, codec, payload, start, size: as in `messages.put_wrapper`.
        magic: 0 or 1.
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


encode, wrap, sizes, survey, count = messages.kernels_for(__name__, globals())


@kernel
def index(data, positions, source, starts, codecs, counts, state, columns, bounds):
    """Read messages into columns, after `survey` and `count` have found them undamaged.

    A v1 wrapper stores the absolute offset of its last inner message. If it is 0, inner offsets are absolute. With log
    append time, the wrapper's timestamp replaces the timestamp of every inner v1 message. v0 messages have none.

    Args:
        data, positions: uint8 log, and int64[sets + 1].
        source, starts, codecs, counts: as in `messages.count`.
        state: int8[sets]; a set whose wrapper has an impossible offset gets WRAPPER_OFFSET and no records.
        columns: arrays of an `Index`, filled. `timestamps` are those that a consumer reads, `created` those that the
            producer set.
        bounds: int64[sets + 1], filled with the number of the first record of each set.
    """
    timestamps, created, offsets = columns[:3]
    r = np.int64(0)
    bounds[0] = 0
    for b in range(len(state)):
        p, wrapper = starts[b], positions[b]
        first = r
        in_v1_wrapper = codecs[b] != 0 and get_i8(data, wrapper + MAGIC) != 0
        append = in_v1_wrapper and get_u8(data, wrapper + ATTRIBUTES) & APPEND != 0
        for q in range(np.uint64(r), np.uint64(r + counts[b])):
            offsets[q] = get_i64(source, p)
            timestamps[q] = created[q] = NO_TIMESTAMP
            if get_i8(source, p + MAGIC):
                created[q] = get_i64(source, p + TIMESTAMP)
                timestamps[q] = get_i64(data, wrapper + TIMESTAMP) if append else created[q]
            read_lengths(source, key_at(source, p), q, columns)
            p = message_end(source, p)
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
    """Return whether any message of the set source[p:end] has another magic. `count` has found the set undamaged."""
    found = False
    while not found and end - p >= AFTER_LENGTH:
        stop = message_end(source, p)
        if stop > end:
            break
        found = get_i8(source, p + MAGIC) != magic
        p = stop
    return found


@kernel
def describe(data, positions, magic, source, starts, ends, sound, bounds, offsets, rows):
    """Fill one BATCH row for each undamaged set. A set is a plain message or the messages inside one wrapper.

    Args:
        data, positions: as in `index`.
        magic: 0 or 1.
        source, starts, ends: as in `messages.count`.
        sound: int64, the numbers of the undamaged sets.
        bounds: int64; set sound[i] has the records bounds[i] to bounds[i + 1] - 1.
        offsets: int64[records], the offsets that `index` has read.
        rows: BATCH rows, filled.
    """
    for i in range(len(sound)):
        b, row = sound[i], rows[i]
        at, end = positions[b], positions[b + 1]
        bits = np.int16(get_i8(data, at + ATTRIBUTES))
        describe_message(data, at, end, bits & CODEC_MASK, bounds[i + 1] - bounds[i], row)
        row.timestamp_type = 1 if magic and bits & APPEND else 0
        row.base_offset = offsets[bounds[i]]
        row.last_offset = get_i64(data, at)  # a v0 wrapper may have another offset than its last inner message
        row.max_timestamp_ms = get_i64(data, at + TIMESTAMP) if magic else np.int64(NO_TIMESTAMP)
        row.append_time_ms = row.max_timestamp_ms if row.timestamp_type else np.int64(NO_TIMESTAMP)
        known = layouts.LEGACY_ATTRIBUTES_MASK if magic else CODEC_MASK
        row.canonical = bits & ~known == 0 and _is_filled(data, at, end)
        if row.codec and row.canonical:
            appended = row.max_timestamp_ms if row.timestamp_type else np.int64(UNSET)
            row.canonical = get_i32(data, key_at(data, at)) == NULL and _is_canonical_set(
                source, starts[b], ends[b], magic, appended
            )
            if magic:  # the wrapper has the last message's offset
                row.canonical &= row.last_offset == offsets[bounds[i + 1] - 1]
        row.mixed_magic = False
        if row.codec and not row.canonical:
            row.mixed_magic = holds_other_magic(source, starts[b], ends[b], magic)
