"""Vortex, written and read by vortex-data.

Bytes per record of user-activity in batches of 1, 10, 100, 1,000 and 10,000 records, with the envelope:

| settings | 1 | 10 | 100 | 1,000 | 10,000 |
|---|---:|---:|---:|---:|---:|
| file, default options (`vortex` without a codec) | 6,203 | 862 | 185 | 93.4 | 83.4 |
| file, compact options (`vortex` with zstd) | 6,203 | 677 | 97.5 | 34.4 | 26.6 |
| file, compact options, zstd 3 around the file | 1,788 | 268 | 57.8 | 30.6 | 26.4 |
| message of one array, without its type, zstd 3 around it | 599 | 121 | 47.3 | 35.2 | 32.3 |
| message of one array in Vortex's encodings, without its type, zstd 3 around it | 601 | 173 | 54.0 | 30.0 | 26.7 |
| the smaller of these two by the number of records (`vortex-best`) | 599 | 121 | 47.3 | 30.0 | 26.7 |
"""

from typing import ClassVar, Final

import numpy as np
import pyarrow as pa
import vortex as vx
from vortex.serde import decode_ipc_array_buffers, encode_ipc_array_buffers

from kfbench.records import Records
from kfbench.rivals import whole
from kfbench.rivals.base import PAYLOAD, SCHEMA, TIMES, Fetched, Rival, Setting, Times, row_of, times_of, to_table
from kfbench.rivals.memory_file import memory_file

vx.set_worker_threads(0)


class Vortex(Rival):
    """A Vortex file. Without a codec it has the default options, with zstd the compact ones (zstd at Vortex's level).

    Vortex writes to a path only, so encoding includes a file in memory. It reads from memory. All work is done by the
    calling thread, as with the other rivals.
    """

    name = "vortex"
    codecs = frozenset({"none", "zstd"})
    needs = "vortex-data"

    def encode(self, prepared: pa.Table, codec: str, level: int | None = None) -> bytes:
        self.check_codec(codec)
        options = vx.io.VortexWriteOptions.compact() if codec == "zstd" else vx.io.VortexWriteOptions.default()
        with memory_file("batch.vortex") as path:
            options.write(prepared, str(path))
            return path.read_bytes()

    def decode(self, container: bytes) -> pa.Table:
        return _open(container).to_arrow().read_all()

    def read_times(self, container: bytes) -> Times:
        return times_of(_open(container).to_arrow(TIMES).read_all())

    def fetch(self, container: bytes, i: int) -> Fetched:
        rows = vx.array(pa.array([i], pa.uint64()))
        return row_of(_open(container).to_arrow(PAYLOAD, indices=rows).read_all(), 0)

    def records(self, decoded: pa.Table) -> Records:
        return super().records(decoded.cast(SCHEMA))


class VortexBest(Vortex):
    """Vortex's message of one array, without the array's type, which the reader must know. Compressed as a whole.

    Vortex's encodings come first, except in small batches that a codec compresses better without them.
    """

    name = "vortex-best"
    setting: ClassVar[Setting] = "best"
    codecs = Rival.codecs

    def encode(self, prepared: pa.Table, codec: str, level: int | None = None) -> bytes:
        self.check_codec(codec)
        array = _array(prepared)
        if codec == "none" or len(prepared) >= _ENCODED_FROM:
            array = vx.compress(array)
        message, _ = encode_ipc_array_buffers(array)
        return whole.compress(b"".join(message), codec, level)

    def decode(self, container: bytes) -> pa.Table:
        return _table(_message(container))

    def read_times(self, container: bytes) -> Times:
        array = _message(container)
        offsets, timestamps = (array.field(name).to_arrow_array().to_numpy() for name in TIMES)
        return Times(offsets.astype(np.int64), timestamps)

    def fetch(self, container: bytes, i: int) -> Fetched:
        return row_of(_table(_message(container).slice(i, i + 1)), 0)


_ENCODED_FROM: Final = 300  # records per batch; tried with 10, 30, 100, 300 and 1,000


def _array(table: pa.Table) -> vx.Array:
    return vx.array(table.to_batches()[0].to_struct_array())


_TYPE: Final = encode_ipc_array_buffers(_array(to_table(Records.from_lists([b""]))))[1]


def _message(container: bytes) -> vx.StructArray:
    return decode_ipc_array_buffers([whole.decompress(container)], _TYPE)  # type: ignore[return-value]


def _table(array: vx.Array) -> pa.Table:
    return pa.Table.from_struct_array(array.to_arrow_array())


def _open(container: bytes) -> vx.VortexFile:
    return vx.open_readable(pa.BufferReader(container))
