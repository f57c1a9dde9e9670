"""Records one after another, each with all its fields (`DefaultRecord`): v2, and v3 unless its headers come first."""

import numpy as np

from kfbench.kernels.formats.batch_header import (
    APPEND,
    ATTRIBUTES,
    BARE,
    CODEC_MASK,
    CRC,
    HEADERS_FIRST,
    MAGIC,
    NULL,
    ONE,
    RECORD_PARTS_AT,
    TAGGED,
    UNSIGNED,
    V2_SIZE,
    V3_SIZE,
    add_header_parts,
    add_parts,
    attributes_of,
    marks_of,
    outline,
    put_header,
    put_tags,
    read_header,
    tags_bytes,
    untagged_bytes,
)
from kfbench.kernels.jit import kernel, leaf, variant
from kfbench.kernels.simd.intrinsics import get_i8, get_i64, get_u8, put_u8
from kfbench.kernels.wire import status
from kfbench.kernels.wire.crc import BLOCK, CRC32C_START, crc32c_ahead, crc32c_finish
from kfbench.kernels.wire.frames import ask_ahead, ask_on
from kfbench.kernels.wire.lengths import (
    count_bytes,
    delta_code,
    get_count,
    get_delta,
    get_length,
    header_bytes,
    length_bytes,
    put_count,
    put_field,
    skip,
)
from kfbench.kernels.wire.sealing import (
    AFTER_LENGTH,
    BATCH_TOO_LARGE,
    INT32_MAX,
    NEVER,
    OFFSET_TOO_FAR,
    OK,
    OUT_TOO_SMALL,
    seal,
)
from kfbench.kernels.wire.varint import (
    get_varlong,
    is_shortest,
    put_bytes,
    put_uvarint,
    uvarint_bytes,
    varint_bytes,
    zigzag,
)

FULL = -1


@leaf
def _put_record(out, at, columns, i, base_time, base_offset, marks, shared, with_headers, unsigned):
    """(next position, offset delta); the position is FULL where the record does not fit.

    with_headers and unsigned are literals: the compiler drops all that they do not need.
    """
    (timestamps, offsets, key_lengths, value_lengths, header_bounds, header_key_lengths, header_value_lengths,
     keys, key_starts, values, value_starts, header_keys, header_key_starts, header_values, header_value_starts,
     ) = columns  # fmt: skip
    time_delta = zigzag(timestamps[i] - base_time)
    delta = offsets[i] - base_offset
    offset_delta = delta_code(delta, unsigned)
    key_length, value_length = np.int64(key_lengths[i]), np.int64(value_lengths[i])
    size = (
        marks + uvarint_bytes(time_delta) + uvarint_bytes(offset_delta)
        + length_bytes(key_length, unsigned) + max(key_length, 0)
        + length_bytes(value_length, unsigned) + max(value_length, 0)
    )  # fmt: skip
    if with_headers:
        size += header_bytes(header_bounds, header_key_lengths, header_value_lengths, i, shared, unsigned)
    else:
        size += 1
    if size + 5 > len(out) - at and size + count_bytes(size, unsigned) > len(out) - at:
        return FULL, delta
    # Putting length, deltas and key length together in one word measured 15 % slower than these loops.
    at = put_count(out, at, size, unsigned)
    put_u8(out, at, np.uint8(0))  # written over where records carry no attributes
    at = put_uvarint(out, at + marks, time_delta)
    at = put_uvarint(out, at, offset_delta)
    at = put_field(out, at, keys, key_starts[i], key_length, unsigned)
    at = put_field(out, at, values, value_starts[i], value_length, unsigned)
    if with_headers:
        first, end = np.int64(header_bounds[i]) + shared, np.int64(header_bounds[i + ONE])
        at = put_count(out, at, end - first, unsigned)
        for h in range(np.uint64(first), np.uint64(end)):
            name, content = np.int64(header_key_lengths[h]), np.int64(header_value_lengths[h])
            at = put_bytes(out, put_count(out, at, name, unsigned), header_keys, header_key_starts[h], name)
            at = put_field(out, at, header_values, header_value_starts[h], content, unsigned)
        return at, delta
    put_u8(out, at, np.uint8(0))
    return at + 1, delta


WITH_TAGS, WITHOUT_ZIGZAG = False, False  # a variant's own


def _encode(columns, bounds, fields, tags, shared, magic, features, codec, out, positions, bodies):
    """Writes batches one after another; with a codec their records are still plain, and length and checksum unset.

    tags: the callers' tagged fields as bytes; shared: how many headers each batch has in tag 1, one item for all or
    one a batch. Fills positions int64[batches + 1] and bodies int64[batches] (where the records begin). Gives
    (problem, batch): OK, or why that batch cannot be written.
    """
    timestamps, offsets, header_bounds = columns[0], columns[1], columns[4]
    marks = 0 if features & BARE else 1
    at = 0
    for b in range(len(bounds) - 1):
        first, end = np.uint64(bounds[b]), np.uint64(bounds[b + 1])
        row = fields[b if len(fields) > 1 else 0]
        base_offset, last_delta, base_time, max_time = outline(
            timestamps, offsets, first, end, row, row.delete_horizon_ms, features & TAGGED != 0
        )
        if (last_delta + 2**31) >> 32:
            return OFFSET_TOO_FAR, b
        count, common = np.int64(end - first), np.int64(0)
        room = untagged_bytes(last_delta, base_time, max_time, magic, features)
        if WITH_TAGS:
            common = shared[b if len(shared) > 1 else 0]
            room += tags_bytes(row, header_bounds, columns[5], columns[6], first, common, WITHOUT_ZIGZAG)
        if room > len(out) - at:
            return OUT_TOO_SMALL, b
        start = at
        positions[b] = start
        sealed = codec == 0 or count == 0
        bits = attributes_of(row, codec, features, count)
        at = put_header(out, at, row, magic, bits, base_offset, last_delta, base_time, max_time, count)
        if WITH_TAGS:
            at = put_tags(out, at, row, tags, columns, first, common, WITHOUT_ZIGZAG)
        bodies[b] = at
        far = np.int64(0)
        crc, summed = CRC32C_START, start + ATTRIBUTES if sealed else NEVER
        if header_bounds[first] == header_bounds[end]:
            for i in range(first, end):
                at, delta = _put_record(
                    out, at, columns, i, base_time, base_offset, marks, common, False, WITHOUT_ZIGZAG
                )
                if at == FULL:
                    return OUT_TOO_SMALL, b
                far |= delta + 2**31
                if at - summed >= BLOCK:
                    crc, summed = crc32c_ahead(crc, out, summed, at)
        else:
            for i in range(first, end):
                at, delta = _put_record(
                    out, at, columns, i, base_time, base_offset, marks, common, True, WITHOUT_ZIGZAG
                )
                if at == FULL:
                    return OUT_TOO_SMALL, b
                far |= delta + 2**31
                if at - summed >= BLOCK:
                    crc, summed = crc32c_ahead(crc, out, summed, at)
        if far >> 32:
            return OFFSET_TOO_FAR, b
        if at - start - AFTER_LENGTH > INT32_MAX:
            return BATCH_TOO_LARGE, b
        if sealed:
            seal(out, start, at, CRC, crc32c_finish(crc, out, summed, at))
    positions[len(bounds) - 1] = at
    return OK, 0


encode = variant(_encode, "encode", WITH_TAGS=False, WITHOUT_ZIGZAG=False)
encode_tagged = variant(_encode, "encode_tagged", WITH_TAGS=True, WITHOUT_ZIGZAG=False)
encode_unsigned = variant(_encode, "encode_unsigned", WITH_TAGS=False, WITHOUT_ZIGZAG=True)
encode_tagged_unsigned = variant(_encode, "encode_tagged_unsigned", WITH_TAGS=True, WITHOUT_ZIGZAG=True)


def _sizes(columns, bounds, fields, shared, magic, features, out):
    """The uncompressed bytes of each batch, int64[batches], without writing it."""
    timestamps, offsets, key_lengths, value_lengths, header_bounds, header_key_lengths, header_value_lengths = columns
    marks = 0 if features & BARE else 1
    any_headers = len(header_key_lengths) > 0
    for b in range(len(bounds) - 1):
        first, end = np.uint64(bounds[b]), np.uint64(bounds[b + 1])
        row = fields[b if len(fields) > 1 else 0]
        base_offset, last_delta, base_time, max_time = outline(
            timestamps, offsets, first, end, row, row.delete_horizon_ms, features & TAGGED != 0
        )
        total, common = untagged_bytes(last_delta, base_time, max_time, magic, features), np.int64(0)
        if features & TAGGED:
            common = shared[b if len(shared) > 1 else 0]
            total += tags_bytes(
                row, header_bounds, header_key_lengths, header_value_lengths, first, common, WITHOUT_ZIGZAG
            )
        wide = np.int64(0)
        if not any_headers:
            for i in range(first, end):
                time_delta, delta = timestamps[i] - base_time, offsets[i] - base_offset
                far = delta if WITHOUT_ZIGZAG else (delta << 1) ^ (delta >> 63)
                wide |= ((time_delta << 1) ^ (time_delta >> 63)) | far
        if not any_headers and wide >> 28 == 0:  # nearly every batch: a loop that compilers turn into vectors
            for i in range(first, end):
                time_delta, delta = timestamps[i] - base_time, offsets[i] - base_offset
                near = (time_delta << 1) ^ (time_delta >> 63)
                far = delta if WITHOUT_ZIGZAG else (delta << 1) ^ (delta >> 63)
                key_length, value_length = np.int64(key_lengths[i]), np.int64(value_lengths[i])
                size = (
                    3 + marks
                    + (near > 0x7F) + (near > 0x3FFF) + (near > 0x1FFFFF)
                    + (far > 0x7F) + (far > 0x3FFF) + (far > 0x1FFFFF)
                    + length_bytes(key_length, WITHOUT_ZIGZAG) + max(key_length, 0)
                    + length_bytes(value_length, WITHOUT_ZIGZAG) + max(value_length, 0)
                )  # fmt: skip
                total += size + count_bytes(size, WITHOUT_ZIGZAG)
        else:
            for i in range(first, end):
                key_length, value_length = np.int64(key_lengths[i]), np.int64(value_lengths[i])
                size = (
                    marks + varint_bytes(timestamps[i] - base_time)
                    + uvarint_bytes(delta_code(offsets[i] - base_offset, WITHOUT_ZIGZAG))
                    + length_bytes(key_length, WITHOUT_ZIGZAG) + max(key_length, 0)
                    + length_bytes(value_length, WITHOUT_ZIGZAG) + max(value_length, 0)
                    + header_bytes(header_bounds, header_key_lengths, header_value_lengths, i, common, WITHOUT_ZIGZAG)
                )  # fmt: skip
                total += size + count_bytes(size, WITHOUT_ZIGZAG)
        out[b] = total


sizes = variant(_sizes, "sizes", WITHOUT_ZIGZAG=False)
sizes_unsigned = variant(_sizes, "sizes_unsigned", WITHOUT_ZIGZAG=True)


@kernel
def breakdown(columns, bounds, fields, shared, magic, features, out):
    """Where the bytes go: int64[len(PARTS)], in the order of PARTS, summed over the batches."""
    timestamps, offsets, key_lengths, value_lengths, header_bounds, header_key_lengths, header_value_lengths = columns
    marks = 0 if features & BARE else 1
    unsigned = features & UNSIGNED != 0
    parts = out[RECORD_PARTS_AT:]
    for b in range(len(bounds) - 1):
        first, end = np.uint64(bounds[b]), np.uint64(bounds[b + 1])
        row = fields[b if len(fields) > 1 else 0]
        base_offset, last_delta, base_time, max_time = outline(
            timestamps, offsets, first, end, row, row.delete_horizon_ms, features & TAGGED != 0
        )
        common = shared[b if len(shared) > 1 else 0]
        add_parts(out, row, columns, first, last_delta, base_time, max_time, common, magic, features)
        for i in range(first, end):
            key_length, value_length = np.int64(key_lengths[i]), np.int64(value_lengths[i])
            time_bytes = varint_bytes(timestamps[i] - base_time)
            offset_bytes = uvarint_bytes(delta_code(offsets[i] - base_offset, unsigned))
            key_size, value_size = length_bytes(key_length, unsigned), length_bytes(value_length, unsigned)
            parts[0] += count_bytes(
                marks + time_bytes + offset_bytes + key_size + max(key_length, 0) + value_size + max(value_length, 0)
                + header_bytes(header_bounds, header_key_lengths, header_value_lengths, i, common, unsigned),
                unsigned,
            )  # fmt: skip
            parts[2] += marks
            parts[3] += time_bytes
            parts[4] += offset_bytes
            parts[5] += key_size
            parts[6] += max(key_length, 0)
            parts[7] += value_size
            parts[8] += max(value_length, 0)
            start, stop = np.int64(header_bounds[i]) + common, np.int64(header_bounds[i + ONE])
            add_header_parts(out, header_key_lengths, header_value_lengths, start, stop, unsigned)


@leaf
def read(source, p, end, r, count, marks, clock, base_offset, shared, most_bytes, columns, header_bounds, unsigned):
    """Reads the records source[p:end] into the rows r to r + count - 1 of the columns; the state of the batch.

    clock: (base time, whether readers give the append time, that). columns: as in `formats._index`.
    """
    timestamps, created, offsets, key_lengths, key_starts, value_lengths, value_starts = columns
    base_time, append, append_time = clock
    headers_before = header_bounds[r]
    for q in range(np.uint64(r), np.uint64(r + count)):
        size, p = get_count(source, p, end, unsigned)
        stop = p + size
        if p > end or size < marks or stop > end:
            return status.RECORD_LENGTH
        delta, p = get_varlong(source, p + marks, stop)
        if p > stop:
            return status.TIMESTAMP_DELTA
        created[q] = base_time + delta
        timestamps[q] = append_time if append else base_time + delta
        delta, p = get_delta(source, p, stop, unsigned)
        if p > stop:
            return status.OFFSET_DELTA
        offsets[q] = base_offset + delta
        length, p = get_length(source, p, stop, unsigned)
        if length > stop - p:
            return status.KEY_LENGTH
        key_lengths[q], key_starts[q] = max(length, NULL), p  # any negative length is null to Kafka
        length, p = get_length(source, p + max(length, 0), stop, unsigned)
        if length > stop - p:
            return status.VALUE_LENGTH
        value_lengths[q], value_starts[q] = max(length, NULL), p
        headers, p = get_count(source, p + max(length, 0), stop, unsigned)
        if headers < 0 or headers > (stop - p) >> 1:  # a header takes two bytes at least
            return status.HEADER_COUNT
        headers_before += shared + headers
        header_bounds[q + ONE] = headers_before
        for _ in range(headers):
            name, p = get_count(source, p, stop, unsigned)
            if name < 0 or name > stop - p:
                return status.HEADER_KEY_LENGTH
            length, p = get_length(source, p + name, stop, unsigned)
            if length > stop - p:
                return status.HEADER_VALUE_LENGTH
            if max(name, length) > most_bytes:
                return status.LIMIT_FIELD
            p += max(length, 0)
        if p != stop:
            return status.RECORD_LENGTH
    return status.SOUND if p == end else status.TRAILING


@leaf
def read_times(source, p, end, r, count, marks, clock, base_offset, timestamps, offsets):
    """As `read`, of signed numbers: offsets and a consumer's times alone, and what else a record holds unseen."""
    base_time, append, append_time = clock
    for q in range(np.uint64(r), np.uint64(r + count)):
        size, p = get_count(source, p, end, False)
        stop = p + size
        if p > end or size < marks or stop > end:
            return status.RECORD_LENGTH
        ask_on(source, p, size)
        delta, p = get_varlong(source, p + marks, stop)
        if p > stop:
            return status.TIMESTAMP_DELTA
        timestamps[q] = append_time if append else base_time + delta
        delta, p = get_delta(source, p, stop, False)
        if p > stop:
            return status.OFFSET_DELTA
        offsets[q] = base_offset + delta
        p = stop
    return status.SOUND if p == end else status.TRAILING


@kernel
def fetch(data, positions, magic, indices, state, columns):
    """Record indices[b] of each batch, as one row b of the columns, which have no created times; no checksum is
    checked. A batch that breaks a promise or has a codec gets its state.
    """
    timestamps, _, offsets, key_lengths, key_starts, value_lengths, value_starts = columns
    for b in range(len(indices)):
        ask_ahead(data, positions, b)
        at, end, i = positions[b], positions[b + 1], indices[b]
        state[b] = status.SOUND
        if get_i8(data, at + MAGIC) != magic:
            state[b] = status.MAGIC
            continue
        if end - at < (V2_SIZE if magic == 2 else V3_SIZE):
            state[b] = status.SIZE
            continue
        bits, _, base_time, max_time, count, p = read_header(data, at, end, magic)
        marks, problem = marks_of(bits, magic), status.SOUND
        if p > end:
            problem = status.BATCH_HEADER
        elif count < 0:
            problem = status.COUNT
        elif bits & (CODEC_MASK | (UNSIGNED | HEADERS_FIRST | TAGGED if magic == 3 else 0)):
            problem = status.NOT_FETCHED
        elif i < 0 or i >= count:
            problem = status.NO_SUCH_RECORD
        else:
            for _ in range(i):
                size, p = get_count(data, p, end, False)
                if size < 0 or size > end - p:
                    problem = status.RECORD_LENGTH
                    break
                ask_on(data, p, size)
                p += size
        if problem != status.SOUND:
            state[b] = problem
            continue
        size, p = get_count(data, p, end, False)
        stop = p + size
        if p > end or size < marks or stop > end:
            state[b] = status.RECORD_LENGTH
            continue
        delta, p = get_varlong(data, p + marks, stop)
        timestamps[b] = max_time if bits & APPEND else base_time + delta
        delta, p = get_delta(data, p, stop, False)
        offsets[b] = get_i64(data, at) + delta
        length, p = get_length(data, p, stop, False)
        key_lengths[b], key_starts[b] = max(length, NULL), p
        if p > stop or length > stop - p:
            state[b] = status.KEY_LENGTH
            continue
        length, p = get_length(data, p + max(length, 0), stop, False)
        value_lengths[b], value_starts[b] = max(length, NULL), p
        if p > stop or length > stop - p:
            state[b] = status.VALUE_LENGTH


@leaf
def read_headers(source, p, h, number, key_lengths, key_starts, value_lengths, value_starts, unsigned):
    """Reads `number` headers that lie at p and are known to be sound into rows h and up; gives the next position."""
    end = len(source)
    for k in range(np.uint64(h), np.uint64(h + number)):
        length, p = get_count(source, p, end, unsigned)
        key_lengths[k], key_starts[k] = length, p
        length, p = get_length(source, p + length, end, unsigned)
        value_lengths[k], value_starts[k] = max(length, NULL), p
        p += max(length, 0)
    return p


@leaf
def is_canonical(source, p, end, marks, unsigned):
    """(whether every number is the shortest, nulls are -1 and attributes 0; next position) of the record at p."""
    _, p, whole = skip(source, p, end, unsigned)
    if marks:
        whole &= get_u8(source, p) == 0
        p += 1
    delta, after = get_varlong(source, p, end)
    whole &= is_shortest(source, p, after, delta)
    _, p, short = skip(source, after, end, unsigned)
    whole &= short
    for _ in range(2):
        short = skip(source, p, end, unsigned)[2]
        length, p = get_length(source, p, end, unsigned)
        whole &= short and length >= NULL
        p += max(length, 0)
    headers, p, short = skip(source, p, end, unsigned)
    whole &= short
    for _ in range(headers):
        name, p, short = skip(source, p, end, unsigned)
        whole &= short
        p += name
        short = skip(source, p, end, unsigned)[2]
        length, p = get_length(source, p, end, unsigned)
        whole &= short and length >= NULL
        p += max(length, 0)
    return whole, p
