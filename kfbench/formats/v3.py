"""v3: KIP-931's compact header. 44 to 66 bytes per batch, typically 51, and one byte less per record than v2.

Header: `layouts.V3_HEADER`, then `lastOffsetDelta varint, baseTimestamp varlong, maxTimestampDelta varlong, count i32`.
Attributes are those of v2, and in addition:
| bit | |
|---|---|
| 7 | ignoreMessageAttributes: records have no attributes byte |
| 8 | our addition, like bits 9 to 11: lastOffsetDelta i32, baseTimestamp i64, maxTimestamp i64 (absolute) as in v2 |
| 9 | lengths, header counts, offset deltas and lastOffsetDelta without zig-zag; nullable lengths + 1 |
| 10 | headers first (KIP-931's "[Additional proposal]"), below |
| 11 | tagged fields after count: `n uvarint, {tag uvarint, size uvarint, bytes}`, tags in ascending order |
| 12-15 | refused |

Headers first: `metadataLength uvarint`, the metadata of all records, then the payload of all records. A record has no
length field (`kernels.headers_first`).

Tagged fields: Tag 0 is the append time, i64; it is -1 until the broker sets it in place. Readers return it if bit 3 is
set. The maximum timestamp in the header stays the producer's. Tag 1 has the shared headers, with which every record of
the batch begins: `headerCount, {keyLength, key, valueLength, value}`. Other tags belong to the caller.

Three points where the KIP is silent or wrong:
- It omits `count`. We keep it, as i32.
- Its "varint" for maxTimestampDelta overflows after 24.8 days and cannot be negative, but log append time needs that.
  We use a varlong, which has the same bytes within int32.
- It counts bytes with unsigned varints, but Kafka's are zig-zag. We use zig-zag; bit 9 selects unsigned varints.
"""

from kfbench.formats.base.batched import BatchedFormat
from kfbench.layouts import FIXED_HEADER_BIT as FIXED
from kfbench.layouts import HEADERS_FIRST_BIT as HEADERS_FIRST
from kfbench.layouts import NO_RECORD_ATTRIBUTES_BIT as BARE
from kfbench.layouts import SHARED_HEADERS
from kfbench.layouts import TAGGED_BIT as TAGGED
from kfbench.layouts import UNSIGNED_BIT as UNSIGNED

FORMATS = tuple(
    BatchedFormat(name=name, magic=3, summary=summary, features=features, origin="proposed" if name == "v3" else "own")
    for name, features, summary in (
        ("v3", BARE, "KIP-931 as proposed"),
        ("v3-attributes-only", BARE | FIXED, "KIP-931's first half alone: no record attributes"),
        ("v3-header-only", 0, "KIP-931's second half alone: the compact header"),
        ("v3-unsigned", BARE | UNSIGNED, "v3 with unsigned varints, as KIP-931 counts them"),
        ("v3-headers-first", BARE | HEADERS_FIRST, "v3 with the metadata of all records before their payload"),
        ("v3-tagged", BARE | TAGGED, "v3 with tagged fields: append time beside create time"),
        (
            "v3-batch-headers",
            BARE | TAGGED | SHARED_HEADERS,
            "v3-tagged with headers that records share stored once",
        ),
        ("v3-full", BARE | UNSIGNED | HEADERS_FIRST | TAGGED | SHARED_HEADERS, "all of these together"),
    )
)
