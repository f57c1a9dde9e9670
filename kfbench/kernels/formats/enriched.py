"""Enriched messages and their wrappers: a variant of v0 with a time in seconds and tagged fields before the key.

`time_tag` tells an encoder to write tag 0, the time in milliseconds, in every message. It is the argument `kind` of
the kernels, which are in `messages`. Readers accept messages with and without tag 0.
"""

from typing import NamedTuple

import numpy as np

from kfbench import layouts
from kfbench.kernels.formats import control
from kfbench.kernels.formats.message_fields import (
    ATTRIBUTES,
    CRC,
    INT32_MAX,
    LAST_CODEC,
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
from kfbench.kernels.simd.intrinsics import get_i16, get_i32, get_i64, get_u8, get_u32, put_i32, put_i64, put_u8
from kfbench.kernels.wire import status
from kfbench.kernels.wire.crc import crc32

_LAYOUT = layouts.ENRICHED_MESSAGE
SECONDS, TAGS_LENGTH = (layouts.position(_LAYOUT, name) for name in ("timestamp_s", "tags_length"))
TAGS, THIS_MAGIC = _LAYOUT.itemsize, 1
FIXED = TAGS + 8  # with the lengths of key and value
TIME_TAG, COUNT_TAG = layouts.TIME_TAG, layouts.COUNT_TAG
RELATIVE_TAG, KEYS_TAG = layouts.RELATIVE_TAG, layouts.KEYS_TAG
_BYTES = {tag: 1 + size for tag, size in layouts.TAG_BYTES.items()}
TIME_BYTES, COUNT_BYTES, FLAG_BYTES = _BYTES[TIME_TAG], _BYTES[COUNT_TAG], _BYTES[KEYS_TAG]
WRAPPER_BYTES = COUNT_BYTES + 2 * FLAG_BYTES  # the tags of every wrapper, except its time
TYPE_MASK, LAST_TYPE = layouts.MESSAGE_TYPE_MASK, layouts.OTHER_CONTROL
FIRST_CONTROL, COMMIT, ABORT = layouts.LEADER_EPOCH, layouts.COMMIT_TRANSACTION, layouts.ABORT_TRANSACTION
NO_TAGS = -1
LAST_MS = INT32_MAX * 1000 + 999  # the last millisecond whose second fits the field
MOST_PAYLOAD_BYTES = INT32_MAX - FIXED - TIME_BYTES  # of a message's key and value together

PARTS = ("offset", "length", "crc", "magic", "attributes", "timestamp", "tags_length", "timestamp_tag",
         "key_length", "key", "value_length", "value")  # fmt: skip
PART_BYTES = (8, 4, 4, 1, 1, 4, 4, 0, 4, 0, 4, 0)  # 0: variable size


@leaf
def _seconds(timestamp_ms):
    """Return a timestamp in whole seconds, or -1 without a timestamp or if the field is too small for it."""
    if 0 <= timestamp_ms <= LAST_MS:
        return timestamp_ms // 1000
    return np.int64(NO_TIMESTAMP)


@leaf
def _control_type(keys, start, length):
    """Return the number of the message type for the control type that the key of a control record states."""
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
    """Write the begin of a message: all fields before its tags, and tag 0 if `time_tag` is set.

    Length and checksum stay unset. Return the next position.

    Args:
        out, at: uint8 buffer and position.
        offset, timestamp: int64, the timestamp in ms.
        attributes: the number of the codec or of the control type.
        time_tag: write tag 0.
        tags_bytes: the size of all tags.
    """
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
def fixed_bytes(time_tag):
    """Return the size of a message without its key and value, in bytes."""
    return FIXED + (TIME_BYTES if time_tag else 0)


@leaf
def wrapper_bytes(time_tag):
    """Return the size of a wrapper without its value, in bytes."""
    return FIXED + WRAPPER_BYTES + (TIME_BYTES if time_tag else 0)


@leaf
def key_at(data, at):
    """Return the position of the field that stores the key's length. at: the position of the message."""
    return at + TAGS + max(np.int64(get_i32(data, at + TAGS_LENGTH)), 0)


@leaf
def codec_of(data, at):
    """Return the codec number of the message at `at`, 0 for none."""
    kind = np.int64(get_u8(data, at + ATTRIBUTES)) & TYPE_MASK
    return kind if kind <= LAST_CODEC else np.int64(0)


@leaf
def put_record(out, at, columns, i, row, base, time_tag):
    """Write record i as an enriched message. Return the next position. Other args: as in `legacy.put_record`."""
    timestamps, offsets = columns[:2]
    keys, key_starts = columns.key_data, columns.key_starts
    values, value_starts = columns.value_data, columns.value_starts
    key_length, value_length = np.int64(columns.key_lengths[i]), np.int64(columns.value_lengths[i])
    kind = _control_type(keys, key_starts[i], key_length) if row.is_control else 0
    p = _put_start(out, at, offsets[i] - base, kind, timestamps[i], time_tag, TIME_BYTES if time_tag else 0)
    return put_key_and_value(out, at, p, keys, key_starts[i], key_length, values, value_starts[i], value_length)


@leaf
def put_wrapper(out, at, columns, first, end, row, time_tag, codec, payload, start, size):
    """Write a wrapper around payload[start : start + size]. Return the next position.

    Other args: as in `legacy.put_wrapper`.
    """
    timestamps, offsets, key_lengths = columns[:3]
    timestamp, any_key = np.int64(NO_TIMESTAMP), False
    for i in range(first, end):
        any_key |= key_lengths[i] >= 0
        # Ignore a time that the inner message cannot store.
        if time_tag or timestamps[i] <= LAST_MS:
            timestamp = timestamps[i] if i == first else max(timestamp, timestamps[i])
    if row.max_timestamp_ms != UNSET:
        timestamp = row.max_timestamp_ms
    base = offsets[first] if row.base_offset == UNSET else row.base_offset
    p = _put_start(out, at, base, codec, timestamp, time_tag, wrapper_bytes(time_tag) - FIXED)
    put_u8(out, p, np.uint8(COUNT_TAG))
    put_i32(out, p + 1, np.int32(end - first))
    p += COUNT_BYTES
    put_u8(out, p, np.uint8(RELATIVE_TAG))
    put_u8(out, p + 1, np.uint8(1))
    put_u8(out, p + FLAG_BYTES, np.uint8(KEYS_TAG))
    put_u8(out, p + FLAG_BYTES + 1, np.uint8(any_key))
    p += 2 * FLAG_BYTES
    return put_key_and_value(out, at, p, payload, 0, np.int64(NULL), payload, start, size)


class Tags(NamedTuple):
    """The tagged fields of an enriched message that was read."""

    is_sound: bool  # no tag is cut short
    has_time: bool
    time_ms: int
    count: int  # UNSET without the tag
    is_relative: bool  # inner offsets are relative to the wrapper's. False: message k of the set gets relative offset k
    any_key: int  # 1 or 0; -1 without the tag


@leaf
def read_tags(data, at):
    """Read the Tags of the message at `at`. The message must be long enough to include its field tagsLength.

    If a tag occurs twice, the last one counts. Stop at an unknown tag: the size of a tag is not stored.
    """
    p = at + TAGS
    end = p + max(np.int64(get_i32(data, at + TAGS_LENGTH)), 0)
    is_sound, has_time, is_relative = True, False, True
    time_ms, count, any_key = np.int64(NO_TIMESTAMP), np.int64(UNSET), np.int64(-1)
    while p < end:
        tag = get_u8(data, p)
        if tag == TIME_TAG:
            size = TIME_BYTES
        elif tag == COUNT_TAG:
            size = COUNT_BYTES
        elif tag == RELATIVE_TAG or tag == KEYS_TAG:
            size = FLAG_BYTES
        else:
            break
        if size > end - p:
            is_sound = False
            break
        if tag == TIME_TAG:
            has_time, time_ms = True, get_i64(data, p + 1)
        elif tag == COUNT_TAG:
            count = np.int64(get_i32(data, p + 1))
        elif tag == RELATIVE_TAG:
            is_relative = get_u8(data, p + 1) != 0
        else:
            any_key = np.int64(get_u8(data, p + 1) != 0)
        p += size
    return Tags(is_sound, has_time, time_ms, count, is_relative, any_key)


@leaf
def time_of(data, at, tags):
    """Return the time of a message in ms: from tag 0 if it is there, else from the field in seconds."""
    if tags.has_time:
        return tags.time_ms
    seconds = np.int64(get_i32(data, at + SECONDS))
    return np.int64(NO_TIMESTAMP) if seconds == NO_TIMESTAMP else seconds * 1000


@leaf
def check(data, at, end):
    """Check the message data[at:end]. Return its `status`. It must be long enough to include its magic."""
    if at + FIXED > end:
        return status.SIZE
    if get_u32(data, at + CRC) != np.uint32(crc32(data, at + MAGIC, end)):
        return status.CRC
    length = np.int64(get_i32(data, at + TAGS_LENGTH))
    if length < NO_TAGS or length > end - at - FIXED:
        return status.TAGS_LENGTH
    if not read_tags(data, at).is_sound:
        return status.TAG
    key = key_at(data, at)
    length = np.int64(get_i32(data, key))
    if length < NULL or length > end - key - 8:
        return status.KEY_LENGTH
    value = value_at(data, key)
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
def read_set(data, wrapper, source, p, inner, first, number, columns):
    """Read the messages of a set. Return SOUND, or MESSAGE_COUNT if the count in the wrapper's tag is wrong.

    Offsets inside a wrapper are relative to the wrapper's offset. If tag 33 is 0, the stored ones are ignored: message
    k of the set has the relative offset k, counted from 0. Args: as in `legacy.read_set`.
    """
    timestamps, created, offsets = columns[:3]
    base, is_relative = np.int64(0), True
    if inner and number:
        tags = read_tags(data, wrapper)
        base, is_relative = get_i64(data, wrapper), tags.is_relative
        if tags.count != UNSET and tags.count != number:
            return status.MESSAGE_COUNT
    for q in range(np.uint64(first), np.uint64(first + number)):
        offsets[q] = base + (get_i64(source, p) if is_relative else np.int64(q) - first)
        timestamps[q] = created[q] = time_of(source, p, read_tags(source, p))
        read_lengths(source, key_at(source, p), q, columns)
        p = message_end(source, p)
    return status.SOUND


@leaf
def _is_canonical(data, at, time_tag, wrapper):
    """Return whether our encoder would write these attributes, time and tags. The values of most tags are not checked.

    wrapper: whether the message is a wrapper, which contains compressed messages.
    """
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
    key = key_at(data, at)
    key_length = np.int64(get_i32(data, key))
    if wrapper:
        relative, keys = p + COUNT_BYTES, p + COUNT_BYTES + FLAG_BYTES
        whole &= get_u8(data, p) == COUNT_TAG and get_u8(data, relative) == RELATIVE_TAG
        whole &= get_u8(data, keys) == KEYS_TAG and get_u8(data, relative + 1) == 1
        return whole and key_length == NULL
    if bits >= FIRST_CONTROL:
        whole &= bits == _control_type(data, key + 4, key_length)
    return whole and seconds >= NO_TIMESTAMP


@leaf
def describe_set(data, at, source, p, p_end, time_tag, last_offset, row):
    """Fill those fields of a BATCH row that `describe_message` does not fill. Args: as in `legacy.describe_set`.

    A set counts as a control batch if any of its messages is a control record.
    """
    row.base_offset, row.last_offset = get_i64(data, at), last_offset
    row.max_timestamp_ms = time_of(data, at, read_tags(data, at))
    row.is_control = get_u8(data, at + ATTRIBUTES) & TYPE_MASK >= FIRST_CONTROL
    whole = _is_canonical(data, at, time_tag, row.codec != 0)
    if row.codec:
        controls, any_key = np.int64(0), False
        for _ in range(row.count):
            controls += get_u8(source, p + ATTRIBUTES) & TYPE_MASK >= FIRST_CONTROL
            any_key |= get_i32(source, key_at(source, p)) >= 0
            whole &= _is_canonical(source, p, time_tag, False)
            p = message_end(source, p)
        row.is_control = controls > 0
        whole &= p == p_end and (controls == 0 or controls == row.count)
        # UNSET tells an encoder to derive the field, so an encoder cannot write this value.
        whole &= row.base_offset != UNSET and row.max_timestamp_ms != UNSET
        whole = whole and any_key == (get_u8(data, key_at(data, at) - 1) != 0)
    row.canonical = whole
