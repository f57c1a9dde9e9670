"""Read record batches of v2, and of v3 with any of its optional features.

Attribute bits of each batch say how its records are stored. "Unsigned" means that lengths and offset deltas are
unsigned varints. "Headers first" means that the metadata of all records precede the payload. "Tagged" means that tagged
fields follow the batch header. Tag 1 has the record headers that all records of the batch begin with.
"""

import numpy as np

from kfbench import layouts
from kfbench.kernels.formats import headers_first, rows
from kfbench.kernels.formats.batch_header import (
    APPEND,
    CODEC_MASK,
    CONTROL,
    HEADERS_FIRST,
    MAGIC,
    NULL,
    ONE,
    TAGGED,
    UNSIGNED,
    V2_SIZE,
    V3_SIZE,
    RecordRun,
    attribute_bytes_of,
    crc_holds,
    least_record_bytes,
    read_header,
)
from kfbench.kernels.formats.batch_tags import read_shared, read_tags
from kfbench.kernels.formats.control import is_sound
from kfbench.kernels.jit import kernel, leaf, variant
from kfbench.kernels.simd.intrinsics import get_i8, get_i32, get_i64
from kfbench.kernels.wire import status
from kfbench.kernels.wire.frames import LENGTH_AT, START, ask_ahead, ask_on
from kfbench.kernels.wire.lengths import get_count, get_delta, get_length, skip
from kfbench.kernels.wire.sealing import NEVER
from kfbench.kernels.wire.varint import get_varlong

NOT_PLAIN = -1
KEPT, COLUMNS = 6, 7
SPECIAL_V2 = CODEC_MASK | APPEND | CONTROL
SPECIAL_V3 = SPECIAL_V2 | UNSIGNED | HEADERS_FIRST | TAGGED | ~layouts.V3_ATTRIBUTES_MASK
SPECIAL = {2: SPECIAL_V2, 3: SPECIAL_V3}  # attribute bits by magic: a batch with one of these is not plain
FEATURED = False  # each compiled variant replaces it: whether any batch is unsigned, headers first or tagged


@kernel
def survey(data, positions, magic, most_records, most_bytes, check_crcs, codecs, counts, bodies, shared_starts,
           shared_stops, state):  # fmt: skip
    """Read and check the header of each batch. In v3, also find tag 1 (record headers that all records share).

    Args:
        data, positions: uint8 log, and int64[batches + 1].
        magic: 2 or 3.
        most_records, most_bytes: limits: records per batch, and bytes of a header key or value in tag 1.
        check_crcs: check the CRC of compressed batches, so that nothing damaged is decompressed.
        codecs, counts: int8[batches] and int64[batches], filled with codec numbers and record counts.
        bodies: int64[batches], filled with the position of the records.
        shared_starts, shared_stops: int64[batches], filled for magic 3 with the bounds of tag 1; equal without it.
        state: int8[batches], filled with the `status` of each batch.

    Returns:
        The number of records that the headers state, and three flags: any batch is compressed; any has log append
        time; any is unsigned, headers first or tagged.
    """
    least = V2_SIZE if magic == 2 else V3_SIZE
    records, compressed, append, featured = np.int64(0), False, False, False
    for b in range(len(state)):
        if not check_crcs:
            ask_ahead(data, positions, b)
        at, end = positions[b], positions[b + 1]
        codecs[b], counts[b], bodies[b] = 0, 0, end
        if magic == 3:
            shared_starts[b] = shared_stops[b] = 0
        if get_i8(data, at + MAGIC) != magic:
            state[b] = status.MAGIC
            continue
        if end - at < least:
            state[b] = status.SIZE
            continue
        header = read_header(data, at, end, magic)
        bits, count, body = header.attributes, header.count, header.body
        codec, problem = bits & CODEC_MASK, _header_problem(header, end, magic)
        if problem == status.SOUND and magic == 3 and bits & TAGGED:
            tagged = read_tags(data, body, end)
            problem, body = tagged.state, tagged.records_start
            shared_starts[b], shared_stops[b] = tagged.shared_start, tagged.shared_stop
            if problem == status.SOUND and tagged.shared_start != tagged.shared_stop:
                unsigned = bits & UNSIGNED != 0
                problem = read_shared(data, tagged.shared_start, tagged.shared_stop, most_bytes, unsigned).state
        if problem == status.SOUND:
            if count < 0 or (codec == 0 and count * least_record_bytes(bits, magic) > end - body):
                problem = np.int64(status.COUNT)
            elif count > most_records:
                problem = np.int64(status.LIMIT_RECORDS)
        if check_crcs and (codec != 0 or problem != status.SOUND) and not crc_holds(data, at, end):
            problem = np.int64(status.CRC)
        state[b] = problem
        if problem == status.SOUND:
            counts[b], bodies[b] = count, body
            codecs[b] = codec if count or codec > layouts.LAST_CODEC else 0  # a reader must know 6 and 7
            records += count
            compressed |= codecs[b] != 0
            append |= bits & APPEND != 0
            featured |= magic == 3 and bits & (UNSIGNED | HEADERS_FIRST | TAGGED) != 0
    return records, compressed, append, featured


@leaf
def _header_problem(header, end, magic):
    """Return the `status` number of a BatchHeader: SOUND or its first damage."""
    if header.body > end:
        return np.int64(status.BATCH_HEADER)
    if magic == 3 and header.attributes & ~layouts.V3_ATTRIBUTES_MASK:
        return np.int64(status.ATTRIBUTES)
    return np.int64(status.SOUND)


@leaf
def _records_problem(source, run, columns, header_bounds, bits, most_headers):
    """Check the records of one batch after reading. Return SOUND or the `status` of the problem.

    Problems are fields beyond a limit, and a control batch with a record that is not a control record.
    """
    _, _, _, key_lengths, key_starts, value_lengths, value_starts = columns
    if header_bounds[run.row + run.count] - header_bounds[run.row] > most_headers:
        return status.LIMIT_HEADERS
    if run.payload_end - run.start > run.most_bytes:
        longest = np.int64(0)
        for q in range(run.row, run.row + run.count):
            longest = max(longest, np.int64(key_lengths[q]), np.int64(value_lengths[q]))
        if longest > run.most_bytes:
            return status.LIMIT_FIELD
    if bits & CONTROL and run.payload_end == run.end:
        for q in range(run.row, run.row + run.count):
            if not is_sound(
                source, key_starts[q], np.int64(key_lengths[q]), source, value_starts[q], np.int64(value_lengths[q])
            ):
                return status.CONTROL_RECORD
    return status.SOUND


def _index(data, positions, magic, counts, source, starts, ends, payload_ends, shared_starts, shared_stops, limits,
           check_crcs, state, columns, header_bounds, bounds):  # fmt: skip
    """Read the records of each undamaged batch into columns. Keys and values are not copied: columns have positions.

    Args:
        data, positions, magic: as in `survey`.
        counts: int64[batches], records per batch from `survey`. No more rows are filled, even if `data` has changed.
        source, starts, ends: the uncompressed records of batch b are source[starts[b]:ends[b]]. If no batch is
            compressed, `source` is `data`.
        payload_ends: `ends`, or NEVER where only the metadata was decompressed.
        shared_starts, shared_stops: tag 1 of batch b is source[shared_starts[b]:shared_stops[b]].
        limits: headers per batch; bytes of a header key or value; sum over batches of records times headers in tag 1.
        check_crcs: check the checksums that `survey` did not check.
        state: int8[batches], the `status` of each batch. A damaged batch gets its status here, and no records.
        columns: arrays of an `Index`, filled. `timestamps` are those that a consumer reads, `created` those that the
            producer set. Both may be one array if no batch has log append time.
        header_bounds: int64[records + 1], filled with the number of the first header of each record.
        bounds: int64[batches + 1], filled with the number of the first record of each batch.

    Returns:
        The third limit minus the amount that was used.
    """
    most_headers, most_bytes, most_shared = limits
    r = np.int64(0)
    bounds[0] = header_bounds[0] = 0
    for b in range(len(state)):
        bounds[b + 1] = r
        if state[b] != status.SOUND:
            continue
        at, end = positions[b], positions[b + 1]
        header = read_header(data, at, end, magic)
        bits, append_time = header.attributes, header.max_time_ms
        count = counts[b]
        if check_crcs and (bits & CODEC_MASK == 0 or count == 0) and not crc_holds(data, at, end):
            state[b] = status.CRC
            continue
        if count == 0:  # in an empty batch, Kafka ignores any bytes after the header
            continue
        shared = np.int64(0)
        if FEATURED and bits & TAGGED:
            tagged = read_tags(data, header.body, end)
            append_time = tagged.append_time_ms if tagged.has_append_time else append_time
            if shared_starts[b] != shared_stops[b]:
                shared = read_shared(source, shared_starts[b], shared_stops[b], NEVER, bits & UNSIGNED != 0).count
                if shared * count > most_shared:
                    state[b] = status.LIMIT_LOG_HEADERS
                    continue
        run = RecordRun(
            starts[b], ends[b], payload_ends[b], r, count, attribute_bytes_of(bits, magic), get_i64(data, at),
            header.base_time_ms, bits & APPEND != 0, append_time, shared, most_bytes,
        )  # fmt: skip
        if FEATURED and bits & HEADERS_FIRST:
            problem = headers_first.read(source, run, columns, header_bounds, bits & UNSIGNED != 0)
        elif FEATURED and bits & UNSIGNED:
            problem = rows.read(source, run, columns, header_bounds, True)
        else:
            problem = rows.read(source, run, columns, header_bounds, False)
        if problem == status.SOUND:
            problem = _records_problem(source, run, columns, header_bounds, bits, most_headers)
        state[b] = problem
        if problem == status.SOUND:
            most_shared -= shared * count
            r += count
            bounds[b + 1] = r
    return most_shared


index = variant(_index, "index", FEATURED=False)
index_featured = variant(_index, "index_featured", FEATURED=True)


@kernel
def times(data, positions, magic, counts, source, starts, ends, state, timestamps, offsets, bounds):
    """Read only the offsets and timestamps of the records of each undamaged batch. Check no checksum.

    Timestamps are those that a consumer reads. The batches must have signed varints, no headers-first order and no
    tagged fields.

    Args:
        data, positions, magic, counts, source, starts, ends, state, bounds: as in `index`.
        timestamps, offsets: int64[records] each, filled; timestamps are in ms.
    """
    r = np.int64(0)
    bounds[0] = 0
    for b in range(len(state)):
        bounds[b + 1] = r
        if state[b] != status.SOUND:
            continue
        ask_ahead(data, positions, b)
        at, end = positions[b], positions[b + 1]
        header = read_header(data, at, end, magic)
        count = counts[b]
        if count == 0:
            continue
        run = RecordRun(
            starts[b], ends[b], ends[b], r, count, attribute_bytes_of(header.attributes, magic), get_i64(data, at),
            header.base_time_ms, header.attributes & APPEND != 0, header.max_time_ms, np.int64(0), np.int64(0),
        )  # fmt: skip
        state[b] = rows.read_times(source, run, timestamps, offsets)
        if state[b] == status.SOUND:
            r += count
            bounds[b + 1] = r


def _index_headers(data, positions, magic, source, starts, ends, shared_starts, shared_stops, state, columns,
                   header_bounds, bounds, headers):  # fmt: skip
    """Read the headers of the records that `index` has read and found undamaged.

    Args:
        data, positions, magic, source, starts, ends, shared_starts, shared_stops, state: as in `index`.
        columns, header_bounds, bounds: as `index` filled them.
        headers: int32 lengths and int64 starts of keys, then those of values, filled.
    """
    size = len(source)
    value_lengths, value_starts = columns[5:7]
    for b in range(len(state)):
        first, last = bounds[b], bounds[b + 1]
        if header_bounds[first] == header_bounds[last]:
            continue
        bits = read_header(data, positions[b], positions[b + 1], magic).attributes
        unsigned = FEATURED and bits & UNSIGNED != 0
        shared = np.int64(0)
        if FEATURED and shared_starts[b] != shared_stops[b]:
            tag = read_shared(source, shared_starts[b], shared_stops[b], NEVER, unsigned)
            shared = tag.count
            for r in range(first, last):  # never more than `index` counted, even if `data` has changed
                shared = min(shared, header_bounds[r + 1] - header_bounds[r])
            for r in range(first, last):
                rows.read_headers(source, tag.start, header_bounds[r], shared, headers, unsigned)
        if FEATURED and bits & HEADERS_FIRST:
            headers_first.read_headers(
                source, starts[b], ends[b], first, last, attribute_bytes_of(bits, magic), shared, header_bounds,
                headers, unsigned,
            )  # fmt: skip
            continue
        for r in range(np.uint64(first), np.uint64(last)):
            h = header_bounds[r] + shared
            own = header_bounds[r + ONE] - h
            if own:
                p = value_starts[r] + max(np.int64(value_lengths[r]), 0)
                _, p, _ = skip(source, p, size, unsigned)
                rows.read_headers(source, p, h, own, headers, unsigned)


index_headers = variant(_index_headers, "index_headers", FEATURED=False)
index_headers_featured = variant(_index_headers, "index_headers_featured", FEATURED=True)


@kernel
def other_tags(data, positions, sound, starts, sizes):
    """Find the tagged fields that kfbench does not know (tags above 1) in undamaged v3 batches.

    Args:
        data, positions: uint8 log, and int64[batches + 1].
        sound: int64[n], the numbers of the undamaged batches.
        starts, sizes: int64[n], filled with the position and the size in bytes of these fields; both 0 without any.
    """
    for i in range(len(sound)):
        at, end = positions[sound[i]], positions[sound[i] + 1]
        header = read_header(data, at, end, 3)
        starts[i] = sizes[i] = 0
        if header.attributes & TAGGED:
            tagged = read_tags(data, header.body, end)
            if tagged.others:
                starts[i], sizes[i] = tagged.others_start, tagged.records_start - tagged.others_start


@kernel
def fetch(data, positions, magic, indices, state, columns):
    """Read one record of each batch. Check no checksum.

    Args:
        data, positions: uint8 log, and int64[batches + 1].
        magic: 2 or 3.
        indices: int64[batches], the number of the record within each batch, from 0.
        state: int8[batches], filled with the `status` of each batch; compressed batches get NOT_FETCHED.
        columns: arrays of an `Index` without create times; row b is filled with the record of batch b.
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
        header = read_header(data, at, end, magic)
        bits, p = header.attributes, header.body
        attribute_bytes, problem = attribute_bytes_of(bits, magic), status.SOUND
        if p > end:
            problem = status.BATCH_HEADER
        elif header.count < 0:
            problem = status.COUNT
        elif bits & (CODEC_MASK | (UNSIGNED | HEADERS_FIRST | TAGGED if magic == 3 else 0)):
            problem = status.NOT_FETCHED
        elif i < 0 or i >= header.count:
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
        if p > end or size < attribute_bytes or stop > end:
            state[b] = status.RECORD_LENGTH
            continue
        delta, p = get_varlong(data, p + attribute_bytes, stop)
        timestamps[b] = header.max_time_ms if bits & APPEND else header.base_time_ms + delta
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


@kernel
def read_plain(data, magic, columns, batches):
    """Read the records of a short log into columns in one call, if every batch is plain.

    A call from Python costs as much as 100 records do.

    A plain batch is whole and undamaged. It has no codec, no log append time, no control records, no record headers,
    and in v3 no optional feature.

    Args:
        data: uint8 log.
        magic: 2 or 3.
        columns: int64[COLUMNS, records + 1], filled with timestamps (ms), offsets, positions of keys and of values, and
            lengths of keys and of values as int32 (KEPT rows). The last row is room for the numbers of headers.
        batches: int64[3, batches + 1], filled with the number of the first record of each batch, its position in the
            log, and the position of its records.

    Returns:
        The number of batches, or NOT_PLAIN if a batch is not plain, or if an array has no room.
    """
    key_lengths, value_lengths = columns[4].view(np.int32), columns[5].view(np.int32)
    index = columns[0], columns[0], columns[1], key_lengths, columns[2], value_lengths, columns[3]
    header_bounds, room = columns[6], len(columns[6]) - 1
    bounds, positions, bodies = batches[0], batches[1], batches[2]
    least, special = (V2_SIZE, SPECIAL_V2) if magic == 2 else (V3_SIZE, SPECIAL_V3)
    at, b, r = np.int64(0), np.int64(0), np.int64(0)
    bounds[0] = positions[0] = header_bounds[0] = 0
    while at < len(data):
        if len(data) - at < least or b == len(bounds) - 1:
            return NOT_PLAIN
        end = at + START + np.int64(get_i32(data, at + LENGTH_AT))
        if end - at < least or end > len(data) or get_i8(data, at + MAGIC) != magic:
            return NOT_PLAIN
        header = read_header(data, at, end, magic)
        bits, count = header.attributes, header.count
        if header.body > end or bits & special or count < 0 or count > room - r:
            return NOT_PLAIN
        if count * least_record_bytes(bits, magic) > end - header.body or not crc_holds(data, at, end):
            return NOT_PLAIN
        if count:
            run = RecordRun(
                header.body, end, end, r, count, attribute_bytes_of(bits, magic), get_i64(data, at),
                header.base_time_ms, False, header.max_time_ms, np.int64(0), np.int64(len(data)),
            )  # fmt: skip
            if rows.read(data, run, index, header_bounds, False) != status.SOUND or header_bounds[r + count] != 0:
                return NOT_PLAIN
        bodies[b] = header.body
        r += count
        b += 1
        bounds[b], positions[b] = r, end
        at = end
    return b
