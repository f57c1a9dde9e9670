"""v2: the record batch that Kafka ships since 0.11 (KIP-98; `DefaultRecordBatch`, `DefaultRecord`). 61 bytes per batch.

Header: `layouts.V2_HEADER`. The CRC-32C covers attributes..end, so a broker sets base offset and leader epoch in place.
| attributes bits | |
|---|---|
| 0-2 | codec (0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd); it covers only the records |
| 3 | timestamp type: 1 log append time, every record reads maxTimestamp |
| 4, 5 | transactional, control batch |
| 6 | baseTimestamp is the delete horizon |

Record, at least 7 bytes plus its payload: `length varint, attributes i8 (0), timestampDelta varlong,
offsetDelta varint, keyLength varint, key, valueLength varint, value, headerCount varint, {keyLength varint, key,
valueLength varint, value}`. Null is length -1. Deltas count from the first record and can be negative.
"""

from kfbench.formats.base.batched import BatchedFormat

FORMATS = (BatchedFormat(name="v2", magic=2, summary="what Kafka ships since 0.11 (KIP-98)", origin="shipped"),)
