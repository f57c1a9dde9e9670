"""Read the batch headers of v2 and v3 batches into FIELDS rows, the input of encoders.

Use it to write batches again, in another format or with other records. A reader must have found the batches undamaged.
"""

from kfbench.kernels.formats import batch_header
from kfbench.kernels.formats.batch_tags import read_tags
from kfbench.kernels.jit import kernel
from kfbench.kernels.simd.intrinsics import get_i16, get_i32, get_i64


@kernel
def read(data, positions, magic, fields):
    """Fill one FIELDS row per batch. Callers' tagged fields are not copied: tags_start is their position in `data`.

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
        producer, epoch, sequence = batch_header.V2_PRODUCER, batch_header.V2_PRODUCER_EPOCH, batch_header.V2_SEQUENCE
        if magic == 3:
            producer, epoch, sequence = (
                batch_header.V3_PRODUCER,
                batch_header.V3_PRODUCER_EPOCH,
                batch_header.V3_SEQUENCE,
            )
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
        row.producer_id = get_i64(data, at + producer)
        row.producer_epoch = get_i16(data, at + epoch)
        row.base_sequence = get_i32(data, at + sequence)
        row.partition_leader_epoch = get_i32(data, at + batch_header.EPOCH)
        row.timestamp_type = 1 if append else 0
        row.is_transactional, row.is_control = bits & batch_header.TRANSACTIONAL != 0, bits & batch_header.CONTROL != 0
