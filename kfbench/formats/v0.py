"""v0: the message of Kafka 0.8 and 0.9 (`LegacyRecord`, magic 0). 26 bytes per record, plus key and value.

| field | type | |
|---|---|---|
| offset | i64 | set by the broker |
| size | i32 | bytes after this field |
| crc | u32 | CRC-32 (IEEE) of magic..end |
| magic | i8 | 0 |
| attributes | i8 | bits 0-2: codec (0 none, 1 gzip, 2 snappy, 3 lz4) |
| keyLength, key | i32, bytes | -1: null |
| valueLength, value | i32, bytes | -1: null |

Compressed messages lie in one outer message, the wrapper. Its key is null, and its value is the compressed set of inner
messages. Offsets of inner messages are absolute, and the wrapper has the offset of the last one. So a broker that
assigns offsets has to recompress. There are no timestamps and no headers. The lz4 frame's header checksum wrongly
covers the frame's magic too; v1 fixed that.
"""

from kfbench.formats.base.capabilities import Capabilities
from kfbench.formats.base.messages import MessageFormat

FORMATS = (
    MessageFormat(
        name="v0",
        magic=0,
        summary="Kafka 0.8-0.9 messages, absolute offsets, no timestamps",
        capabilities=Capabilities(
            timestamps=False,
            headers=False,
            empty_batches=False,
            batch_fields=frozenset({"base_offset", "last_offset", "base_timestamp_ms", "max_timestamp_ms"}),
            codecs=("none", "gzip", "snappy", "lz4"),
        ),
    ),
)
