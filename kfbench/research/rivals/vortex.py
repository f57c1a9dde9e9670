"""Vortex, written and read by vortex-data.

Bytes per record of user-activity in batches of 1, 10, 100, 1,000 and 10,000 records, zstd 3, with the envelope. Means
of the first 100 batches of seed 7, or of all batches in 10,000 records:

| settings | 1 | 10 | 100 | 1,000 | 10,000 |
|---|---:|---:|---:|---:|---:|
| file, compact options (`vortex` with zstd) | 6,193 | 678 | 97.7 | 34.4 | 26.6 |
| message of one array, without its type, zstd 3 around it | 477 | 107 | 43.8 | 32.5 | 30.0 |
| the same in Vortex's encodings | 419 | 153 | 52.7 | 29.8 | 26.7 |
| file, compact options, zstd 3 around it | – | – | 54.3 | 30.2 | 26.3 |
| the smallest for each batch (`vortex-best`) | 419 | 107 | 43.8 | 29.8 | 26.3 |

The last four leave out columns that hold only defaults. Files are tried from 100 records per batch on. They were never
the smallest for the first 1 or 10 records of each named workload, under no codec.
"""

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, Literal

import pyarrow as pa
import vortex as vx
from vortex.serde import decode_ipc_array_buffers, encode_ipc_array_buffers

from kfbench.research.rivals.base import (
    PAYLOAD,
    SCHEMA,
    TIMES,
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
)

_IN_MEMORY: Final = Path("/dev/shm")

vx.set_worker_threads(0)


class Vortex(Rival):
    """A Vortex file. Without a codec it has the default options, with zstd the compact ones (zstd at Vortex's level).

    Vortex writes to a path only, so encoding includes a file in memory. It reads from memory. All work is done by the
    calling thread, as with the other rivals.
    """

    name = "vortex"
    codecs = frozenset({"none", "zstd"})
    needs = "vortex-data"

    def library_level(self, codec: str, level: int | None) -> int | None:
        return None

    def encode(self, prepared: pa.Table, codec: str, level: int | None = None) -> bytes:
        self.check_codec(codec)
        return _file(prepared, codec)

    def decode(self, container: bytes) -> pa.Table:
        return _open(container).to_arrow().read_all()

    def read_times(self, container: bytes) -> Deltas:
        return times_of(_open(container).to_arrow(TIMES).read_all())

    def fetch(self, container: bytes, i: int) -> FetchedPayload:
        return _row(_open(container), PAYLOAD, i)

    def table(self, decoded: pa.Table) -> pa.Table:
        return decoded.cast(SCHEMA)


_Choice = Literal["plain", "encoded", "file"]
_FILES_FROM: Final = 100  # records per batch
_FILE: Final = 0xFF  # the last byte of a container with a file


class VortexBest(SmallestRival):
    """The smallest of three containers without columns that hold only defaults. Compressed as a whole.

    The containers are Vortex's message of one array, without its type, in Arrow's or in Vortex's encodings, and a file
    with the options of `Vortex`. The last byte tells a file, or the columns that the type of a message leaves out.
    """

    name = "vortex-best"
    needs = "vortex-data"

    def choices(self, prepared: pa.Table, codec: str) -> tuple[_Choice, ...]:
        return ("plain", "encoded", "file") if len(prepared) >= _FILES_FROM else ("plain", "encoded")

    def write(self, prepared: pa.Table, codec: str, level: int | None, choice: _Choice) -> bytes:
        if choice == "file":
            data, last = _file(prepared, codec), _FILE
        else:
            array = _array(prepared)
            message, _ = encode_ipc_array_buffers(vx.compress(array) if choice == "encoded" else array)
            data, last = b"".join(message), schema_byte(prepared.column_names)
        return compress_whole(data + bytes([last]), codec, level)

    def decode(self, container: bytes) -> pa.Table:
        data = decompress_whole(container)
        return _open(data[:-1]).to_arrow().read_all() if data[-1] == _FILE else _table(_message(data))

    def read_times(self, container: bytes) -> Deltas:
        data = decompress_whole(container)
        if data[-1] == _FILE:
            file = _open(data[:-1])
            names = [name for name in TIMES if name in _names(file)]
            return times_of(file.to_arrow(names).read_all() if names else pa.table({}), len(file))
        array = _message(data)
        names = [name for name in TIMES if name in schema_of_byte(data[-1]).names]
        return times_of(pa.table({name: array.field(name).to_arrow_array() for name in names}), len(array))

    def fetch(self, container: bytes, i: int) -> FetchedPayload:
        data = decompress_whole(container)
        if data[-1] != _FILE:
            return row_of(_table(_message(data).slice(i, i + 1)), 0)
        file = _open(data[:-1])
        return _row(file, [name for name in PAYLOAD if name in _names(file)], i)

    def table(self, decoded: pa.Table) -> pa.Table:
        return with_defaults(decoded)


def _file(table: pa.Table, codec: str) -> bytes:
    """Return a Vortex file with the compact options for zstd, else with the default options.

    It is written in memory where there is such a folder (Linux), else in the folder for temporary files.
    """
    options = vx.io.VortexWriteOptions.compact() if codec == "zstd" else vx.io.VortexWriteOptions.default()
    with TemporaryDirectory(dir=_IN_MEMORY if _IN_MEMORY.is_dir() else None) as folder:
        path = Path(folder, "batch.vortex")
        options.write(table, str(path))
        return path.read_bytes()


def _names(file: vx.VortexFile) -> list[str]:
    return file.dtype.to_arrow_schema().names  # type: ignore[no-any-return]


def _array(table: pa.Table) -> vx.Array:
    return vx.array(table.to_batches()[0].to_struct_array())


@cache
def _type(bits: int) -> list[bytes]:
    """Return the type of messages without the columns of these bits."""
    row = {"offset_delta": 0, "timestamp_delta": 0, "key": b"", "value": b"", "headers": []}
    table = pa.Table.from_pylist([row], schema_of_byte(bits))
    return encode_ipc_array_buffers(_array(table))[1]


def _message(data: bytes) -> vx.StructArray:
    return decode_ipc_array_buffers([data[:-1]], _type(data[-1]))  # type: ignore[return-value]


def _table(array: vx.Array) -> pa.Table:
    return pa.Table.from_struct_array(array.to_arrow_array())


def _row(file: vx.VortexFile, names: list[str], i: int) -> FetchedPayload:
    return row_of(file.to_arrow(names, indices=vx.array(pa.array([i], pa.uint64()))).read_all(), 0)


def _open(container: bytes) -> vx.VortexFile:
    return vx.open_readable(pa.BufferReader(container))
