"""The byte layouts of Kafka's record formats, declared once: kernels take their positions from here, and so do docs.

Everything on the wire is big-endian. Sources: `LegacyRecord`, `DefaultRecordBatch` and `DefaultRecord` in
`org.apache.kafka.common.record`; KIP-31 and KIP-32 (v1), KIP-98 (v2), KIP-931 (v3).
"""

from typing import Final

import numpy as np

UNSET: Final = np.iinfo(np.int64).min  # "derive it": no offset and no timestamp has this value

# Every entry of every format starts alike, which is what lets a reader tell them apart.
ENTRY: Final = np.dtype(
    [
        ("base_offset", ">i8"),  # v0, v1: the message's own offset; set by the broker
        ("length", ">i4"),  # bytes after this field
    ]
)
MAGIC_AT: Final = 16  # the same in every format

V0_MESSAGE: Final = np.dtype(
    [
        ("offset", ">i8"),
        ("length", ">i4"),
        ("crc", ">u4"),  # CRC-32 (IEEE) of magic..end
        ("magic", ">i1"),
        ("attributes", ">i1"),  # bits 0-2 codec
        # then key_length i32, key, value_length i32, value
    ]
)
V1_MESSAGE: Final = np.dtype(
    [
        *((name, V0_MESSAGE[name]) for name in V0_MESSAGE.names or ()),
        ("timestamp_ms", ">i8"),  # attributes bit 3: 0 create time, 1 log append time (KIP-32)
        # then as v0
    ]
)

V2_HEADER: Final = np.dtype(
    [
        ("base_offset", ">i8"),  # set by the broker, outside the CRC
        ("length", ">i4"),
        ("partition_leader_epoch", ">i4"),  # set by the broker, outside the CRC
        ("magic", ">i1"),
        ("crc", ">u4"),  # CRC-32C (Castagnoli) of attributes..end
        ("attributes", ">i2"),
        ("last_offset_delta", ">i4"),
        ("base_timestamp_ms", ">i8"),
        ("max_timestamp_ms", ">i8"),
        ("producer_id", ">i8"),
        ("producer_epoch", ">i2"),
        ("base_sequence", ">i4"),
        ("count", ">i4"),
    ]
)

# KIP-931 moves the three fields that it shrinks to the end. `count` is missing from its text and kept here.
V3_HEADER: Final = np.dtype(
    [
        ("base_offset", ">i8"),
        ("length", ">i4"),
        ("partition_leader_epoch", ">i4"),
        ("magic", ">i1"),
        ("crc", ">u4"),
        ("attributes", ">i2"),
        ("producer_id", ">i8"),
        ("producer_epoch", ">i2"),
        ("base_sequence", ">i4"),
        # then last_offset_delta varint, base_timestamp_ms varlong, max_timestamp_delta varlong, count i32
    ]
)
V3_FIXED_TAIL: Final = np.dtype(  # attributes bit 8, the ablation that keeps v2's widths
    [("last_offset_delta", ">i4"), ("base_timestamp_ms", ">i8"), ("max_timestamp_ms", ">i8"), ("count", ">i4")]
)

CODEC_MASK: Final = 0x07
TIMESTAMP_TYPE_BIT: Final = 1 << 3  # 1: log append time
TRANSACTIONAL_BIT: Final = 1 << 4
CONTROL_BIT: Final = 1 << 5
DELETE_HORIZON_BIT: Final = 1 << 6
NO_RECORD_ATTRIBUTES_BIT: Final = 1 << 7  # v3, KIP-931's ignoreMessageAttributes
FIXED_HEADER_BIT: Final = 1 << 8  # v3, ours
LEGACY_ATTRIBUTES_MASK: Final = CODEC_MASK | TIMESTAMP_TYPE_BIT
V2_ATTRIBUTES_MASK: Final = 0x7F
V3_ATTRIBUTES_MASK: Final = V2_ATTRIBUTES_MASK | NO_RECORD_ATTRIBUTES_BIT | FIXED_HEADER_BIT

MIN_LENGTH: Final = 14  # below this length field nothing can be skipped: no batch follows (LogInputStream)

NULL_LENGTH: Final = -1
NO_TIMESTAMP: Final = -1
NO_PRODUCER_ID: Final = -1
NO_PRODUCER_EPOCH: Final = -1
NO_SEQUENCE: Final = -1
NO_PARTITION_LEADER_EPOCH: Final = -1

LEGACY_FIXED_BYTES: Final = (V0_MESSAGE.itemsize + 8, V1_MESSAGE.itemsize + 8)  # with both length fields: 26, 34
# Upper bounds for allocation: five bytes a varint, ten a varlong.
MAX_RECORD_OVERHEAD: Final = 5 + 1 + 10 + 5 + 5 + 5 + 5
MAX_HEADER_OVERHEAD: Final = 5 + 5
MAX_BATCH_OVERHEAD: Final = V3_HEADER.itemsize + 5 + 10 + 10 + 4
MIN_RECORD_BYTES: Final = 6  # v3 without attributes: length, two deltas, two lengths, header count


def position(layout: np.dtype[np.void], field: str) -> int:
    """The byte position of `field` in `layout`."""
    assert layout.fields is not None
    return int(layout.fields[field][1])
