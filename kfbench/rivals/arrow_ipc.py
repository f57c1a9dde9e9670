"""Arrow IPC, written and read by pyarrow. A batch is one record batch message, metadata version 5.

Bytes per record of user-activity in batches of 1, 10, 100, 1,000 and 10,000 records, zstd 3, with the envelope:

| settings | 1 | 10 | 100 | 1,000 | 10,000 |
|---|---:|---:|---:|---:|---:|
| stream, each buffer compressed (`arrow-ipc`) | 1,560 | 217 | 54.0 | 34.4 | 32.2 |
| stream, compressed as a whole | 647 | 123 | 47.0 | 35.7 | 31.6 |
| message without schema, each buffer compressed | 1,072 | 168 | 49.1 | 33.9 | 32.2 |
| message without schema, compressed as a whole (`arrow-ipc-bare`) | 446 | 101 | 44.8 | 35.0 | 32.1 |
"""

from typing import ClassVar

import pyarrow as pa

from kfbench.records import Records
from kfbench.rivals import whole
from kfbench.rivals.base import SCHEMA, Fetched, Rival, Setting, Times, buffer_codec, row_of, times_of, to_table


class ArrowIpc(Rival):
    """The streaming format: schema, record batch, end of stream. pyarrow's defaults, and each buffer is compressed.

    `read_times` and `fetch` name their columns, so pyarrow decompresses no others.
    """

    name = "arrow-ipc"

    def prepare(self, records: Records) -> pa.RecordBatch:
        return to_table(records).to_batches()[0]

    def encode(self, prepared: pa.RecordBatch, codec: str, level: int | None = None) -> bytes:
        self.check_codec(codec)
        options = pa.ipc.IpcWriteOptions(compression=buffer_codec(codec, level), use_threads=False)
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, SCHEMA, options=options) as writer:
            writer.write_batch(prepared)
        return sink.getvalue().to_pybytes()  # type: ignore[no-any-return]

    def decode(self, container: bytes) -> pa.RecordBatch:
        return _read(container)

    def read_times(self, container: bytes) -> Times:
        return times_of(_read(container, [0, 1]))

    def fetch(self, container: bytes, i: int) -> Fetched:
        return row_of(_read(container, [2, 3, 4]), i)

    def records(self, decoded: pa.RecordBatch) -> Records:
        return super().records(pa.table(decoded))


class ArrowIpcBare(ArrowIpc):
    """The message of one record batch, without the schema, which the reader must know. Compressed as a whole.

    Without a codec, columns are views of the container.
    """

    name = "arrow-ipc-bare"
    setting: ClassVar[Setting] = "best"

    def encode(self, prepared: pa.RecordBatch, codec: str, level: int | None = None) -> bytes:
        self.check_codec(codec)
        return whole.compress(prepared.serialize().to_pybytes(), codec, level)

    def decode(self, container: bytes) -> pa.RecordBatch:
        return pa.ipc.read_record_batch(pa.py_buffer(whole.decompress(container)), SCHEMA)

    def read_times(self, container: bytes) -> Times:
        return times_of(self.decode(container))

    def fetch(self, container: bytes, i: int) -> Fetched:
        return row_of(self.decode(container), i)


def _read(container: bytes, columns: list[int] | None = None) -> pa.RecordBatch:
    """Return the record batch of a stream. columns: the numbers of the columns to read; None: all."""
    options = pa.ipc.IpcReadOptions(included_fields=columns, use_threads=False)
    return pa.ipc.open_stream(container, options=options).read_next_batch()
