"""Kernels that fill the BATCH rows of columnar batches after they were read."""

import numpy as np

from kfbench.kernels.formats.batch_description import last_sequence
from kfbench.kernels.formats.batch_tags import same_bytes
from kfbench.kernels.jit import kernel
from kfbench.kernels.simd.intrinsics import get_i16, get_i32, get_i64, get_u32
from kfbench.kernels.wire.sealing import LENGTH
from kfbench.research.columnar.kernels import batch_header as layout
from kfbench.research.columnar.kernels.batch_header import read_header


@kernel
def describe(data, positions, starts, ends, bounds, created, sound, rows):
    """Fill a BATCH row for each undamaged batch. The field `canonical` is left to `mark_canonical`.

    Args:
        data uint8[], positions int64[batches + 1]: the log and the positions of its batches, checked by `reading.index`
        starts, ends int64[batches]: bounds of the uncompressed payload of each batch
        bounds int64[sound batches + 1]: number of the first record of each undamaged batch
        created int64[records]: create times in ms
        sound int64[sound batches]: the numbers of the undamaged batches
        rows BATCH[sound batches]: filled
    """
    for i in range(len(sound)):
        b = sound[i]
        at, end = positions[b], positions[b + 1]
        row = rows[i]
        header = read_header(data, at, end)
        bits, max_time, horizon, base_time = header.attributes, header.max_time, header.horizon, header.base_time
        if bits & layout.HORIZON:
            base_time = horizon
        elif not bits & layout.BASE and header.count:
            base_time = created[bounds[i]]
        row.position, row.size_bytes, row.magic = at, end - at, layout.THIS_MAGIC
        row.crc, row.attributes, row.codec = (
            get_u32(data, at + layout.CRC),
            get_i16(data, at + layout.ATTRIBUTES),
            bits & layout.CODEC_MASK,
        )
        row.timestamp_type = 1 if bits & layout.APPEND else 0
        row.base_offset = get_i64(data, at)
        row.last_offset = row.base_offset + header.last_delta
        row.count, row.base_timestamp_ms, row.max_timestamp_ms = header.count, base_time, max_time
        row.append_time_ms = max_time if bits & layout.APPEND else np.int64(layout.NO_TIMESTAMP)
        row.partition_leader_epoch = get_i32(data, at + layout.EPOCH)
        first = np.int64(-1)
        row.producer_id, row.producer_epoch = first, first
        if bits & layout.PRODUCER:
            row.producer_id = get_i64(data, at + layout.HEADER)
            row.producer_epoch = get_i16(data, at + layout.HEADER + layout.PRODUCER_EPOCH_AT)
            first = np.int64(get_i32(data, at + layout.HEADER + layout.SEQUENCE_AT))
        row.base_sequence = first
        row.last_sequence = last_sequence(first, header.last_delta)
        row.is_transactional, row.is_control = bits & layout.TRANSACTIONAL != 0, bits & layout.CONTROL != 0
        row.delete_horizon_ms = horizon
        row.records_size_bytes = ends[b] - starts[b]


@kernel
def mark_canonical(
    data, positions, bodies, source, starts, ends, sound, encoded, encoded_positions, encoded_bodies, rows
):
    """Set `canonical` of each row: whether our encoder writes the same bytes for the records of the batch.

    Batch lengths and checksums are not compared.

    Args:
        data uint8[], positions int64[batches + 1], bodies int64[batches]: the log, its batches and their payloads
        source uint8[], starts, ends int64[batches]: source[starts[b]:ends[b]] is the uncompressed payload of batch b
        sound int64[sound batches], rows BATCH[sound batches]: numbers of the undamaged batches, and rows to fill
        encoded uint8[], encoded_positions, encoded_bodies: the undamaged batches, encoded again without a codec
    """
    for i in range(len(sound)):
        b = sound[i]
        at, other = positions[b], encoded_positions[i]
        prefix, payload = encoded_bodies[i] - other, encoded_positions[i + 1] - encoded_bodies[i]
        same = bodies[b] - at == prefix and ends[b] - starts[b] == payload
        if same:
            same = same_bytes(data, at, encoded, other, LENGTH)
            same &= same_bytes(data, at + layout.EPOCH, encoded, other + layout.EPOCH, layout.CRC - layout.EPOCH)
            bits, other_bits = get_i16(data, at + layout.ATTRIBUTES), get_i16(encoded, other + layout.ATTRIBUTES)
            same &= (bits ^ other_bits) & ~layout.CODEC_MASK == 0 and (
                rows[i].count > 0 or bits & layout.CODEC_MASK == 0
            )
            same &= same_bytes(data, at + layout.MAX_TIME, encoded, other + layout.MAX_TIME, prefix - layout.MAX_TIME)
            same &= same_bytes(source, starts[b], encoded, encoded_bodies[i], payload)
        rows[i].canonical = same
