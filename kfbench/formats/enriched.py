"""enriched: "Kafka Enriched Message Metadata", v0 with a time and tags. 34 bytes a record without tags, as v1.

| field | type | |
|---|---|---|
| offset | i64 | set by the broker; the text lists it after the size, Kafka's wire has it first |
| size | i32 | bytes after this field |
| crc | u32 | CRC-32 (IEEE) of magic..end |
| magic | i8 | 1: only the caller can tell it from v1 |
| attributes | i8 | bits 0-3: 0 plain, 1 gzip, 2 snappy, 3 lz4, 8 leader epoch, 9 start, 10 commit, 11 abort |
| timestamp | i32 | Unix seconds, -1: none |
| tagsLength, tags | i32, bytes | -1: none |
| keyLength, key | i32, bytes | -1: null |
| valueLength, value | i32, bytes | -1: null |

Types 9 to 11 are a transaction's. Ours: type 12 is any other control record; 4-7 and 13-15 are refused.

A tag is an id (i8) and a value whose size its id implies, so what follows an unknown one is not read.
| tag | value | |
|---|---|---|
| 0 | i64 | the time in milliseconds |
| 32 | i32 | number of messages inside |
| 33 | i8 | ours (the text gives no id): 1 the inner offsets hold, 0 their positions do |
| 34 | i8 | ours, too: 1 any message inside has a key |

A compressed set is one message around it, as in v1, but its offset is the first inner message's and inner offsets
count from it; it has tags 32 to 34. `enriched` has no other tags and so loses milliseconds; `enriched-ms` gives every
message tag 0. Seconds end in 2038: a later time, or one before 1970, is none there.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

from kfbench.codecs import Codec, codec_of
from kfbench.formats.base.appending import Appending, EnrichedAppending
from kfbench.formats.base.capabilities import Capabilities, Origin
from kfbench.formats.base.messages import MessageFormat
from kfbench.kernels.formats import enriched as kernels


@dataclass(frozen=True, kw_only=True, repr=False)
class EnrichedFormat(MessageFormat):
    """enriched or, with time_tag, enriched-ms: every message has tag 0."""

    time_tag: bool
    origin: Origin = "proposed"
    is_told_by_magic: ClassVar[bool] = False
    _kernels: ClassVar[Any] = kernels

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

    def _codec_of(self, number: int) -> Codec:
        return codec_of(number)


def _capabilities(milliseconds: bool) -> Capabilities:
    return Capabilities(
        timestamps=True,
        milliseconds=milliseconds,
        headers=False,
        empty_batches=False,
        batch_fields=frozenset({"base_offset", "last_offset", "base_timestamp_ms", "max_timestamp_ms", "is_control"}),
        codecs=("none", "gzip", "snappy", "lz4"),
    )


FORMATS = (
    EnrichedFormat(
        name="enriched",
        magic=1,
        summary="Kafka Enriched Message Metadata: seconds, tags in compressed sets",
        capabilities=_capabilities(milliseconds=False),
        time_tag=False,
    ),
    EnrichedFormat(
        name="enriched-ms",
        magic=1,
        summary="enriched with a tag for the milliseconds in every message",
        capabilities=_capabilities(milliseconds=True),
        time_tag=True,
    ),
)
