"""v1: v0 with a timestamp (KIP-32) and relative offsets in compressed sets (KIP-31). 34 bytes per record.

The layout is that of v0 with three changes. The magic is 1. `timestamp i64` lies between attributes and keyLength.
Attributes bit 3 is the timestamp type (0 create time, 1 log append time).

A compressed set lies in one outer message, the wrapper. Offsets inside it are relative: absolute offset = offset of the
wrapper - last inner offset + inner offset. So a broker sets only the wrapper's offset. The wrapper's timestamp is the
largest inner timestamp, or the append time. If it is the append time, readers return it for every inner message.
"""

from kfbench.formats.base.capabilities import Capabilities
from kfbench.formats.base.messages import MessageFormat

FORMATS = (
    MessageFormat(
        name="v1",
        magic=1,
        summary="Kafka 0.10 messages: timestamps (KIP-32), relative offsets (KIP-31)",
        capabilities=Capabilities(
            timestamps=True,
            headers=False,
            empty_batches=False,
            batch_fields=frozenset(
                "base_offset last_offset base_timestamp_ms max_timestamp_ms timestamp_type append_time_ms".split()
            ),
            codecs=("none", "gzip", "snappy", "lz4"),
        ),
    ),
)
