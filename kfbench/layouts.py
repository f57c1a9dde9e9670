"""The byte layouts of Kafka's record formats. Kernels and documentation take every field position from here.

All integers are big-endian. Sources: `LegacyRecord`, `DefaultRecordBatch` and `DefaultRecord` in
`org.apache.kafka.common.record`; KIP-31 and KIP-32 (v1), KIP-98 (v2), KIP-931 (v3).
"""

from collections.abc import Mapping
from typing import Final

import numpy as np

UNSET: Final = np.iinfo(np.int64).min  # "compute it from the records": no offset and no timestamp has this value

# Every entry (batch or message) starts with these fields. The magic byte at MAGIC_AT identifies the format.
ENTRY: Final = np.dtype(
    [
        ("base_offset", ">i8"),  # v0, v1: the message's own offset; set by the broker
        ("length", ">i4"),  # bytes after this field
    ]
)
MAGIC_AT: Final = 16  # in every format

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
        # then key and value as in v0
    ]
)

ENRICHED_MESSAGE: Final = np.dtype(  # "Kafka Enriched Message Metadata"
    [
        *((name, V0_MESSAGE[name]) for name in V0_MESSAGE.names or ()),  # attributes bits 0-3: codec, or control type
        ("timestamp_s", ">i4"),  # Unix seconds, -1: none
        ("tags_length", ">i4"),  # bytes of the tags that follow, -1: none
        # then the tags, then key and value as in v0
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

KIP98_HEADER: Final = np.dtype(  # the layout in the text of KIP-98: v2's without leader epoch and count
    [
        ("base_offset", ">i8"),  # set by the broker, outside the CRC
        ("length", ">i4"),
        ("crc", ">u4"),  # CRC-32C of attributes..end
        ("magic", ">i1"),
        ("attributes", ">i2"),
        ("last_offset_delta", ">i4"),
        ("base_timestamp_ms", ">i8"),
        ("max_timestamp_ms", ">i8"),
        ("producer_id", ">i8"),
        ("producer_epoch", ">i2"),
        ("base_sequence", ">i4"),
    ]
)

# KIP-931 shrinks three fields and moves them to the end. Its text omits `count`, which we keep.
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
V3_FIXED_TAIL: Final = np.dtype(  # with attributes bit 8: the variant that keeps v2's widths
    [("last_offset_delta", ">i4"), ("base_timestamp_ms", ">i8"), ("max_timestamp_ms", ">i8"), ("count", ">i4")]
)

CONTROL_KEY: Final = np.dtype([("version", ">i2"), ("type", ">i2")])  # the beginning of a control record's key
CONTROL_ABORT, CONTROL_COMMIT, CONTROL_LEADER_CHANGE = 0, 1, 2  # `ControlRecordType`
CONTROL_DICTIONARY: Final = 7  # ours
END_TRANSACTION_MARKER: Final = np.dtype([("version", ">i2"), ("coordinator_epoch", ">i4")])  # value of types 0 and 1

CODEC_MASK: Final = 0x07
LAST_CODEC: Final = 5  # zstd with a dictionary; plug-ins may have 6 and 7 in v2 and v3
TIMESTAMP_TYPE_BIT: Final = 1 << 3  # 1: log append time
TRANSACTIONAL_BIT: Final = 1 << 4
CONTROL_BIT: Final = 1 << 5
DELETE_HORIZON_BIT: Final = 1 << 6
NO_RECORD_ATTRIBUTES_BIT: Final = 1 << 7  # v3, KIP-931's ignoreMessageAttributes
FIXED_HEADER_BIT: Final = 1 << 8  # v3; our addition, like the bits below
UNSIGNED_BIT: Final = 1 << 9  # lengths, header counts and offset deltas without zig-zag
HEADERS_FIRST_BIT: Final = 1 << 10  # the metadata of all records before the payload of all
TAGGED_BIT: Final = 1 << 11  # tagged fields after the count
NULL_KEY_BIT, NULL_VALUE_BIT = 1 << 0, 1 << 1  # attribute bits of a kip98 message
LEGACY_ATTRIBUTES_MASK: Final = CODEC_MASK | TIMESTAMP_TYPE_BIT
V2_ATTRIBUTES_MASK: Final = 0x7F
KIP98_ATTRIBUTES_MASK: Final = V2_ATTRIBUTES_MASK & ~DELETE_HORIZON_BIT
V3_FEATURES_MASK: Final = NO_RECORD_ATTRIBUTES_BIT | FIXED_HEADER_BIT | UNSIGNED_BIT | HEADERS_FIRST_BIT | TAGGED_BIT
V3_ATTRIBUTES_MASK: Final = V2_ATTRIBUTES_MASK | V3_FEATURES_MASK
SHARED_HEADERS: Final = 1 << 16  # not an attribute bit; it tells a writer of tagged fields to write tag 1

APPEND_TIME_TAG: Final = 0  # i64, -1 until the broker sets it
SHARED_HEADERS_TAG: Final = 1  # the headers with which every record of the batch begins

# Types of an enriched message, apart from codecs 0-3. The proposal names 8 to 11.
LEADER_EPOCH, START_TRANSACTION, COMMIT_TRANSACTION, ABORT_TRANSACTION, OTHER_CONTROL = range(8, 13)
MESSAGE_TYPE_MASK: Final = 0x0F
# Tags of an enriched message. The proposal gives ids 0 and 32.
TIME_TAG, COUNT_TAG, RELATIVE_TAG, KEYS_TAG = 0, 32, 33, 34
TAG_BYTES: Final = {TIME_TAG: 8, COUNT_TAG: 4, RELATIVE_TAG: 1, KEYS_TAG: 1}  # bytes of the value, without the i8 id

MIN_LENGTH: Final = 14  # an entry with a smaller length is damaged, and entries after it are lost (LogInputStream)

NULL_LENGTH: Final = -1
NO_TIMESTAMP: Final = -1
NO_PRODUCER_ID: Final = -1
NO_PRODUCER_EPOCH: Final = -1
NO_SEQUENCE: Final = -1
NO_PARTITION_LEADER_EPOCH: Final = -1
DAY_MS: Final = 86_400_000

LEGACY_FIXED_BYTES: Final = V0_MESSAGE.itemsize + 8, V1_MESSAGE.itemsize + 8  # with both lengths: 26, 34
# Upper bounds for allocation: five bytes per varint, ten per varlong.
MAX_RECORD_OVERHEAD: Final = 5 + 1 + 10 + 5 + 5 + 5 + 5
MAX_HEADER_OVERHEAD: Final = 5 + 5
MAX_TAGS_OVERHEAD: Final = 5 + (1 + 1 + 8) + (1 + 5 + 5)  # number of tags, tag 0, tag 1 without its headers
MAX_BATCH_OVERHEAD: Final = V3_HEADER.itemsize + 5 + 10 + 10 + 4 + MAX_TAGS_OVERHEAD + 5  # 5: metadataLength
MIN_RECORD_BYTES: Final = 5  # v3, headers first, without attributes: two deltas, two lengths, header count


def position(layout: np.dtype[np.void], field: str) -> int:
    """Return the byte offset of `field` from the beginning of `layout`."""
    assert layout.fields is not None
    return int(layout.fields[field][1])


# `ControlRecordType`: the second int16 of a control record's key.
CONTROL_TYPES: Final[Mapping[int, str]] = {
    0: "abort",
    1: "commit",
    2: "leader change",
    3: "snapshot header",
    4: "snapshot footer",
    5: "kraft version",
    6: "kraft voters",
    7: "dictionary",  # ours, see docs/dictionaries.md
}
