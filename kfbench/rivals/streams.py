"""Measure one Arrow stream per topic: state across batches, with dictionaries of keys that grow.

The schema is sent once. Keys and header keys are indexes into a dictionary. Each batch carries the new entries (a
dictionary delta) and the indexes. Values and header values are plain. v2's 61-byte batch header is counted per batch.

The setting breaks promises that Kafka keeps:

- A consumer that starts in the middle has neither the schema nor the entries of earlier batches. It cannot read.
- After a lost batch, later entries get wrong indexes. The first batch that needs such an entry has an index out of
  bounds. A reader that skips this batch returns wrong keys from later batches, and nothing detects them.
- Batches cannot be compacted, deleted or copied alone.
- Writer and readers keep all distinct keys in memory, and the stream has no limit for them.

Bytes per record of user-activity (seed 7), zstd 3, in the middle of the stream, in batches of 1, 10, 100, 1,000 and
10,000 records: 388, 99.8, 44.2, 32.2 and 30.5. The streams have 1,000 batches at 1 and 10 records per batch, and 10,000
to 30,000 records at the others.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from io import BytesIO
from typing import Final, NamedTuple

import pyarrow as pa

from kfbench.arrays import Int64
from kfbench.records import Records
from kfbench.rivals import whole
from kfbench.rivals.arrow_ipc import END, header_lists, plain
from kfbench.rivals.base import buffer_codec, from_table, relative, to_table
from kfbench.rivals.envelope import ENVELOPE_BYTES
from kfbench.rivals.sizes import ZSTD_LEVEL, RivalSize, batches_of, check_same, size_row

NAME: Final = "arrow-stream"
MIDDLE: Final = "middle"  # the setting of the rows with the middle third of the batches


@dataclass(frozen=True, kw_only=True)
class TopicStream:
    """The bytes of a stream: the schema message, and the dictionary deltas and the record batch of each batch."""

    schema: bytes
    batches: tuple[bytes, ...]

    def without(self, *lost: int) -> "TopicStream":
        """Return the stream that a reader sees if these batches are lost."""
        kept = tuple(data for i, data in enumerate(self.batches) if i not in lost)
        return TopicStream(schema=self.schema, batches=kept)


class _GrowingDictionary:
    """The distinct items of a column so far, in the order of their first record."""

    def __init__(self) -> None:
        self._indexes: dict[bytes, int] = {}

    def encode(self, items: pa.Array) -> pa.Array:
        """Return the items as indexes into the dictionary, which gets the new items."""
        known = self._indexes
        indexes = [None if item is None else known.setdefault(item, len(known)) for item in items.to_pylist()]
        return pa.DictionaryArray.from_arrays(pa.array(indexes, pa.int32()), pa.array(list(known), pa.binary()))


def encode_stream(records: Records, bounds: Int64, codec: str) -> TopicStream:
    """Write all batches that are not empty into one stream. bounds: int64[batches + 1].

    codec: "none", "lz4" or "zstd" (level 3). For each batch, it compresses each buffer, or all messages of the batch
    together if that is smaller. A reader finds the way in the first bytes.
    """
    rows = list(_row_batches(records, bounds))
    stream = _stream(rows, codec)
    if codec == "none":
        return stream
    together = [whole.compress(data, codec, ZSTD_LEVEL) for data in _stream(rows, "none").batches]
    smaller = tuple(min(pair, key=len) for pair in zip(stream.batches, together, strict=True))
    return TopicStream(schema=stream.schema, batches=smaller)


def _row_batches(records: Records, bounds: Int64) -> Iterator[pa.RecordBatch]:
    """Yield the record batch of each batch, with keys and header keys as indexes into dictionaries that grow."""
    keys, header_keys = _GrowingDictionary(), _GrowingDictionary()
    for batch in batches_of(records, bounds):
        table = to_table(relative(batch))
        columns = {name: table[name].combine_chunks() for name in table.column_names}
        if not records.shapes.has_headers:
            del columns["headers"]
        columns["key"] = keys.encode(columns["key"])
        if "headers" in columns:
            pairs = columns["headers"].flatten()
            header_key_indexes = header_keys.encode(pairs.field("key"))
            columns["headers"] = header_lists(columns["headers"], header_key_indexes, pairs.field("value"))
        yield pa.record_batch(columns)


def _stream(rows: Sequence[pa.RecordBatch], buffer: str) -> TopicStream:
    """Write one stream. buffer: the codec of each buffer."""
    options = pa.ipc.IpcWriteOptions(compression=buffer_codec(buffer, ZSTD_LEVEL), emit_dictionary_deltas=True)
    out, pieces = BytesIO(), []
    schema = rows[0].schema.serialize().to_pybytes()
    with pa.ipc.new_stream(out, rows[0].schema, options=options) as writer:
        for row_batch in rows:
            begin = max(out.tell(), len(schema))
            writer.write_batch(row_batch)
            pieces.append(bytes(out.getbuffer()[begin:]))
    return TopicStream(schema=schema, batches=tuple(pieces))


def read_stream(stream: TopicStream) -> list[pa.RecordBatch]:
    """Return one record batch per batch, with keys as indexes. Raises KeyError without the first dictionary entries."""
    return list(pa.ipc.open_stream(b"".join([stream.schema, *map(whole.decompress, stream.batches), END])))


def plain_table(batch: pa.RecordBatch) -> pa.Table:
    """Return the batch with plain keys. Raises IndexError for an index beyond the dictionary."""
    return pa.table(plain(batch))


class Middle(NamedTuple):
    first: int
    end: int


def middle_of(batches: int) -> Middle:
    """Return the middle third of so many batches. It never includes the first one."""
    first = max(1, batches // 3)
    return Middle(first, max(first + 1, 2 * batches // 3))


def stream_sizes(records: Records, bounds: Int64, codec: str) -> list[RivalSize]:
    """Return the size of the stream: one row for all batches with the schema, one for the middle third of the batches.

    bounds: int64[batches + 1]. The middle never includes the first batch. A stream of one batch has no middle.
    """
    batches = batches_of(records, bounds)
    streams: list[TopicStream] = []

    def whole() -> int:
        stream = encode_stream(records, bounds, codec)
        for found, batch in zip(read_stream(stream), batches, strict=True):
            check_same(NAME, from_table(plain_table(found)) == relative(batch))
        streams.append(stream)
        return len(stream.schema) + sum(ENVELOPE_BYTES + len(data) for data in stream.batches)

    first, end = middle_of(len(batches))
    middle = batches[first:end]

    def middle_bytes() -> int:
        return sum(ENVELOPE_BYTES + len(data) for data in streams[0].batches[first:end])

    row = size_row(NAME, "all", len(records), len(bounds) - 1, whole)
    counts = sum(map(len, middle)), len(middle)
    if not middle:
        return [row]
    if row.error:
        return [row, row._replace(setting=MIDDLE)]
    return [row, size_row(NAME, MIDDLE, *counts, middle_bytes)]
