"""Descriptions of record batches that were read: one BATCH row each, and whether an encoder writes the batch so."""

import numpy as np

from kfbench import layouts
from kfbench.kernels.formats import headers_first, rows
from kfbench.kernels.formats.batch_header import (
    APPEND,
    ATTRIBUTES,
    CODEC_MASK,
    CONTROL,
    CRC,
    EPOCH,
    FIXED,
    HEADERS_FIRST,
    HORIZON,
    NO_TIMESTAMP,
    NULL,
    TAGGED,
    TAIL_SIZE,
    TRANSACTIONAL,
    UNSET,
    UNSIGNED,
    V2_PRODUCER,
    V2_PRODUCER_EPOCH,
    V2_SEQUENCE,
    V3_PRODUCER,
    V3_PRODUCER_EPOCH,
    V3_SEQUENCE,
    V3_SIZE,
    attribute_bytes_of,
    read_header,
)
from kfbench.kernels.formats.batch_tags import read_shared, read_tags
from kfbench.kernels.jit import leaf, variant
from kfbench.kernels.simd.intrinsics import get_i16, get_i32, get_i64, get_u32
from kfbench.kernels.wire.lengths import get_length, skip
from kfbench.kernels.wire.sealing import NEVER
from kfbench.kernels.wire.sequence import last_sequence
from kfbench.kernels.wire.varint import get_uvarint, get_varlong, is_shortest, is_shortest_uvarint

FEATURED = False  # replaced by each variant, as in `batch`


@leaf
def _is_header_canonical(data, at, end, magic):
    """Return whether an encoder writes this header so.

    Varints are then the shortest, tag 0 is there, and no bits are set that v2 does not know.
    """
    bits = np.int64(get_i16(data, at + ATTRIBUTES))
    if magic == 2:
        return bits & ~layouts.V2_ATTRIBUTES_MASK == 0
    whole, p = True, at + TAIL_SIZE
    if not bits & FIXED:
        _, p, whole = skip(data, at + V3_SIZE, end, bits & UNSIGNED != 0)
        for _ in range(2):
            value, after = get_varlong(data, p, end)
            whole &= is_shortest(data, p, after, value)
            p = after
        p += 4
    if bits & TAGGED:
        whole &= _are_tags_canonical(data, p, end, bits & UNSIGNED != 0)
    return whole


@leaf
def _are_tags_canonical(data, p, end, unsigned):
    """Return whether an encoder writes the tagged fields at p so."""
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
            whole &= skip(data, p + key_length, stop, unsigned)[2] and value_length >= NULL
            p = after + max(value_length, 0)
    return whole


@leaf
def describe_header(data, at, end, magic, header, count, row):
    """Fill what a BATCH row says of any batch of magic 2 or 3, kip98's too.

    Args:
        data, at, end: uint8, and the bounds of the batch.
        magic: its magic.
        header: its BatchHeader.
        count: how many records it has.
        row: the BATCH row.
    """
    bits = header.attributes
    row.position, row.size_bytes, row.magic = at, end - at, magic
    row.attributes, row.codec = bits, bits & CODEC_MASK
    row.timestamp_type = 1 if bits & APPEND else 0
    row.base_offset = get_i64(data, at)
    row.last_offset = row.base_offset + header.last_delta
    row.count, row.base_timestamp_ms, row.max_timestamp_ms = count, header.base_time_ms, header.max_time_ms
    row.append_time_ms = header.max_time_ms if bits & APPEND else np.int64(NO_TIMESTAMP)
    row.is_transactional, row.is_control = bits & TRANSACTIONAL != 0, bits & CONTROL != 0


@leaf
def describe_producer(data, producer, epoch, sequence, last_delta, row):
    """Fill the producer's fields of a BATCH row from these positions."""
    row.producer_id = get_i64(data, producer)
    row.producer_epoch = get_i16(data, epoch)
    row.base_sequence = np.int64(get_i32(data, sequence))
    row.last_sequence = last_sequence(np.int64(get_i32(data, sequence)), last_delta)


@leaf
def has_unset(row):
    """Return whether a field has the value that an encoder takes for "derive it"."""
    return (
        row.base_offset == UNSET
        or row.last_offset == UNSET
        or row.base_timestamp_ms == UNSET
        or row.max_timestamp_ms == UNSET
    )


def _describe(data, positions, magic, counts, source, starts, ends, shared_starts, shared_stops, sound, rows_out):
    """Fill one BATCH row of rows_out for each batch whose number is in `sound`, int64.

    `batch.index` has checked these batches; the other arguments are as it has them.
    """
    for i in range(len(sound)):
        b = sound[i]
        at, end = positions[b], positions[b + 1]
        row = rows_out[i]
        header = read_header(data, at, end, magic)
        bits, count, base_time = header.attributes, counts[b], header.base_time_ms
        describe_header(data, at, end, magic, header, count, row)
        row.crc = get_u32(data, at + CRC)
        row.partition_leader_epoch = get_i32(data, at + EPOCH)
        producer, epoch, sequence = V2_PRODUCER, V2_PRODUCER_EPOCH, V2_SEQUENCE
        unsigned = False
        if magic == 3:
            producer, epoch, sequence = V3_PRODUCER, V3_PRODUCER_EPOCH, V3_SEQUENCE
            unsigned = FEATURED and bits & UNSIGNED != 0
            if FEATURED and bits & TAGGED:
                tagged = read_tags(data, header.body, end)
                if tagged.has_append_time:
                    row.append_time_ms = tagged.append_time_ms
            if FEATURED and shared_starts[b] != shared_stops[b]:
                row.shared_headers = read_shared(source, shared_starts[b], shared_stops[b], NEVER, unsigned).count
        describe_producer(data, at + producer, at + epoch, at + sequence, header.last_delta, row)
        row.delete_horizon_ms = base_time if bits & HORIZON else np.int64(NO_TIMESTAMP)
        row.records_size_bytes = ends[b] - starts[b]
        whole, p = _is_header_canonical(data, at, end, magic), starts[b]
        whole &= count > 0 or (p == ends[b] and row.codec == 0)
        whole &= not has_unset(row)
        whole &= bits & HORIZON == 0 or base_time >= 0  # no encoder is asked for a horizon before time
        attribute_bytes = attribute_bytes_of(bits, magic)
        if magic == 3 and bits & HEADERS_FIRST:
            whole &= count == 0 or headers_first.are_canonical(source, p, ends[b], count, attribute_bytes, unsigned)
        else:
            for _ in range(count):
                short, p = rows.is_canonical(source, p, ends[b], attribute_bytes, unsigned)
                whole &= short
        row.canonical = whole


describe = variant(_describe, "describe", FEATURED=False)
describe_featured = variant(_describe, "describe_featured", FEATURED=True)
