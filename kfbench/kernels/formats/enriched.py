"""Kernels of enriched messages: v0's layout with a time in seconds and tags in between.

`time_tag` is whether a writer gives every message tag 0, its time in milliseconds. A reader takes what it finds.
"""

import numpy as np

from kfbench import layouts
from kfbench.kernels.formats import control
from kfbench.kernels.jit import kernel, leaf
from kfbench.kernels.simd.intrinsics import get_i8, get_i16, get_i32, get_i64, get_u8, get_u32, put_i32, put_i64, put_u8
from kfbench.kernels.wire import status
from kfbench.kernels.wire.crc import crc32
from kfbench.kernels.wire.varint import put_bytes

_LAYOUT = layouts.ENRICHED_MESSAGE
LENGTH, CRC, MAGIC, ATTRIBUTES, SECONDS, TAGS_LENGTH = (
    layouts.position(_LAYOUT, name) for name in ("length", "crc", "magic", "attributes", "timestamp_s", "tags_length")
)
TAGS, AFTER_LENGTH, THIS_MAGIC = _LAYOUT.itemsize, LENGTH + 4, 1
FIXED = TAGS + 8  # with the lengths of key and value
TIME_TAG, COUNT_TAG = layouts.TIME_TAG, layouts.COUNT_TAG
RELATIVE_TAG, KEYS_TAG = layouts.RELATIVE_TAG, layouts.KEYS_TAG
_BYTES = {tag: 1 + size for tag, size in layouts.TAG_BYTES.items()}
TIME_BYTES, COUNT_BYTES, FLAG_BYTES = _BYTES[TIME_TAG], _BYTES[COUNT_TAG], _BYTES[KEYS_TAG]
WRAPPER_BYTES = COUNT_BYTES + 2 * FLAG_BYTES  # the tags of every wrapper, beside its time
TYPE_MASK, LAST_CODEC, LAST_TYPE = layouts.MESSAGE_TYPE_MASK, 3, layouts.OTHER_CONTROL
FIRST_CONTROL, COMMIT, ABORT = layouts.LEADER_EPOCH, layouts.COMMIT_TRANSACTION, layouts.ABORT_TRANSACTION
NULL, NO_TIMESTAMP, NO_TAGS, UNSET = layouts.NULL_LENGTH, layouts.NO_TIMESTAMP, -1, layouts.UNSET
INT32_MAX = 2**31 - 1
LAST_MS = INT32_MAX * 1000 + 999  # of the last second that the field holds
ONE = np.uint64(1)
OK, MESSAGE_TOO_LARGE, OUT_TOO_SMALL = 0, 1, 2

PARTS = ("offset", "length", "crc", "magic", "attributes", "timestamp", "tags_length", "timestamp_tag",
         "key_length", "key", "value_length", "value")  # fmt: skip
PART_BYTES = (8, 4, 4, 1, 1, 4, 4, 0, 4, 0, 4, 0)  # 0: as long as it is


@leaf
def _seconds(timestamp_ms):
    """Whole seconds; -1 for no time, and for one that the field cannot hold."""
    if 0 <= timestamp_ms <= LAST_MS:
        return timestamp_ms // 1000
    return np.int64(NO_TIMESTAMP)


@leaf
def _control_type(keys, start, length):
    """The message type of a control record, by the type in its key."""
    if length >= control.KEY_BYTES:
        kind = get_i16(keys, start + control.TYPE_AT)
        if kind == layouts.CONTROL_COMMIT:
            return COMMIT
        if kind == layouts.CONTROL_ABORT:
            return ABORT
        if kind == layouts.CONTROL_LEADER_CHANGE:
            return FIRST_CONTROL
    return LAST_TYPE


@leaf
def _put_start(out, at, offset, attributes, timestamp, time_tag, tags_bytes):
    """A message up to its tags, the time tag with them if it is asked for; gives where the other tags begin."""
    put_i64(out, at, offset)
    put_u8(out, at + MAGIC, np.uint8(THIS_MAGIC))
    put_u8(out, at + ATTRIBUTES, np.uint8(attributes))
    put_i32(out, at + SECONDS, np.int32(_seconds(timestamp)))
    put_i32(out, at + TAGS_LENGTH, np.int32(tags_bytes or NO_TAGS))
    if time_tag:
        put_u8(out, at + TAGS, np.uint8(TIME_TAG))
        put_i64(out, at + TAGS + 1, timestamp)
        return at + TAGS + TIME_BYTES
    return at + TAGS


@leaf
def _put_end(out, at, p, keys, key_start, key_length, values, value_start, value_length):
    """Key and value from `p` on, then length and checksum of the message at `at`; gives where the next one begins."""
    put_i32(out, p, np.int32(key_length))
    p = put_bytes(out, p + 4, keys, key_start, max(key_length, 0))
    put_i32(out, p, np.int32(value_length))
    p = put_bytes(out, p + 4, values, value_start, max(value_length, 0))
    put_i32(out, at + LENGTH, np.int32(p - at - AFTER_LENGTH))
    put_i32(out, at + CRC, np.int32(crc32(out, at + MAGIC, p)))
    return p


@kernel
def encode(columns, bounds, fields, time_tag, inner, out, positions):
    """Writes each record as a message: as they stand in the log, or (inner) with offsets that count from the wrapper's.

    Fills positions int64[batches + 1]. Gives (problem, batch): OK, or why that batch cannot be written.
    """
    timestamps, offsets, key_lengths, value_lengths = columns[:4]
    keys, key_starts, values, value_starts = columns[7:11]
    tags_bytes = TIME_BYTES if time_tag else 0
    at = 0
    for b in range(len(bounds) - 1):
        first, end = np.uint64(bounds[b]), np.uint64(bounds[b + 1])
        row = fields[b if len(fields) > 1 else 0]
        positions[b] = at
        base = np.int64(0)
        if inner and first < end:
            base = offsets[first] if row.base_offset == UNSET else row.base_offset
        for i in range(first, end):
            key_length, value_length = np.int64(key_lengths[i]), np.int64(value_lengths[i])
            payload = max(key_length, 0) + max(value_length, 0)
            if payload > INT32_MAX - FIXED - TIME_BYTES:
                return MESSAGE_TOO_LARGE, b
            if payload + FIXED + tags_bytes > len(out) - at:
                return OUT_TOO_SMALL, b
            kind = _control_type(keys, key_starts[i], key_length) if row.is_control else 0
            p = _put_start(out, at, offsets[i] - base, kind, timestamps[i], time_tag, tags_bytes)
            at = _put_end(out, at, p, keys, key_starts[i], key_length, values, value_starts[i], value_length)
    positions[len(bounds) - 1] = at
    return OK, 0


@kernel
def wrap(columns, bounds, fields, time_tag, codec, payload, payload_bounds, out, positions):
    """One wrapper message a batch around its slice of `payload`; nothing where the slice is empty."""
    timestamps, offsets, key_lengths = columns[:3]
    tags_bytes = WRAPPER_BYTES + (TIME_BYTES if time_tag else 0)
    at = 0
    for b in range(len(bounds) - 1):
        positions[b] = at
        first, end = np.uint64(bounds[b]), np.uint64(bounds[b + 1])
        size = payload_bounds[b + 1] - payload_bounds[b]
        if size == 0:
            continue
        if size > INT32_MAX - FIXED - tags_bytes:
            return MESSAGE_TOO_LARGE, b
        row = fields[b if len(fields) > 1 else 0]
        timestamp, any_key = np.int64(NO_TIMESTAMP), False
        for i in range(first, end):
            any_key |= key_lengths[i] >= 0
            # A time that the messages inside could not say is no time here either.
            if time_tag or timestamps[i] <= LAST_MS:
                timestamp = timestamps[i] if i == first else max(timestamp, timestamps[i])
        if row.max_timestamp_ms != UNSET:
            timestamp = row.max_timestamp_ms
        base = offsets[first] if row.base_offset == UNSET else row.base_offset
        p = _put_start(out, at, base, codec, timestamp, time_tag, tags_bytes)
        put_u8(out, p, np.uint8(COUNT_TAG))
        put_i32(out, p + 1, np.int32(end - first))
        p += COUNT_BYTES
        put_u8(out, p, np.uint8(RELATIVE_TAG))
        put_u8(out, p + 1, np.uint8(1))
        put_u8(out, p + FLAG_BYTES, np.uint8(KEYS_TAG))
        put_u8(out, p + FLAG_BYTES + 1, np.uint8(any_key))
        p += 2 * FLAG_BYTES
        at = _put_end(out, at, p, payload, 0, np.int64(NULL), payload, payload_bounds[b], size)
    positions[len(bounds) - 1] = at
    return OK, 0


@kernel
def sizes(columns, bounds, fields, time_tag, out):
    """The uncompressed bytes of each batch, int64[batches]."""
    key_lengths, value_lengths = columns[2], columns[3]
    each = FIXED + (TIME_BYTES if time_tag else 0)
    for b in range(len(bounds) - 1):
        total = np.int64(0)
        for i in range(np.uint64(bounds[b]), np.uint64(bounds[b + 1])):
            total += each + max(np.int64(key_lengths[i]), 0) + max(np.int64(value_lengths[i]), 0)
        out[b] = total


@leaf
def read_tags(data, at):
    """(sound, known, has time, time, count, relative, keys): the tags of a message whose tagsLength lies inside it.

    sound: none is cut short. known: all were read; after one of another id nothing more is, for tags carry no size.
    count is UNSET, and keys -1, where there is none. Of two alike the last holds.
    """
    p = at + TAGS
    end = p + max(np.int64(get_i32(data, at + TAGS_LENGTH)), 0)
    has_time, time, count, relative, keys = False, np.int64(NO_TIMESTAMP), np.int64(UNSET), True, np.int64(-1)
    while p < end:
        tag = get_u8(data, p)
        if tag == TIME_TAG:
            size = TIME_BYTES
        elif tag == COUNT_TAG:
            size = COUNT_BYTES
        elif tag == RELATIVE_TAG or tag == KEYS_TAG:
            size = FLAG_BYTES
        else:
            return True, False, has_time, time, count, relative, keys
        if size > end - p:
            return False, False, has_time, time, count, relative, keys
        if tag == TIME_TAG:
            has_time, time = True, get_i64(data, p + 1)
        elif tag == COUNT_TAG:
            count = np.int64(get_i32(data, p + 1))
        elif tag == RELATIVE_TAG:
            relative = get_u8(data, p + 1) != 0
        else:
            keys = np.int64(get_u8(data, p + 1) != 0)
        p += size
    return True, True, has_time, time, count, relative, keys


@leaf
def _time(data, at):
    """The time of a message in milliseconds: tag 0's, or its seconds."""
    _, _, has_time, time, _, _, _ = read_tags(data, at)
    if has_time:
        return time
    seconds = np.int64(get_i32(data, at + SECONDS))
    return np.int64(NO_TIMESTAMP) if seconds == NO_TIMESTAMP else seconds * 1000


@leaf
def _key(data, at):
    """Where the length of the key stands."""
    return at + TAGS + max(np.int64(get_i32(data, at + TAGS_LENGTH)), 0)


@leaf
def _value(data, key):
    """Where the length of the value stands."""
    return key + 4 + max(np.int64(get_i32(data, key)), 0)


@leaf
def _check(data, at, end):
    """The state of the message data[at:end]: long enough, sound by its CRC, its lengths, tags and type."""
    if at + FIXED > end:
        return status.SIZE
    if get_u32(data, at + CRC) != np.uint32(crc32(data, at + MAGIC, end)):
        return status.CRC
    length = np.int64(get_i32(data, at + TAGS_LENGTH))
    if length < NO_TAGS or length > end - at - FIXED:
        return status.TAGS_LENGTH
    if not read_tags(data, at)[0]:
        return status.TAG
    key = _key(data, at)
    length = np.int64(get_i32(data, key))
    if length < NULL or length > end - key - 8:
        return status.KEY_LENGTH
    value = _value(data, key)
    value_length = np.int64(get_i32(data, value))
    if value_length < NULL or value + 4 + max(value_length, 0) != end:
        return status.VALUE_LENGTH
    kind = get_u8(data, at + ATTRIBUTES) & TYPE_MASK
    if kind > LAST_CODEC:
        if kind < FIRST_CONTROL or kind > LAST_TYPE:
            return status.MESSAGE_TYPE
        if not control.is_sound(data, key + 4, length, data, value + 4, value_length):
            return status.CONTROL_RECORD
    return status.SOUND


@leaf
def _codec(data, at):
    """The codec of a message; 0 where it is none, whatever else it is."""
    kind = get_u8(data, at + ATTRIBUTES) & TYPE_MASK
    return kind if kind <= LAST_CODEC else 0


@kernel
def survey(data, positions, time_tag, codecs, bodies, stops, state):
    """Checks each message. Fills codecs int8, bodies and stops int64 (a wrapper's payload) and state int8.

    Gives whether there is a wrapper.
    """
    wrapped = False
    for b in range(len(state)):
        at, end = positions[b], positions[b + 1]
        codecs[b], bodies[b], stops[b] = 0, at, end
        if get_i8(data, at + MAGIC) != THIS_MAGIC:
            state[b] = status.MAGIC
            continue
        problem = _check(data, at, end)
        if problem == status.SOUND and _codec(data, at):
            value = _value(data, _key(data, at))
            if get_i32(data, value) == NULL:
                problem = status.WRAPPER_VALUE
            else:
                codecs[b], bodies[b], wrapped = _codec(data, at), value + 4, True
        state[b] = problem
    return wrapped


@leaf
def _too_long(data, at, end, most_bytes):
    """Whether the key or the value of the message data[at:end] is longer than that."""
    if end - at <= most_bytes:
        return False
    key = _key(data, at)
    return get_i32(data, key) > most_bytes or get_i32(data, _value(data, key)) > most_bytes


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
            if get_i8(source, at + MAGIC) != THIS_MAGIC:
                state[b] = status.MAGIC
                break
            problem = _check(source, at, stop)
            if problem != status.SOUND:
                state[b] = status.INNER_CRC if problem == status.CRC else problem
                break
            if _codec(source, at):
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

    Inside a wrapper offsets count from its own; with tag 33 off they are no more than the messages' positions.
    """
    r = np.int64(0)
    bounds[0] = 0
    for b in range(len(state)):
        p, messages = starts[b], counts[b]
        base, relative = np.int64(0), True
        if codecs[b] and messages:
            _, _, _, _, said, relative, _ = read_tags(data, positions[b])
            base = get_i64(data, positions[b])
            if said != UNSET and said != messages:
                state[b] = status.MESSAGE_COUNT
                messages = np.int64(0)
        for q in range(np.uint64(r), np.uint64(r + messages)):
            offsets[q] = base + (get_i64(source, p) if relative else np.int64(q) - r)
            timestamps[q] = created[q] = _time(source, p)
            key = _key(source, p)
            value = _value(source, key)
            key_lengths[q], key_starts[q] = get_i32(source, key), key + 4
            value_lengths[q], value_starts[q] = get_i32(source, value), value + 4
            p += AFTER_LENGTH + np.int64(get_i32(source, p + LENGTH))
        r += messages
        bounds[b + 1] = r


@leaf
def _is_canonical(data, at, time_tag, wrapper):
    """Whether a writer of this variant gives such attributes, time and tags (but for the values of tags)."""
    bits = get_u8(data, at + ATTRIBUTES)
    whole = bits <= LAST_TYPE
    length = np.int64(get_i32(data, at + TAGS_LENGTH))
    tags_bytes = (TIME_BYTES if time_tag else 0) + (WRAPPER_BYTES if wrapper else 0)
    whole &= length == (tags_bytes or NO_TAGS)
    if not whole:
        return False
    p = at + TAGS
    seconds = np.int64(get_i32(data, at + SECONDS))
    if time_tag:
        time = get_i64(data, p + 1)
        whole &= get_u8(data, p) == TIME_TAG and seconds == _seconds(time)
        p += TIME_BYTES
    key = _key(data, at)
    key_length = np.int64(get_i32(data, key))
    if wrapper:
        relative, keys = p + COUNT_BYTES, p + COUNT_BYTES + FLAG_BYTES
        whole &= get_u8(data, p) == COUNT_TAG and get_u8(data, relative) == RELATIVE_TAG
        whole &= get_u8(data, keys) == KEYS_TAG and get_u8(data, relative + 1) == 1
        return whole and key_length == NULL
    if bits >= FIRST_CONTROL:
        whole &= bits == _control_type(data, key + 4, key_length)
    return whole and seconds >= NO_TIMESTAMP


@kernel
def describe(data, positions, time_tag, source, starts, ends, sound, bounds, offsets, rows):
    """Fills one BATCH row for each entry number in `sound`, which holds the records bounds[i] to bounds[i + 1].

    A set is a control batch where any of its messages is a control record.
    """
    for i in range(len(sound)):
        b = sound[i]
        at, end = positions[b], positions[b + 1]
        row = rows[i]
        bits = np.int16(get_i8(data, at + ATTRIBUTES))
        codec = _codec(data, at)
        row.position, row.size_bytes, row.magic = at, end - at, THIS_MAGIC
        row.crc, row.attributes, row.codec = get_u32(data, at + CRC), bits, codec
        row.timestamp_type = 0
        row.count = bounds[i + 1] - bounds[i]
        row.base_offset = get_i64(data, at)
        row.last_offset = offsets[bounds[i + 1] - 1]
        row.max_timestamp_ms = _time(data, at)
        row.base_timestamp_ms = row.append_time_ms = row.producer_id = row.delete_horizon_ms = -1
        row.partition_leader_epoch = row.base_sequence = row.last_sequence = -1
        row.producer_epoch = -1
        row.is_transactional = False
        row.is_control = bits & TYPE_MASK >= FIRST_CONTROL
        whole = _is_canonical(data, at, time_tag, codec != 0)
        if codec:
            controls, any_key, p = np.int64(0), False, starts[b]
            for _ in range(row.count):
                controls += get_u8(source, p + ATTRIBUTES) & TYPE_MASK >= FIRST_CONTROL
                any_key |= get_i32(source, _key(source, p)) >= 0
                whole &= _is_canonical(source, p, time_tag, False)
                p += AFTER_LENGTH + np.int64(get_i32(source, p + LENGTH))
            row.is_control = controls > 0
            whole &= p == ends[b] and (controls == 0 or controls == row.count)
            # An encoder takes these for "derive it".
            whole &= row.base_offset != UNSET and row.max_timestamp_ms != UNSET
            whole = whole and any_key == (get_u8(data, _key(data, at) - 1) != 0)
        row.canonical = whole
