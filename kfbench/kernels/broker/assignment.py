"""Set the fields of batches that a broker assigns, in place: offsets, leader epoch, timestamps and checksum.

`kind` is the layout of a batch: its magic, KIP98 or ENRICHED. Times are in ms. Common arguments:

- data: uint8, the log.
- positions: int64[batches + 1].
- append: bool, whether the topic has log append time. `now_ms` is then the time to set.
- latest_ms: int64[batches], the maximum timestamp to set in a topic with create time.
- chosen: bool[batches]; other batches stay as they are.
"""

import numpy as np

from kfbench import layouts
from kfbench.kernels.broker.request_checks import KIP98, read_rule_fields
from kfbench.kernels.formats import enriched, kip98, legacy
from kfbench.kernels.formats.batch_header import (
    APPEND,
    APPEND_TAG,
    ATTRIBUTES,
    CRC,
    EPOCH,
    FIXED,
    TAGGED,
    TAIL_MAX_TIME,
    UNSIGNED,
    V2_MAX_TIME,
    V3_SIZE,
    read_header,
)
from kfbench.kernels.jit import kernel, leaf
from kfbench.kernels.simd.intrinsics import get_i16, get_i32, get_i64, get_u8, move, put_i16, put_i32, put_i64, put_u8
from kfbench.kernels.wire.crc import crc32, crc32c
from kfbench.kernels.wire.lengths import get_delta
from kfbench.kernels.wire.sealing import AFTER_LENGTH, LENGTH
from kfbench.kernels.wire.varint import get_uvarint, get_varlong, put_varint, varint_bytes
from kfbench.layouts import NO_TIMESTAMP


@leaf
def _max_time_at(data, at, end, bits):
    """Return the byte bounds of a v3 batch's maximum timestamp, and the base timestamp (ms) to which it is relative."""
    if bits & FIXED:
        return at + TAIL_MAX_TIME, at + TAIL_MAX_TIME + 8, np.int64(0)
    _, p = get_delta(data, at + V3_SIZE, end, bits & UNSIGNED != 0)
    base_time, p = get_varlong(data, p, end)
    _, stop = get_varlong(data, p, end)
    return p, stop, base_time


@leaf
def _append_tag_at(data, at, end, kind, bits):
    """Return the position of the append time that tag 0 of a v3 batch stores, or 0 without tag 0."""
    if kind != 3 or not bits & TAGGED:
        return np.int64(0)
    _, _, _, _, _, p = read_header(data, at, end, 3)
    number, p = get_uvarint(data, p, end)
    if number == 0:
        return np.int64(0)
    tag, p = get_uvarint(data, p, end)
    _, p = get_uvarint(data, p, end)
    return np.int64(p) if tag == APPEND_TAG else np.int64(0)  # tags rise, so tag 0 is the first


@kernel
def find_append_tag(data, positions, found):
    """Fill found, bool[batches], with whether a v3 batch stores an append time in tag 0."""
    for b in range(len(found)):
        at, end = positions[b], positions[b + 1]
        found[b] = _append_tag_at(data, at, end, 3, np.int64(get_i16(data, at + ATTRIBUTES))) != 0


@kernel
def measure_room(data, positions, append, now_ms, latest_ms, growth):
    """Compute by how many bytes each v3 batch grows when its maximum timestamp is set. Return whether any changes.

    growth: int64[batches], filled; negative if the batch becomes smaller.
    """
    any_growth = False
    for b in range(len(growth)):
        at, end = positions[b], positions[b + 1]
        bits = np.int64(get_i16(data, at + ATTRIBUTES))
        growth[b] = 0
        if not bits & FIXED:
            tagged = _append_tag_at(data, at, end, 3, bits) != 0
            start, stop, base_time = _max_time_at(data, at, end, bits)
            max_time = now_ms if append and not tagged else latest_ms[b]
            delta, _ = get_varlong(data, start, end)
            if base_time + delta != max_time:
                growth[b] = varint_bytes(max_time - base_time) - (stop - start)
        any_growth |= growth[b] != 0
    return any_growth


@kernel
def make_room(data, starts, stops, append, now_ms, latest_ms, growth, out, positions):
    """Copy v3 batches to `out`. Resize the field of batch b's maximum timestamp by growth[b] bytes and set it.

    The batch length is set too. `assign_batches` sets the checksum later.

    Args:
        data, starts, stops: batch b is data[starts[b]:stops[b]], int64[batches].
        append, now_ms, latest_ms: see the module docstring.
        growth: int64[batches], from `measure_room`.
        out, positions: uint8 buffer, and int64[batches + 1], filled.
    """
    at = np.int64(0)
    for b in range(len(growth)):
        start, end = starts[b], stops[b]
        positions[b] = at
        size = end - start + growth[b]
        bits = np.int64(get_i16(data, start + ATTRIBUTES))
        p, stop, base_time = _max_time_at(data, start, end, bits)
        tagged = _append_tag_at(data, start, end, 3, bits) != 0
        max_time = now_ms if append and not tagged else latest_ms[b]
        move(out, at, data, start, p - start)
        here = put_varint(out, at + p - start, max_time - base_time)
        move(out, here, data, stop, end - stop)
        put_i32(out, at + LENGTH, np.int32(size - AFTER_LENGTH))
        at += size
    positions[len(growth)] = at


@kernel
def assign_batches(data, positions, kind, ends, epoch, append, now_ms, latest_ms, chosen, made_room):
    """Set the broker's fields in the chosen batches. Return the bytes written, and the bytes read for checksums.

    Base offset and leader epoch are always set. Maximum timestamp, timestamp type and tag 0 are set if they change,
    with the checksum. With create time, tag 0 becomes -1. The rules are those of Kafka's `setLastOffset`,
    `setMaxTimestamp` and `setPartitionLeaderEpoch`.

    Args:
        data, positions, kind, append, now_ms, latest_ms, chosen: see the module docstring.
        ends: int64[batches], the next offset after the last record of each batch.
        epoch: the leader epoch.
        made_room: whether `make_room` has written the batches.
    """
    written, read = np.int64(0), np.int64(0)
    crc_at = kip98.CRC if kind == KIP98 else CRC
    bits_at = kip98.ATTRIBUTES if kind == KIP98 else ATTRIBUTES
    for b in range(len(ends)):
        if not chosen[b]:
            continue
        at, end = positions[b], positions[b + 1]
        fields = read_rule_fields(data, at, end, kind)
        bits = fields.attributes
        put_i64(data, at, ends[b] - 1 - fields.last_delta)
        written += 8
        if kind != KIP98:
            put_i32(data, at + EPOCH, np.int32(epoch))
            written += 4
        tag_at = _append_tag_at(data, at, end, kind, bits)
        wanted = bits | APPEND if append else bits & ~APPEND
        max_time = now_ms if append and tag_at == 0 else latest_ms[b]
        noted = now_ms if append else np.int64(NO_TIMESTAMP)
        start, stop, base_time = at + (kip98.MAX_TIME if kind == KIP98 else V2_MAX_TIME), np.int64(0), np.int64(0)
        if kind == 3:
            start, stop, base_time = _max_time_at(data, at, end, bits)
        plain = kind != 3 or bits & FIXED != 0
        held = get_i64(data, start) if plain else base_time + get_varlong(data, start, end)[0]
        stamped = tag_at != 0 and get_i64(data, tag_at) != noted
        if wanted == bits and held == max_time and not stamped and not made_room:
            continue
        # Kafka drops the bits that v2 does not know.
        wanted &= layouts.V2_ATTRIBUTES_MASK if kind == 2 else 0xFFFF
        put_i16(data, at + bits_at, np.int16((wanted ^ 0x8000) - 0x8000))  # an int16 with the same 16 bits
        if plain:
            put_i64(data, start, max_time)
            written += 8
        elif held != max_time:
            put_varint(data, start, max_time - base_time)
            written += stop - start
        if stamped:
            put_i64(data, tag_at, noted)
            written += 8
        put_i32(data, at + crc_at, np.int32(crc32c(data, at + bits_at, end)))
        written += 2 + 4
        read += end - at - bits_at
    return written, read


@kernel
def assign_messages(data, positions, magic, ends, append, now_ms, latest_ms, chosen):
    """Set the broker's fields in the chosen v0 or v1 messages. Return the bytes written, and those read for checksums.

    The offset is always set. A wrapper (which contains compressed messages) gets the offset of its last inner message.
    In v1, timestamp and timestamp type are set if they change, with the checksum.

    Args:
        data, positions, append, now_ms, latest_ms, chosen: see the module docstring; messages instead of batches.
        magic: 0 or 1.
        ends: int64[messages], the next offset after each message or after the last inner message of a wrapper.
    """
    written, read = np.int64(0), np.int64(0)
    for b in range(len(ends)):
        if not chosen[b]:
            continue
        at, end = positions[b], positions[b + 1]
        put_i64(data, at, ends[b] - 1)
        written += 8
        if magic == 0:
            continue
        bits = np.int64(get_u8(data, at + legacy.ATTRIBUTES))
        time = now_ms if append else latest_ms[b]
        if (bits & APPEND != 0) == append and get_i64(data, at + legacy.TIMESTAMP) == time:
            continue
        put_u8(data, at + legacy.ATTRIBUTES, np.uint8(bits & layouts.CODEC_MASK | (APPEND if append else 0)))
        put_i64(data, at + legacy.TIMESTAMP, time)
        put_i32(data, at + legacy.CRC, np.int32(crc32(data, at + legacy.MAGIC, end)))
        written += 1 + 8 + 4
        read += end - at - legacy.MAGIC
    return written, read


@kernel
def assign_enriched(data, positions, bases, append, now_ms, chosen):
    """Set the broker's fields in the chosen enriched messages. Return the bytes written, and those read for checksums.

    The offset is always set from bases, int64[messages]. A wrapper (which contains compressed messages) gets the offset
    of its first inner message. With append time, the time in seconds is set. Tag 0, the time in ms, is set if present.
    """
    written, read = np.int64(0), np.int64(0)
    for b in range(len(bases)):
        if not chosen[b]:
            continue
        at, end = positions[b], positions[b + 1]
        put_i64(data, at, bases[b])
        written += 8
        if not append:
            continue
        seconds = now_ms // 1000 if 0 <= now_ms <= enriched.LAST_MS else np.int64(NO_TIMESTAMP)
        put_i32(data, at + enriched.SECONDS, np.int32(seconds))
        written += 4
        # Encoders put tag 0 first. After another tag it cannot be found, because the size of a tag is not stored.
        if get_i32(data, at + enriched.TAGS_LENGTH) > 0 and get_u8(data, at + enriched.TAGS) == enriched.TIME_TAG:
            put_i64(data, at + enriched.TAGS + 1, now_ms)
            written += 8
        put_i32(data, at + enriched.CRC, np.int32(crc32(data, at + enriched.MAGIC, end)))
        written += 4
        read += end - at - enriched.MAGIC
    return written, read
