"""Arrow IPC, written and read by pyarrow. A batch is one record batch message, metadata version 5.

Bytes per record of user-activity in batches of 1, 10, 100, 1,000 and 10,000 records, zstd 3, with the envelope. Means
of the first 100 batches of seed 7, or of all batches in 10,000 records:

| settings | 1 | 10 | 100 | 1,000 | 10,000 |
|---|---:|---:|---:|---:|---:|
| stream, each buffer compressed (`arrow-ipc`) | 1,556 | 217 | 54.2 | 34.4 | 32.2 |
| messages without schema, compressed as a whole | 390 | 95.2 | 42.9 | 32.8 | 30.2 |
| and dictionaries of keys and header keys | 388 | 99.3 | 44.1 | 33.3 | 30.3 |
| and dictionaries of all byte strings | 392 | 102 | 45.3 | 34.5 | 31.6 |
| messages without schema, each buffer compressed | 629 | 128 | 44.2 | 31.7 | 29.8 |
| and dictionaries of keys and header keys | 794 | 152 | 47.2 | 32.4 | 29.1 |
| and dictionaries of all byte strings | 998 | 177 | 51.0 | 34.5 | 31.3 |
| the smallest of these six for each batch (`arrow-ipc-bare`) | 384 | 95.2 | 42.9 | 31.7 | 29.1 |

Messages without schema leave out columns that hold only defaults.
"""

from collections.abc import Sequence
from functools import cache
from itertools import product
from typing import Final, NamedTuple

import pyarrow as pa

from kfbench.research.rivals.base import (
    Deltas,
    FetchedPayload,
    Rival,
    SmallestRival,
    compress_whole,
    decompress_whole,
    row_of,
    schema_byte,
    schema_of_byte,
    times_of,
    with_defaults,
    without_defaults,
    zstd_level,
)

_END: Final = b"\xff\xff\xff\xff\0\0\0\0"  # the end marker of an Arrow stream


class ArrowIpc(Rival):
    """The streaming format: schema, record batch, end of stream. pyarrow's defaults, and each buffer is compressed.

    `read_times` and `fetch` name their columns, so pyarrow decompresses no others.
    """

    name = "arrow-ipc"

    def prepare_table(self, table: pa.Table) -> pa.RecordBatch:
        return table.to_batches()[0]

    def encode(self, prepared: pa.RecordBatch, codec: str, level: int | None = None) -> bytes:
        self.check_codec(codec)
        return _stream(prepared, codec, level)

    def decode(self, container: bytes) -> pa.RecordBatch:
        return _read(container)

    def read_times(self, container: bytes) -> Deltas:
        return times_of(_read(container, [0, 1]))

    def fetch(self, container: bytes, i: int) -> FetchedPayload:
        return row_of(_read(container, [2, 3, 4]), i)

    def table(self, decoded: pa.RecordBatch) -> pa.Table:
        return pa.table(decoded)


class _ArrowChoice(NamedTuple):
    """A setting. dictionaries: 0: none, 1: of keys and header keys, 2: of all byte strings.

    is_whole: the codec compresses all messages together, not each buffer.
    """

    dictionaries: int
    is_whole: bool


_CHOICES: Final = tuple(_ArrowChoice(*each) for each in product((0, 1, 2), (True, False)))
_DICTIONARIES_BIT: Final = 4  # the lower bits are the columns that are left out


class ArrowIpcBare(SmallestRival):
    """The smallest of six encodings of one record batch, without the schema and columns that hold only defaults.

    The last byte tells the schema: bits 0 to 3 are the columns that are left out, bits 4 and 5 the dictionaries.
    Without a codec and dictionaries, columns are views of the container.
    """

    name = "arrow-ipc-bare"

    def prepare_table(self, table: pa.Table) -> pa.RecordBatch:
        return without_defaults(table).to_batches()[0]

    def choices(self, prepared: pa.RecordBatch, codec: str) -> Sequence[_ArrowChoice]:
        return [each for each in _CHOICES if each.is_whole] if codec == "none" else _CHOICES

    def write(self, prepared: pa.RecordBatch, codec: str, level: int | None, choice: _ArrowChoice) -> bytes:
        bits = schema_byte(prepared.schema.names) | choice.dictionaries << _DICTIONARIES_BIT
        batch = _with_dictionaries(prepared, choice.dictionaries)
        stream = _stream(batch, "none" if choice.is_whole else codec, level)
        messages = stream[len(_schema_message(bits)) : -len(_END)] + bytes([bits])
        return compress_whole(messages, codec, level) if choice.is_whole else messages

    def decode(self, container: bytes) -> pa.RecordBatch:
        messages = decompress_whole(container)
        bits = messages[-1]
        if not bits >> _DICTIONARIES_BIT:
            return pa.ipc.read_record_batch(pa.py_buffer(messages), schema_of_byte(bits))
        stream = _schema_message(bits) + messages[:-1] + _END
        return pa.ipc.open_stream(stream).read_next_batch()

    def read_times(self, container: bytes) -> Deltas:
        return times_of(self.decode(container))

    def fetch(self, container: bytes, i: int) -> FetchedPayload:
        return row_of(self.decode(container), i)

    def table(self, decoded: pa.RecordBatch) -> pa.Table:
        return with_defaults(pa.table(decoded))


def _stream(batch: pa.RecordBatch, codec: str, level: int | None) -> bytes:
    compression = None if codec == "none" else pa.Codec(codec, zstd_level(codec, level))
    options = pa.ipc.IpcWriteOptions(compression=compression, use_threads=False)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema, options=options) as writer:
        writer.write_batch(batch)
    return sink.getvalue().to_pybytes()  # type: ignore[no-any-return]


def _read(container: bytes, columns: list[int] | None = None) -> pa.RecordBatch:
    """Return the record batch of a stream. columns: the numbers of the columns to read; None: all."""
    options = pa.ipc.IpcReadOptions(included_fields=columns, use_threads=False)
    return pa.ipc.open_stream(container, options=options).read_next_batch()


def _with_dictionaries(batch: pa.RecordBatch, dictionaries: int) -> pa.RecordBatch:
    """Return the batch with dictionaries of keys and header keys (1), or of all byte strings (2)."""
    if not dictionaries:
        return batch
    columns = {name: batch.column(name) for name in batch.schema.names}
    for name in ("key", "value")[:dictionaries]:
        if name in columns:
            columns[name] = columns[name].dictionary_encode()
    if "headers" in columns:
        pairs = columns["headers"].flatten()
        keys, values = pairs.field("key").dictionary_encode(), pairs.field("value")
        if dictionaries > 1:
            values = values.dictionary_encode()
        offsets = pa.array(columns["headers"].offsets.to_numpy() - columns["headers"].offsets[0].as_py(), pa.int32())
        columns["headers"] = pa.ListArray.from_arrays(
            offsets, pa.StructArray.from_arrays([keys, values], names=["key", "value"])
        )
    return pa.record_batch(columns)


@cache
def _schema_message(bits: int) -> bytes:
    """Return the schema message of the streams with this last byte."""
    empty = pa.RecordBatch.from_pylist([], schema_of_byte(bits))
    schema = _with_dictionaries(empty, bits >> _DICTIONARIES_BIT).schema
    return schema.serialize().to_pybytes()  # type: ignore[no-any-return]
