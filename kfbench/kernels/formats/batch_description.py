"""Describe record batches after reading: fill one row of the BATCH dtype per batch.

A batch is canonical if our encoder would write the same bytes for its records.
"""

import numpy as np

from kfbench import layouts
from kfbench.kernels.formats import batch_header, rows
from kfbench.kernels.formats.batch_tags import read_shared, read_tags
from kfbench.kernels.jit import kernel, leaf, skimming, variant
from kfbench.kernels.simd.intrinsics import get_i16, get_i32, get_i64, get_u32
from kfbench.kernels.wire.lengths import get_length, skip
from kfbench.kernels.wire.sealing import NEVER
from kfbench.kernels.wire.varint import get_uvarint, get_varlong, is_shortest, is_shortest_uvarint

FEATURED = False  # replaced by each variant, as in `batch_reading`
LARGEST_SEQUENCE = 2**31 - 1  # of a producer; it is followed by 0


@leaf
def last_sequence(first, last_delta):
    """Return the sequence of a batch's last record: `first` + `last_delta`, or -1 if `first` (of the batch) is -1.

    It wraps as in Java (`DefaultRecordBatch.incrementSequence`), as does a negative delta.
    """
    if first == -1:
        return first
    room = LARGEST_SEQUENCE - last_delta - (1 << 32 if last_delta < 0 else 0)
    last = first + last_delta - (1 << 31 if first > room else 0)
    return ((last + (1 << 31)) & 0xFFFFFFFF) - (1 << 31)


@leaf
def _is_header_canonical(data, at, end, magic):
    """Return whether a batch header has the bytes that our encoder would write.

    Each varint must have the fewest possible bytes. Tagged fields must include tag 0. v2 may set no unknown bits.
    """
    bits = np.int64(get_i16(data, at + batch_header.ATTRIBUTES))
    if magic == 2:
        return bits & ~layouts.V2_ATTRIBUTES_MASK == 0
    whole, p = True, at + batch_header.TAIL_SIZE
    if not bits & batch_header.FIXED:
        _, p, whole = skip(data, at + batch_header.V3_SIZE, end, bits & batch_header.UNSIGNED != 0)
        for _ in range(2):
            value, after = get_varlong(data, p, end)
            whole &= is_shortest(data, p, after, value)
            p = after
        p += 4
    if bits & batch_header.TAGGED:
        whole &= _are_tags_canonical(data, p, end, bits & batch_header.UNSIGNED != 0)
    return whole


@leaf
def _are_tags_canonical(data, p, end, unsigned):
    """Return whether the tagged fields at p have the bytes that our encoder would write."""
    tagged = read_tags(data, p, end)
    whole = tagged.has_append_time
    number, after = get_uvarint(data, p, end)
    whole &= is_shortest_uvarint(data, p, after, number)
    for _ in range(number):
        for _ in range(2):
            p = after
            value, after = get_uvarint(data, p, end)
            whole &= is_shortest_uvarint(data, p, after, value)
        after += value
    if tagged.shared_start != tagged.shared_stop:
        stop = tagged.shared_stop
        headers, p, short = skip(data, tagged.shared_start, stop, unsigned)
        whole &= short and headers > 0
        for _ in range(headers):
            key_length, p, short = skip(data, p, stop, unsigned)
            whole &= short
            value_length, after = get_length(data, p + key_length, stop, unsigned)
            whole &= skip(data, p + key_length, stop, unsigned)[2] and value_length >= batch_header.NULL
            p = after + max(value_length, 0)
    return whole


@leaf
def describe_header(data, at, end, magic, header, count, row):
    """Fill those fields of a BATCH row that v2, v3 and kip98 have in common.

    Args:
        data, at, end: uint8 log, and the bounds of the batch.
        magic, header, count: the magic of the batch, its BatchHeader and the number of its records.
        row: the BATCH row to fill.
    """
    bits = header.attributes
    row.position, row.size_bytes, row.magic = at, end - at, magic
    row.attributes, row.codec = bits, bits & batch_header.CODEC_MASK
    row.timestamp_type = 1 if bits & batch_header.APPEND else 0
    row.base_offset = get_i64(data, at)
    row.last_offset = row.base_offset + header.last_delta
    row.count, row.base_timestamp_ms, row.max_timestamp_ms = count, header.base_time_ms, header.max_time_ms
    row.append_time_ms = header.max_time_ms if bits & batch_header.APPEND else np.int64(batch_header.NO_TIMESTAMP)
    row.is_transactional, row.is_control = bits & batch_header.TRANSACTIONAL != 0, bits & batch_header.CONTROL != 0


@leaf
def describe_producer(data, at, last_delta, row):
    """Fill the producer fields of a BATCH row. at: the position of the producer ID."""
    row.producer_id = get_i64(data, at)
    row.producer_epoch = get_i16(data, at + batch_header.PRODUCER_EPOCH_AT)
    row.base_sequence = np.int64(get_i32(data, at + batch_header.SEQUENCE_AT))
    row.last_sequence = last_sequence(np.int64(get_i32(data, at + batch_header.SEQUENCE_AT)), last_delta)


@leaf
def has_unset(row):
    """Return whether any field of a BATCH row equals UNSET, the value that tells an encoder to derive the field."""
    return (
        row.base_offset == batch_header.UNSET
        or row.last_offset == batch_header.UNSET
        or row.base_timestamp_ms == batch_header.UNSET
        or row.max_timestamp_ms == batch_header.UNSET
    )


def _describe(data, positions, magic, counts, source, starts, ends, shared_starts, shared_stops, sound, rows_out):
    """Fill one BATCH row for each undamaged batch. `batch_reading.index` has checked them.

    Args:
        data, positions, magic, counts, source, starts, ends, shared_starts, shared_stops: as in `batch_reading.index`.
        sound: int64, the numbers of the undamaged batches.
        rows_out: BATCH rows, filled.
    """
    for i in range(len(sound)):
        b = sound[i]
        at, end = positions[b], positions[b + 1]
        row = rows_out[i]
        header = batch_header.read_header(data, at, end, magic)
        bits, count, base_time = header.attributes, counts[b], header.base_time_ms
        describe_header(data, at, end, magic, header, count, row)
        row.crc = get_u32(data, at + batch_header.CRC)
        row.partition_leader_epoch = get_i32(data, at + batch_header.EPOCH)
        producer, unsigned = at + batch_header.V2_PRODUCER, False
        if magic == 3:
            producer = at + batch_header.V3_PRODUCER
            unsigned = FEATURED and bits & batch_header.UNSIGNED != 0
            if FEATURED and bits & batch_header.TAGGED:
                tagged = read_tags(data, header.body, end)
                if tagged.has_append_time:
                    row.append_time_ms = tagged.append_time_ms
            if FEATURED and shared_starts[b] != shared_stops[b]:
                row.shared_headers = read_shared(source, shared_starts[b], shared_stops[b], NEVER, unsigned).count
        describe_producer(data, producer, header.last_delta, row)
        row.delete_horizon_ms = base_time if bits & batch_header.HORIZON else np.int64(batch_header.NO_TIMESTAMP)
        row.records_size_bytes = ends[b] - starts[b]
        whole, p = _is_header_canonical(data, at, end, magic), starts[b]
        whole &= count > 0 or (p == ends[b] and row.codec == 0)
        whole &= not has_unset(row)
        whole &= bits & batch_header.HORIZON == 0 or base_time >= 0  # encoders take no negative horizon
        attribute_bytes = batch_header.attribute_bytes_of(bits, magic)
        metadata_first = FEATURED and bits & batch_header.HEADERS_FIRST != 0
        if metadata_first and count:
            size, after = get_uvarint(source, p, ends[b])
            whole &= is_shortest_uvarint(source, p, after, size)
            p = after
        for _ in range(count):
            short, p = rows.is_canonical(source, p, ends[b], attribute_bytes, unsigned, metadata_first)
            whole &= short
        row.canonical = whole


describe = skimming(variant(_describe, "describe", FEATURED=False))
describe_featured = skimming(variant(_describe, "describe_featured", FEATURED=True))


@kernel
def read_fields(data, positions, magic, fields):
    """Fill one FIELDS row per batch of v2 or v3, the input of encoders, to write the batches again.

    A reader must have found the batches undamaged. Callers' tagged fields are not copied: tags_start is their position
    in `data`.

    With log append time, the maximum timestamp becomes UNSET, unless a tagged field stores the append time.
    """
    for b in range(len(fields)):
        at, end, row = positions[b], positions[b + 1], fields[b]
        header = batch_header.read_header(data, at, end, magic)
        bits = header.attributes
        append, horizon = bits & batch_header.APPEND != 0, bits & batch_header.HORIZON != 0
        row.append_time_ms = header.max_time_ms if append else batch_header.NO_TIMESTAMP
        row.max_timestamp_ms = batch_header.UNSET if append else header.max_time_ms
        row.tags_start = row.tags_bytes = row.tags_count = 0
        producer = at + batch_header.V2_PRODUCER
        if magic == 3:
            producer = at + batch_header.V3_PRODUCER
            if bits & batch_header.TAGGED:
                tagged = read_tags(data, header.body, end)
                if tagged.has_append_time:
                    row.append_time_ms, row.max_timestamp_ms = tagged.append_time_ms, header.max_time_ms
                if tagged.others:
                    row.tags_start, row.tags_count = tagged.others_start, tagged.others
                    row.tags_bytes = tagged.records_start - tagged.others_start
        row.base_offset = get_i64(data, at)
        row.last_offset = row.base_offset + header.last_delta
        row.base_timestamp_ms = header.base_time_ms
        row.delete_horizon_ms = header.base_time_ms if horizon else batch_header.NO_TIMESTAMP
        row.producer_id = get_i64(data, producer)
        row.producer_epoch = get_i16(data, producer + batch_header.PRODUCER_EPOCH_AT)
        row.base_sequence = get_i32(data, producer + batch_header.SEQUENCE_AT)
        row.partition_leader_epoch = get_i32(data, at + batch_header.EPOCH)
        row.timestamp_type = 1 if append else 0
        row.is_transactional, row.is_control = bits & batch_header.TRANSACTIONAL != 0, bits & batch_header.CONTROL != 0
