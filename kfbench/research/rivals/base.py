"""The base class of rivals, and the Arrow table of records that most of them store.

A rival is an existing container format (Parquet, Arrow IPC, Avro, …) that stands where a v2 batch has its records. Its
container holds six things per record, as v2 does: offset delta, timestamp delta, key, value, headers in their order.
Deltas are relative to the base offset and base timestamp of the batch's header. Building the library's input is not
timed, which favours rivals.
Damaged or hostile containers are out of scope.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from importlib.metadata import version
from typing import Any, ClassVar, Final, Literal, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kfbench.arrays import Int64
from kfbench.codecs import CODECS
from kfbench.errors import IllegalCombination, WouldLose
from kfbench.records import Records

Setting = Literal["documented", "best"]
Header = tuple[bytes, bytes | None]

_HEADER: Final = pa.struct([pa.field("key", pa.binary(), nullable=False), pa.field("value", pa.binary())])
SCHEMA: Final = pa.schema(
    [
        pa.field("offset_delta", pa.int32(), nullable=False),
        pa.field("timestamp_delta", pa.int64(), nullable=False),
        pa.field("key", pa.binary()),
        pa.field("value", pa.binary()),
        pa.field("headers", pa.list_(pa.field("header", _HEADER, nullable=False)), nullable=False),
    ]
)
"""The columns of a batch. Keys, values and header keys are bytes, because Kafka does not check that they are UTF-8."""
TIMES: Final = ["offset_delta", "timestamp_delta"]
PAYLOAD: Final = ["key", "value", "headers"]
OPTIONAL: Final = ("offset_delta", "timestamp_delta", "key", "headers")  # a batch may leave these columns out


class FetchedPayload(NamedTuple):
    """The payload of one record, as Python objects. headers: (key, value) pairs in their order."""

    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...]


class Deltas(NamedTuple):
    """The deltas of all records, int64[n]. timestamp_deltas: in ms."""

    offset_deltas: Int64
    timestamp_deltas: Int64


class Rival(ABC):
    """A container format with one choice of settings.

    name: the stored name. setting: "documented" for the settings that the library's documentation recommends or
    defaults to, "best" for the smallest that we found. codecs: a subset of "none", "lz4" and "zstd". needs: the
    package on PyPI that writes and reads the container.
    """

    name: ClassVar[str]
    setting: ClassVar[Setting] = "documented"
    codecs: ClassVar[frozenset[str]] = frozenset({"none", "lz4", "zstd"})
    needs: ClassVar[str] = "pyarrow"

    def version(self) -> str:
        return version(self.needs)

    def library_level(self, codec: str, level: int | None) -> int | None:
        """Return the level that the library uses for a cell's codec and level; None: it has none, or it is unknown."""
        return zstd_level(codec, level)

    def codec_version(self, codec: str) -> str | None:
        """Return the version of the codec's library; None: it is unknown, as of codecs that a library contains."""
        return None

    def check_codec(self, codec: str) -> None:
        """Raise IllegalCombination for a codec that the container does not have."""
        if codec not in self.codecs:
            raise IllegalCombination(f"{self.name} has no codec {codec!r} (codecs: {', '.join(sorted(self.codecs))})")

    def prepare_table(self, table: pa.Table) -> Any:
        """Return one batch as the library takes it. Not timed. table: from `to_table`."""
        return table

    @abstractmethod
    def encode(self, prepared: Any, codec: str, level: int | None = None) -> bytes:
        """Write the container. level: the level of the codec; None: the library's default. Raises IllegalCombination.

        Only zstd has levels here. Other codecs ignore the level.
        """

    def encoder(self, prepared: Any, codec: str, level: int | None = None) -> Callable[[], bytes]:
        """Return a call that writes the container as `encode` does. CPU cells time it. It searches no settings."""
        return partial(self.encode, prepared, codec, level)

    @abstractmethod
    def decode(self, container: bytes) -> Any:
        """Return all columns as the library returns them, decompressed and in memory."""

    @abstractmethod
    def read_times(self, container: bytes) -> Deltas:
        """Return the deltas of all records. The library reads no other column if it can."""

    @abstractmethod
    def fetch(self, container: bytes, i: int) -> FetchedPayload:
        """Return the payload of record i. The library reads what it must for that."""

    def table(self, decoded: Any) -> pa.Table:
        """Return the result of `decode` as the table that was prepared. Not timed."""
        return decoded


class SmallestRival(Rival):
    """A rival that writes each batch in every setting of a fixed list, and keeps the smallest container.

    A reader finds the setting in the container. Of equal sizes, the first setting of the list wins. Columns that hold
    only defaults are left out.
    """

    setting: ClassVar[Setting] = "best"

    def prepare_table(self, table: pa.Table) -> Any:
        return without_defaults(table)

    @abstractmethod
    def choices(self, prepared: Any, codec: str) -> Sequence[Any]:
        """Return the settings that are tried for this batch."""

    @abstractmethod
    def write(self, prepared: Any, codec: str, level: int | None, choice: Any) -> bytes:
        """Write the container with one setting of `choices`."""

    def encode(self, prepared: Any, codec: str, level: int | None = None) -> bytes:
        self.check_codec(codec)
        return min((self.write(prepared, codec, level, each) for each in self.choices(prepared, codec)), key=len)

    def encoder(self, prepared: Any, codec: str, level: int | None = None) -> Callable[[], bytes]:
        """Return a call that writes the container with the setting that is the smallest for this batch."""
        self.check_codec(codec)

        def size_bytes(choice: Any) -> int:
            return len(self.write(prepared, codec, level, choice))

        return partial(self.write, prepared, codec, level, min(self.choices(prepared, codec), key=size_bytes))


def zstd_level(codec: str, level: int | None) -> int | None:
    """Return the level for zstd, None for other codecs."""
    return level if codec == "zstd" else None


def to_table(records: Records) -> pa.Table:
    """Return one batch as a table with the columns of SCHEMA. Its offsets and timestamps are deltas.

    Raises WouldLose for offset deltas beyond int32.
    """
    table = records.to_arrow()
    try:
        headers = table["headers"].combine_chunks().cast(pa.large_list(_HEADER)).cast(SCHEMA.field("headers").type)
        columns = [table["offset"].cast(pa.int32()), table["timestamp_ms"]]
        columns += [table[name].cast(pa.binary()) for name in ("key", "value")]
    except pa.ArrowInvalid as error:
        raise WouldLose(f"a rival's batch has int32 offset deltas and less than 2 GiB ({error})") from None
    return pa.table([*columns, headers], schema=SCHEMA).combine_chunks()


def from_table(table: pa.Table) -> Records:
    """Return a table with the columns of SCHEMA as Records."""
    return Records.from_arrow(table.rename_columns({"offset_delta": "offset", "timestamp_delta": "timestamp_ms"}))


def times_of(table: pa.Table | pa.RecordBatch, rows: int | None = None) -> Deltas:
    """Return the deltas of a table. A column that is missing holds only defaults. rows: None: those of the table."""
    n, names = table.num_rows if rows is None else rows, table.schema.names
    offsets = table["offset_delta"].to_numpy().astype(np.int64) if "offset_delta" in names else np.arange(n)
    timestamps = table["timestamp_delta"].to_numpy() if "timestamp_delta" in names else np.zeros(n, np.int64)
    return Deltas(offsets, timestamps.astype(np.int64, copy=False))


def row_of(table: pa.Table | pa.RecordBatch, i: int) -> FetchedPayload:
    """Return the payload of row i as Python objects. A column that is missing holds only defaults."""
    key, value, headers = (table[name][i].as_py() if name in table.schema.names else None for name in PAYLOAD)
    return FetchedPayload(key, value, tuple((header["key"], header["value"]) for header in headers or ()))


def without_defaults(table: pa.Table) -> pa.Table:
    """Return the table without the columns that hold only defaults. columnar and v3 leave them out, too.

    Offset deltas 0, 1, 2, … are a default, and so are timestamp deltas of 0, null keys and no headers.
    """
    offsets, timestamps = (table[name].to_numpy() for name in TIMES)
    is_default = {
        "offset_delta": np.array_equal(offsets, np.arange(len(table))),
        "timestamp_delta": not timestamps.any(),
        "key": table["key"].null_count == len(table),
        "headers": not len(pc.list_flatten(table["headers"])),
    }
    return table.drop_columns([name for name in OPTIONAL if is_default[name]])


def with_defaults(table: pa.Table) -> pa.Table:
    """Return the table with all columns of SCHEMA, without dictionaries."""
    n = len(table)
    defaults = {
        "offset_delta": lambda: pa.array(np.arange(n, dtype=np.int32)),
        "timestamp_delta": lambda: pa.array(np.zeros(n, np.int64)),
        "key": lambda: pa.nulls(n, pa.binary()),
        "headers": lambda: pa.ListArray.from_arrays(np.zeros(n + 1, np.int32), pa.array([], _HEADER)),
    }
    columns = [table[name] if name in table.column_names else defaults[name]() for name in SCHEMA.names]
    return pa.table(columns, names=SCHEMA.names).cast(SCHEMA)


def schema_byte(names: Iterable[str]) -> int:
    """Return the bits of the optional columns that are missing in `names`: bit i for OPTIONAL[i]."""
    present = set(names)
    return sum(1 << i for i, name in enumerate(OPTIONAL) if name not in present)


def schema_of_byte(bits: int) -> pa.Schema:
    """Return SCHEMA without the columns of these bits. Higher bits are ignored."""
    missing = {name for i, name in enumerate(OPTIONAL) if bits >> i & 1}
    return pa.schema([field for field in SCHEMA if field.name not in missing])


_CODEC_OF_MAGIC: Final = {b"\x28\xb5\x2f\xfd": "zstd", b"\x04\x22\x4d\x18": "lz4"}


def compress_whole(container: bytes, codec: str, level: int | None) -> bytes:
    """Compress a container as a whole, with the codec that also compresses v2.

    Containers compress each page or buffer alone. Small batches have many small pages, and their metadata stays
    uncompressed. One compressed frame around all of them is smaller. Its first four bytes identify the codec.
    """
    return CODECS[codec].compress(container, zstd_level(codec, level))


def decompress_whole(data: bytes) -> bytes:
    return CODECS[_CODEC_OF_MAGIC.get(data[:4], "none")].decompress(data)
