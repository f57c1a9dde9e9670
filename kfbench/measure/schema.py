"""The result table: what each column is, in one place. One row = one cell x format x codec and level x kind.

Integers and raw samples are stored; ratios, medians and units for people are the report's.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

# Version history: a reader refuses a run of another version.
# 1  (2026-11) the first; then kind prefix with compressed_bytes, plain_bytes and metadata_bytes, which are null in a
#              run from before: such a run says no less, and is still read; then kind broker with to_format to
#              extra_bytes, likewise; then variant, likewise; then cache to yardstick_ns, likewise; then kind
#              model with start, generate_ns and resident_bytes, likewise; then kind floor; then kinds
#              metadata and record
SCHEMA_VERSION: Final = 1


@dataclass(frozen=True, kw_only=True)
class Column:
    name: str
    type: pa.DataType
    unit: str  # "" where there is none
    meaning: str
    nullable: bool = True


def _column(name: str, type_: pa.DataType, unit: str, meaning: str, *, nullable: bool = True) -> Column:
    return Column(name=name, type=type_, unit=unit, meaning=meaning, nullable=nullable)


WORKLOAD_COLUMNS: Final = (
    _column("batch_size", pa.int32(), "records", "records a batch"),
    _column("key_bytes", pa.int32(), "bytes", "length of every key; -1: null"),
    _column("value_bytes", pa.int32(), "bytes", "length of every value that is not null; -1: all null"),
    _column("timestamp_spread_ms", pa.int64(), "ms", "last timestamp of a batch minus its first"),
    _column("headers", pa.int32(), "headers", "headers a record"),
    _column("payload", pa.string(), "", "what the payload is made of: random, half, template, ones"),
    _column("null_share", pa.float64(), "", "share of the records whose value is null"),
    _column("header_key_bytes", pa.int32(), "bytes", "length of every header key"),
    _column("header_value_bytes", pa.int32(), "bytes", "length of every header value; -1: null"),
    _column("offset_stride", pa.int32(), "", "offset of a record minus the one before"),
    _column("base_timestamp_ms", pa.int64(), "ms", "first timestamp of every batch; -1: none"),
    _column("producer", pa.bool_(), "", "producer id, epoch and base sequence are set"),
    _column("append_time", pa.bool_(), "", "log append time"),
)

COLUMNS: Final = (
    _column("kind", pa.string(), "", "bytes, cpu, metadata, record, prefix, broker, model or floor", nullable=False),
    _column("cell_id", pa.string(), "", "hash of the workload and its axes away from default", nullable=False),
    _column("status", pa.string(), "", "ok, skipped (error says why) or error", nullable=False),
    _column("error", pa.string(), "", "why there is no measurement"),
    _column("grid", pa.string(), "", "block of the sweep; a cell of several has its rows under each", nullable=False),
    _column("workload", pa.string(), "", "name of the workload", nullable=False),
    _column("variant", pa.string(), "", "variant of a workload of the catalogue"),
    _column("seed", pa.int64(), "", "seed of the workload's records", nullable=False),
    *WORKLOAD_COLUMNS,
    _column("format", pa.string(), "", "name of the format; floor: floor, which is none", nullable=False),
    _column("codec", pa.string(), "", "name of the codec", nullable=False),
    _column("level", pa.int32(), "", "level of the codec; null where it has none"),
    _column("codec_version", pa.string(), "", "library that compressed: compressed bytes depend on it"),
    _column(
        "host", pa.string(), "", "hash of the name of the host that measured; CPU times of several never share a table"
    ),
    _column("start", pa.int64(), "records", "model: number of the first record in its workload; the cells add up"),
    _column("records", pa.int64(), "records", "records measured"),
    # bytes
    _column("batches", pa.int64(), "batches", "batches they make; broker: that the path met"),
    _column("size_bytes", pa.int64(), "bytes", "size of all batches; broker: of what came out"),
    _column("payload_bytes", pa.int64(), "bytes", "keys, values, header keys and values"),
    _column("overhead_bytes", pa.int64(), "bytes", "size_bytes - payload_bytes; uncompressed only"),
    _column("losses", pa.string(), "", "JSON: what the format could not carry, and how many"),
    _column("field_bytes", pa.string(), "bytes", "JSON: bytes a field, sum = size_bytes; uncompressed only"),
    # prefix
    _column("compressed_bytes", pa.int64(), "bytes", "what the codec made of the batches, as far as it was taken"),
    _column("plain_bytes", pa.int64(), "bytes", "what was decompressed of it"),
    _column("metadata_bytes", pa.int64(), "bytes", "what offsets, timestamps and lengths need of the plain bytes"),
    # broker: what one call of the path did
    _column("to_format", pa.string(), "", "what the path converts to; null where it keeps the format"),
    _column("source_bytes", pa.int64(), "bytes", "size of what came in"),
    _column("batches_untouched", pa.int64(), "batches", "handed on as they are"),
    _column("batches_in_place", pa.int64(), "batches", "header fields were set where they stand"),
    _column("batches_shifted", pa.int64(), "batches", "set, too, but what follows the header has moved"),
    _column("batches_rewritten", pa.int64(), "batches", "built anew"),
    _column("batches_dropped", pa.int64(), "batches", "left out"),
    _column("converted_records", pa.int64(), "records", "records that changed their format"),
    _column("read_bytes", pa.int64(), "bytes", "read of what came in: headers alone, or all of it"),
    _column(
        "written_bytes", pa.int64(), "bytes", "fields that were set, bytes that have moved, batches that were built"
    ),
    _column("decompressed_bytes", pa.int64(), "bytes", "plain bytes that the codec gave"),
    _column("recompressed_bytes", pa.int64(), "bytes", "plain bytes that the codec took"),
    _column(
        "extra_bytes",
        pa.int64(),
        "bytes",
        "most memory that Python and numpy held during the call, beyond what came in and out; the codecs' own is not "
        "seen",
    ),
    # cpu, metadata, lookup, record, prefix and broker
    _column(
        "operation",
        pa.string(),
        "",
        "cpu: encode or decode; metadata: decode-metadata; lookup: read-times; record: fetch-record; prefix: "
        "decompress or decompress-prefix (codec alone), decode or decode-metadata; broker: the path",
    ),
    _column(
        "arm",
        pa.string(),
        "",
        "measure, or aa: the base (v2, where a broker path has none its first format; prefix: decompress) once more, "
        "which must read 1.0",
    ),
    _column(
        "inner_loops",
        pa.int32(),
        "",
        "calls a sample; the same for all arms of a cell and operation (prefix: format); 1 where a call changes what "
        "it reads",
    ),
    _column(
        "cpu_ns",
        pa.list_(pa.int64()),
        "ns",
        "thread CPU time of inner_loops calls, one item a round; round i of all arms belongs together; model: of "
        "sizing the records, one item",
    ),
    _column("wall_ns", pa.list_(pa.int64()), "ns", "wall time of the same calls"),
    _column(
        "cache",
        pa.string(),
        "",
        "cpu: resident, the working set stays in the caches; or cold, it goes round through more memory than they hold",
    ),
    _column("rotated_bytes", pa.int64(), "bytes", "cold: the memory that calls go through before they come round"),
    _column("warm_up_calls", pa.int32(), "", "calls of the arm before any counted, until they got no faster"),
    # model
    _column("generate_ns", pa.int64(), "ns", "thread CPU time of making the shapes, once for all formats of the cell"),
    _column("resident_bytes", pa.int64(), "bytes", "most memory that the worker has held so far, the whole process"),
    # what the host did meanwhile; the same for all rows of a measurement, null where the host does not say
    _column("watched_ns", pa.int64(), "ns", "wall time of the measurement, warm-up and rounds"),
    _column("others_cpu_ns", pa.int64(), "ns", "CPU time of other processes on the host meanwhile, all cores together"),
    _column("stolen_ns", pa.int64(), "ns", "time that the hypervisor gave to others meanwhile, all cores together"),
    _column("yardstick_ns", pa.int64(), "ns", "fastest pass over a fixed piece of work just before: the host's speed"),
)

SCHEMA: Final = pa.schema(
    [
        pa.field(column.name, column.type, column.nullable, {"unit": column.unit, "meaning": column.meaning})
        for column in COLUMNS
    ],
    {"kfbench_schema_version": str(SCHEMA_VERSION)},
)

MEASURED: Final = (
    "host", "inner_loops", "cpu_ns", "wall_ns", "rotated_bytes", "warm_up_calls", "watched_ns", "others_cpu_ns",
    "stolen_ns", "yardstick_ns", "generate_ns", "resident_bytes",
    "extra_bytes",  # Python's own objects are in it: the same call differs by some 60 bytes from process to process
)  # fmt: skip
# What tells a row from every other of its run, and the order that rows are read in.
IDENTITY: Final = (
    "kind", "grid", "cell_id", "seed", "codec", "level", "operation", "to_format", "format", "arm", "cache", "start",
)  # fmt: skip


def _identity_without(*names: str) -> tuple[str, ...]:
    return tuple(name for name in IDENTITY if name not in names)


ARM: Final = _identity_without("grid")  # a cell of several blocks is measured once
SELF: Final = _identity_without("grid", "arm")  # what a base and its A/A arm have in common
ROUNDS: Final = _identity_without("grid", "format", "arm")  # what arms of the same rounds have in common;
ROUNDS_PREFIX: Final = _identity_without("grid", "operation", "arm")  # a prefix cell compares operations of one format
CELL: Final = _identity_without("operation", "to_format", "format", "arm", "cache")
# What is the same on any master, any partitioning and any day, given the same codec libraries.
DETERMINISTIC: Final = tuple(name for name in SCHEMA.names if name not in MEASURED)

Row = Mapping[str, Any]


def table(rows: Iterable[Row]) -> pa.Table:
    """Rows as a table of SCHEMA. A name that is not in it is a mistake of ours: KeyError."""
    found = list(rows)
    for row in found:
        if unknown := row.keys() - set(SCHEMA.names):
            raise KeyError(f"no column {', '.join(sorted(unknown))}")
    return pa.Table.from_pylist(found, schema=SCHEMA)


def counts_text(counts: Mapping[str, int]) -> str:
    """Name -> count as the text that `losses` and `field_bytes` hold."""
    return json.dumps(dict(counts), separators=(",", ":"))
