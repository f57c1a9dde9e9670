"""The layout of a columnar batch: the fixed part of its header, and its attribute bits (docs/columnar.md)."""

from typing import Final

import numpy as np

from kfbench.layouts import V3_HEADER

MAGIC: Final = 5
RETIRED_MAGICS: Final = {4: "4 is columnar's layout before 2026-11-29: encode the records again"}
"""The magics of columnar in older versions, each with the reason to refuse such a batch."""

HEADER: Final = np.dtype(
    [
        *((name, V3_HEADER[name]) for name in ("base_offset", "length", "partition_leader_epoch", "magic", "crc")),
        ("attributes", ">u2"),
        ("max_timestamp_ms", "V6"),  # i48, -1: none; the broker sets the append time here
        # then, with PRODUCER_BIT, PRODUCER; count uvarint; last_offset_delta uvarint, timestamps, columns
    ]
)
PRODUCER: Final = np.dtype([(name, V3_HEADER[name]) for name in ("producer_id", "producer_epoch", "base_sequence")])

# Attribute bits of a columnar batch. They say which optional fields and columns the batch has.
PRODUCER_BIT: Final = 1 << 7
AGES_BIT: Final = 1 << 8  # if it is not set, every timestamp is the batch's anchor timestamp
OFFSETS_BIT: Final = 1 << 9  # last offset delta and offsets; if it is not set, record i has offset base_offset + i
KEYS_BIT, VALUES_BIT = 1 << 10, 1 << 11  # if it is not set, all are null
HEADERS_BIT: Final = 1 << 12
BASE_TIMESTAMP_BIT, ANCHOR_BIT, WIDE_MAXIMUM_BIT = 1 << 13, 1 << 14, 1 << 15  # an i64 each, like the delete horizon
TIMESTAMP_BITS: Final = 48
