"""Scan a log by its batch headers: size, offsets and timestamps of each batch. Records are not read."""

import numpy as np

from kfbench import layouts
from kfbench.kernels.formats import batch_header, enriched, kip98
from kfbench.kernels.formats.batch_tags import read_tags
from kfbench.kernels.formats.legacy import FIXED_V0, FIXED_V1, KEY_V0, KEY_V1, TIMESTAMP
from kfbench.kernels.formats.message_fields import ATTRIBUTES, LAST_CODEC
from kfbench.kernels.jit import kernel, leaf, skimming
from kfbench.kernels.simd.intrinsics import get_i8, get_i16, get_i32, get_i64, get_u8
from kfbench.kernels.wire import status
from kfbench.kernels.wire.frames import LENGTH_AT, MAGIC_AT, MIN_LENGTH, START

BY_MAGIC, KIP98, ENRICHED = 0, 1, 2  # dialects: each batch's magic gives its layout, or all batches have the named one
ANY_MAGIC, LAST_MAGIC = -1, 3
AT_END, AT_OFFSET, AT_TIME = 0, 1, 2  # conditions that stop a scan
UNSET, NO_TIMESTAMP, NULL = layouts.UNSET, layouts.NO_TIMESTAMP, layouts.NULL_LENGTH
NOT_IN_HEADER = -1  # the value is not in the header
NO_LENGTH = -1  # one more state than `status` has: the length is too small to skip the batch


@leaf
def _legacy(data, at, end, magic, row):
    """Fill a HEADER row from a v0 or v1 message. A wrapper of compressed messages stores the offset of the last one."""
    fixed = FIXED_V1 if magic else FIXED_V0
    if end - at < fixed:
        return status.SIZE
    bits = np.int64(get_u8(data, at + ATTRIBUTES))
    row.header_bytes, row.codec = fixed, bits & batch_header.CODEC_MASK
    row.last_offset = get_i64(data, at)
    row.base_offset = UNSET if row.codec else row.last_offset
    row.count = NOT_IN_HEADER if row.codec else 1
    if magic:
        row.max_timestamp_ms = get_i64(data, at + TIMESTAMP)
        row.is_append_time = bits & batch_header.APPEND != 0
    if row.codec == 0:
        row.keys = 1 if get_i32(data, at + (KEY_V1 if magic else KEY_V0)) >= 0 else 0
    return status.SOUND


@leaf
def _enriched(data, at, end, row):
    """Fill a HEADER row from an enriched message.

    A wrapper of compressed messages stores the offset of the first one and their count. The last offset follows from
    these if the offsets have no gaps.
    """
    if end - at < enriched.FIXED:
        return status.SIZE
    length = np.int64(get_i32(data, at + enriched.TAGS_LENGTH))
    if length < NULL or length > end - at - enriched.FIXED:
        return status.TAGS_LENGTH
    tags = enriched.read_tags(data, at)
    if not tags.is_sound:
        return status.TAG
    kind = get_u8(data, at + ATTRIBUTES) & enriched.TYPE_MASK
    row.header_bytes, row.codec = enriched.FIXED + max(length, 0), kind if kind <= LAST_CODEC else 0
    row.is_control = kind > LAST_CODEC
    row.max_timestamp_ms = enriched.time_of(data, at, tags)
    row.base_offset = row.last_offset = get_i64(data, at)
    if row.codec == 0:
        row.count = 1
        row.keys = 1 if get_i32(data, at + enriched.TAGS + max(length, 0)) >= 0 else 0
        return status.SOUND
    row.keys, row.last_is_least = tags.any_key, True
    if tags.count > 0:
        row.count, row.last_offset = tags.count, row.base_offset + tags.count - 1
        row.last_is_least = tags.is_relative
    return status.SOUND


@leaf
def _kip98(data, at, end, row):
    if end - at < kip98.HEADER:
        return status.SIZE
    bits = np.int64(get_i16(data, at + kip98.ATTRIBUTES))
    row.header_bytes, row.codec = kip98.HEADER, bits & batch_header.CODEC_MASK
    row.base_offset = get_i64(data, at)
    row.last_offset = row.base_offset + np.int64(get_i32(data, at + kip98.LAST))
    row.max_timestamp_ms = get_i64(data, at + kip98.MAX_TIME)
    row.producer_id = get_i64(data, at + kip98.PRODUCER)
    row.is_append_time, row.is_transactional = bits & batch_header.APPEND != 0, bits & batch_header.TRANSACTIONAL != 0
    row.is_control = bits & batch_header.CONTROL != 0
    return status.SOUND


@leaf
def _batch(data, at, end, magic, row):
    """Fill a HEADER row from the header of a v2 batch, or of a v3 batch with any features."""
    if end - at < (batch_header.V2_SIZE if magic == 2 else batch_header.V3_SIZE):
        return status.SIZE
    header = batch_header.read_header(data, at, end, magic)
    bits, body = header.attributes, header.body
    if body > end:
        return status.BATCH_HEADER
    if magic == 3 and bits & ~layouts.V3_ATTRIBUTES_MASK:
        return status.ATTRIBUTES
    row.is_append_time = bits & batch_header.APPEND != 0
    row.max_timestamp_ms = header.max_time_ms
    if magic == 3 and bits & batch_header.TAGGED:
        tagged = read_tags(data, body, end)
        body = tagged.records_start
        if tagged.state != status.SOUND:
            return tagged.state
        if tagged.has_append_time and row.is_append_time:
            row.max_timestamp_ms = tagged.append_time_ms
    row.header_bytes, row.codec, row.count = body - at, bits & batch_header.CODEC_MASK, header.count
    row.base_offset = get_i64(data, at)
    row.last_offset = row.base_offset + header.last_delta
    row.producer_id = get_i64(data, at + (batch_header.V2_PRODUCER if magic == 2 else batch_header.V3_PRODUCER))
    row.is_transactional, row.is_control = bits & batch_header.TRANSACTIONAL != 0, bits & batch_header.CONTROL != 0
    return status.SOUND


@kernel
def scan(data, at, dialect, magic, stop, target, from_offset, rows):
    """Read the batch headers from position `at` on. Fill one HEADER row per batch. An incomplete last batch ends it.

    Args:
        data, at: uint8 log, and the position of the first batch.
        dialect: BY_MAGIC, KIP98 or ENRICHED.
        magic: the only magic that is accepted, or ANY_MAGIC.
        stop, target: stop after the first batch whose last offset (AT_OFFSET) or largest timestamp in ms (AT_TIME) is
            at least `target`, or at the end (AT_END).
        from_offset: with AT_TIME, do not stop at batches that end before this offset.
        rows: HEADER rows (`broker.source`), filled until they are used up.

    Returns:
        The number of filled rows, the position reached, a `status` or NO_LENGTH, and whether the scan is done. It is
        done if it has found the batch, the end or damage.
    """
    size, b = len(data), 0
    at = np.int64(at)
    while b < len(rows):
        if size - at < START:
            return b, at, status.SOUND, True
        length = np.int64(get_i32(data, at + LENGTH_AT))
        if length < MIN_LENGTH:
            return b, at, NO_LENGTH, True
        end = at + START + length
        if end > size:
            return b, at, status.SOUND, True
        row, found = rows[b], np.int64(get_i8(data, at + MAGIC_AT))
        row.position, row.size_bytes, row.magic = at, end - at, found
        row.count = row.keys = row.producer_id = NOT_IN_HEADER
        row.max_timestamp_ms = NO_TIMESTAMP
        row.last_is_least = row.is_append_time = row.is_transactional = row.is_control = False
        if found < 0 or found > LAST_MAGIC or (magic != ANY_MAGIC and found != magic):
            state = status.MAGIC
        elif dialect == ENRICHED:
            state = _enriched(data, at, end, row)
        elif dialect == KIP98:
            state = _kip98(data, at, end, row)
        elif found < 2:
            state = _legacy(data, at, end, found, row)
        else:
            state = _batch(data, at, end, found, row)
        if state != status.SOUND:
            return b, at, state, True
        b, at = b + 1, end
        if stop == AT_OFFSET and row.last_offset >= target:
            return b, at, status.SOUND, True
        may_reach = row.last_offset >= from_offset or row.last_is_least
        if stop == AT_TIME and may_reach and row.max_timestamp_ms >= target:
            return b, at, status.SOUND, True
    return b, at, status.SOUND, False


@skimming
@kernel
def counts(data, positions, most, found):
    """Fill found, int64[batches], with the record count in each batch header, limited to the range from 1 to `most`.

    The count is 1 if the header has no count or is cut short.
    """
    for b in range(len(found)):
        at, end = positions[b], positions[b + 1]
        magic, count = get_i8(data, at + MAGIC_AT), np.int64(1)
        if (magic == 2 and end - at >= batch_header.V2_SIZE) or (magic == 3 and end - at >= batch_header.V3_SIZE):
            count = batch_header.read_header(data, at, end, magic).count
        found[b] = min(max(count, np.int64(1)), most)
