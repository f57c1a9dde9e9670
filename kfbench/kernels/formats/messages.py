"""Kernels that v0, v1 and enriched share: messages, each with a checksum, and compressed sets of messages.

A set is a plain message, or all messages that one wrapper message contains. The value of a wrapper is the compressed
bytes of these inner messages.

The kernels here are templates. `legacy` and `enriched` compile them with `kernels_for`. They supply the functions that
raise NotImplementedError here and the constants below them. For v0 and v1, `kind` is the magic. For enriched it is a
bool: whether every message has tag 0, its time in milliseconds.
"""

import numpy as np

from kfbench import layouts
from kfbench.kernels.jit import leaf, variant
from kfbench.kernels.simd.intrinsics import get_i8, get_i32, get_u32, put_i32
from kfbench.kernels.wire import status
from kfbench.kernels.wire.crc import crc32
from kfbench.kernels.wire.varint import put_bytes

LENGTH, CRC, MAGIC, ATTRIBUTES = (  # in v0, v1 and enriched
    layouts.position(layouts.V0_MESSAGE, name) for name in ("length", "crc", "magic", "attributes")
)
AFTER_LENGTH = LENGTH + 4
NULL, UNSET = layouts.NULL_LENGTH, layouts.UNSET
INT32_MAX, LAST_MAGIC, LAST_CODEC = 2**31 - 1, 1, 3
OK, MESSAGE_TOO_LARGE, OUT_TOO_SMALL = 0, 1, 2  # results of an encoder


def fixed_bytes(kind):
    """Return the size of a message without its key and value, in bytes."""
    raise NotImplementedError


def wrapper_bytes(kind):
    """Return an upper bound for the size of a wrapper without its value, in bytes.

    `wrap` uses it to keep the length of a wrapper inside an int32.
    """
    raise NotImplementedError


def put_record(out, at, columns, i, row, base, kind, inner):
    """Write record i as a message. Return the next position.

    Args:
        out, at: uint8 buffer and position.
        columns, kind, inner: as in `encode`.
        row: the batch's FIELDS row.
        base: int64; the message stores the record's offset minus `base`.
    """
    raise NotImplementedError


def put_wrapper(out, at, columns, first, end, row, kind, codec, payload, start, size):
    """Write a wrapper around payload[start : start + size]. Return the next position.

    Args:
        out, at, columns, row: as in `put_record`.
        first, end: uint64; the wrapper holds the records first to end - 1.
        kind, codec, payload: as in `wrap`.
        start, size: int64, the wrapper's slice of `payload`.
    """
    raise NotImplementedError


def has_relative_offsets(kind):
    """Return whether inner messages store offsets relative to the batch's base offset."""
    raise NotImplementedError


def magic_of(kind):
    """Return the magic of a message in the log."""
    raise NotImplementedError


def key_at(data, at):
    """Return the position of the field that stores the key's length. at: the position of the message."""
    raise NotImplementedError


def codec_of(data, at):
    """Return the codec number of the message at `at`, 0 for none."""
    raise NotImplementedError


def check(data, at, end):
    """Check the message data[at:end]. Return its `status`. It must be long enough to include its magic."""
    raise NotImplementedError


HOLDS_CONTROL = True  # False: encoders leave out control batches
MOST_PAYLOAD_BYTES = INT32_MAX  # of a message's key and value together
FIRST_MAGIC = 0  # the smallest magic of an inner message


def encode(columns, bounds, fields, kind, inner, out, positions):
    """Write each record as a message.

    Args:
        columns: arrays of `Records`: timestamps, offsets, lengths of keys and values, three arrays of headers (not
            used); then data and starts of keys, data and starts of values.
        bounds: int64[batches + 1], the first record of each batch.
        fields: FIELDS rows, one for all batches or one per batch.
        kind: the layout, see the module docstring.
        inner: True to write the messages inside a wrapper, False to write messages that stand in the log.
        out: uint8 buffer, filled.
        positions: int64[batches + 1], filled with the start of each batch.

    Returns:
        OK or the problem that stopped the encoder, and the number of the batch with the problem.
    """
    offsets, key_lengths, value_lengths = columns[1:4]
    fixed, at = fixed_bytes(kind), 0
    for b in range(len(bounds) - 1):
        first, end = np.uint64(bounds[b]), np.uint64(bounds[b + 1])
        row = fields[b if len(fields) > 1 else 0]
        positions[b] = at
        if first == end or (row.is_control and not HOLDS_CONTROL):
            continue
        base = np.int64(0)
        if inner and has_relative_offsets(kind):
            base = offsets[first] if row.base_offset == UNSET else row.base_offset
        for i in range(first, end):
            payload = max(np.int64(key_lengths[i]), 0) + max(np.int64(value_lengths[i]), 0)
            if payload > MOST_PAYLOAD_BYTES:
                return MESSAGE_TOO_LARGE, b
            if payload + fixed > len(out) - at:
                return OUT_TOO_SMALL, b
            at = put_record(out, at, columns, i, row, base, kind, inner)
    positions[len(bounds) - 1] = at
    return OK, 0


def wrap(columns, bounds, fields, kind, codec, payload, payload_bounds, out, positions):
    """Write one wrapper message per batch around its slice of `payload`. Write nothing if the slice is empty.

    Args:
        columns, bounds, fields, kind, out, positions: as in `encode`.
        codec: the codec's number.
        payload: uint8, the compressed messages of all batches.
        payload_bounds: int64[batches + 1], the slice of each batch.

    Returns:
        OK or the problem that stopped the encoder, and the number of the batch with the problem.
    """
    at = 0
    for b in range(len(bounds) - 1):
        positions[b] = at
        size = payload_bounds[b + 1] - payload_bounds[b]
        if size == 0:
            continue
        if size > INT32_MAX - wrapper_bytes(kind):
            return MESSAGE_TOO_LARGE, b
        at = put_wrapper(
            out, at, columns, np.uint64(bounds[b]), np.uint64(bounds[b + 1]), fields[b if len(fields) > 1 else 0],
            kind, codec, payload, payload_bounds[b], size,
        )  # fmt: skip
    positions[len(bounds) - 1] = at
    return OK, 0


def sizes(columns, bounds, fields, kind, out):
    """Fill out, int64[batches], with the uncompressed size of each batch in bytes. Other arguments: as in `encode`."""
    key_lengths, value_lengths = columns[2], columns[3]
    fixed = fixed_bytes(kind)
    for b in range(len(bounds) - 1):
        total = np.int64(0)
        if HOLDS_CONTROL or not fields[b if len(fields) > 1 else 0].is_control:
            for i in range(np.uint64(bounds[b]), np.uint64(bounds[b + 1])):
                total += fixed + max(np.int64(key_lengths[i]), 0) + max(np.int64(value_lengths[i]), 0)
        out[b] = total


def survey(data, positions, kind, codecs, bodies, stops, state):
    """Check each message of a log. Return whether any message is a wrapper.

    Args:
        data, positions: uint8 log, and int64[messages + 1].
        kind: the layout, see the module docstring.
        codecs: int8[messages], filled with the codec of each wrapper, 0 for a plain message.
        bodies, stops: int64[messages] each, filled: the payload of a wrapper is data[bodies[b]:stops[b]].
        state: int8[messages], filled with the `status` of each message.
    """
    any_wrapper = False
    for b in range(len(state)):
        at, end = positions[b], positions[b + 1]
        codecs[b], bodies[b], stops[b] = 0, at, end
        if get_i8(data, at + MAGIC) != magic_of(kind):
            state[b] = status.MAGIC
            continue
        problem = check(data, at, end)
        codec = codec_of(data, at)
        if problem == status.SOUND and codec:
            value = value_at(data, key_at(data, at))
            length = np.int64(get_i32(data, value))
            if codec > LAST_CODEC:
                problem = status.CODEC
            elif length < 0:
                problem = status.WRAPPER_VALUE
            else:
                codecs[b], bodies[b], stops[b], any_wrapper = codec, value + 4, value + 4 + length, True
        state[b] = problem
    return any_wrapper


def count(source, starts, ends, codecs, limits, state, counts):
    """Check and count the messages of each set source[starts[b]:ends[b]]. An incomplete last message is no error.

    Args:
        source: uint8, the uncompressed messages.
        starts, ends: int64[sets].
        codecs: int8[sets]; 0 means that the set is one plain message, which `survey` has checked.
        limits: the largest number of messages per set, and the largest key or value in bytes.
        state: int8[sets], in and out: sets with damage found before are skipped, and new damage is stored as `status`.
        counts: int64[sets], filled with messages per set; 0 for a damaged set.
    """
    most_messages, most_bytes = limits
    for b in range(len(state)):
        counts[b] = 0
        if state[b] != status.SOUND:
            continue
        if codecs[b] == 0:
            if _has_long_field(source, key_at(source, starts[b]), ends[b] - starts[b], most_bytes):
                state[b] = status.LIMIT_FIELD
            else:
                counts[b] = 1
            continue
        at, end, messages, problem = starts[b], ends[b], 0, status.SOUND
        while end - at >= AFTER_LENGTH:
            stop = message_end(source, at)
            if stop - at - AFTER_LENGTH < layouts.MIN_LENGTH:
                problem = status.RECORD_LENGTH
                break
            if stop > end:
                break
            magic = get_i8(source, at + MAGIC)
            problem = status.MAGIC if magic < FIRST_MAGIC or magic > LAST_MAGIC else check(source, at, stop)
            if problem == status.SOUND:
                if codec_of(source, at):
                    problem = status.NESTED
                elif _has_long_field(source, key_at(source, at), stop - at, most_bytes):
                    problem = status.LIMIT_FIELD
                elif messages == most_messages:
                    problem = status.LIMIT_RECORDS
            elif problem == status.CRC:
                problem = status.INNER_CRC
            if problem != status.SOUND:
                break
            messages += 1
            at = stop
        if problem == status.SOUND and messages == 0:
            problem = status.EMPTY_SET
        state[b] = problem
        if problem == status.SOUND:
            counts[b] = messages


def kernels_for(module, helpers):
    """Compile `encode`, `wrap`, `sizes`, `survey` and `count` for the formats of `module`. Return the five kernels.

    helpers: the globals of that module. They replace the functions and constants above of the same name.
    """
    names = (
        "fixed_bytes", "wrapper_bytes", "put_record", "put_wrapper", "has_relative_offsets", "magic_of", "key_at",
        "codec_of", "check", "HOLDS_CONTROL", "MOST_PAYLOAD_BYTES", "FIRST_MAGIC",
    )  # fmt: skip
    replaced = {name: helpers[name] for name in names}
    return [variant(each, each.__name__, module, **replaced) for each in (encode, wrap, sizes, survey, count)]


@leaf
def message_end(source, at):
    """Return the position after the message at `at`, computed from its length field."""
    return at + AFTER_LENGTH + np.int64(get_i32(source, at + LENGTH))


@leaf
def value_at(data, key):
    """Return the position of the field with the value's length. key: the position of the key's length field."""
    return key + 4 + max(np.int64(get_i32(data, key)), 0)


@leaf
def _has_long_field(data, key, message_bytes, most_bytes):
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
