"""Compare packers of integers on the metadata columns of batches: pcodec, OpenZL, Parquet, zstd, columnar.

The columns of a batch are int64 arrays: offset and timestamp deltas to the first record, key lengths, value lengths,
header counts, header key lengths and header value lengths. A null has the length -1.

Terms, the same for all arms:

- The batch header is not counted. It has the base offset, the base timestamp and the number of records.
- A column that one bit of the header can replace is left out: offsets without holes, equal timestamps, only null keys,
  only null values, no headers. columnar has these bits.
- The lengths of the packed columns are not counted. Each column is decoded alone.

The last two terms favour the rivals. columnar stores repeated header keys once, so its header columns hold less.

| arm | documented | best |
|---|---|---|
| pcodec | standalone files, default settings | wrapped chunks, level 12; smallest type and delta order per column |
| openzl | one frame per column, generic graph | no checksums; smallest type and graph per column |
| parquet-delta | the file, DELTA_BINARY_PACKED | its pages alone |
| zstd-varint | varints as in v2, one zstd frame | differences to the record before; no zstd if that is smaller |
| columnar | | its columns as stored |

"best" of Parquet leaves out the footer, without which nothing can be read. `kfbench.measure.floor` has the yardstick:
the entropy of these columns.

Bytes per record of user-activity (seed 7) in batches of 1, 10, 100, 1,000 and 10,000 records, at the best setting:

| arm | 1 | 10 | 100 | 1,000 | 10,000 |
|---|---:|---:|---:|---:|---:|
| pcodec | 12.0 | 3.99 | 2.08 | 1.71 | 1.64 |
| openzl | 40.2 | 9.59 | 2.79 | 2.04 | 1.67 |
| parquet-delta | 61.0 | 24.2 | 4.12 | 2.57 | 2.43 |
| zstd-varint | 3.00 | 4.00 | 3.32 | 2.53 | 2.34 |
| columnar | 3.00 | 2.71 | 1.94 | 1.84 | 1.93 |
| floor | 1.27 | 1.57 | 1.59 | 1.59 | 1.61 |
"""

from collections.abc import Callable, Iterable, Mapping
from functools import cache, partial
from importlib import import_module
from importlib.util import find_spec
from io import BytesIO
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from kfbench.arrays import Bytes, Int64
from kfbench.codecs import CODECS
from kfbench.formats import FORMATS
from kfbench.layouts import NULL_LENGTH
from kfbench.records import Records, Shapes
from kfbench.rivals.sizes import RivalSize, batches_of, check_same, size_row

Columns = Mapping[str, Int64]

STEPS: Final = ("offset_delta", "timestamp_delta")  # zstd-varint's best setting stores differences of these
PCODEC_TYPES: Final = (np.int16, np.int32, np.int64)
OPENZL_TYPES: Final = (np.uint8, np.uint16, np.uint32, np.uint64)
OPENZL_DISABLE: Final = 2  # OpenZL's ZL_TernaryParam_disable
_VARINT_STEPS: Final = np.array([1 << bits for bits in range(7, 64, 7)], np.uint64)


class Packer(NamedTuple):
    """An arm. pack: encode the columns of a batch, decode and compare them, and return the size in bytes.

    module: the library's module, needed for this arm; None: always there.
    """

    name: str
    setting: str
    pack: Callable[[Columns], int]
    module: str | None = None


def columns_of(shapes: Shapes) -> dict[str, Int64]:
    """Return the metadata columns of one batch with records, without those that a bit can replace."""
    offsets, timestamps_ms = shapes.offsets - shapes.offsets[0], shapes.timestamps_ms - shapes.timestamps_ms[0]
    columns: dict[str, Int64] = {}
    if not np.array_equal(offsets, np.arange(len(shapes))):
        columns["offset_delta"] = offsets
    if timestamps_ms.any():
        columns["timestamp_delta"] = timestamps_ms
    for name, lengths in (("key_length", shapes.key_lengths), ("value_length", shapes.value_lengths)):
        if np.any(lengths != NULL_LENGTH):
            columns[name] = lengths.astype(np.int64)
    if shapes.has_headers:
        columns["header_count"] = np.diff(shapes.header_bounds)
        columns["header_key_length"] = shapes.header_key_lengths.astype(np.int64)
        columns["header_value_length"] = shapes.header_value_lengths.astype(np.int64)
    return columns


def metadata_sizes(records: Records, bounds: Int64) -> list[RivalSize]:
    """Return the size of the metadata columns of all batches per arm. Arms without their library are left out.

    bounds: int64[batches + 1]. Each size is verified by decoding.
    """
    batches = [columns_of(batch.shapes) for batch in batches_of(records, bounds)]
    numbers = len(records), len(bounds) - 1
    absent = missing()
    rows = [
        size_row(packer.name, packer.setting, *numbers, partial(_total, packer, batches))
        for packer in PACKERS
        if packer.name not in absent
    ]
    return [*rows, size_row("columnar", "best", *numbers, lambda: _columnar_bytes(records, bounds))]


def _total(packer: Packer, batches: Iterable[Columns]) -> int:
    return sum(map(packer.pack, batches))


def missing() -> dict[str, str]:
    """Return the arms whose library is not installed, each with the reason."""
    absent = {packer.name: packer.module for packer in PACKERS if packer.module and not find_spec(packer.module)}
    return {name: f"{module} is not installed" for name, module in absent.items()}


def _columnar_bytes(records: Records, bounds: Int64) -> int:
    columnar = FORMATS["columnar"]
    check_same("columnar", columnar.decode(columnar.encode(records, bounds)).records == records)
    parts = columnar.breakdown(records, bounds)
    return sum(parts[name] for name in columnar.bare_parts if name in parts)  # without the batch header's fields


def _each(pack_column: Callable[[Int64], int]) -> Callable[[Columns], int]:
    """Return a packer of columns that packs each column alone."""
    return lambda columns: sum(map(pack_column, columns.values()))


def _fitting(values: Int64, types: Iterable[type[np.signedinteger[Any]] | type[np.unsignedinteger[Any]]]) -> list[Any]:
    """Return the types that hold all values."""
    least, most = values.min(), values.max()
    return [kind for kind in types if np.iinfo(kind).min <= least and most <= np.iinfo(kind).max]


def _pcodec_file(values: Int64) -> int:
    pcodec = import_module("pcodec")
    packed = pcodec.standalone.simple_compress(values, pcodec.ChunkConfig())
    check_same("pcodec", np.array_equal(pcodec.standalone.simple_decompress(packed), values))
    return len(packed)


def _pcodec_chunk(values: Int64) -> int:
    pcodec = import_module("pcodec")
    deltas = [pcodec.DeltaSpec.auto(), pcodec.DeltaSpec.no_op(), pcodec.DeltaSpec.try_consecutive(1)]
    return min(
        _pcodec_wrapped(pcodec, values.astype(kind), pcodec.ChunkConfig(compression_level=12, delta_spec=delta))
        for kind in _fitting(values, PCODEC_TYPES)
        for delta in deltas
    )


def _pcodec_wrapped(pcodec: Any, values: NDArray[Any], config: Any) -> int:
    file = pcodec.wrapped.FileCompressor()
    chunk = file.chunk_compressor(values, config)
    metadata, page = chunk.write_meta(), chunk.write_page(0)
    reader, _ = pcodec.wrapped.FileDecompressor.new(file.write_header())
    decoded = np.empty_like(values)
    chunk_reader, _ = reader.chunk_decompressor(metadata, f"i{values.itemsize * 8}")
    chunk_reader.read_page_into(page, len(values), decoded)
    check_same("pcodec", np.array_equal(decoded, values))
    return len(metadata) + len(page)


def _openzl_frame(values: Int64) -> int:
    return _openzl_bytes(_openzl_compressor(is_best=False), values)


def _openzl_best(values: Int64) -> int:
    smallest = next(iter(_fitting(values, OPENZL_TYPES)), np.int64)
    return _openzl_bytes(_openzl_compressor(is_best=True), values.astype(smallest))


def _openzl_bytes(compressor: Any, values: NDArray[Any]) -> int:
    openzl = import_module("openzl.ext")
    context = openzl.CCtx()
    context.ref_compressor(compressor)
    packed = context.compress([openzl.Input(openzl.Type.Numeric, values)])
    decoded = openzl.DCtx().decompress(packed)[0].content.as_nparray()  # unsigned
    check_same("openzl", np.array_equal(decoded.view(values.dtype), values))
    return len(packed)


@cache
def _openzl_compressor(is_best: bool) -> Any:
    """Return a compressor with OpenZL's generic graph, or one that takes the smallest of many graphs per column."""
    openzl = import_module("openzl.ext")
    compressor = openzl.Compressor()
    compressor.set_parameter(openzl.CParam.FormatVersion, openzl.MAX_FORMAT_VERSION)
    graphs, nodes = openzl.graphs, openzl.nodes
    graph = graphs.Compress()(compressor)
    if is_best:
        for checksum in (openzl.CParam.CompressedChecksum, openzl.CParam.ContentChecksum):
            compressor.set_parameter(checksum, OPENZL_DISABLE)
        plain = [
            kind()(compressor) for kind in (graphs.FieldLz, graphs.Zstd, graphs.Bitpack, graphs.Store, graphs.Entropy)
        ]
        smallest = graphs.BruteForce(plain)(compressor)
        packed = nodes.RangePack()(compressor, smallest)
        zigzag = nodes.Zigzag()(compressor, smallest)
        deltas = [nodes.DeltaInt()(compressor, after) for after in (smallest, packed, zigzag)]
        graph = graphs.BruteForce([graph, *plain, packed, *deltas])(compressor)
    compressor.select_starting_graph(graph)
    return compressor


class _ParquetSize(NamedTuple):
    """The size in bytes of a Parquet file, and that of its pages with their headers."""

    file: int
    pages: int


def _parquet(columns: Columns) -> _ParquetSize:
    if not columns:
        return _ParquetSize(0, 0)
    # Columns of headers have other lengths than columns of records, so each length is a file.
    sizes = [0, 0]
    for length in dict.fromkeys(map(len, columns.values())):
        table = pa.table({name: values for name, values in columns.items() if len(values) == length})
        out = BytesIO()
        pq.write_table(
            table,
            out,
            use_dictionary=False,
            column_encoding="DELTA_BINARY_PACKED",
            compression="none",
            write_statistics=False,
            store_schema=False,
        )
        check_same("parquet-delta", pq.read_table(out).equals(table))
        group = pq.read_metadata(out).row_group(0)
        sizes[0] += len(out.getvalue())
        sizes[1] += sum(group.column(i).total_compressed_size for i in range(table.num_columns))
    return _ParquetSize(*sizes)


def varints(values: Int64) -> Bytes:
    """Return the values as zig-zag varints of 1 to 10 bytes, as v2 writes them."""
    folded = ((values << 1) ^ (values >> 63)).view(np.uint64)
    lengths = 1 + np.searchsorted(_VARINT_STEPS, folded, side="right")
    starts = np.cumsum(lengths) - lengths
    out = np.empty(int(lengths.sum()), np.uint8)
    for byte in range(int(lengths.max(initial=0))):
        rows = lengths > byte
        continues = np.where(lengths[rows] > byte + 1, 0x80, 0).astype(np.uint8)
        out[starts[rows] + byte] = (folded[rows] >> np.uint64(7 * byte)).astype(np.uint8) & 0x7F | continues
    return out


def values_of_varints(data: Bytes) -> Int64:
    """Return the values that `varints` encoded."""
    ends = np.flatnonzero(data < 0x80)
    lengths = np.diff(ends, prepend=-1)
    starts = ends - lengths + 1
    folded = np.zeros(len(ends), np.uint64)
    for byte in range(int(lengths.max(initial=0))):
        rows = lengths > byte
        folded[rows] |= (data[starts[rows] + byte] & 0x7F).astype(np.uint64) << np.uint64(7 * byte)
    return (folded >> np.uint64(1)).view(np.int64) ^ -(folded & np.uint64(1)).view(np.int64)


def _zstd_varints(columns: Columns, is_best: bool) -> int:
    if not columns:
        return 0
    stored = {
        name: np.diff(values, prepend=0) if is_best and name in STEPS else values for name, values in columns.items()
    }
    plain = varints(np.concatenate(list(stored.values()))).tobytes()
    zstd = CODECS["zstd"]
    packed = zstd.compress(plain)
    decoded = values_of_varints(np.frombuffer(zstd.decompress(packed), np.uint8))
    ends = np.cumsum([len(values) for values in columns.values()])
    for (name, values), part in zip(columns.items(), np.split(decoded, ends[:-1]), strict=True):
        check_same("zstd-varint", np.array_equal(np.cumsum(part) if is_best and name in STEPS else part, values))
    return min(len(packed), len(plain)) if is_best else len(packed)


PACKERS: Final = (
    Packer("pcodec", "documented", _each(_pcodec_file), "pcodec"),
    Packer("pcodec", "best", _each(_pcodec_chunk), "pcodec"),
    Packer("openzl", "documented", _each(_openzl_frame), "openzl"),
    Packer("openzl", "best", _each(_openzl_best), "openzl"),
    Packer("parquet-delta", "documented", lambda columns: _parquet(columns).file),
    Packer("parquet-delta", "best", lambda columns: _parquet(columns).pages),
    Packer("zstd-varint", "documented", lambda columns: _zstd_varints(columns, is_best=False)),
    Packer("zstd-varint", "best", lambda columns: _zstd_varints(columns, is_best=True)),
)
