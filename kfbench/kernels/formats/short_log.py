"""Read a short log of v2 or v3 in one call. A call from Python costs as much as 100 records do."""

import numpy as np

from kfbench.kernels.formats import rows
from kfbench.kernels.formats.batch_header import (
    APPEND,
    CODEC_MASK,
    CONTROL,
    HEADERS_FIRST,
    MAGIC,
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
from kfbench.kernels.jit import kernel
from kfbench.kernels.simd.intrinsics import get_i8, get_i32, get_i64
from kfbench.kernels.wire import status
from kfbench.kernels.wire.frames import LENGTH_AT, START
from kfbench.layouts import V3_ATTRIBUTES_MASK

NOT_PLAIN = -1
KEPT, COLUMNS = 6, 7
SPECIAL_V2 = CODEC_MASK | APPEND | CONTROL
SPECIAL_V3 = SPECIAL_V2 | UNSIGNED | HEADERS_FIRST | TAGGED | ~V3_ATTRIBUTES_MASK
SPECIAL = {2: SPECIAL_V2, 3: SPECIAL_V3}  # attribute bits by magic: a batch with one of these is not plain


@kernel
def read(data, magic, columns, batches):
    """Read the records of all batches into columns, if every batch is plain.

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
