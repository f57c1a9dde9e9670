"""enriched: "Kafka Enriched Message Metadata", v0 with a time and tags. 34 bytes per record without tags, as in v1.

| field | type | |
|---|---|---|
| offset | i64 | set by the broker; the proposal lists it after the size, Kafka writes it first |
| size | i32 | bytes after this field |
| crc | u32 | CRC-32 (IEEE) of magic..end |
| magic | i8 | 1, as in v1: a reader cannot distinguish the two, so the caller names the format |
| attributes | i8 | bits 0-3: 0 plain, 1 gzip, 2 snappy, 3 lz4, 8 leader epoch, 9 start, 10 commit, 11 abort |
| timestamp | i32 | Unix seconds, -1: none |
| tagsLength, tags | i32, bytes | -1: none |
| keyLength, key | i32, bytes | -1: null |
| valueLength, value | i32, bytes | -1: null |

Types 9 to 11 belong to transactions. Our additions: type 12 is any other control record; 4-7 and 13-15 are refused.

A tag is an id (i8) and a value. The id implies the value's size, so a reader stops at an unknown id.
| tag | value | |
|---|---|---|
| 0 | i64 | the time in milliseconds |
| 32 | i32 | number of messages inside |
| 33 | i8 | 1: inner offsets are valid; 0: the message's index in the set replaces them. The proposal gives no id |
| 34 | i8 | 1: any message inside has a key. The proposal gives no id |

We chose the ids 33 and 34. A compressed set lies in one outer message, as in v1. The outer message has tags 32 to 34
and the offset of the first inner message. Inner offsets are relative to it. `enriched` has no other tags, so it loses
milliseconds. `enriched-ms` gives every message tag 0. int32 seconds end in 2038: a later time, or one before 1970, is
stored as none.
"""

from dataclasses import dataclass
from typing import ClassVar

from kfbench.formats.base.appending import Appending, EnrichedAppending
from kfbench.formats.base.capabilities import Capabilities, Origin
from kfbench.formats.base.messages import MessageFormat
from kfbench.kernels.formats import enriched as kernels
from kfbench.kernels.formats.messages import ENRICHED, MessageKernels


@dataclass(frozen=True, kw_only=True, repr=False)
class EnrichedFormat(MessageFormat):
    """The formats enriched and enriched-ms. time_tag: True for enriched-ms, whose messages all have tag 0."""

    time_tag: bool
    origin: Origin = "proposed"
    is_told_by_magic: ClassVar[bool] = False
    _kernels: ClassVar[MessageKernels] = ENRICHED

    @property
    def appending(self) -> Appending:
        return EnrichedAppending()

    @property
    def _variant(self) -> int:
        return self.time_tag

    @property
    def _fixed_bytes(self) -> int:
        return kernels.FIXED + (kernels.TIME_BYTES if self.time_tag else 0)

    @property
    def _wrapper_bytes(self) -> int:
        return self._fixed_bytes + kernels.WRAPPER_BYTES

    @property
    def _part_bytes(self) -> dict[str, int]:
        parts = dict(zip(kernels.PARTS, kernels.PART_BYTES, strict=True))
        return parts | {"timestamp_tag": kernels.TIME_BYTES if self.time_tag else 0}


FORMATS = tuple(
    EnrichedFormat(
        name=name,
        magic=1,
        summary=summary,
        capabilities=Capabilities(
            timestamps=True,
            milliseconds=time_tag,
            headers=False,
            empty_batches=False,
            batch_fields=frozenset("base_offset last_offset base_timestamp_ms max_timestamp_ms is_control".split()),
            codecs=("none", "gzip", "snappy", "lz4"),
        ),
        time_tag=time_tag,
    )
    for name, time_tag, summary in (
        ("enriched", False, "Kafka Enriched Message Metadata: seconds, tags in compressed sets"),
        ("enriched-ms", True, "enriched with a tag for the milliseconds in every message"),
    )
)
