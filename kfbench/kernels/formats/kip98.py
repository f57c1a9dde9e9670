"""Kernels of the layout that KIP-98 proposed: v2 without leader epoch, count and headers, with unsigned varints."""

import numpy as np

from kfbench import layouts
from kfbench.kernels.formats import batch_header, control
from kfbench.kernels.formats.batch_description import describe_header, describe_producer, has_unset
from kfbench.kernels.formats.batch_header import RecordRun
from kfbench.kernels.jit import kernel, leaf
from kfbench.kernels.simd.intrinsics import (
    get_i8,
    get_i16,
    get_i64,
    get_u8,
    get_u32,
    put_i64,
    put_u8,
)
from kfbench.kernels.wire import sealing, status
from kfbench.kernels.wire.crc import CRC32C_START, crc32c, crc32c_finish
from kfbench.kernels.wire.lengths import (
    RecordColumns,
    ShapeColumns,
    count_bytes,
    delta_code,
    get_delta,
    small_varint_bytes,
)
from kfbench.kernels.wire.varint import (
    get_uvarint,
    get_varlong,
    is_shortest,
    is_shortest_uvarint,
    put_bytes,
    put_uvarint,
    uvarint_bytes,
    varint_bytes,
    zigzag,
)

_LAYOUT = layouts.KIP98_HEADER
CRC, MAGIC, ATTRIBUTES, LAST, BASE_TIME, MAX_TIME, PRODUCER, PRODUCER_EPOCH, SEQUENCE = (
    layouts.position(_LAYOUT, name) for name in _LAYOUT.names if name not in ("base_offset", "length")
)
HEADER, THIS_MAGIC = _LAYOUT.itemsize, 2
LAST_CODEC, KNOWN_BITS = 4, layouts.KIP98_ATTRIBUTES_MASK
NULL_KEY, NULL_VALUE = layouts.NULL_KEY_BIT, layouts.NULL_VALUE_BIT
MAX_MESSAGE_OVERHEAD = 5 + 1 + 10 + 5 + 5
LEAST_MESSAGE_BYTES = 3  # attributes and two deltas, without the length field

_HEADER_PARTS = tuple(f"batch_header.{name}" for name in _LAYOUT.names)
PARTS = (*_HEADER_PARTS, "length", "attributes", "timestamp_delta", "offset_delta", "key_length", "key", "value")
MESSAGE_PARTS_AT = len(_HEADER_PARTS)
HEADER_PART_BYTES = np.array([_LAYOUT[name].itemsize for name in _LAYOUT.names])


@leaf
def _message_bytes(time_bytes, offset_bytes, key_length, value_length):
    """Return the value of a message's length field. time_bytes, offset_bytes: sizes of its delta fields in bytes."""
    size = 1 + time_bytes + offset_bytes + max(value_length, 0)
    return size + (count_bytes(key_length, True) + key_length if key_length >= 0 else 0)


@leaf
def _size_of(columns, i, span):
    time_bytes = varint_bytes(columns.timestamps_ms[i] - span.base_time_ms)
    offset_bytes = uvarint_bytes(delta_code(columns.offsets[i] - span.base_offset, True))
    return _message_bytes(
        time_bytes, offset_bytes, np.int64(columns.key_lengths[i]), np.int64(columns.value_lengths[i])
    )


@leaf
def _put_messages(out, at, columns, first, end, span, crc):
    """Write the records of a batch. Return a `sealing.Body`; its position is sealing.FULL if they do not fit.

    Args:
        out, at, columns, first, end, span, crc: as in `rows.put_body`.
    """
    timestamps, offsets, key_lengths, value_lengths = columns[:4]
    keys, key_starts = columns.key_data, columns.key_starts
    values, value_starts = columns.value_data, columns.value_starts
    far = np.int64(0)
    for i in range(first, end):
        delta = offsets[i] - span.base_offset
        time_code, offset_code = zigzag(timestamps[i] - span.base_time_ms), delta_code(delta, True)
        key_length, value_length = np.int64(key_lengths[i]), np.int64(value_lengths[i])
        size = _message_bytes(uvarint_bytes(time_code), uvarint_bytes(offset_code), key_length, value_length)
        if size + 5 > len(out) - at and size + count_bytes(size, True) > len(out) - at:
            at = sealing.FULL
            break
        at = put_uvarint(out, at, np.uint64(size))
        nulls = (NULL_KEY if key_length < 0 else 0) | (NULL_VALUE if value_length < 0 else 0)
        put_u8(out, at, np.uint8(nulls))
        at = put_uvarint(out, at + 1, time_code)
        at = put_uvarint(out, at, offset_code)
        if key_length >= 0:
            at = put_bytes(out, put_uvarint(out, at, np.uint64(key_length)), keys, key_starts[i], key_length)
        at = put_bytes(out, at, values, value_starts[i], value_length)
        far |= delta + 2**31
        crc = sealing.extend_crc(crc, out, at)
    return sealing.Body(np.int64(at), far, crc)


@kernel
def encode(columns, bounds, fields, codec, out, positions, bodies):
    """Write batches one after another. With a codec, records stay uncompressed, length and checksum stay unset.

    Args:
        columns, bounds, fields, codec, out, positions, bodies: as in `batch_writing._encode`.
    """
    columns, at = RecordColumns(*columns), 0
    for b in range(len(bounds) - 1):
        first, end = np.uint64(bounds[b]), np.uint64(bounds[b + 1])
        row = fields[b if len(fields) > 1 else 0]
        span = batch_header.outline(columns, first, end, row, batch_header.NO_TIMESTAMP, False)
        if (span.last_delta + 2**31) >> 32:
            return sealing.OFFSET_TOO_FAR, b
        if HEADER > len(out) - at:
            return sealing.OUT_TOO_SMALL, b
        start = at
        positions[b] = start
        is_sealed = codec == 0 or first == end  # an empty batch has nothing to compress
        bits = batch_header.attributes_of(row, codec, 0, np.int64(end - first)) & KNOWN_BITS
        put_i64(out, at, span.base_offset)
        put_u8(out, at + MAGIC, np.uint8(THIS_MAGIC))
        batch_header.put_v2_fields(out, at + ATTRIBUTES, row, bits, span)
        at += HEADER
        bodies[b] = at
        crc = sealing.RunningCrc(CRC32C_START, np.int64(start + ATTRIBUTES if is_sealed else sealing.NEVER))
        body = _put_messages(out, at, columns, first, end, span, crc)
        if body.at == sealing.FULL:
            return sealing.OUT_TOO_SMALL, b
        at = body.at
        problem = sealing.problem_of(start, at, body.far)
        if problem != sealing.OK:
            return problem, b
        if is_sealed:
            sealing.seal(out, start, at, CRC, crc32c_finish(body.crc.value, out, body.crc.summed, at))
    positions[len(bounds) - 1] = at
    return sealing.OK, 0


@kernel
def sizes(columns, bounds, fields, out):
    """Fill out, int64[batches], with the uncompressed size of each batch in bytes. Other arguments: as in `encode`."""
    columns = ShapeColumns(*columns[:7])
    timestamps, offsets, key_lengths, value_lengths = columns[:4]
    for b in range(len(bounds) - 1):
        first, end = np.uint64(bounds[b]), np.uint64(bounds[b + 1])
        row = fields[b if len(fields) > 1 else 0]
        span = batch_header.outline(columns, first, end, row, batch_header.NO_TIMESTAMP, False)
        total, wide = np.int64(HEADER), np.int64(0)
        for i in range(first, end):
            time_delta = timestamps[i] - span.base_time_ms
            wide |= ((time_delta << 1) ^ (time_delta >> 63)) | (offsets[i] - span.base_offset)
        if wide >> 28 == 0:  # nearly every batch takes this loop, which compilers vectorize
            for i in range(first, end):
                time_delta = timestamps[i] - span.base_time_ms
                time_bytes = small_varint_bytes((time_delta << 1) ^ (time_delta >> 63))
                offset_bytes = small_varint_bytes(offsets[i] - span.base_offset)
                size = _message_bytes(time_bytes, offset_bytes, np.int64(key_lengths[i]), np.int64(value_lengths[i]))
                total += size + count_bytes(size, True)
        else:
            for i in range(first, end):
                size = _size_of(columns, i, span)
                total += size + count_bytes(size, True)
        out[b] = total


@kernel
def breakdown(columns, bounds, fields, out):
    """Add the bytes that each field takes in all batches to out, int64[len(PARTS)]. Other args: as in `encode`."""
    columns = ShapeColumns(*columns[:7])
    timestamps, offsets, key_lengths, value_lengths = columns[:4]
    parts = out[MESSAGE_PARTS_AT:]
    for b in range(len(bounds) - 1):
        first, end = np.uint64(bounds[b]), np.uint64(bounds[b + 1])
        row = fields[b if len(fields) > 1 else 0]
        span = batch_header.outline(columns, first, end, row, batch_header.NO_TIMESTAMP, False)
        for k in range(MESSAGE_PARTS_AT):
            out[k] += HEADER_PART_BYTES[k]
        for i in range(first, end):
            key_length, value_length = np.int64(key_lengths[i]), np.int64(value_lengths[i])
            parts[0] += count_bytes(_size_of(columns, i, span), True)
            parts[1] += 1
            parts[2] += varint_bytes(timestamps[i] - span.base_time_ms)
            parts[3] += uvarint_bytes(delta_code(offsets[i] - span.base_offset, True))
            if key_length >= 0:
                parts[4] += count_bytes(key_length, True)
            parts[5] += max(key_length, 0)
            parts[6] += max(value_length, 0)


@leaf
def _read_header(data, at):
    """Read the header of a batch of at least HEADER bytes. `count` is 0, because the format stores no record count."""
    return batch_header.read_v2_fields(data, at + ATTRIBUTES, np.int64(0), np.int64(at + HEADER))


@leaf
def _crc_holds(data, at, end):
    return get_u32(data, at + CRC) == np.uint32(crc32c(data, at + ATTRIBUTES, end))


@kernel
def survey(data, positions, codecs, bodies, state):
    """Read and check the header of each batch, and the CRC of compressed batches.

    Return two flags: any batch is compressed; any batch has log append time. Args: as in `batch_reading.survey`.
    """
    compressed, append = False, False
    for b in range(len(state)):
        at, end = positions[b], positions[b + 1]
        codecs[b], bodies[b] = 0, end
        if get_i8(data, at + MAGIC) != THIS_MAGIC:
            state[b] = status.MAGIC
            continue
        if end - at < HEADER:
            state[b] = status.SIZE
            continue
        bits = np.int64(get_i16(data, at + ATTRIBUTES))
        codec = bits & batch_header.CODEC_MASK
        if codec and not _crc_holds(data, at, end):
            state[b] = status.CRC
        elif codec > LAST_CODEC:
            state[b] = status.CODEC
        else:
            state[b], bodies[b] = status.SOUND, at + HEADER
            codecs[b] = codec if at + HEADER < end else 0
            compressed |= codecs[b] != 0
            append |= bits & batch_header.APPEND != 0
    return compressed, append


@kernel
def count(data, positions, source, starts, ends, most_messages, state, counts):
    """Count the records (messages) of each undamaged batch by following their length fields. Return the total.

    Args:
        data, positions, source, starts, ends: as in `batch_reading.index`.
        most_messages: the limit of messages per batch.
        state: int8[batches]; a damaged batch gets its `status`.
        counts: int64[batches], filled with records per batch.
    """
    total = np.int64(0)
    for b in range(len(state)):
        counts[b] = 0
        if state[b] != status.SOUND:
            continue
        p, end, messages = starts[b], ends[b], np.int64(0)
        while p < end:
            size, p = get_uvarint(source, p, end)
            if p > end or size < LEAST_MESSAGE_BYTES or size > end - p:
                plain = get_i16(data, positions[b] + ATTRIBUTES) & batch_header.CODEC_MASK == 0
                damaged = plain and not _crc_holds(data, positions[b], positions[b + 1])
                state[b] = status.CRC if damaged else status.RECORD_LENGTH
                messages = np.int64(0)
                break
            if messages == most_messages:
                state[b] = status.LIMIT_RECORDS
                messages = np.int64(0)
                break
            p += size
            messages += 1
        counts[b] = messages
        total += messages
    return total


@kernel
def index(data, positions, source, starts, ends, counts, most_bytes, state, columns, bounds):
    """Read the records (messages) that `count` has counted into columns. Keys and values are not copied.

    Args:
        data, positions, source, starts, ends, counts: as in `count`.
        most_bytes: the largest size of a key or value in bytes.
        state, columns, bounds: as in `batch_reading.index`.
    """
    r = np.int64(0)
    bounds[0] = 0
    for b in range(len(state)):
        if state[b] == status.SOUND:
            at = positions[b]
            header = _read_header(data, at)
            bits = header.attributes
            if (bits & batch_header.CODEC_MASK == 0 or counts[b] == 0) and not _crc_holds(data, at, positions[b + 1]):
                state[b] = status.CRC
            else:
                run = RecordRun(
                    starts[b], ends[b], ends[b], r, counts[b], 1, get_i64(data, at),
                    header.base_time_ms, bits & batch_header.APPEND != 0, header.max_time_ms, 0, most_bytes,
                )  # fmt: skip
                state[b] = _read_messages(source, run, columns, bits & batch_header.CONTROL != 0)
                if state[b] == status.SOUND:
                    r += counts[b]
        bounds[b + 1] = r


@leaf
def _read_messages(source, run, columns, is_control):
    """Read the messages of a RecordRun into the columns. Return the batch's `status`."""
    timestamps, created, offsets, key_lengths, key_starts, value_lengths, value_starts = columns
    p, end = run.start, run.end
    for q in range(np.uint64(run.row), np.uint64(run.row + run.count)):
        size, p = get_uvarint(source, p, end)
        stop = p + size
        if p >= stop or stop > end:
            return status.RECORD_LENGTH
        nulls = get_u8(source, p)
        if nulls & ~(NULL_KEY | NULL_VALUE):
            return status.RECORD_ATTRIBUTES
        delta, p = get_varlong(source, p + 1, stop)
        if p > stop:
            return status.TIMESTAMP_DELTA
        created[q] = run.base_time_ms + delta
        timestamps[q] = run.append_time_ms if run.is_append else run.base_time_ms + delta
        delta, p = get_delta(source, p, stop, True)
        if p > stop:
            return status.OFFSET_DELTA
        offsets[q] = run.base_offset + delta
        key_length = np.int64(batch_header.NULL)
        if nulls & NULL_KEY == 0:
            key_length, p = get_uvarint(source, p, stop)
            if key_length > stop - p:
                return status.KEY_LENGTH
        key_lengths[q], key_starts[q] = key_length, p
        p += max(key_length, 0)
        value_length = stop - p
        if nulls & NULL_VALUE:
            if value_length:
                return status.NULL_VALUE
            value_length = np.int64(batch_header.NULL)
        if max(key_length, value_length) > run.most_bytes:
            return status.LIMIT_FIELD
        value_lengths[q], value_starts[q] = value_length, p
        if is_control and not control.is_sound(source, key_starts[q], key_length, source, p, value_length):
            return status.CONTROL_RECORD
        p = stop
    return status.SOUND


@leaf
def _message_is_canonical(source, p, end):
    """Check one message that `index` has read. Return whether its varints are the shortest, and the next position."""
    size, after = get_uvarint(source, p, end)
    whole = is_shortest_uvarint(source, p, after, size)
    stop = after + size
    nulls = get_u8(source, after)
    delta, p = get_varlong(source, after + 1, stop)
    whole &= is_shortest(source, after + 1, p, delta)
    code, after = get_uvarint(source, p, stop)
    whole &= is_shortest_uvarint(source, p, after, code)
    if nulls & NULL_KEY == 0:
        length, p = get_uvarint(source, after, stop)
        whole &= is_shortest_uvarint(source, after, p, length)
    return whole, stop


@kernel
def describe(data, positions, source, starts, ends, counts, sound, rows):
    """Fill one BATCH row for each undamaged batch.

    Args:
        data, positions, source, starts, ends, counts: as in `index`.
        sound, rows: as in `batch_description.describe`, rows as its rows_out.
    """
    for i in range(len(sound)):
        b = sound[i]
        at, end = positions[b], positions[b + 1]
        row = rows[i]
        header = _read_header(data, at)
        bits = header.attributes
        describe_header(data, at, end, THIS_MAGIC, header, counts[b], row)
        describe_producer(data, at + PRODUCER, header.last_delta, row)
        row.crc = get_u32(data, at + CRC)
        row.partition_leader_epoch, row.delete_horizon_ms = -1, -1
        row.records_size_bytes = ends[b] - starts[b]
        whole, p = bits & ~KNOWN_BITS == 0, starts[b]
        whole &= counts[b] > 0 or bits & batch_header.CODEC_MASK == 0
        whole &= not has_unset(row)
        for _ in range(counts[b]):
            short, p = _message_is_canonical(source, p, ends[b])
            whole &= short
        row.canonical = whole
