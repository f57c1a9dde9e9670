"""Lance, written and read by pylance. It is not in the lock and not in the extra `rivals`: its wheel has 85 MB.

Bytes per record of user-activity in batches of 1, 10, 100, 1,000 and 10,000 records, zstd 3, with the envelope. Means
of the first 100 batches of seed 7, or of all batches in 10,000 records:

| settings | 1 | 10 | 100 | 1,000 | 10,000 |
|---|---:|---:|---:|---:|---:|
| format 2.2 (the default), zstd per column (`lance`) | 1,843 | 455 | 276 | 188 | 182 |
| format 2.0, compressed as a whole | 476 | 112 | 44.5 | 32.4 | 27.2 |
| format 2.1, compressed as a whole | 478 | 120 | 47.3 | 33.8 | 30.9 |
| format 2.2, compressed as a whole | 444 | 120 | 47.3 | 33.8 | 30.9 |
| format 2.1, structural encoding fullzip, compressed as a whole | 493 | 119 | 46.8 | 34.6 | 32.5 |
| format 2.2, structural encoding fullzip, compressed as a whole | 474 | 119 | 46.8 | 34.6 | 32.5 |
| format 2.1, zstd per column | 951 | 350 | 261 | 183 | 182 |
| format 2.2, zstd per column | 794 | 351 | 261 | 183 | 182 |
| the smallest of these seven for each batch (`lance-best`) | 444 | 112 | 44.5 | 32.4 | 27.2 |

The last eight leave out columns that hold only defaults. Format 2.3 is not tried: Lance calls it unstable, and not for
production data.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

import pyarrow as pa
from lance.file import LanceFileReader, LanceFileWriter

from kfbench.rivals import whole
from kfbench.rivals.base import (
    PAYLOAD,
    SCHEMA,
    TIMES,
    Fetched,
    Rival,
    SmallestRival,
    Times,
    row_of,
    schema_byte,
    schema_of_byte,
    times_of,
    with_defaults,
)
from kfbench.rivals.memory_file import memory_file

_DEFAULT_LEVEL: Final = 3  # of zstd, in Lance's documentation
_COMPRESSION: Final = "lance-encoding:compression"
_STRUCTURE: Final = "lance-encoding:structural-encoding"


class Lance(Rival):
    """A Lance file of one batch. The codec is set per column, as Lance's documentation describes it.

    zstd has its default level, 3. Lance writes a second option, the level, in random order: two runs would differ.

    Lance reads and writes paths only, so each operation includes a file in memory.
    """

    name = "lance"
    needs = "pylance"

    def library_level(self, codec: str, level: int | None) -> int | None:
        return _DEFAULT_LEVEL if codec == "zstd" else None

    def encode(self, prepared: pa.Table, codec: str, level: int | None = None) -> bytes:
        self.check_codec(codec)
        return _write(prepared, None, {_COMPRESSION: codec})

    def decode(self, container: bytes) -> pa.Table:
        return _read(container)

    def read_times(self, container: bytes) -> Times:
        return times_of(_read(container, TIMES))

    def fetch(self, container: bytes, i: int) -> Fetched:
        return _row(container, PAYLOAD, i)

    def table(self, decoded: pa.Table) -> pa.Table:
        return decoded.cast(SCHEMA)


class _Choice(NamedTuple):
    """A setting. structure: the structural encoding of the columns. is_whole: the codec is around the file."""

    version: str
    structure: str | None = None
    is_whole: bool = True


_WHOLE: Final = (_Choice("2.0"), _Choice("2.1"), _Choice("2.2"), _Choice("2.1", "fullzip"), _Choice("2.2", "fullzip"))
_WHOLE_BIT: Final = 0x80  # of the last byte
_PER_COLUMN: Final = (_Choice("2.1", is_whole=False), _Choice("2.2", is_whole=False))


class LanceBest(SmallestRival):
    """The smallest of seven Lance files without columns that hold only defaults.

    The last byte has the columns that are left out, and bit 7 for a file that is compressed as a whole. The file tells
    its version and encodings.
    """

    name = "lance-best"
    needs = "pylance"

    def choices(self, prepared: pa.Table, codec: str) -> tuple[_Choice, ...]:
        return _WHOLE if codec == "none" else (*_WHOLE, *_PER_COLUMN)

    def write(self, prepared: pa.Table, codec: str, level: int | None, choice: _Choice) -> bytes:
        bits = schema_byte(prepared.column_names)
        if not choice.is_whole:
            return _write(prepared, choice.version, {_COMPRESSION: codec}) + bytes([bits])
        options = {_STRUCTURE: choice.structure} if choice.structure else {}
        return whole.compress(_write(prepared, choice.version, options), codec, level) + bytes([bits | _WHOLE_BIT])

    def decode(self, container: bytes) -> pa.Table:
        return _read(_opened(container))

    def read_times(self, container: bytes) -> Times:
        file, names = _opened(container), [name for name in TIMES if name in _columns(container)]
        if names:
            return times_of(_read(file, names))
        with memory_file("batch.lance") as path:
            path.write_bytes(file)
            return times_of(pa.table({}), LanceFileReader(str(path)).num_rows())

    def fetch(self, container: bytes, i: int) -> Fetched:
        return _row(_opened(container), [name for name in PAYLOAD if name in _columns(container)], i)

    def table(self, decoded: pa.Table) -> pa.Table:
        return with_defaults(decoded).cast(SCHEMA)


def _opened(container: bytes) -> bytes:
    """Return the file in a container of LanceBest."""
    file = container[:-1]
    return whole.decompress(file) if container[-1] & _WHOLE_BIT else file


def _columns(container: bytes) -> list[str]:
    return schema_of_byte(container[-1]).names  # type: ignore[no-any-return]


def _write(table: pa.Table, version: str | None, options: Mapping[str, str]) -> bytes:
    """Return a file. options: metadata of every column."""
    if options:
        table = table.cast(pa.schema([field.with_metadata(options) for field in table.schema]))
    with memory_file("batch.lance") as path:
        writer = LanceFileWriter(str(path), table.schema, version=version)
        writer.write_batch(table)
        writer.close()
        return path.read_bytes()


def _read(container: bytes, columns: list[str] | None = None) -> pa.Table:
    with memory_file("batch.lance") as path:
        path.write_bytes(container)
        return LanceFileReader(str(path), columns=columns).read_all(batch_size=1 << 30).to_table()


def _row(container: bytes, columns: list[str], i: int) -> Fetched:
    with memory_file("batch.lance") as path:
        path.write_bytes(container)
        return row_of(LanceFileReader(str(path), columns=columns).take_rows([i]).to_table(), 0)
