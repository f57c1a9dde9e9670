"""Batch headers alone: what each batch says of its size, offsets and times before any of its records is looked at."""

import numpy as np

from kfbench import layouts
from kfbench.kernels.formats import enriched, kip98
from kfbench.kernels.formats.batch_header import (
    APPEND,
    CODEC_MASK,
    CONTROL,
    TAGGED,
    TRANSACTIONAL,
    V2_PRODUCER,
    V2_SIZE,
    V3_PRODUCER,
    V3_SIZE,
    read_header,
    read_tags,
)
from kfbench.kernels.formats.columnar import batch_header as columnar
from kfbench.kernels.formats.columnar import fields as columnar_fields
from kfbench.kernels.formats.legacy import ATTRIBUTES, FIXED_V0, FIXED_V1, KEY_V0, KEY_V1, TIMESTAMP
from kfbench.kernels.jit import kernel, leaf
from kfbench.kernels.simd.intrinsics import get_i8, get_i16, get_i32, get_i64, get_u8
from kfbench.kernels.wire import status
from kfbench.kernels.wire.frames import LENGTH_AT, MAGIC_AT, MIN_LENGTH, START

BY_MAGIC, KIP98, ENRICHED = 0, 1, 2  # dialects: who tells how a batch lies
ANY_MAGIC = -1
AT_END, AT_OFFSET, AT_TIME = 0, 1, 2  # where a scan stops
UNSET, NO_TIMESTAMP, NULL = layouts.UNSET, layouts.NO_TIMESTAMP, layouts.NULL_LENGTH
NOT_SAID = -1
NO_LENGTH = -1  # a state beside those of `status`: the length field is too small to be skipped


@leaf
def _legacy(data, at, end, magic, row):
    """A message of v0 or v1; of a compressed set it has the last offset and not the first."""
    fixed = FIXED_V1 if magic else FIXED_V0
    if end - at < fixed:
        return status.SIZE
    bits = np.int64(get_u8(data, at + ATTRIBUTES))
    row.header_bytes, row.codec = fixed, bits & CODEC_MASK
    row.last_offset = get_i64(data, at)
    row.base_offset = UNSET if row.codec else row.last_offset
    row.count = NOT_SAID if row.codec else 1
    if magic:
        row.max_timestamp_ms = get_i64(data, at + TIMESTAMP)
        row.is_append_time = bits & APPEND != 0
    if row.codec == 0:
        row.keys = 1 if get_i32(data, at + (KEY_V1 if magic else KEY_V0)) >= 0 else 0
    return status.SOUND


@leaf
def _enriched(data, at, end, row):
    """A message with tags; of a compressed set it has the first offset, and the last unless there are holes in it."""
    if end - at < enriched.FIXED:
        return status.SIZE
    length = np.int64(get_i32(data, at + enriched.TAGS_LENGTH))
    if length < NULL or length > end - at - enriched.FIXED:
        return status.TAGS_LENGTH
    sound, _, has_time, time, count, relative, keys = enriched.read_tags(data, at)
    if not sound:
        return status.TAG
    kind = get_u8(data, at + ATTRIBUTES) & enriched.TYPE_MASK
    row.header_bytes, row.codec = enriched.FIXED + max(length, 0), kind if kind <= enriched.LAST_CODEC else 0
    row.is_control = kind > enriched.LAST_CODEC
    row.max_timestamp_ms = time
    if not has_time:
        seconds = np.int64(get_i32(data, at + enriched.SECONDS))
        row.max_timestamp_ms = NO_TIMESTAMP if seconds == NO_TIMESTAMP else seconds * 1000
    row.base_offset = row.last_offset = get_i64(data, at)
    if row.codec == 0:
        row.count = 1
        row.keys = 1 if get_i32(data, at + enriched.TAGS + max(length, 0)) >= 0 else 0
        return status.SOUND
    row.keys = keys
    row.last_is_least = True
    if count > 0:
        row.count, row.last_offset, row.last_is_least = count, row.base_offset + count - 1, relative
    return status.SOUND


@leaf
def _kip98(data, at, end, row):
    if end - at < kip98.HEADER:
        return status.SIZE
    bits = np.int64(get_i16(data, at + kip98.ATTRIBUTES))
    row.header_bytes, row.codec = kip98.HEADER, bits & CODEC_MASK
    row.base_offset = get_i64(data, at)
    row.last_offset = row.base_offset + np.int64(get_i32(data, at + kip98.LAST))
    row.max_timestamp_ms = get_i64(data, at + kip98.MAX_TIME)
    row.producer_id = get_i64(data, at + kip98.PRODUCER)
    row.is_append_time, row.is_transactional = bits & APPEND != 0, bits & TRANSACTIONAL != 0
    row.is_control = bits & CONTROL != 0
    return status.SOUND


@leaf
def _batch(data, at, end, magic, row):
    """A batch of v2, or of v3 with any features."""
    if end - at < (V2_SIZE if magic == 2 else V3_SIZE):
        return status.SIZE
    bits, last_delta, _, max_time, count, body = read_header(data, at, end, magic)
    if body > end:
        return status.BATCH_HEADER
    if magic == 3 and bits & ~layouts.V3_ATTRIBUTES_MASK:
        return status.ATTRIBUTES
    row.is_append_time = bits & APPEND != 0
    row.max_timestamp_ms = max_time
    if magic == 3 and bits & TAGGED:
        problem, timed, tag_time, _, _, _, _, body = read_tags(data, body, end)
        if problem != status.SOUND:
            return problem
        if timed and row.is_append_time:
            row.max_timestamp_ms = tag_time
    row.header_bytes, row.codec, row.count = body - at, bits & CODEC_MASK, count
    row.base_offset = get_i64(data, at)
    row.last_offset = row.base_offset + last_delta
    row.producer_id = get_i64(data, at + (V2_PRODUCER if magic == 2 else V3_PRODUCER))
    row.is_transactional, row.is_control = bits & TRANSACTIONAL != 0, bits & CONTROL != 0
    return status.SOUND


@leaf
def _columnar(data, at, end, row):
    """A columnar batch. Whether any record has a key is in its attributes; where some are null an encoder has made
    sure that not all are, but a reader does not ask it."""
    if end - at <= columnar.HEADER:
        return status.SIZE
    header = columnar.read_header(data, at, end)
    if header.state != status.SOUND:
        return header.state
    bits = header.attributes
    row.header_bytes, row.codec, row.count = header.body - at, bits & CODEC_MASK, header.count
    row.base_offset = get_i64(data, at)
    row.last_offset = row.base_offset + header.last_delta
    row.max_timestamp_ms = header.max_time
    row.producer_id = columnar_fields.producer(data, at, bits)[0]
    row.is_append_time, row.is_transactional = bits & APPEND != 0, bits & TRANSACTIONAL != 0
    row.is_control = bits & CONTROL != 0
    if bits & columnar.NULL_KEYS == 0:
        row.keys = 1 if bits & columnar.KEYS else 0
    return status.SOUND


@kernel
def scan(data, at, dialect, magic, stop, target, from_offset, rows):
    """Fills one HEADER row (`broker._headers`) a batch from byte `at` on, as far as there is room.

    magic: the only one that is taken, or ANY_MAGIC. stop: behind the first batch whose last offset (AT_OFFSET) or
    largest timestamp (AT_TIME; of batches that may reach from_offset) is `target` or more, or AT_END. Gives (rows, the
    byte it came to, state: of `status` or NO_LENGTH, whether it is done: at such a batch, at the end, or at what is
    broken). An incomplete last batch is the end.
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
        row.count = row.keys = row.producer_id = NOT_SAID
        row.max_timestamp_ms = NO_TIMESTAMP
        row.last_is_least = row.is_append_time = row.is_transactional = row.is_control = False
        if found < 0 or found > columnar.THIS_MAGIC or (magic != ANY_MAGIC and found != magic):
            state = status.MAGIC
        elif dialect == ENRICHED:
            state = _enriched(data, at, end, row)
        elif dialect == KIP98:
            state = _kip98(data, at, end, row)
        elif found < 2:
            state = _legacy(data, at, end, found, row)
        elif found == columnar.THIS_MAGIC:
            state = _columnar(data, at, end, row)
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


@kernel
def counts(data, positions, most, found):
    """Fills found int64[batches] with how many records each batch says that it has, from 1 to `most`; 1 where its
    header does not say it, or is cut short."""
    for b in range(len(found)):
        at, end = positions[b], positions[b + 1]
        magic, count = get_i8(data, at + MAGIC_AT), np.int64(1)
        if magic == columnar.THIS_MAGIC and end - at > columnar.HEADER:
            count = columnar.read_header(data, at, end).count
        elif (magic == 2 and end - at >= V2_SIZE) or (magic == 3 and end - at >= V3_SIZE):
            _, _, _, _, count, _ = read_header(data, at, end, magic)
        found[b] = min(max(count, np.int64(1)), most)
