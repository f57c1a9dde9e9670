"""Reading record batches: v2, and v3 with any features. Each batch's attributes say how its records lie."""

import numpy as np

from kfbench.kernels.formats import headers_first, rows
from kfbench.kernels.formats.batch_header import (
    APPEND,
    CODEC_MASK,
    CONTROL,
    CRC,
    EPOCH,
    HEADERS_FIRST,
    HORIZON,
    NO_TIMESTAMP,
    ONE,
    TAGGED,
    TRANSACTIONAL,
    UNSET,
    UNSIGNED,
    V2_PRODUCER,
    V2_PRODUCER_EPOCH,
    V2_SEQUENCE,
    V3_PRODUCER,
    V3_PRODUCER_EPOCH,
    V3_SEQUENCE,
    crc_holds,
    is_canonical,
    marks_of,
    read_header,
    read_shared,
    read_tags,
)
from kfbench.kernels.formats.control import is_sound
from kfbench.kernels.jit import kernel, leaf, variant
from kfbench.kernels.simd.intrinsics import get_i16, get_i32, get_i64, get_u32
from kfbench.kernels.wire import status
from kfbench.kernels.wire.frames import ask_ahead
from kfbench.kernels.wire.sealing import NEVER
from kfbench.kernels.wire.sequence import last_sequence

FEATURED = False  # a variant's own: whether any batch is unsigned, headers first or tagged


@leaf
def _longest(key_lengths, value_lengths, r, count):
    longest = np.int64(0)
    for q in range(r, r + count):
        longest = max(longest, np.int64(key_lengths[q]), np.int64(value_lengths[q]))
    return longest


def _index(data, positions, magic, counts, source, starts, ends, payload_ends, shared_starts, shared_stops, limits,
           check_crcs, state, columns, header_bounds, bounds):  # fmt: skip
    """Reads the records of each sound batch into columns; no byte of payload is moved.

    counts: as `survey` found them. The columns have room for so many records, whatever a header says by now.
    source[starts[b]:ends[b]] are the plain records of batch b (`data` itself where nothing is compressed), and
    source[shared_starts[b]:shared_stops[b]] its tag 1. payload_ends: `ends`, or NEVER where only the metadata was
    decompressed. columns: as in `formats._index`; timestamps are a consumer's, created the producer's (one array may
    serve for both where no batch has log append time). limits: (headers a batch, bytes a field, headers in all that
    tag 1 may stand for). A batch that breaks a promise gets its state and no record. Fills bounds int64[batches + 1].
    Gives what is left of the last limit.
    """
    most_headers, most_bytes, most_shared = limits
    _, _, _, key_lengths, key_starts, value_lengths, value_starts = columns
    r = np.int64(0)
    bounds[0] = header_bounds[0] = 0
    for b in range(len(state)):
        bounds[b + 1] = r
        if state[b] != status.SOUND:
            continue
        at, end = positions[b], positions[b + 1]
        bits, _, base_time, append_time, _, body = read_header(data, at, end, magic)
        count = counts[b]
        if check_crcs and (bits & CODEC_MASK == 0 or count == 0) and not crc_holds(data, at, end):
            state[b] = status.CRC
            continue
        if count == 0:  # Kafka ignores whatever follows
            continue
        p, stop, payload_end, base_offset = starts[b], ends[b], payload_ends[b], get_i64(data, at)
        marks, unsigned, common = marks_of(bits, magic), FEATURED and bits & UNSIGNED != 0, np.int64(0)
        problem = status.SOUND
        if FEATURED and bits & TAGGED:
            _, timed, tag_time, _, _, _, _, _ = read_tags(data, body, end)
            append_time = tag_time if timed else append_time
            if shared_starts[b] != shared_stops[b]:
                _, common, _ = read_shared(source, shared_starts[b], shared_stops[b], NEVER, unsigned)
                if common * count > most_shared:
                    problem = status.LIMIT_LOG_HEADERS
        clock = base_time, bits & APPEND != 0, append_time
        if problem != status.SOUND:
            pass
        elif FEATURED and bits & HEADERS_FIRST:
            problem = headers_first.read(
                source, p, stop, payload_end, r, count, marks, clock, base_offset, common, most_bytes, columns,
                header_bounds, unsigned,
            )  # fmt: skip
        elif unsigned:
            problem = rows.read(
                source, p, stop, r, count, marks, clock, base_offset, common, most_bytes, columns, header_bounds, True
            )
        else:
            problem = rows.read(
                source, p, stop, r, count, marks, clock, base_offset, common, most_bytes, columns, header_bounds, False
            )
        if problem == status.SOUND:
            if header_bounds[r + count] - header_bounds[r] > most_headers:
                problem = status.LIMIT_HEADERS
            elif payload_end - p > most_bytes and _longest(key_lengths, value_lengths, r, count) > most_bytes:
                problem = status.LIMIT_FIELD
            elif bits & CONTROL and payload_end == stop:
                for q in range(r, r + count):
                    if not is_sound(
                        source, key_starts[q], np.int64(key_lengths[q]),
                        source, value_starts[q], np.int64(value_lengths[q]),
                    ):  # fmt: skip
                        problem = status.CONTROL_RECORD
        state[b] = problem
        if problem == status.SOUND:
            most_shared -= common * count
            r += count
            bounds[b + 1] = r
    return most_shared


@kernel
def times(data, positions, magic, counts, source, starts, ends, state, timestamps, offsets, bounds):
    """Offsets and a consumer's times of the records of each sound batch, none of them unsigned, headers first or
    tagged; no checksum is checked. Arguments as in `index`."""
    r = np.int64(0)
    bounds[0] = 0
    for b in range(len(state)):
        bounds[b + 1] = r
        if state[b] != status.SOUND:
            continue
        ask_ahead(data, positions, b)
        at, end = positions[b], positions[b + 1]
        bits, _, base_time, append_time, _, _ = read_header(data, at, end, magic)
        count = counts[b]
        if count == 0:
            continue
        state[b] = rows.read_times(
            source, starts[b], ends[b], r, count, marks_of(bits, magic), (base_time, bits & APPEND != 0, append_time),
            get_i64(data, at), timestamps, offsets,
        )  # fmt: skip
        if state[b] == status.SOUND:
            r += count
            bounds[b + 1] = r


index = variant(_index, "index", FEATURED=False)
index_featured = variant(_index, "index_featured", FEATURED=True)


def _index_headers(data, positions, magic, source, starts, ends, shared_starts, shared_stops, state, columns,
                   header_bounds, bounds, headers):  # fmt: skip
    """Reads the headers of the records that `index` found sound; bounds int64[batches + 1] as it filled them."""
    size = len(source)
    value_lengths, value_starts = columns[5:7]
    key_lengths, key_starts, content_lengths, content_starts = headers
    for b in range(len(state)):
        first, last = bounds[b], bounds[b + 1]
        if header_bounds[first] == header_bounds[last]:
            continue
        bits, _, _, _, _, _ = read_header(data, positions[b], positions[b + 1], magic)
        unsigned = FEATURED and bits & UNSIGNED != 0
        common, at = np.int64(0), np.int64(0)
        if FEATURED and shared_starts[b] != shared_stops[b]:
            _, common, at = read_shared(source, shared_starts[b], shared_stops[b], NEVER, unsigned)
            for r in range(first, last):  # the room that `index` found, whatever the bytes say by now
                common = min(common, header_bounds[r + 1] - header_bounds[r])
            for r in range(first, last):
                rows.read_headers(
                    source, at, header_bounds[r], common,
                    key_lengths, key_starts, content_lengths, content_starts, unsigned,
                )  # fmt: skip
        if FEATURED and bits & HEADERS_FIRST:
            headers_first.read_headers(
                source, starts[b], ends[b], last - first, marks_of(bits, magic), common, header_bounds, first,
                key_lengths, key_starts, content_lengths, content_starts, unsigned,
            )  # fmt: skip
            continue
        for r in range(np.uint64(first), np.uint64(last)):
            h = header_bounds[r] + common
            own = header_bounds[r + ONE] - h
            if own:
                p = value_starts[r] + max(np.int64(value_lengths[r]), 0)
                _, p, _ = rows.skip(source, p, size, unsigned)
                rows.read_headers(source, p, h, own, key_lengths, key_starts, content_lengths, content_starts, unsigned)


index_headers = variant(_index_headers, "index_headers", FEATURED=False)
index_headers_featured = variant(_index_headers, "index_headers_featured", FEATURED=True)


@kernel
def other_tags(data, positions, sound, starts, sizes):
    """Where the tagged fields that we do not know lie in each sound batch of magic 3: first byte and bytes."""
    for i in range(len(sound)):
        at, end = positions[sound[i]], positions[sound[i] + 1]
        bits, _, _, _, _, body = read_header(data, at, end, 3)
        starts[i] = sizes[i] = 0
        if bits & TAGGED:
            _, _, _, _, _, rest, others, records = read_tags(data, body, end)
            if others:
                starts[i], sizes[i] = rest, records - rest


def _describe(data, positions, magic, counts, source, starts, ends, shared_starts, shared_stops, sound, rows_out):
    """Fills one BATCH row for each batch number in `sound`; the other arguments as in `index`, which has checked it."""
    for i in range(len(sound)):
        b = sound[i]
        at, end = positions[b], positions[b + 1]
        row = rows_out[i]
        bits, last_delta, base_time, max_time, _, body = read_header(data, at, end, magic)
        count = counts[b]
        row.position, row.size_bytes, row.magic = at, end - at, magic
        row.crc, row.attributes, row.codec = get_u32(data, at + CRC), bits, bits & CODEC_MASK
        row.timestamp_type = 1 if bits & APPEND else 0
        row.base_offset = get_i64(data, at)
        row.last_offset = row.base_offset + last_delta
        row.count, row.base_timestamp_ms, row.max_timestamp_ms = count, base_time, max_time
        row.append_time_ms = max_time if bits & APPEND else np.int64(NO_TIMESTAMP)
        row.partition_leader_epoch = get_i32(data, at + EPOCH)
        producer, epoch, sequence = V2_PRODUCER, V2_PRODUCER_EPOCH, V2_SEQUENCE
        unsigned = False
        if magic == 3:
            producer, epoch, sequence = V3_PRODUCER, V3_PRODUCER_EPOCH, V3_SEQUENCE
            unsigned = FEATURED and bits & UNSIGNED != 0
            if FEATURED and bits & TAGGED:
                _, timed, tag_time, _, _, _, _, _ = read_tags(data, body, end)
                if timed:
                    row.append_time_ms = tag_time
            if FEATURED and shared_starts[b] != shared_stops[b]:
                _, row.shared_headers, _ = read_shared(source, shared_starts[b], shared_stops[b], NEVER, unsigned)
        row.producer_id = get_i64(data, at + producer)
        row.producer_epoch = get_i16(data, at + epoch)
        first = np.int64(get_i32(data, at + sequence))
        row.base_sequence = first
        row.last_sequence = last_sequence(first, last_delta)
        row.is_transactional, row.is_control = bits & TRANSACTIONAL != 0, bits & CONTROL != 0
        row.delete_horizon_ms = base_time if bits & HORIZON else np.int64(NO_TIMESTAMP)
        row.records_size_bytes = ends[b] - starts[b]
        whole, p = is_canonical(data, at, end, magic), starts[b]
        whole &= count > 0 or (p == ends[b] and row.codec == 0)
        # An encoder takes these for "derive it".
        whole &= row.base_offset != UNSET and row.last_offset != UNSET and base_time != UNSET and max_time != UNSET
        whole &= bits & HORIZON == 0 or base_time >= 0  # no encoder is asked for a horizon before time
        if magic == 3 and bits & HEADERS_FIRST:
            whole &= count == 0 or headers_first.are_canonical(
                source, p, ends[b], count, marks_of(bits, magic), unsigned
            )
        else:
            for _ in range(count):
                short, p = rows.is_canonical(source, p, ends[b], marks_of(bits, magic), unsigned)
                whole &= short
        row.canonical = whole


describe = variant(_describe, "describe", FEATURED=False)
describe_featured = variant(_describe, "describe_featured", FEATURED=True)
