"""v2: the record batch that Kafka ships since 0.11 (KIP-98; `DefaultRecordBatch`, `DefaultRecord`). 61 bytes per batch.

Header: `layouts.V2_HEADER`. The CRC-32C covers attributes..end, so a broker can set base offset and leader epoch
without computing it again.
| attributes bits | |
|---|---|
| 0-2 | codec (0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd, 5 zstd with a dictionary); it covers only the records |
| 3 | timestamp type: 1 log append time, readers return maxTimestamp for every record |
| 4, 5 | transactional, control batch |
| 6 | baseTimestamp is the delete horizon |

Record, at least 7 bytes plus key, value and headers: `length varint, attributes i8 (0), timestampDelta varlong,
offsetDelta varint, keyLength varint, key, valueLength varint, value, headerCount varint, {keyLength varint, key,
valueLength varint, value}`. Null is length -1. Deltas are relative to the first record and can be negative.
"""

from kfbench.formats.base.batched import BatchedFormat

FORMATS = (BatchedFormat(name="v2", magic=2, summary="what Kafka ships since 0.11 (KIP-98)", origin="shipped"),)
