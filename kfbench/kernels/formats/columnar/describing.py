"""The BATCH rows of columnar batches that were read."""

import numpy as np

from kfbench.kernels.formats.columnar.batch_header import (
    APPEND,
    ATTRIBUTES,
    CODEC_MASK,
    CONTROL,
    CRC,
    EPOCH,
    HAS_BASE,
    HAS_HORIZON,
    HEADER,
    MAX_TIME,
    NO_TIMESTAMP,
    PRODUCER,
    PRODUCER_EPOCH_AT,
    SEQUENCE_AT,
    THIS_MAGIC,
    TRANSACTIONAL,
    read_header,
)
from kfbench.kernels.formats.shared_headers import same_bytes
from kfbench.kernels.jit import kernel
from kfbench.kernels.simd.intrinsics import get_i16, get_i32, get_i64, get_u32
from kfbench.kernels.wire.sealing import LENGTH
from kfbench.kernels.wire.sequence import last_sequence


@kernel
def describe(data, positions, starts, ends, bounds, created, sound, rows):
    """Fill a BATCH row for each batch number in `sound`, but for `canonical`.

    Args:
        data uint8[], positions int64[batches + 1]: the log and its batches, which `reading.index` has checked
        starts, ends int64[batches]: the plain payload of each batch
        bounds int64[sound batches + 1]: of their records
        created int64[records]: create times
        sound int64[], rows BATCH[]: as many
    """
    for i in range(len(sound)):
        b = sound[i]
        at, end = positions[b], positions[b + 1]
        row = rows[i]
        header = read_header(data, at, end)
        bits, max_time, horizon, base_time = header.attributes, header.max_time, header.horizon, header.base_time
        if header.extensions & HAS_HORIZON:
            base_time = horizon
        elif not header.extensions & HAS_BASE and header.count:
            base_time = created[bounds[i]]
        row.position, row.size_bytes, row.magic = at, end - at, THIS_MAGIC
        row.crc, row.attributes, row.codec = get_u32(data, at + CRC), get_i16(data, at + ATTRIBUTES), bits & CODEC_MASK
        row.timestamp_type = 1 if bits & APPEND else 0
        row.base_offset = get_i64(data, at)
        row.last_offset = row.base_offset + header.last_delta
        row.count, row.base_timestamp_ms, row.max_timestamp_ms = header.count, base_time, max_time
        row.append_time_ms = max_time if bits & APPEND else np.int64(NO_TIMESTAMP)
        row.partition_leader_epoch = get_i32(data, at + EPOCH)
        first = np.int64(-1)
        row.producer_id, row.producer_epoch = first, first
        if bits & PRODUCER:
            row.producer_id = get_i64(data, at + HEADER)
            row.producer_epoch = get_i16(data, at + HEADER + PRODUCER_EPOCH_AT)
            first = np.int64(get_i32(data, at + HEADER + SEQUENCE_AT))
        row.base_sequence = first
        row.last_sequence = last_sequence(first, header.last_delta)
        row.is_transactional, row.is_control = bits & TRANSACTIONAL != 0, bits & CONTROL != 0
        row.delete_horizon_ms = horizon
        row.records_size_bytes = ends[b] - starts[b]


@kernel
def same_prefixes(data, positions, bodies, source, starts, ends, sound, made, made_positions, made_bodies, rows):
    """Set `canonical` of each row: whether the encoder writes the same bytes. Lengths and checksums are not compared.

    Args:
        data uint8[], positions int64[batches + 1], bodies int64[batches]: the log, its batches and their payloads
        source uint8[], starts, ends int64[batches]: source[starts[b]:ends[b]] is the plain payload of batch b
        sound int64[], rows BATCH[]: numbers and rows of the sound batches
        made uint8[], made_positions, made_bodies: the sound batches, written anew without a codec
    """
    for i in range(len(sound)):
        b = sound[i]
        at, other = positions[b], made_positions[i]
        prefix, payload = made_bodies[i] - other, made_positions[i + 1] - made_bodies[i]
        same = bodies[b] - at == prefix and ends[b] - starts[b] == payload
        if same:
            same = same_bytes(data, at, made, other, LENGTH)
            same &= same_bytes(data, at + EPOCH, made, other + EPOCH, CRC - EPOCH)
            bits, other_bits = get_i16(data, at + ATTRIBUTES), get_i16(made, other + ATTRIBUTES)
            same &= (bits ^ other_bits) & ~CODEC_MASK == 0 and (rows[i].count > 0 or bits & CODEC_MASK == 0)
            same &= same_bytes(data, at + MAX_TIME, made, other + MAX_TIME, prefix - MAX_TIME)
            same &= same_bytes(source, starts[b], made, made_bodies[i], payload)
        rows[i].canonical = same
