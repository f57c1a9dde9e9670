"""v3: KIP-931's compact header. 44 to 66 bytes a batch, typically 51, and one byte less a record than v2.

Header: `layouts.V3_HEADER`, then `lastOffsetDelta varint, baseTimestamp varlong, maxTimestampDelta varlong, count i32`.
Attributes as v2's, and:
| bit | |
|---|---|
| 7 | ignoreMessageAttributes: records carry no attributes byte |
| 8 | ours, for ablation: lastOffsetDelta i32, baseTimestamp i64, maxTimestamp i64 (absolute) as in v2 |
| 9-15 | refused |

Where the KIP is silent or wrong: it omits `count` (kept, i32); its "varint" for maxTimestampDelta overflows after 24.8
days and cannot be negative, which log append time needs (varlong: the same bytes inside int32); it counts bytes with
unsigned varints where Kafka's are zig-zag (zig-zag here).
"""

from kfbench.formats._batched import BatchedFormat
from kfbench.layouts import FIXED_HEADER_BIT, NO_RECORD_ATTRIBUTES_BIT

FORMATS = (
    BatchedFormat(name="v3", magic=3, summary="KIP-931 as proposed", features=NO_RECORD_ATTRIBUTES_BIT),
    BatchedFormat(
        name="v3-attributes-only",
        magic=3,
        summary="KIP-931's first half alone: no record attributes",
        features=NO_RECORD_ATTRIBUTES_BIT | FIXED_HEADER_BIT,
    ),
    BatchedFormat(
        name="v3-header-only", magic=3, summary="KIP-931's second half alone: the compact header", features=0
    ),
)
