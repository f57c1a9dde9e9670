"""Lance, written and read by pylance. It is not in the lock and not in the extra `rivals`: its wheel has 85 MB.

Bytes per record of user-activity in batches of 1, 10, 100, 1,000 and 10,000 records, zstd 3, with the envelope:

| settings | 1 | 10 | 100 | 1,000 | 10,000 |
|---|---:|---:|---:|---:|---:|
| format 2.2 (the default), zstd per column (`lance`) | 1,842 | 452 | 274 | 188 | 182 |
| format 2.1, zstd per column, with its level | 2,449 | 463 | 283 | 196 | 190 |
| format 2.0, zstd per column, with its level | 2,371 | 316 | 89.2 | 63.0 | 59.1 |
| format 2.2, compressed as a whole | 675 | 142 | 51.5 | 35.4 | 32.6 |
| format 2.1, compressed as a whole | 722 | 141 | 51.4 | 35.4 | 32.6 |
| format 2.0, compressed as a whole (`lance-best`) | 733 | 135 | 49.5 | 35.5 | 29.8 |
"""

from typing import ClassVar

import pyarrow as pa
from lance.file import LanceFileReader, LanceFileWriter

from kfbench.records import Records
from kfbench.rivals import whole
from kfbench.rivals.base import PAYLOAD, SCHEMA, TIMES, Fetched, Rival, Setting, Times, row_of, times_of
from kfbench.rivals.memory_file import memory_file


class Lance(Rival):
    """A Lance file of one batch. The codec is set per column, as Lance's documentation describes it.

    zstd has its default level, 3. Lance writes a second option, the level, in random order: two runs would differ.

    Lance reads and writes paths only, so each operation includes a file in memory.
    """

    name = "lance"
    needs = "pylance"

    def encode(self, prepared: pa.Table, codec: str, level: int | None = None) -> bytes:
        self.check_codec(codec)
        schema = pa.schema([field.with_metadata({"lance-encoding:compression": codec}) for field in SCHEMA])
        return _write(prepared.cast(schema))

    def decode(self, container: bytes) -> pa.Table:
        return _read(container)

    def read_times(self, container: bytes) -> Times:
        return times_of(_read(container, TIMES))

    def fetch(self, container: bytes, i: int) -> Fetched:
        with memory_file("batch.lance") as path:
            path.write_bytes(container)
            return row_of(LanceFileReader(str(path), columns=PAYLOAD).take_rows([i]).to_table(), 0)

    def records(self, decoded: pa.Table) -> Records:
        return super().records(decoded.cast(SCHEMA))


class LanceBest(Lance):
    """A Lance file in format 2.0, the smallest that we found, compressed as a whole."""

    name = "lance-best"
    setting: ClassVar[Setting] = "best"

    def encode(self, prepared: pa.Table, codec: str, level: int | None = None) -> bytes:
        self.check_codec(codec)
        return whole.compress(_write(prepared, "2.0"), codec, level)

    def decode(self, container: bytes) -> pa.Table:
        return super().decode(whole.decompress(container))

    def read_times(self, container: bytes) -> Times:
        return super().read_times(whole.decompress(container))

    def fetch(self, container: bytes, i: int) -> Fetched:
        return super().fetch(whole.decompress(container), i)


def _write(table: pa.Table, version: str | None = None) -> bytes:
    with memory_file("batch.lance") as path:
        writer = LanceFileWriter(str(path), table.schema, version=version)
        writer.write_batch(table)
        writer.close()
        return path.read_bytes()


def _read(container: bytes, columns: list[str] | None = None) -> pa.Table:
    with memory_file("batch.lance") as path:
        path.write_bytes(container)
        return LanceFileReader(str(path), columns=columns).read_all(batch_size=1 << 30).to_table()
